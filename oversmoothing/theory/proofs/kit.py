"""What a claim is written with, in one import; `theory.proofs` tells what it is."""

from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.proofs import (
    by,
    exact_spectrum as spectra,
    hypotheses as given,
    instances as exact,
    strategies as draw,
)
from oversmoothing.theory.proofs.chapter import search
from oversmoothing.theory.proofs.checks import equal, is_zero, vanishes
from oversmoothing.theory.proofs.claim import Claim
from oversmoothing.theory.verdict.verdict import verdict

# A user's type checker takes these for exported, too.
__all__ = [
    "Claim", "Matrix", "by", "draw", "equal", "exact", "given", "is_zero", "search", "spectra",
    "vanishes", "verdict",
]  # fmt: skip
