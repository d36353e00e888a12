"""What arXiv 2305.05465 (Geshkovski, Letrouit, Polyanskiy, Rigollet) claims of clusters of tokens.

The abstract was at hand, not the text: what goes beyond it is recalled, and our reading.
"""
