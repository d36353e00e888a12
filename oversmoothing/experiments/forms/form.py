"""What every parameterisation of H is: a map from free tensors to H [d, d], a region, a guarantee.

H = (W_V W_proj)^T acts on the features of a token: X' = X + A X H^T. A `Form` is a parametrisation
in the sense of `torch.nn.utils.parametrize` (`forward`, `right_inverse`); a `ValueProjection` is
the module that holds the free tensors as its parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from oversmoothing.theory.support.errors import InputError

# Share of a region's width that a start keeps from its ends, where sigmoids have no gradient.
START = 0.05
# Share of a region's width by which an open end stays open in floats, however far training goes.
OPEN = 1e-3
# tolerance = ROUNDING d eps kappa^2 max|h|: forming H and taking its eigenvalues are a few
# backward stable products of side d, and an eigenvalue moves by kappa(V) times their error, which
# is itself kappa(V) eps (Bauer-Fike; kappa = 1 where V is orthogonal).
ROUNDING = 8

Weights = Literal["none", "tied", "untied"]


@dataclass(frozen=True)
class Guarantee:
    """What a form promises of X' = X + A X H^T, one head, without norms, biases and FFN.

    weights: 'tied' where it holds for one H in every layer only, 'untied' where H may change from
    layer to layer, 'none' where nothing is promised. attention: for which. source: the statement.
    """

    says: str
    weights: Weights
    attention: str
    source: str

    def __str__(self) -> str:
        if self.weights == "none":
            return f"no guarantee: {self.says} ({self.source})"
        layers = "one H in every layer" if self.weights == "tied" else "H may differ by layer"
        return f"{self.says}; {layers}; attention: {self.attention} ({self.source})"


@dataclass(frozen=True)
class Inside:
    """Whether H lies in its form's region: status 'inside', 'outside' or 'cannot tell'.

    excess: by how much the farthest eigenvalue (of the disc: the norm of K) lies beyond the
    region's end, negative within. Up to `tolerance`, the rounding of H and of its eigenvalues,
    H counts as inside; 'cannot tell' where that rounding is as wide as the region or not finite.
    """

    status: Literal["inside", "outside", "cannot tell"]
    excess: float
    tolerance: float

    def __bool__(self) -> bool:
        return self.status == "inside"


class Form(nn.Module, ABC):
    """A map from free tensors to H [d, d]; `parts` are their names.

    It computes in float32 at least, autocast or not, and hands H over in the dtype of the free
    tensors. Usable with `torch.nn.utils.parametrize.register_parametrization` on any square weight:
    the weight of nn.Linear(d, d) is H itself, since y = x weight^T.
    """

    parts: ClassVar[tuple[str, ...]] = ("theta", "psi")
    # The real interval [low, high] of the eigenvalues; None for the disc and for free forms.
    interval: tuple[float, float] | None = None

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee: ...

    @abstractmethod
    def product(self, *free: Tensor) -> Tensor:
        """H [d, d] in the dtype of the free tensors, float32 or float64."""

    @abstractmethod
    def nearest(self, H: Tensor) -> tuple[Tensor, ...]:
        """Free tensors whose H is near a float64 matrix [d, d] and within the region."""

    @abstractmethod
    def draw(self, width: int, scale: float, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Free tensors to start from, float32."""

    def forward(self, *free: Tensor) -> Tensor:
        """H [d, d] of the free tensors, in their dtype."""
        wide = [each.to(torch.promote_types(each.dtype, torch.float32)) for each in free]
        with torch.autocast(free[0].device.type, enabled=False):
            return self.product(*wide).to(free[0].dtype)

    @torch.no_grad()
    def right_inverse(self, H: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The free tensors of the region's point near H [d, d] (`nearest`), in the dtype of H.

        Raises `InputError` for what is not a square matrix of finite numbers.
        """
        if H.ndim != 2 or H.shape[0] != H.shape[1] or not H.numel():
            raise InputError(f"H must be a square matrix, [d, d]; this one is {list(H.shape)}")
        if not bool(torch.isfinite(H).all()):
            raise InputError("H holds NaN or infinite entries: the weights it comes from diverged")
        free = tuple(each.to(H).contiguous() for each in self.nearest(H.double()))
        return free if len(free) > 1 else free[0]

    @torch.no_grad()
    def inside(self, H: Tensor, condition: float = 1.0) -> Inside:
        """Whether H [d, d] lies in the region; condition: kappa(V) of its eigenvectors."""
        if not bool(torch.isfinite(H).all()):
            return Inside("cannot tell", float("nan"), float("inf"))
        reach, width, excess = self._excess(H.double().cpu())
        tolerance = ROUNDING * len(H) * torch.finfo(H.dtype).eps * condition**2 * reach
        if not tolerance < width:
            return Inside("cannot tell", excess, tolerance)
        return Inside("inside" if excess <= tolerance else "outside", excess, tolerance)

    def _excess(self, H: Tensor) -> tuple[float, float, float]:
        """(the largest |h| the rounding is relative to, width of the region, excess)."""
        assert self.interval is not None
        low, high = self.interval
        h = torch.linalg.eigvals(H)
        beyond = torch.maximum(h.real - high, low - h.real).clamp(min=0)
        within = float(torch.maximum(h.real - high, low - h.real).max())
        excess = float(torch.hypot(beyond, h.imag).max())
        # Rounding is relative to what was summed: at least to the region's own end, if finite.
        ends = [abs(end) for end in self.interval if end not in (float("inf"), -float("inf"))]
        reach = max([float(torch.linalg.matrix_norm(H, 2)), *ends])
        return reach, high - low, excess if excess > 0 else within

    def condition(self, *free: Tensor) -> float:
        """kappa(V) of the eigenvectors V of H; 1 where they are orthonormal or not used."""
        return 1.0


class ValueProjection(nn.Module):
    """H as a module with the parameters of its form; `forward()` gives H [d, d] in their dtype."""

    def __init__(self, form: Form, width: int) -> None:
        super().__init__()
        self.form = form
        for name in form.parts:
            # psi [d] are the eigenvalues' parameters; every other part is a matrix.
            shape = (width,) if name == "psi" else (width, width)
            setattr(self, name, nn.Parameter(torch.empty(shape)))

    def free(self) -> tuple[Tensor, ...]:
        """The parameters, in the order in which the form takes them."""
        return tuple(getattr(self, name) for name in self.form.parts)

    def forward(self) -> Tensor:
        """H [d, d] in the parameters' dtype."""
        H: Tensor = self.form(*self.free())
        return H

    @torch.no_grad()
    def initialise(self, scale: float, generator: torch.Generator) -> None:
        """Draw the parameters, eigenvalues within about `scale` of 0 where no region says other."""
        width = self.free()[0].shape[-1]
        self._set(self.form.draw(width, scale, generator))

    @torch.no_grad()
    def start_at(self, H: Tensor) -> None:
        """Take the point of the region that is near H [d, d] (`Form.nearest`)."""
        free = self.form.right_inverse(H)
        self._set(free if isinstance(free, tuple) else (free,))

    @torch.no_grad()
    def in_float64(self) -> Tensor:
        """H formed in float64 from the parameters, on their device."""
        H: Tensor = self.form(*(each.double() for each in self.free()))
        return H

    @torch.no_grad()
    def inside(self) -> Inside:
        """Whether H, as the parameters give it in their dtype, lies in the form's region."""
        return self.form.inside(self(), self.form.condition(*self.free()))

    def _set(self, values: Sequence[Tensor]) -> None:
        for mine, value in zip(self.free(), values, strict=True):
            if mine.shape != value.shape:
                raise InputError(
                    f"H is {list(value.shape)} and the module's {list(mine.shape)}: build the "
                    "module with the width of H"
                )
            mine.copy_(value)


def orthogonal_factor(theta: Tensor) -> Tensor:
    """Q of theta = QR, R with a positive diagonal: the one smooth choice, [..., d, m] -> the same.

    LAPACK's Q carries signs that jump as theta moves; fixing them makes Q a smooth function of
    every theta of full rank. On a card, where Householder's QR takes the matrices of a stack one by
    one, R comes from Cholesky's factors of theta^T theta in float64 (`cholesky_factor`).
    """
    if theta.is_cuda:
        return cholesky_factor(theta)
    q, r = torch.linalg.qr(theta)
    negative = r.diagonal(dim1=-2, dim2=-1) < 0
    fixed: Tensor = q * torch.where(negative, -1.0, 1.0).to(q)[..., None, :]
    return fixed


def cholesky_factor(theta: Tensor) -> Tensor:
    """The same Q by theta^T theta = R^T R in float64: to some eps cond(theta)^2 where QR gives eps.

    NaN where theta^T theta is not positive definite in float64.
    """
    wide = theta.double()
    R, _ = torch.linalg.cholesky_ex(wide.mT @ wide, upper=True)
    Q: Tensor = torch.linalg.solve_triangular(R, wide, upper=True, left=False)
    return Q.to(theta.dtype)


def symmetric(q: Tensor, eigenvalues: Tensor) -> Tensor:
    """Q diag(eigenvalues) Q^T, exactly symmetric."""
    h = (q * eigenvalues) @ q.mT
    # The rounded product is not symmetric; the mean with its transpose is, exactly.
    return (h + h.mT) / 2


def spectrum_within(H: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """(eigenvectors [d, d], eigenvalues [d]) of the symmetric matrix with spectrum in [low, high]
    that is nearest to H: its symmetric part with clipped eigenvalues (in the Frobenius norm)."""
    values, vectors = torch.linalg.eigh((H + H.mT) / 2)
    return vectors, values.clamp(low, high)
