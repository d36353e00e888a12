"""What layers looped for ever would do to small differences between nearly equal tokens (T12).

Only equal tokens are followed, one token for all of them, and the derivative across consensus is
taken where that path has led (T8c): a few per cent of the cost of looping the layers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from oversmoothing.experiments.stability.block_maps import BlockMap
from oversmoothing.experiments.stability.consensus import consensus_step, linearised
from oversmoothing.theory.consensus.jacobians import transverse_eigenvalue
from oversmoothing.theory.consensus.loops import LoopLaw

LOOPS = 400


def loop_law(
    blocks: Sequence[BlockMap], c: Tensor, n: int, causal: bool, loops: int = LOOPS
) -> LoopLaw:
    """The law near consensus of the blocks applied in turn, after `loops` rounds from 1 c^T.

    c [d] in float64, n tokens.
    """
    point = c[None]
    lengths = [float(torch.linalg.vector_norm(point))]
    for _ in range(loops):
        point = _round(blocks, point)
        lengths.append(float(torch.linalg.vector_norm(point)))
    linear, at = [], point
    for block in blocks:
        linear.append(linearised(block.layer, at[0], n, block.call, causal))
        at = consensus_step(block.layer, at)
    size = float(torch.linalg.vector_norm(at))
    cosine = float((at * point).sum()) / (size * lengths[-1])
    across = abs(transverse_eigenvalue(linear))
    return LoopLaw(
        loops=loops,
        along=math.log(size / lengths[-1]),
        across=math.log(across) if across > 0 else -math.inf,
        power=math.log2(lengths[-1] / lengths[loops // 2]),
        turning=math.acos(max(-1.0, min(1.0, cosine))),
    )


def _round(blocks: Sequence[BlockMap], point: Tensor) -> Tensor:
    for block in blocks:
        point = consensus_step(block.layer, point)
    return point
