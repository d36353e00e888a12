"""What arXiv 2604.23681 (Cirrincione) says of LayerNorm and rank, read in its abstract."""
