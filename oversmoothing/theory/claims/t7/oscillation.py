"""Oscillation, diameter and Dobrushin's coefficient in fractions."""

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Matrix, draw

Vector = list[Fraction]


def dobrushin(A: Matrix) -> Fraction:
    """tau(A) = max_{i,k} sum_j |A_ij - A_kj| / 2."""
    return max(
        sum((abs(x - y) for x, y in zip(p, q, strict=True)), Fraction(0)) / 2 for p in A for q in A
    )


def oscillation(x: Vector) -> Fraction:
    return max(x) - min(x)


def mean(x: Vector) -> Fraction:
    return sum(x, Fraction(0)) / len(x)


def squared_diameter(X: Matrix) -> Fraction:
    """max ||x_i - x_k||_2^2 over the rows."""
    return max(
        sum(((x - y) ** 2 for x, y in zip(p, q, strict=True)), Fraction(0)) for p in X for q in X
    )


def contraction_to(A: Matrix, tau: Fraction) -> Matrix:
    """A mixed with 11^T/n until tau(A) <= tau; adversarial A need it."""
    found = dobrushin(A)
    if found <= tau:
        return A
    share = tau / found
    return [[share * entry + (1 - share) / len(A) for entry in row] for row in A]


def adversary(x: Vector, kind: int) -> Matrix:
    """Row-stochastic A computed from x: to the largest entry, to the smallest, to one's own
    opposite, or to oneself. The worst cases of the one-step bounds."""
    n = len(x)
    top, bottom = x.index(max(x)), x.index(min(x))
    middle = mean(x)
    target = {
        0: [top] * n,
        1: [bottom] * n,
        2: [bottom if entry >= middle else top for entry in x],
        3: list(range(n)),
        4: [top if entry >= middle else bottom for entry in x],
    }[kind]
    return [[Fraction(int(j == target[i])) for j in range(n)] for i in range(n)]


ADVERSARIES = 5


@st.composite
def rotations(draw_from: st.DrawFn) -> Matrix:
    """A rational rotation [[c, -s], [s, c]] from a Pythagorean triple."""
    t = draw_from(draw.fractions(-3, 3, 6))
    c, s = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    return [[c, -s], [s, c]]
