"""What is claimed: one folder a chapter, T1 ... T11, T14, and one a paper and version."""
