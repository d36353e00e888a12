"""Matrices H = W^T = (W_V W_proj)^T to simulate with, drawn from an explicit generator.

A generator is a model with its options as fields; `draw` gives float64 [d, d].
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

import numpy as np
from jaxtyping import Float64
from pydantic import Field
from scipy.linalg import block_diag

from oversmoothing.simulations.generators.options import Options
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

BasisName = Literal["orthogonal", "general"]
BASES: tuple[str, ...] = get_args(BasisName)
Basis = Annotated[BasisName, Field(description="eigenvectors of H")]
Scale = Annotated[float, Field(ge=0, description="size of H")]


def random_orthogonal(d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
    """A Haar-distributed orthogonal matrix [d, d]."""
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def random_basis(d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
    """A matrix [d, d] with condition number 4 and random singular vectors."""
    stretch = np.geomspace(0.5, 2.0, d)
    return (random_orthogonal(d, rng=rng) * stretch) @ random_orthogonal(d, rng=rng)


def chosen_spectrum(
    d: int, *, rng: np.random.Generator, eigenvalues: Sequence[complex], basis: str = "orthogonal"
) -> Float64[Array, "{d} {d}"]:
    """H [d, d] with these d eigenvalues, real or in complex conjugate pairs, in a random basis.

    basis 'orthogonal' makes H normal, 'general' has condition number 4. Raises `InputError` for a
    list of another length or without its conjugates.
    """
    if len(eigenvalues) != d:
        raise InputError(f"{len(eigenvalues)} eigenvalues do not fit d = {d}: give exactly d")
    return _conjugate(real_form(eigenvalues), basis, rng)


def real_form(eigenvalues: Sequence[complex]) -> Float64[Array, "d d"]:
    """A block-diagonal real matrix with these eigenvalues: [[x, y], [-y, x]] for a pair x +- iy.

    Raises `InputError` unless the non-real ones come in conjugate pairs and all are finite.
    """
    values = [complex(h) for h in eigenvalues]
    if not np.isfinite(values).all():
        raise InputError("eigenvalues must be finite")
    alone = Counter(values)
    alone.subtract(h.conjugate() for h in values)
    for h in +alone:
        raise InputError(f"the eigenvalue {h} of a real H needs its conjugate in the list")
    blocks = [[[h.real, h.imag], [-h.imag, h.real]] if h.imag else [[h.real]]
              for h in values if h.imag >= 0]  # fmt: skip
    return np.asarray(block_diag(*blocks, np.empty((0, 0))))


def _conjugate(D: Array, basis: str, rng: np.random.Generator) -> Array:
    if basis not in BASES:
        raise InputError(f"basis must be one of {', '.join(BASES)}, not '{basis}'")
    d = len(D)
    if basis == "orthogonal":
        U = random_orthogonal(d, rng=rng)
        return U @ D @ U.T
    V = random_basis(d, rng=rng)
    return np.asarray(np.linalg.solve(V.T, (V @ D).T).T, dtype=np.float64)


class ValueGenerator(Options):
    """How H is drawn."""

    def draw(self, d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
        """H [d, d]. Raises `InputError` for sizes that do not fit."""
        raise NotImplementedError


class _Chosen(ValueGenerator):
    """H with a chosen spectrum."""

    basis: Basis = "orthogonal"

    def spectrum(self, d: int, rng: np.random.Generator) -> Sequence[complex]:
        """The d eigenvalues."""
        raise NotImplementedError

    def draw(self, d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
        return chosen_spectrum(d, rng=rng, eigenvalues=self.spectrum(d, rng), basis=self.basis)


class Spectrum(_Chosen):
    """These eigenvalues, conjugates included."""

    eigenvalues: tuple[Annotated[complex, Field(strict=False)], ...] = Field(
        strict=False, description="all d of them, with conjugates (--eigenvalues=-0.9,-0.5)"
    )

    def spectrum(self, d: int, rng: np.random.Generator) -> Sequence[complex]:
        return self.eigenvalues


class Interval(_Chosen):
    """Real eigenvalues, uniform in [low, high]."""

    low: float = Field(default=-1.0, description="lower end of the eigenvalues of H")
    high: float = Field(default=0.0, description="upper end of the eigenvalues of H")

    def spectrum(self, d: int, rng: np.random.Generator) -> Sequence[complex]:
        if self.low > self.high:
            raise InputError(f"low = {self.low} exceeds high = {self.high}: the interval is empty")
        return [complex(h) for h in rng.uniform(self.low, self.high, d)]


class Disc(_Chosen):
    """Conjugate pairs uniform in the disc; for odd d one more, uniform on its diameter."""

    centre: float = Field(default=0.0, description="centre of the disc of eigenvalues")
    radius: float = Field(default=1.0, ge=0, description="radius of that disc")

    def spectrum(self, d: int, rng: np.random.Generator) -> Sequence[complex]:
        size = self.radius * np.sqrt(rng.uniform(size=d // 2))
        angle = rng.uniform(0.0, math.pi, d // 2)
        upper = self.centre + size * np.exp(1j * angle)
        values = [h for one in upper.tolist() for h in (one, one.conjugate())]
        if d % 2:
            values.append(complex(self.centre + self.radius * rng.uniform(-1.0, 1.0)))
        return values


class PlusMinus(_Chosen):
    """+scale for the nearest whole number to positive * d of the eigenvalues, else -scale."""

    positive: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="share of the eigenvalues +scale, the others are -scale",
    )
    scale: Scale = 1.0

    def spectrum(self, d: int, rng: np.random.Generator) -> Sequence[complex]:
        plus = round(self.positive * d)
        return [complex(self.scale)] * plus + [complex(-self.scale)] * (d - plus)


class Goe(ValueGenerator):
    """Symmetric Gaussian; for large d the spectrum fills [-2 scale, 2 scale]."""

    scale: Scale = 1.0

    def draw(self, d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
        G = rng.standard_normal((d, d))
        return self.scale * (G + G.T) / math.sqrt(2 * d)


class Ginibre(ValueGenerator):
    """Entries N(0, scale^2 / d); for large d the spectrum fills |h| <= scale."""

    scale: Scale = 1.0

    def draw(self, d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
        return self.scale * rng.standard_normal((d, d)) / math.sqrt(d)


class LowRank(ValueGenerator):
    """H = (W_V W_proj)^T of one head, the entries of its factors N(0, scale / d).

    For large d the non-zero spectrum fills |h| <= scale sqrt(rank / d).
    """

    scale: Scale = 1.0
    rank: int = Field(default=1, ge=1, description="rank of a head")

    def factors(
        self, d: int, *, rng: np.random.Generator
    ) -> tuple[Float64[Array, "{d} rank"], Float64[Array, "rank {d}"]]:
        """(W_V [d, rank], W_proj [rank, d]). Raises `InputError` for a rank above d."""
        if self.rank > d:
            raise InputError(f"rank must lie between 1 and d = {d}, not {self.rank}")
        size = math.sqrt(self.scale / d)
        W_V = rng.standard_normal((d, self.rank)) * size
        return W_V, rng.standard_normal((self.rank, d)) * size

    def draw(self, d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
        W_V, W_proj = self.factors(d, rng=rng)
        return (W_V @ W_proj).T


class Defective(ValueGenerator):
    """One eigenvalue and one Jordan block of that size (d unless given), T6.

    The other d - size blocks are 1 x 1. Raises `InputError` unless 2 <= size <= d.
    """

    eigenvalue: float = Field(default=-0.5, description="the one eigenvalue")
    size: int | None = Field(default=None, ge=2, description="size of the Jordan block")
    basis: Basis = "orthogonal"

    def draw(self, d: int, *, rng: np.random.Generator) -> Float64[Array, "{d} {d}"]:
        size = d if self.size is None else self.size
        if not 2 <= size <= d:
            raise InputError(f"the Jordan block must have a size between 2 and d = {d}, not {size}")
        J: Array = np.diag(np.full(d, self.eigenvalue))
        J[np.arange(size - 1), np.arange(1, size)] = 1.0
        return _conjugate(J, self.basis, rng)


VALUE_PROJECTION: dict[str, type[ValueGenerator]] = {
    "spectrum": Spectrum, "interval": Interval, "disc": Disc, "plus_minus": PlusMinus, "goe": Goe,
    "ginibre": Ginibre, "low_rank": LowRank, "defective": Defective,
}  # fmt: skip
