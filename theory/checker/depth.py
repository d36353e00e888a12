"""The depth from which HFC/LFC stays below eps, by powers of the operator."""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.containment import to_fmpq
from oversmoothing.theory.checker.operators import stationary
from oversmoothing.theory.checker.reading import Check, Matrix
from oversmoothing.theory.checker.spectra import exact

# Doublings of the power until the quotient is seen to be smaller than consensus, and steps from the
# stated depth on until it is seen to stay so for good.
DOUBLINGS, STEPS = 192, 2000
# Squarings for a 2-norm: too large by at most a factor k^(1 / 2^(SQUARINGS + 1)) for side k.
SQUARINGS = 16


def check_depth(A: Matrix, H: Matrix, X: Matrix, depth: int, eps: Fraction) -> Check:
    """HFC/LFC <= eps at every L >= depth, by powers of the operator in place of eigenvectors.

    |z^T c_L| = |1 + h|^L |z^T c_0| for a left eigenvector z = e^T g(H), g = charpoly / (x - h).
    With S the quotient's operator over |1 + h|, in orthonormal coordinates, ||S^(L+m) y_0|| is at
    most ||S^m|| ||S^L y_0||; the norms of S, S^2, S^4 ... bound the first factor for m below 2^i,
    and for every m where one of them is below 1. So a stretch of layers is covered at once.
    """
    weights = stationary(A)
    if len(weights) != 1:
        return Check(False, "the stationary distribution of A is not unique", beyond=True)
    if all(row == X[0] for row in X):
        return Check(True, f"HFC = 0 at every depth, so HFC/LFC <= {eps} from {depth} on")
    bits = 512 + 8 * depth.bit_length()
    with flint.ctx.workprec(bits):
        course = _Course(A, H, X, weights[0])
        if course.growth is None:
            words = "no left eigenvector of H was found that X_0 contains"
            return Check(False, words, beyond=True)
        last = course.contraction()
        if last is None:
            words = "no power of the quotient block is seen to be smaller than consensus"
            return Check(False, words, beyond=True)
        # T1e: HFC/LFC <= eps where t <= eps / (1 + k eps).
        bound = ball_of(eps)
        target = bound / (1 + course.k * bound)
        layer = depth
        for _ in range(STEPS):
            size = course.upper_ratio(layer)
            if size * course.excess(last) <= target:
                return Check(True, f"HFC/LFC <= {eps} at every depth from {depth} on")
            reach = 0
            while reach < last and size * course.excess(reach + 1) <= target:
                reach += 1
            if reach == 0 and not size <= target and not course.is_below(layer, bound):
                words = f"HFC/LFC <= {eps} does not hold at layer {layer}, past {depth}"
                return Check(False, words, beyond=not course.is_above(layer, bound))
            layer += 2**reach
    words = "the depth could not be confirmed within the layers checked"
    return Check(False, words, beyond=True)


def ball_of(x: Fraction) -> Any:
    return flint.arb(to_fmpq(x))


