"""What `experiments` measures: the cost of inspecting a model."""
