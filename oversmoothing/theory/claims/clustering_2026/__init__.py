"""What 'Verified Transformer Dynamics: Token Clustering Convergence in Lean 4' (2026, a preprint
without an arXiv number) says of doubly stochastic attention, read in its abstract."""
