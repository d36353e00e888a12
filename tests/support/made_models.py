"""Models made to smooth or to sharpen by one cause, and inputs whose tokens share a direction.

Every block is Pre-LN with uniform attention (queries and keys are 0), W_V = 1 and W_O = value * 1,
so that the mixing adds value times the mean of the normed tokens to each of them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.describe import describe
from oversmoothing.experiments.models.model import Model

WIDTH = 16


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def common() -> Tensor:
    """The direction that all tokens share: a unit vector of mean 0, so that LayerNorm keeps it."""
    vector = torch.zeros(WIDTH)
    vector[:2] = torch.tensor([1.0, -1.0]) / 2**0.5
    return vector


class Block(nn.Module):
    """Uniform attention of one head, and an FFN of one matrix."""

    def __init__(self, value: float, gain: float, push: float, pull: float) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.ffn, m = nn.Linear(WIDTH, WIDTH), common()
        with torch.no_grad():
            self.first.weight.fill_(gain)
            for part, size in ((self.q, 0.0), (self.k, 0.0), (self.v, 1.0), (self.o, value)):
                part.weight.copy_(size * torch.eye(WIDTH))
            self.ffn.weight.copy_(-pull * torch.outer(m, m))
            self.ffn.bias.copy_(push * m)

    def forward(self, x: Tensor) -> Tensor:
        N = self.first(x)
        q, k, v = (each(N).unsqueeze(1) for each in (self.q, self.k, self.v))
        x = x + self.o(nn.functional.scaled_dot_product_attention(q, k, v).squeeze(1))
        return x + self.ffn(self.second(x))


def made(
    *, depth: int = 4, value: float = 0.0, gain: float = 1.0, push: float = 0.0, pull: float = 0.0
) -> Model:
    """value: H = value * 1; gain: of the norm before attention; push: what the FFN adds of the
    common direction to every token; pull: what share of it the FFN takes away."""
    blocks = nn.Sequential(*(Block(value, gain, push, pull) for _ in range(depth))).eval()
    return describe(blocks, name="made", modality="vision")


def sharing(
    count: int, *, share: float = 0.5, spread: float = 0.0, large: float = 0.0, seed: int = 0
) -> Tensor:
    """Inputs [count, 12, WIDTH]: noise and `share` of the common direction, which differs from
    input to input by `spread` (a standard deviation of its logarithm).

    large: the last four tokens are that much longer, without the common direction and pairwise
    opposite: they set one scale for all tokens, and add nothing to the mean of tokens of one scale.
    """
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, 12, WIDTH, generator=generator) / WIDTH**0.5
    own = torch.exp(spread * torch.randn(count, 1, 1, generator=generator))
    X = noise + share * own * common()
    if large:
        pair = large * (X[:, 8:10] - (X[:, 8:10] @ common()).unsqueeze(-1) * common())
        X = torch.cat([X[:, :8], pair, -pair], dim=1)
    return X
