"""What arXiv 2502.05795 (Sun et al., the curse of depth) says of Pre-LN and of LayerNorm-scaling,
read in its abstract."""
