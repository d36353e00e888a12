"""What arXiv 2605.25619 (Li, Altafini) says of layers as steps of the power method: F = W_O W_V of
the paper is H here. Statements follow the abstract and summaries; the rest is our reading."""
