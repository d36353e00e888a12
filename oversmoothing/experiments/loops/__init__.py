"""Loops: one block of a trained model, or several in turn, applied hundreds of times (T12)."""
