"""T1h: a causal layer at any depth in balls holds the truth, whatever repeats in A or W."""

import math

import flint
import numpy as np
import pytest
from scipy import special

from oversmoothing.theory.depth.causal import CausalStates, Parts
from oversmoothing.theory.depth.causal_bases import clusters
from oversmoothing.theory.numbers.exact import normalised_rows, to_flint, to_fractions
from oversmoothing.theory.numbers.rounding import at_precision

# 200 digits.
DIGITS_BITS = 664


def softmax(n: int, rng: np.random.Generator, sharp: float = 1.0) -> np.ndarray:
    logits = np.where(np.tri(n) > 0, sharp * rng.standard_normal((n, n)), -np.inf)
    return special.softmax(logits, axis=1)


def hard(n: int, rng: np.random.Generator) -> np.ndarray:
    """Each token attends to one earlier token alone."""
    return np.eye(n)[[0, *(rng.integers(0, i) for i in range(1, n))]]


def before(n: int, rng: np.random.Generator) -> np.ndarray:
    """Each token attends to all earlier ones alike and not to itself: one block of side n - 1."""
    A = np.tril(np.ones((n, n)), -1)
    A[0, 0] = 1.0
    return A / A.sum(axis=1, keepdims=True)


def half(n: int, rng: np.random.Generator) -> np.ndarray:
    """A_ii = 1/2 up to the rounding of rows."""
    A = np.tril(rng.random((n, n)), -1)
    A[0, 0] = 0.5
    A[1:] /= 2 * A[1:].sum(axis=1, keepdims=True)
    A[1:] += 0.5 * np.eye(n)[1:]
    return A / A.sum(axis=1, keepdims=True)


ATTENTION = {
    "softmax": softmax,
    "sharp": lambda n, rng: softmax(n, rng, 30.0),
    "hard": hard,
    "before": before,
    "half": half,
    "identity": lambda n, rng: np.eye(n),
}
SHEAR = np.array([[1.0, 2, 0, 0], [0, 1, 0, -1], [1, 2, 1, 0], [0, 0, 0, 1]])
UNSHEAR = np.round(np.linalg.inv(SHEAR))
ROTATION = np.array([[0.25, -0.75], [0.75, 0.25]])
WEIGHTS = {
    "one Jordan block": SHEAR @ (0.5 * np.eye(4) + np.eye(4, k=1)) @ UNSHEAR,
    "complex Jordan block": SHEAR @ (np.kron(np.eye(2), ROTATION) + np.eye(4, k=2)) @ UNSHEAR,
    "blocks of 1 and 2": SHEAR @ np.diag([0.5, 0.5, 0.5, -0.25]) @ UNSHEAR
    + SHEAR @ np.eye(4, k=1)[[0, 3, 3, 3]] @ UNSHEAR,
    "nilpotent": np.eye(3, k=1),
    "scalar": -0.5 * np.eye(3),
    "rank one": np.outer([1.0, 2, -1], [0.5, 0.25, 1]),
    "zero": np.zeros((2, 2)),
}


def in_fractions(A: np.ndarray, W: np.ndarray, X0: np.ndarray) -> tuple[flint.fmpq_mat, ...]:
    rows = normalised_rows(to_fractions(A.tolist(), "A"))
    return tuple(
        map(to_flint, (rows, to_fractions(W.tolist(), "W"), to_fractions(X0.tolist(), "X0")))
    )


def truth(A, W, X0, residual: bool, depth: int) -> list[list[flint.arb]]:
    """X_L by squaring the whole operator in balls, of so many bits that a token has 200 digits."""
    n, d = X0.nrows(), W.nrows()
    operator = np.kron(np.array(A.tolist()), np.array(W.transpose().tolist()))
    M = flint.fmpq_mat((operator + residual * np.eye(n * d, dtype=object)).tolist())
    bits = 2 * DIGITS_BITS
    while True:
        with at_precision(bits):
            square = flint.arb_mat(M)
            vector = flint.arb_mat([[x] for x in flint.arb_mat(X0).entries()])
            for bit in reversed(bin(depth)[2:]):
                if bit == "1":
                    vector = square * vector
                square = square * square
            rows = [vector.entries()[i * d : (i + 1) * d] for i in range(n)]
            if bits > 40_000 or all(_is_known(row) for row in rows):
                return rows
        bits *= 2


