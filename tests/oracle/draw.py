"""Seeded cases (A, H, X_0) in fractions, half of them where programs go wrong.

Half of the X_0 are special (a mode missing or nearly missing, zero mean, one closed class); A and H
are defective, reducible, periodic, saturated or tied as often as not. Most are small, n d <= 12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from .matrices import identity, product, transpose

Matrix = list[list[Fraction]]


@dataclass(frozen=True)
class Case:
    """One drawn case; `kind` names how A, H and X_0 were drawn.

    numbers: "fractions"; "dyadic", given in floats that are the numbers meant; "rounded", given in
    floats near `meant` (None: the same numbers, rows of A that do not sum to 1); "logits", A given
    by the floats `logits` (None: masked) and A fractions close to their softmax. evolved: depths
    for `evolve`.
    """

    name: str
    A: Matrix
    H: Matrix
    X0: Matrix
    kind: tuple[str, str, str]
    numbers: str = "fractions"
    meant: tuple[Matrix, Matrix, Matrix] | None = None
    evolved: tuple[int, ...] = (3, 30, 200)
    logits: list[list[Fraction | None]] | None = None

    @property
    def binary64(self) -> bool:
        return self.numbers != "fractions"


def in_binary64(case: Case) -> Case:
    """The same case given in floats; A that is not dyadic then means its rows over their sums."""
    meant = case.A, case.H, case.X0
    A, H, X0 = (_rounded(M) for M in meant)
    if meant == (A, H, X0):
        sums = {sum(row) for row in A}
        return replace(case, numbers="dyadic" if sums == {1} else "rounded")
    return replace(case, A=A, H=H, X0=X0, numbers="rounded", meant=meant)


def draw(seed: int, index: int) -> Case:
    """Case number `index` of a seed, whatever else is drawn."""
    rng = Random(f"{seed}/{index}")
    large = rng.random() < 0.04
    n = rng.choice((4, 5, 6, 8)) if large else rng.choice((1, 2, 2, 2, 3, 3, 3, 4, 5))
    d = rng.choice((1, 2, 3, 4, 8)) if large else rng.choice((1, 1, 2, 2, 3))
    if n * d > (32 if large else 12):
        d = 2
    name_A, A = _attention(rng, n)
    name_H, H = _value(rng, d, A)
    name_X, X0 = _start(rng, A, H)
    case = Case(f"{seed}/{index}", A, H, X0, (name_A, name_H, name_X))
    floats = all(_normal(x) for M in (A, H, X0) for row in M for x in row)
    return in_binary64(case) if floats and rng.random() < 0.35 else case


def as_read(case: Case) -> tuple[Matrix, Matrix, Matrix]:
    """The matrices that the case means: the rows of A in floats are divided by their sums."""
    if not case.binary64:
        return case.A, case.H, case.X0
    return [[x / sum(row) for x in row] for row in case.A], case.H, case.X0


def _normal(x: Fraction) -> bool:
    return x == 0 or Fraction(1, 2**1000) < abs(x) < 2**1000


def _rounded(M: Matrix) -> Matrix:
    return [[Fraction(float(x)) for x in row] for row in M]


def _stochastic(rows: list[list[int]]) -> Matrix:
    return [[Fraction(x, sum(row)) for x in row] for row in rows]


def _attention(rng: Random, n: int) -> tuple[str, Matrix]:
    if n == 1:
        return "one token", [[Fraction(1)]]
    kinds = {
        "positive": lambda: _stochastic([[rng.randint(1, 9) for _ in range(n)] for _ in range(n)]),
        "dyadic": lambda: _dyadic(rng, n),
        "towards the mean": lambda: _towards_mean(rng, n),
        "doubly stochastic": lambda: _permutations(rng, n),
        "circulant": lambda: _circulant(rng, n),
        "causal": lambda: _causal(rng, n),
        "causal, saturated": lambda: _saturated(rng, n),
        "causal, defective": lambda: _causal_defective(rng, n),
        "several classes": lambda: _classes(rng, n),
        "periodic": lambda: _periodic(rng, n),
        "nearly decoupled": lambda: _nearly_decoupled(rng, n),
        "identity": lambda: [[Fraction(x) for x in row] for row in identity(n)],
    }
    weights = (3, 3, 2, 2, 2, 3, 2, 2, 4, 2, 1, 1)
    name = rng.choices(list(kinds), weights)[0]
    return name, kinds[name]()


def _dyadic(rng: Random, n: int) -> Matrix:
    rows = []
    for _ in range(n):
        cuts = sorted(rng.randint(0, 16) for _ in range(n - 1))
        rows.append([Fraction(y - x, 16) for x, y in zip([0, *cuts], [*cuts, 16], strict=True)])
    return rows


def _towards_mean(rng: Random, n: int) -> Matrix:
    a = Fraction(rng.randint(-8 // n if n > 1 else 0, 8), 8)
    a = max(a, Fraction(-1, n))
    return [[a * (i == j) + (1 - a) / n for j in range(n)] for i in range(n)]


def _permutations(rng: Random, n: int) -> Matrix:
    weights = [rng.randint(1, 5) for _ in range(3)]
    A = [[Fraction(0)] * n for _ in range(n)]
    for w in weights:
        order = rng.sample(range(n), n)
        for i, j in enumerate(order):
            A[i][j] += Fraction(w, sum(weights))
    return A


def _circulant(rng: Random, n: int) -> Matrix:
    row = _stochastic([[rng.randint(0, 6) + (j == 0) for j in range(n)]])[0]
    return [[row[(j - i) % n] for j in range(n)] for i in range(n)]


def _causal(rng: Random, n: int) -> Matrix:
    return _stochastic([[rng.randint(1, 8) if j <= i else 0 for j in range(n)] for i in range(n)])


def _saturated(rng: Random, n: int) -> Matrix:
    A = [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for i in range(1, n):
        small = Fraction(rng.randint(1, 3), 10 ** rng.choice((8, 17, 20, 20, 40, 300)))
        j = rng.randrange(i)
        A[i][i] -= small
        A[i][j] += small
    return A


def _causal_defective(rng: Random, n: int) -> Matrix:
    a = Fraction(1, rng.choice((2, 2, 3, 4)))
    A = [[Fraction(0)] * n for _ in range(n)]
    A[0][0] = Fraction(1)
    for i in range(1, n):
        A[i][i] = a
        parts = [rng.randint(0, 3) for _ in range(i - 1)] + [rng.randint(1, 4)]
        for j, x in enumerate(parts):
            A[i][j] += (1 - a) * Fraction(x, sum(parts))
    return A


def _classes(rng: Random, n: int) -> Matrix:
    """Two or three closed classes in random order, perhaps with tokens that leave into them."""
    count = min(n, rng.choice((2, 2, 3)))
    cuts = sorted(rng.sample(range(1, n), count - 1))
    leaving = rng.random() < 0.5 and n > count
    if leaving:
        cuts = sorted(rng.sample(range(1, n - 1), count - 1)) if n - 2 >= count - 1 else cuts
    ends = [*cuts, n - 1 if leaving and cuts[-1] < n - 1 else n]
    A = [[Fraction(0)] * n for _ in range(n)]
    first = 0
    for end in ends:
        _, block = _attention_of_class(rng, end - first)
        for i, row in enumerate(block):
            A[first + i][first:end] = row
        first = end
    for i in range(first, n):
        A[i] = _stochastic([[rng.randint(0, 3) + (j == i - 1) for j in range(n)]])[0]
    order = rng.sample(range(n), n)
    return [[A[i][j] for j in order] for i in order]


def _attention_of_class(rng: Random, n: int) -> tuple[str, Matrix]:
    if n == 1:
        return "one", [[Fraction(1)]]
    if rng.random() < 0.3:
        return "periodic", _periodic(rng, n)
    return "positive", _stochastic([[rng.randint(1, 4) for _ in range(n)] for _ in range(n)])


def _periodic(rng: Random, n: int) -> Matrix:
    """Irreducible, each step from one group of tokens into the next."""
    groups = rng.randint(2, n)
    members = [[i for i in range(n) if i % groups == g] for g in range(groups)]
    A = [[Fraction(0)] * n for _ in range(n)]
    for i in range(n):
        into = members[(i + 1) % groups]
        for j, x in zip(into, _stochastic([[rng.randint(1, 4) for _ in into]])[0], strict=True):
            A[i][j] = x
    return A


def _nearly_decoupled(rng: Random, n: int) -> Matrix:
    small = [Fraction(rng.randint(1, 3), 10 ** rng.choice((12, 100, 400))) for _ in range(n)]
    return [
        [
            1 - small[i] if i == j else small[i] if j == (i + 1) % n else Fraction(0)
            for j in range(n)
        ]
        for i in range(n)
    ]


_SINGLE = (
    *("-2", "-1", "-1/2", "-3/2", "-4/3", "1/2", "1", "-3", "0", "1/10", "-8/5", "-5/2", "2"),
    *("-1/4", "-12/5", "3/4", "-16/9", "-7/4"),
)


def _single(rng: Random, A: Matrix) -> Fraction:
    """An eigenvalue of H; now and then one that ties with an eigenvalue of A by T2b."""
    if rng.random() < 0.2:
        a = A[-1][-1] - A[0][-1]
        if a > -1:
            return -2 / (1 + a)
    if rng.random() < 0.05:
        size = rng.choice((13, 40, 100, 300))
        return rng.choice((-1, 0)) + Fraction(rng.choice((-1, 1)), 10**size)
    return Fraction(rng.choice(_SINGLE))


def _value(rng: Random, d: int, A: Matrix) -> tuple[str, Matrix]:
    h = _single(rng, A)
    kinds = {
        "diagonal": lambda: _diagonal([_single(rng, A) for _ in range(d)]),
        "multiple": lambda: _diagonal([h] * d),
        "jordan": lambda: _conjugated(rng, _jordan([h] * d, d)),
        "two jordan": lambda: _conjugated(
            rng, _jordan([h] * (d - 1) + [_single(rng, A)], max(1, d - 1))
        ),
        "complex": lambda: _conjugated(rng, _complex(rng, d, A)),
        "random": lambda: [
            [Fraction(rng.randint(-6, 6), rng.choice((1, 2, 4))) for _ in range(d)]
            for _ in range(d)
        ],
        "similar": lambda: _conjugated(rng, _diagonal([_single(rng, A) for _ in range(d)])),
    }
    if d == 1:
        return "single", [[h]]
    name = rng.choices(list(kinds), (3, 1, 2, 2, 3, 2, 3))[0]
    return name, kinds[name]()


def _diagonal(values: list[Fraction]) -> Matrix:
    return [
        [x if i == j else Fraction(0) for j in range(len(values))] for i, x in enumerate(values)
    ]


def _jordan(values: list[Fraction], block: int) -> Matrix:
    H = _diagonal(values)
    for i in range(block - 1):
        H[i][i + 1] = Fraction(1)
    return H


def _complex(rng: Random, d: int, A: Matrix) -> Matrix:
    H = _diagonal([_single(rng, A) for _ in range(d)])
    x = Fraction(rng.randint(-8, 4), 4)
    y = Fraction(rng.randint(1, 8), rng.choice((2, 4)))
    H[0][0] = H[1][1] = x
    H[0][1], H[1][0] = -y, y
    return H


def _conjugated(rng: Random, H: Matrix) -> Matrix:
    """S H S^-1 with S unimodular: rows added to others and taken back on columns."""
    H = [row[:] for row in H]
    for _ in range(rng.randint(0, len(H))):
        i, j = rng.sample(range(len(H)), 2)
        c = rng.choice((-2, -1, 1, 2))
        H[i] = [x + c * y for x, y in zip(H[i], H[j], strict=True)]
        for row in H:
            row[j] -= c * row[i]
    return H


def _start(rng: Random, A: Matrix, H: Matrix) -> tuple[str, Matrix]:
    n, d = len(A), len(H)

    def generic() -> Matrix:
        return [[Fraction(rng.randint(-9, 9)) for _ in range(d)] for _ in range(n)]

    if rng.random() < 0.5:
        return "generic", generic()
    a = rng.choice([Fraction(1), Fraction(1), *(A[i][i] for i in range(n)), A[0][0] - A[-1][0]])
    h = rng.choice([H[i][i] for i in range(d)])

    def missing() -> Matrix:
        """Without the mode a of A, where a is an eigenvalue."""
        X = generic()
        for _ in range(rng.choice((1, 1, 2))):
            X = _plus(product(A, X), X, -a)
        return X

    def missing_value() -> Matrix:
        X = generic()
        return _plus(product(X, transpose(H)), X, -h)

    def nearly() -> Matrix:
        small = Fraction(1, 10 ** rng.choice((5, 11, 12, 40, 100, 300)))
        return _plus(rng.choice((missing, missing_value, flat, centred))(), generic(), small)

    def flat() -> Matrix:
        return [generic()[0]] * n if n == 1 else [list(r) for r in [generic()[0]] * n]

    def centred() -> Matrix:
        X = generic()
        sums = [sum(column) / n for column in zip(*X, strict=True)]
        return [[x - s for x, s in zip(row, sums, strict=True)] for row in X]

    def few_tokens() -> Matrix:
        X = generic()
        kept = rng.sample(range(n), rng.randint(1, max(1, n - 1)))
        return [row if i in kept else [Fraction(0)] * d for i, row in enumerate(X)]

    def rank_one() -> Matrix:
        u, v = [rng.randint(-4, 4) for _ in range(n)], [rng.randint(-4, 4) for _ in range(d)]
        return [[Fraction(x * y) for y in v] for x in u]

    def zero() -> Matrix:
        return [[Fraction(0)] * d for _ in range(n)]

    kinds = {
        "missing in A": missing,
        "missing in H": missing_value,
        "nearly missing": nearly,
        "at consensus": flat,
        "zero mean": centred,
        "few tokens": few_tokens,
        "rank one": rank_one,
        "zero": zero,
    }
    name = rng.choices(list(kinds), (5, 4, 7, 1, 3, 4, 2, 0.3))[0]
    return name, kinds[name]()


def _plus(X: Matrix, Y: Matrix, factor: Fraction) -> Matrix:
    return [[x + factor * y for x, y in zip(*rows, strict=True)] for rows in zip(X, Y, strict=True)]
