"""One number a layer, trained alone: delta_l I added to H of layer l, all weights as they were.

As a remedy it costs one number a layer, and it says which way a trained model would like to go:
delta_l < 0 sharpens, delta_l > 0 smooths (`study.lever`). The numbers are trained on half of the
inputs and scored on the other half. Beside them stand as many numbers trained in the same way in
random directions R_l of the same norm, ||R_l|| = ||I||: what those gain, any few numbers gain.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import minimize
from torch import Tensor
from torch.nn.functional import cross_entropy

from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.study.lever import CONTROLS, Change, run, said_in_batches
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Of a number trained: the most it may become, the step of the differences that are its gradient,
# and the most gradients.
MOST, STEP, ROUNDS = 0.5, 0.01, 12


@one_thread()
def trained_shift(
    model: Model, inputs: Any, answers: Tensor | None = None, *, seed: int = 0
) -> Result:
    """Train one number a layer, added to every eigenvalue of H, and score it on other inputs.

    answers: the classes of the inputs [m]; of texts it is the next token. Half of the inputs, drawn
    by the seed, train the numbers (L-BFGS, gradients by differences: some ten times as many passes
    as there are layers). Writes trained_shift.json and its tables. Raises `InputError` where
    nothing says what the model should answer, and for fewer than 4 inputs.
    """
    m = len(inputs)
    if answers is None and not (model.modality == "text" and model.causal):
        raise InputError(
            f"nothing says what '{model.name}' should answer: train a shift of a text decoder, or "
            "of one of this project's digits models on its usual images"
        )
    if m < 4:
        raise InputError(f"{m} inputs: give at least 4, half of them train and half are scored")
    rng = np.random.default_rng([seed, 4302])
    order = rng.permutation(m)
    halves = [sorted(order[: m // 2].tolist()), sorted(order[m // 2 :].tolist())]
    train, other = (
        (_chosen(inputs, half), None if answers is None else answers[half]) for half in halves
    )
    eye = np.broadcast_to(np.eye(model.width), (model.depth, model.width, model.width))
    shift = Change("trained shift", 1.0, eye)
    before, ratios = _losses(model, *other, None)
    rows, deltas = [], {}
    whole = [shift, *(shift.control(rng) for _ in range(CONTROLS))]
    for k, unit in enumerate(steps(whole, len(whole), "direction")):
        name = "shift" if k == 0 else f"random {k}"
        deltas[name] = _trained(model, *train, unit)
        after, moved = _losses(model, *other, unit.times(deltas[name]))
        losses = name, before.mean(), after.mean()
        rows.append((*losses, *mean_interval(after - before), (moved - ratios).mean()))
    table = pd.DataFrame({"layer": np.arange(1, model.depth + 1), **deltas})
    names = ["direction", "loss before", "loss after", "change", "low", "high", "log10 HFC/LFC"]
    scored = pd.DataFrame(rows, columns=names)
    return Result(
        "trained_shift",
        f"{model.name}: one number a layer added to H, trained alone",
        {"scored": Table(scored, {"loss before": "nats", "loss after": "nats", "change": "nats"}),
         "deltas": Table(table)},
        _sentences(model.name, scored, table["shift"].to_numpy(), len(before)),
        {"model": model.name, "inputs": m, "trained on": m // 2, "seed": seed},
    )  # fmt: skip


def _chosen(inputs: Any, half: Sequence[int]) -> Any:
    return inputs[half] if isinstance(inputs, Tensor) else [inputs[k] for k in half]


def _losses(
    model: Model, inputs: Any, answers: Tensor | None, change: Change | None
) -> tuple[Array, Array]:
    """By input: the loss in nats (of a text a token's mean), log10 HFC/LFC at the end."""
    ratios, scores = run(model, inputs, change)
    losses, seen = [], 0
    for said, batch in said_in_batches(model, inputs, scores):
        if answers is not None:
            own = answers[seen : seen + len(said)].to(said.device)
            losses.append(cross_entropy(said.double(), own, reduction="none"))
        else:
            ids = batch if isinstance(batch, Tensor) else batch["input_ids"]
            each = cross_entropy(said[:, :-1].double().mT, ids[:, 1:], reduction="none")
            losses.append(each.mean(1))
        seen += len(said)
    return torch.cat(losses).cpu().numpy(), ratios[-1]


def _trained(model: Model, inputs: Any, answers: Tensor | None, unit: Change) -> Array:
    """The numbers [layers] that make the mean loss on these inputs least, from 0."""

    def loss(delta: Array) -> float:
        return float(_losses(model, inputs, answers, unit.times(delta))[0].mean())

    best = minimize(
        loss, np.zeros(model.depth), method="L-BFGS-B", bounds=[(-MOST, MOST)] * model.depth,
        options={"eps": STEP, "maxiter": ROUNDS, "maxfun": 2 * ROUNDS * (model.depth + 1)},
    )  # fmt: skip
    return np.asarray(best.x)


def _sentences(name: str, scored: pd.DataFrame, delta: Array, inputs: int) -> list[Sentence]:
    first, random = scored.iloc[0], scored.iloc[1:]
    return [
        Sentence(
            f"{name}: one number a layer, trained alone, changes the loss on other inputs by "
            f"{first['change']:+.3g} nats of {first['loss before']:.3g}. As many numbers in random "
            f"directions of the same norm change it by {random['change'].mean():+.3g}.",
            measured(inputs, first["low"], first["high"]),
        ),
        Sentence(
            f"The numbers lie between {delta.min():+.3f} and {delta.max():+.3f}, with the mean "
            f"{delta.mean():+.3f}. With them log10 HFC/LFC behind the last layer changes by "
            f"{first['log10 HFC/LFC']:+.3f}.",
            measured(inputs),
        ),
    ]
