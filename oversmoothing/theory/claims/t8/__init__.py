"""T8: input-dependent attention at consensus, LayerNorm, feed-forward blocks."""
