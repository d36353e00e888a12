"""Layers whose spectra are known by construction, up to n = 64, against `verdict`: its red team.

Every eigenvalue is in Q(i), drawn first: of A causal, block triangular, a product of small ones or
towards the mean, of H with Jordan blocks, of up to four heads that are triangular together. So the
moduli of all multipliers are compared as fractions, without any part of the program. A case in
floats is held against the fractions it was rounded from where the gap is ten times the spread of
the rounding cell, as numpy sees it; nearer ties may go either way, and are counted apart.

Every digit that is printed of rho_C, rho_Q, their ratio and their difference beside "exact" is held
against 1,000 digits computed from the same fractions.

    python -m tests.hunts.chosen 2000 --seed S
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

import oversmoothing
from tests.oracle.draw import _conjugated
from tests.oracle.worker import answers

Matrix = list[list[Fraction]]
Gauss = tuple[Fraction, Fraction]
ONE, ZERO = Fraction(1), Fraction(0)
OUTCOMES = ("right", "wrong", "open, with a gap", "open, near a tie", "no answer")
SECONDS = 120.0  # of the processor, for one answer


@dataclass(frozen=True)
class Chosen:
    """A [heads][n][n], W [heads][d][d], X0 [n][d] in fractions; `true`: what they do, and
    `consensus`, `others`: |multiplier|^2 of the leading mode of each kind."""

    name: str
    kind: tuple[str, str]
    A: list[Matrix]
    W: list[Matrix]
    X0: Matrix
    consensus: Fraction
    others: Fraction
    floats: bool

    @property
    def true(self) -> str:
        if self.consensus == self.others:
            return "TIE"
        return "SMOOTHING" if self.consensus > self.others else "NON_SMOOTHING"


def draw(seed: int, number: int) -> Chosen:
    rng = Random(f"chosen/{seed}/{number}")
    floats = rng.random() < 0.5
    heads = 1 if rng.random() < 0.6 else rng.randint(2, 4)
    n = rng.choice((2, 3, 5, 8, 12, 17, 24, 32, 48, 64))
    d = rng.choice((1, 2, 2, 3, 4, 6))
    if heads > 1 and n * d > (256 if floats else 128):
        d = max(1, (256 if floats else 128) // n)
    kind, A, spectra = _attention(rng, n, heads)
    values, W = _values(rng, d, spectra)
    multipliers = [[_multiplier(a, h) for h in values] for a in spectra]
    consensus = max(multipliers[0])
    others = max(x for row in multipliers[1:] for x in row)
    # No 0: where one token decides, it would leave the leading mode out.
    X0 = [
        [Fraction(rng.choice((-1, 1)) * rng.randint(1, 9999)) for _ in range(d)] for _ in range(n)
    ]
    name = f"{seed}/{number}"
    return Chosen(name, (f"{kind}, {heads}", f"d = {d}"), A, W, X0, consensus, others, floats)


def _multiplier(a: list[Gauss], h: list[Gauss]) -> Fraction:
    """|1 + sum over heads of h a|^2."""
    x, y = ONE, ZERO
    for (p, q), (r, s) in zip(a, h, strict=True):
        x, y = x + p * r - q * s, y + p * s + q * r
    return x * x + y * y


# ------------------------------------------------------------------------------------ attention


def _attention(rng: Random, n: int, heads: int) -> tuple[str, list[Matrix], list[list[Gauss]]]:
    """Of each head A, and by mode the eigenvalue of each head, that of the constants first."""
    name = rng.choice(("causal", "causal, few values", "block triangular", "products", "mean"))
    if name.startswith("causal"):
        few = [Fraction(rng.randint(0, 8), 8) for _ in range(rng.randint(1, 3))]
        made = []
        for _ in range(heads):
            made.append(_causal(rng, n, few if "few" in name else None))
        return name, made, [[(A[i][i], ZERO) for A in made] for i in range(n)]
    if name == "block triangular":
        ends = sorted({*rng.sample(range(1, n), min(n - 1, rng.randint(1, 4))), n})
        made, spectra = [], [[] for _ in range(n)]
        closed = rng.random() < 0.15
        for _ in range(heads):
            A, own = _blocks(rng, n, ends, closed)
            made.append(A)
            for i, a in enumerate(own):
                spectra[i].append((a, ZERO))
        return name, made, spectra
    base, own = _products(rng, n) if name == "products" else _mean(rng, n)
    made, spectra = [], [[] for _ in range(n)]
    for k in range(heads):
        # (1 - c) A + c I: all have the same vectors.
        c = Fraction(rng.randint(0, 3), 4) if k or rng.random() < 0.3 else ZERO
        made.append([[(1 - c) * x + c * (i == j) for j, x in enumerate(row)]
                     for i, row in enumerate(base)])  # fmt: skip
        for i, (x, y) in enumerate(own):
            spectra[i].append(((1 - c) * x + c, (1 - c) * y))
    return name, made, spectra


def _causal(rng: Random, n: int, few: list[Fraction] | None) -> Matrix:
    A = [[ZERO] * n for _ in range(n)]
    A[0][0] = ONE
    for i in range(1, n):
        weights = [rng.randint(0, 5) for _ in range(i)]
        weights[rng.randrange(i)] += 1
        A[i][i] = rng.choice(few) if few else Fraction(rng.randint(0, 40), 40)
        for j, x in enumerate(weights):
            A[i][j] = (1 - A[i][i]) * Fraction(x, sum(weights))
    return A


def _blocks(rng: Random, n: int, ends: list[int], closed: bool) -> tuple[Matrix, list[Fraction]]:
    """Diagonal blocks s (a I + (1 - a) J / k): eigenvalues s, once, and s a."""
    A, own, first = [[ZERO] * n for _ in range(n)], [], 0
    for number, end in enumerate(ends):
        k = end - first
        alone = number == 0 or (closed and number == 1)
        s = ONE if alone else Fraction(rng.randint(1, 9), 10)
        a = Fraction(rng.randint(0 if k == 1 else -(8 // k), 8), 8)
        a = max(a, -Fraction(1, max(1, k - 1)))
        for i in range(first, end):
            for j in range(first, end):
                A[i][j] = s * (a * (i == j) + (1 - a) / k)
            if not alone:
                weights = [rng.randint(0, 3) for _ in range(first)]
                weights[rng.randrange(first)] += 1
                for j, x in enumerate(weights):
                    A[i][j] = (1 - s) * Fraction(x, sum(weights))
        own += [s, *[s * a] * (k - 1)]
        first = end
    return A, own


def _mean(rng: Random, n: int) -> tuple[Matrix, list[Gauss]]:
    a = max(Fraction(rng.randint(-8, 8), 8), -Fraction(1, n - 1))
    A = [[a * (i == j) + (1 - a) / n for j in range(n)] for i in range(n)]
    return A, [(ONE, ZERO), *[(a, ZERO)] * (n - 1)]


def _products(rng: Random, n: int) -> tuple[Matrix, list[Gauss]]:
    """Of stochastic matrices of 2 tokens, and of cycles of 4, with a causal factor for the rest."""
    A, own = [[ONE]], [(ONE, ZERO)]
    while n > 1:
        if n % 4 == 0 and rng.random() < 0.4:
            weights = [rng.randint(0, 4) for _ in range(4)]
            weights[rng.randrange(4)] += 1
            row = [Fraction(x, sum(weights)) for x in weights]
            B = [[row[(j - i) % 4] for j in range(4)] for i in range(4)]
            values = [(ONE, ZERO), (row[0] - row[2], row[1] - row[3]),
                      (row[0] - row[1] + row[2] - row[3], ZERO),
                      (row[0] - row[2], row[3] - row[1])]  # fmt: skip
        elif n % 2 == 0:
            p, q = (Fraction(rng.randint(0, 10), 10) for _ in range(2))
            B, values = [[p, 1 - p], [1 - q, q]], [(ONE, ZERO), (p + q - 1, ZERO)]
        else:
            B = _causal(rng, n, None)
            values = [(B[i][i], ZERO) for i in range(n)]
        k = len(B)
        A = [[A[i // k][j // k] * B[i % k][j % k] for j in range(len(A) * k)]
             for i in range(len(A) * k)]  # fmt: skip
        own = [(x * r - y * s, x * s + y * r) for x, y in own for r, s in values]
        n //= k
    return A, own


# ------------------------------------------------------------------------------------ values

_SINGLE = ("-2", "-1", "-1/2", "-3/2", "1/2", "1", "-3", "0", "1/10", "-5/2", "2", "-1/4", "3/4")


def _values(
    rng: Random, d: int, spectra: list[list[Gauss]]
) -> tuple[list[list[Gauss]], list[Matrix]]:
    """By mode the eigenvalue of each head's W, and W = P T P^-1 with one unimodular P for all."""
    heads = len(spectra[0])
    T = [[[ZERO] * d for _ in range(d)] for _ in range(heads)]
    modes: list[list[Gauss]] = [[] for _ in range(d)]
    tie = rng.random() < 0.5
    repeated = Fraction(rng.choice(_SINGLE))
    pairs = d > 1 and rng.random() < 0.35
    for k in range(heads):
        for j in range(d):
            h = repeated if rng.random() < 0.3 else Fraction(rng.choice(_SINGLE))
            T[k][j][j] = h / (heads if rng.random() < 0.5 else 1)
        if pairs:
            x, y = Fraction(rng.randint(-8, 4), 4), Fraction(rng.randint(1, 8), 4)
            T[k][0][0] = T[k][1][1] = x
            T[k][0][1], T[k][1][0] = -y, y
    if tie and not (pairs and d == 2):
        _nearly_tie(rng, T, spectra)
    for k in range(heads):
        for j in range(d):
            turns = pairs and j < 2
            modes[j].append((T[k][j][j], T[k][1][0] * (1 if j else -1) if turns else ZERO))
    for k in range(heads):
        for i in range(2 if pairs else 0, d):
            for j in range(i + 1, d):
                if rng.random() < 0.4:
                    T[k][i][j] = Fraction(rng.randint(-2, 2))
    order = rng.random()
    return modes, [_conjugated(Random(order), M) if d > 1 else M for M in T]


