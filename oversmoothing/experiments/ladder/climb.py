"""The ladder: does any cheap theory predict the smoothing of a trained model?

Target: the change of log HFC/LFC over each whole layer (attention and FFN), for every image and
layer. Every rung is fitted or chosen on calibration inputs alone and scored on held-out ones.

    P0, P0'     no change; each layer's calibration mean
    P0''        ridge on spectral statistics of X_0
    P0'''       kernel ridge on features of X_0: the strongest regression, and no theory
    P1          log(rho_Q / rho_C), the naive spectral gap
    P2 ... P5   operators with the image's own measured attention (and scales): see `operators`;
                as they are, and calibrated: a slope and an intercept a layer
    P6          one fixed affine operator a layer, from X_0 alone: see `linear_state`
    P6 lifted   the same on tokens lifted by fixed functions of each: see `lifted_state`;
                its energies read by ridge or by kernel ridge
    P7 kernel   P6's propagated energies and X_0's features in one kernel regression
    P7 landmarks  a few tokens through the model's layers: see `landmarks`
    P7 landmarks, reduced FFN   the same with cheaper FFNs, on more tokens: `reduced_landmarks`

P2 to P5 need the model's own run on the held-out image; P0 to P0''', P6 and P7 do not. A kernel
lift of X_0 as a whole, propagated by linear operators (Koopman style), is the same map as P0''',
and is therefore no rung of its own; P6 lifted lifts each token and propagates the state.
"""

from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.ladder.costs import model_cost
from oversmoothing.experiments.ladder.landmarks import FIRST_LAYERS
from oversmoothing.experiments.ladder.operators import (
    AffineFfns,
    affine_ffns,
    check_pre_norm,
    operator_changes,
)
from oversmoothing.experiments.ladder.recording import Recording, record
from oversmoothing.experiments.ladder.result import LadderResult
from oversmoothing.experiments.ladder.rungs import Climb
from oversmoothing.experiments.ladder.spectral_gap import spectral_gaps
from oversmoothing.experiments.ladder.split import altered
from oversmoothing.experiments.models.model import Extraction, Model
from oversmoothing.experiments.models.pictures import Pictures
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

STANDARD = 100  # calibration inputs of P0 to P5


@one_thread()
@torch.no_grad()
def ladder(
    model: Model,
    calibration: Sequence[Any],
    held_out: Sequence[Any],
    *,
    standard: int = STANDARD,
    copies: int = 0,
    first_layers: int = FIRST_LAYERS,
    batch_size: int = 10,
    seed: int = 0,
) -> LadderResult:
    """Climb the ladder: fit on `calibration`, predict and score on `held_out`.

    calibration: inputs as `model.prepare` reads them. The first `standard` serve P0 to P5; P0''',
    P6 and P7 are fitted to these (where there are more) and to all. copies: altered copies of each
    calibration image for the kernel rungs fitted to all (PIL images only). first_layers: how many
    P7's finer grid of landmarks follows: the exchange of cost for score.

    Raises `InputError` for Post-LN models, fewer than 10 calibration or 2 held-out inputs, inputs
    of different lengths, and copies of what is no image.
    """
    check_pre_norm(model)
    if len(calibration) < 10 or len(held_out) < 2:
        raise InputError(
            f"{len(calibration)} calibration and {len(held_out)} held-out inputs: give at least 10 "
            "and 2"
        )
    if copies and not (
        isinstance(calibration, Pictures)
        or all(isinstance(image, Image.Image) for image in calibration)
    ):
        raise InputError(
            "copies are made of PIL images: give images, or leave copies out (copies=0)"
        )
    known = everything = record(model, calibration, states=True, batch_size=batch_size)
    if copies:
        images = altered(calibration, copies, seed)
        everything = known.followed_by(record(model, images, batch_size=batch_size))
    few = min(standard, len(known))
    batches = stream(model, calibration[:few], batch_size=batch_size, attention=False)
    affine = affine_ffns(model, (batch.traces for batch in batches))
    _, trained = _observe(model, calibration[:few], affine, batch_size)
    held, live = _observe(model, held_out, affine, batch_size)
    if held.start.shape[1] != known.start.shape[1]:
        raise InputError("calibration and held-out inputs have different numbers of tokens")
    climb = Climb(model, known, held, few, seed)
    for name, values in live.items():
        climb.operator(name, values, trained[name])
    if few < len(known):
        climb.cheap(climb.known, climb.known, f", {few} inputs", first_layers)
    climb.cheap(known, everything, "", first_layers)
    tokens = held.start.shape[1]
    settings = {
        "calibration": len(known),
        "standard_calibration": few,
        "copies": copies,
        "first_layers": first_layers,
        "seed": seed,
        "dtype": str(model.dtype).removeprefix("torch."),
    }
    cost = model_cost(model, tokens)
    return LadderResult(
        model.name, tokens, held.change, cost, tuple(climb.rungs), climb.skipped, settings
    )


def _observe(
    model: Model, inputs: Sequence[Any], affine: AffineFfns, batch_size: int
) -> tuple[Recording, dict[str, Array]]:
    """The recording of the inputs and what P1 to P5 predict of them, in one run."""
    found: dict[str, list[Tensor]] = {}

    def predict(batch: Extraction) -> None:
        changes = spectral_gaps(model.layers, batch.traces)
        changes |= operator_changes(model, batch.traces, affine)
        for name, values in changes.items():
            found.setdefault(name, []).append(values)

    recording = record(model, inputs, watch=predict, batch_size=batch_size)
    return recording, {name: torch.cat(parts).numpy() for name, parts in found.items()}
