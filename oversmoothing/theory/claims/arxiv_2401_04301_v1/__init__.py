"""What version 1 of arXiv 2401.04301 (Dovonon, Bronstein, Kusner) claims, as stated, each statement
with what carries it or its smallest counterexample.

The full text was not at hand: statements follow the abstract, the poster and public reviews; "our
reading" marks every detail that those do not settle.
"""