class _Course:
    """The layers of one start in balls, over the growth of consensus: powers of two kept.

    growth: |1 + h| of the consensus mode, None where none was found. k: of T1e.
    """

    def __init__(self, A: Matrix, H: Matrix, X: Matrix, weights: list[Any]) -> None:
        n, d = len(A), len(H)
        self._n = n
        dense, start = flint.arb_mat(exact(A)), flint.arb_mat(exact(X))
        # Q [n, n-1]: orthonormal, its columns orthogonal to 1 (Helmert's).
        entries = [[(j >= i) - (j + 1) * (j + 1 == i) for j in range(n - 1)] for i in range(n)]
        lengths = [flint.arb((j + 1) * (j + 2)).sqrt() for j in range(n - 1)]
        Q = flint.arb_mat(
            [[x / length for x, length in zip(row, lengths, strict=True)] for row in entries]
        )
        pi = flint.arb_mat(1, n, weights)
        self._shift = pi * Q
        spread = sum(((x - flint.fmpq(1, n)) ** 2 for x in weights), flint.fmpq(0))
        self.k = flint.arb(n * spread).sqrt()
        c = (exact(X).transpose() * flint.fmpq_mat(n, 1, weights)).entries()
        self.growth, self._weight = _consensus_growth(H, flint.fmpq_mat(d, 1, c))
        if self.growth is None:
            return
        B = (Q.transpose() * dense * Q).tolist()
        value = flint.arb_mat(exact(H)).tolist()
        one = 1 / self.growth
        block = [
            [
                (B[i][j] * value[p][q] + (i == j and p == q)) * one
                for j in range(n - 1)
                for q in range(d)
            ]
            for i in range(n - 1)
            for p in range(d)
        ]
        consensus = [
            [(x + (p == q)) * one for q, x in enumerate(row)] for p, row in enumerate(value)
        ]
        self._y = flint.arb_mat((n - 1) * d, 1, (Q.transpose() * start).entries())
        self._c = flint.arb_mat(d, 1, [flint.arb(x) for x in c])
        self._blocks, self._consensus = [flint.arb_mat(block)], [flint.arb_mat(consensus)]
        self._norms: list[Any] = []
        self._excess = [flint.arb(1)]

    def contraction(self) -> int | None:
        """The least i with ||S^(2^i)|| < 1, None where none was found."""
        for i in range(DOUBLINGS):
            size = two_norm(self._power(self._blocks, i))
            if not size.is_finite():
                return None
            self._norms.append(size)
            if size < 1:
                return i
            self._excess.append((self._excess[-1] * size.max(flint.arb(1))).upper())
        return None

    def excess(self, i: int) -> Any:
        """A bound of ||S^m|| for m < 2^i, and for every m where i is that of `contraction`."""
        return self._excess[i]

    def upper_ratio(self, layer: int) -> Any:
        """A bound of ||HFC_L|| / (sqrt n ||c_L||)."""
        y = self._applied(self._blocks, layer, self._y)
        return norm(y.entries()) / (flint.arb(self._n).sqrt() * self._weight)

    def is_below(self, layer: int, bound: Any) -> bool:
        """Whether HFC/LFC <= bound is seen at this layer."""
        hfc, lfc = self._squares(layer)
        return bool(hfc <= bound * bound * lfc)

    def is_above(self, layer: int, bound: Any) -> bool:
        """Whether HFC/LFC > bound is seen at this layer."""
        hfc, lfc = self._squares(layer)
        return bool(hfc > bound * bound * lfc)

    def _squares(self, layer: int) -> tuple[Any, Any]:
        """HFC^2 and LFC^2 over growth^(2L): the mean is c - pi^T Q y."""
        y = self._applied(self._blocks, layer, self._y)
        c = self._applied(self._consensus, layer, self._c).entries()
        table = flint.arb_mat(self._n - 1, len(c), y.entries())
        mean = [x - s for x, s in zip(c, (self._shift * table).entries(), strict=True)]
        return (
            sum((x * x for x in y.entries()), flint.arb(0)),
            self._n * sum((x * x for x in mean), flint.arb(0)),
        )

    def _applied(self, powers: list[Any], exponent: int, vector: Any) -> Any:
        for i in range(exponent.bit_length()):
            if exponent >> i & 1:
                vector = self._power(powers, i) * vector
        return vector

    @staticmethod
    def _power(powers: list[Any], i: int) -> Any:
        while len(powers) <= i:
            powers.append(powers[-1] * powers[-1])
        return powers[i]


def norm(entries: list[Any]) -> Any:
    """An upper bound of the Euclidean norm."""
    return sum((x.abs_upper() * x.abs_upper() for x in entries), flint.arb(0)).sqrt().upper()


def two_norm(M: Any) -> Any:
    """(trace (M^T M)^m)^(1 / 2m) >= ||M||_2, m a power of 2, from above."""
    power = M.transpose() * M
    if power.nrows() == 1:
        return power[0, 0].abs_upper().sqrt().upper()
    for _ in range(SQUARINGS):
        power = power * power
    trace = power.trace().abs_upper()
    return (trace.log() / 2 ** (SQUARINGS + 1)).exp().upper() if trace > 0 else flint.arb(0)


def _consensus_growth(H: Matrix, c: Any) -> tuple[Any, Any]:
    """(|1 + h|, |z^T c_0| / ||z||) for the largest |1 + h| whose left eigenvector sees c_0."""
    d = len(H)
    matrix = flint.acb_mat(exact(H))
    identity = flint.acb_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
    roots: list[Any] = exact(H).charpoly().numer().complex_roots()
    best: tuple[Any, Any] = (None, None)
    for k, (h, multiplicity) in enumerate(roots):
        if multiplicity > 1:
            continue
        g = identity
        for j, (other, count) in enumerate(roots):
            for _ in range(count if j != k else 0):
                g = g * (matrix - identity * other)
        for i in range(d):
            z = [g[i, j] for j in range(d)]
            content = abs(
                sum((x * flint.acb(v) for x, v in zip(z, c.entries(), strict=True)), flint.acb(0))
            )
            length = sum((x.real * x.real + x.imag * x.imag for x in z), flint.arb(0)).sqrt()
            if content > 0 and length > 0:
                modulus = abs(1 + h)
                if modulus > 0 and (best[0] is None or modulus.lower() > best[0].lower()):
                    best = (modulus, content / length)
                break
    return best
