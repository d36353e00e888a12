"""Small networks of random exact numbers, of every form that can be enclosed."""

from __future__ import annotations

import numpy as np

from oversmoothing.experiments.enclosures.network import (
    Block,
    FeedForward,
    HeadWeights,
    Network,
    NormWeights,
    Patches,
)


def drawn_network(
    seed: int, *, placement: str = "pre", kind: str = "layer", behind: str = "none",
    activation: str = "gelu", gated: bool = False, causal: bool = False, biases: bool = True,
    patches: bool = True, ffn: bool = True, depth: int = 2, heads: int = 2, d: int = 4,
) -> Network:  # fmt: skip
    """A network of width d on 2 x 2 patches of 2 x 2 pixels and a token in front, or on streams."""
    rng = np.random.default_rng(seed)
    r, hidden = 3, 5

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    def bias(size: int) -> np.ndarray | None:
        return draw(size) if biases else None

    def norm(of: str) -> NormWeights:
        return NormWeights(of, 1 + 0.3 * draw(d), bias(d), 1e-5)

    blocks = tuple(
        Block(
            placement=placement,
            norm_attention=norm(kind),
            norm_ffn=norm(kind),
            output_norm_attention=norm(behind),
            output_norm_ffn=norm(behind),
            heads=tuple(
                HeadWeights(
                    draw(d, r), bias(r), draw(d, r), bias(r), draw(d, r), bias(r), draw(r, d) / 2
                )
                for _ in range(heads)
            ),
            b_O=bias(d),
            scaling=r**-0.5,
            causal=causal,
            ffn=FeedForward(
                activation, draw(d, hidden), bias(hidden), draw(hidden, d) / 2, bias(d),
                draw(d, hidden) if gated else None, bias(hidden) if gated else None,
            ) if ffn else None,
        )
        for _ in range(depth)
    )  # fmt: skip
    embedding = Patches(2, draw(8, d), bias(d), draw(1, d), draw(5, d)) if patches else None
    return Network(embedding, blocks, cls=patches)


def drawn_input(network: Network, seed: int) -> np.ndarray:
    """Pixels [2, 4, 4] or a stream [4, d]."""
    rng = np.random.default_rng([seed, 1])
    shape = (2, 4, 4) if network.patches is not None else (4, network.width)
    return rng.standard_normal(shape).astype(np.float32).astype(np.float64)
