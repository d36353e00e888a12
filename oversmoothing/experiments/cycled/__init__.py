"""A trained model's layers taken as linear operators, over and over (T7a)."""
