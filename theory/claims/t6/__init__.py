"""T6: defective H or A."""
