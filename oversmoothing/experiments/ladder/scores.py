"""What a ladder found: every rung's predictions, score and cost, as tables, as JSON, in words.

Pooled R^2 is flattered by the layers' means, which a table of means gets right; R^2 within layers
removes each layer's calibration mean, so that P0' (those means) is its zero. Intervals are over
images, which are the independent observations.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.experiments import intervals
from oversmoothing.simulations.drawing.result import (
    UNTESTED,
    Result,
    Sentence,
    Table,
    measured as measured_on,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Of a rung, the columns that a reader needs.
SHOWN = ("rung", "r2", "r2_low", "r2_high", "r2_within", "sign", "spearman", "cost_share",
         "calibration")  # fmt: skip
MEANS = {
    "r2_within": "R^2 against each layer's mean (P0')",
    "sign": "share of changes whose sign it has right",
    "spearman": "rank correlation with the changes",
    "calibration": "inputs that it was fitted on",
}


# Share of the spread of what is predicted up to which two rungs print one row.
SAME = 1e-3


@dataclass(frozen=True)
class Score:
    """One predictor on held-out images; each interval is the 95 % one of a bootstrap over
    `images` images (of `sign` at 0 and 1 Wilson's; NaN below FEWEST).

    r2: 1 - SSE / sum (y - mean y)^2 over all images and layers. r2_within: 1 - SSE / sum (y -
    calibration mean of the layer)^2. sign: share of equal signs. spearman: rank correlation over
    all pairs. spearman_within: its mean over layers, each across images (NaN where the prediction
    is one number a layer). skill_means and skill_spectral: 1 - SSE / SSE of P0' (the same number
    as r2_within) and of P0''.
    """

    r2: float
    r2_low: float
    r2_high: float
    r2_within: float
    r2_within_low: float
    r2_within_high: float
    sign: float
    sign_low: float
    sign_high: float
    spearman: float
    spearman_within: float
    skill_means: float
    skill_spectral: float
    images: int


def score(
    measured: Array, predicted: Array, layer_means: Array, spectral: Array | None = None, *,
    seed: int = 0, resamples: int = intervals.RESAMPLES,
) -> Score:  # fmt: skip
    """Score predicted [m, layers] against measured [m, layers] changes of log HFC/LFC.

    layer_means [layers]: means over the calibration images. spectral [m, layers]: the predictions
    of P0''. Raises `InputError` for other shapes or numbers that are not finite.
    """
    if predicted.shape != measured.shape or layer_means.shape != measured.shape[1:]:
        raise InputError(
            f"predictions {predicted.shape} and layer means {layer_means.shape} for measurements "
            f"{measured.shape}: they must be [m, layers], [layers] and [m, layers]"
        )
    if not (np.isfinite(measured).all() and np.isfinite(predicted).all()):
        raise InputError("a change of log HFC/LFC is not finite: leave that image or rung out")
    centred = measured - measured.mean()
    squares, sums = np.square(centred).sum(1), centred.sum(1)
    errors = np.square(measured - predicted).sum(1)
    within = np.square(measured - layer_means).sum(1)
    agree = (np.sign(measured) == np.sign(predicted)).mean(1)

    def pooled(k: NDArray[np.int_]) -> Array:
        """r2, r2_within and sign [3, ...] of the images k [..., m]."""
        e = errors[k].sum(-1)
        spread = squares[k].sum(-1) - sums[k].sum(-1) ** 2 / measured.size
        r2 = [_one_minus(e, spread), _one_minus(e, within[k].sum(-1))]
        return np.stack([*r2, agree[k].mean(-1)])

    images = len(measured)
    r2, skill, sign = pooled(np.arange(images)).tolist()
    drawn = np.random.default_rng(seed).integers(images, size=(resamples, images))
    values = pooled(drawn)
    by_layer = [
        intervals.rank_correlation(y, p) for y, p in zip(measured.T, predicted.T, strict=True)
    ]
    left = np.square(np.nan if spectral is None else measured - spectral).sum()
    return Score(
        r2, *intervals.percentiles(values[0], images),
        skill, *intervals.percentiles(values[1], images),
        sign, *intervals.resampled_share(sign, values[2], images),
        intervals.rank_correlation(measured, predicted), float(np.mean(by_layer)),
        skill, float(_one_minus(errors.sum(), left)), images,
    )  # fmt: skip


def calibrated(predicted: Array, trained: Array, measured: Array) -> Array:
    """`predicted` [m, layers] with a slope and an intercept a layer, by least squares over
    calibration inputs: what was predicted of them, and measured, [k, layers] each."""
    centred = trained - trained.mean(0)
    spread = np.square(centred).sum(0)
    slope = (centred * measured).sum(0) / np.where(spread > 0, spread, np.inf)
    return np.asarray(measured.mean(0) + slope * (predicted - trained.mean(0)))


def _one_minus(errors: Array, whole: Array) -> Array:
    """1 - errors / whole; NaN where there is nothing to explain."""
    return 1.0 - errors / np.where(whole > 0, whole, np.nan)


@dataclass(frozen=True)
class Rung:
    """predicted [m, layers]; cost: multiply-adds for one held-out input (None: the model's own run
    is needed); calibration: inputs it was fitted on (0: none), copies: altered copies of each;
    note: what it is."""

    name: str
    predicted: Array
    cost: int | None
    calibration: int
    copies: int
    note: str
    score: Score


class LadderResult(Result):
    """Tables `rungs` (scores with their intervals, cost and calibration, a row a rung),
    `r2_by_layer` (R^2 of each layer alone, around its held-out mean, a column a rung) and
    `predictions` (a row a held-out input and layer: what was measured, and what each rung said).

    measured [m, layers]; rungs in order; skipped {rung: why it does not apply}; settings: what was
    asked; cost: the model's own multiply-adds for one input.
    """

    def __init__(
        self, model: str, tokens: int, measured: Array, cost: int, rungs: tuple[Rung, ...],
        skipped: dict[str, str], settings: Mapping[str, Any],
    ) -> None:  # fmt: skip
        self.rungs, self.skipped = rungs, skipped
        inputs, layers = measured.shape
        frame = pd.DataFrame([{"rung": rung.name, **asdict(rung.score)} for rung in rungs])
        frame["multiply_adds"] = np.array([rung.cost for rung in rungs], dtype=float)
        frame["cost_share"] = frame["multiply_adds"] / cost
        for name in ("calibration", "copies", "note"):
            frame[name] = [getattr(rung, name) for rung in rungs]
        spread = np.square(measured - measured.mean(0)).sum(0)
        spread = np.where(spread > 0, spread, np.nan)
        alone = {each.name: 1 - np.square(measured - each.predicted).sum(0) / spread
                 for each in rungs}  # fmt: skip
        few = intervals.in_words(intervals.NAN, intervals.NAN, inputs, str)
        ends = "with its 95 % interval over these inputs" if inputs >= intervals.FEWEST else few
        words = (
            f"Predicted is the change of log HFC/LFC (differences between tokens over what they "
            f"share) in each of {layers} layers, on {inputs} held-out inputs of {tokens} tokens.",
            "P0: no change. P0': each layer's mean change. P0'', P0''': regressions on the first "
            "layer's input X_0. P1: the paper's rule. P2 to P5: a linear layer with this input's "
            "own attention (P4: and the norms' scales; P5: and a linear FFN), from each layer's "
            "true input (P2, one step) or from X_0 (P3, trajectory). P6: a fixed linear map a "
            "layer. P7: P6 with X_0 in one regression, or a few tokens through the model's own "
            "layers. Calibrated: with a slope and an intercept a layer. "
            # Not a line of its own: what is measured of these is this number.
            f"R^2 is pooled over layers and inputs, {ends}.",
            f"Cost counts multiply-adds for one input, as a share of the model's {cost:.3g}; '-' "
            "needs the model's own run.",
        )
        units = {"calibration": "inputs", "cost_share": "of the model's"}
        predictions = {
            "input": np.repeat(np.arange(1, inputs + 1), layers),
            "layer": np.tile(np.arange(1, layers + 1), inputs),
            "measured": measured.ravel(),
            **{each.name: each.predicted.ravel() for each in rungs},
        }
        super().__init__(
            "ladder",
            f"{model}: which theory predicts its smoothing?",
            {
                "rungs": Table(frame, units, SHOWN, "{:.3f}", means=MEANS),
                "r2_by_layer": Table(pd.DataFrame({"layer": range(1, layers + 1), **alone})),
                "predictions": Table(pd.DataFrame(predictions)),
            },
            [
                _verdict(rungs, inputs, cost),
                *(Sentence(each, measured_on(inputs)) for each in words),
                *(Sentence(f"{x} is left out: {why}.", UNTESTED) for x, why in skipped.items()),
                *(Sentence(said, measured_on(inputs)) for said in _fallen_back(measured, rungs)),
            ],
            {
                "model": model,
                "tokens": tokens,
                "target": "change of log HFC/LFC over a whole layer, all tokens, Frobenius",
                "held_out": inputs,
                "layers": layers,
                "model_multiply_adds": cost,
                "settings": settings,
            },
            details={"skipped": skipped},
        )  # fmt: skip


def _fallen_back(measured: Array, rungs: tuple[Rung, ...]) -> list[str]:
    """Fitted rungs that predict what an earlier one does, to SAME of the spread."""
    fitted = [each for each in rungs if each.cost is not None]
    most = SAME * float(measured.std())
    same: dict[str, list[str]] = {}
    for k, rung in enumerate(fitted):
        near = (x for x in fitted[:k] if np.abs(rung.predicted - x.predicted).max() <= most)
        if (other := next(near, None)) is not None:
            same.setdefault(other.name, []).append(rung.name)
    return [
        f"The same numbers as {name}, to {SAME:g} of their spread, come from {'; '.join(others)}."
        for name, others in same.items()
    ]


def _verdict(rungs: tuple[Rung, ...], inputs: int, whole: int) -> Sentence:
    """The best rung without a full run of the model, and whether it beats P0'."""
    free = [(rung.score.r2, rung.cost, rung) for rung in rungs if rung.cost is not None]
    if not free:
        return Sentence("No rung could be scored.", UNTESTED)
    r2, cost, best = max(free, key=itemgetter(0))
    # Without an error on any image there is nothing to resample, and nothing left open.
    low = 1.0 if best.score.r2_within == 1 else best.score.r2_within_low
    if best.name == "P0'":
        says = (
            "None: no predictor that needs no full run of the model is better than each layer's "
            f"mean change (P0', R^2 {r2:.3f})."
        )
    elif inputs < intervals.FEWEST or not low > 0:
        says = (
            f"Not known: these inputs do not tell whether {best.name} (R^2 {r2:.3f}) beats each "
            "layer's mean change (P0')."
        )
    else:
        says = (
            f"{best.name}: it is the best of those that need no full run of the model (R^2 "
            f"{r2:.3f}, at {100 * cost / whole:.1f} % of the model's cost). It explains "
            f"{100 * best.score.r2_within:.0f} % of what the layers' means leave open."
        )
    return Sentence(says, measured_on(inputs, best.score.r2_low, best.score.r2_high))
