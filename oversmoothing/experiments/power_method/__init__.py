"""Transformer layers beside the power method (arXiv 2605.25619): tilt, and steering by rank one."""
