"""`evolve` against an oracle in balls of 200 digits and more: does a claimed error ever lie?

`python -m tests.evolve_errors --number 10000 --seed 1` draws cases and prints what was wrong.
"""
