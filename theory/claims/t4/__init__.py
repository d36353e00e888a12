"""T4: limits of the three notions of smoothing."""
