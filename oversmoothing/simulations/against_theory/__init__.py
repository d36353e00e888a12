"""Runs beside what the theory predicts for them."""
