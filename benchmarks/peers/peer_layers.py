"""Peers' layers on the same tokens and weights as our remedies; what each is held against.

Tokens of DeiT-Ti's shape (197 tokens, 192 features, 3 heads), Gaussian with a mean of their own, in
float64. Ours is the formula as our remedy states it. Where a peer's code is something else, `but`
says what in words, and `explained` is our remedy changed so: that it agrees is measured too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers.our_block import OurBlock, Sublayer
from benchmarks.peers.peer_code import Source
from oversmoothing.experiments.remedies.on_branch import AttnScale, FeatScale
from oversmoothing.experiments.remedies.on_stream import ContraNorm
from oversmoothing.experiments.remedies.remedy import Plain

TOKENS, WIDTH, HEADS, BATCH, LAYERS = 197, 192, 3, 2, 6
# Two evaluations of sums of k <= 768 terms in float64 are apart by at most about 2 k 2^-53 of their
# terms (1.7e-13); a block has four such products one behind the other.
ROUNDING = 1e-12

_WANG, _CONTRA = "VITA-Group/ViT-Anti-Oversmoothing", "PKU-ML/ContraNorm"
_FLOW = "jean72human/transformers-as-gradient-flow"
_FIRST = "44981c3f1786dd94f2d82c7802baa9b15679e9b4"
ATTNSCALE = Source(_WANG, "attnscale.py", _FIRST, ("Attention",), "b0c3ff0a864f")
VIT = Source(_WANG, "vit.py", _FIRST, ("Attention",), "4f977f8c4050")
FEATSCALE_FIRST = Source(_WANG, "featscale.py", _FIRST, ("Block",), "a9f73cec91ee", apart="-first")
FEATSCALE_LATER = Source(
    _WANG, "featscale.py", "969b5640fcb8315c47af54fd1d4b55a8f900e587", ("Block",), "fbdd0f7566ea"
)
FEATSCALE_FORK = Source(
    _FLOW, "timm/models/featscale.py", "0fe73c33d5b2aa2842a70aa58567021495c663d0",
    ("Attention", "Block"), "554920ff8a74",
)  # fmt: skip
CONTRANORM = Source(
    _CONTRA, "ViT_imagenet/models.py", "8e68fc00c6638e972bc9d7f178098d387dd58336",
    ("ContraNorm",), "10a014094806",
)  # fmt: skip
FLOW = Source(
    _FLOW, "models/diffusion.py", "107f04687d9d52572e0a85a2fe20eb662848a934",
    ("diffusion_step", "diffusion_stepFT", "diffusion_stepI", "diffusion_stepIFT",
     "SimpleTransformer"), "6a5319c43540",
)  # fmt: skip
FLOW_ENERGY = Source(
    _FLOW,
    "utils.py",
    "3b77680aedffbbc99b5d9ce5fcd8f0b3c97a665f",
    ("batch_dirichlet",),
    "1d58ec0cd7b0",
)

Run = Callable[[], Tensor]
Parts = dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """The same computed twice; explained: ours, changed by what the peer's code does else."""

    theirs: Run
    ours: Run
    explained: Run | None = None


@dataclass(frozen=True)
class Comparison:
    """What is held against what. pair: from the parts of all sources, of which a later one is given
    those of the earlier.

    but: what the peer's code does else than the formula, in words; empty: nothing is known.
    """

    name: str
    sources: tuple[Source, ...]
    pair: Callable[[Parts], Pair]
    but: str = ""


class _SingleJ(AttnScale):
    """AttnScale with the entries 1/n of J in float32, whatever the precision of A."""

    def attention(self, A: Tensor) -> Tensor:
        n = A.shape[-1]
        return super().attention(A) + self.omega.to(A) * (1 / n - float(np.float32(1) / n))


def _attnscale(peer: Parts) -> Pair:
    theirs, draw = _drawn(peer["Attention"](WIDTH, num_heads=HEADS, qkv_bias=True))
    X = tokens(draw)

    def sublayer(kind: type[AttnScale]) -> Sublayer:
        remedy = kind(heads=HEADS).double()
        remedy.omega.data[:, 0, 0] = theirs.lamb.data
        return Sublayer(remedy, theirs.state_dict(), HEADS)

    stated, single = sublayer(AttnScale), sublayer(_SingleJ)
    return Pair(lambda: theirs(X), lambda: stated(X), lambda: single(X))


def _featscale(peer: Parts) -> Pair:
    theirs, draw = _drawn(peer["Block"](WIDTH, HEADS, qkv_bias=True))
    X = tokens(draw)

    def block(times: float) -> OurBlock:
        remedy = FeatScale(WIDTH).double()
        remedy.s.data, remedy.t.data = times * theirs.lamb1.data, times * theirs.lamb2.data
        return OurBlock(remedy, theirs.state_dict(), HEADS)

    once, twice = block(1), block(2)
    return Pair(lambda: theirs(X), lambda: once(X), lambda: twice(X))


