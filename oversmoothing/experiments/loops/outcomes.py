"""What became of a loop: collapse, a power on its way, rest at clusters, a cycle, or motion."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from oversmoothing.experiments.inspection.tokens import ALONE, clusters
from oversmoothing.experiments.loops.looping import Looped

# HFC/LFC below which tokens are said to have collapsed, and the other conventions of the words.
COLLAPSED = 0.2
FALLING = -0.1
# Of the direction of the stream over the last octave: rest, and too much for a power of anything;
# and what a cycle comes back to.
RESTS, WANDERS = 0.1, 0.5
RETURNS = 0.2


def outcomes(run: Looped) -> list[dict[str, Any]]:
    """One record an input: end (HFC/LFC), slope (over the last octave of loops), turned (distance
    of the directions X/||X|| at half of the loops and at the end), period (of a cycle, else 1),
    clusters (of two tokens or more with cosine .95), largest (share of the largest of them), kind.
    """
    found = []
    for k, slope in enumerate(run.slope()):
        end = math.exp(run.logs[-1, k])
        X = run.tail[-1][k]
        labels = clusters(X)
        turned = _apart(X, run.middle[k])
        period = _period([each[k] for each in run.tail])
        record = {
            "end": end,
            "slope": float(slope),
            "turned": turned,
            "period": period,
            "clusters": int(labels.max() + 1) if (labels != ALONE).any() else 0,
            "largest": float((labels == 0).mean()) if (labels != ALONE).any() else 1 / len(labels),
        }
        found.append(record | {"kind": _kind(record)})
    return found


def _kind(record: dict[str, Any]) -> str:
    if record["end"] <= COLLAPSED:
        return "collapsed"
    if record["period"] > 1:
        return "a cycle"
    if record["slope"] <= FALLING and record["turned"] <= WANDERS:
        return "falling as a power"
    return "at rest elsewhere" if record["turned"] <= RESTS else "still moving"


def _period(tail: list[Tensor]) -> int:
    """The least number of loops after which the direction is back, of what it moves in one; 1
    where it does not turn to and fro."""
    last = tail[-1]
    away = [_apart(last, each) for each in reversed(tail[:-1])]
    floor = 32 * torch.finfo(last.dtype).eps
    if not away or away[0] <= floor:
        return 1
    back = [p for p, far in enumerate(away, 1) if p > 1 and far <= RETURNS * away[0]]
    return back[0] if back else 1


def _apart(X: Tensor, Y: Tensor) -> float:
    """||X/||X|| - Y/||Y|| ||."""
    X, Y = (each.double() / torch.linalg.vector_norm(each.double()) for each in (X, Y))
    return float(torch.linalg.vector_norm(X - Y))
