"""Polynomials as lists of coefficients from x^0 up, without zeros at the end; [] is 0."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd, lcm

Coefficients = Sequence[int | Fraction]


def trimmed(p: Coefficients) -> list:
    size = len(p)
    while size and not p[size - 1]:
        size -= 1
    return list(p[:size])


def plus(p: Coefficients, q: Coefficients) -> list:
    size = max(len(p), len(q))
    pad = [0] * size
    return trimmed([x + y for x, y in zip([*p, *pad][:size], [*q, *pad][:size], strict=True)])


def times(p: Coefficients, q: Coefficients) -> list:
    if not p or not q:
        return []
    result = [0] * (len(p) + len(q) - 1)
    for i, x in enumerate(p):
        if x:
            for j, y in enumerate(q):
                result[i + j] += x * y
    return result


def scaled(p: Coefficients, factor: int | Fraction) -> list:
    return [factor * x for x in p] if factor else []


def power(p: Coefficients, exponent: int) -> list:
    result: list = [1]
    for _ in range(exponent):
        result = times(result, p)
    return result


def divided(p: Coefficients, q: Coefficients) -> tuple[list, list]:
    """(quotient, remainder); with q monic, integers stay integers."""
    rest, lead = list(p), q[-1]
    quotient = [0] * max(0, len(p) - len(q) + 1)
    for k in range(len(quotient) - 1, -1, -1):
        top = rest[k + len(q) - 1]
        if top:
            c = top if lead == 1 else Fraction(top) / lead
            quotient[k] = c
            for i, y in enumerate(q):
                rest[k + i] -= c * y
    return trimmed(quotient), trimmed(rest)


def derivative(p: Coefficients) -> list:
    return [k * x for k, x in enumerate(p)][1:]


def primitive(p: Coefficients) -> list[int]:
    """The multiple of p (not 0) with coprime integer coefficients and a positive leading one."""
    q = lcm(*(Fraction(x).denominator for x in p))
    whole = [int(x * q) for x in p]
    content = gcd(*whole) * (1 if whole[-1] > 0 else -1)
    return [x // content for x in whole]


def common(p: Coefficients, q: Coefficients) -> list[int]:
    """The greatest common divisor over Q, primitive; [] of two zeros."""
    a, b = trimmed(p), trimmed(q)
    while b:
        a, b = b, divided(a, b)[1]
        b = primitive(b) if b else b
    return primitive(a) if a else []


def inverse(p: Coefficients, modulus: Coefficients) -> list[Fraction]:
    """The u with u p = 1 modulo a polynomial coprime to p, by Euclid's algorithm."""
    r0, r1 = list(modulus), divided(p, modulus)[1]
    u0: list = []
    u1: list = [Fraction(1)]
    while len(r1) > 1:
        quotient, rest = divided(scaled(r0, Fraction(1)), r1)
        r0, r1 = r1, rest
        u0, u1 = u1, plus(u0, scaled(times(quotient, u1), -1))
    assert r1, "not coprime"
    return divided(scaled(u1, 1 / Fraction(r1[0])), modulus)[1]


def value(p: Coefficients, x: int | Fraction) -> int | Fraction:
    result: int | Fraction = 0
    for c in reversed(p):
        result = result * x + c
    return result


def square_free_parts(p: list[int]) -> list[tuple[list[int], int]]:
    """[(q, k)] with p = product of q^k, the q monic, square-free and coprime (p monic, integer)."""
    found = []
    rest = common(p, derivative(p))
    left = divided(p, rest)[0]
    k = 1
    while len(left) > 1:
        both = common(left, rest)
        part = divided(left, both)[0]
        if len(part) > 1:
            found.append((part, k))
        left, rest = both, divided(rest, both)[0]
        k += 1
    return found


def power_sums(p: Sequence[int], count: int) -> list[int]:
    """[sum of the k-th powers of the roots of monic p for k = 0 ... count] (Newton)."""
    degree = len(p) - 1
    sums = [degree]
    for k in range(1, count + 1):
        total = -k * p[degree - k] if k <= degree else 0
        total -= sum(p[degree - i] * sums[k - i] for i in range(1, min(k - 1, degree) + 1))
        sums.append(total)
    return sums


def of_power_sums(sums: Sequence[int]) -> list[int]:
    """The monic integer polynomial with these power sums; its degree is sums[0]."""
    degree = sums[0]
    p = [0] * degree + [1]
    for k in range(1, degree + 1):
        total = -sum(p[degree - i] * sums[k - i] for i in range(k))
        assert total % k == 0
        p[degree - k] = total // k
    return p


def composed_product(p: Sequence[int], q: Sequence[int]) -> list[int]:
    """The monic polynomial whose roots are the products of a root of p and one of q."""
    degree = (len(p) - 1) * (len(q) - 1)
    pairs = zip(power_sums(p, degree), power_sums(q, degree), strict=True)
    return of_power_sums([x * y for x, y in pairs])


def shifted(p: Sequence[int], by: int) -> list[int]:
    """p(x - by): every root larger by `by`."""
    result = list(p)
    for low in range(len(p) - 1):
        for k in range(len(p) - 2, low - 1, -1):
            result[k] -= by * result[k + 1]
    return result
