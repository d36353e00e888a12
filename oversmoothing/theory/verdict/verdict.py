"""The verdict: does X -> X + A X W oversmooth, and why (T1-T4, T6b).

One way: layer -> spectra -> radii compared -> limits -> `Verdict`. Exact input is decided exactly,
binary64 input for everything that rounds to it, with UNDECIDED wherever rounding could turn the
answer; rows in float32 or bfloat16 are divided by their sums, for what rounds to them in that type.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Never

import numpy as np

from oversmoothing.theory.layer import layer as layers
from oversmoothing.theory.layer.layer import Entries, Layer, read_layer
from oversmoothing.theory.numbers.exact import has_symbols, plain, rows_of, transposed
from oversmoothing.theory.numbers.rounding import UNIT
from oversmoothing.theory.spectra.heads import ManyHeads, read_heads
from oversmoothing.theory.spectra.heads_radius import DENSE_SIZE
from oversmoothing.theory.support.errors import CloseRootsError, InputError
from oversmoothing.theory.support.sizes import DEPTH, USUAL, MatrixLike, WeightLike
from oversmoothing.theory.verdict import answer as sentences
from oversmoothing.theory.verdict.answer import Verdict
from oversmoothing.theory.verdict.by_discs import Comparison
from oversmoothing.theory.verdict.decide import compare_radii, generic_limits
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.limits import Decided


def given_layer(A: Any, logits: Any, H: Any, W: Any, X0: Any) -> tuple[Layer, Entries | None]:
    """The layer, and the start, of the arguments of `verdict`."""
    if layers.one_of(H, W) == "W" and isinstance(W, tuple) and len(W) == 2:
        return read_layer(A, None, X0, logits=logits, factors=W)
    return read_layer(A, H if W is None else transposed(rows_of(W, "W")), X0, logits=logits)


def check_depths(depth: int | Iterable[int]) -> list[int]:
    """Depths as a sorted list of distinct integers from 0 to `sizes.DEPTH`.

    Raises `InputError` otherwise.
    """
    values: list[Any] = list(depth) if isinstance(depth, Iterable) else [depth]
    for value in values:
        # 1e6 is a number of layers, too.
        whole = isinstance(value, float) and value.is_integer()
        whole = whole or isinstance(value, int | np.integer)
        if isinstance(value, bool) or not whole or value < 0:
            raise InputError(f"depth {value!r} must be an integer >= 0: a number of layers")
        if value > DEPTH:
            raise InputError(f"a depth is more than {DEPTH:,} layers, the most that is computed")
    return sorted({int(value) for value in values})


def _decided(
    case: Layer,
    start: Entries | None,
    relative: float = UNIT,
    dense_size: int = DENSE_SIZE,
    thorough: bool = False,
) -> Verdict:
    """The verdict on a layer, exactly where its numbers are exact and not too many."""
    comparison = compare_radii(case, relative, dense_size)
    generic = comparison.answer
    outcome, reason, status = generic.verdict, generic.reason, generic.status
    if case.n == 1:
        outcome, reason = Outcome.TRIVIAL, sentences.ONE_TOKEN
    elif len(case.classes) > 1:
        reason += sentences.repeated_one(len(case.classes), case.heads)
    if start is None:
        told = Decided(outcome, generic_limits(case, comparison))
    elif start.is_zero:
        from oversmoothing.theory.verdict.cosines import all_zero

        told, reason = Decided(Outcome.UNDEFINED, tokens=all_zero(case.n)), sentences.ZERO_STATE
        outcome = told.outcome
        status = "certified" if status == "numerical" else status
    else:
        from oversmoothing.theory.verdict.of_start import limits_of_start

        told = limits_of_start(case, start, comparison, outcome, thorough)
    limits, tokens = told.limits, told.tokens
    distance = _distance(case, outcome, comparison)
    reason += told.words
    if distance is not None and outcome is not Outcome.TIE:
        reason += sentences.near(distance)
    if outcome is not Outcome.TRIVIAL:
        reason += sentences.limit_words(limits, start is not None)
    if tokens is not None:
        reason += sentences.token_words(tokens)
    return replace(
        generic,
        verdict=outcome,
        status=status,
        rho_quotient=None if case.n == 1 else generic.rho_quotient,
        reason=reason,
        tends_to=limits.tends_to,
        limit=limits.limit,
        limit_rank=limits.limit_rank,
        verdict_x0=None if start is None else told.outcome,
        shows_from=None if told.onset is None else told.onset.layer,
        distance=distance,
        **({} if tokens is None else vars(tokens)),
    )


# Relative margins below this are near-ties: their distance is worth saying.
NEAR = 1e-3


def _distance(case: Layer, outcome: Outcome, comparison: Comparison) -> float | None:
    """The distance to another verdict, for what is undecided or near a tie."""
    if outcome is Outcome.TIE:
        return 0.0
    c, q = comparison.answer.rho_consensus, comparison.answer.rho_quotient
    wanted = outcome is Outcome.UNDECIDED and comparison.dominance is None
    if outcome in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING):
        assert c is not None and q is not None
        wanted = not (abs(c - q) > NEAR * max(c, q) or comparison.answer.margin is None)
    if not wanted or isinstance(case, ManyHeads):
        return None
    # Loaded where it is asked for: most layers are far from a tie.
    from oversmoothing.theory.verdict.by_fractions import distance_to_tie, exact_distance

    modes = comparison.dominance
    return distance_to_tie(case.A, case.H) if modes is None else exact_distance(case, modes)


# Distance from 1 to the next number, by the name of the type in numpy and torch.
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def precision(value: Any) -> str | None:
    """The name of a matrix's type where it is one of EPS, else None."""
    kind = getattr(value if hasattr(value, "dtype") else plain(value, "A"), "dtype", "")
    name = str(getattr(kind, "name", kind)).removeprefix("torch.")
    return name if name in EPS else None


