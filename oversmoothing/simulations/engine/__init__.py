"""One head, many heads, several streams, run to any depth by several methods (T1, T7, T11, T13)."""
