"""Remedies that act on the residual stream: on what is read from it, added to it, or left of it."""

import math

import torch
from torch import Tensor, nn

from oversmoothing.experiments.remedies.remedy import (
    AT_CONSENSUS,
    ONE_LAYER,
    Remedy,
    mean_token,
    norm_derivative,
    plus,
)
from oversmoothing.theory.support.errors import InputError, whole_number


class DeEscalation(Remedy):
    """(I - tau J) behind the layer: tau of the mean over the tokens is taken out."""

    title = "de-escalation"
    paper = "arXiv 2312.06182"
    reading = "the place: behind the residual sum of every layer"

    def __init__(self, tau: float = 1.0) -> None:
        super().__init__()
        self.tau = float(tau)

    def finish(self, X: Tensor) -> Tensor:
        return X - self.tau * mean_token(X)

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """I + a H, and at consensus (1 - tau)(I + H)."""
        return plus(1, a, H) if a is not None else (1 - self.tau) * plus(1, 1, H)


class ContraNorm(Remedy):
    """X - s softmax(X X^T/temperature) X behind the layer.

    Where all tokens are equal the softmax is J, and its change adds nothing, since rows of it sum
    to 1 whatever they are: there the remedy is I - s J, which is de-escalation. cosine: the scores
    are those of tokens of length 1, as in the authors' code.
    """

    title = "ContraNorm"
    paper = "arXiv 2303.06562"
    reading = "without the LayerNorm behind it; the place: behind the residual sum"
    scope = AT_CONSENSUS

    def __init__(self, s: float = 0.1, temperature: float = 1.0, cosine: bool = False) -> None:
        super().__init__()
        if not temperature > 0:
            raise InputError(f"ContraNorm's temperature is {temperature}: it divides, give one > 0")
        self.s, self.temperature = float(s), float(temperature)
        self.cosine = bool(cosine)

    def finish(self, X: Tensor) -> Tensor:
        U = X
        if self.cosine:
            length = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
            U = X / torch.where(length > 0, length, 1)
        alike = (U @ U.mT / self.temperature).softmax(-1)
        return X - self.s * (alike @ X)

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """I + a H, and at consensus (1 - s)(I + H)."""
        return plus(1, a, H) if a is not None else (1 - self.s) * plus(1, 1, H)


class ResidualScaling(Remedy):
    """X' = X + alpha Y; alpha = 1/sqrt(depth) keeps tokens apart at the start (Noci et al.)."""

    title = "residual scaling"
    paper = "arXiv 2206.03126"
    claim = "brings rho_C and rho_Q towards 1"

    def __init__(self, depth: int = 12) -> None:
        super().__init__()
        self.alpha = 1 / math.sqrt(whole_number("depth", depth, 1))

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        return X + self.alpha * Y

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """I + alpha a H."""
        return plus(1, self.alpha * (1 if a is None else a), H)


class LambdaSkip(Remedy):
    """X' = lam X + Y: the residual connection has a weight of its own."""

    title = "lambda-skip"
    paper = "arXiv 2410.10609"
    reading = "without the LayerNorm of the paper's layer"

    def __init__(self, lam: float = 2.0) -> None:
        super().__init__()
        self.lam = nn.Parameter(torch.tensor(float(lam)))

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        return self.lam.to(X) * X + Y

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """lam I + a H."""
        return plus(float(self.lam.detach()), 1 if a is None else a, H)


class DeepNorm(Remedy):
    """X' = LN(alpha X + Y), alpha = (2 depth)^(1/4); W_V, W_proj start smaller, by `beta`.

    LN is without gain and shift. It keeps no consensus state, so that no rate over layers is
    defined: `mode` is one layer's, at 1 x^T.
    """

    title = "DeepNorm"
    paper = "DeepNet (arXiv 2203.00555)"
    reading = "the constants of an encoder, from memory"
    claim = "brings rho_C and rho_Q towards 1"
    scope = ONE_LAYER
    norm = "behind"

    def __init__(self, depth: int = 12) -> None:
        super().__init__()
        layers = whole_number("depth", depth, 1)
        self.alpha = (2 * layers) ** 0.25
        self.beta = (8 * layers) ** -0.25

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        joined: Tensor = self.alpha * X + Y
        return joined

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """D (alpha I + a H), D the derivative of LN at alpha x + H x."""
        D = norm_derivative(self.alpha * x + H @ x).to(torch.complex128)
        return D @ plus(self.alpha, 1 if a is None else a, H)


class LNScaling(Remedy):
    """X' = X + A (LN(X)/sqrt(number)) W in layer `number`, from 1.

    LN is without gain and shift. The factor changes by layer, so that no rate over layers is
    defined: `mode` is that layer's, at 1 x^T. Held against Pre-LN without the factor (number 1).
    """

    title = "LN-Scaling"
    paper = "arXiv 2502.05795"
    claim = "brings rho_C and rho_Q towards 1"
    scope = ONE_LAYER
    norm = "in front"

    def __init__(self, number: int = 12) -> None:
        super().__init__()
        self.number = whole_number("the number of the layer", number, 1)

    def normed(self, X: Tensor) -> Tensor:
        return X / math.sqrt(self.number)

    def mode(self, a: complex | None, H: Tensor, x: Tensor) -> Tensor:
        """I + a H D/sqrt(number), D the derivative of LN at x."""
        scaled = H @ norm_derivative(x) / math.sqrt(self.number)
        return plus(1, 1 if a is None else a, scaled)
