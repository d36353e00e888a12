"""T9: attention without a residual connection."""