def _nearly_tie(rng: Random, T: list[Matrix], spectra: list[list[Gauss]]) -> None:
    """The last value of the first head is moved to where |1 + sum h| = |1 + sum h a| for some real
    mode a, or near it."""
    real = [a for a in spectra[1:] if all(y == 0 for _, y in a) and a[0][0] > -1]
    if not real:
        return
    a = rng.choice(real)
    at_one = 1 + sum((M[-1][-1] for M in T[1:]), ZERO)
    at_a = 1 + sum((M[-1][-1] * x for M, (x, _) in zip(T[1:], a[1:], strict=True)), ZERO)
    # at_one + h = -(at_a + h a).
    h = -(at_one + at_a) / (1 + a[0][0])
    size = rng.choice((2, 4, 6, 8, 10, 12, 20, 60, 330))
    small = rng.choice((0, 1, -1)) * Fraction(1, 10**size)
    T[0][-1][-1] = h + small


# ------------------------------------------------------------------------------------ judging


def answered(case: Chosen) -> tuple[str, str, str, list[str]]:
    """(outcome of `verdict`, of `verdict_x0`, what was said, the printed numbers)."""
    entry: Any = float if case.floats else lambda x: x
    A = [[[entry(x) for x in row] for row in M] for M in case.A]
    W = [[[entry(x) for x in row] for row in M] for M in case.W]
    X0 = [[entry(x) for x in row] for row in case.X0]
    if len(A) == 1:
        answer = oversmoothing.verdict(A=A[0], W=W[0], X0=X0)
    else:
        answer = oversmoothing.heads_verdict(A=A, W=W, X0=X0)
    near = case.floats and is_near(case)
    # Where every multiplier is 0, every state dies out.
    of_x0 = case.true if case.consensus or case.others else "UNDEFINED"
    said_of = (answer.verdict, case.true), (answer.verdict_x0, of_x0)
    seen = [_outcome(str(x), true, near) for x, true in said_of]
    said = f"{answer.verdict}, {answer.verdict_x0} ({answer.status}), true {case.true}"
    if "open" in seen[0] + seen[1]:
        said += f": {answer.reason}"
    # Floats that are decided exactly are not the fractions they were rounded from.
    exact = answer.status == "exact" and not case.floats
    printed = _NUMBERS.search(str(answer)) if exact else None
    return seen[0], seen[1], said, [*(printed.groups() if printed else ())]


