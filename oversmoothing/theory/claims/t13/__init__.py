"""T13: several residual streams (hyper-connections)."""
