"""T1: the block structure of I + H (x) A, and what it says about states without consensus."""
