"""T10: what certificates decide, and what no enclosure can."""
