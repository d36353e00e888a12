"""The states at any depth without iteration: from eigenbases, in balls, or by repeated squaring.

From eigenbases in float64, batched (T1a, T4, T9): each distinct A and W of the batch is decomposed
once, a large one on the card of the run. In balls every digit is right, defective or not (T6): y,
the mean and each token come from the shortest recurrence that they obey
(`theory.depth.recurrence`), so that one that loses the dominant mode is as exact as the rest.
Larger causal layers have their bases in balls (`theory.depth.causal`).

By squaring: the powers M^(2^k) of the two decoupled systems, I + B' (x) W^T and I + W^T, each with
its own scale. No eigenvector is used; but the rounding of a square is as good as another matrix,
and of a defective one it costs the m-th root of the digits.
"""

from collections.abc import Iterator
from functools import cache, partial

import flint
import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from oversmoothing.simulations.engine.errors import Errors, States, carry_of, start_of
from oversmoothing.simulations.engine.problem import Asked, Place, Problem
from oversmoothing.simulations.state import fetched, for_eigenvalues
from oversmoothing.theory.depth.causal import GOOD_BITS, CausalStates, Parts, seconds
from oversmoothing.theory.depth.closed_form import ClosedForm, FeatureModes, TokenModes
from oversmoothing.theory.depth.recurrence import Powers, Recurrence
from oversmoothing.theory.numbers.exact import identity, normalised_rows, to_flint, to_fractions
from oversmoothing.theory.numbers.rounding import at_precision, normalise
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


def closed_form_states(asked: Asked) -> States:
    """The states at the depths; one eigendecomposition of A and one of W (or of a head's core).

    Raises `InputError` where these are too ill conditioned.
    """
    problem, depths, device, dtype = asked
    n, d = problem.n, problem.d
    states = np.empty((len(depths), problem.number, n, d))
    exponents = np.empty((len(depths), problem.number, 2), dtype=np.int64)
    parts = np.zeros((len(depths), problem.number, 2))
    hfc, hfc_exponent, c, c_exponent = problem.start
    lost, weights = problem.lost_in_c, (problem.W, problem.P, problem.Q)

    solver = partial(by_torch, where=device)

    @cache
    def tokens(at: Place) -> TokenModes:
        return TokenModes(problem.A[at], problem.pi[at], solver)

    @cache
    def features(*at: Place) -> FeatureModes:
        W, P, Q = (None if M is None else M[k] for M, k in zip(weights, at, strict=True))
        H = None if W is None else np.ascontiguousarray(W.T)
        return FeatureModes(H=H, P=P, Q=Q, solver=solver)

    for index, place in enumerate(np.ndindex(*problem.batch)):
        of_weights = (() if M is None else problem.element(M, 2, place) for M in weights)
        at = tokens(problem.element(problem.A, 2, place))
        form = ClosedForm(at, features(*of_weights), residual=problem.residual)
        x, k = problem.element(hfc, 2, place), problem.element(c, 1, place)
        for row, state in enumerate(form.states(hfc[x], c[k], depths, out=states[:, index])):
            state.hfc[:-1] -= state.hfc[-1]
            state.hfc[-1] = state.c
            exponents[row, index, 0] = state.hfc_exponent + hfc_exponent[x]
            exponents[row, index, 1] = state.c_exponent + c_exponent[k]
            # A c that came out as 0 and may be anything has an infinite error, also of 0 steps.
            unknown = np.isinf(lost[k])
            parts[row, index] = state.hfc_error, np.inf if unknown else state.c_error * lost[k]
    rounding = 0.0 if dtype == torch.float64 else torch.finfo(dtype).eps
    errors = Errors(torch.as_tensor(parts + rounding))
    return States(
        torch.as_tensor(states).to(device, dtype),
        torch.as_tensor(exponents).to(device),
        problem.flat(problem.offset, 1, device),
        lambda: errors,
    )