def rounded_layer(
    A: Any, logits: Any, H: Any, W: Any, X0: Any, exact: bool
) -> tuple[tuple[Layer, Entries | None], float | None]:
    """(layer and start, how well the layer is known relative to itself, of an A of a type in EPS).

    None where they are taken as they are written: rows that sum to 1 in float64 too, with short
    numbers, which nobody gets by rounding, or where `exact` is asked for (a start, a certificate).
    Raises `InputError` where they sum to 1 in no rounding of that type, or not in float64 for
    `exact`.
    """
    kind = precision(A)
    if kind is None or logits is not None:
        return given_layer(A, logits, H, W, X0), None
    table = np.array(rows_of(A, "A"))
    sums = np.abs(table.sum(axis=1) - 1)
    if (sums <= layers.row_sum_tolerance(len(table))).all():
        parts = W if isinstance(W, tuple) else (H if W is None else W,)
        if exact or all(map(_is_short, (A, *parts))):
            return given_layer(table, None, H, W, X0), None
    elif exact:
        raise InputError(
            f"A is {kind}, and its rows sum to 1 only within the rounding of that: X0, depth and "
            "exact_binary need an A that is known; give the logits in float64, or A in float64 "
            "with each row divided by its sum"
        )
    attention = layers.check_attention(table, tolerance=2 * EPS[kind] + len(table) * EPS["float32"])
    factors = W if isinstance(W, tuple) else (W,)
    kinds = [name for name in map(precision, (A, H, *factors)) if name is not None]
    return given_layer(attention, None, H, W, None), max(EPS[name] for name in kinds)


def _is_short(value: Any) -> bool:
    """Whether numbers of a type in EPS have half its binary digits at most."""
    kind = precision(value)
    if kind is None:
        return True
    # A softmax gives a matrix of such numbers by chance alone.
    half = int(1 - np.log2(EPS[kind])) // 2
    mantissas = np.frexp(rows_of(value, "a matrix"))[0] * 2.0**half
    return bool((mantissas == np.round(mantissas)).all())


def within(result: Verdict, kind: str | None, error: float) -> Verdict:
    """A verdict found for numbers known to `error` of themselves, from an A of `kind`, in words."""
    said = (
        f" A is {kind}: its rows were divided by their sums in float64, and each number is taken "
        f"as known to {error:.1e} of itself."
    )
    if result.verdict is not Outcome.UNDECIDED:
        return replace(result, reason=result.reason + said)
    reason = (
        f"within the rounding of {kind} another verdict may hold.{said} Weights and logits in "
        "float64 tell more."
    )
    unknown = replace(result, tends_to=None, limit=None, limit_rank=None, digits=3)
    return replace(unknown, status="numerical", reason=reason)


