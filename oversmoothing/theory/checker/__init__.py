"""Is a certificate true? Recomputed from its input alone, by another route than it was made.

This package shares no code with what makes certificates, its own small helpers included.
"""
