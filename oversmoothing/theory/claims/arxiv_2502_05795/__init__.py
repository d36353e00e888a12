"""What arXiv 2502.05795 (Sun et al., the curse of depth) says of Pre-LN and of LayerNorm-scaling,
read in its abstract, and in Assumption 3.1 and Lemma 3.2 of version 5."""
