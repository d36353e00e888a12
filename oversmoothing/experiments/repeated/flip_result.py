"""What the flips did, and how well it was predicted: scored as the ladder's rungs are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from oversmoothing.experiments.intervals import in_words, mean_interval, share_interval
from oversmoothing.experiments.ladder.scores import Score, score
from oversmoothing.simulations.drawing.picture import FULL_WIDTH, PALETTE, new_figure, style
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured, proved
from oversmoothing.theory.support.sizes import Array

NONE, GAP, FROZEN = "no effect", "spectral gap (T8e)", "frozen attention"
MEANS, CALIBRATED = "the layer's mean effect", "spectral gap (T8e), calibrated"
# Of the scores, what a reader needs.
SHOWN = ("flip", "target", "predictor", "r2", "r2_low", "r2_high", "images", "sign", "spearman")


class Flips(Result):
    """Tables `by_layer` and `scores` (a row a flip, target and predictor, on held-out inputs).

    effects [m, layers] by (flip, target); predictions [m, layers] by (flip, target, predictor);
    plain [m, layers]: the change of log HFC/LFC over each layer as it is; gaps [m, layers, 2]:
    log(rho_Q/rho_C) of H_eff and -H_eff (None: Post-LN). split: (calibration, held out), the
    numbers of the inputs; scored: by (flip, target, predictor).
    """

    def __init__(
        self,
        model: str,
        placement: str,
        effects: dict[tuple[str, str], Array],
        predictions: dict[tuple[str, str, str], Array],
        plain: Array,
        gaps: Array | None,
        seed: int,
    ) -> None:
        self.effects, self.predictions, self.plain, self.gaps = effects, predictions, plain, gaps
        order = np.random.default_rng(seed).permutation(len(plain))
        half = len(order) // 2
        self.split = np.sort(order[:half]), np.sort(order[half:])
        self.scored = self._scored(seed)
        scores = [
            {"flip": flip, "target": target, "predictor": name} | asdict(each)
            for (flip, target, name), each in self.scored.items()
        ]
        layers = self._by_layer()
        shown = [name for name in map(str, layers) if not name.endswith(("_low", "_high"))]
        title = f"{model}: what does the sign of the gain of a norm do?"
        super().__init__(
            "flips",
            title,
            {
                "by_layer": Table(layers, shown=shown, number="{:+.3f}"),
                "scores": Table(pd.DataFrame(scores), shown=SHOWN, number="{:.2f}"),
            },
            self._sentences(placement),
            {"model": model, "placement": placement, "inputs": len(plain), "seed": seed},
            picture=lambda: self._drawn(model),
        )

    def _scored(self, seed: int) -> dict[tuple[str, str, str], Score]:
        """Of every predictor on the held-out inputs."""
        known, held = self.split
        scored = {}
        for (flip, target), effect in self.effects.items():
            means = effect[known].mean(0)
            columns = {
                name: values for (f, t, name), values in self.predictions.items()
                if (f, t) == (flip, target)
            }  # fmt: skip
            columns[MEANS] = np.tile(means, (len(effect), 1))
            if GAP in columns:
                columns[CALIBRATED] = _calibrated(columns[GAP], effect, known)
            for name, values in columns.items():
                scored[flip, target, name] = score(effect[held], values[held], means, seed=seed)
        return scored

    def _by_layer(self) -> pd.DataFrame:
        """One row a flip and layer: mean effects, what is predicted, how often the sign of the
        layer's own change of log HFC/LFC was reversed, and how often T8e said so."""
        rows = []
        for flip in dict.fromkeys(flip for flip, _ in self.effects):
            turned, said = self.reversals(flip), self.predicted_reversals
            for layer in range(self.plain.shape[1]):
                row: dict[str, Any] = {"flip": flip, "layer": layer + 1}
                for target in ("attention", "layer", "end"):
                    ends = mean_interval(self.effects[flip, target][:, layer])
                    name = f"effect_{target}"
                    row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
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
        turned: Array = np.sign(self.plain) != np.sign(self.plain + self.effects[flip, "layer"])
        return turned

    @property
    def predicted_reversals(self) -> Array | None:
        """[m, layers], whether the verdicts on H_eff and -H_eff differ (T8e); None: Post-LN."""
        if self.gaps is None:
            return None
        said: Array = np.sign(self.gaps[..., 0]) != np.sign(self.gaps[..., 1])
        return said

    def _sentences(self, placement: str) -> list[Sentence]:
        """What was predicted of reversal, the best score, and T8d."""
        m, layers = self.plain.shape
        size = float(np.median(np.abs(self.effects["gain", "layer"])))
        lines = [
            Sentence(
                f"It changes ln HFC/LFC (differences between tokens over their mean) over that "
                f"layer by {size:.2g} in the median of {layers} layers ({placement}-LN).",
                measured(m),
            )
        ]
        said, seen = self.predicted_reversals, self.reversals("gain")
        if said is None:
            exact = float(np.abs(self.effects["gain and shift", "attention"]).max())
            both = (
                "T8d: with the shift flipped too the attention sublayer gives the same tokens with "
                f"the other sign; measured effect on its HFC/LFC: at most {exact:.1e}."
            )
            return [*lines, Sentence(both, proved("T8d"), measured(m))]
        agree = float((said == seen).mean())
        ends = share_interval(agree, m)
        lines.append(
            Sentence(
                f"T8e predicts that the verdict is reversed in {100 * said.mean():.0f} % of the "
                f"cases. The change over the layer really has the other sign in "
                f"{100 * seen.mean():.0f} %. The two agree in {100 * agree:.0f} % "
                f"({in_words(*ends, m, '{:.0%}'.format)}); always guessing the more common answer "
                f"is right in {100 * max(seen.mean(), 1 - seen.mean()):.0f} %.",
                measured(m, *ends),
            )
        )
        for name in (GAP, FROZEN):
            each = self.scored["gain", "layer", name]
            ends = each.r2_low, each.r2_high
            lines.append(
                Sentence(
                    f"{name}: on held-out inputs R² {each.r2:.2f} "
                    f"({in_words(*ends, each.images, '{:.2f}'.format)}), sign "
                    f"{100 * each.sign:.0f} %, rank correlation {each.spearman:.2f}.",
                    measured(each.images, *ends),
                )
            )
        return lines

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


def _calibrated(predicted: Array, effect: Array, known: NDArray[np.int_]) -> Array:
    """A slope and an intercept a layer, by least squares over the calibration inputs."""
    fitted = np.empty_like(predicted)
    for layer in range(predicted.shape[1]):
        x, y = predicted[known, layer], effect[known, layer]
        spread = float(np.square(x - x.mean()).sum())
        slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
        fitted[:, layer] = y.mean() + slope * (predicted[:, layer] - x.mean())
    return fitted