@np.errstate(**USUAL)
def heads_verdict(
    *,
    A: MatrixLike,
    W: WeightLike,
    X0: MatrixLike | None = None,
    depth: int | Iterable[int] = (),
    residual: bool = True,
    exact_binary: bool = False,
    thorough: bool = False,
    dense_size: int = DENSE_SIZE,
) -> Verdict:
    """Does X' = [X +] sum_h A_h X W_h oversmooth, all heads together (E3)? By keyword only.

    A [heads, n, n] row-stochastic (or [n, n]), W [heads, d, d] (or [d, d], or the factors
    (W_V [heads, d, r], W_O [heads, r, d])); X0, depth, exact_binary and thorough as for
    `verdict`, and so are the answers: "exact" in fractions up to n d = 128 (minutes), "certified"
    in floats, by the operator of (n - 1) d rows up to dense_size of them (causal heads token by
    token), beyond "estimated" by Arnoldi's method. Raises `InputError` on illegal input.

    >>> import numpy as np, oversmoothing
    >>> A = np.array([[[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> str(oversmoothing.heads_verdict(A=A, W=np.array([[[0.5]], [[0.25]]])).verdict)
    'SMOOTHING'
    """
    case, start = read_heads(A, W, X0, residual)
    return answer(case, start, check_depths(depth), exact_binary, thorough, dense_size)


BY_NAME = (
    "matrices go by name, so that none is transposed by mistake: verdict(A=..., W=...) with "
    "W = W_V W_proj as the weights of a layer are, X' = X + A X W, or verdict(A=..., H=...) with H "
    "= W^T, whose eigenvalues the theory is about"
)


@np.errstate(**USUAL)
def verdict(
    *by_position: Never,
    A: MatrixLike | None = None,
    logits: MatrixLike | None = None,
    H: MatrixLike | None = None,
    W: WeightLike | None = None,
    X0: MatrixLike | None = None,
    depth: int | Iterable[int] = (),
    exact_binary: bool = False,
    thorough: bool = False,
    certified: bool | None = None,
) -> Verdict:
    """Does X' = X + A X W oversmooth? Exactly one of A and logits, and of H = W^T and W.

    Matrices go by keyword only: A [n, n] row-stochastic, or the logits [n, n] whose softmax it is
    (-inf masks); H or W [d, d], or W = (W_V, W_proj) with shapes [d, r] and [r, d], the factors of
    one head, whose d - r zero eigenvalues are then known exactly. X0 [n, d] and depths (layer
    counts) are optional. Entries that are all strings, integers or Fractions are decided exactly
    (except logits), others in binary64: then the verdict is proved for every layer that rounds to
    these numbers (status "certified"), and UNDECIDED where they differ. A 0 stands for 0 alone,
    also where float16 has lost what was smaller. An A of float32, float16 or bfloat16 (a network's
    softmax) may have rows that sum to 1 within the rounding of its type: they are divided by their
    sums, and the verdict is about all that rounds to them in that type; X0 and exact_binary then
    need float64. exact_binary: decide the binary numbers themselves, and no other layer that rounds
    to them (a verdict in fractions is about itself anyway). thorough: with an X0 in fractions, or
    with symbols, also what is left out for its cost else, as the answer then says. certified: the
    old name of exact_binary. With free symbols of sympy in A, H or X0 the answer is a
    `SymbolicVerdict`: for which parameters it smooths, from generic X_0 or the given one. Raises
    `InputError` on illegal input, and `TypeError` for matrices by position.

    >>> import oversmoothing
    >>> answer = oversmoothing.verdict(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[["-3/2"]])
    >>> str(answer.verdict), answer.status, answer.rate.text()
    ('SMOOTHING', 'exact', '1/2')
    >>> answer.dominant
    (Pair(h=(-1.5+0j), a=(1+0j), multiplier=(-0.5+0j), consensus=True),)
    """
    if by_position:
        raise TypeError(BY_NAME)
    if "sympy" in sys.modules and any(map(has_symbols, (A, logits, H, W, X0))):
        # Typed as what numbers give: `symbolic(A, H).verdict()` has the type of the other.
        result: Any = _symbolic(A, logits, H, W, X0, check_depths(depth), thorough)
        return result  # type: ignore[no-any-return]
    if certified is not None:
        warnings.warn(
            "certified is now called exact_binary: every verdict on floats is certified",
            DeprecationWarning,
            stacklevel=3,
        )
        exact_binary = certified
    for name, value in {"A": A, "logits": logits, "H": H, "W": W, "X0": X0}.items():
        shape = getattr(value, "shape", ())
        if len(shape or ()) > 2:
            raise InputError(
                f"{name} has shape {list(shape)}, and a verdict is on one matrix: call it for each "
                f"{name}[i], or for the heads of one layer together heads_verdict"
            )
    depths, exact = check_depths(depth), X0 is not None or exact_binary
    (case, start), error = rounded_layer(A, logits, H, W, X0, exact)
    result = answer(case, start, depths, exact_binary, thorough, relative=error or UNIT)
    return result if error is None else within(result, precision(A), error)


