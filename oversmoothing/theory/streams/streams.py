"""The mixing of s residual streams: x_k' = sum_l R_kl x_l + p_k A (sum_l q_l x_l) W (T13a).

The operator R (x) I + (p q^T) (x) H (x) A has the eigenvalues of the families R + t p q^T, t = h_j
a_i, and det(mu - R - t p q^T) = chi(mu) - t N(mu) with chi = det(mu - R), N = q^T adj(mu - R) p.
What divides both, g = gcd(chi, N), stands in every family: its roots are idle. The rest is u(mu) =
t v(mu), u = chi/g, v = N/g. All of it is exact: R, p and q are fractions, those of binary64 too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.layer.layer import Layer, check_states, read_entries, row_sum_tolerance
from oversmoothing.theory.numbers import exact as exact
from oversmoothing.theory.numbers.exact import Matrix, from_flint, normalised_rows, to_flint
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor, eigenvalues
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_json

KINDS = ("identity", "doubly-stochastic", "row-stochastic", "orthogonal")
# More streams than anybody mixes: the polynomials of the families have this degree.
MOST_STREAMS = 16


@dataclass(frozen=True, eq=False)
class Mixing:
    """R [s, s], p [s], q [s] in fractions.

    exact: whether they were written so. binary64 entries stand for their binary values, except
    that the rows of an R >= 0 which sum to 1 within rounding are divided by their sums.
    kinds: which of `KINDS` R is; of binary64 entries within rounding.
    """

    R: Matrix
    p: list[Fraction]
    q: list[Fraction]
    exact: bool
    kinds: tuple[str, ...]
    # Of copies of one X_0, the first vector of the basis: some families may not reach all of it.
    copies: bool = False

    @property
    def streams(self) -> int:
        """s."""
        return len(self.R)

    @cached_property
    def characteristic(self) -> flint.fmpq_poly:
        """chi = det(mu - R)."""
        return exact.characteristic(self.R)

    @cached_property
    def numerator(self) -> flint.fmpq_poly:
        """N = q^T adj(mu - R) p, from det(mu - R - p q^T) = chi - N."""
        outer = [[x * y for y in self.q] for x in self.p]
        return self.characteristic - exact.characteristic(exact.plus(self.R, outer))

    @cached_property
    def idle(self) -> flint.fmpq_poly:
        """g, monic: its roots are eigenvalues whatever attention and H are."""
        return self.characteristic.gcd(self.numerator)

    @cached_property
    def active(self) -> tuple[flint.fmpq_poly, flint.fmpq_poly]:
        """(u, v), coprime: the other eigenvalues at t = h a are the roots of u - t v."""
        return self.characteristic // self.idle, self.numerator // self.idle

    @cached_property
    def idle_values(self) -> list[Eigenvalue]:
        """The distinct idle eigenvalues."""
        return roots_of(self.idle)

    @property
    def one_stream(self) -> Fraction | None:
        """kappa where the active eigenvalues are 1 + kappa h_j a_i, those of one stream (T13c).

        So where R p = p or R^T q = q and kappa != 0: for R = I, for row-stochastic R with p = 1,
        for column-stochastic R with q = 1. Else None.
        """
        u, v = self.active
        if u.degree() != 1 or u[0] != -1:
            return None
        return Fraction(int(v[0].p), int(v[0].q))

    @property
    def keeps_equal_streams(self) -> Fraction | None:
        """c where R 1 = c 1 and p is a multiple of 1: equal streams then stay equal (T13b)."""
        return self.common_row_sum if len(set(self.p)) == 1 else None

    @property
    def common_row_sum(self) -> Fraction | None:
        """c where R 1 = c 1, else None."""
        sums = {sum(row, Fraction(0)) for row in self.R}
        return sums.pop() if len(sums) == 1 else None

    @property
    def in_doubt(self) -> bool:
        """Whether floats miss R 1 = c 1 or q^T 1 = 0 by no more than rounding may."""
        sums, near = [sum(row) for row in self.R], Fraction(row_sum_tolerance(self.streams))
        apart, large = max(sums) - min(sums), max(sum(map(abs, row)) for row in self.R)
        read = 0 < abs(sum(self.q, Fraction(0))) <= near * sum(map(abs, self.q))
        return not self.exact and (read or 0 < apart <= near * large)

    @cached_property
    def pattern(self) -> list[flint.fmpq_poly]:
        """Polynomials e_k(mu), coprime: (e_1, ..., e_s) is the mix of streams in an active mode.

        (mu - R) adj(mu - R) p = chi p, so adj(mu - R) p is an eigenvector of R + t p q^T wherever
        chi = t N; what its entries have in common divides g.
        """
        columns = []
        for k in range(self.streams):
            pick = [[x if j == k else Fraction(0) for j in range(self.streams)] for x in self.p]
            # e_k^T adj(mu - R) p, by the same identity as N.
            moved = exact.characteristic(exact.plus(self.R, pick))
            columns.append(self.characteristic - moved)
        common = reduce(flint.fmpq_poly.gcd, columns)
        return [entry // common for entry in columns] if common else columns

    def equal_start(self) -> "Mixing":
        """The mixing on the streams that copies of one X_0 can reach, in a basis of them.

        They form the smallest space that holds 1, that R maps into itself, and that holds p where
        q reads anything of it. For a row-stochastic R and p = 1 it is one stream.
        """
        basis = _reached(self.R, [[Fraction(1)] * self.streams])
        if any(exact.dot(self.q, row) for row in basis):
            basis = _reached(self.R, [*basis, self.p])
        E = exact.transposed(basis)
        R = _coordinates(E, exact.product(self.R, E))
        q = [exact.dot(self.q, row) for row in basis]
        read = any(q)
        p = _coordinates(E, [[x] for x in self.p]) if read else exact.zeros(len(basis), 1)
        return Mixing(R, [row[0] for row in p], q, self.exact, (), read and any(map(any, p[1:])))

    def families(self, H: Matrix, A: Matrix) -> Iterator[Matrix]:
        """R (x) I + p q^T (x) C for the companion matrix C of each power of an irreducible factor
        of the minimal polynomial of H (x) A: together they have that of the operator."""
        outer = [[x * y for y in self.q] for x in self.p]
        for factor, power in to_flint(exact.kronecker(H, A)).minpoly().factor()[1]:
            whole = factor**power
            C = from_flint(companion(whole / whole[whole.degree()]).transpose())
            alone = exact.kronecker(self.R, exact.identity(len(C)))
            yield exact.plus(alone, exact.kronecker(outer, C))

    def reached(self, H: Matrix, A: Matrix) -> list[Eigenvalue]:
        """The eigenvalues that the first stream brings in: C has e_1 as a generic state."""
        values = []
        for layer in self.families(H, A):
            first = [[Fraction(1)] + [Fraction(0)] * (len(layer) - 1)]
            E = exact.transposed(_reached(layer, first))
            values += roots_of(exact.characteristic(_coordinates(E, exact.product(layer, E))))
        return values


# Of an entry: products of two, and sums of those, are floats still.
_LARGEST = 1e100


def make_mixing(R: Any, p: Any = None, q: Any = None, claimed: str | None = None) -> Mixing:
    """Validate R [s, s], p [s] and q [s] (1 and 1/s each where not given).

    claimed: one of `KINDS` that R is said to be; it is checked. Strings, integers and fractions
    are exact, one float makes the mixing binary64. Raises `InputError` on anything else.
    """
    read = read_entries(R, "R")
    s = len(read.floats)
    if read.floats.shape != (s, s):
        raise InputError(f"R has shape {list(read.floats.shape)}; it must be square, s x s")
    if s > MOST_STREAMS:
        raise InputError(f"R mixes {s} streams: {MOST_STREAMS} are the most here")
    given = {"p": [1] * s if p is None else p, "q": [Fraction(1, s)] * s if q is None else q}
    vectors = {name: read_entries([_vector(value, name, s)], name) for name, value in given.items()}
    everything = {"R": read} | vectors
    for name, entries in everything.items():
        if not np.isfinite(entries.floats).all():
            raise InputError(f"{name} has entries that are NaN or infinite: replace them")
        if np.abs(entries.floats).max() > _LARGEST:
            raise InputError(f"{name} has an entry beyond {_LARGEST:g}: scale it")
    is_exact = all(entries.written is not None for entries in everything.values())
    matrix = read.fractions
    tolerance = Fraction(0) if is_exact else Fraction(row_sum_tolerance(s))
    kinds = tuple(kind for kind in KINDS if not _why_not(kind, matrix, tolerance))
    if claimed not in (None, *KINDS):
        raise InputError(f"mixing '{claimed}' is none of {', '.join(KINDS)}")
    if claimed is not None and claimed not in kinds:
        raise InputError(f"R is not {claimed}: {_why_not(claimed, matrix, tolerance)}")
    if "row-stochastic" in kinds:
        matrix = normalised_rows(matrix)
    return Mixing(matrix, vectors["p"].fractions[0], vectors["q"].fractions[0], is_exact, kinds)


def factors_of(polynomial: flint.fmpq_poly) -> list[Factor]:
    """The irreducible factors, none of a constant; their Jordan blocks are not looked for."""
    if polynomial.degree() < 1:
        return []
    _, pairs = polynomial.numer().factor()
    return [Factor(factor, int(power), ()) for factor, power in pairs]


def roots_of(polynomial: flint.fmpq_poly) -> list[Eigenvalue]:
    """The distinct roots, by irreducible factors."""
    return eigenvalues(factors_of(polynomial))


def _vector(value: Any, name: str, s: int) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    wrong = not isinstance(value, Sequence) or isinstance(value, str) or len(value) != s
    if wrong or any(isinstance(x, Sequence) and not isinstance(x, str) for x in value):
        raise InputError(f"{name} must be a list of {s} numbers, one a stream, as R is {s} x {s}")
    return list(value)


def _why_not(kind: str, R: Matrix, tolerance: Fraction) -> str:
    """What keeps R from being of that kind, in a clause; empty where nothing does."""
    s = len(R)
    if kind == "identity":
        wrong = [(k, j) for k in range(s) for j in range(s) if R[k][j] != int(k == j)]
        return f"R[{wrong[0][0]}, {wrong[0][1]}] = {_short(R, *wrong[0])}" if wrong else ""
    if kind == "orthogonal":
        gram = exact.product(exact.transposed(R), R)
        off = max(abs(gram[k][j] - int(k == j)) for k in range(s) for j in range(s))
        # s products a sum, each rounded, of entries that are themselves rounded.
        return f"R^T R is {float(off):.3g} from I" if off > 3 * s * tolerance else ""
    for k, j in product(range(s), repeat=2):
        if R[k][j] < 0:
            return f"R[{k}, {j}] = {_short(R, k, j)} is negative"
    tables = {"row": R} | ({"column": exact.transposed(R)} if kind == "doubly-stochastic" else {})
    for name, table in tables.items():
        for k, row in enumerate(table):
            total = sum(row, Fraction(0))
            if abs(total - 1) > tolerance:
                return f"{name} {k} sums to {float(total):.17g}"
    return ""


def _short(R: Matrix, k: int, j: int) -> str:
    return f"{float(R[k][j]):.6g}"


def _reached(R: Matrix, start: Matrix) -> Matrix:
    """A basis, as rows, of the smallest space with these vectors that R maps into itself."""
    basis: Matrix = []
    waiting = [row for row in start if any(row)]
    while waiting:
        candidate = waiting.pop(0)
        if to_flint([*basis, candidate]).rank() > len(basis):
            basis.append(candidate)
            waiting.append(exact.applied(R, candidate))
    return basis


def _coordinates(E: Matrix, Y: Matrix) -> Matrix:
    """Z with E Z = Y, for E of full column rank whose range holds Y."""
    turned = to_flint(exact.transposed(E))
    return from_flint((turned * to_flint(E)).solve(turned * to_flint(Y)))


_KEYS = {
    "A", "logits", "H", "W_V", "W_proj", "X0", "R", "p", "q", "mixing", "start",
    "schema_version", "comment",
}  # fmt: skip
STARTS = ("generic", "equal")


@dataclass(frozen=True)
class Streams:
    """layer: A and H. mixing: R, p, q.

    start: "generic", any start of the streams, or "equal", copies of one X_0 in each, as
    hyper-connections begin; the question is then asked of the streams that these can reach.
    """

    layer: Layer
    mixing: Mixing
    start: str = "generic"

    @property
    def asked(self) -> Mixing:
        """The mixing that the verdict is about."""
        return self.mixing.equal_start() if self.start == "equal" else self.mixing

    def in_fractions(self) -> "Streams | None":
        """The same on fractions where the numbers mean what they say, else None."""
        layer = self.layer if self.layer.exact else self.layer.as_fractions()
        return None if layer is None else replace(self, layer=layer)


def read_streams(
    *,
    R: Any,
    p: Any = None,
    q: Any = None,
    mixing: str | None = None,
    start: str = "generic",
    A: Any = None,
    logits: Any = None,
    H: Any = None,
    factors: tuple[Any, Any] | None = None,
    X0: Any = None,
) -> Streams:
    """Validated streams. Raises `InputError` saying what is wrong with which part.

    R, p, q and mixing (claimed) as in `make_mixing`, start as in `Streams`, A, logits, H, factors
    as in `Layer.of`. X0 [s, n, d], or [n, d] for copies of it in every stream: it is checked, and
    no verdict depends on it.
    """
    if start not in STARTS:
        raise InputError(f"start '{start}' is none of {', '.join(STARTS)}")
    layer = Layer.of(A, H, logits=logits, factors=factors)
    mixed = make_mixing(R, p, q, mixing)
    if X0 is not None:
        X0 = X0 if isinstance(X0, np.ndarray) else _numbers(X0)
        if np.ndim(X0) == 2:
            X0 = np.broadcast_to(X0, (mixed.streams, *np.shape(X0)))
        states = check_states(X0, layer.n, layer.d)
        if states.ndim != 3 or len(states) != mixed.streams:
            raise InputError(
                f"X0 has shape {list(states.shape)}; R mixes {mixed.streams} streams, so it must "
                f"be [{mixed.streams}, {layer.n}, {layer.d}], or [{layer.n}, {layer.d}] for copies"
            )
        if start == "equal" and (states != states[0]).any():
            raise InputError('start "equal" means copies of one X0, but the streams of X0 differ')
    return Streams(layer, mixed, start)


def load_streams(path: str, data: Any = None) -> Streams:
    """Read CASE.json, or the data that it holds. Raises `InputError` if it is no legal case."""
    data = read_json(path) if data is None else data
    if not isinstance(data, dict) or "R" not in data:
        raise InputError(
            f'\'{path}\' must hold an object with "R" (s x s) beside "A" and "H"; "p" and '
            '"q" (s numbers each), "mixing" (what R is said to be), "start" and "X0" are optional'
        )
    if unknown := sorted(data.keys() - _KEYS):
        raise InputError(
            f"'{path}' has unknown keys {unknown}; known are {', '.join(sorted(_KEYS))}"
        )
    pair = (data.get("W_V"), data.get("W_proj"))
    return read_streams(
        factors=None if pair == (None, None) else pair,
        start=data.get("start", "generic"),
        **{name: data.get(name) for name in ("R", "p", "q", "mixing", "A", "logits", "H", "X0")},
    )


def _numbers(value: Any) -> Any:
    """Nested lists with strings ("3/4") as fractions."""
    if isinstance(value, list | tuple):
        parts = [_numbers(x) for x in value]
        if len({np.shape(x) for x in parts}) > 1:
            raise InputError("X0 is ragged: every row, and every stream, must have the same length")
        return np.array(parts)
    return exact.to_fraction(value, "X0")
