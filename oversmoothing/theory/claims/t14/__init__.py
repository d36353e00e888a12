"""Several closed classes of tokens, and attention that is not positive (T14)."""
