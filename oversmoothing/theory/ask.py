"""`oversmoothing.verdict`: the theory's answer, about the binary numbers where that is asked."""

import warnings
from collections.abc import Iterable
from typing import Any

from oversmoothing.theory.layer.layer import Case
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.verdict import (
    case_verdict,
    check_depths,
    given_case,
    precision,
    refuse_batches,
    rounded_case,
    within,
)


def verdict(
    *,
    A: Any = None,
    logits: Any = None,
    H: Any = None,
    W: Any = None,
    X0: Any = None,
    depth: int | Iterable[int] = (),
    exact_binary: bool = False,
    certified: bool | None = None,
) -> Verdict:
    """Does X' = X + A X W oversmooth? Exactly one of A and logits, and of H = W^T and W.

    Matrices go by keyword only: A [n, n] row-stochastic, or the logits [n, n] whose softmax it is
    (-inf masks); H or W [d, d], or W = (W_V, W_proj) with shapes [d, r] and [r, d], the factors of
    one head, whose d - r zero eigenvalues are then known exactly. X0 [n, d] and depths (layer
    counts) are optional. Entries that are all strings, integers or Fractions are decided exactly
    (except logits), others in binary64: then the verdict is proved for every layer that rounds to
    these numbers (status "certified"), and UNDECIDED where they differ. An A of float32, float16 or
    bfloat16 (a network's softmax) may have rows that sum to 1 within the rounding of its type: they
    are divided by their sums, and the verdict is about all that rounds to them in that type; X0 and
    exact_binary then need float64. exact_binary: decide the binary numbers themselves, and no other
    layer that rounds to them (a verdict in fractions is about itself anyway). certified: the old
    name of exact_binary. Raises `InputError` on illegal input.
    """
    if certified is not None:
        warnings.warn(
            "certified is now called exact_binary: every verdict on floats is certified",
            DeprecationWarning,
            stacklevel=2,
        )
        exact_binary = certified
    refuse_batches({"A": A, "logits": logits, "H": H, "W": W, "X0": X0})
    depths, kind = check_depths(depth), precision(A)
    if kind is None or logits is not None:
        return answer(given_case(A, logits, H, W, X0), depths, exact_binary)
    case, error = rounded_case(A, H, W, X0, X0 is not None or exact_binary)
    if error is None:
        return answer(case, depths, exact_binary)
    return within(case_verdict(case, depths, error), case, kind, error)


def answer(case: Case, depths: list[int], exact_binary: bool = False) -> Verdict:
    """The verdict on a validated case."""
    found = case_verdict(case, depths)
    if not exact_binary or case.decidable:
        return found
    # Loaded for who asks for it: a verdict is quick to start.
    from oversmoothing.theory.certificates.stages import certify_case

    return certify_case(case, found)