def by_torch(
    M: Float64[Array, "m m"], where: torch.device
) -> tuple[
    Float64[Array, " m"], Float64[Array, " m"], Float64[Array, "m m"], Float64[Array, "m m"]
]:
    """As `theory.spectra.eigenbasis.by_lapack`, by the LAPACK that torch brings (MKL is faster),
    or on the card that is `where` the run is."""
    there = torch.from_numpy(np.ascontiguousarray(M)).to(for_eigenvalues(len(M), where))
    values, complex_vectors = fetched(torch.linalg.eig(there))
    vectors = complex_vectors.numpy()
    real, imag = values.real.numpy(), values.imag.numpy()
    packed = vectors.real.copy(order="F")
    pair = np.flatnonzero(imag > 0)
    packed[:, pair + 1] = vectors.imag[:, pair]
    inverse, info = torch.linalg.inv_ex(torch.from_numpy(packed))
    if info != 0:
        inverse = torch.full_like(inverse, float("inf"))
    return real, imag, packed, inverse.numpy()


# n d up to which 'auto' may take balls, and up to which they can be asked for of any A.
BALL_SIZE = 64
LARGEST_BALL_SIZE = 256
# n d up to which matrices are squared.
SQUARING_SIZE = 400
_EPS = float(np.finfo(np.float64).eps)
# Of a sum of two parts that are known to GOOD_BITS, so many must be left.
_ENOUGH_BITS = 56
# Where A is doubly stochastic up to rounding alone, the sum of differences and mean is off by the
# rounding of the larger: it is a token only where it is at least this part of it.
_NOT_CANCELLED = 8


def in_balls(asked: Asked, only: list[int] | None = None) -> States:
    """The states at the depths, of all the batch or of the elements `only`.

    The A meant is that of the verdict: rows divided by their sums, exactly. Raises `InputError`
    above LARGEST_BALL_SIZE, for a causal A where it would take more than an hour.
    """
    problem, depths, device, dtype = asked
    n, d = problem.n, problem.d
    if n * d > LARGEST_BALL_SIZE and not problem.causal:
        raise InputError(
            f"method 'balls' works with recurrences of order n d = {n * d}, above its limit of "
            f"{LARGEST_BALL_SIZE} where A is not causal: use 'auto', 'plain', 'core' or "
            "'closed_form'"
        )
    hours = problem.number * seconds(n, d, len(depths)) / 3600 if problem.causal else 0.0
    if hours > 1:
        raise InputError(
            f"balls would take about {hours:.2g} h here: give fewer tokens, features or elements "
            "of the batch, or use 'plain'"
        )
    places = list(np.ndindex(*problem.batch))
    if only is not None:
        places = [places[k] for k in only]
    shape = (len(depths), len(places))
    states, exponents = np.zeros((*shape, n, d)), np.zeros((*shape, 2), dtype=np.int64)
    rows, row_exponents = np.zeros((*shape, n, d)), np.zeros((*shape, n), dtype=np.int64)
    parts_error = np.full((*shape, 2), _EPS)
    rows_error = np.full((*shape, n), _EPS)
    for index, place in enumerate(places):
        by_depth, share = _parts(problem, place, depths)
        for level, depth in enumerate(depths):
            at, of = (level, index), by_depth[depth]
            if n > 1:
                states[at][:-1], exponents[at][0], parts_error[at][0] = _as_floats(of.y)
            states[at][-1:], exponents[at][1], parts_error[at][1] = _as_floats(of.mean)
            for k, token in enumerate(of.tokens):
                rows[at][k : k + 1], row_exponents[at][k], error = _as_floats(token)
                rows_error[at][k] = error * share
    rounding = 0.0 if dtype == torch.float64 else torch.finfo(dtype).eps
    errors = Errors(torch.as_tensor(parts_error + rounding), torch.as_tensor(rows_error + rounding))
    return States(
        torch.as_tensor(states).to(device, dtype),
        torch.as_tensor(exponents).to(device),
        torch.zeros((len(places), n), dtype=torch.float64, device=device),
        lambda: errors,
        (torch.as_tensor(rows).to(device), torch.as_tensor(row_exponents).to(device)),
    )


def _parts(
    problem: Problem, place: Place, depths: tuple[int, ...]
) -> tuple[dict[int, Parts], float]:
    """One element of the batch at the depths, and by what the error of its tokens is larger.

    From bases for a larger causal layer; by recurrences where these are small or leave a part open.
    """
    size = problem.n * problem.d
    if problem.causal and size > BALL_SIZE:
        states = CausalStates(*_layer(problem, place), problem.residual, depths[-1]).at(depths)
        if all(parts.known for parts in states.values()) or size > LARGEST_BALL_SIZE:
            return states, 1.0
    element = _Element(problem, place)
    return {depth: element.at(depth) for depth in depths}, element.row_share


