"""Verdicts for thousands of attention matrices against the heads that they belong to (T1, T3).

`batch_verdicts` is the front; `head_values` prepares a head. Bounds decide most pairs, Ritz values
many of the rest, and LAPACK whatever is closer than ten times the error estimate.
"""
