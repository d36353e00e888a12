"""What arXiv 2604.07925 (Lapenna, Fioresi, Gharesifard) says of Sinkhorn attention, read in its
abstract."""
