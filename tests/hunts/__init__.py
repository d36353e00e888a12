"""Hunts for a sequence that a certificate of T7b or T13b does not hold for."""
