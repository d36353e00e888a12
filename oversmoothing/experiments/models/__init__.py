"""Trained models of any library in one form: sources, adapters, weights, pictures and texts."""
