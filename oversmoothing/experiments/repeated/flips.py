"""The sign of the gain of attention's norm, flipped layer by layer: `sign_flips(model, inputs)`.

The effect is the change of log HFC/LFC over the attention sublayer, over the layer, and up to the
model's end, with the flip less without, on the same stream. gamma -> -gamma alone ('gain'), or
(gamma, beta) -> -(gamma, beta) ('gain and shift'). Predicted of a Pre-LN layer:

    no effect          0: what T8d proves of a Post-LN attention sublayer for 'gain and shift'
    spectral gap       T8e: log(rho_Q/rho_C) of -H_eff less that of H_eff, H_eff = W^T diag(gamma)
                       C/s with the mean attention and one scale s for all tokens, the root
                       mean square of theirs
    frozen attention   the sublayer with the attention that was measured without the flip, each
                       token's own scale, and for the layer its own FFN behind

The flip acts on the norm's output in the model's own forward pass, so that it is right however the
norm stores its gain.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.intervals import in_words, mean_interval, named, share_interval
from oversmoothing.experiments.ladder.recording import folded_spectra, log_ratio, spectral_gap
from oversmoothing.experiments.ladder.scores import Score, calibrated, score
from oversmoothing.experiments.models import model as described
from oversmoothing.experiments.models.model import Layer, Model, Norm, Trace
from oversmoothing.experiments.repeated.blocks import BlockMap, runs
from oversmoothing.experiments.repeated.predictors import halves
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured, proved
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

Flip = Literal["gain", "gain and shift"]
FLIPS: tuple[Flip, ...] = ("gain", "gain and shift")
NONE, GAP, FROZEN = "no effect", "spectral gap (T8e)", "frozen attention"
# |log(rho_Q/rho_C)| that rounding explains: the centring gives H_eff an eigenvalue 0 (T8e), at
# which both radii may be 1.
TIE = 1e-10
MEANS, CALIBRATED = "the layer's mean effect", "spectral gap (T8e), calibrated"
# Of the scores, what a reader needs.
SHOWN = ("flip", "target", "predictor", "r2", "r2_low", "r2_high", "images", "sign", "spearman")
BY_LAYER = {
    "flip": "whose sign is turned in this layer: the norm's gain, or its shift too",
    "effect_attention": "change of ln HFC/LFC by the flip, over the attention sublayer",
    "effect_layer": "over the layer",
    "effect_end": "at the model's end",
    GAP: "effect_layer as the spectra of H_eff and -H_eff predict it",
    FROZEN: "effect_layer, computed with the layer's attention held fixed",
    "reversed": "share of inputs on which the layer's change of ln HFC/LFC has the other sign",
    "reversal predicted": "share on which T8e says so",
}
SCORED = {
    "target": "where the effect is measured",
    "predictor": "a calibrated one has a slope and an intercept a layer",
    "sign": "share of effects whose sign it has right",
    "spearman": "rank correlation with the effects",
}


@one_thread()
def sign_flips(model: Model, inputs: Iterable[Any], *, seed: int = 0) -> "Flips":
    """Flip, measure and predict every layer of a Pre-LN or Post-LN model on every input.

    Half of the inputs, by the seed, calibrate what is fitted; the others are scored as the ladder's
    rungs are. Raises `InputError` for layers without a norm at attention, parallel layers, learned
    sinks, norms behind sublayers, inputs of different lengths, and fewer than 4 inputs.
    """
    check_model(model)
    parts: dict[tuple[str, ...], list[np.ndarray]] = {}
    plain: list[np.ndarray] = []
    verdicts: list[np.ndarray] = []
    for batch, run in runs(model, inputs):
        traces = extract(model, batch, verify=False, dtype=model.dtype).traces
        with torch.no_grad(), described.evaluating(model.module):
            end = _end(model, batch)
            for flip in steps(FLIPS, len(FLIPS), "flip"):
                rows: dict[tuple[str, ...], list[Tensor]] = {}
                for f, X, trace in zip(run.blocks, run.states, traces, strict=False):
                    measured = _measured(model, f, X, batch, flip, end)
                    for name, values in (measured | _predicted(f.layer, trace, flip)).items():
                        rows.setdefault((flip, *name), []).append(values)
                for name, columns in rows.items():
                    parts.setdefault(name, []).append(torch.stack(columns, 1).double().numpy())
            if model.layers[0].placement == "pre":
                gaps = [_gaps(layer, t) for layer, t in zip(model.layers, traces, strict=True)]
                verdicts.append(torch.stack(gaps, dim=1).numpy())
        logs = torch.stack([log_ratio(X) for X in run.states], dim=1)
        plain.append(logs.diff(dim=1).numpy())
    total = sum(len(each) for each in plain)
    if total < 4:
        raise InputError(
            f"{total} inputs: half of them calibrate and half are scored, so give at least 4"
        )
    return Flips(
        model.name,
        model.layers[0].placement,
        {key: np.concatenate(each) for key, each in parts.items() if len(key) == 2},
        {key: np.concatenate(each) for key, each in parts.items() if len(key) == 3},
        np.concatenate(plain),
        np.concatenate(verdicts) if verdicts else None,
        seed,
    )


def check_model(model: Model) -> None:
    """Raises `InputError` for a model whose layers have no sign to flip or stand otherwise."""
    described.check_stochastic(model)
    for number, layer in enumerate(model.layers, 1):
        if layer.norm_attention.kind == "none" or layer.norm_attention.module is None:
            raise InputError(f"layer {number} of '{model.name}' has no norm at its attention")
        behind = {layer.output_norm_attention.kind, layer.output_norm_ffn.kind}
        if layer.placement == "parallel" or behind != {"none"}:
            raise InputError(
                f"layer {number} of '{model.name}' has a parallel FFN or norms behind its "
                "sublayers: T8e is about Pre-LN, T8d about Pre-LN and Post-LN"
            )


def turned(norm: Norm, out: Tensor, flip: Flip) -> Tensor:
    """-gamma z + beta of the norm's output gamma z + beta, or -gamma z - beta."""
    if flip == "gain and shift" or norm.shift is None:
        return -out
    return 2 * norm.shift.to(out) - out


