"""Complex numbers known within an error, in fixed point: integers over 2^bits."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt


@dataclass(frozen=True, slots=True)
class Ball:
    """(re + i im) / 2^bits within error / 2^bits; the error is an integer, rounded up."""

    re: int
    im: int
    error: int
    bits: int

    def __add__(self, other: Ball | int) -> Ball:
        if isinstance(other, int):
            return Ball(self.re + (other << self.bits), self.im, self.error, self.bits)
        error = self.error + other.error
        return Ball(self.re + other.re, self.im + other.im, error, self.bits)

    __radd__ = __add__

    def __neg__(self) -> Ball:
        return Ball(-self.re, -self.im, self.error, self.bits)

    def __sub__(self, other: Ball | int) -> Ball:
        return self + (-other)

    def __mul__(self, other: Ball | int) -> Ball:
        if isinstance(other, int):
            size = abs(other)
            return Ball(self.re * other, self.im * other, self.error * size, self.bits)
        re = (self.re * other.re - self.im * other.im) >> self.bits
        im = (self.re * other.im + self.im * other.re) >> self.bits
        a, b = abs(self.re) + abs(self.im), abs(other.re) + abs(other.im)
        lost = (a + self.error) * other.error + b * self.error
        return Ball(re, im, (lost >> self.bits) + 3, self.bits)

    __rmul__ = __mul__

    @property
    def conjugate(self) -> Ball:
        return Ball(self.re, -self.im, self.error, self.bits)

    @property
    def upper(self) -> int:
        """An integer u with |z| <= u / 2^bits."""
        return isqrt(self.re**2 + self.im**2) + 1 + self.error

    @property
    def lower(self) -> int:
        """An integer l with |z| >= l / 2^bits, at least 0."""
        return max(0, isqrt(self.re**2 + self.im**2) - self.error)


def ball(number: int, bits: int) -> Ball:
    return Ball(number << bits, 0, 0, bits)


def log2_upper(number: int, bits: int) -> float:
    """An upper bound of log2(number / 2^bits), number a positive integer."""
    return number.bit_length() - bits
