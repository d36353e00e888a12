"""What arXiv 2203.05962 (Wang, Zheng, Chen, Wang) claims of attention as a low-pass filter.

The text was not at hand: what is attributed to it is recalled, so it is our reading throughout.
"""
