"""What the code of arXiv 2604.19028 (Choi et al., NodePFN) draws its synthetic graphs from."""
