"""What layers looped for ever would do to small differences between nearly equal tokens (T12).

Only equal tokens are followed, one token for all of them, and the derivative across consensus is
taken where that path has led (T8c): a few per cent of the cost of looping the layers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.stability.block_maps import BlockMap
from oversmoothing.experiments.stability.consensus import consensus_step, linearised
from oversmoothing.theory.at_consensus import LoopLaw, transverse_eigenvalue

LOOPS = 400


def loop_laws(
    blocks: Sequence[BlockMap], c: Tensor, n: int, causal: bool, loops: int = LOOPS
) -> list[LoopLaw]:
    """The laws near consensus of the blocks applied in turn, after `loops` rounds from each 1 c^T.

    c [b, d], n tokens; one law for each of the b. In float32 they are right to about 1e-3: their
    logarithms are of the order of 1 / loops.
    """
    point, lengths = c, [_lengths(c)]
    for _ in range(loops):
        point = _round(blocks, point)
        lengths.append(_lengths(point))
    image = _round(blocks, point)
    size, far = _lengths(image), lengths[-1]
    cosine = (image.double() * point.double()).sum(-1).cpu().numpy() / (size * far)
    found = []
    for k in range(len(c)):
        at, linear = point[k], []
        for block in blocks:
            linear.append(linearised(block.layer, at, n, block.call, causal))
            at = consensus_step(block.layer, at[None])[0]
        across = abs(transverse_eigenvalue(linear))
        found.append(
            LoopLaw(
                loops=loops,
                along=float(np.log(size[k] / far[k])),
                across=math.log(across) if across > 0 else -math.inf,
                power=float(np.log2(far[k] / lengths[loops // 2][k])),
                turning=math.acos(max(-1.0, min(1.0, float(cosine[k])))),
            )
        )
    return found


def loop_law(
    blocks: Sequence[BlockMap], c: Tensor, n: int, causal: bool, loops: int = LOOPS
) -> LoopLaw:
    """`loop_laws` of a single c [d]."""
    return loop_laws(blocks, c[None], n, causal, loops)[0]


def _round(blocks: Sequence[BlockMap], point: Tensor) -> Tensor:
    for block in blocks:
        point = consensus_step(block.layer, point)
    return point


def _lengths(c: Tensor) -> np.ndarray:
    found: np.ndarray = torch.linalg.vector_norm(c.double(), dim=-1).cpu().numpy()
    return found
