"""The forms of H by name (`FORMS`): the region of its spectrum and what each promises.

free: no guarantee; plus, minus: of arXiv 2401.04301 v1; clip-..., sigmoid-...: of its v3; disc:
T3c; interval: T3b, measured; band: T7b, the one for weights that differ by layer.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from oversmoothing.experiments.forms.form import (
    OPEN,
    START,
    Form,
    Guarantee,
    ValueProjection,
    orthogonal_factor,
    spectrum_within,
    symmetric,
)
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.support.errors import InputError, whole_number
from oversmoothing.theory.verdict.formulas import safe_interval


class Free(Form):
    """The ordinary model: H = weight [d, d], and nothing is promised."""

    parts = ("weight",)
    guarantee = Guarantee("H is any matrix", "none", "none", "T2d, T3 decide case by case")

    def product(self, *free: Tensor) -> Tensor:
        return free[0]

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        return (H.clone(),)

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The spectrum of H lies within about `scale` of zero."""
        # A Gaussian matrix of variance scale^2 / d fills the disc of radius `scale` (circular law).
        return (torch.randn(width, width, generator=generator) * (scale / width**0.5),)

    def _excess(self, H: Tensor) -> tuple[float, float, float]:
        return 1.0, float("inf"), -float("inf")


class Signed(Form):
    """ViT+ and ViT- of arXiv 2401.04301 (first version): H = Q diag(+-psi^2) Q^T, Q = QR(Theta).

    psi^2 is not bounded above, and -psi^2 < -1 may smooth (T2b), so that ViT- is no guarantee by
    itself: the experiments count where it leaves the safe interval, nothing is clipped.
    """

    def __init__(self, sign: Literal[-1, 1]) -> None:
        super().__init__()
        self.sign = sign
        self.interval = (0.0, float("inf")) if sign > 0 else (-float("inf"), 0.0)

    @property
    def guarantee(self) -> Guarantee:
        if self.sign > 0:
            says = "HFC/LFC -> 0 for generic X_0 where some psi is not 0: SMOOTHING"
            return Guarantee(says, "tied", "every fixed positive A", "T2b, T3")
        says = (
            "-psi^2 is not bounded below: with one h it smooths below -1 under some attention, "
            "below -2 / (1 + a_1) under this one; the log of a training shows it (outside_share)"
        )
        return Guarantee(says, "none", "none", "T2b")

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        return symmetric(orthogonal_factor(theta), self.sign * psi.square())

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest symmetric matrix of this sign, no psi at 0, where it has no gradient."""
        vectors, values = spectrum_within(self.sign * H, -float("inf"), float("inf"))
        floor = START * float(values.abs().max()) or START
        return vectors, values.clamp(min=floor).sqrt()

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """psi^2 is uniform in [scale / 10, scale]: training is unstable when |eigenvalues| start
        too large, and psi = 0 has no gradient."""
        theta = torch.randn(width, width, generator=generator)
        uniform = torch.rand(width, generator=generator)
        return theta, (scale * (0.1 + 0.9 * uniform)).sqrt()


_UNTIED = (
    "not for weights that change by layer (the rotating weights of T7b smooth with every "
    "spectrum in [-1, 0])"
)


class Clipped(Form):
    """H = V diag(clip(psi, low, high)) V^-1, [low, high] = [-1, 0] (sharpening) or [0, 1]: of
    arXiv 2401.04301 (third version).

    V is any invertible matrix: H need not be symmetric. Outside the interval clip has no gradient:
    a psi that starts or steps there stays there for ever, but for the optimiser's momentum.
    """

    # Whether no eigenvalue is 0.
    strict = False

    def __init__(self, sign: Literal[-1, 1]) -> None:
        super().__init__()
        self.sign = sign
        self.interval = (0.0, 1.0) if sign > 0 else (-1.0, 0.0)

    @property
    def guarantee(self) -> Guarantee:
        if self.sign > 0:
            zero = "" if self.strict else " where some psi > 0"
            rest = "" if self.strict else " (at psi <= 0 throughout, H = 0)"
            says = f"HFC/LFC -> 0 for generic X_0{zero}: SMOOTHING{rest}"
            return Guarantee(says, "tied", "every fixed positive A", "T2b, T3")
        tie = "" if self.strict else ", or where some eigenvalue is 0 a TIE"
        says = f"HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING{tie}; {_UNTIED}"
        return Guarantee(says, "tied", "every fixed positive A", "T2e, T3d")

    def eigenvalues(self, psi: Tensor) -> Tensor:
        """clip(psi) [d]."""
        assert self.interval is not None
        return psi.clamp(*self.interval)

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        # V D V^-1 = (V^-T (V D)^T)^T: one solve, no inverse.
        H: Tensor = torch.linalg.solve(theta.mT, (theta * self.eigenvalues(psi)).mT).mT
        return H

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest symmetric matrix with its spectrum inside, START from the ends."""
        assert self.interval is not None
        low, high = self.interval
        vectors, values = spectrum_within(H, low + START, high - START)
        return vectors, self.inverse(values)

    def inverse(self, eigenvalues: Tensor) -> Tensor:
        """psi of eigenvalues inside the interval."""
        return eigenvalues

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """V orthogonal, |eigenvalues| uniform in [scale / 10, scale], within the interval."""
        V = orthogonal_factor(torch.randn(width, width, generator=generator))
        size = scale * (0.1 + 0.9 * torch.rand(width, generator=generator))
        return V, self.inverse(self.sign * size.clamp(START, 1 - START))

    def condition(self, *free: Tensor) -> float:
        return float(torch.linalg.cond(free[0].detach().double()))


