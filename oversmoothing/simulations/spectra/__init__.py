"""Spectra of many heads and attention matrices: their verdicts, and which eigenvalue dominates."""
