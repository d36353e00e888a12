"""Trained Transformers in rigorous arithmetic: what a forward pass gives, proved.

network, ffn_form      the network as exact numbers, read off a described model.
ball_pass, ball_metrics        one input in balls: streams and metrics of every layer.
other_pass, other_metrics      the same by another order of operations, for the checker.
statement, statement_check     the file that claims intervals, and what confirms or refuses it.
zonotope, box_pass, other_box_pass, box_statement      boxes of inputs, the same two ways.
"""
