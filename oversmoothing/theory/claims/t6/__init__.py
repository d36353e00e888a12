"""Jordan blocks: the structure of I + H (x) A, and the ties that it decides (T6)."""
