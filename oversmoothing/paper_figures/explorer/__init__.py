"""The explorer: one page that asks no network, where a reader drags eigenvalues of H."""
