"""Drawn cases, certified: the checker must accept all that could be claimed of them.

    python -m tests.forgeries.honest 1000 --seed 0

says how many of the first thousand of that seed it did not.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from oversmoothing.theory.certificate import make_certificate
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.support.errors import RequirementError
from tests.corpora.cases import ATTENTION, VALUE, Rows, attention, case, value
from tests.forgeries.bases import chained


def drawn(seed: int) -> dict[str, Any]:
    """The arguments of `Layer.of` for one case, the same for every seed."""
    return KINDS[seed % len(KINDS)](random.Random(f"honest {seed}"))


def start(r: random.Random, n: int, d: int) -> Rows:
    return [[Fraction(r.randint(-9, 9), r.randint(1, 5)) for _ in range(d)] for _ in range(n)]


def plain(r: random.Random) -> dict[str, Any]:
    return dict(case(r.randrange(10**6)))


def several_classes(r: random.Random) -> dict[str, Any]:
    """Two or three closed classes, and perhaps a token that leaves into them."""
    sizes = [r.randint(1, 2) for _ in range(r.randint(2, 3))]
    leaving, n, d = r.randint(0, 1), sum(sizes), r.randint(1, 2)
    rows = [[Fraction(0)] * (n + leaving) for _ in range(n + leaving)]
    first = 0
    for size in sizes:
        for i, row in enumerate(attention(r, size, "dense")):
            rows[first + i][first : first + size] = row
        first += size
    if leaving:
        rows[n] = [Fraction(1, n + 1)] * (n + 1)
    return {"A": rows, "H": value(r, d, r.choice(VALUE)), "X0": start(r, len(rows), d)}


def slow(r: random.Random) -> dict[str, Any]:
    """Rates close to 1: depths up to 10^13."""
    n, d = r.randint(2, 4), r.randint(1, 2)
    H = value(r, d, r.choice(["diagonal", "triangular", "dense"]))
    scale = Fraction(1, 10 ** r.randint(1, 12))
    H = [[x * scale for x in row] for row in H]
    for i, row in enumerate(H):
        row[i] = abs(row[i])
    return {"A": attention(r, n, "dense"), "H": H, "X0": start(r, n, d)}


def jordan(r: random.Random) -> dict[str, Any]:
    """A Jordan block in an H of up to 24, beside small eigenvalues."""
    d, n, size = r.randint(5, 24), r.randint(2, 5), r.randint(2, 4)
    h = Fraction(r.choice([-3, -2, 1, 2]), r.randint(1, 2))
    return {"A": attention(r, n, r.choice(ATTENTION)), "H": chained(d, h, size, 3)}


def softmax(r: random.Random) -> dict[str, Any]:
    rng = np.random.default_rng(r.randrange(2**32))
    n, d = r.randint(2, 8), r.randint(1, 6)
    logits = r.choice([0.3, 1, 5]) * rng.standard_normal((n, n))
    if r.random() < 0.4:
        logits[np.triu_indices(n, 1)] = -np.inf
    found: dict[str, Any] = {"logits": logits, "X0": rng.standard_normal((n, d))}
    if r.random() < 0.3 and d > 1:
        found["factors"] = rng.standard_normal((d, 1)), rng.standard_normal((1, d))
    else:
        found["H"] = r.choice([-0.5, 0.5]) * np.eye(d) + 0.3 * rng.standard_normal((d, d))
    return found


def near_tie(r: random.Random) -> dict[str, Any]:
    """h at the threshold -2 / (1 + a), to a float or to 1e-60."""
    p, q = Fraction(r.randint(1, 15), 16), Fraction(r.randint(1, 15), 16)
    h = Fraction(-2) / (2 - p - q) if p + q != 2 else Fraction(-2)
    A = [[1 - p, p], [q, 1 - q]]
    X0 = start(r, 2, 1)
    if r.random() < 0.5:
        rows = [[float(x) for x in row] for row in A]
        return {"A": rows, "H": [[float(h)]], "X0": [[float(x) for x in row] for row in X0]}
    return {"A": A, "H": [[h + Fraction(r.choice([-1, 1]), 10 ** r.randint(3, 60))]], "X0": X0}


def tie(r: random.Random) -> dict[str, Any]:
    """Exact ties: the threshold, alone or in a Jordan block, or 0 in both spectra, up to d = 8."""
    p, q = Fraction(r.randint(1, 7), 8), Fraction(r.randint(1, 7), 8)
    h = Fraction(-2) / (2 - p - q) if p + q != 2 else Fraction(-2)
    d = r.randint(1, 8)
    H = [[h * (i == j) for j in range(d)] for i in range(d)]
    for i in range(d - 1):
        H[i][i + 1] = Fraction(int(r.random() < 0.3))
    if r.random() < 0.4:
        H[-1][-1] = Fraction(0)
    return {"A": [[1 - p, p], [q, 1 - q]], "H": H, "X0": start(r, 2, d)}


def larger(r: random.Random) -> dict[str, Any]:
    rng = np.random.default_rng(r.randrange(2**32))
    n, d = r.randint(9, 30), r.randint(1, 12)
    A = rng.dirichlet(np.ones(n), size=n)
    H = r.choice([-0.4, 0.4]) * np.eye(d) + 0.2 * rng.standard_normal((d, d))
    return {"A": A / A.sum(axis=1, keepdims=True), "H": H, "X0": rng.standard_normal((n, d))}


def extreme(r: random.Random) -> dict[str, Any]:
    """H or X_0 at the ends of what binary64 holds, and 1 + h close to 0."""
    n, d = r.randint(2, 3), r.randint(1, 2)
    H, X0 = value(r, d, r.choice(VALUE)), start(r, n, d)
    kind = r.randrange(3)
    if kind == 0:
        H = [[x * 10 ** r.randint(290, 307) for x in row] for row in H]
    elif kind == 1:
        X0 = [[x * Fraction(10) ** r.choice([-300, 300]) for x in row] for row in X0]
    else:
        small = Fraction(1, 10 ** r.randint(20, 60))
        H = [[Fraction(i == j) * (small - 1) for j in range(d)] for i in range(d)]
    return {"A": attention(r, n, r.choice(ATTENTION)), "H": H, "X0": X0}


def saturated(r: random.Random) -> dict[str, Any]:
    """Causal attention with a diagonal close to 1."""
    n, d = r.randint(2, 4), r.randint(1, 2)
    rows = [[Fraction(0)] * n for _ in range(n)]
    for i, row in enumerate(rows):
        small = Fraction(1, 10 ** r.randint(1, 20))
        row[i] = 1 - small
        row[0] += small
    return {"A": rows, "H": value(r, d, r.choice(VALUE)), "X0": start(r, n, d)}


def nearly(r: random.Random) -> dict[str, Any]:
    """An X_0 at consensus, or without it, but for 1e-300 at the least."""
    n, d = r.randint(2, 4), r.randint(1, 2)
    small = r.choice([Fraction(0), Fraction(1, 10 ** r.randint(5, 300))])
    first, other = start(r, 1, d)[0], start(r, n, d)
    A = [[Fraction(1, n)] * n] * n if r.random() < 0.3 else attention(r, n, r.choice(ATTENTION))
    turn = r.choice([-1, 1])
    X0 = [[turn**i * x + small * y for x, y in zip(first, other[i], strict=True)] for i in range(n)]
    return {"A": A, "H": value(r, d, r.choice(VALUE)), "X0": X0}


def larger_in_fractions(r: random.Random) -> dict[str, Any]:
    n, d = r.randint(9, 14), r.randint(1, 3)
    A, H = attention(r, n, r.choice(ATTENTION)), value(r, d, r.choice(VALUE))
    return {"A": A, "H": H, "X0": start(r, n, d)}


KINDS = (
    plain, several_classes, slow, jordan, softmax, near_tie, tie, larger, extreme, saturated,
    nearly, larger_in_fractions,
)  # fmt: skip


def refusals(seeds: Iterable[int]) -> list[str]:
    """Why the checker did not accept all that was to be certified, a line for each case."""
    found = []
    for seed in seeds:
        try:
            made = make_certificate(*read_layer(**drawn(seed)))
        except RequirementError as error:
            found.append(f"{seed}: {error}")
            continue
        again = check_certificate(json.dumps(made.body))
        if made.unconfirmed or not again.accepted:
            found.append(f"{seed}: {'; '.join(made.unconfirmed) or again.words}")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given, began = parser.parse_args(), time.perf_counter()
    first = given.seed * 10**6 + given.first
    lines = refusals(range(first, first + given.count))
    print("\n".join(lines))
    print(f"{len(lines)} of {given.count} not accepted whole, {time.perf_counter() - began:.0f} s")
    sys.exit(bool(lines))