def _layer(problem: Problem, place: Place) -> tuple[flint.fmpq_mat, flint.fmpq_mat, flint.fmpq_mat]:
    """A with rows divided by their sums, W and X_0 of one element of the batch, in fractions."""

    def fractions(M: Array) -> flint.fmpq_mat:
        return to_flint(to_fractions(M[problem.element(M, 2, place)].tolist(), "entry"))

    raw = problem.A[problem.element(problem.A, 2, place)]
    A = to_flint(normalised_rows(to_fractions(raw.tolist(), "A")))
    if problem.W is not None:
        return A, fractions(problem.W), fractions(problem.X0)
    assert problem.P is not None and problem.Q is not None
    return A, fractions(problem.P) * fractions(problem.Q), fractions(problem.X0)


class _Element:
    """The recurrences of one element of the batch, each made when first asked for."""

    def __init__(self, problem: Problem, place: Place) -> None:
        self.n = n = problem.n
        self._A, W, self._X0 = _layer(problem, place)
        self._recurrence = partial(Recurrence, W=W, residual=problem.residual)
        whole = np.ones((n, n), dtype=np.bool_) if problem.reach is None else problem.reach
        self._reach = whole[problem.element(whole, 2, place)]
        mean = flint.fmpq_mat([[flint.fmpq(1, n)] * n])
        away = to_flint(identity(n)) - flint.fmpq_mat([[1]] * n) * mean
        self._differences = None
        if n > 1:
            last = flint.fmpq_mat(
                [[int(i == j) - int(j == n - 1) for j in range(n)] for i in range(n - 1)]
            )
            self._differences = self._recurrence(last, away * self._A, X0=away * self._X0)
        offset = problem.offset[problem.element(problem.offset, 1, place)]
        self.row_share = 1.0
        if not offset.any():
            # Doubly stochastic up to rounding counts as such: the mean is a system of its own.
            one = flint.fmpq_mat([[1]])
            if mean * self._A != mean:
                self.row_share = float(_NOT_CANCELLED * n)
            self._mean = self._recurrence(one, one, X0=mean * self._X0)
        else:
            self._mean = self._recurrence(mean, self._A, X0=self._X0)
        self._rows: dict[int, Recurrence] = {}

    def at(self, depth: int) -> Parts:
        """y, the mean and the tokens."""
        y = None if self._differences is None else self._differences.at(depth, GOOD_BITS)
        mean = self._mean.at(depth, GOOD_BITS)
        return Parts(y, mean, [self._token(k, depth, y, mean) for k in range(self.n)])

    def _token(
        self, k: int, depth: int, y: flint.arb_mat | None, mean: flint.arb_mat | None
    ) -> flint.arb_mat | None:
        """Token k [1, d]: from differences and mean where these do not cancel, else by itself."""
        if y is not None and mean is not None:
            with at_precision(2 * GOOD_BITS):
                rows = [*y.tolist(), [flint.arb(0)] * mean.ncols()]
                average = [sum(x, flint.arb(0)) / self.n for x in zip(*rows, strict=True)]
                parts = zip(mean.entries(), rows[k], average, strict=True)
                row = [m + (x - a) for m, x, a in parts]
                size, radius = max(abs(x.mid()) for x in row), max(flint.arb(x.rad()) for x in row)
                largest = max(abs(x.mid()) for x in (*mean.entries(), *y.entries()))
                whole = self.row_share == 1 or size * _NOT_CANCELLED > largest
                if whole and size > radius * 2**_ENOUGH_BITS:
                    return flint.arb_mat([row])
        if k not in self._rows:
            inside = np.flatnonzero(self._reach[k]).tolist()
            A = flint.fmpq_mat([[self._A[i, j] for j in inside] for i in inside])
            X0 = flint.fmpq_mat([[self._X0[i, j] for j in range(self._X0.ncols())] for i in inside])
            left = flint.fmpq_mat([[int(i == k) for i in inside]])
            self._rows[k] = self._recurrence(left, A, X0=X0)
        return self._rows[k].at(depth, GOOD_BITS)


