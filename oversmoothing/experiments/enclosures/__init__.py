"""Trained Transformers in rigorous arithmetic: what a forward pass gives, proved.

network                 the network as exact numbers, read off a described model.
balls, zonotope         what is known of one input, of a box of inputs: one set of operations.
enclosing               the forward pass on either, the precision that an input takes, the largest
                        box that keeps a sign.
other_route             the forward pass by another order of operations.
statement               the file that claims intervals, and what confirms or refuses it.
proving                 inputs of a model proved, checked, written and said in words.
"""