def flipped(norm: Norm, flip: Flip, call: int | None = None) -> RemovableHandle:
    """Within it the norm's module gives its output `turned`, in that call (from 0) alone where one
    is named: a block may serve several layers."""
    assert norm.module is not None
    calls = itertools.count()
    return norm.module.register_forward_hook(
        lambda _, __, out: turned(norm, out, flip) if next(calls) == call or call is None else out
    )


def _end(model: Model, batch: Any) -> Tensor:
    """log HFC/LFC behind the last layer, [b]; the batch as the model reads it."""
    return log_ratio(extract(model, batch, attention=False, verify=False).traces[-1].after_ffn)


def _measured(
    model: Model, f: BlockMap, X: Tensor, batch: Any, flip: Flip, end: Tensor
) -> dict[tuple[str, ...], Tensor]:
    """The effects of the flip in one layer, by (target,): [b]."""
    middle, after = _run(f, X)
    with flipped(f.layer.norm_attention, flip):
        middle_flipped, after_flipped = _run(f, X)
    earlier = sum(each.block is f.layer.block for each in model.layers[: f.number - 1])
    with flipped(f.layer.norm_attention, flip, earlier):
        moved = _end(model, batch)
    return {
        ("attention",): log_ratio(middle_flipped) - log_ratio(middle),
        ("layer",): log_ratio(after_flipped) - log_ratio(after),
        ("end",): moved - end,
    }


def _run(f: BlockMap, X: Tensor) -> tuple[Tensor, Tensor]:
    """(stream between the sublayers, stream behind the layer) by the model's own block."""
    layer = f.layer
    if layer.ffn is None:
        after = f(X)
        return after, after
    post = layer.placement == "post"
    seen: list[Tensor] = []
    module = layer.norm_attention.module if post else layer.norm_ffn.module
    assert module is not None

    def see(_: Any, args: Any, out: Tensor) -> None:
        seen.append((out if post else args[0]).detach().clone())

    # Behind the hook that flips, which was registered before.
    with module.register_forward_hook(see):
        after = f(X)
    return seen[0].view_as(after), after


def _predicted(layer: Layer, trace: Trace, flip: Flip) -> dict[tuple[str, ...], Tensor]:
    """What is predicted of the effects, by (target, predictor): [b]."""
    zero = torch.zeros(len(trace.before), dtype=torch.float64)
    targets = ("attention", "layer", "end")
    said: dict[tuple[str, ...], Tensor] = {(target, NONE): zero for target in targets}
    if layer.placement == "post":
        return said
    gaps = _gaps(layer, trace)
    said |= {(target, GAP): gaps[:, 1] - gaps[:, 0] for target in targets}
    frozen = zip(targets, _frozen(layer, trace, None), _frozen(layer, trace, flip), strict=False)
    return said | {(t, FROZEN): log_ratio(other) - log_ratio(own) for t, own, other in frozen}


def _gaps(layer: Layer, trace: Trace) -> Tensor:
    """log(rho_Q/rho_C) [b, 2] of H_eff and of -H_eff, with the mean attention of each input."""
    a, h = folded_spectra(layer, trace)
    return torch.stack([spectral_gap(a, h), spectral_gap(a, -h)], dim=-1)


