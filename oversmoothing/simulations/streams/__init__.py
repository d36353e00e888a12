"""Several residual streams simulated to any depth, beside what the theory says of them (T13)."""
