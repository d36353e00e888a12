"""What every remedy is: a few places of an attention layer at which it steps in.

The layer is X' = X + A X W (rows = tokens, W = W_V W_proj, H = W^T). Written out with the places,
all of them the identity but where a remedy says otherwise:

    V  = values(normed(read(X)) product(W), V of the first layer)
    Y  = output(attention(A) V, V, V of the first layer)
    X' = finish(join(X, Y))                             join(X, Y) = X + Y

`Remedy.layer` is this layer, the one whose spectrum is predicted and measured (`shift.py`);
`Remedy.around` puts the places in front of and behind any branch; a network of one's own calls them
where they belong: `normed` behind the norm in front of a branch, `join` in
front of a norm behind it. `layer` has such a norm only where the remedy is defined with one.

The prediction: consensus states 1 x^T and the states modulo consensus evolve apart (T1). Along
consensus the layer is one matrix on features, and modulo consensus one for each eigenvalue a_i of
A other than the 1 that belongs to consensus; `Remedy.mode` gives them, by the eigenvalues a of A
and j of J = 1 1^T/n: (1, 1) at consensus, (a_i, 0) modulo it. The radii are the largest moduli of
their eigenvalues: rho_C, and rho_Q over all i < n.
"""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from oversmoothing.theory.support.errors import InputError

# Above these a remedy sees the attention matrix or the values, which no branch hands out.
_INSIDE = ("attention", "product", "values", "output")
LINEAR = "every state"
AT_CONSENSUS = "small differences around a consensus state 1 x^T"
ONE_LAYER = "one layer at a consensus state 1 x^T, which it does not keep"
FORCED = "every state, less the part that the first layer's values add"


class Remedy(nn.Module):
    """A remedy around an attention layer; a subclass overrides the places it acts at.

    title: its name in tables. paper: where it is from. reading: which part of its definition is our
    reading, empty where none. claim: what it is for, in terms of the spectrum (our words). scope:
    the states that `mode` holds for. norm: where `layer` has a LayerNorm.
    """

    _settings: dict[str, Any]
    title: ClassVar[str]
    paper: ClassVar[str]
    claim: ClassVar[str] = "raises rho_Q/rho_C"
    reading: ClassVar[str] = ""
    scope: ClassVar[str] = LINEAR
    norm: ClassVar[Literal["none", "in front", "behind"]] = "none"

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        made = super().__new__(cls)
        # A copy is made without arguments and then given what the original has.
        given = inspect.signature(cls.__init__).bind_partial(made, *args, **settings)
        given.apply_defaults()
        object.__setattr__(made, "_settings", dict(list(given.arguments.items())[1:]))
        return made

    def extra_repr(self) -> str:
        """The settings it was made with; of parameters, where they start."""
        plain = {k: v for k, v in self._settings.items() if not isinstance(v, nn.Module)}
        return ", ".join(f"{name}={value}" for name, value in plain.items())

    def attention(self, A: Tensor) -> Tensor:
        """What stands for the row-stochastic A [..., n, n]."""
        return A

    def read(self, X: Tensor) -> Tensor:
        """What the branch reads of the stream X [..., n, d]."""
        return X

    def normed(self, X: Tensor) -> Tensor:
        """What it makes of that, [..., n, d], behind the norm where there is one."""
        return X

    def product(self, W: Tensor) -> Tensor:
        """What stands for W = W_V W_proj [..., d, d]."""
        return W

    def values(self, V: Tensor, first: Tensor) -> Tensor:
        """What attention averages: V [..., n, r] of this layer, `first` those of the first."""
        return V

    def output(self, Y: Tensor, V: Tensor, first: Tensor) -> Tensor:
        """What the branch gives: Y = A V [..., n, r]."""
        return Y

    def join(self, X: Tensor, Y: Tensor) -> Tensor:
        """The stream after the branch: X and Y are [..., n, d]."""
        return X + Y

    def finish(self, X: Tensor) -> Tensor:
        """The last change of the stream [..., n, d]."""
        return X

    def layer(self, X: Tensor, A: Tensor, W: Tensor, first: Tensor | None = None) -> Tensor:
        """X' of X [..., n, d], A [..., n, n] and W [..., d, d]; first: V of the first layer, this
        layer's own where None."""
        V = self.own_values(X, W)
        origin = V if first is None else first
        V = self.values(V, origin)
        return self.joined(X, self.output(self.attention(A) @ V, V, origin))

    def own_values(self, X: Tensor, W: Tensor) -> Tensor:
        """normed(read(X)) product(W), [..., n, d]: of the first layer, what later ones may see."""
        return self.entered(X) @ self.product(W)

    def entered(self, X: Tensor) -> Tensor:
        """What stands in front of the branch, with the norm where the remedy has one there."""
        Z = self.read(X)
        return self.normed(norm_of(Z) if self.norm == "in front" else Z)

    def joined(self, X: Tensor, Y: Tensor) -> Tensor:
        """What stands behind the branch, with the norm where the remedy has one there."""
        Z = self.join(X, Y)
        return self.finish(norm_of(Z) if self.norm == "behind" else Z)

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """The matrix on features that the eigenvalues a of A and j of J give, complex.

        H [d, d], and the consensus state 1 x^T that it is taken at, x [d].
        """
        raise NotImplementedError

    def around(self, branch: Callable[[Tensor], Tensor]) -> "Around":
        """X -> finish(join(X, branch(normed(read(X))))), for any branch on tokens [..., n, d].

        Raises `InputError` for a remedy that needs the attention matrix, the values or the weights.
        """
        for name in _INSIDE:
            if getattr(type(self), name) is not getattr(Remedy, name):
                raise InputError(
                    f"{self.title} acts within the attention sublayer: call its `{name}` there "
                    "(a branch as a whole does not hand that out)"
                )
        return Around(self, branch)


class Around(nn.Module):
    """A branch on tokens [..., n, d] with its residual connection, under a remedy."""

    def __init__(self, remedy: Remedy, branch: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.remedy = remedy
        self.branch = branch

    def forward(self, X: Tensor) -> Tensor:
        """X' [..., n, d] of X [..., n, d]."""
        return self.remedy.joined(X, self.branch(self.remedy.entered(X)))


class Plain(Remedy):
    """The layer as it is, X' = X + A X W: what every remedy is held against."""

    title = "none"
    paper = "arXiv 2401.04301"
    claim = "none"

    def mode(self, a: complex, j: float, H: Tensor, x: Tensor) -> Tensor:
        """I + a H (T1d)."""
        return plus(1, a, H)


def plus(skip: complex, a: complex, H: Tensor) -> Tensor:
    """skip I + a H, complex."""
    wide = H.to(torch.complex128)
    return skip * torch.eye(len(H), dtype=wide.dtype) + a * wide


def mean_token(X: Tensor) -> Tensor:
    """J X = 1 1^T X / n, kept as one row [..., 1, d]."""
    return X.mean(-2, keepdim=True)


def norm_of(X: Tensor) -> Tensor:
    """LayerNorm of X [..., d] without gain, shift and epsilon; raises for equal features."""
    centred = X - X.mean(-1, keepdim=True)
    return centred / centred.square().mean(-1, keepdim=True).sqrt()


def norm_derivative(x: Tensor) -> Tensor:
    """The derivative of `norm_of` at x [d]: (I - 1 1^T/d - y y^T/d)/sigma, y = norm_of(x)."""
    d = len(x)
    y = norm_of(x)
    sigma = (x - x.mean()).square().mean().sqrt()
    return (torch.eye(d, dtype=x.dtype) - 1 / d - torch.outer(y, y) / d) / sigma
