"""What the flips did, and how well it was predicted: scored as the ladder's rungs are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.intervals import in_words, mean_interval, share_interval
from oversmoothing.experiments.ladder.result import Score, score
from oversmoothing.theory.support.files import json_row
from oversmoothing.theory.support.sizes import Array

NONE, GAP, FROZEN = "no effect", "spectral gap (T8e)", "frozen attention"
MEANS, CALIBRATED = "the layer's mean effect", "spectral gap (T8e), calibrated"


@dataclass(frozen=True)
class FlipResult:
    """effects [m, layers] by (flip, target); predictions [m, layers] by (flip, target, predictor);
    plain [m, layers]: the change of log HFC/LFC over each layer as it is; gaps [m, layers, 2]:
    log(rho_Q/rho_C) of H_eff and -H_eff (None: Post-LN)."""

    model: str
    placement: str
    effects: dict[tuple[str, str], Array]
    predictions: dict[tuple[str, str, str], Array]
    plain: Array
    gaps: Array | None
    seed: int

    @cached_property
    def split(self) -> tuple[Array, Array]:
        """(calibration, held out): numbers of the inputs."""
        order = np.random.default_rng(self.seed).permutation(len(self.plain))
        half = len(order) // 2
        return np.sort(order[:half]), np.sort(order[half:])

    @cached_property
    def scores(self) -> dict[tuple[str, str, str], Score]:
        """Of every predictor on the held-out inputs, by (flip, target, predictor)."""
        known, held = self.split
        found = {}
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
                found[flip, target, name] = score(effect[held], values[held], means, seed=self.seed)
        return found

    def score_table(self) -> pd.DataFrame:
        """One row a flip, target and predictor."""
        return pd.DataFrame(
            [
                {"flip": flip, "target": target, "predictor": name} | asdict(each)
                for (flip, target, name), each in self.scores.items()
            ]
        )

    def short_scores(self) -> pd.DataFrame:
        """The columns that a reader needs."""
        scores = ["r2", "r2_low", "r2_high", "images", "sign", "spearman"]
        return self.score_table()[["flip", "target", "predictor", *scores]]

    def by_layer(self) -> pd.DataFrame:
        """One row a flip and layer: mean effects, what is predicted, how often the sign of the
        layer's own change of log HFC/LFC was reversed, and how often T8e said so."""
        rows = []
        for flip in dict.fromkeys(flip for flip, _ in self.effects):
            reversed_ = self.reversals(flip)
            said = self.predicted_reversals
            for layer in range(self.plain.shape[1]):
                row: dict[str, Any] = {"flip": flip, "layer": layer + 1}
                for target in ("attention", "layer", "end"):
                    ends = mean_interval(self.effects[flip, target][:, layer])
                    name = f"effect_{target}"
                    names = (name, f"{name}_low", f"{name}_high")
                    row |= dict(zip(names, ends, strict=True))
                for name in (GAP, FROZEN):
                    if (flip, "layer", name) in self.predictions:
                        row[name] = float(self.predictions[flip, "layer", name][:, layer].mean())
                row["reversed"] = float(reversed_[:, layer].mean())
                if said is not None:
                    row["reversal predicted"] = float(said[:, layer].mean())
                rows.append(row)
        return pd.DataFrame(rows)

    def reversals(self, flip: str) -> Array:
        """[m, layers], whether the layer's change of log HFC/LFC has the other sign flipped."""
        found: Array = np.sign(self.plain) != np.sign(self.plain + self.effects[flip, "layer"])
        return found

    @property
    def predicted_reversals(self) -> Array | None:
        """[m, layers], whether the verdicts on H_eff and -H_eff differ (T8e); None: Post-LN."""
        if self.gaps is None:
            return None
        found: Array = np.sign(self.gaps[..., 0]) != np.sign(self.gaps[..., 1])
        return found

    def words(self) -> str:
        """One paragraph: what was predicted of reversal, the best score, and T8d."""
        m, layers = self.plain.shape
        flip = "gain and shift"
        exact = float(np.abs(self.effects[flip, "attention"]).max())
        size = float(np.median(np.abs(self.effects["gain", "layer"])))
        lines = [
            f"{m} inputs, {layers} layers ({self.placement}-LN): flipping the gain of one layer's "
            f"norm at attention changes log HFC/LFC over that layer by {size:.2g} (median)."
        ]
        if self.gaps is None:
            lines.append(
                "T8d: with the shift flipped too the attention sublayer gives the same tokens with "
                f"the other sign; measured effect on its HFC/LFC: at most {exact:.1e}."
            )
            return "\n".join(lines)
        said, seen = self.predicted_reversals, self.reversals("gain")
        assert said is not None
        agree = float((said == seen).mean())
        ends = in_words(*share_interval(agree, m), m, "{:.0%}".format)
        lines.append(
            f"T8e says that the verdict is reversed in {100 * said.mean():.0f} % of the cases, "
            f"measured the sign of the layer's change is in {100 * seen.mean():.0f} %; they "
            f"agree in {100 * agree:.0f} % ({ends}; always guessing the more common answer: "
            f"{100 * max(seen.mean(), 1 - seen.mean()):.0f} %)."
        )
        for name in (GAP, FROZEN):
            each = self.scores["gain", "layer", name]
            ends = in_words(each.r2_low, each.r2_high, each.images, "{:.2f}".format)
            lines.append(
                f"{name}: on held-out inputs R² {each.r2:.2f} ({ends}), sign "
                f"{100 * each.sign:.0f} %, rank correlation {each.spearman:.2f}."
            )
        return "\n".join(lines)

    def to_json_object(self) -> dict[str, Any]:
        """Tables, scores and words."""

        def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
            return [json_row(row) for row in frame.to_dict("records")]

        return {
            "model": self.model,
            "placement": self.placement,
            "inputs": len(self.plain),
            "seed": self.seed,
            "by_layer": records(self.by_layer()),
            "scores": records(self.score_table()),
            "words": self.words().split("\n"),
        }


def _calibrated(predicted: Array, effect: Array, known: Array) -> Array:
    """A slope and an intercept a layer, by least squares over the calibration inputs."""
    found = np.empty_like(predicted)
    for layer in range(predicted.shape[1]):
        x, y = predicted[known, layer], effect[known, layer]
        spread = float(np.square(x - x.mean()).sum())
        slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread > 0 else 0.0
        found[:, layer] = y.mean() + slope * (predicted[:, layer] - x.mean())
    return found
