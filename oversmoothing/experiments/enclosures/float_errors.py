"""How far the floating metrics of `inspect` are from the proved ones, and how far they may be.

`inspect` computes the forward pass in the model's dtype and the metrics in float64. The stated
error is in units of the larger of 1 and the metric's modulus: roundings of a forward pass of some
tens of sublayers, each a few hundred eps, on streams whose metrics condition them well. It is no
theorem; what a run finds is printed beside it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from oversmoothing.experiments.enclosures.ball_arrays import Ball
from oversmoothing.simulations.state_metrics import stream_metrics

STATED = {torch.float64: 1e-12, torch.float32: 1e-5}


def largest_error(layers: Sequence[dict[str, Ball]], streams: Sequence[Tensor]) -> float:
    """The largest distance of a metric of the streams [n, d] from its ball, in units of the larger
    of 1 and its modulus; 0 within the ball."""
    worst = 0.0
    for layer, X in zip(layers, streams, strict=True):
        cls = any(name.endswith("_without_cls") for name in layer)
        floating = stream_metrics(X[None], without_first=cls)
        for name, ball in layer.items():
            beyond = abs(float((ball - float(floating[name][0])).abs_lower()))
            worst = max(worst, beyond / max(1.0, abs(float(ball.mid()))))
    return worst
