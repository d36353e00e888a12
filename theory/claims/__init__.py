"""What is claimed: one folder a chapter, T1 ... T11, and one a paper and version."""