def _is_known(row: list[flint.arb]) -> bool:
    size = sum((x * x for x in row), flint.arb(0))
    return all(x == 0 for x in row) or size.rel_accuracy_bits() > DIGITS_BITS


def differences(A, X0) -> tuple[flint.fmpq_mat, flint.fmpq_mat]:
    """The quotient B'_ij = A_ij - A_nj and y_i = x_i - x_n (T1c)."""
    last = A.nrows() - 1
    return tuple(
        flint.fmpq_mat([[M[i, j] - M[last, j] for j in range(columns)] for i in range(last)])
        for M, columns in ((A, last), (X0, X0.ncols()))
    )


def missed(parts: Parts, rows: list[list[flint.arb]], y: list[list[flint.arb]]) -> int:
    """How many entries of the parts do not contain the truth. All parts must be known."""
    n = len(rows)
    with at_precision(40_000):
        mean = [sum(column, flint.arb(0)) / n for column in zip(*rows, strict=True)]
        pairs = [(parts.y, y), (parts.mean, [mean])]
        pairs += [(token, [row]) for token, row in zip(parts.tokens, rows, strict=True)]
        assert all(part is not None for part, _ in pairs)
        return sum(
            not ball.overlaps(x)
            for part, exact in pairs
            for ball, x in zip(part.entries(), (x for row in exact for x in row), strict=True)
        )


def check(A, W, X0, depth: int, residual: bool = True) -> None:
    case = in_fractions(A, W, X0)
    parts = CausalStates(*case, residual, depth).at([depth])[depth]
    B, y = differences(case[0], case[2])
    assert missed(parts, truth(*case, residual, depth), truth(B, case[1], y, residual, depth)) == 0


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("attention", ATTENTION)
def test_T1h_the_balls_hold_the_state_whatever_repeats(attention, weights):
    rng = np.random.default_rng([7, len(attention), len(weights)])
    W = WEIGHTS[weights]
    A = ATTENTION[attention](int(rng.integers(5, 8)), rng)
    X0 = rng.standard_normal((len(A), len(W)))
    for depth in (0, 1, 3, 10**9):
        check(A, W, X0, depth)
    check(A, W, X0, 50, residual=False)


@pytest.mark.parametrize("sharp", [0.3, 1.0, 5.0, 100.0])
def test_T1h_softmax_attention_of_24_tokens_at_depth_1e9(sharp):
    rng = np.random.default_rng(3)
    A, W = softmax(24, rng, sharp), 0.4 * rng.standard_normal((2, 2))
    check(A, W, rng.standard_normal((24, 2)), 10**9)


@pytest.mark.parametrize("spread", [2.0**-40, 2.0**-46])
@pytest.mark.parametrize("weights", ["simple", "one Jordan block"])
def test_T1h_what_is_cut_off_stays_within_its_bound(spread, weights, monkeypatch):
    """The sum for nearly equal A_ii is cut at once: the radii must cover what is missing."""
    rng = np.random.default_rng(5)
    A = half(6, rng)
    A[1:] += (
        np.diag(spread * np.arange(6))[1:] - np.eye(6, k=-1)[1:] * spread * np.arange(6)[1:, None]
    )
    W = np.array([[0.5, 0.25], [0.125, -0.25]]) if weights == "simple" else WEIGHTS[weights]
    case = in_fractions(A, W, rng.standard_normal((6, len(W))))
    depth = int(2.0**-9 / spread)
    states = CausalStates(*case, True, depth)
    assert sorted(map(len, states._groups)) == [1, 5]
    monkeypatch.setattr(
        CausalStates, "_terms", lambda self, k, L: self._chain[k] + self._basis.index
    )
    with at_precision(256):
        states._form(256)
        (q,) = states._states([depth])
    # The differences to the first token obey the layer of B, token by token.
    inner, start = case[0], case[2]
    B = flint.fmpq_mat([[inner[i, j] for j in range(1, 6)] for i in range(1, 6)])
    z = flint.fmpq_mat([[start[i, j] - start[0, j] for j in range(len(W))] for i in range(1, 6)])
    widest = 0.0
    with at_precision(40_000):
        for i, row in enumerate(truth(B, case[1], z, True, depth), 1):
            size = max(abs(x.mid()) for x in row)
            for j, x in enumerate(row):
                assert q[i, j].overlaps(x)
                widest = max(widest, float(flint.arb(q[i, j].rad()) / size))
    # The cut shows, and the bound of it says something.
    assert 1e-12 < widest < (1e-1 if weights == "simple" else 1e3)


