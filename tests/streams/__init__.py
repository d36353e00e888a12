"""Verdicts on several streams against brute-force iteration in fractions (T13)."""
