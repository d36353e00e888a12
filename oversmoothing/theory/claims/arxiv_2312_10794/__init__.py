"""What arXiv 2312.10794 (Geshkovski, Letrouit, Polyanskiy, Rigollet) claims of tokens on a sphere.

The abstract was at hand, not the text: what goes beyond it is recalled or derived anew, and our
reading.
"""
