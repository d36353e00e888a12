"""Do small differences between tokens grow, layer by layer: derivatives of a model's own blocks."""
