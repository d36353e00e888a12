"""The cases at the edges, each legal, each with the verdict that says so (T11)."""
