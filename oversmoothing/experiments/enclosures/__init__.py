"""Trained Transformers in rigorous arithmetic: what a forward pass gives, proved."""
