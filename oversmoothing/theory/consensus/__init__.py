"""A layer at consensus, where all tokens are equal: Jacobians (T8c), and what loops do (T12)."""
