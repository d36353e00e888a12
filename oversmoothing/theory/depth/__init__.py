"""What happens at depth L: HFC/LFC, closed form, rates and bounds (T5, T9, T11.5)."""