class Sigmoid(Clipped):
    """H = V diag(+-(m + (1 - m) sigmoid(psi))) V^-1 with m = `OPEN`: the same spectra without the
    dead zone, and without the end 0, where strictness is lost (T2e)."""

    strict = True

    def eigenvalues(self, psi: Tensor) -> Tensor:
        """+-(m + (1 - m) sigmoid(psi)) [d]."""
        return self.sign * (OPEN + (1 - OPEN) * psi.sigmoid())

    def inverse(self, eigenvalues: Tensor) -> Tensor:
        return torch.logit((self.sign * eigenvalues - OPEN) / (1 - OPEN))


class Disc(Form):
    """H = -(I - K)/2, ||K||_2 < 1 (T3c): every eigenvalue in |h + 1/2| < 1/2, complex ones too.

    [core; I] = [Q_1; Q_2] R (QR) and K = (1 - m) Q_1, m = `OPEN`. Since Q_1^T Q_1 = I - (R R^T)^-1,
    ||K||_2 < 1 - m for every core, and every such K is reached by exactly one core, smoothly.
    """

    parts = ("core",)
    guarantee = Guarantee(
        "HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING; not for weights that change by "
        "layer (T7b)",
        "tied", "every fixed positive A", "T3c",
    )  # fmt: skip

    def product(self, *free: Tensor) -> Tensor:
        (core,) = free
        identity = torch.eye(len(core), dtype=core.dtype, device=core.device)
        K = (1 - OPEN) * orthogonal_factor(torch.cat([core, identity]))[: len(core)]
        return (K - identity) / 2

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest H whose K has no singular value above 1 - `START`."""
        identity = torch.eye(len(H), dtype=H.dtype, device=H.device)
        U, sigma, Vt = torch.linalg.svd(identity + 2 * H)
        K = (U * sigma.clamp(max=1 - START)) @ Vt / (1 - OPEN)
        # R R^T = (I - K^T K)^-1 with R upper triangular: Cholesky with rows and columns in the
        # other order.
        gram = torch.linalg.inv(identity - K.mT @ K)
        R = torch.linalg.cholesky(gram.flip(0, 1)).flip(0, 1)
        return (K @ R,)

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Eigenvalues around -1/2, within about a quarter; `scale` is not used: the disc is."""
        return (torch.randn(width, width, generator=generator) * (0.5 / width**0.5),)

    def _excess(self, H: Tensor) -> tuple[float, float, float]:
        norm = float(torch.linalg.matrix_norm(torch.eye(len(H), dtype=H.dtype) + 2 * H, 2))
        return max(1.0, norm), 1.0, norm - 1


class MeasuredInterval(Form):
    """H = Q diag(-s (m + (1 - 2m) sigmoid(psi))) Q^T, m = `OPEN`: spectrum within (-s, 0).

    A real h loses at consensus under A iff -s < h < 0, s = max over i < n of 2 (1 - Re a_i) / (1 -
    |a_i|^2) >= 1 (T3b; real spectra: 2 / (1 + a_1)). The guarantee is for the attention that was
    measured, and for no other. s is a buffer, 1 until then: [-1, 0) is always safe (T2d).
    """

    s: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("s", torch.ones((), dtype=torch.float64))

    @property
    def interval(self) -> tuple[float, float]:  # type: ignore[override]
        return -float(self.s), 0.0

    @property
    def guarantee(self) -> Guarantee:
        says = "HFC/LFC does not tend to 0 for generic X_0: NON_SMOOTHING"
        attention = f"that which was measured, held fixed (s = {float(self.s):.6g})"
        return Guarantee(says, "tied", attention, "T3b, T2d")

    @torch.no_grad()
    def refresh(self, *attention: ArrayLike) -> float:
        """Take the smallest s of attention matrices [n, n], row-stochastic; H moves in proportion.
        Returns s. Raises `InputError` for no matrix, a single token, and where no s is finite."""
        return self.set_interval(self.measured(*attention))

    def measured(self, *attention: ArrayLike) -> float:
        """The smallest s of attention matrices [n, n]; 0 for none."""
        safe = [safe_interval(attention_spectrum(np.asarray(A))) for A in attention]
        return min(safe, default=0.0)

    @torch.no_grad()
    def set_interval(self, s: float) -> float:
        """Set s itself, the smallest that was measured; returns it."""
        if not (math.isfinite(s) and s > 0):
            raise InputError(
                f"no finite interval (-s, 0) was measured (s = {s}): give attention over at least "
                "two tokens whose eigenvalues other than 1 lie inside the unit circle"
            )
        # Rounding of the eigenvalues must not put an end of (-s, 0) outside.
        self.s.fill_(s * (1 - 2**-40))
        return float(self.s)

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        share = OPEN + (1 - 2 * OPEN) * psi.sigmoid()
        return symmetric(orthogonal_factor(theta), -self.s.to(psi) * share)

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        s = float(self.s)
        vectors, values = spectrum_within(H, -s * (1 - START), -s * START)
        return vectors, torch.logit((-values / s - OPEN) / (1 - 2 * OPEN))

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """|eigenvalues| uniform in [scale / 10, scale], within the interval."""
        theta = torch.randn(width, width, generator=generator)
        size = scale * (0.1 + 0.9 * torch.rand(width, generator=generator)) / float(self.s)
        return theta, torch.logit((size.clamp(START, 1 - START) - OPEN) / (1 - 2 * OPEN))


