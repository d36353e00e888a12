"""What arXiv 2510.22026 (Karagodin, Ge, Polyanskiy, Rigollet) says of norms as regulators of speed,
read in its abstract."""
