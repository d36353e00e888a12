"""The two decoupled systems of a layer, exactly: the modes that a start has in each, by its Krylov
vectors, and the depth from which HFC/LFC stays below eps, by powers of the operator.

Consensus, and the differences to the first token. The minimal polynomial of a start under a matrix
comes from Krylov vectors modulo a prime and is verified over the integers.
"""

from fractions import Fraction
from functools import cached_property
from itertools import product
from math import inf
from typing import Any

import flint

from oversmoothing.theory.checker.reading import Check, Matrix, to_fmpq
from oversmoothing.theory.checker.spectra import discs, exact


def closed_classes(A: Matrix) -> list[list[int]]:
    """The closed classes of tokens: sets that attend to themselves alone, each token to each."""
    n = len(A)
    reach = [[i == j or A[i][j] > 0 for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            if reach[i][k]:
                reach[i] = [x or y for x, y in zip(reach[i], reach[k], strict=True)]
    # A token is in a closed class where all that it reaches reaches back.
    classes: list[list[int]] = []
    for i in range(n):
        members = [j for j in range(n) if reach[i][j]]
        if members[0] == i and all(reach[j][i] for j in members):
            classes.append(members)
    return classes


def stationary(A: Matrix) -> list[Any]:
    """pi_k with pi_k^T A = pi_k^T and sum 1 for each closed class k: rows of n numbers."""
    n, rows = len(A), []
    for members in closed_classes(A):
        k = len(members)
        system = [[A[j][i] - (i == j) for j in members] for i in members[:-1]]
        left = exact([*system, [Fraction(1)] * k])
        weights = left.solve(flint.fmpq_mat(k, 1, [0] * (k - 1) + [1])).entries()
        row = [flint.fmpq(0)] * n
        for i, weight in zip(members, weights, strict=True):
            row[i] = weight
        rows.append(row)
    return rows


def systems(A: Matrix, X: Matrix) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """(1, C_0) and (B, Y_0), exact: each layer is Z' = Z + T Z H^T with T the first, Z the second.

    C_0 [m, d]: the means pi_k^T X_0 of the m closed classes. Y_0 [n - 1, d]: the differences to the
    first token.
    """
    n, start = len(A), exact(X)
    weights = stationary(A)
    m = len(weights)
    identity = flint.fmpq_mat(m, m, [int(i == j) for i in range(m) for j in range(m)])
    consensus = identity, flint.fmpq_mat(weights) * start
    if n == 1:
        return consensus, (flint.fmpq_mat(0, 0), flint.fmpq_mat(0, start.ncols()))
    B = [[x - y for x, y in zip(row[1:], A[0][1:], strict=True)] for row in A[1:]]
    Y = [[x - y for x, y in zip(row, X[0], strict=True)] for row in X[1:]]
    return consensus, (exact(B), exact(Y))


# Modulo a prime a rank is at most what it is: a bad prime shows, and the next one is tried.
PRIMES = (2**61 - 1, 2**31 - 1, 2**62 - 57)
# Largest degree, and largest degree^4 times the bits by which a layer grows, that is computed: some
# seconds.
DEGREE, WORK = 160, 2**33


def minimal_polynomial(T: Any, H: Any, start: Any) -> Any:
    """The p of least degree with p(S) start = 0 for the layer S Z = Z + T Z H^T, over the integers.

    T [k, k], H [d, d] and start [k, d] are rational. 1 for a start that is 0; None where the degree
    is too large to compute with.
    """
    if not any(start.entries()):
        return flint.fmpz_poly([1])
    (left, s), (right, t), (first, _) = (M.numer_denom() for M in (T, H.transpose(), start))
    scale = int(s * t)
    sizes = [max(abs(int(x)) for x in M.entries()) * M.nrows() for M in (left, right)]
    bits = (scale + sizes[0] * sizes[1]).bit_length()
    for prime in PRIMES:
        rank = _rank(left, right, first, prime)
        if rank is None or rank**4 * bits > WORK:
            return None
        states = [first]
        for _ in range(rank):
            states.append(states[-1] * scale + left * states[-1] * right)
        table = flint.fmpz_mat([[int(x) for x in Z.entries()] for Z in states]).transpose()
        coefficients = _relation(table, rank, prime)
        if coefficients is not None:
            # p(scale x) for a p that annihilates under scale times the layer.
            return flint.fmpz_poly([c * scale**j for j, c in enumerate(coefficients)])
    return None


def _rank(left: Any, right: Any, first: Any, prime: int) -> int | None:
    """The number of independent Krylov vectors modulo a prime, None beyond `DEGREE`: those of
    Z -> left Z right, which span the same as with a multiple of Z added."""
    T, W, Z = (flint.nmod_mat(M, prime) for M in (left, right, first))
    most = min(len(Z.entries()), DEGREE)
    rows = []
    for _ in range(most + 1):
        rows.append(Z.entries())
        Z = T * Z * W
    flat = [x for row in rows for x in row]
    rank = int(flint.nmod_mat(len(rows), len(rows[0]), flat, prime).rank())
    return rank if rank <= most else None


def _relation(table: Any, rank: int, prime: int) -> list[Any] | None:
    """Integers c_0 ... c_rank = 1 with sum c_j v_j = 0 for the columns v_j, exactly.

    The minimal polynomial of integers is integer (Gauss): fractions come of a bad prime, and their
    numerators alone do not annihilate.
    """
    reduced, pivots = flint.nmod_mat(table.transpose(), prime).rref()
    if pivots != rank:
        return None
    rows = reduced.tolist()[:rank]
    places = [next(j for j, x in enumerate(row) if int(x)) for row in rows]
    entries = table.tolist()
    left = flint.fmpq_mat(flint.fmpz_mat([entries[i][:rank] for i in places]))
    right = flint.fmpq_mat(flint.fmpz_mat([[entries[i][rank]] for i in places]))
    relation = [-x.p for x in left.solve(right).entries()] + [flint.fmpz(1)]
    total = table * flint.fmpz_mat(rank + 1, 1, relation)
    return None if any(total.entries()) else relation


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
    views = [view for view in (course.quotient, course.adapted(bits)) if view.excess]
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
    """S^L y in some coordinates, of which HFC is at most `factor` times as large."""

    def __init__(self, S: Any, y: Any, factor: Any = 1) -> None:
        self._powers, self._y, self._factor = [S], y, factor

    def _power(self, i: int) -> Any:
        """S^(2^i)."""
        while len(self._powers) <= i:
            self._powers.append(self._powers[-1] * self._powers[-1])
        return self._powers[i]

    def at(self, layer: int) -> Any:
        """S^layer y."""
        state = self._y
        for i in range(layer.bit_length()):
            if layer >> i & 1:
                state = self._power(i) * state
        return state

    @cached_property
    def excess(self) -> list[Any] | None:
        """Bounds of ||S^m|| for m < 2^i, the last for every m; None unless a norm below 1 shows."""
        bounds = [flint.arb(1)]
        for i in range(DOUBLINGS):
            size = two_norm(self._power(i))
            if size < 1:
                return bounds
            if not size.is_finite():
                return None
            bounds.append(bounds[-1] * size.max(flint.arb(1)))
        return None

    def covered(self, layer: int, target: Any) -> float:
        """How many layers from this one on are seen to have HFC <= target: a power of 2, 0, inf."""
        size, excess = self._factor * norm(self.at(layer).entries()), self.excess or []
        reach = [i for i, bound in enumerate(excess) if size * bound <= target]
        if not reach:
            return 0
        return inf if reach[-1] == len(excess) - 1 else 2 ** reach[-1]


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

    def adapted(self, bits: int) -> _States:
        """In coordinates in which both matrices are nearly diagonal, where such are found.

        There a matrix that is far from normal shows how fast its powers shrink.
        """
        bases, matrices, factors = [], [], []
        for M in (self._B, self._H):
            each = discs(M, bits)
            if each is None:
                return self.quotient
            # Right eigenvectors of length 1, as columns: the smallest condition number but for n.
            inverse = each.U.inv()
            lengths = [norm(column).mid() for column in inverse.transpose().tolist()]
            stretch, shrink = _diagonal(lengths), _diagonal([1 / x for x in lengths])
            bases.append(stretch * each.U)
            matrices.append(stretch * flint.acb_mat(each.similar) * shrink)
            factors.append(two_norm(inverse * shrink))
        start = bases[0] * self._Y * bases[1].transpose()
        return self._view(matrices[0], matrices[1], start, factors[0] * factors[1])

    def _view(self, B: Any, H: Any, Y: Any, factor: Any) -> _States:
        """I + B (x) H on the rows of Y, over the growth."""
        b, h = B.tolist(), H.tolist()
        places = list(product(range(len(b)), range(len(h))))
        rows = [
            [(b[i][j] * h[p][q] + (i == j and p == q)) * self._over for j, q in places]
            for i, p in places
        ]
        return _States(flint.acb_mat(rows), flint.acb_mat(len(places), 1, Y.entries()), factor)

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