_NUMBERS = re.compile(
    r"rho_C = (\S+),\s+rho_Q =\s+(\S+):\s+rate\s+rho_Q/rho_C\s+=\s+(.+?) a layer"
    r"(?: \([^)]*\))?, margin (\S+)"
)


def false_digits(case: Chosen, printed: list[str]) -> list[str]:
    """The printed numbers with a digit that is not that of the number they stand for."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 1000, -(10**6), 10**6
        c, q = (
            (Decimal(x.numerator) / Decimal(x.denominator)).sqrt()
            for x in (case.consensus, case.others)
        )
        rate = q / c if c else Decimal("Infinity") if q else Decimal("NaN")
        true = c, q, rate, c - q
        return [text for text, x in zip(printed, true, strict=False) if not _agrees(text, x)]


def _agrees(text: str, true: Decimal) -> bool:
    """Whether the text, "1 + 4.50e-330" too, is the number rounded to as many digits as it has."""
    if found := re.fullmatch(r"1 ([+-]) (\S+)", text):
        return _agrees(found[2], (true - 1) if found[1] == "+" else (1 - true))
    if text.startswith("0/0") or true.is_nan():
        return text.startswith("0/0") and true.is_nan()
    said = Decimal(text)
    if said.is_infinite() or true.is_infinite():
        return said == true
    # A digit of what was cut from the end counts as there: 0.2 is 0.200.
    unit = Decimal(1).scaleb(said.adjusted() - max(len(said.as_tuple().digits), 3) + 1)
    return abs(said - true) <= unit / 2 or (said == 0 == true)


def _outcome(said: str, true: str, near: bool) -> str:
    if said == true:
        return "right"
    if said == "UNDECIDED":
        return "open, near a tie" if near else "open, with a gap"
    return "open, near a tie" if near else "wrong"


def is_near(case: Chosen) -> bool:
    """Whether the gap is below ten times the spread of the moduli over the rounding cell."""
    if case.true == "TIE":
        return True
    gap = abs(float(case.others / case.consensus) - 1) / 2 if case.consensus else np.inf
    A, W = (np.array(M, dtype=np.float64) for M in (case.A, case.W))
    rng = np.random.default_rng(7)
    sizes = 1e-8, 1e-10
    seen = []
    for size in sizes:
        moved = [
            _radii(*(M * (1 + size * rng.uniform(-1, 1, M.shape)) for M in (A, W)))
            for _ in range(4)
        ]
        plain = float(np.sqrt(float(case.consensus))), float(np.sqrt(float(case.others)))
        scale = max(*plain, 1e-300)
        seen.append(max(abs(x - y) for r in moved for x, y in zip(r, plain, strict=True)) / scale)
    # A power law between the two sizes, down to half an ulp.
    power = np.log(max(seen[0], 1e-16) / max(seen[1], 1e-16)) / np.log(sizes[0] / sizes[1])
    spread = max(seen[1], 1e-16) * (1.1e-16 / sizes[1]) ** min(max(power, 0.05), 1.0)
    return gap <= 10 * spread


def _radii(A: np.ndarray, W: np.ndarray) -> tuple[float, float]:
    """Radii at consensus and off it, by the operator on differences of tokens."""
    A = A / A.sum(-1, keepdims=True)
    d = W.shape[-1]
    at_one = np.abs(np.linalg.eigvals(np.eye(d) + W.sum(0))).max()
    differences = A[:, 1:, 1:] - A[:, :1, 1:]
    off = np.eye(d * (A.shape[1] - 1)) + sum(
        np.kron(a, w) for a, w in zip(differences, W.transpose(0, 2, 1), strict=True)
    )
    return float(at_one), float(np.abs(np.linalg.eigvals(off)).max())


Found = tuple[str, str, str, list[str]]


def hunt(count: int, seed: int, first: int = 0) -> Iterator[tuple[Chosen, Found]]:
    cases = (draw(seed, k) for k in range(first, first + count))
    for case, found in answers(answered, cases, SECONDS):
        yield case, found or ("no answer", "no answer", f"none in {SECONDS:g} s", [])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hunts.chosen", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    options = parser.parse_args(arguments)
    counts: Counter[tuple[str, str, str]] = Counter()
    numbers_seen, wrong_numbers = 0, 0
    for case, (verdict, start, said, printed) in hunt(options.count, options.seed, options.first):
        numbers = "floats" if case.floats else "fractions"
        counts["verdict", numbers, verdict] += 1
        counts["verdict_x0", numbers, start] += 1
        numbers_seen += len(printed)
        if wrong := false_digits(case, printed):
            wrong_numbers += len(wrong)
            print(f"{case.name}: false digits in {', '.join(wrong)}", flush=True)
        if {verdict, start} - {"right", "open, near a tie"}:
            print(f"{case.name} {case.kind} n = {len(case.X0)}, {numbers}: {verdict}; {start}\n"
                  f"  {said}", flush=True)  # fmt: skip
    for name in ("verdict", "verdict_x0"):
        for numbers in ("fractions", "floats"):
            row = {outcome: counts[name, numbers, outcome] for outcome in OUTCOMES}
            print(f"{name}, {numbers}: " + ", ".join(f"{o} {k}" for o, k in row.items()))
    print(f"{numbers_seen} numbers printed beside exact, {wrong_numbers} with a false digit")
    return int(bool(wrong_numbers) or any(outcome == "wrong" for _, _, outcome in counts))


if __name__ == "__main__":
    sys.exit(main())
