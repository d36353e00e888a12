"""What is observed of one batch: the metrics of the stream by layer and the account by sublayer.

Everything kept is a number an input (image or text): thousands of inputs run in bounded memory, and
intervals are over inputs, which are the independent observations.

Sinks (T4g): in trained streams most of a "rank collapse" can be a single direction, the sink of the
attention: erank(X) = e^eta(p) erank(X')^(1-p), exactly, X' the state without its largest direction
and p the share that it has of the singular values. Beside that, whether the effective rank has
converged in the number of tokens: a rank that grows with the tokens counts tokens, not directions.

How linear a layer is: the share of its output that one linear map of its input explains, the score
of generalised Procrustes analysis (Razzhigaev et al. 2024, arXiv 2405.12250): the share of
||Y||_F^2, tokens centred, that the best W of Y = X W + c explains. Theirs is fitted and scored on
the same tokens, which rises to 1 by itself as d nears the number of tokens; here W is fitted on
every second input and scored on the others, both ways. With the residual Y is the layer's output,
of which most is X; without it Y is what the layer adds, output - input.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.account import (
    check_account,
    kept_parts,
    layer_account,
    log_ratio,
)
from oversmoothing.experiments.inspection.heads_and_why import Measured, head_measures, head_table
from oversmoothing.experiments.inspection.spectra import Seen, seen_attention, sink_attention
from oversmoothing.experiments.inspection.tokens import (
    DRAWN,
    cluster_columns,
    token_clusters,
    token_table,
)
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.simulations.state_metrics import stream_metrics
from oversmoothing.theory.support.sizes import Array


class Observed(NamedTuple):
    """By name, float64: metrics [layers + 1, b] (row 0: in front of layer 1); account [layers, b],
    the changes of log HFC/LFC over each sublayer and, over the inputs whose account was taken,
    their parts; drift [layers, b]: ||A_l - A_{l-1}||_F / ||A_l||_F of the mean over heads (NaN for
    l = 1)."""

    metrics: dict[str, Array]
    account: dict[str, Array]
    drift: dict[str, Array]


def join(batches: Iterable[Observed]) -> Observed:
    """Batches one after the other; the first ones have had their account taken, or none."""
    return Observed(
        *(
            {
                name: np.concatenate([each[name] for each in parts if name in each], axis=1)
                for name in parts[0]
            }
            for parts in zip(*batches, strict=True)
        )
    )


def observe(
    model: Model, batch: Extraction, *, account: bool = True, verify: bool = True
) -> Observed:
    """Metrics of every stream, with and without CLS where the model has one, and the account.

    account: split each sublayer's change by what its norm adds. verify: compute every part of that
    from the weights (see `layer_account`). Raises `InputError` for an account that does not close.
    """
    keep = None if bool(batch.keep.all()) else batch.keep
    metrics: list[dict[str, Tensor]] = []
    for X in (batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)):
        each = [stream_metrics(x, without_first=model.cls) for x in kept_parts(X, keep)]
        metrics.append({name: torch.cat([one[name] for one in each]) for name in each[0]})
    changes: list[dict[str, Tensor]] = []
    for number, (layer, trace) in enumerate(zip(model.layers, batch.traces, strict=True)):
        start, end = (metrics[k]["log_hfc_lfc"] for k in (number, number + 1))
        middle = log_ratio(trace.after_attention, keep)
        change = {"attention": middle - start, "ffn": end - middle}
        if account:
            measure = partial(log_ratio, keep=keep)
            parts = layer_account(layer, trace, measure, keep, verify=verify)
            check_account(number, parts, (start, middle, end), model.dtype)
            change |= parts
        changes.append({f"log_change_{name}": value for name, value in change.items()})
    return Observed(_stacked(metrics), _stacked(changes), {"attention_drift": _drift(batch, keep)})


def _stacked(rows: list[dict[str, Tensor]]) -> dict[str, Array]:
    return {name: torch.stack([row[name] for row in rows]).cpu().numpy() for name in rows[0]}


def _drift(batch: Extraction, keep: Tensor | None) -> Array:
    """Rows and columns of padding are 0 in a masked mean attention only if its queries are; they
    are cut by the weights."""
    found: list[Tensor] = []
    before = torch.tensor(torch.nan)
    for trace in batch.traces:
        assert trace.attention is not None
        A = trace.attention.mean(1)
        if keep is not None:
            A = A * keep.unsqueeze(-1)
        step, size = (
            torch.linalg.vector_norm(each, dim=(-2, -1), dtype=torch.float64)
            for each in (A - before, A)
        )
        found.append(step / size)
        before = A
    return torch.stack(found).cpu().numpy()


# Tokens of more than this many times the median norm count as sinks, registers among them.
LARGE = 4.0
# The rank of all tokens over that of every second one: above, it still grows with the tokens.
CONVERGED = 1.1


def sinks(
    X: Float[Tensor, "n d"], *, cls: bool = False, registers: int = 0
) -> dict[str, Float64[Tensor, ""]]:
    """By name, of one state whose tokens are CLS, where there is one, the registers, and the rest:

    cos_mean_desunk, effective_rank_desunk: without the largest direction, X - sigma_1 u_1 v_1^T;
    sink_share: sigma_1 over the sum of the singular values. effective_rank_half: of every second
    token. cos_mean_without_large, effective_rank_without_large: without the tokens of more than
    LARGE times the median norm, large_tokens of them. The first three, cos_mean and effective_rank
    once more under names that end in
        _without_first       without position 0 (CLS, where there is one)
        _without_registers   without the registers, where there are any
        _patches             without either, where there are registers

    NaN where nothing is left to measure: one token, a state of rank 1, a token that is 0.
    """
    X = X.detach().double()
    size = torch.linalg.vector_norm(X, dim=-1)
    large = size > LARGE * size.median()
    found, sigma = _behind(X)
    found |= {
        "cos_mean_without_large": _cosine(X[~large]),
        "effective_rank_without_large": _effective_rank(
            _singular_values(X[~large]) if bool(large.any()) else sigma
        ),
        "large_tokens": large.sum().double(),
        "effective_rank_half": _effective_rank(_singular_values(X[::2])),
    }
    first, end = int(cls), int(cls) + registers
    without = {"without_first": X[1:]}
    if registers:
        without |= {"without_registers": torch.cat([X[:first], X[end:]]), "patches": X[end:]}
    for name, part in without.items():
        behind, sigma = _behind(part)
        own = {"cos_mean": _cosine(part), "effective_rank": _effective_rank(sigma)}
        found |= {f"{each}_{name}": value for each, value in (own | behind).items()}
    return found


def _behind(X: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """What is behind the largest direction of X, and the singular values of X."""
    undefined = X.new_full((), torch.nan)
    if not len(X):
        names = ("cos_mean_desunk", "effective_rank_desunk", "sink_share")
        return dict.fromkeys(names, undefined), X.new_zeros(1)
    sigma, v = _largest(X)
    rest = X - (X @ v).unsqueeze(-1) * v
    # The rounding of X is no rank: what is left of a state of rank 1 is undefined.
    behind = _singular_values(rest)
    left = float(behind[0]) > 1e-12 * float(sigma[0])
    return {
        "cos_mean_desunk": _cosine(rest) if left else undefined,
        "effective_rank_desunk": _effective_rank(behind) if left else undefined,
        "sink_share": sigma[0] / (sigma[0] + behind.sum()),
    }, sigma


def sink_columns(
    batches: Sequence[Extraction], *, cls: bool = False, registers: int = 0
) -> dict[str, Array]:
    """`sinks` of every stream of the batches, by name [layers + 1, inputs]; padding left out."""
    found: list[dict[str, Tensor]] = []
    for batch in batches:
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        for number, keep in enumerate(batch.keep):
            each = [sinks(X[number][keep], cls=cls, registers=registers) for X in streams]
            found.append({name: torch.stack([one[name] for one in each]) for name in each[0]})
    return {name: torch.stack([one[name] for one in found], -1).numpy() for name in found[0]}


def _largest(X: Tensor) -> tuple[Tensor, Tensor]:
    """(sigma [k], largest first, v_1 [d]) through the smaller Gram matrix."""
    tall = X.shape[0] >= X.shape[1]
    values, vectors = torch.linalg.eigh(X.mT @ X if tall else X @ X.mT)
    v = vectors[:, -1] if tall else X.mT @ vectors[:, -1]
    size = torch.linalg.vector_norm(v)
    return values.clamp_min(0.0).sqrt().flip(-1), v / torch.where(size > 0, size, 1.0)


def _singular_values(X: Tensor) -> Tensor:
    """Largest first, [min(n, d)], through the smaller Gram matrix; [0.] of no token."""
    if not len(X):
        return X.new_zeros(1)
    gram = X @ X.mT if X.shape[0] < X.shape[1] else X.mT @ X
    found: Tensor = torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt().flip(-1)
    return found


def _effective_rank(sigma: Tensor) -> Tensor:
    """exp of the entropy of the singular values over their sum; NaN where all are 0."""
    found: Tensor = torch.special.entr(sigma / sigma.sum()).sum().exp()
    return found


def _cosine(X: Tensor) -> Tensor:
    """The mean signed cosine over pairs of distinct tokens; NaN for fewer than two."""
    n = len(X)
    unit = X / torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    if n < 2:
        return X.new_full((), torch.nan)
    found: Tensor = (unit.sum(0).square().sum() - unit.square().sum()) / (n * (n - 1))
    return found


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


class Closer:
    """A closer look at some inputs; kept are numbers by layer, head and token."""

    def __init__(self, model: Model) -> None:
        self.model, self.inputs = model, 0
        self._states: list[dict[str, Array]] = []
        self._heads: list[Measured] = []
        self._labels: list[NDArray[np.int64]] = []
        self._sinks: list[list[list[Seen]]] = []

    def see(self, batch: Extraction, spectra: int) -> None:
        """Look at every input of a batch that carries attention.

        spectra: how many inputs may have theirs taken; the heads share in it, so that all of them
        cost what the means over heads do.
        """
        heads = max(layer.heads.number for layer in self.model.layers)
        share = min(spectra, max(1, spectra // heads)) - self.inputs
        labels = token_clusters([batch])
        states = sink_columns([batch], cls=self.model.cls, registers=self.model.registers)
        states |= cluster_columns(labels)
        self._states.append(states)
        self._heads.append(head_measures(self.model, batch, max(0, share)))
        if any(layer.sinks is not None for layer in self.model.layers):
            self._sinks.append(seen_attention(self.model, batch))
        self._labels += labels[: max(0, DRAWN - self.inputs)]
        self.inputs += len(batch.keep)

    def columns(self) -> dict[str, Array]:
        """By name [layers + 1, inputs]: of `sinks`, of `cluster_columns`, and where the attention
        has sinks of `sink_attention`; empty for none."""
        attention = sink_attention(self.model, self._sinks) if self._sinks else {}
        return _joined(self._states) | attention

    def heads(self) -> pd.DataFrame:
        """`head_table`; empty for none."""
        return head_table(_joined(self._heads)) if self._heads else pd.DataFrame()

    def tokens(self, words: Sequence[Sequence[str]] | None = None) -> pd.DataFrame:
        """`token_table` of the first DRAWN inputs, with the words of theirs; empty for none."""
        return token_table(self._labels, words) if self._labels else pd.DataFrame()


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    names = parts[0] if parts else ()
    return {name: np.concatenate([each[name] for each in parts], axis=-1) for name in names}
