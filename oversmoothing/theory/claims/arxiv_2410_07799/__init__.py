"""What arXiv 2410.07799 (Naderi, Nait Saada, Tanner) claims of the outlier of attention matrices.

Statements follow the abstract; every other detail is our reading.
"""
