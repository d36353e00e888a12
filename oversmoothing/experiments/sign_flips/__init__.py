"""The sign of a norm's gain, flipped in a trained layer: predicted (T8d, T8e), measured."""
