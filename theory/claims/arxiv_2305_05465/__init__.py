"""What arXiv 2305.05465 (Geshkovski, Letrouit, Polyanskiy, Rigollet) claims of clusters of tokens.

The text was not at hand: what is attributed to it is recalled, so it is our reading throughout.
"""
