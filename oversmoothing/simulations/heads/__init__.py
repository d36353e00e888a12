"""Many heads, several streams, layers that change, to any depth; their exponents (T7, T8, T13)."""
