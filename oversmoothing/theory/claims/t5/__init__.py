"""The rates of HFC/LFC, of the rank and of the angles, and depths that are certain (T5)."""
