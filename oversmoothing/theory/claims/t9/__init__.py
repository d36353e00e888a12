"""Attention without a residual connection: linear, and softmax computed from the state (T9)."""
