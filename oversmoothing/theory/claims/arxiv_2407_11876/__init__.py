"""What arXiv 2407.11876 (Roth) says of over-smoothing as power iteration, read in its abstract."""
