"""What arXiv 2308.16800 (Roth, Liebig) says of rank collapse and sums of Kronecker products, read
in its abstract."""
