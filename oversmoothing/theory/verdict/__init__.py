"""Does it oversmooth, and why: two radii compared, the limits, the answer (T2-T4, T6)."""
