"""Attention matrices, H and heads to simulate with, each kind with its own options."""
