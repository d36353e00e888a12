"""The depth from which HFC/LFC stays below eps, by powers of the operator."""

from fractions import Fraction
from math import inf
from typing import Any

import flint

from oversmoothing.theory.checker.krylov import stationary
from oversmoothing.theory.checker.reading import Check, Matrix, to_fmpq
from oversmoothing.theory.checker.spectra import discs, exact

# Doublings of the power until the quotient is seen to be smaller than consensus, and steps from the
# stated depth on until it is seen to stay so for good.
DOUBLINGS, STEPS = 192, 2000
# Squarings for a 2-norm: too large by at most a factor k^(1 / 2^(SQUARINGS + 1)) for side k.
SQUARINGS = 16


def check_depth(A: Matrix, H: Matrix, X: Matrix, depth: int, eps: Fraction) -> Check:
    """HFC/LFC <= eps at every L >= depth, by powers of the operator in place of its spectrum.

    |z^T c_L| = |1 + h|^L |z^T c_0| for a left eigenvector z = e^T g(H), g = charpoly / (x - h).
    With S the quotient's operator over |1 + h|, ||S^(L+m) y_0|| is at most ||S^m|| ||S^L y_0||; the
    norms of S, S^2, S^4 ... bound the first factor for m below 2^i, and for every m where one of
    them is below 1. So a stretch of layers is covered at once.
    """
    weights = stationary(A)
    if len(weights) != 1:
        return Check(False, "the stationary distribution of A is not unique", beyond=True)
    if len(set(map(tuple, X))) == 1:
        return Check(True, f"HFC = 0 at every depth, so HFC/LFC <= {eps} from {depth} on")
    bits = 512 + 8 * depth.bit_length()
    check = Check(False, "no left eigenvector of H was found that X_0 contains", beyond=True)
    with flint.ctx.workprec(bits):
        start = exact(X).transpose() * flint.fmpq_mat(len(A), 1, weights[0])
        for growth, weight in consensus_modes(H, start):
            course = _Course(A, H, X, weights[0], growth)
            check = _followed(course, weight, depth, eps, bits)
            if check.accepted or not check.beyond:
                return check
    return check


def _followed(course: "_Course", weight: Any, depth: int, eps: Fraction, bits: int) -> Check:
    """Layer by layer, in ever larger steps, over one mode of consensus of that weight."""
    views = [view for view in (course.quotient, course.adapted(bits)) if view.contracts]
    if not views:
        words = "no power of the quotient block is seen to be smaller than consensus"
        return Check(False, words, beyond=True)
    # T1e: HFC/LFC <= eps where ||HFC|| / (sqrt n ||c||) <= eps / (1 + k eps).
    bound = flint.arb(to_fmpq(eps))
    target = bound / (1 + course.k * bound) * flint.arb(course.n).sqrt() * weight
    layer = depth
    for _ in range(STEPS):
        covered = max(view.covered(layer, target) for view in views)
        if covered == inf:
            return Check(True, f"HFC/LFC <= {eps} at every depth from {depth} on")
        if not covered:
            hfc, lfc = course.squares(layer)
            if not hfc <= bound * bound * lfc:
                words = f"HFC/LFC <= {eps} does not hold at layer {layer}, past {depth}"
                return Check(False, words, beyond=not hfc > bound * bound * lfc)
        layer += max(1, int(covered))
    words = "the depth could not be confirmed within the layers checked"
    return Check(False, words, beyond=True)


class _States:
    """S^L y."""

    def __init__(self, S: Any, y: Any) -> None:
        self._powers, self._y = [S], y

    def at(self, layer: int) -> Any:
        """S^layer y."""
        state = self._y
        for i in range(layer.bit_length()):
            if layer >> i & 1:
                state = self._power(i) * state
        return state

    def _power(self, i: int) -> Any:
        while len(self._powers) <= i:
            self._powers.append(self._powers[-1] * self._powers[-1])
        return self._powers[i]


class View(_States):
    """S^L y in some coordinates, of which HFC is at most `factor` times as large."""

    def __init__(self, S: Any, y: Any, factor: Any) -> None:
        super().__init__(S, y)
        self._factor = factor
        # Bounds of ||S^m|| for m < 2^i, the last for every m if a norm below 1 was found.
        self._excess = [flint.arb(1)]
        self.contracts = self._contraction()

    def _contraction(self) -> bool:
        for i in range(DOUBLINGS):
            size = two_norm(self._power(i))
            if size < 1:
                return True
            if not size.is_finite():
                return False
            self._excess.append(self._excess[-1] * size.max(flint.arb(1)))
        return False

    def covered(self, layer: int, target: Any) -> float:
        """How many layers from this one on are seen to have HFC <= target: a power of 2, 0, inf."""
        size = self._factor * norm(self.at(layer).entries())
        if size * self._excess[-1] <= target:
            return inf
        reach = [i for i, excess in enumerate(self._excess) if size * excess <= target]
        return 2 ** max(reach) if reach else 0


