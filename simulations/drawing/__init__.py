"""How the project draws: one style, and the phase diagram of a sweep."""
