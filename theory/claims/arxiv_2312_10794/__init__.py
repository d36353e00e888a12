"""What arXiv 2312.10794 (Geshkovski, Letrouit, Polyanskiy, Rigollet) claims of tokens on a sphere.

The text was not at hand: what is attributed to it is recalled or derived anew, so it is our
reading throughout.
"""
