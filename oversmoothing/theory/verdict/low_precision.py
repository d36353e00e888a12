"""Attention of less than binary64, as networks compute it: what its rounding leaves open.

The rows of a softmax in float32 or bfloat16 sum to 1 within the rounding of that type. They are
divided by their sums in float64, and the answer holds for every A and H within that rounding, by
discs (`by_discs`); else it is UNDECIDED.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.input_checks import check_attention, row_sum_tolerance
from oversmoothing.theory.numbers.rational import rows_of
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.nearest import distance_to_tie
from oversmoothing.theory.verdict.outcome import Outcome
from oversmoothing.theory.verdict.verdict import given_case

# Distance from 1 to the next number, by the name of the type in numpy and torch.
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# Half of the binary digits of each: a softmax gives a matrix of such numbers by chance alone.
_DIGITS = {"float32": 12, "float16": 5, "bfloat16": 4}


def precision(value: Any) -> str | None:
    """The name of a matrix's type where it is one of EPS, else None."""
    name = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return name if name in EPS else None


def refuse_batches(matrices: dict[str, Any]) -> None:
    """Raises `InputError` for an array of more than two dimensions: a verdict is on one case."""
    for name, value in matrices.items():
        shape = getattr(value, "shape", None)
        if shape is not None and len(shape) > 2:
            raise InputError(
                f"{name} has shape {list(shape)}, and a verdict is on one matrix: call it for each "
                f"{name}[i], or for the heads of one layer together heads_verdict"
            )


def rounded_case(A: Any, H: Any, W: Any, X0: Any, exact: bool) -> tuple[Case, float | None]:
    """(the case, how well its numbers are known relative to themselves) for an A of a type in EPS.

    None where they are taken as they are written: rows that sum to 1 in float64 too, with short
    numbers, which nobody gets by rounding, or where `exact` is asked for (a start, a certificate).
    Raises `InputError` for rows that sum to 1 in no rounding of that type, and for `exact` where
    the rows have to be divided by their sums.
    """
    kind = precision(A)
    assert kind is not None
    table = np.array(rows_of(A, "A"))
    sums = np.abs(table.sum(axis=1) - 1)
    if (sums <= row_sum_tolerance(len(table))).all():
        parts = W if isinstance(W, tuple) else (H if W is None else W,)
        if exact or all(map(_is_short, (A, *parts))):
            return given_case(table, None, H, W, X0), None
    elif exact:
        raise InputError(
            f"A is {kind}, and its rows sum to 1 only within the rounding of that: X0, depth and "
            "exact_binary need an A that is known; give the logits in float64, or A in float64 "
            "with each row divided by its sum"
        )
    attention = check_attention(table, tolerance=2 * EPS[kind] + len(table) * EPS["float32"])
    factors = W if isinstance(W, tuple) else (W,)
    kinds = [name for name in map(precision, (A, H, *factors)) if name is not None]
    return given_case(attention, None, H, W, None), max(EPS[name] for name in kinds)


def _is_short(value: Any) -> bool:
    """Whether numbers of a type in EPS have half its digits at most, as few rounded ones do."""
    kind = precision(value)
    if kind is None:
        return True
    mantissas = np.frexp(value.tolist())[0] * 2.0 ** _DIGITS[kind]
    return bool((mantissas == np.round(mantissas)).all())


def within(found: Verdict, case: Case, kind: str, error: float) -> Verdict:
    """A verdict found for numbers known to `error` of themselves, from an A of `kind`, in words."""
    said = (
        f" A is {kind}: its rows were divided by their sums in float64, and each number is taken "
        f"as known to {error:.1e} of itself."
    )
    if found.verdict is not Outcome.UNDECIDED:
        return replace(found, reason=found.reason + said)
    return Verdict(
        Outcome.UNDECIDED,
        "numerical",
        found.rho_consensus,
        found.rho_quotient,
        f"within the rounding of {kind} another verdict may hold.{said} Weights and logits in "
        "float64 tell more.",
        attention=found.attention,
        value=found.value,
        distance=distance_to_tie(case.A, case.H),
    )
