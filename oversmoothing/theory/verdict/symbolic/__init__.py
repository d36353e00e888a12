"""A layer with symbols: its operator, its verdict as conditions, and regions of parameters."""
