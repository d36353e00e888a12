"""Does a trained model smooth, where, by which sublayer, and why: `inspect(model, inputs)`.

Inputs stream through the model in batches; what is kept is a few numbers an input. The report is
`experiments.inspection.report.Report`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor, nn

from oversmoothing.experiments.inspection.account import PART_NAMES
from oversmoothing.experiments.inspection.extract import check_inputs, stream
from oversmoothing.experiments.inspection.heads_and_why import weights_why
from oversmoothing.experiments.inspection.observe import Closer, Linearity, Observed, join, observe
from oversmoothing.experiments.inspection.report import Report
from oversmoothing.experiments.inspection.spectra import affordable, spectral_columns
from oversmoothing.experiments.inspection.tokens import shown_pixels, shown_words
from oversmoothing.experiments.inspection.verify import without_autocast
from oversmoothing.experiments.intervals import FEWEST, NAN, mean_interval
from oversmoothing.experiments.models.inputs import Texts
from oversmoothing.experiments.models.model import Extraction, Layer, Model, Trace
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.errors import InputError, whole_number
from oversmoothing.theory.support.sizes import Array

BATCH = 32
# Inputs on which the norms' shares are measured unless asked otherwise: they cost two more passes
# through every sublayer.
ACCOUNT = 32
# Inputs that are looked at closely: every state of them is decomposed four times, and every head
# left out once.
CLOSER = 8
_AUTOCAST = "autocast is left out: the model runs in the dtype of its weights"


@one_thread()
def inspect(
    model: Model | nn.Module | str,
    inputs: Tensor | Iterable[Any] | dict[str, Tensor],
    *,
    name: str | None = None,
    spectra: int | None = None,
    account: int | None = ACCOUNT,
    closer: int = CLOSER,
    batch_size: int | None = None,
    progress: bool = False,
) -> Report:
    """Measure a model on inputs: one batch as the model reads it, or a list of images or texts.

    model: a described model, a module the adapters know, a folder or a hub name. spectra: how many
    of the inputs, from the first, have the spectra of their attention taken: 0 for none, by default
    as many as cost no more than ten images of a ViT on 224 x 224 pixels. account: on how many, in
    whole batches, the share of the norms in each sublayer's change is measured (None: all, 0:
    none); the sublayers' changes themselves are measured on all; how linear a layer is, is measured
    on the same. closer: how many, from the first, are looked at closely: without their largest
    direction and large tokens, whether their rank has converged in the tokens, head by head, and
    which tokens come together (0: none). progress: a bar on stderr.

    Raises `InputError` for models that no adapter knows, and for inputs of another shape or of a
    single token.
    """
    with without_autocast() as was_on:
        described = model if isinstance(model, Model) else open_model(model)
        described = described if name is None else described.renamed(name)
        described = described.noted(_AUTOCAST) if was_on else described
        return _inspected(
            described, inputs, spectra, account, closer, batch_size or BATCH, progress
        )


def _inspected(
    described: Model,
    inputs: Any,
    spectra: int | None,
    account: int | None,
    closer: int,
    batch_size: int,
    progress: bool,
) -> Report:
    for word, number in (("spectra", spectra), ("account", account), ("closer", closer)):
        if number is not None and whole_number(word, number) < 0:
            raise InputError(f"{word} is {number}: give 0 for none, or a number of inputs")
    check_inputs(inputs)
    if spectra and any(layer.sinks is not None for layer in described.layers):
        raise InputError(
            f"the attention of '{described.name}' has sinks: its rows sum to less than 1, and the "
            "theory has no verdict for it; leave them out (spectra=0)"
        )
    found: list[Observed] = []
    kept: list[Extraction] = []
    lengths: set[int] = set()
    seen, av_error = 0, 0.0
    linearity, close = Linearity(described), Closer(described)
    pixels = shown_pixels(described, inputs) if closer else None
    words = shown_words(described, inputs) if closer else None
    texts = described.prepare if isinstance(described.prepare, Texts) else None
    if texts is not None:
        texts.cut = 0
    for batch in stream(described, inputs, batch_size=batch_size, progress=progress):
        _check_pairs(batch, seen, described)
        wants = account is None or seen < account
        found.append(observe(described, batch, account=wants, verify=not found))
        if wants:
            linearity.see(batch)
        av_error = max(av_error, *batch.av_error)
        lengths |= {int(number) for number in batch.keep.sum(-1)}
        if spectra is None:
            spectra = affordable(described, batch.keep.shape[1])
        if seen < closer:
            close.see(_first(batch, closer - seen), spectra)
        if seen < spectra:
            kept.append(_first(batch, spectra - seen))
        seen += len(batch.keep)
        del batch  # or two batches would be held at a time
    noted = described if texts is None else described.noted(*texts.notes)
    seen_first = (close.tokens(words), pixels)
    return _report(
        noted, join(found), kept, close, linearity.columns(), lengths, av_error, seen_first
    )


def _check_pairs(batch: Extraction, seen: int, model: Model) -> None:
    """Raises `InputError` for an input of one token, which nothing can agree with."""
    alone = (batch.keep.sum(-1) < 2).nonzero()
    if len(alone):
        number, kind = seen + int(alone[0]) + 1, "text" if model.modality == "text" else "input"
        raise InputError(
            f"{kind} {number} has a single token, and whether tokens become alike is asked of two "
            "or more: leave it out"
        )


def _report(
    model: Model,
    observed: Observed,
    kept: list[Extraction],
    close: Closer,
    linear: list[dict[str, float]],
    lengths: set[int],
    av_error: float,
    seen_first: tuple[pd.DataFrame, Array | None],
) -> Report:
    metrics, changes, drift = observed
    sunk = close.columns()
    rows: list[dict[str, Any]] = []
    for number in range(model.depth + 1):
        rows.append({"layer": number})
        for name, values in metrics.items():
            rows[-1] |= _interval(name, values[number])
            # Of two or three inputs they would be the inputs themselves.
            some = values.shape[1] >= FEWEST
            low, high = np.quantile(values[number], [0.05, 0.95]) if some else (NAN, NAN)
            rows[-1] |= {f"{name}_p05": low, f"{name}_p95": high}
        for name, values in sunk.items():
            rows[-1] |= _interval(name, values[number])
        if sunk:
            half = sunk["effective_rank_half"][number]
            growth = metrics["effective_rank"][number, : len(half)] / half
            rows[-1] |= _interval("rank_growth", growth)
    spectral = spectral_columns(model, kept) if kept else [{} for _ in model.layers]
    for number, (row, layer) in enumerate(zip(rows[1:], model.layers, strict=True)):
        for name, values in changes.items():
            row |= _interval(name, values[number])
        row |= weights_why(layer.heads) | spectral[number] | _gains(layer) | linear[number]
        row["cos_start"] = np.nan if layer.cos_start is None else layer.cos_start
        for name, values in drift.items():
            row |= _interval(name, values[number])
    logs = metrics["log_hfc_lfc"]
    by_attention, by_ffn = changes["log_change_attention"], changes["log_change_ffn"]
    parts = {
        name: changes[f"log_change_{name}"]
        for name in PART_NAMES
        if f"log_change_{name}" in changes
    }
    taken = next(iter(parts.values())).shape[1] if parts else 0
    whole = sum(parts.values(), np.zeros((model.depth, taken)))
    unexplained = whole - np.diff(logs, axis=0)[:, :taken]
    return Report(
        model=model.name,
        tokens=lengths.pop() if len(lengths) == 1 else 0,
        images=logs.shape[1],
        table=pd.DataFrame(rows),
        logs=logs,
        cosines=metrics["cos_mean"],
        by_attention=by_attention,
        by_ffn=by_ffn,
        parts=parts,
        placement=model.layers[0].placement,
        modality=model.modality,
        cls=model.cls,
        registers=model.registers,
        closer=close.inputs,
        heads=close.heads(),
        tokens_together=seen_first[0],
        pixels=seen_first[1],
        spectra=sum(len(batch.keep) for batch in kept),
        accounted=taken,
        account_error=float(np.abs(unexplained).max(initial=0.0)),
        av_error=av_error,
        notes=model.run_notes,
    )


def _gains(layer: Layer) -> dict[str, float]:
    attention, ffn = (
        0.0 if norm.kind == "none" else float((norm.gain < 0).double().mean())
        for norm in (layer.norm_attention, layer.norm_ffn)
    )
    return {
        "negative_layernorm_weights": attention,
        "negative_gains_attention": attention,
        "negative_gains_ffn": ffn,
    }


def _first(batch: Extraction, number: int) -> Extraction:
    """The first inputs of a batch, copied: a view would keep the whole batch alive."""
    if number >= len(batch.keep):
        return batch

    def cut(trace: Trace) -> Trace:
        held = {name: X[:number].clone() for name, X in vars(trace).items() if X is not None}
        return replace(trace, **held)

    return Extraction(tuple(map(cut, batch.traces)), batch.keep[:number], batch.av_error)


def _interval(name: str, values: NDArray[np.float64]) -> dict[str, float]:
    """Mean over inputs and its interval; of HFC/LFC the geometric mean, as everywhere."""
    if name.startswith("hfc_lfc"):
        with np.errstate(divide="ignore"):
            found = tuple(np.exp(mean_interval(np.log(values))))
    else:
        found = mean_interval(values)
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))
