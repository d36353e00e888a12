"""HFC/LFC of X_L at given depths: exactly in fractions, or in balls at any depth (T1c-e, T11.5).

Both work in decoupled coordinates: y_i = x_i - x_n with y' = y + B' y W, and the pi-mean
c' = c (I + W). So neither a huge LFC nor a huge HFC can swamp the other, whatever the depth.

Attention from logits is no matrix of fractions: the softmax itself is carried in balls, since a
mean of size e^-1500 is not that of a matrix whose entries are off by 1e-16.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.depth.recurrence import (
    PRIMES,
    Powers,
    is_known,
    modulo,
    square,
    squared_norms_at,
)
from oversmoothing.theory.layer import attention
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers import exact, rounding
from oversmoothing.theory.numbers.exact import (
    Heads,
    Matrix,
    squared_norms as squared_norms,
    to_flint,
)
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Depth up to which X_L is also carried in fractions.
EXACT_DEPTH = 64
# Largest (n - 1) d whose propagator is raised to powers in balls.
BALL_SIZE = 64
# Beyond, what cancels is taken by recurrences of its own.
MAX_BITS = 2**12
# A little below the logarithm of the largest binary64, 709.7827.
_LARGEST_LOG = 709.78


@dataclass(frozen=True)
class Ratio:
    """HFC/LFC at one depth. value: inf where LFC = 0 < HFC, None where X_L = 0 (undefined) or out
    of reach. log: its natural logarithm, -inf where HFC = 0. squared: exact, where asked for.
    gone: whether X_L is known to be 0."""

    value: float | None
    log: float | None
    squared: Fraction | None = None
    gone: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if self.gone:
            return "no value: the state is 0"
        if self.value is None:
            return "no value: HFC and LFC cancel further than is computed"
        said = f"HFC/LFC = {rounding.ratio_text(self.value, self.log, 3)}"
        if self.squared is None:
            return said
        text = exact.fraction_text(self.squared)
        long = f"a fraction of {len(text)} characters (see --json)"
        return f"{said}, squared {text if len(text) <= 60 else long}"


def exact_state(A: Matrix, H: Matrix, X0: Matrix, depths: Sequence[int]) -> dict[int, Matrix]:
    """X_L in fractions at each of the depths."""
    states: dict[int, Matrix] = {}
    before, X = 0, X0
    for depth in sorted(set(depths)):
        X = exact.layer(A, H, X, depth - before)
        before, states[depth] = depth, X
    return states


def ratio_of_squares(hfc: Fraction, lfc: Fraction) -> Ratio:
    """The ratio for exact squared norms, degenerate cases included (T11.7)."""
    if hfc == 0 and lfc == 0:
        return Ratio(None, None, gone=True)
    if lfc == 0:
        return Ratio(math.inf, math.inf)
    squared = hfc / lfc
    if squared == 0:
        return Ratio(0.0, -math.inf, squared)
    for bits in rounding.doublings(96, MAX_BITS):
        with rounding.at_precision(bits):
            ball = rounding.to_ball(squared)
            ratio = replace(_ratio_of_ball(ball), squared=squared)
            if is_known(ball):
                break
    return ratio


def _ratio_of_ball(squared: flint.arb) -> Ratio:
    """The ratio whose square lies in this ball; 0.0 or inf only where a float cannot hold it, and
    1 where the ball holds it: the middle of its logarithm would be noise."""
    exponent = squared.log() / 2
    log = 0.0 if exponent.contains(0) else float(exponent.mid())
    normal = -708 < log <= _LARGEST_LOG
    return Ratio(float(squared.sqrt().mid()), log) if normal else ratio_of_log(log)


def ratio_of_log(log: float) -> Ratio:
    """The ratio with this logarithm, its value inf only where no binary64 can hold it."""
    return Ratio(math.exp(log) if log < _LARGEST_LOG else math.inf, log)


def ball_ratios(
    A: Matrix, H: Matrix, X0: Matrix, pi: list[Fraction], depths: Iterable[int]
) -> dict[int, Ratio]:
    """HFC/LFC to about 1e-17 relative at any depth, by repeated squaring in balls.

    For (n - 1) d <= BALL_SIZE. Where `MAX_BITS` bits leave the norm of LFC or HFC
    indistinguishable from 0, each comes from the shortest recurrence that it obeys: a mean that is
    exactly 0 is so at every depth. A depth gets no value only where these cannot tell either.
    """
    n, asked = len(X0), set(depths)
    c0, y0 = [[x] for x in exact.weighted_mean(pi, X0)], _from_the_last(X0)
    # Row-major vec: y' = y + B' y H^T is (I + B' (x) H) vec(y), c' = (I + H) c.
    consensus = to_flint(exact.plus_identity(H))
    block = to_flint(exact.plus_identity(exact.kronecker(attention.rational_quotient(A), H)))
    # A part with only mu = 0 is gone after at most its size; no ball could show that.
    deaths = death(consensus, c0), death(block, y0)

    def attempt(wanted: list[int]) -> dict[int, Ratio]:
        eta = [rounding.to_ball(Fraction(1, n) - p) for p in pi]
        c = Powers(flint.arb_mat(consensus), flint.arb_mat(to_flint(c0)))
        return _decoupled(X0, c, flint.arb_mat(block), eta, deaths, wanted)

    result = _with_enough_bits(attempt, asked)
    result |= _by_recurrences(A, H, X0, sorted(asked - result.keys()))
    return dict(sorted(result.items()))


def _with_enough_bits(
    attempt: Callable[[list[int]], dict[int, Ratio]], depths: set[int]
) -> dict[int, Ratio]:
    """What is found with up to MAX_BITS bits; an attempt knows some of the depths asked for."""
    ratios: dict[int, Ratio] = {}
    for bits in rounding.doublings(192, MAX_BITS):
        if wanted := sorted(depths - ratios.keys()):
            with rounding.at_precision(bits):
                ratios |= attempt(wanted)
    return ratios


def _by_recurrences(
    A: Matrix, H: Matrix, X0: Matrix, depths: list[int], others: Heads = ()
) -> dict[int, Ratio]:
    ratios = {}
    for depth, (hfc, lfc) in squared_norms_at(A, H, X0, depths, others).items():
        if hfc is None or lfc is None:
            ratios[depth] = Ratio(None, None)
        elif hfc == 0 or lfc == 0:
            ratios[depth] = ratio_of_squares(Fraction(hfc != 0), Fraction(lfc != 0))
        else:
            with rounding.at_precision(2560):
                ratios[depth] = _ratio_of_ball(hfc / lfc)
    return ratios


def _decoupled(
    X0: Matrix,
    c: Powers,
    block: flint.arb_mat,
    eta: list[flint.arb],
    deaths: tuple[int | None, int | None],
    depths: list[int],
) -> dict[int, Ratio]:
    """The ratio from c_L and y_L = block^L y_0 at each depth that these bits allow.

    deaths: the depths from which c_L and y_L are exactly 0, None where that is never or not known.
    """
    n, d = len(X0), len(X0[0])
    y, ratios = Powers(block, flint.arb_mat(to_flint(_from_the_last(X0)))), {}
    for depth in depths:
        if depth == 0:
            ratios[depth] = replace(ratio_of_squares(*squared_norms(X0)), squared=None)
            continue
        c_dead, y_dead = (end is not None and depth >= end for end in deaths)
        if y_dead:
            ratios[depth] = Ratio(None, None, gone=True) if c_dead else Ratio(0.0, -math.inf)
            continue
        mean = [flint.arb(0)] * d if c_dead else c.at(depth).entries()
        ratio = ratio_from_balls(mean, y.at(depth).entries() + [flint.arb(0)] * d, eta, n, d)
        if ratio is not None:
            ratios[depth] = ratio
    return ratios


def ratio_from_balls(
    c: list[flint.arb], y: list[flint.arb], eta: list[flint.arb], n: int, d: int
) -> Ratio | None:
    """The ratio of X_L from c_L [d], y_L [n d] and eta = 1/n - pi; None where it is not known."""
    Y = flint.arb_mat(n, d, y)
    centred = Y - flint.arb_mat(n, n, [flint.arb(1) / n] * n**2) * Y
    mean = flint.arb_mat([c]) + flint.arb_mat([eta]) * centred
    hfc_squared, lfc_squared = square(centred), n * square(mean)
    if lfc_squared == 0 and hfc_squared > 0:
        return Ratio(math.inf, math.inf)
    if hfc_squared == 0 and lfc_squared > 0:
        return Ratio(0.0, -math.inf)
    if not (hfc_squared > 0 and lfc_squared > 0):
        return None
    squared = hfc_squared / lfc_squared
    return _ratio_of_ball(squared) if is_known(squared) else None


def death(block: flint.fmpq_mat, start: Matrix) -> int | None:
    """The first k with block^k start = 0 exactly, None if it never is.

    Iterated modulo a prime, where it costs nothing: what is not zero there is not zero. What is, is
    confirmed in fractions.
    """
    modular, vector = modulo(block, PRIMES[0]), modulo(to_flint(start), PRIMES[0])
    for k in range(block.nrows() + 1):
        if not any(int(x) for x in vector.entries()):
            exact = to_flint(start)
            for _ in range(k):
                exact = block * exact
            if not any(exact.entries()):
                return k
        vector = modular * vector
    return None


def numerical_ratios(
    A: Array, H: Array, X0: Array, depths: Iterable[int], own: float = 1.0
) -> dict[int, Ratio]:
    """HFC/LFC by iterating (Y, c) in float64 with separate power-of-two scales, any size.

    A [n, n], H [d, d], or [heads, n, n] and [heads, d, d]; own as of `iterated`.
    """
    A, H = (M.reshape(-1, *M.shape[-2:]) for M in (A, H))
    return _of_states(iterated(A, np.swapaxes(H, 1, 2), X0, sorted(set(depths)), own))


def _of_states(states: Iterable[rounding.ScaledState]) -> dict[int, Ratio]:
    logs = {state.depth: state.log_hfc_lfc for state in states}
    return {
        depth: Ratio(None, None) if math.isnan(log) else ratio_of_log(log)
        for depth, log in logs.items()
    }


def couplings(A: Array) -> tuple[Array, Array]:
    """pi [..., n] of c = pi^T X, and pi^T (A_h - I) Q [..., heads, n-1], by which HFC feeds c.

    A [..., heads, n, n]. Of one head pi is stationary, and nothing is fed; of several it is 1/n.
    """
    heads, n = A.shape[-3:-1]
    pi = attention.stationary_distributions(A.reshape(-1, n, n)).reshape(A.shape[:-1])
    # A doubly stochastic head feeds nothing, whatever rounding says.
    still = (pi == 1.0 / n).all(axis=-1, keepdims=True) | (heads == 1)
    g = np.where(still, 0.0, A.mean(axis=-2) @ attention.complement_basis(n))
    return pi[..., 0, :] if heads == 1 else np.full_like(pi[..., 0, :], 1.0 / n), g


def iterated(
    A: Array, W: Array, X0: Array, depths: Sequence[int], own: float = 1.0
) -> Iterator[rounding.ScaledState]:
    """X' = own X + sum_h A_h X W_h at increasing depths, in Y = Q^T X and c = pi^T X (T1c-d).

    c' = own c + sum_h (c + g_h Y) W_h, pi and g from `couplings`; the mean is c + (1/n - pi)^T Q Y.
    A [heads, n, n], W [heads, d, d], X0 [n, d].
    """
    n = A.shape[-1]
    Q, B, total = attention.complement_basis(n), attention.quotient(A), W.sum(axis=0)
    pi, g = couplings(A)
    eta = (1.0 / n - pi) @ Q
    # Scaled first: differences of the largest numbers would overflow.
    X0, exponent = rounding.normalise(X0)
    # Q^T 1 = 0: a state at consensus has y = 0 exactly.
    y, c = Q.T @ (X0 - X0[0]), pi @ X0
    y_exponent = c_exponent = exponent
    layer = 0
    for depth in depths:
        while layer < depth:
            y, y_exponent = rounding.normalise(y, y_exponent)
            c, c_exponent = rounding.normalise(c, c_exponent)
            c = own * c + c @ total
            if g.any():
                c, c_exponent = rounding.add(
                    c, c_exponent, np.einsum("hi,ij,hjk->k", g, y, W), y_exponent
                )
            y = own * y + ((B @ y) @ W).sum(axis=0)
            layer += 1
        y, y_exponent = rounding.normalise(y, y_exponent)
        c, c_exponent = rounding.normalise(c, c_exponent)
        mean, scale = rounding.add(c, c_exponent, eta @ y, y_exponent)
        yield rounding.ScaledState(depth, Q @ y, mean, float(y_exponent), float(scale))


def _try_in_balls(case: Layer, start: Entries, depths: list[int]) -> dict[int, Ratio]:
    """Of a layer with logits, n > 1."""
    X0, H, n, d = start.fractions, case.rational_H, case.n, case.d
    A = attention.softmax_balls(case.given["logits"].masked, flint.ctx.prec)
    uniform, eta = Fraction(1, n), [flint.arb(0)] * n
    if case.may_balance:
        # A doubly stochastic A has pi = 1/n exactly, so that a mean of 0 stays 0.
        c0 = [rounding.to_ball(x) for x in exact.weighted_mean([uniform] * n, X0)]
    else:
        pi = attention.stationary_balls(A, case.classes)
        eta = [rounding.to_ball(uniform) - x for x in pi]
        c0 = (flint.arb_mat([pi]) * flint.arb_mat(to_flint(X0))).entries()
    consensus = to_flint(exact.plus_identity(H))
    c = Powers(flint.arb_mat(consensus), flint.arb_mat(d, 1, c0))
    deaths = death(consensus, exact.identity(d)), None
    # I + B' (x) H as of fractions.
    table: Any = A.tolist()
    value: Any = [[rounding.to_ball(x) for x in row] for row in H]
    rows: Any = exact.kronecker(attention.rational_quotient(table), value)
    block = flint.arb_mat(rows) + flint.arb_mat(to_flint(exact.identity(len(rows))))
    return _decoupled(X0, c, block, eta, deaths, depths)


def _from_the_last(X0: Matrix) -> Matrix:
    """The differences to the last token, row by row, as a column."""
    return [[x - z] for row in X0[:-1] for x, z in zip(row, X0[-1], strict=True)]


# Depth beyond which a state too large for balls is evaluated in its eigenbases, not iterated.
ITERATED_DEPTH = 5000


def ratios_at(case: Layer, start: Entries, depths: list[int]) -> dict[int, Ratio]:
    """HFC/LFC from X_0: in fractions to EXACT_DEPTH (for exact input), then in balls, in float64
    where the state is too large for these."""
    if not depths:
        return {}
    several = isinstance(case, ManyHeads)
    small = (case.n - (not several)) * case.d <= BALL_SIZE
    if small and case.n > 1 and case.logits is not None:
        ratios = _with_enough_bits(partial(_try_in_balls, case, start), set(depths))
        return {depth: ratios.get(depth, Ratio(None, None)) for depth in sorted(set(depths))}
    ratios = {}
    if case.decidable or small:
        A, H, X0 = case.rational_A, case.rational_H, start.fractions
        # The operator of several takes vec X_0 for its start.
        alone = exact.on_vectors(A, H, X0, case.others) if several else (A, H, X0)
        shallow = [depth for depth in depths if depth <= EXACT_DEPTH] if case.exact else []
        for depth, state in exact_state(*alone, shallow).items():
            entries = [x for row in state for x in row]
            rows = [entries[k : k + case.d] for k in range(0, len(entries), case.d)]
            ratios[depth] = ratio_of_squares(*squared_norms(rows))
        rest = sorted(set(depths) - ratios.keys())
        if small and rest:
            # Of several nothing is decoupled: powers of the operator would lose what cancels.
            if several:
                ratios |= _by_recurrences(A, H, X0, rest, case.others)
            else:
                ratios |= ball_ratios(A, H, X0, case.rational_pi, rest)
    rest = sorted(set(depths) - ratios.keys())
    if isinstance(case, ManyHeads):
        ratios |= numerical_ratios(case.A, case.H, start.floats, rest, float(case.residual))
    else:
        ratios |= floating_ratios(case, start, rest)
    return dict(sorted(ratios.items()))


def floating_ratios(case: Layer, start: Entries, depths: list[int]) -> dict[int, Ratio]:
    """By iteration, and by the closed form beyond ITERATED_DEPTH where the eigenbases allow it."""
    X0 = start.floats
    deep = [depth for depth in depths if depth > ITERATED_DEPTH]
    ratios: dict[int, Ratio] = {}
    if deep:
        from oversmoothing.theory.depth.closed_form import closed_form

        # Without well-conditioned eigenbases there is only iteration left.
        with suppress(InputError):
            ratios = _of_states(closed_form(A=case.A, H=case.H, X0=X0, depths=deep))
    shallow = [depth for depth in depths if depth not in ratios]
    return dict(sorted((ratios | numerical_ratios(case.A, case.H, X0, shallow)).items()))
