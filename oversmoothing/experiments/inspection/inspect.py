"""Does a trained model smooth, where, by which sublayer, and why: `inspect(model, inputs)`.

Inputs stream through the model in batches, and each layer is measured while the pass is in it
(`experiments.inspection.observe`); what is kept is a few numbers an input. The report is
`experiments.inspection.report.Report`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection import extract
from oversmoothing.experiments.inspection.budget import (
    BUDGET,
    Budget,
    Plan,
    checked_budget,
    left_out,
    text_lengths,
)
from oversmoothing.experiments.inspection.heads_and_why import head_table
from oversmoothing.experiments.inspection.observe import PART_NAMES, Observer
from oversmoothing.experiments.inspection.report import Report
from oversmoothing.experiments.inspection.states import shown_pixels, shown_words, token_table
from oversmoothing.experiments.intervals import FEWEST, NAN, mean_interval, mean_intervals, named
from oversmoothing.experiments.models.checkpoints import in_float32
from oversmoothing.experiments.models.describe import NotMadeUpError, NotReadError, describe
from oversmoothing.experiments.models.inputs import Texts
from oversmoothing.experiments.models.model import Layer, Model, evaluating, without_autocast
from oversmoothing.experiments.models.pass_graph import Graph, watch
from oversmoothing.experiments.models.reader import read
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.state import one_thread, undisturbed
from oversmoothing.simulations.state_metrics import stream_log_ratio
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

BATCH = 32
# Inputs of one pass of a model that is not read, every tensor of which is kept.
WATCHED = 4
TEN = float(np.log(10))
PLACES = ("in front", "behind attention", "behind layer")
_AUTOCAST = "autocast is left out: the model runs in the dtype of its weights"


@one_thread()
@undisturbed()
def inspect(
    model: Model | nn.Module | str,
    inputs: Tensor | Iterable[Any] | dict[str, Tensor],
    *,
    name: str | None = None,
    budget: float | str | Plan = BUDGET,
    batch_size: int | None = None,
    progress: bool = False,
) -> Report:
    """Measure a model on inputs: one batch as the model reads it, or a list of images or texts.

    model: a described model, a module, a folder or a hub name. budget: how many
    forward passes on all the inputs everything may cost (`inspection.budget`); 'all': no limit.
    Streams and sublayers are measured on every input; on as many of them, from the first, as the
    budget leaves (two at least) the share of the norms in each sublayer's change, ranks, what is
    behind the largest direction, heads and tokens that come together, and then the spectra of
    attention. A `Plan` says each number itself. progress: a bar on stderr.

    Raises `InputError` for models that are not read, and for inputs of another shape or of a
    single token.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> report = oversmoothing.inspect(model, X)
    >>> report.logs.shape, bool(report.av_error < 1e-5)
    ((3, 4), True)
    """
    asked = checked_budget(budget)
    with without_autocast() as was_on:
        described = _opened(model, inputs)
        described = described if name is None else described.renamed(name)
        described = described.noted(_AUTOCAST) if was_on else described
        return _inspected(described, inputs, asked, batch_size or BATCH, progress)


def _opened(model: Model | nn.Module | str, inputs: Any) -> Model:
    try:
        return open_model(model)
    except NotMadeUpError:
        each = inputs if isinstance(inputs, list) else [inputs]
        if isinstance(model, nn.Module) and all(isinstance(x, Tensor | dict) for x in each):
            return describe(model, inputs)
        raise


def _inspected(
    described: Model, inputs: Any, budget: Budget, batch_size: int, progress: bool
) -> Report:
    extract.check_inputs(inputs)
    sinks = any(layer.sinks for layer in described.layers)
    if sinks and isinstance(budget, Plan) and budget.spectra:
        raise InputError(
            f"the attention of '{described.name}' has sinks: its rows sum to less than 1, and the "
            "theory has no verdict for it; give a Plan without spectra"
        )
    texts = described.prepare if isinstance(described.prepare, Texts) else None
    pixels, words = shown_pixels(described, inputs), shown_words(described, inputs)
    longest = max(text_lengths(described, inputs), default=0)
    if texts is not None:
        texts.cut = 0
    seen, av_error = Observer(described, budget, extract.count(inputs), longest), 0.0
    for batch in extract.stream(
        described, inputs, batch_size=batch_size, progress=progress, see=seen.see, ask=seen.ask
    ):
        av_error = max(av_error, *batch.av_error)
    noted = described if texts is None else described.noted(*texts.notes)
    first = inputs[0] if isinstance(inputs, list | tuple) else inputs
    if isinstance(first, Tensor | Mapping):  # nothing was resized or normalised
        own = getattr(described.prepare, "notes", ()) if texts is None else ()
        kept = tuple(each for each in noted.run_notes if each not in own)
        noted = replace(noted, run_notes=kept)
    if seen.plan is not None:
        noted = noted.noted(*left_out(noted, seen.plan, max(seen.lengths), seen.seen))
    return _report(noted, seen, av_error, words, pixels)


def _report(
    model: Model, seen: Observer, av_error: float, words: list[list[str]] | None,
    pixels: Array | None,
) -> Report:  # fmt: skip
    metrics, changes = seen.metrics.arrays(), seen.changes.arrays()
    close, heads = seen.close.arrays(), seen.measured_heads()
    linear, spectra = seen.linearity.columns(), seen.spectra
    spectral = [{} for _ in model.layers] if spectra is None else spectra.columns()
    rows: list[dict[str, Any]] = [{"layer": number} for number in range(model.depth + 1)]
    for name, values in metrics.items():
        _intervals(rows, {name: values})
        # Of two or three inputs the percentiles would be the inputs themselves.
        some = values.shape[1] >= FEWEST
        ends = np.quantile(values, [0.05, 0.95], axis=1) if some else np.full((2, len(rows)), NAN)
        for row, low, high in zip(rows, *ends, strict=True):
            row |= {f"{name}_p05": low, f"{name}_p95": high}
    _intervals(rows, close)
    _intervals(rows[1:], changes)
    for number, (row, layer) in enumerate(zip(rows[1:], model.layers, strict=True)):
        row |= seen.modes(number).why | spectral[number] | _gains(layer) | linear[number]
        row["cos_start"] = np.nan if layer.cos_start is None else layer.cos_start
    _intervals(rows[1:], seen.drift.arrays())
    logs, lengths = metrics["log_hfc_lfc"], seen.lengths
    columns = {name: f"log_change_{name}" for name in PART_NAMES}
    parts = {name: changes[column] for name, column in columns.items() if column in changes}
    taken = next(iter(parts.values())).shape[1] if parts else 0
    whole = sum(parts.values(), np.zeros((model.depth, taken)))
    unexplained = whole - np.diff(logs, axis=0)[:, :taken]
    return Report(
        model=model.name,
        tokens=lengths.pop() if len(lengths) == 1 else 0,
        images=logs.shape[1],
        by_layer=pd.DataFrame(rows),
        logs=logs,
        cosines=metrics["cos_mean"],
        by_attention=changes["log_change_attention"],
        by_ffn=changes["log_change_ffn"],
        parts=parts,
        placement=model.layers[0].placement,
        modality=model.modality,
        cls=model.cls,
        registers=model.registers,
        causal=model.causal,
        closer=taken,
        heads=head_table(heads) if heads else pd.DataFrame(),
        tokens_together=token_table(seen.tokens(), words) if seen.labels else pd.DataFrame(),
        pixels=pixels if seen.labels else None,
        spectra=0 if spectra is None else spectra.inputs,
        accounted=taken,
        account_error=float(np.abs(unexplained).max(initial=0.0)),
        av_error=av_error,
        notes=model.run_notes,
    )


def _gains(layer: Layer) -> dict[str, float]:
    norms = {"negative_layernorm_weights": layer.norm_attention,
             "negative_gains_attention": layer.norm_attention,
             "negative_gains_ffn": layer.norm_ffn}  # fmt: skip
    return {
        name: 0.0 if norm.kind == "none" else float((norm.gain < 0).double().mean())
        for name, norm in norms.items()
    }


def _intervals(rows: list[dict[str, Any]], columns: dict[str, Array]) -> None:
    """Into each row the means over inputs of its values and their intervals.

    Of HFC/LFC the mean is the geometric one, as everywhere.
    """
    for name, values in columns.items():
        if name.startswith("hfc_lfc"):
            with np.errstate(divide="ignore"):
                ends = np.exp(mean_intervals(np.log(values)))
        else:
            ends = np.array(mean_intervals(values))
        for row, own in zip(rows, ends.T.tolist(), strict=True):
            row |= named(name, own)


@torch.no_grad()
def seen(refused: NotReadError, inputs: Any) -> Result:
    """What passes of a model that is not read show: HFC/LFC of its streams, how its tokens attend.

    Without the form X + sum_h A_h N(X) W_V,h W_O,h there are no H, spectra, causes and heads.
    inputs: as `inspect` takes them. log10 HFC/LFC is NaN where the pass shows no such stream.
    Raises `InputError` where no attention with a residual sum was seen.
    """
    model = refused.model
    size = 1 if model.modality == "text" and not isinstance(inputs, Tensor) else WATCHED
    parts: list[np.ndarray] = []
    names: list[str] = []
    with evaluating(model.module), in_float32(model.module), without_autocast():
        for part in extract.batches(inputs, size):
            batch = extract.prepared_and_moved(model, part)
            graph = watch(model.run, model.module, batch)
            names, rows = _layers(graph, model.module, extract.count(part) or 1)
            parts.append(rows)
    if not names or len({len(each) for each in parts}) > 1:
        raise InputError(f"{refused}. Its passes show no stream that could be measured")
    values = np.concatenate(parts, 2)
    columns = dict(zip((*PLACES, "largest weight"), values.mean(2).T, strict=True))
    table = pd.DataFrame({"attention": range(1, len(names) + 1), "block": names} | columns)
    ended = bool(np.isfinite(values[-1, 2]).all())
    change = values[-1, 2 if ended else 1] - values[0, 0]
    place = "the last layer" if ended else "the stream behind the last attention"
    mean, low, high = mean_interval(change)
    number = len(change)
    # Without an interval it is said of these inputs alone, which the evidence counts.
    known = np.isfinite(mean) and not low <= 0 <= high
    how = f"tokens end {'more' if mean < 0 else 'less'} alike"
    says = (
        f"{model.name}: from the input to {place} log10 HFC/LFC (differences between tokens "
        f"over what they share) changes by {mean:+.2f}: "
        f"{how if known else 'whether tokens end more alike cannot be told'}."
    )
    why = f"By what, it cannot say: {refused}."
    evidence = measured(number, low, high) if number >= FEWEST else measured(number)
    return Result(
        "unread", f"{model.name}: what its own pass shows", {
            "layers": Table(table, dict.fromkeys(PLACES, "log10 HFC/LFC"))
        }, [Sentence(says, evidence), Sentence(why, measured(number))],
        {"model": model.name, "inputs": number},
    )  # fmt: skip


def _layers(graph: Graph, module: Any, inputs: int) -> tuple[list[str], np.ndarray]:
    """(names of the blocks, [layers, 4, inputs]: the three ratios and the mean largest weight)."""
    names, rows = [], []
    for each in read(graph, module, inputs):
        if each.kind != "self" or not each.placed:
            continue
        A = graph.values[each.product.A]
        A = (A.mT if each.product.flipped else A).double()
        # Windows and heads lie side by side in the first dimensions.
        largest = A.amax(-1).reshape(inputs, -1).mean(1)
        # Of what is not read no second sublayer may have been found: there still may be one.
        end = -1 if each.end == each.total and each.placement != "parallel" else each.end
        between = each.after if each.placement == "post" and each.after else each.total
        streams, like = (each.before, between, end), graph.values[each.total]
        ratios = [_ratio(graph.values[v] if v >= 0 else None, like, inputs) for v in streams]
        rows.append(torch.stack([*ratios, largest]).numpy())
        names.append(graph.block(each.product.out, max(each.end, each.total)).name)
    return names, np.array(rows)


def _ratio(X: Tensor | None, like: Tensor, inputs: int) -> Tensor:
    """log10 HFC/LFC by input; NaN where the sum with attention is no [inputs, tokens.., width]."""
    if X is None or like.ndim < 3 or len(like) != inputs or X.numel() != like.numel():
        return torch.full((inputs,), torch.nan, dtype=torch.float64)
    return stream_log_ratio(X.reshape(like.shape).flatten(1, -2)).double() / TEN