NO_DEPTH = "with parameters there is no HFC/LFC at a depth: set them by subs, or leave depth out"


def _symbolic(
    A: Any, logits: Any, H: Any, W: Any, X0: Any, depths: list[int], thorough: bool
) -> Any:
    from oversmoothing.theory.verdict.symbolic.symbols import symbolic

    if logits is not None or A is None:
        raise InputError(
            "logits with parameters have no rational softmax: give A with a positive symbol for "
            "each exp(logit), divided by the sums of its rows"
        )
    if depths:
        raise InputError(NO_DEPTH)
    return symbolic(A, H, X0, W=W).verdict(thorough=thorough)


def answer(
    case: Layer,
    start: Entries | None,
    depths: list[int],
    exact_binary: bool = False,
    thorough: bool = False,
    dense_size: int = DENSE_SIZE,
    relative: float = UNIT,
) -> Verdict:
    """The verdict on a validated layer. relative: how well the entries of A and H are known.

    What binary64 leaves open is decided in fractions where the numbers are short ones that mean
    what they say (`Layer.as_fractions`).
    """
    if exact_binary and isinstance(case, ManyHeads) and not case.exact:
        case = case.taken_exactly()
        result = answer(case, start, depths, False, thorough, dense_size)
        return replace(result, status="certified", point=True) if case.decidable else result
    taken = case
    try:
        result = _decided(case, start, relative, dense_size, thorough)
        known = result.verdict, result.verdict_x0, result.tends_to, result.limit_rank
        left_open = Outcome.UNDECIDED in known or None in known[2:]
        if relative == UNIT and left_open and (short := case.as_fractions()) is not None:
            taken, result = short, _decided(short, start, thorough=thorough)
    except CloseRootsError:
        x0 = None if start is None else Outcome.UNDECIDED
        words = sentences.CLOSE_EIGENVALUES
        result = Verdict(Outcome.UNDECIDED, "exact", None, None, words, verdict_x0=x0)
    if start is not None:
        # Loaded for who asks, like all below: a verdict is quick to start.
        from oversmoothing.theory.depth.ratios import ratios_at

        as_given = taken is not case or (result.token_growth is not None and not start.is_zero)
        said = "" if start.means_itself or not as_given else sentences.START_AS_GIVEN
        if result.verdict_x0 in (Outcome.TRIVIAL, Outcome.UNDEFINED) and case.n > 1:
            # One more bit in X_0 would part its tokens; a 0 stands for 0 alone.
            said = "" if taken.exact or start.is_zero else sentences.SETTLED_AS_GIVEN
        reason, ratios = result.reason + said, ratios_at(taken, start, depths)
        result = replace(result, reason=reason, hfc_lfc=ratios, has_x0=True)
    if not exact_binary or case.decidable or isinstance(case, ManyHeads):
        return result
    from oversmoothing.theory.verdict.stages import certify_case

    return certify_case(case, result)
