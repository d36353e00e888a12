"""What is observed of a model while its passes run: every layer's numbers, while it is there.

Everything kept is a number an input (image or text) or a sum over inputs: thousands of inputs run
in bounded memory, one layer's attention at a time, and intervals are over inputs, which are the
independent observations.

How linear a layer is: the share of its output that one linear map of its input explains, the score
of generalised Procrustes analysis (Razzhigaev et al. 2024, arXiv 2405.12250): the share of
||Y||_F^2, tokens centred, that the best W of Y = X W + c explains. Theirs is fitted and scored on
the same tokens, which rises to 1 by itself as d nears the number of tokens; here W is fitted on
every second input and scored on the others, both ways. With the residual Y is the layer's output,
of which most is X; without it Y is what the layer adds, output - input.

The exact account of a layer's change of log HFC/LFC: each sublayer's change is a sum of three, by
switching its norm on in two steps:
    body     the sublayer with one scale for all tokens (their root mean square) and unit gains;
    scales   what each token's own scale adds to that;
    gains    what the norm's gain and shift add.
For a Pre-LN sublayer X + f(N(X)) the norm stands in front of f (one behind f is switched on with
it); for a Post-LN one N(X + f(X)) the body is X + f(X) without any norm, and `scales` holds
centring and scaling. The split depends on this order, as every split of a non-additive quantity
does; its sum does not. The attention A is the measured one throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection import heads_and_why
from oversmoothing.experiments.inspection.budget import NAMED, Budget, Plan, plan_for
from oversmoothing.experiments.inspection.states import DRAWN, state_numbers
from oversmoothing.experiments.inspection.verify import Questions
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.models.model import Heads, Layer, Model, Norm, Trace, carried
from oversmoothing.simulations.state_metrics import kept_parts, stream_log_ratio
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

if TYPE_CHECKING:
    from oversmoothing.experiments.inspection.spectra import Spectra

# Inputs of a first batch whose account is computed from the weights to its end.
PROVED = 1


class Columns:
    """Numbers by name, row by row; pieces of inputs one after the other, the last axis."""

    def __init__(self, rows: int) -> None:
        self._rows: list[dict[str, list[Array]]] = [{} for _ in range(rows)]

    def add(self, row: int, values: dict[str, Tensor] | dict[str, Array]) -> None:
        """Behind what the row has."""
        for name, value in values.items():
            self._rows[row].setdefault(name, []).append(np.asarray(value))

    def arrays(self) -> dict[str, Array]:
        """By name [rows, ..., inputs]; rows without a name are NaN."""
        numbers: dict[str, Array] = {}
        for name in dict.fromkeys(name for row in self._rows for name in row):
            each = [np.concatenate(row[name], -1) if name in row else None for row in self._rows]
            shape = next(value.shape for value in each if value is not None)
            numbers[name] = np.stack([np.full(shape, np.nan) if v is None else v for v in each])
        return numbers


class Observer:
    """Sees a model's passes, layer by layer; budget: what all may take where there are so many
    `inputs` (None: unknown, the first batch is taken for all) of `tokens` at most (0: unknown).

    metrics [layers + 1, inputs] (row 0: in front of layer 1; RANKS of the first). changes [layers,
    ...]: of log HFC/LFC over each sublayer, and their parts. drift [layers, inputs]: ||A_l -
    A_{l-1}||_F / ||A_l||_F of the mean over heads (NaN for l = 1). close [layers + 1, ...], heads
    [layers, heads, ...]: of the inputs looked at closely.
    """

    def __init__(self, model: Model, budget: Budget, inputs: int | None, tokens: int = 0) -> None:
        self.model, self.budget, self.inputs, self.longest = model, budget, inputs, tokens
        self.plan: Plan | None = None
        self.metrics, self.close = Columns(model.depth + 1), Columns(model.depth + 1)
        self.changes, self.drift, self.heads = (Columns(model.depth) for _ in range(3))
        self.linearity = Linearity(model)
        self.spectra: Spectra | None = None
        self.labels: list[list[NDArray[np.int64]]] = []
        self.lengths: set[int] = set()
        self.seen = 0
        # Value maps are decomposed once a layer, and only where that is asked.
        self.modes = cache(self._modes)
        # The layer that is seen, its weights read once; what its FFN gives in the account.
        self._read: tuple[int, Layer] = -1, model.layers[0]
        self._fed: Iterator[Tensor] | None = None
        self._linear = True
        self._mean: Tensor | None = None
        self._log: Tensor | None = None
        # Attention of the heads that smooth most so far, [(change, layer, head, [A, ...])].
        self._named: list[tuple[float, int, int, list[NDArray[np.floating]]]] = []

    def layer(self, number: int) -> Layer:
        """That layer, whose weights lie on the CPU."""
        if self._read[0] != number:
            self._read = number, self.model.layers[number].once()
        return self._read[1]

    def ask(
        self, number: int, trace: Trace, keep: Tensor, verified: bool, questions: Questions
    ) -> None:
        """For the weights of a layer, and what its FFN gives in the account."""
        closely = max(0, min(self._planned(keep).closely - self.seen, len(keep)))
        if self.seen and not closely:
            return
        layer = self.model.layers[number]
        held = {name: each for name, each in vars(layer.heads).items() if each is not None}
        pieces = _pieces(trace.some(slice(closely)), keep[:closely], verified)
        ffn = layer.ffn
        fed = [] if ffn is None else [ffn(X) for piece in pieces for X in _to_ffn(layer, *piece)]

        def copied(*numbers: Tensor) -> None:
            heads = Heads(**dict(zip(held, numbers, strict=False)))
            self._read = number, replace(layer, read=lambda: heads)
            self._fed = iter(numbers[len(held) :])

        questions.judge([*held.values(), *fed], copied)

    def see(self, number: int, trace: Trace, keep: Tensor, verified: bool) -> None:
        """A layer of a batch. Raises `InputError` for an input of one token, which nothing can
        agree with."""
        if not number:
            self._begin(keep)
        plan, fed, self._fed = self._planned(keep), self._fed, None
        whole = None if bool(keep.all()) else keep
        ranks, closely, pairs, spectra = (
            max(0, min(n - self.seen, len(keep)))
            for n in (plan.ranks, plan.closely, plan.pairs, min(plan.spectra, plan.closely))
        )
        if not number:
            self._log = self._state(0, trace.before, whole, closely)
        start, end = self._log, self._state(number + 1, trace.after_ffn, whole, closely)
        middle = stream_log_ratio(trace.after_attention, whole)
        assert start is not None
        change = {"attention": middle - start, "ffn": end - middle}
        layer, some, kept = self.layer(number), trace.some(slice(closely)), keep[:closely]
        if ranks and self._linear:
            self.linearity.see(number, trace.some(slice(ranks)), keep[:ranks], self.seen)
        if closely:
            parts = [
                layer_account(layer, part, partial(stream_log_ratio, keep=mask), mask, verify, fed)
                for part, mask, verify in _pieces(some, kept, verified)
            ]
            change |= {name: torch.cat([each[name] for each in parts]) for name in PART_NAMES}
            heads = heads_and_why.head_numbers(layer, some, kept, self.model.causal, pairs)
            if spectra:
                self._spectra(number, trace.some(slice(spectra)), keep[:spectra], heads)
            elif (why := plan.why - self.seen) > 0 and not layer.sinks:
                self._keep(number, trace.some(slice(why)), keep[:why], heads)
            self.heads.add(number, heads)
            if layer.sinks:
                how = some, kept, self.modes(number), self.model.causal
                self.close.add(number + 1, heads_and_why.sink_attention(*how))
        self.changes.add(number, {f"log_change_{name}": value for name, value in change.items()})
        self.drift.add(number, {"attention_drift": self._drift(number, trace, whole)})
        if not self.seen and self.model.width <= heads_and_why.LARGEST:
            self.modes(number)  # while its weights are there
        self._log = end
        if number == self.model.depth - 1:
            self.seen += len(keep)
            self._mean = None

    def _spectra(self, number: int, trace: Trace, keep: Tensor, heads: dict[str, Array]) -> None:
        """Of the layer, and of its heads into `heads`."""
        from oversmoothing.experiments.inspection import spectra  # not loaded for the rest

        if self.spectra is None:
            self.spectra = spectra.Spectra(self.model)
        value = self.modes(number)
        self.spectra.see(number, trace, keep, value, self.layer(number).heads)
        for name, values in spectra.head_dominance(trace, keep, value).items():
            heads[name][:, : len(keep)] = values

    def _keep(self, number: int, trace: Trace, keep: Tensor, heads: dict[str, Array]) -> None:
        """Of the first batch twice as many heads as are named, since later ones may reorder them:
        their attention, of it and of those behind it."""
        if not self.seen:
            table = heads_and_why.head_table({name: each[None] for name, each in heads.items()})
            if heads["log_change"].shape[1] < FEWEST:  # no interval tells, only the mean
                table["log_change_high"] = table["log_change"]
            worst = heads_and_why.worst_heads(table, 2 * NAMED)
            each = zip(worst["log_change"], worst["head"], strict=True)
            self._named += [(float(change), number, int(head), []) for change, head in each]
            self._named = sorted(self._named, key=lambda each: each[0])[: 2 * NAMED]
        attention = heads_and_why.matrices(trace, keep)
        for _, layer, head, held in self._named:
            held += [A[head].copy() for A in attention if layer == number]

    def measured_heads(self) -> dict[str, Array]:
        """`heads` by name, with the spectra of those that smooth most where they were kept."""
        numbers = self.heads.arrays()
        if self._named:
            from oversmoothing.experiments.inspection.spectra import own_dominance

            worst = heads_and_why.worst_heads(heads_and_why.head_table(numbers), NAMED)
            named = set(zip(worst["layer"] - 1, worst["head"], strict=True))
            for _, layer, head, attention in self._named:
                if (layer, head) in named:
                    h = self.modes(layer).of_head(head)
                    for k, A in enumerate(attention):
                        for name, value in own_dominance(A, h).items():
                            numbers[name][layer, head, k] = value
        return numbers

    def _modes(self, number: int) -> heads_and_why.ValueModes:
        assert self.plan is not None
        values, vectors = bool(self.plan.values), bool(self.plan.vectors)
        heads, where = self.layer(number).heads, self.model.device
        return heads_and_why.ValueModes.of(heads, where, values=values, vectors=vectors)

    def tokens(self) -> list[NDArray[np.int64]]:
        """The clusters of the first inputs, each [layers + 1, n]."""
        return [np.stack(each) for each in self.labels]

    def _begin(self, keep: Tensor) -> None:
        number = keep.sum(-1)
        alone = (number < 2).nonzero()
        if len(alone):
            which, kind = self.seen + int(alone[0]) + 1, self.model.modality
            raise InputError(
                f"{'text' if kind == 'text' else 'input'} {which} has a single token, and whether "
                "tokens become alike is asked of two or more: leave it out"
            )
        self.lengths |= {int(each) for each in number}

    def _planned(self, keep: Tensor) -> Plan:
        if self.plan is None:
            of = len(keep) if self.inputs is None else self.inputs
            longest = max(keep.shape[1], self.longest)
            self.plan = plan_for(self.budget, self.model, longest, of)
            # Few inputs never have the tokens that a fit takes.
            few = self.plan.ranks * keep.shape[1] < 2 * ENOUGH * self.model.width
            self._linear = not few or self.inputs is None or self.plan.ranks > len(keep)
        return self.plan

    def _state(self, row: int, X: Tensor, keep: Tensor | None, closely: int) -> Tensor:
        """log HFC/LFC [b] of a state whose numbers are kept."""
        assert self.plan is not None
        ranks = max(0, self.plan.ranks - self.seen)
        parts = [
            state_numbers(
                part, cls=self.model.cls, registers=self.model.registers,
                ranks=max(0, ranks - k), closely=max(0, closely - k),
            )
            for k, part in enumerate(kept_parts(X, keep))
        ]  # fmt: skip
        for metrics, close, _ in parts:
            self.metrics.add(row, metrics)
            for numbers in close:
                self.close.add(row, numbers)
        labels = [one for *_, own in parts for one in own][: max(0, DRAWN - self.seen)]
        if not row:
            self.labels += [[] for _ in labels]
        for k, one in enumerate(labels, self.seen):
            self.labels[k].append(one)
        return torch.cat([metrics["log_hfc_lfc"] for metrics, *_ in parts])

    def _drift(self, number: int, trace: Trace, keep: Tensor | None) -> Tensor:
        """Rows and columns of padding are 0 in a masked mean attention only if its queries are;
        they are cut by the weights."""
        assert trace.attention is not None
        A = sum(trace.attention.unbind(1), torch.zeros(())) / trace.attention.shape[1]
        A = A if keep is None else A * keep.unsqueeze(-1)
        before = torch.tensor(torch.nan) if self._mean is None else self._mean
        self._mean = A
        step, size = (
            torch.linalg.vector_norm(each, dim=(-2, -1), dtype=torch.float64)
            for each in (A - before, A)
        )
        relative: Tensor = step / size
        return relative


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
        self.halves: list[list[Sums]] = [[{} for _ in model.layers] for _ in (0, 1)]

    def see(self, number: int, trace: Trace, keep: Tensor, seen: int) -> None:
        """A layer of a batch, so many inputs behind the first."""
        if not self.fits:
            return
        parity = (torch.arange(len(keep)) + seen) % 2
        for half, held in enumerate(self.halves):
            own = keep & (parity == half).unsqueeze(-1)
            sums, before = _sums(trace.before[own], trace.after_ffn[own]), held[number]
            held[number] = {name: value + before.get(name, 0.0) for name, value in sums.items()}

    def columns(self) -> list[dict[str, float]]:
        """{linear_with_residual, linear_without_residual} of each layer, at most 1; below 0 where
        the fit is worse than the mean. NaN with too few tokens to tell."""
        names = ("linear_with_residual", "linear_without_residual")
        few = ENOUGH * self.width
        if any(not half[0] or half[0]["n"] < few for half in self.halves):
            return [dict.fromkeys(names, float("nan")) for _ in range(self.layers)]
        numbers = []
        for first, second in zip(*self.halves, strict=True):
            both = [_scores(a, b) for a, b in ((first, second), (second, first))]
            mean = torch.tensor(both, dtype=torch.float64).mean(0).tolist()
            numbers.append(dict(zip(names, mean, strict=True)))
        return numbers


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
    """The share that W = 1 + D of the one half explains on the other, with the residual and
    without; D is 0 in directions that no token of the one half has."""
    x, y = fitted["x"] / fitted["n"], fitted["y"] / fitted["n"]
    xx, xy, _ = _centred(fitted, x, y)
    ridge = RIDGE * xx.trace() / len(xx) * torch.eye(len(xx), dtype=xx.dtype)
    D = torch.linalg.solve(xx + ridge, xy - xx)  # of the change Y - X
    XX, XY, YY = _centred(scored, x, y)
    change = YY - 2 * XY.trace() + XX.trace()
    left = change - 2 * (D * (XY - XX)).sum() + (D * (XX @ D)).sum()
    return float(1 - left / YY), float(1 - left / change)


# ----------------------------------------------------------------- the account of a layer
PARTS = ("body", "scales", "gains")
SUBLAYERS = ("attention", "ffn")
Piece = tuple[Trace, Tensor | None, bool]  # trace, keep (None for all), verify
PART_NAMES = tuple(f"{sublayer}_{part}" for sublayer in SUBLAYERS for part in PARTS)


def bare(norm: Norm, X: Tensor, keep: Tensor | None = None) -> Tensor:
    """N with one scale for all tokens of an input and unit gains: (X - row mean) / rms scale."""
    if norm.kind == "none":
        return X
    centred = norm.centred(X)
    square = norm.square(centred)
    if keep is None:
        return centred * square.mean(-2, keepdim=True).rsqrt()
    weight = carried(keep.unsqueeze(-1), square)
    return centred * ((square * weight).sum(-2, keepdim=True) / weight.sum(-2, True)).rsqrt()


def _pieces(trace: Trace, keep: Tensor, verified: bool) -> Iterator[Piece]:
    """The parts of a batch whose account is computed together: of the first inputs of a pass that
    is verified from the weights to the last, so that their sum can be held against the change."""
    proved = PROVED if verified else 0
    for part, verify in ((slice(proved), True), (slice(proved, None), False)):
        kept = keep[part]
        if len(kept):
            yield trace.some(part), None if bool(kept.all()) else kept, verify


def _switched_on(keep: Tensor | None, verify: bool) -> list[Callable[[Norm, Tensor], Tensor]]:
    """A norm in the steps of PARTS; the last only where it is computed."""
    return [partial(bare, keep=keep), Norm.scaled, *([Norm.__call__] if verify else [])]


def _to_ffn(layer: Layer, trace: Trace, keep: Tensor | None, verify: bool) -> list[Tensor]:
    """What its FFN is given in the account."""
    X = trace.before if layer.placement == "parallel" else trace.after_attention
    steps = _switched_on(keep, verify)
    return [X] if layer.placement == "post" else [step(layer.norm_ffn, X) for step in steps]


def layer_account(
    layer: Layer,
    trace: Trace,
    log_ratio: Callable[[Tensor], Tensor],
    keep: Tensor | None = None,
    verify: bool = True,
    fed: Iterator[Tensor] | None = None,
) -> dict[str, Tensor]:
    """{'attention_body', 'attention_scales', ..., 'ffn_gains': change of the natural log, [b]}.

    log_ratio maps a stream [b, n, d] to log HFC/LFC [b], float64, over the kept tokens; keep [b, n]
    bool or None for all. With verify each part is computed from the weights, so that their sum is
    the measured change only where the model was read rightly; without, the last step of a sublayer
    is the measured stream. fed: what the FFN gives, step by step, where it is known.
    """
    assert trace.attention is not None
    A = trace.attention.to(trace.before.dtype)
    weights = layer.heads.to(A.device, A.dtype)
    start, middle, end = map(log_ratio, (trace.before, trace.after_attention, trace.after_ffn))
    steps = _switched_on(keep, verify)

    def account(
        norm: Norm, behind: Norm, made: Iterator[Tensor], base: Tensor, first: Tensor, last: Tensor
    ) -> list[Tensor]:
        """The parts of a sublayer's change from log HFC/LFC `first` to the measured `last`: it
        adds to `base` what it has made, step by step."""
        if layer.placement == "post":
            added = base + next(made)
            logs = [log_ratio(added), *(log_ratio(step(norm, added)) for step in steps[1:])]
        else:
            logs = [log_ratio(base + step(behind, Z)) for step, Z in zip(steps, made, strict=False)]
        logs = [first, *logs, *([] if verify else [last])]
        return [after - before for before, after in pairwise(logs)]

    before, between, norm = trace.before, trace.after_attention, layer.norm_attention
    given = [before] if layer.placement == "post" else (step(norm, before) for step in steps)
    mixed = (weights.attended(A, N) for N in given)
    changes = account(norm, layer.output_norm_attention, mixed, before, start, middle)
    if layer.ffn is None:
        changes += [torch.zeros_like(start)] * len(PARTS)
    else:
        own = fed or map(layer.ffn, _to_ffn(layer, trace, keep, verify))
        changes += account(layer.norm_ffn, layer.output_norm_ffn, own, between, middle, end)
    return dict(zip(PART_NAMES, changes, strict=True))