def _contranorm(identity: bool) -> Callable[[Parts], Pair]:
    s, temperature = 0.1, 1.0

    def pair(peer: Parts) -> Pair:
        theirs, draw = _drawn(
            peer["ContraNorm"](WIDTH, scale=s, temp=temperature, identity=identity)
        )
        X = tokens(draw)
        # (1 + s) X - s K X = (1 + s)(X - s/(1 + s) K X)
        factor, own = (1 + s, s / (1 + s)) if identity else (1.0, s)
        norm = theirs.layernorm

        def ours(remedy: ContraNorm) -> Run:
            return lambda: nn.functional.layer_norm(
                factor * remedy.finish(X), (WIDTH,), norm.weight, norm.bias, eps=1e-6
            )

        stated = ours(ContraNorm(s, temperature))
        return Pair(lambda: theirs(X), stated, ours(ContraNorm(own, temperature, cosine=True)))

    return pair


def _flow(sign: int, norm: bool) -> Callable[[Parts], Pair]:
    def pair(peer: Parts) -> Pair:
        side = 12
        theirs, draw = _drawn(
            peer["SimpleTransformer"](
                (WIDTH, side, side), 1, LAYERS, dim=WIDTH // HEADS, heads=HEADS, sign=sign,
                tau=0.1, embed=False, norm=norm,
            )
        )  # fmt: skip
        theirs.pos_embedding.data.zero_()
        X0 = torch.randn(BATCH, side**2, WIDTH, generator=draw, dtype=torch.float64)
        image = X0.mT.reshape(BATCH, WIDTH, side, side)
        W_Q, W_K, W_V = (each[0].detach() for each in (theirs.WQs, theirs.WKs, theirs.WVs))
        S = (W_V + W_V.T) / 2
        # Every head has the same W, and all heads one attention.
        W = torch.kron(torch.eye(HEADS, dtype=S.dtype), sign * S @ S.T if sign else W_V)
        gain, shift = theirs.norms[0].weight.detach(), theirs.norms[0].bias.detach()

        def normed(X: Tensor) -> Tensor:
            return nn.functional.layer_norm(X, (WIDTH,), gain, shift) if norm else X

        def run(skip_is_normed: bool) -> Run:
            def states() -> Tensor:
                kept = [X0]
                for _ in range(LAYERS):
                    X, Z = kept[-1], normed(kept[-1])
                    A = ((Z @ W_Q) @ (Z @ W_K).mT / (WIDTH // HEADS) ** 0.5).softmax(-1)
                    branch = Plain().layer(Z, A, 0.1 * W) - Z
                    kept.append((Z if skip_is_normed else X) + branch)
                return torch.stack(kept)

            return states

        def diffuse() -> Tensor:
            return torch.from_numpy(np.stack(theirs.diffuse(image)[0]))

        return Pair(diffuse, run(False), run(True) if norm else None)

    return pair


def _energy(peer: Parts) -> Pair:
    X = tokens(torch.Generator().manual_seed(0))

    def ours() -> Tensor:
        # sum over pairs of |x_i - x_k|^2 / 2 = n ||HFC||_F^2 / 2, the mean over the batch.
        hfc = X - X.mean(-2, keepdim=True)
        return TOKENS * hfc.square().sum((-2, -1)).mean() / 2

    def theirs() -> Tensor:
        return torch.tensor(peer["batch_dirichlet"](X.numpy()))

    return Pair(theirs, ours)


_TWICE = "its code adds both terms twice: FeatScale at 2s, 2t"
_COSINE = "its code takes the scores of tokens of length 1"
COMPARISONS = (
    Comparison(
        "AttnScale, Wang et al.", (ATTNSCALE,), _attnscale,
        "its 1/n is a number of float32 (torch's default), whatever the precision of the layer",
    ),
    Comparison("FeatScale, Wang et al., first commit", (VIT, FEATSCALE_FIRST), _featscale),
    Comparison("FeatScale, Wang et al., later commit", (VIT, FEATSCALE_LATER), _featscale, _TWICE),
    Comparison("FeatScale, the fork of 2023", (FEATSCALE_FORK,), _featscale, _TWICE),
    Comparison("ContraNorm, Guo et al.", (CONTRANORM,), _contranorm(False), _COSINE),
    Comparison(
        "ContraNorm with identity, Guo et al.", (CONTRANORM,), _contranorm(True),
        f"{_COSINE}, and keeps (1 + s) X: ours at s/(1 + s), times 1 + s",
    ),
    Comparison("gradient flow, 6 layers", (FLOW,), _flow(0, False)),
    Comparison("gradient flow with W = -S S^T, 6 layers", (FLOW,), _flow(-1, False)),
    Comparison(
        "gradient flow with its norm, 6 layers", (FLOW,), _flow(-1, True),
        "its residual starts behind the norm: LN(X) + tau A LN(X) W, no Pre-LN layer",
    ),
    Comparison("gradient flow's Dirichlet energy", (FLOW_ENERGY,), _energy),
)  # fmt: skip


def tokens(draw: torch.Generator) -> Tensor:
    """X [2, 197, 192] with a mean token of the size of the rest."""
    X = torch.randn(BATCH, TOKENS + 1, WIDTH, generator=draw, dtype=torch.float64)
    return X[:, 1:] + X[:, :1]


def _drawn(module: nn.Module) -> tuple[Any, torch.Generator]:
    """The module in float64, every parameter drawn anew from seed 0 (those that start at 0 too)."""
    draw = torch.Generator().manual_seed(0)
    for value in module.double().eval().requires_grad_(False).parameters():
        scale = value.shape[-1] ** -0.5 if value.ndim > 1 else 0.3
        value.copy_(scale * torch.randn(value.shape, generator=draw, dtype=torch.float64))
    return module, draw
