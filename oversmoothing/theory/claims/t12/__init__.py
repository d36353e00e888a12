"""T12: loops, one block applied again and again."""