def _as_floats(q: flint.arb_mat | None) -> tuple[Array | float, int, float]:
    """(values, exponent, relative error) of a part: the largest value in [1/2, 1), 0 for zero.

    None, a part that no ball of the allowed size separates from 0, is 0 with an infinite error.
    """
    if q is None:
        return 0.0, 0, float("inf")
    # An entry that may be 0 is below 2^-64 of the largest.
    mids = [flint.arb(0) if x.contains(0) else x.mid() for x in q.entries()]
    sizes = [_exponent(x) for x in mids if x != 0]
    if not sizes:
        return np.zeros((q.nrows(), q.ncols())), 0, 0.0
    top = max(sizes)
    with at_precision(2 * GOOD_BITS):
        values = np.array([float(x * flint.arb(2) ** -top) for x in mids])
    return values.reshape(q.nrows(), q.ncols()), top, _EPS


def _exponent(x: flint.arb) -> int:
    """e with |x| in [2^(e-1), 2^e)."""
    mantissa, exponent = x.man_exp()
    return int(exponent) + int(abs(mantissa)).bit_length()


def squaring(asked: Asked) -> tuple[Tensor, Tensor]:
    """The states by repeated squaring. Raises `InputError` above SQUARING_SIZE."""
    problem, depths, device, dtype = asked
    n, d = problem.n, problem.d
    if n * d > SQUARING_SIZE:
        raise InputError(
            f"method 'squaring' forms a matrix of n d = {n * d} rows, above its limit of "
            f"{SQUARING_SIZE}: use 'auto', 'plain', 'core' or 'closed_form'"
        )
    states = np.empty((len(depths), problem.number, n, d))
    exponents = np.empty((len(depths), problem.number, 2), dtype=np.int64)
    for index, (steps, x, total) in enumerate(_decoupled(problem)):
        systems = [Powers(normalise(M), None, _times) for M in steps]
        done = 0
        for row, depth in enumerate(depths):
            for k, system in enumerate(systems):
                x[k], more = system.applied((x[k], 0), depth - done)
                total[k] += more
            done = depth
            states[row, index] = np.concatenate((x[0].reshape(n - 1, d), x[1][None]))
            exponents[row, index] = total
    return torch.as_tensor(states).to(device, dtype), torch.as_tensor(exponents).to(device)


def _decoupled(problem: Problem) -> Iterator[tuple[list[Array], list[Array], list[int]]]:
    """The matrices of y and c, both at the start, and their exponents, of each of the batch."""
    n, d = problem.n, problem.d
    Z, exponents = start_of(problem, torch.device("cpu"), torch.float64)
    carry = carry_of(problem, Z)
    kept = 1.0 if problem.residual else 0.0
    for index, place in enumerate(np.ndindex(*problem.batch)):
        W = problem.dense_weights[problem.element(problem.dense_weights, 2, place)]
        B = problem.quotient[problem.element(problem.quotient, 2, place)][: n - 1, : n - 1]
        by = np.ones((n, d)) if carry is None else carry[index].numpy()
        y_step = (np.kron(B, W.T) + kept * np.eye((n - 1) * d)) * by[:-1].ravel()
        c_step = (W.T + kept * np.eye(d)) * by[-1]
        start = [Z[index, :-1].numpy().ravel(), Z[index, -1].numpy()]
        yield [y_step, c_step], start, [int(e) for e in exponents[index]]


def underflown(states: Tensor, problem: Problem) -> Tensor:
    """[depths, N, 2]: whether y or c is 0 in the squares alone, far below a mode that X_0 lacks.

    What really dies out does so within as many layers as it has entries.
    """
    there = states.cpu() != 0
    gone = torch.stack([~x.any(-1).any(-1) for x in (there[..., :-1, :], there[..., -1:, :])], -1)
    for index, (steps, start, _) in enumerate(_decoupled(problem) if gone.any() else ()):
        for k, (M, x) in enumerate(zip(steps, start, strict=True)):
            for _ in range(len(x)):
                x = normalise(M @ x)[0]
            gone[:, index, k] &= bool(x.any())
    return gone


def _times(M: tuple[Array, int], x: tuple[Array, int]) -> tuple[Array, int]:
    """The product, each over a power of two."""
    return normalise(M[0] @ x[0], M[1] + x[1])
