"""Do tokens tilt towards the principal direction of each layer, in a trained model?

Tilt over an attention sublayer: the change of a token's squared cosine with the direction, times d
over the direction's dimension, so that a random direction has 1 on average; tokens normalised, FFN
left out (arXiv 2605.25619 tests so; the exact measure is our reading). H of a layer is the sum over
heads of (W_V W_O)^T, with the gain of the norm in front folded in and the mean scale that this norm
gives the tokens: what multiplies a common token at consensus.

Which direction is principal tells two theories apart: the power method's, the largest |lambda|, and
with a residual the largest |1 + lambda| (N-2605.25619-modulus).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.spectra import Direction
from oversmoothing.experiments.intervals import FEWEST, NAN, in_words, mean_interval, mean_intervals
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.power_method import steering
from oversmoothing.experiments.power_method.steering import Matrix
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.theory.support.errors import InputError, whole_number
from oversmoothing.theory.verdict.answer import number

RANDOM = 200
RULES = ("|lambda|", "|1 + lambda|")
MEANS = {
    "largest": "the rule by which the eigenvalue of H, and its direction, is the principal one",
    "share_before": "the tokens' mean squared cosine with it in front of the attention, times d "
    "over its dimension (2 for a complex pair): 1 is a random direction's mean",
    "tilt": "how much the attention turns tokens towards it: what it adds to that share, mean over "
    "inputs; low, high: its 95 % interval",
    "above_random": f"share of {RANDOM} random directions that tilt less, in the mean over inputs",
    "above_other": "the same of H's other eigendirections, but for its kernel, whose basis is any",
}


class Tilts(Result):
    """Tables `layers` (a row a layer and rule) and, where the model was steered too, `steered`.

    tilt, start [layers, 2, inputs]: of the principal direction by |lambda| and by |1 + lambda|,
    and the share in front of the layer. rank_random, rank_other [layers, 2]: the share of random
    directions, and of H's other eigendirections outside its kernel, whose mean tilt is smaller.
    values [layers, 2]: the eigenvalues; apart [layers]: whether the rules' directions differ.
    """

    def __init__(
        self, model: str, tilt: Matrix, start: Matrix, rank_random: Matrix, rank_other: Matrix,
        values: np.ndarray, steered: pd.DataFrame | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.tilt, self.values, self.rank_random = tilt, values, rank_random
        self.apart: np.ndarray = np.asarray(values[:, 0] != values[:, 1])
        inputs = tilt.shape[2]
        layers = len(values)
        mean, low, high = mean_intervals(tilt.reshape(2 * layers, inputs))
        rows = {
            "layer": np.repeat(np.arange(1, layers + 1), 2),
            "largest": RULES * layers,
            "eigenvalue": [number(value) for value in values.ravel()],
            "share_before": start.mean(2).ravel(),
            "tilt": mean,
            "low": low,
            "high": high,
            "inputs": inputs,
            "above_random": rank_random.ravel(),
            "above_other": rank_other.ravel(),
        }
        tables = {"layers": Table(pd.DataFrame(rows), number="{:.3f}", means=MEANS)}
        sentences = self._sentences()
        if steered is not None:
            names, means = [*map(str, steered)], steering.MEANS
            tables["steered"] = Table(steered, shown=names, number="{:.3f}", means=means)
            sentences.append(steering.on_steering(steered, model, inputs))
        super().__init__(
            "tilt",
            f"{model}: does attention turn tokens towards an eigendirection of its H?",
            tables,
            sentences,
            {"model": model, "inputs": inputs, "seed": seed},
        )

    def _sentences(self) -> list[Sentence]:
        """Towards the principal direction or away, and for which rule."""
        layers, _, inputs = self.tilt.shape
        says = [f"Towards or away is not known: {in_words(NAN, NAN, inputs, str)}."]
        if inputs >= FEWEST:
            says = [
                f"By {rule} tokens tilt towards the principal direction in {(low > 0).sum()} of "
                f"{layers} layers and away in {(high < 0).sum()} (95 % intervals over {inputs} "
                f"inputs); more than 95 % of {RANDOM} random directions in "
                f"{int((ranks > 0.95).sum())}."
                for rule, ranks, (_, low, high) in zip(
                    RULES, self.rank_random.T, map(mean_intervals, self.tilt.swapaxes(0, 1)),
                    strict=True,
                )
            ]  # fmt: skip
        said = [Sentence(each, measured(inputs)) for each in says]
        number = int(self.apart.sum())
        if not number:
            same = "The two rules name the same direction in every layer: no test between."
            return [*said, Sentence(same, measured(inputs))]
        # By |1 + lambda| less by |lambda|, meaned over the layers in which they differ.
        own = self.tilt[self.apart]
        mean, low, high = mean_interval((own[:, 1] - own[:, 0]).mean(0))

        def three(x: float) -> str:
            return signed(x, 3, "g")

        side = "for |1 + lambda|" if low > 0 else "for |lambda|" if high < 0 else "for neither rule"
        known = f"The tilt speaks {side}"
        known = known if inputs >= FEWEST else "Which rule the tilt speaks for is not known"
        where = "the one layer" if number == 1 else f"the {number} layers"
        first = Sentence(
            f"{known}: in {where} where |lambda| and |1 + lambda| name different directions, tilt "
            f"by |1 + lambda| less tilt by |lambda| is {three(mean)} "
            f"({in_words(low, high, inputs, three)}).",
            measured(inputs, low, high, told=True),
        )
        return [first, *said]


def tilts(
    model: Model, inputs: Iterable[Any], *, seed: int = 0, random: int = RANDOM, steer: bool = False
) -> Tilts:
    """The tilt over every attention sublayer of a model on its inputs (each one observation).

    steer: the model is steered towards drawn directions too (`steered_tilts`). seed: of the random
    directions. Raises `InputError` for no inputs, and for layers whose attention and FFN see the
    same stream (the stream between them is not there).
    """
    whole_number("the number of random directions", random, 1)
    if any(layer.placement == "parallel" for layer in model.layers):
        raise InputError(
            f"the model '{model.name}' adds attention and FFN to the stream at once: there is no "
            "tilt over its attention alone"
        )
    # Twice: once for the scale that the norms give, which H needs, once for the tilts.
    if steer and isinstance(inputs, Mapping):
        raise InputError("steering takes inputs one by one: give a list or a tensor")
    whole = hasattr(inputs, "shape") or isinstance(inputs, Mapping)
    given: Any = inputs if whole else list(inputs)
    by_norm = steering.scales(model, given)
    products = [steering.product(*each) for each in zip(model.layers, by_norm, strict=True)]
    directions = [steering.eigendirections(H) for H in products]
    rng = np.random.default_rng(seed)
    drawn = [steering.random_bases(random, model.width, k, rng) for k in (1, 2)]
    # Of each layer, batch by batch: the share in front of it and the tilt of every eigendirection
    # [inputs, directions], the tilts of random lines and planes [inputs, random].
    parts: list[list[tuple[Matrix, ...]]] = [[] for _ in model.layers]
    for batch in stream(model, given, attention=False):
        keep = batch.keep.numpy()[..., None]
        for trace, own, part in zip(batch.traces, directions, parts, strict=True):
            X, Y = (
                np.where(keep, each.double().cpu().numpy(), 0.0)
                for each in (trace.before, trace.after_attention)
            )
            before, after = _of_each(X, own), _of_each(Y, own)
            at_random = (steering.shares(Y, each) - steering.shares(X, each) for each in drawn)
            part.append((before, after - before, *at_random))
    rank_random, rank_other = np.empty((2, len(parts), 2))
    starts, moved, values = [], [], []
    for layer, (part, own, H) in enumerate(zip(parts, directions, products, strict=True)):
        start, tilt, lines, planes = map(np.concatenate, zip(*part, strict=True))
        picks = [steering.principal(own, rule) for rule in ("power", "residual")]
        means, outside = tilt.mean(0), steering.outside_kernel(own, H)
        for k, pick in enumerate(picks):
            alike = planes if own[pick].basis.shape[1] == 2 else lines
            rank_random[layer, k] = (alike.mean(0) < means[pick]).mean()
            others = means[[each for each in outside if each != pick]]
            rank_other[layer, k] = (others < means[pick]).mean() if len(others) else np.nan
        starts.append(start[:, picks].T)
        moved.append(tilt[:, picks].T)
        values.append([own[pick].value for pick in picks])
    steered = steering.steered_tilts(model, given, seed=seed) if steer else None
    both = np.stack(moved), np.stack(starts)
    return Tilts(model.name, *both, rank_random, rank_other, np.array(values), steered, seed)


def _of_each(X: Matrix, directions: list[Direction]) -> Matrix:
    """The shares of all directions, lines and planes together: [inputs, directions]."""
    each = np.empty((len(X), len(directions)))
    for k in (1, 2):
        which = [i for i, each in enumerate(directions) if each.basis.shape[1] == k]
        if which:
            each[:, which] = steering.shares(X, np.stack([directions[i].basis for i in which]))
    return each
