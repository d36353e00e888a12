"""What arXiv 2206.03126 (Noci, Anagnostidis, Biggio, Orvieto, Singh, Lucchi) claims of gradients
and of the scale of the residual branch, at rank collapse.

The text was not at hand: what is attributed to it is recalled, so it is our reading throughout.
"""
