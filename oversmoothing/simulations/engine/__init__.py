"""The layer X' = X + A X W run to any depth, by several methods (T1, T11)."""
