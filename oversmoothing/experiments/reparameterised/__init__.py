"""Trained Transformers of any make whose value and output projections are put into a region."""
