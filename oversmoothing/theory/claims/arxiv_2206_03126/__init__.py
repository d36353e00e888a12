"""What arXiv 2206.03126 (Noci, Anagnostidis, Biggio, Orvieto, Singh, Lucchi) claims of gradients
and of the scale of the residual branch, at rank collapse.

Its introduction was at hand, not the rest: what goes beyond it is recalled, and our reading.
"""
