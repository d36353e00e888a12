"""What arXiv 2312.06182 (Yu, Zhang; version 2) claims, as stated, each statement with what carries
it or its smallest counterexample.

The full text was not at hand: statements follow the abstract and a summary; "our reading" marks
every detail that those do not settle.
"""
