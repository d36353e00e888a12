"""Trained Transformers in rigorous arithmetic: what a forward pass gives, proved.

network                 the network as exact numbers, read off a described model.
ball_pass               one input in balls: streams and metrics of every layer.
other_pass              the same by another order of operations, for the checker.
zonotope                boxes of inputs: the arithmetic that both ways below share.
box_pass, other_box_pass        a layer's change of HFC/LFC on a box, by tangents and by chords.
enclosing               the precision that an input takes, the largest box that keeps a sign.
statement               the file that claims intervals, and what confirms or refuses it.
proving                 inputs of a model proved, checked, written and said in words.
"""
