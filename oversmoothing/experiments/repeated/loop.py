"""Does a looped block of a trained model bring its tokens together: `loop(model, inputs)`.

Every block, or group of blocks in turn, is predicted before its tokens are looped, then looped with
attention recomputed, and both are held against each other (T12).

With recall, X <- f(X) + B X_0: is there a fixed point, is it one, do tokens differ there? A fixed
point is said to be found where the last loop moved the stream by less than MOVED of its length; it
is one as far as three starts tell (the stream itself, its mean for every token, the stream of
another input or a shuffled one); it attracts where the derivative of the loop there has spectral
radius < 1, estimated by its powers on a drawn direction. Observations: T12 proves such things for
one linear layer alone.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oversmoothing.experiments.inspection.extract import count, extract
from oversmoothing.experiments.ladder.recording import GAP_NAMES, spectral_gaps
from oversmoothing.experiments.models.model import Model, evaluating
from oversmoothing.experiments.repeated.blocks import (
    BATCH,
    BlockMap,
    at_consensus,
    check_consensus,
    jvp,
    plain_attention,
    runs,
)
from oversmoothing.experiments.repeated.growth import lengths
from oversmoothing.experiments.repeated.loop_result import Loops, label
from oversmoothing.experiments.repeated.predictors import (
    COLLAPSED,
    EARLY,
    FEW,
    GAP,
    LOCAL,
    early_predictions,
    few_tokens,
    local_predictions,
    looped,
    outcomes,
    token_predictions,
)
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.progress import Bar
from oversmoothing.theory.support.errors import InputError, whole_number

LOOPS = 200
# Of the stream's length: what a loop at a fixed point still moves, and how near two ends are one.
MOVED = 1e-4
SAME = 1e-2
POWERS = 30

Group = tuple[int, ...]


@one_thread()
def loop(
    model: Model,
    inputs: Iterable[Any],
    *,
    groups: Sequence[Group] | None = None,
    loops: int = LOOPS,
    seed: int = 0,
) -> Loops:
    """Loop each group of layers (numbers from 1, in turn) `loops` times from the stream in front of
    its first on every input; None: every block of the model by itself, each once.

    With two or more groups and inputs a predictor is chosen on half of both and scored on the
    others, by the seed. Raises `InputError` for fewer than 20 loops, groups that the model does not
    have, inputs of different lengths, and blocks without an invariant consensus.
    """
    chosen = _chosen(model, groups, loops)
    rows: list[dict[str, Any]] = []
    curves: list[list[np.ndarray]] = [[] for _ in chosen]
    names: dict[str, None] = {}
    seen = 0
    with _shown(model, inputs, chosen) as shown:
        for batch, run in runs(model, inputs):
            traces = extract(model, batch, verify=False).traces
            gaps = spectral_gaps(model.layers, traces)[GAP_NAMES[0]]
            with torch.no_grad(), evaluating(model.module):
                for place, group in enumerate(chosen):
                    blocks = [run.blocks[number - 1] for number in group]
                    X = run.states[group[0] - 1]
                    gap = gaps[:, [number - 1 for number in group]].sum(1)
                    own, predicted, logs = _group(model, blocks, X, gap, loops)
                    curves[place].append(logs)
                    names |= dict.fromkeys(predicted)
                    for k, row in enumerate(own):
                        said = {name: float(values[k]) for name, values in predicted.items()}
                        rows.append({"group": place, "input": seen + k} | row | said)
                    shown.update()
            seen += len(run.states[0])
    joined = [np.concatenate(each, axis=1) for each in curves]
    return Loops(model.name, chosen, seed, pd.DataFrame(rows), np.stack(joined), tuple(names))


def _chosen(model: Model, groups: Sequence[Group] | None, loops: int) -> list[Group]:
    """The groups that are looped; raises `InputError` for too few loops, and for other layers."""
    whole_number("loops", loops, 20)
    chosen = own_blocks(model) if groups is None else list(groups)
    for group in chosen:
        if not group or not all(1 <= number <= model.depth for number in group):
            named = "-".join(map(str, group[:9])) + "-..." * (len(group) > 9)
            raise InputError(
                f"the group {named or '(none)'} names layers that "
                f"'{model.name}' does not have: it has layers 1 to {model.depth}"
            )
    return chosen


def _shown(model: Model, inputs: Any, groups: list[Group]) -> Bar:
    """A bar of the groups, batch by batch."""
    size = 1 if model.modality == "text" else BATCH
    return Bar(len(groups) * math.ceil((count(inputs) or 1) / size), "block")


def own_blocks(model: Model) -> list[Group]:
    """Each block of the model by itself; one that serves as several layers (ALBERT) once."""
    first: dict[int, int] = {}
    for number, layer in enumerate(model.layers, 1):
        first.setdefault(id(layer.block), number)
    return [(number,) for number in first.values()]


def _group(
    model: Model, blocks: list[BlockMap], X: Tensor, gap: Tensor, loops: int
) -> tuple[list[dict[str, Any]], dict[str, Any], Any]:
    """(a row an input, log HFC/LFC that is predicted at the end by name [b], curves)."""
    at = X
    for f in blocks:
        check_consensus(f, at)
        at = f(at)
    predicted: dict[str, Any] = {}
    predicted[LOCAL], laws = local_predictions(blocks, X, loops)
    # Of images, whose blocks know no positions; those of texts may.
    n = X.shape[1]
    if model.modality == "vision" and not any(_token_sized(f, n) for f in blocks):
        for number in FEW:
            if number < n:
                predicted[few_tokens(number)] = token_predictions(blocks, X, number, loops)
    run = looped(blocks, X, loops)
    predicted[GAP] = run.logs[0] + loops * gap.numpy()
    predicted[EARLY] = early_predictions(run.logs, loops)
    rows = []
    for start, outcome, law in zip(np.exp(run.logs[0]).tolist(), outcomes(run), laws, strict=True):
        rows.append(
            {
                "start": start, **outcome,
                "exponent": law.exponent, "rate": law.rate, "attracts": law.attracts,
                "power": law.power, "turning": law.turning, "settled": law.settled,
                "by the law": law.loops_to(start, COLLAPSED),
            }
        )  # fmt: skip
    return rows, predicted, run.logs


def _token_sized(f: BlockMap, n: int) -> bool:
    """Whether the block is called with something as long as its tokens beside the stream."""
    given = [*f.args, *f.kwargs.values(), *f.call.values()]
    beside = [each for each in given if isinstance(each, Tensor) and each.ndim != 3]
    return any(n in each.shape for each in beside)


# --------------------------------------------------------------------------------- with recall


@one_thread()
def recalled(
    model: Model,
    inputs: Iterable[Any],
    recall: float,
    *,
    groups: Sequence[Group] | None = None,
    loops: int = LOOPS,
    seed: int = 0,
) -> Result:
    """The table `runs`, one row a group and input: moved (by the last loop, relative), growth (log
    of ||X|| over the last half, in log 2: 1 is linear), apart (the largest relative distance of the
    three ends), start and end (HFC/LFC), radius (of the derivative at the end, NaN where there is
    no fixed point), outcome. Raises `InputError` for recall that is 0 or not finite, and as `loop`.
    """
    if not math.isfinite(recall) or recall == 0:
        raise InputError(f"recall is {recall}: give a finite number other than 0")
    chosen = _chosen(model, groups, loops)
    generator = torch.Generator().manual_seed(seed)
    rows: list[dict[str, Any]] = []
    seen = 0
    with _shown(model, inputs, chosen) as shown:
        for _, run in runs(model, inputs):
            with torch.no_grad(), plain_attention(model.module):
                for group in chosen:
                    blocks = [run.blocks[number - 1] for number in group]
                    X = run.states[group[0] - 1]
                    for k, row in enumerate(_rows(blocks, X, recall, loops, generator)):
                        rows.append({"blocks": label(group), "input": seen + k} | row)
                    shown.update()
            seen += len(run.states[0])
    table = pd.DataFrame(rows)
    return Result(
        "recall",
        f"{model.name}: blocks looped {loops} times with recall {recall:g}",
        {"runs": Table(table, dict.fromkeys(("start", "end"), "HFC/LFC"))},
        [Sentence(_words(table, recall), measured(seen))],
        {"model": model.name, "recall": recall, "loops": loops, "seed": seed},
    )


def _words(table: pd.DataFrame, recall: float) -> str:
    """What became of the runs, and how tokens differ where there is a fixed point."""
    counts = table["outcome"].value_counts()
    listed = ", ".join(f"{name} {count}" for name, count in counts.items())
    fixed = table[table["outcome"].str.startswith("one fixed point")]
    more = ""
    if len(fixed):
        ratio = float(np.exp(np.log(fixed["end"] / fixed["start"]).mean()))
        more = (
            f" At the fixed points HFC/LFC is {ratio:.2g} times that of X_0 (geometric mean), and "
            f"the derivative's radius at most {fixed['radius'].max():.3f}."
        )
    return f"X <- f(X) + {recall:g} X_0 in {len(table)} runs: {listed}.{more}"


def _rows(
    blocks: list[BlockMap], X: Tensor, recall: float, loops: int, generator: torch.Generator
) -> list[dict[str, Any]]:
    shuffled = X[:, torch.randperm(X.shape[1], generator=generator)]
    other = X.roll(1, 0) if len(X) > 1 else shuffled
    runs = [looped(blocks, X, loops, recall, start) for start in (X, at_consensus(X), other)]
    ends = [run.tail[-1] for run in runs]
    size = lengths(ends[0])
    moved = torch.stack([lengths(r.tail[-1] - r.tail[-2]) / lengths(r.tail[-1]) for r in runs])
    apart = torch.stack([lengths(each - ends[0]) / size for each in ends[1:]]).amax(0)
    sizes = runs[0].lengths
    growth = (sizes[-1] - sizes[loops // 2]) / math.log(loops / (loops // 2))
    radius = _radius(blocks, ends[0], generator)
    rows = []
    for k in range(len(X)):
        still, far = float(moved[:, k].max()), float(apart[k])
        fixed = still <= MOVED
        rows.append(
            {
                "start": float(np.exp(runs[0].logs[0, k])),
                "end": float(np.exp(runs[0].logs[-1, k])),
                "moved": still,
                "growth": float(growth[k]),
                "apart": far,
                "radius": float(radius[k]) if fixed else math.nan,
                "outcome": _outcome(fixed, far, float(growth[k])),
            }
        )
    return rows


def _outcome(fixed: bool, apart: float, growth: float) -> str:
    if fixed:
        return "one fixed point from three starts" if apart <= SAME else "several fixed points"
    return "none: the stream grows" if growth > 0.5 else "none reached"


def _radius(blocks: list[BlockMap], X: Tensor, generator: torch.Generator) -> Tensor:
    """The growth of a drawn direction under the derivative at X, over the last half of POWERS."""
    D = torch.randn(X.shape, generator=generator, dtype=X.dtype)
    logs = []
    for _ in range(POWERS):
        at = X
        for f in blocks:
            D, at = jvp(f, at, D), f(at)
        size = lengths(D)
        logs.append(size.log())
        D = D / size[:, None, None]
    return torch.stack(logs[POWERS // 2 :]).mean(0).exp()
