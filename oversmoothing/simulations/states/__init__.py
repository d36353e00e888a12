"""A state as HFC and mean, each with its power of two (T1c, T11)."""
