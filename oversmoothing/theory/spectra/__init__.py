"""Eigenvalues of A and of H, exact or with error estimates, and max |1 + h a| over them."""
