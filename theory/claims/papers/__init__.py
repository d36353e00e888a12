"""What two papers claim, as stated, each with what carries it or its smallest counterexample.

arXiv 2401.04301 (Dovonon, Bronstein, Kusner), by version, and its neighbour arXiv 2312.06182 (Yu,
Zhang). The full text of neither was at hand: statements follow abstracts, the poster and public
reviews; "our reading" marks every detail that those do not settle.
"""
