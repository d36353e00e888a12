"""What arXiv 2502.04591 claims of the numerical rank as the measure of oversmoothing.

The text was not at hand: what is attributed to it is recalled, so it is our reading throughout.
"""
