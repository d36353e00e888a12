"""How the project draws and shows: one style, runs against depth, short tables."""
