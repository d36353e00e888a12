"""What arXiv 2206.10991 (Di Giovanni et al., GRAFF) says of the same recurrence on graphs, from
memory: every statement is our reading."""
