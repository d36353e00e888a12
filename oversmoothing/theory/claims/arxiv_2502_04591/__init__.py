"""What arXiv 2502.04591 claims of the numerical rank as the measure of oversmoothing.

The abstracts of versions 3 and 4 were at hand, not the text: all details are our reading.
"""