def _frozen(layer: Layer, trace: Trace, flip: Flip | None) -> tuple[Tensor, Tensor]:
    """(stream between the sublayers, behind the layer) with the attention that was measured."""
    assert trace.attention is not None
    X, norm = trace.before, layer.norm_attention
    N = norm(X) if flip is None else turned(norm, norm(X), flip)
    output = layer.heads.to(X.device, X.dtype).attended(trace.attention.to(X), N)
    middle = layer.after_attention(X, output)
    return middle, layer.after_ffn(X, middle)


class Flips(Result):
    """Tables `by_layer` and `scores` (a row a flip, target and predictor, on held-out inputs).

    effects [m, layers] by (flip, target); predictions [m, layers] by (flip, target, predictor);
    plain [m, layers]: the change of log HFC/LFC over each layer as it is; gaps [m, layers, 2]:
    log(rho_Q/rho_C) of H_eff and -H_eff (None: Post-LN). split: (calibration, held out), the
    numbers of the inputs; scored: by (flip, target, predictor).
    """

    def __init__(
        self, model: str, placement: str, effects: dict[tuple[str, ...], Array],
        predictions: dict[tuple[str, ...], Array], plain: Array, gaps: Array | None, seed: int,
    ) -> None:  # fmt: skip
        self.effects, self.predictions, self.plain, self.gaps = effects, predictions, plain, gaps
        self.split = halves(len(plain), np.random.default_rng(seed))
        self.scored = self._scored(seed)
        asked = ("flip", "target", "predictor")
        scores = [dict(zip(asked, key, strict=True)) | asdict(x) for key, x in self.scored.items()]
        layers = self._by_layer()
        shown = [name for name in map(str, layers) if not name.endswith(("_low", "_high"))]
        means = {name: words for name, words in BY_LAYER.items() if name in layers}
        super().__init__(
            "flips",
            f"{model}: what does the sign of the gain of a norm do?",
            {
                "by_layer": Table(layers, {}, shown, "{:+.3f}", means=means),
                "scores": Table(pd.DataFrame(scores), {}, SHOWN, "{:.2f}", means=SCORED),
            },
            list(self._sentences(placement)),
            {"model": model, "placement": placement, "inputs": len(plain), "seed": seed},
            picture=lambda: self._drawn(model),
        )

    def _scored(self, seed: int) -> dict[tuple[str, ...], Score]:
        """Of every predictor on the held-out inputs."""
        known, held = self.split
        scored = {}
        for asked, effect in self.effects.items():
            means = effect[known].mean(0)
            columns = {k[2]: values for k, values in self.predictions.items() if k[:2] == asked}
            columns[MEANS] = np.tile(means, (len(effect), 1))
            if GAP in columns:
                columns[CALIBRATED] = calibrated(columns[GAP], columns[GAP][known], effect[known])
            for name, values in columns.items():
                scored[*asked, name] = score(effect[held], values[held], means, seed=seed)
        return scored

    def _by_layer(self) -> pd.DataFrame:
        """One row a flip and layer: effects, what is predicted, how often signs are reversed."""
        rows = []
        for flip in dict.fromkeys(flip for flip, _ in self.effects):
            turned, said = self.reversals(flip), self.predicted_reversals
            for layer in range(self.plain.shape[1]):
                row: dict[str, Any] = {"flip": flip, "layer": layer + 1}
                for target in ("attention", "layer", "end"):
                    ends = mean_interval(self.effects[flip, target][:, layer])
                    row |= named(f"effect_{target}", ends)
                for name in (GAP, FROZEN):
                    if (flip, "layer", name) in self.predictions:
                        row[name] = float(self.predictions[flip, "layer", name][:, layer].mean())
                row["reversed"] = float(turned[:, layer].mean())
                if said is not None:
                    row["reversal predicted"] = float(said[:, layer].mean())
                rows.append(row)
        return pd.DataFrame(rows)

    def reversals(self, flip: str) -> Array:
        """[m, layers], whether the layer's change of log HFC/LFC has the other sign flipped."""
        return np.asarray(np.sign(self.plain) != np.sign(self.plain + self.effects[flip, "layer"]))

    @property
    def predicted_reversals(self) -> Array | None:
        """[m, layers], whether the verdicts on H_eff and -H_eff differ (T8e); None: Post-LN."""
        if self.gaps is None:
            return None
        verdicts = np.sign(np.where(np.abs(self.gaps) > TIE, self.gaps, 0.0))
        return np.asarray(verdicts[..., 0] != verdicts[..., 1])

    def _sentences(self, placement: str) -> Iterator[Sentence]:
        """What was predicted of reversal, the best score, and T8d."""
        m, layers = self.plain.shape
        size = float(np.median(np.abs(self.effects["gain", "layer"])))
        yield Sentence(
            "It changes ln HFC/LFC (differences between tokens over what they share) over that "
            f"layer by {size:.2g} in the median of {layers} layers ({placement}-LN).",
            measured(m),
        )
        said, seen = self.predicted_reversals, self.reversals("gain")
        if said is None:
            exact = float(np.abs(self.effects["gain and shift", "attention"]).max())
            both = (
                "T8d: with the shift flipped too the attention sublayer gives the same tokens with "
                f"the other sign; measured effect on its HFC/LFC: at most {exact:.1e}."
            )
            yield Sentence(both, proved("T8d"), measured(m))
            return
        agree = float((said == seen).mean())
        ends = share_interval(agree, m)
        within = in_words(100 * ends[0], 100 * ends[1], m, "{:.0f} %".format)
        yield Sentence(
            f"T8e predicts that the verdict is reversed in {100 * said.mean():.0f} % of the cases. "
            f"The change over the layer really has the other sign in {100 * seen.mean():.0f} %. "
            f"The two agree in {100 * agree:.0f} % ({within}); always guessing the more common "
            f"answer is right in {100 * max(seen.mean(), 1 - seen.mean()):.0f} %.",
            measured(m, *ends, told=True),
        )
        for name in (GAP, FROZEN):
            each = self.scored["gain", "layer", name]
            ends = each.r2_low, each.r2_high
            yield Sentence(
                f"{name}: on held-out inputs R² {each.r2:.2f} "
                f"({in_words(*ends, each.images, '{:.2f}'.format)}), sign {100 * each.sign:.0f} %, "
                f"rank correlation {each.spearman:.2f}.",
                measured(each.images, *ends, told=True),
            )

    def _drawn(self, model: str) -> Figure:
        """The effect by layer, predicted against measured (Post-LN: one panel says something)."""
        table = self.table
        with style():
            figure, axes = new_figure(1, 3, width=FULL_WIDTH + 2.5, height=3.0)
            layers, frozen, gap = axes.ravel()
            for flip, colour in (("gain", "vermillion"), ("gain and shift", "purple")):
                own = table[table["flip"] == flip]
                for target, line in (("layer", "-"), ("attention", ":")):
                    layers.plot(
                        own["layer"], own[f"effect_{target}"], line, marker="o",
                        color=PALETTE[colour], label=f"{flip}: over the {target}",
                    )  # fmt: skip
            own = table[table["flip"] == "gain"]
            if GAP in own:
                layers.plot(own["layer"], own[GAP], "x--", color=PALETTE["blue"], label=GAP)
            layers.axhline(0, color=PALETTE["black"], linewidth=0.5)
            layers.set(xlabel="layer flipped", ylabel="effect on ln HFC/LFC (mean)")
            layers.xaxis.set_major_locator(MaxNLocator(integer=True))
            # Below the axes: nowhere else is room in every case.
            layers.legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
            for panel, name in ((frozen, FROZEN), (gap, GAP)):
                self._against(panel, name)
            titles = ("a  Effect by layer", "b  Attention frozen", "c  The theory's spectra")
            for title, panel in zip(titles, axes.ravel(), strict=True):
                panel.set_title(title, loc="left", fontweight="bold")
            figure.suptitle(f"{model}: the gain of one layer's norm at attention flipped")
        return figure

    def _against(self, panel: Any, name: str) -> None:
        """Predicted by name against measured, coloured by layer."""
        y = self.effects["gain", "layer"].ravel()
        values = self.predictions.get(("gain", "layer", name))
        if values is None:
            panel.set_axis_off()
            panel.text(0.5, 0.5, "Post-LN: T8d predicts no effect\non the attention sublayer",
                       ha="center", va="center")  # fmt: skip
            return
        x = values.ravel()
        colours = np.tile(np.arange(values.shape[1]), len(values))
        panel.scatter(x, y, s=5, c=colours, cmap="viridis", linewidths=0)
        ends = [min(y.min(), x.min()), max(y.max(), x.max())]
        panel.plot(ends, ends, color=PALETTE["grey"], linewidth=0.7)
        panel.set(xlabel=f"predicted: {name}", ylabel="measured effect over the layer")
        r2 = self.scored["gain", "layer", name].r2
        panel.text(0.03, 0.95, f"R² {r2:.2f} (held out)", transform=panel.transAxes, va="top",
                   fontsize=7)  # fmt: skip
