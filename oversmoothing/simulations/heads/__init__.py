"""Many heads and layers that change: X' = X + sum_h A_h X W_h, and their exponents (T7, T8)."""