class _Course:
    """The layers of one start in balls, over the growth |1 + h| of consensus. k: of T1e."""

    def __init__(self, A: Matrix, H: Matrix, X: Matrix, weights: list[Any], growth: Any) -> None:
        n, d = len(A), len(H)
        self.n, self._d, self._over = n, d, flint.acb(1 / growth)
        # Q [n, n-1]: orthonormal, its columns orthogonal to 1 (Helmert's).
        entries = [[(j >= i) - (j + 1) * (j + 1 == i) for j in range(n - 1)] for i in range(n)]
        lengths = [flint.arb((j + 1) * (j + 2)).sqrt() for j in range(n - 1)]
        Q = flint.acb_mat([[x / y for x, y in zip(row, lengths, strict=True)] for row in entries])
        self._B = Q.transpose() * flint.acb_mat(exact(A)) * Q
        self._H = flint.acb_mat(exact(H))
        self._Y = Q.transpose() * flint.acb_mat(exact(X))
        pi = flint.fmpq_mat(1, n, weights)
        self._shift = flint.acb_mat(pi) * Q
        spread = sum(((x - flint.fmpq(1, n)) ** 2 for x in weights), flint.fmpq(0))
        self.k = flint.arb(n * spread).sqrt()
        self.quotient = self._view(self._B, self._H, self._Y, flint.arb(1))
        start = flint.acb_mat((pi * exact(X)).transpose())
        one = flint.acb_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
        self._consensus = _States((one + self._H) * self._over, start)

    def adapted(self, bits: int) -> View:
        """In coordinates in which both matrices are nearly diagonal, where such are found.

        There a matrix that is far from normal shows how fast its powers shrink.
        """
        spectra = [discs(M, bits) for M in (self._B, self._H)]
        if spectra[0] is None or spectra[1] is None:
            return self.quotient
        bases, matrices, factors = [], [], []
        for each in spectra:
            assert each is not None
            # Right eigenvectors of length 1, as columns: the smallest condition number but for n.
            inverse = each.U.inv()
            lengths = [norm(column).mid() for column in inverse.transpose().tolist()]
            stretch, shrink = _diagonal(lengths), _diagonal([1 / x for x in lengths])
            bases.append(stretch * each.U)
            matrices.append(stretch * flint.acb_mat(each.similar) * shrink)
            factors.append(two_norm(inverse * shrink))
        start = bases[0] * self._Y * bases[1].transpose()
        return self._view(matrices[0], matrices[1], start, factors[0] * factors[1])

    def _view(self, B: Any, H: Any, Y: Any, factor: Any) -> View:
        """I + B (x) H on the rows of Y, over the growth."""
        b, h = B.tolist(), H.tolist()
        k, d = len(b), len(h)
        rows = [
            [
                (b[i][j] * h[p][q] + (i == j and p == q)) * self._over
                for j in range(k)
                for q in range(d)
            ]
            for i in range(k)
            for p in range(d)
        ]
        return View(flint.acb_mat(rows), flint.acb_mat(k * d, 1, Y.entries()), factor)

    def squares(self, layer: int) -> tuple[Any, Any]:
        """HFC^2 and LFC^2 over growth^(2L): the mean is c - pi^T Q y."""
        y, c = self.quotient.at(layer), self._consensus.at(layer)
        shift = self._shift * flint.acb_mat(self.n - 1, self._d, y.entries())
        return squared(y.entries()), self.n * squared((c - shift.transpose()).entries())


def _diagonal(values: list[Any]) -> Any:
    k = len(values)
    return flint.acb_mat(k, k, [x * (i == j) for i, x in enumerate(values) for j in range(k)])


def squared(entries: list[Any]) -> Any:
    """The sum of |x|^2."""
    return sum((x.real * x.real + x.imag * x.imag for x in entries), flint.arb(0))


def norm(entries: list[Any]) -> Any:
    """An upper bound of the Euclidean norm."""
    return sum((x.abs_upper() * x.abs_upper() for x in entries), flint.arb(0)).sqrt().upper()


def two_norm(M: Any) -> Any:
    """(trace (M* M)^m)^(1 / 2m) >= ||M||_2, m a power of 2, from above."""
    if M.nrows() == 1:
        return M[0, 0].abs_upper()
    power = M.conjugate().transpose() * M
    for _ in range(SQUARINGS):
        power = power * power
    # Of a matrix that is not finite it may be NaN, which has no bound: not 0.
    trace = power.trace().abs_upper()
    return trace if trace == 0 else (trace.log() / 2 ** (SQUARINGS + 1)).exp().upper()


def consensus_modes(H: Matrix, c: Any) -> list[tuple[Any, Any]]:
    """(|1 + h|, |z^T c_0| / ||z||) for each simple h whose left eigenvector z sees c_0, the largest
    |1 + h| first."""
    d = len(H)
    matrix = flint.acb_mat(exact(H))
    identity = flint.acb_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
    roots: list[Any] = exact(H).charpoly().numer().complex_roots()
    modes: list[tuple[Any, Any]] = []
    simple = [(k, h) for k, (h, multiplicity) in enumerate(roots) if multiplicity == 1]
    for k, h in simple:
        g = identity
        for j, (other, count) in enumerate(roots):
            for _ in range(count if j != k else 0):
                g = g * (matrix - identity * other)
        for z, content in zip(g.tolist(), (g * flint.acb_mat(c)).entries(), strict=True):
            if abs(content) > 0:
                if abs(1 + h) > 0:
                    modes.append((abs(1 + h), abs(content) / squared(z).sqrt()))
                break
    return sorted(modes, key=lambda mode: mode[0].mid(), reverse=True)
