"""Irreducible factors over the integers: modulo a prime, lifted, put together (Zassenhaus 1969).

That the factors are irreducible is as certain as that their product is the polynomial: lifted past
twice the bound of Mignotte, a true factor is the product of some of the lifted ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import isqrt
from random import Random

from .polynomials import divided, square_free_parts, times, trimmed

_PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
# How many primes are tried for one that leaves few factors.
_TRIALS = 5


@lru_cache(maxsize=4096)
def factors(p: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], int], ...]:
    """((q, k), ...) with p = product of q^k, the q monic irreducible (p monic, integer)."""
    found = []
    for part, k in square_free_parts(list(p)):
        found += [(tuple(q), k) for q in _square_free(part)]
    return tuple(sorted(found))


def _square_free(p: list[int]) -> list[list[int]]:
    if len(p) <= 2:
        return [p]
    if not p[0]:
        return [[0, 1], *_square_free(p[1:])]
    if len(p) == 3:
        inside = p[1] ** 2 - 4 * p[0]
        root = isqrt(inside) if inside >= 0 else -1
        if root * root != inside:
            return [p]
        return [[(p[1] - root) // 2, 1], [(p[1] + root) // 2, 1]]
    best: tuple[int, list[list[int]]] | None = None
    trials = 0
    for prime in _primes():
        reduced = _mod(p, prime)
        if len(_gcd(reduced, _derivative(reduced, prime), prime)) > 1:
            continue
        parts = _modulo_prime(reduced, prime)
        if best is None or len(parts) < len(best[1]):
            best = prime, parts
        trials += 1
        if len(parts) == 1:
            return [p]
        if trials == _TRIALS:
            break
    assert best is not None
    return _recombined(p, *best)


def _primes():
    yield from _PRIMES
    k = 101
    while True:
        if all(k % q for q in range(3, isqrt(k) + 1, 2)):
            yield k
        k += 2


def _recombined(p: list[int], prime: int, parts: list[list[int]]) -> list[list[int]]:
    degree = len(p) - 1
    bound = 2 ** (degree + 1) * (isqrt(sum(x * x for x in p)) + 1)
    modulus = prime
    while modulus <= 2 * bound:
        modulus *= modulus
    lifted = _lift(p, parts, prime, modulus)
    found, rest, size = [], p, 1
    while 2 * size <= len(lifted):
        for chosen in combinations(range(len(lifted)), size):
            trial = [1]
            for i in chosen:
                trial = _mod(times(trial, lifted[i]), modulus)
            trial = [x - modulus if 2 * x > modulus else x for x in trial]
            quotient, remainder = divided(rest, trial)
            if not remainder:
                found.append(trial)
                rest = quotient
                lifted = [q for i, q in enumerate(lifted) if i not in chosen]
                break
        else:
            size += 1
    return [*found, rest] if len(rest) > 1 else found


def _lift(p: list[int], parts: list[list[int]], prime: int, modulus: int) -> list[list[int]]:
    """The factors of monic p modulo the last of prime^(2^k), from those modulo the prime."""
    if len(parts) == 1:
        return [_mod(p, modulus)]
    half = len(parts) // 2
    g, h = [1], [1]
    for q in parts[:half]:
        g = _mod(times(g, q), prime)
    for q in parts[half:]:
        h = _mod(times(h, q), prime)
    s, t = _bezout(g, h, prime)
    m = prime
    while m < modulus:
        m *= m
        # Quadratic Hensel step (von zur Gathen and Gerhard, Algorithm 15.10).
        e = _mod(_minus(p, times(g, h)), m)
        quotient, rest = _divmod(_mod(times(s, e), m), h, m)
        g = _mod(_plus(g, _plus(times(t, e), times(quotient, g))), m)
        h = _mod(_plus(h, rest), m)
        b = _mod(_minus(_plus(times(s, g), times(t, h)), [1]), m)
        quotient, rest = _divmod(_mod(times(s, b), m), h, m)
        s = _mod(_minus(s, rest), m)
        t = _mod(_minus(t, _plus(times(t, b), times(quotient, g))), m)
    return _lift(g, parts[:half], prime, modulus) + _lift(h, parts[half:], prime, modulus)


def _modulo_prime(p: list[int], prime: int) -> list[list[int]]:
    """Monic irreducible factors of a monic square-free p modulo an odd prime."""
    found: list[list[int]] = []
    random = Random(len(p))
    rest, degree, frobenius = p, 0, [0, 1]
    while 2 * (degree + 1) <= len(rest) - 1:
        degree += 1
        frobenius = _power(frobenius, prime, rest, prime)
        together = _gcd(_mod(_minus(frobenius, [0, 1]), prime), rest, prime)
        if len(together) > 1:
            found += _equal_degree(together, degree, prime, random)
            rest = _divmod(rest, together, prime)[0]
            frobenius = _divmod(frobenius, rest, prime)[1]
    if len(rest) > 1:
        found.append(rest)
    return found


def _equal_degree(p: list[int], degree: int, prime: int, random: Random) -> list[list[int]]:
    if len(p) - 1 == degree:
        return [p]
    while True:
        draw = trimmed([random.randrange(prime) for _ in range(len(p) - 1)])
        if not draw:
            continue
        half = _power(draw, (prime**degree - 1) // 2, p, prime)
        part = _gcd(_mod(_minus(half, [1]), prime), p, prime)
        if 1 < len(part) < len(p):
            other = _divmod(p, part, prime)[0]
            return _equal_degree(part, degree, prime, random) + _equal_degree(
                other, degree, prime, random
            )


def _mod(p: Sequence[int], m: int) -> list[int]:
    return trimmed([x % m for x in p])


def _plus(p: Sequence[int], q: Sequence[int]) -> list[int]:
    size = max(len(p), len(q))
    return [(p[i] if i < len(p) else 0) + (q[i] if i < len(q) else 0) for i in range(size)]


def _minus(p: Sequence[int], q: Sequence[int]) -> list[int]:
    return _plus(p, [-x for x in q])


def _derivative(p: Sequence[int], prime: int) -> list[int]:
    return _mod([k * x for k, x in enumerate(p)][1:], prime)


def _divmod(p: Sequence[int], q: Sequence[int], m: int) -> tuple[list[int], list[int]]:
    """By monic q modulo m."""
    rest = list(p)
    quotient = [0] * max(0, len(p) - len(q) + 1)
    for k in range(len(quotient) - 1, -1, -1):
        c = rest[k + len(q) - 1] % m
        quotient[k] = c
        if c:
            for i, y in enumerate(q):
                rest[k + i] -= c * y
    return _mod(quotient, m), _mod(rest[: len(q) - 1], m)


def _monic(p: list[int], prime: int) -> list[int]:
    return _mod([x * pow(p[-1], -1, prime) for x in p], prime)


def _gcd(p: list[int], q: list[int], prime: int) -> list[int]:
    while q:
        q = _monic(q, prime)
        p, q = q, _divmod(p, q, prime)[1]
    return _monic(p, prime)


def _bezout(g: list[int], h: list[int], prime: int) -> tuple[list[int], list[int]]:
    """s, t with s g + t h = 1 modulo the prime."""
    r0, r1, s0, s1, t0, t1 = g, h, [1], [], [], [1]
    while r1:
        unit = pow(r1[-1], -1, prime)
        r1, s1, t1 = ([x * unit % prime for x in u] for u in (r1, s1, t1))
        quotient, rest = _divmod(r0, r1, prime)
        r0, r1 = r1, rest
        s0, s1 = s1, _mod(_minus(s0, times(quotient, s1)), prime)
        t0, t1 = t1, _mod(_minus(t0, times(quotient, t1)), prime)
    unit = pow(r0[-1], -1, prime)
    return [x * unit % prime for x in s0], [x * unit % prime for x in t0]


def _power(p: list[int], exponent: int, modulo: list[int], prime: int) -> list[int]:
    result, base = [1], _divmod(p, modulo, prime)[1]
    while exponent:
        if exponent & 1:
            result = _divmod(times(result, base), modulo, prime)[1]
        base = _divmod(times(base, base), modulo, prime)[1]
        exponent >>= 1
    return result
