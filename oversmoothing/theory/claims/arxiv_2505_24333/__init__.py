"""What arXiv 2505.24333 (Giorlandino, Goldt) claims of attention at initialisation: rank collapse
on one side of a critical variance of the logits, entropy collapse on the other.

Statements follow the abstract; every other detail is our reading.
"""