class Band(Form):
    """H = Q diag(-(p + (q - p) sigmoid(psi))) Q^T, Q = QR(Theta): spectrum in [-q, -p], q <= 1.

    T7b's, the one form whose guarantee stands when weights differ by layer and attention is
    computed from the state (`lasting_bound`).
    """

    def __init__(self, p: float = 0.5, q: float = 1.0) -> None:
        super().__init__()
        if not 0 < p < q <= 1:
            raise InputError(
                f"p = {p} and q = {q}: the band [-q, -p] needs 0 < p < q <= 1 (T7b; without "
                "q <= 1 it is false)"
            )
        self.p, self.q = float(p), float(q)
        self.interval = (-self.q, -self.p)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(
            "HFC/LFC >= min(1/u_0, (p - tau q)/q) / sqrt(2n) after every layer, u_0 = ||mean||_2 / "
            "diameter of the tokens at the start, for every X_0 whose tokens are not all equal; "
            f"void where tau reaches p/q = {self.p / self.q:.6g}",
            "untied",
            "any, computed from the state too, with Dobrushin coefficient <= tau < "
            f"p/q = {self.p / self.q:.6g}",
            "T7b",
        )

    def product(self, *free: Tensor) -> Tensor:
        theta, psi = free
        return symmetric(orthogonal_factor(theta), -(self.p + (self.q - self.p) * psi.sigmoid()))

    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """The nearest symmetric matrix with its spectrum in the band, START from the ends."""
        width = self.q - self.p
        vectors, values = spectrum_within(H, -self.q + START * width, -self.p - START * width)
        return vectors, torch.logit((-values - self.p) / width)

    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Eigenvalues uniform in the band, START from its ends; `scale` is not used."""
        theta = torch.randn(width, width, generator=generator)
        uniform = torch.rand(width, generator=generator)
        return theta, torch.logit(START + (1 - 2 * START) * uniform)


FORMS: dict[str, Callable[..., Form]] = {
    "free": Free,
    "plus": partial(Signed, +1), "minus": partial(Signed, -1),
    "clip-plus": partial(Clipped, +1), "clip-minus": partial(Clipped, -1),
    "sigmoid-plus": partial(Sigmoid, +1), "sigmoid-minus": partial(Sigmoid, -1),
    "disc": Disc, "interval": MeasuredInterval, "band": Band,
}  # fmt: skip
OPTIONS = {"band": ("p", "q")}


def parameterisation(name: str, **options: Any) -> Form:
    """The form of H by its name, for `torch.nn.utils.parametrize.register_parametrization`.

    options: p and q of the band. `.guarantee` says what is promised, for which weights and which
    attention, by which statement; `.inside(H)` whether an H lies in its region.

        layer = nn.Linear(4, 4, bias=False)  # its weight is H
        form = oversmoothing.parameterisation("band", p=0.6)
        parametrize.register_parametrization(layer, "weight", form)

    Raises `InputError` for an unknown form or option.

    >>> import torch, oversmoothing
    >>> layer = torch.nn.Linear(4, 4, bias=False)
    >>> form = oversmoothing.parameterisation("disc")
    >>> _ = torch.nn.utils.parametrize.register_parametrization(layer, "weight", form)
    >>> bool(form.inside(layer.weight))
    True
    """
    if not isinstance(name, str) or name not in FORMS:
        raise InputError(f"unknown form of H {name!r}: choose one of {', '.join(FORMS)}")
    taken = OPTIONS.get(name, ())
    for option in options:
        if option not in taken:
            known = f"it takes {', '.join(taken)}" if taken else "it takes none"
            raise InputError(f"the form '{name}' has no option '{option}': {known}")
    return FORMS[name](**options)


def value_projection(form: str, width: int, **options: Any) -> ValueProjection:
    """H [width, width] as a module: `forward()` gives H, `inside()` says whether it lies in its
    region. Its parameters are not drawn yet: `initialise` draws them, `start_at` takes an H.

    Raises `InputError` for an unknown form or option, and a width that is none.

    >>> import torch, oversmoothing
    >>> H = oversmoothing.value_projection("plus", 4)
    >>> H.initialise(0.5, torch.Generator().manual_seed(0))
    >>> H().shape, bool(H.inside())
    (torch.Size([4, 4]), True)
    """
    return ValueProjection(parameterisation(form, **options), whole_number("width", width, 1))
