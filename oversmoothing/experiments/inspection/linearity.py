"""How linear a layer is: the share of its output that one linear map of its input explains.

The score is that of generalised Procrustes analysis (Razzhigaev et al. 2024, arXiv 2405.12250): the
share of ||Y||_F^2, tokens centred, that the best W of Y = X W + c explains. Theirs is fitted and
scored on the same tokens, which rises to 1 by itself as d nears the number of tokens; here W is
fitted on every second input and scored on the others, both ways. With the residual Y is the layer's
output, of which most is X; without it Y is what the layer adds, output - input.
"""

import torch
from torch import Tensor

from oversmoothing.experiments.models.model import Extraction, Model

# Numbers that may be held, 512 MiB: a model of more has no score.
MOST = 2**26
# Tokens to fit on, in units of the width: with fewer the score speaks of noise, not of the layer.
ENOUGH = 2
# Of the mean square of the features, added to the Gram matrix.
RIDGE = 1e-8

Sums = dict[str, Tensor]


class Linearity:
    """Sums over tokens, layer by layer and half by half; nothing else is kept of the inputs."""

    def __init__(self, model: Model) -> None:
        self.layers, self.width = model.depth, model.width
        self.fits = 4 * self.layers * self.width**2 <= MOST
        self.halves: list[list[Sums]] = [[], []]
        self.seen = 0

    def see(self, batch: Extraction) -> None:
        """Count a batch in."""
        if not self.fits:
            return
        parity = (torch.arange(len(batch.keep)) + self.seen) % 2
        self.seen += len(batch.keep)
        for half in (0, 1):
            keep = batch.keep & (parity == half).unsqueeze(-1)
            found = [_sums(trace.before[keep], trace.after_ffn[keep]) for trace in batch.traces]
            held = self.halves[half]
            self.halves[half] = (
                [{name: a[name] + b[name] for name in a} for a, b in zip(held, found, strict=True)]
                if held
                else found
            )

    def columns(self) -> list[dict[str, float]]:
        """{linear_with_residual, linear_without_residual} of each layer, at most 1; below 0 where
        the fit is worse than the mean. NaN with too few tokens to tell."""
        names = ("linear_with_residual", "linear_without_residual")
        if any(not half or half[0]["n"] < ENOUGH * self.width for half in self.halves):
            return [dict.fromkeys(names, float("nan")) for _ in range(self.layers)]
        found = []
        for first, second in zip(*self.halves, strict=True):
            both = [_scores(a, b) for a, b in ((first, second), (second, first))]
            mean = torch.tensor(both, dtype=torch.float64).mean(0).tolist()
            found.append(dict(zip(names, mean, strict=True)))
        return found


def _sums(X: Tensor, Y: Tensor) -> Sums:
    X, Y = X.double(), Y.double()
    return {
        "n": torch.tensor(float(len(X)), dtype=torch.float64),
        "x": X.sum(0),
        "y": Y.sum(0),
        "xx": X.mT @ X,
        "xy": X.mT @ Y,
        "yy": Y.square().sum(),
    }


def _centred(sums: Sums, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(X^T X, X^T Y, ||Y||^2) with x taken from every row of X and y from every one of Y."""
    n, sx, sy = sums["n"], sums["x"], sums["y"]
    xx = sums["xx"] - torch.outer(sx, x) - torch.outer(x, sx) + n * torch.outer(x, x)
    xy = sums["xy"] - torch.outer(sx, y) - torch.outer(x, sy) + n * torch.outer(x, y)
    return xx, xy, sums["yy"] - 2 * sy @ y + n * y @ y


def _scores(fitted: Sums, scored: Sums) -> tuple[float, float]:
    """The share that W of the one half explains on the other, with the residual and without."""
    x, y = fitted["x"] / fitted["n"], fitted["y"] / fitted["n"]
    xx, xy, _ = _centred(fitted, x, y)
    ridge = RIDGE * xx.trace() / len(xx) * torch.eye(len(xx), dtype=xx.dtype)
    W = torch.linalg.solve(xx + ridge, xy)
    XX, XY, YY = _centred(scored, x, y)
    # ||Y - X W||^2; of the change Y - X the best W is W - 1, and what it leaves is the same.
    left = YY - 2 * (W * XY).sum() + (W * (XX @ W)).sum()
    change = YY - 2 * XY.trace() + XX.trace()
    return float(1 - left / YY), float(1 - left / change)
