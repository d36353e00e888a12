"""Sweeps: the outcome of every point of a grid of parameters, as one Parquet table (T2, T3, T5)."""
