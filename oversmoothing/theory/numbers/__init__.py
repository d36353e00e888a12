"""Numbers that floats cannot hold: fractions, balls, scaled values, accurate products."""
