"""T5: rates."""