def test_T1h_one_more_layer_is_the_layer_of_200_tokens_at_depth_1e9():
    """q_(L+1) = q_L + B q_L W in balls, for n = 200 and d = 64, hard and soft."""
    rng = np.random.default_rng(11)
    W = 0.5 * rng.standard_normal((64, 64)) / 8
    for A in (softmax(200, rng), hard(200, rng)):
        case = in_fractions(A, W, rng.standard_normal((200, 64)))
        L = 10**9
        states = CausalStates(*case, True, L + 1)
        with at_precision(256):
            states._form(256)
            now, after = states._states([L, L + 1])
            B = flint.arb_mat(case[0]).tolist()
            B = flint.arb_mat([B[0]] + [[0, *row[1:]] for row in B[1:]])
            expected = now + B * now * flint.arb_mat(case[1])
            size = max(abs(x.mid()) for x in after.entries())
            widest = max(flint.arb(x.rad()) for x in after.entries())
        assert widest < size * flint.arb(2) ** -128
        assert all(x.overlaps(y) for x, y in zip(after.entries(), expected.entries(), strict=True))


def test_T1h_200_tokens_against_squares_of_the_operator():
    rng = np.random.default_rng(12)
    case = in_fractions(softmax(200, rng), np.array([[0.375]]), rng.standard_normal((200, 1)))
    depth = 2**12
    parts = CausalStates(*case, True, depth).at([depth])[depth]
    found = []
    for A, X in (case[::2], differences(*case[::2])):
        with at_precision(320):
            square = flint.arb_mat(A) * flint.arb(case[1][0, 0])
            for i in range(A.nrows()):
                square[i, i] += 1
            for _ in range(12):
                square = square * square
            found.append([[x] for x in (square * flint.arb_mat(X)).entries()])
    assert all(x.rel_accuracy_bits() > 100 for rows in found for (x,) in rows)
    assert missed(parts, *found) == 0


def test_T1h_equal_values_share_a_cluster_and_none_is_wider_than_its_limit():
    values = [flint.fmpq(k, 8) for k in (4, 0, 4, 1, 7, 0, 8)]
    assert sorted(clusters(values, flint.fmpq(0))) == [[0, 2], [1, 5], [3], [4], [6]]
    assert sorted(clusters(values, flint.fmpq(1, 8))) == [[0, 2], [1, 3, 5], [4, 6]]
    assert math.prod(map(len, clusters(values, flint.fmpq(1)))) == 7


def test_T1h_a_mode_that_X_0_lacks_by_coincidence_is_not_claimed():
    """X_0 S has a column of zeros that no number of bits tells from a small mode."""
    rng = np.random.default_rng(2)
    W = SHEAR @ np.diag([0.75, 0.5, 0.25, 0.125]) @ UNSHEAR
    X0 = rng.integers(-3, 4, (5, 4)).astype(float)
    X0[:, 0] = 0.0
    case = in_fractions(softmax(5, rng), W, X0 @ UNSHEAR)
    parts = CausalStates(*case, True, 10**9).at([3, 10**9])
    assert parts[3].known and not parts[10**9].known
