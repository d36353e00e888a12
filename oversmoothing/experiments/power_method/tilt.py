"""Do tokens tilt towards the principal direction of each layer, in a trained model?

Tilt over an attention sublayer: the change of a token's squared cosine with the direction, times d
over the direction's dimension, so that a random direction has 1 on average; tokens normalised, FFN
left out (arXiv 2605.25619 tests so; the exact measure is our reading). H of a layer is the sum over
heads of (W_V W_O)^T, with the gain of the norm in front folded in and the mean scale that this norm
gives the tokens: what multiplies a common token at consensus.

Which direction is principal tells two theories apart: the power method's, the largest |lambda|, and
with a residual the largest |1 + lambda| (N-2605.25619-modulus).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.intervals import FEWEST, NAN, in_words, mean_interval
from oversmoothing.experiments.models.model import Layer, Model, Trace
from oversmoothing.experiments.power_method.directions import (
    Direction,
    Matrix,
    eigendirections,
    principal,
    random_bases,
    shares,
)
from oversmoothing.experiments.study.value_spectra import factors
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.errors import InputError, whole_number

RANDOM = 200


@dataclass(frozen=True)
class Tilts:
    """tilt, start [layers, 2, inputs]: of the principal direction by |lambda| and by |1 + lambda|,
    and the share in front of the layer. rank_random, rank_other [layers, 2]: the share of random
    directions, and of H's other eigendirections, whose mean tilt is smaller. values [layers, 2]:
    the eigenvalues."""

    model: str
    tilt: Matrix
    start: Matrix
    rank_random: Matrix
    rank_other: Matrix
    values: np.ndarray

    @property
    def apart(self) -> np.ndarray:
        """The layers (bool) in which the two rules name different directions."""
        return np.asarray(self.values[:, 0] != self.values[:, 1])

    def to_frame(self) -> pd.DataFrame:
        """A row a layer and rule, with the 95 % interval of the tilt over the inputs."""
        rows = []
        for layer in range(len(self.values)):
            for k, rule in enumerate(("|lambda|", "|1 + lambda|")):
                mean, low, high = mean_interval(self.tilt[layer, k])
                rows.append(
                    {
                        "layer": layer + 1,
                        "largest": rule,
                        "eigenvalue": f"{self.values[layer, k]:.3g}",
                        "share_before": float(self.start[layer, k].mean()),
                        "tilt": mean,
                        "low": low,
                        "high": high,
                        "inputs": self.tilt.shape[2],
                        "above_random": self.rank_random[layer, k],
                        "above_other": self.rank_other[layer, k],
                    }
                )
        return pd.DataFrame(rows)

    def difference(self) -> tuple[float, float, float]:
        """Tilt by |1 + lambda| less tilt by |lambda|, meaned over the layers in which they differ:
        mean and 95 % interval over inputs; NaN where there is no such layer."""
        if not self.apart.any():
            return (float("nan"),) * 3
        own = self.tilt[self.apart]
        return mean_interval((own[:, 1] - own[:, 0]).mean(0))

    def words(self, width: int = 100) -> str:
        """What was found, in sentences."""
        layers, _, inputs = self.tilt.shape
        parts = []
        for k, rule in ((0, "|lambda|"), (1, "|1 + lambda|")):
            towards = [mean_interval(each[k])[1] > 0 for each in self.tilt]
            away = [mean_interval(each[k])[2] < 0 for each in self.tilt]
            parts.append(
                f"By {rule} tokens tilt towards the principal direction in {sum(towards)} of "
                f"{layers} layers and away in {sum(away)} (95 % intervals over {inputs} inputs); "
                f"more than 95 % of {RANDOM} random directions in "
                f"{int((self.rank_random[:, k] > 0.95).sum())}."
            )
        if inputs < FEWEST:
            parts = [f"Towards or away is not told: {in_words(NAN, NAN, inputs, str)}."]
        mean, low, high = self.difference()

        def three(x: float) -> str:
            return signed(x, 3, "g")

        number = int(self.apart.sum())
        if not number:
            parts.append("The two rules name the same direction in every layer: no test between.")
        else:
            side = "for |1 + lambda|" if low > 0 else "for |lambda|" if high < 0 else "for neither"
            side = side if inputs >= FEWEST else "for which is not told"
            ends = in_words(low, high, inputs, three)
            where = "the one layer" if number == 1 else f"the {number} layers"
            parts.append(
                f"In {where} where the rules differ, tilt by |1 + lambda| less "
                f"tilt by |lambda| is {three(mean)} ({ends}): {side}."
            )
        return "\n".join(fill(each, width) for each in parts)


def tilts(model: Model, inputs: Iterable[Any], *, seed: int = 0, random: int = RANDOM) -> Tilts:
    """The tilt over every attention sublayer of a model on its inputs (each one observation).

    seed: of the random directions. Raises `InputError` for no inputs, and for layers whose
    attention and FFN see the same stream (the stream between them is not there).
    """
    whole_number("the number of random directions", random, 1)
    if any(layer.placement == "parallel" for layer in model.layers):
        raise InputError(
            f"the model '{model.name}' adds attention and FFN to the stream at once: there is no "
            "tilt over its attention alone"
        )
    # Twice: once for the scale that the norms give, which H needs, once for the tilts.
    given: Any = inputs if hasattr(inputs, "shape") else list(inputs)
    if len(given) == 0:
        raise InputError("there are no inputs: give at least one image or text")
    by_norm = scales(model, given)
    directions = [
        eigendirections(product(layer, scale))
        for layer, scale in zip(model.layers, by_norm, strict=True)
    ]
    chosen = [[principal(each, rule) for rule in ("power", "residual")] for each in directions]
    rng = np.random.default_rng(seed)
    lines, planes = (random_bases(random, model.width, k, rng) for k in (1, 2))
    parts: list[list[_Part]] = [[] for _ in model.layers]
    for batch in stream(model, given, attention=False):
        for number, trace in enumerate(batch.traces):
            parts[number].append(
                _Part.of(trace, batch.keep.numpy(), directions[number], (lines, planes))
            )
    found = [_Part.joined(each) for each in parts]
    return _put_together(model.name, found, directions, chosen)


@dataclass(frozen=True)
class _Part:
    """Of one layer: tilt and share before of every eigendirection [inputs, directions], and the
    tilt of random lines and planes [inputs, random]."""

    tilt: Matrix
    start: Matrix
    lines: Matrix
    planes: Matrix

    @classmethod
    def of(
        cls, trace: Trace, keep: np.ndarray, directions: list[Direction], drawn: tuple[Matrix, ...]
    ) -> "_Part":
        states = [
            np.where(keep[..., None], each.double().cpu().numpy(), 0.0)
            for each in (trace.before, trace.after_attention)
        ]
        before, after = (_of_each(X, directions) for X in states)
        random = [shares(states[1], each) - shares(states[0], each) for each in drawn]
        return cls(after - before, before, *random)

    @classmethod
    def joined(cls, parts: list["_Part"]) -> "_Part":
        names = ("tilt", "start", "lines", "planes")
        return cls(*(np.concatenate([getattr(each, name) for each in parts]) for name in names))


def _of_each(X: Matrix, directions: list[Direction]) -> Matrix:
    """The shares of all directions, lines and planes together: [inputs, directions]."""
    found = np.empty((len(X), len(directions)))
    for k in (1, 2):
        which = [i for i, each in enumerate(directions) if each.basis.shape[1] == k]
        if which:
            found[:, which] = shares(X, np.stack([directions[i].basis for i in which]))
    return found


def _put_together(
    name: str, found: list[_Part], directions: list[list[Direction]], chosen: list[list[int]]
) -> Tilts:
    rank_random, rank_other = np.empty((2, len(found), 2))
    for number, (part, picks) in enumerate(zip(found, chosen, strict=True)):
        means = part.tilt.mean(0)
        for k, pick in enumerate(picks):
            plane = directions[number][pick].basis.shape[1] == 2
            drawn = (part.planes if plane else part.lines).mean(0)
            rank_random[number, k] = (drawn < means[pick]).mean()
            others = np.delete(means, pick)
            rank_other[number, k] = (others < means[pick]).mean() if len(others) else np.nan
    both = zip(found, chosen, strict=True)
    tilt, start = [], []
    for part, picks in both:
        tilt.append(part.tilt[:, picks].T)
        start.append(part.start[:, picks].T)
    values = [[own[p].value for p in picks] for own, picks in zip(directions, chosen, strict=True)]
    return Tilts(name, np.stack(tilt), np.stack(start), rank_random, rank_other, np.array(values))


def product(layer: Layer, scale: float) -> Matrix:
    """H [d, d] of a layer: (scale sum_h W_V,h W_O,h)^T, the norm's gain folded in."""
    W_V, W_O = factors(layer, "unfolded" if layer.placement == "post" else "folded")
    H: Matrix = scale * np.einsum("hdr,hre->de", W_V, W_O).T
    return H


def scales(model: Model, inputs: Any) -> list[float]:
    """The mean over tokens of what the norm in front of each attention multiplies a token by."""
    sums = np.zeros(len(model.layers))
    count = 0
    for batch in stream(model, inputs, attention=False):
        count += int(batch.keep.sum())
        for number, (layer, trace) in enumerate(zip(model.layers, batch.traces, strict=True)):
            norm = layer.norm_attention
            if layer.placement == "post" or norm.kind == "none":
                sums[number] += int(batch.keep.sum())
                continue
            X = trace.before[batch.keep].double()
            sums[number] += float(norm.square(norm.centred(X)).rsqrt().sum())
    return [float(each) for each in sums / count]
