"""Others' public code beside ours: their layers on our inputs, with the same weights."""
