"""What `stability` found: tables by layer, how far the closed form holds, two sentences, JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.intervals import in_words, mean_interval, resampled_interval
from oversmoothing.experiments.stability.growth import DISTANCES, DRAWS, GAUSSIAN, KINDS
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.support.files import json_number, json_row
from oversmoothing.theory.support.sizes import Array

# HFC/LFC that the finite-depth sentence asks for.
SMOOTH = 0.1
HOLDS = 0.9
# Columns of several random directions an input.
MANY = ("across", "closed", "actual", "observed")


@dataclass(frozen=True)
class Stability:
    """arrays: of `growth.growth`, the inputs joined; law: of the whole stack looped, near the
    consensus of the first input; tokens: the numbers of tokens that the inputs have."""

    model: str
    tokens: list[int]
    arrays: dict[str, Array]
    law: LoopLaw
    size: float
    seed: int

    @property
    def depth(self) -> int:
        return len(self.arrays["mean"])

    @property
    def inputs(self) -> int:
        return int(self.arrays["mean"].shape[1])

    def to_frame(self) -> pd.DataFrame:
        """One row a layer, means over inputs (logs of growth in one layer); _low, _high: 95 %.

        across, closed, actual and observed are means over DRAWS random directions an input, and
        _spread is the standard deviation between them, a mean over inputs; near is of one.
        """
        at, last = self.arrays["growth"], len(DISTANCES) - 1
        columns = {
            "mean": self.arrays["mean"],
            "along": self.arrays["along"],
            **{name: self.arrays[f"many_{name}"].mean(-1) for name in MANY},
            "near": at[:, :, DISTANCES.index(0.1), GAUSSIAN],
            "own": at[:, :, last, 0],
            **{f"exponent_{k + 1}": x for k, x in enumerate(np.moveaxis(self.exponents, -1, 0))},
            "run": self.arrays["run"],
            "tangent": self.arrays["tangent"],
            "leak": self.arrays["leak"],
            "log_hfc_lfc": self.arrays["logs"][1:],
        }
        rows = []
        for number in range(self.depth):
            row: dict[str, float] = {"layer": number + 1}
            for name, values in columns.items():
                ends = mean_interval(values[number])
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            for name in MANY:
                spread = self.arrays[f"many_{name}"][number].std(axis=-1, ddof=1)
                row[f"{name}_spread"] = float(spread.mean())
            rows.append(row | self._scores(number))
        return pd.DataFrame(rows)

    def _scores(self, number: int | slice) -> dict[str, float]:
        closed, at = self.arrays["closed"][number], self.arrays["growth"][number]
        observed = self.arrays["observed"][number]
        return {
            "r2_closed_jvp": r_squared(at[..., 0, :], closed),
            "r2_closed_near": r_squared(at[..., DISTANCES.index(0.1), :], closed),
            "r2_closed_observed": r_squared(observed, closed),
            "r2_jvp_observed": r_squared(observed, at[..., -1, :]),
        }

    @property
    def exponents(self) -> Array:
        """[layers, inputs, k]: log growth in each layer of the direction that grows k-th most."""
        return self.arrays["exponents"]

    def leading(self) -> tuple[float, float, float]:
        """The largest finite-time exponent a layer: mean over inputs, and its 95 % interval."""
        return mean_interval(self.exponents.mean(0)[:, 0])

    def far(self) -> pd.DataFrame:
        """How the closed form at consensus fits the jvp at each distance from it, over all layers:
        R^2 with a 95 % bootstrap interval over inputs, the median error of the log of growth, and
        R^2 layer by layer."""
        closed, at = self.arrays["closed"], self.arrays["growth"]
        rows = []
        for k, t in enumerate(DISTANCES):
            seen = at[:, :, k]
            ends = resampled_interval(
                lambda pick, seen=seen: r_squared(seen[:, pick], closed[:, pick]),  # type: ignore[misc]
                self.inputs,
                self.seed,
            )
            row = {"distance": t, "r2": r_squared(seen, closed)}
            row |= dict(zip(("r2_low", "r2_high"), ends, strict=True))
            row["median_error"] = float(np.nanmedian(np.abs(seen - closed)))
            for number in range(self.depth):
                row[f"r2_layer_{number + 1}"] = r_squared(seen[number], closed[number])
            rows.append(row)
        return pd.DataFrame(rows)

    def holds_to(self) -> float:
        """The largest distance up to which R^2 of the closed form is at least 0.9 (NaN: none)."""
        held = math.nan
        for t, r2 in self.far()[["distance", "r2"]].itertuples(index=False):
            if not r2 >= HOLDS:
                break
            held = t
        return held

    def short_table(self) -> pd.DataFrame:
        """The columns that a reader needs."""
        names = [
            "layer",
            "mean",
            "along",
            "across",
            "closed",
            "actual",
            "observed",
            "observed_spread",
        ]
        names.append("exponent_1")
        scores = ["r2_closed_jvp", "r2_closed_near", "r2_closed_observed", "r2_jvp_observed"]
        return self.to_frame()[names + scores]

    def words(self) -> str:
        """Two sentences: do differences grow, and is what the loop would do reached."""
        return f"{self.growth_words()}\n{self.depth_words()}"

    def growth_words(self) -> str:
        """The first of the two."""
        frame = self.to_frame()
        grow = int((frame["observed"] > 0).sum())
        outrun = int((frame["observed"] > frame["mean"]).sum())
        top, low, high = self.leading()
        ends = in_words(low, high, self.inputs, signed)
        held = self.holds_to()
        reach = (
            "fits nowhere (R^2 < .9)" if math.isnan(held) else
            f"fits them with R^2 >= .9 up to {held:g} of the way from consensus to the streams"
        )  # fmt: skip
        return (
            f"Over {self.inputs} input{'s' * (self.inputs > 1)} small differences between tokens "
            f"({DRAWS} random directions each) grow in {grow} of {self.depth} layers, in {outrun} "
            f"by more than consensus itself does, and by {signed(top)} a layer in the direction "
            f"that grows most ({ends}); the closed form of consensus (T8c) {reach}."
        )

    def depth_words(self) -> str:
        """The second: asymptotically, and within the layers that there are."""
        first, last = (float(np.exp(x.mean())) for x in self.arrays["logs"][[0, -1]])
        moved = f"its own {self.depth} layers take HFC/LFC from {first:.3g} to {last:.3g}"
        law = self.law
        if not law.settled:
            moved += (
                f" (the path of equal tokens still turns by {law.turning:.2g} rad a round after "
                f"{law.loops}: no law is settled there)"
            )
        if not law.attracts:
            return (
                "Looped, the stack would not bring nearly equal tokens together (HFC/LFC changes "
                f"by {signed(law.rate, 2, 'g')} in its logarithm a round near consensus), and "
                f"{moved}."
            )
        how = (
            f"as the power {law.exponent:.2f} of the number of rounds"
            if law.polynomial else f"by exp({law.rate:.2g}) a round"
        )  # fmt: skip
        rounds = law.loops_to(max(first, SMOOTH), SMOOTH)
        reached = "reached" if last <= SMOOTH else "not reached"
        return (
            f"Asymptotically yes: looped, the stack would bring nearly equal tokens together, {how}"
            f", HFC/LFC = {SMOOTH:g} after about {rounds:.3g} rounds of {self.depth} layers by that"
            f" law if it held from the start, which it need not; it is {reached} in one, since "
            f"{moved}."
        )

    def to_json_object(self) -> dict[str, Any]:
        """Everything by layer; the law; the words."""
        law = asdict(self.law) | {"rate": self.law.rate, "exponent": self.law.exponent}
        law["settled"] = self.law.settled
        return {
            "model": self.model,
            "inputs": self.inputs,
            "tokens": self.tokens,
            "size": self.size,
            "seed": self.seed,
            "directions": list(KINDS),
            "gaussian_draws": DRAWS,
            "layers": _plain(self.to_frame()),
            "distances": _plain(self.far()),
            "all_layers": {k: json_number(x) for k, x in self._scores(slice(None)).items()},
            "exponents_moved_last": float(np.abs(self.arrays["moved"]).max()),
            "looped": json_row(law),
            "words": [self.growth_words(), self.depth_words()],
        }


def r_squared(measured: Array, predicted: Array) -> float:
    """1 - SSE / sum (y - mean y)^2 over pairs that are both finite; NaN where nothing varies."""
    kept = np.isfinite(measured) & np.isfinite(predicted)
    y, p = measured[kept], predicted[kept]
    if len(y) < 2:
        return math.nan
    spread = float(np.square(y - y.mean()).sum())
    return 1 - float(np.square(y - p).sum()) / spread if spread > 0 else math.nan


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(k): json_number(float(x)) if k != "layer" else int(x) for k, x in row.items()}
        for row in frame.to_dict("records")
    ]
