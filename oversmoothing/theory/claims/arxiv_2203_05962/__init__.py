"""What arXiv 2203.05962 (Wang, Zheng, Chen, Wang) claims of attention as a low-pass filter.

The abstract was at hand, not the text: what goes beyond it is recalled, and our reading.
"""
