"""The ladder: does any cheap theory predict the smoothing of a trained model?

Target: the change of log HFC/LFC over each whole layer (attention and FFN), for every image and
layer. Every rung is fitted or chosen on calibration inputs alone and scored on held-out ones, drawn
apart by the seed.

    P0, P0'     no change; each layer's calibration mean
    P0''        ridge on spectral statistics of X_0
    P0'''       kernel ridge on features of X_0: the strongest regression, and no theory
    P1          log(rho_Q / rho_C), the naive spectral gap: see `recording`
    P2 ... P5   operators with the image's own measured attention (and scales): see `recording`;
                as they are, and calibrated: a slope and an intercept a layer
    P6          one fixed affine operator a layer, from X_0 alone: see `linear`
    P6 lifted   the same on tokens lifted by fixed functions of each: see `linear`;
                its energies read by ridge or by kernel ridge
    P7 kernel   P6's propagated energies and X_0's features in one kernel regression
    P7 landmarks  a few tokens through the model's layers: see `landmarks`
    P7 landmarks, reduced FFN   the same with cheaper FFNs, on more tokens: `reduced`

P2 to P5 need the model's own run on the held-out image; P0 to P0''', P6 and P7 do not. A kernel
lift of X_0 as a whole, propagated by linear operators (Koopman style), is the same map as P0''',
and is therefore no rung of its own; P6 lifted lifts each token and propagates the state.

Of altered copies of the images the first is the mirror image, the others are square crops of 3/4 to
all of the side, mirrored half of the time. The model is run on them; they belong to calibration and
cost nothing for a held-out image.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.ladder import recording, regression
from oversmoothing.experiments.ladder.landmarks import FIRST_LAYERS, Landmarks
from oversmoothing.experiments.ladder.linear import FUNCTIONS, lifted_state, linear_state
from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.scores import LadderResult, Rung, calibrated, score
from oversmoothing.experiments.models import pictures
from oversmoothing.experiments.models.model import Extraction, Model, check_stochastic
from oversmoothing.experiments.models.sources import named_texts
from oversmoothing.simulations.state import one_thread, undisturbed
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

STANDARD = 100  # calibration inputs of P0 to P5
ENERGY_WEIGHT = 2.0  # of P6's energies beside the features of X_0
SMALLEST = 0.75


@one_thread()
@torch.no_grad()
@undisturbed()
def ladder(
    model: Model, calibration: Sequence[Any], held_out: Sequence[Any], *,
    standard: int = STANDARD, copies: int = 0, first_layers: int = FIRST_LAYERS,
    batch_size: int = 10, seed: int = 0, origin: Mapping[str, Any] | None = None,
) -> LadderResult:  # fmt: skip
    """Climb the ladder: fit on `calibration`, predict and score on `held_out`.

    calibration: inputs as `model.prepare` reads them. The first `standard` serve P0 to P5; P0''',
    P6 and P7 are fitted to these (where there are more) and to all. copies: altered copies of each
    calibration image for the kernel rungs fitted to all (PIL images only). first_layers: how many
    P7's finer grid of landmarks follows: the exchange of cost for score. origin: where the inputs
    are from, said among the settings.

    Raises `InputError` for Post-LN models, learned sinks, fewer than 10 calibration or 2 held-out
    inputs, inputs of different lengths, and copies of what is no image.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(13, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> described = oversmoothing.open_model(model)
    >>> result = oversmoothing.ladder(described, list(X[:10]), list(X[10:]), standard=2)
    >>> "P2" in str(result.tables)
    True
    """
    check_stochastic(model)
    recording.check_pre_norm(model)
    if len(calibration) < 10 or len(held_out) < 2:
        raise InputError(
            f"{len(calibration)} calibration and {len(held_out)} held-out inputs: give at least 10 "
            "and 2"
        )
    if copies and not (
        isinstance(calibration, pictures.Pictures)
        or all(isinstance(image, Image.Image) for image in calibration)
    ):
        raise InputError(
            "copies are made of PIL images: give images, or leave copies out (copies=0)"
        )
    known = everything = recording.record(model, calibration, states=True, batch_size=batch_size)
    if copies:
        # Below these inputs altered copies of them.
        more = recording.record(model, altered(calibration, copies, seed), batch_size=batch_size)
        logs = np.concatenate([known.logs, more.logs])
        everything = Recording(torch.cat([known.start, more.start]), logs)
    few = min(standard, len(known))
    batches = stream(model, calibration[:few], batch_size=batch_size, attention=False)
    affine = recording.affine_ffns(model, (batch.traces for batch in batches))
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
    settings: dict[str, Any] = {
        **(origin or {}),
        "calibration": len(known),
        "standard_calibration": few,
        "copies": copies,
        "first_layers": first_layers,
        "seed": seed,
        "dtype": str(model.dtype).removeprefix("torch."),
    }
    return LadderResult(
        model.name, tokens, held.change, recording.model_cost(model, tokens), tuple(climb.rungs),
        climb.skipped, settings,
    )  # fmt: skip


def _observe(
    model: Model, inputs: Sequence[Any], affine: recording.AffineFfns, batch_size: int
) -> tuple[Recording, dict[str, Array]]:
    """The recording of the inputs and what P1 to P5 predict of them, in one run."""
    said: list[dict[str, Tensor]] = []

    def predict(batch: Extraction) -> None:
        changes = recording.operator_changes(model, batch.traces, affine)
        said.append(recording.spectral_gaps(model.layers, batch.traces) | changes)

    seen = recording.record(model, inputs, watch=predict, batch_size=batch_size)
    return seen, {name: torch.cat([x[name] for x in said]).numpy() for name in said[0]}


class Climb:
    """The rungs of one ladder, and why others are skipped; few: calibration inputs of P0 to P5."""

    def __init__(
        self, model: Model, calibration: Recording, held: Recording, few: int, seed: int
    ) -> None:
        self.model, self.held, self.few, self.seed = model, held, few, seed
        self.known = calibration.first(few)
        self.means = self.known.change.mean(0)
        self.rungs: list[Rung] = []
        self.skipped: dict[str, str] = {}
        # P0'', P0 and P0': what the others' skill is measured against comes first.
        start = held.start
        fitted = regression.ridge(
            regression.spectral_statistics(self.known.start), self.known.change
        )
        self._spectral = fitted(regression.spectral_statistics(start))
        self.add("P0", np.zeros(held.change.shape), 0, 0, "no change")
        self.add("P0'", np.tile(self.means, (len(held), 1)), 0, few, "means of the layers")
        gram = regression.singular_value_cost(*start.shape[1:])
        self.add("P0''", self._spectral, gram, few, "ridge on spectral statistics of X_0")

    def add(
        self, name: str, predicted: Array, cost: int | None, fitted: int, note: str, copies: int = 0
    ) -> None:
        """Score one rung; one that is not finite is left out, and why."""
        if not np.isfinite(predicted).all():
            self.skipped[name] = "its predictions are not finite"
            return
        scored = score(self.held.change, predicted, self.means, self._spectral, seed=self.seed)
        self.rungs.append(Rung(name, predicted, cost, fitted, copies, note, scored))

    def operator(self, name: str, predicted: Array, trained: Array) -> None:
        """P1 to P5 as it is and calibrated; trained [few, layers]: what it says of these inputs."""
        fitted = self.few if "FFN" in name else 0
        self.add(name, predicted, None, fitted, "as the theory gives it, not fitted")
        if not np.isfinite(trained).all():
            return
        line = calibrated(predicted, trained, self.known.change)
        note = "with a slope and an intercept a layer from calibration"
        self.add(f"{name}, calibrated", line, None, self.few, note)

    def cheap(self, known: Recording, everything: Recording, label: str, first_layers: int) -> None:
        """P0''', each P6 and each P7; everything: what is known, and altered copies below."""
        number = len(known)
        # Which input each row of `everything` is, or is a copy of.
        sources = np.arange(len(everything)) % number

        def kernel(
            name: str, features: Callable[[Tensor], list[regression.Features]], cost: int, note: str
        ) -> None:
            blocks, targets = features(everything.start), features(self.held.start)
            predicted = regression.kernel_ridge(blocks, everything.change, targets, sources)
            cost += regression.kernel_cost(blocks, len(everything), predicted.shape[1])
            copies = len(everything) // number - 1
            self.add(f"{name}{label}", predicted, cost, number, note, copies)

        start, of_start = regression.start_features(known.start)
        kernel("P0'''", start, of_start, "kernel ridge on features of X_0")
        fixed = linear_state(known)
        lifted = lifted_state(known, int(self.model.cls), seed=self.seed)
        refitted = "one affine operator a layer from X_0, refitted on propagated states"
        note = (
            f"one affine operator a layer on X_0's tokens lifted by {FUNCTIONS} fixed random "
            "functions"
        )
        for name, state, words in (("P6", fixed, refitted), ("P6 lifted", lifted, note)):
            self.add(name + label, state.predict(self.held.start), state.cost(), number, words)
        kernel(
            "P6 lifted, kernel reading", lambda X: [regression.Features(lifted.logs(X))],
            lifted.cost(), f"{note}, its propagated energies read by kernel ridge",
        )  # fmt: skip
        kernel(
            "P7 kernel", lambda X: [regression.Features(fixed.logs(X), ENERGY_WEIGHT), *start(X)],
            fixed.cost() + of_start,
            "P6 with a kernel correction on X_0's features and P6's energies",
        )  # fmt: skip
        for name, reduced in (("P7 landmarks", False), ("P7 landmarks, reduced FFN", True)):
            try:
                fitted = Landmarks(self.model, known, first_layers, reduced)
            except InputError as error:  # where it does not apply
                self.skipped[f"{name}{label}"] = str(error)
            else:
                kernel(name, fitted.features, fitted.cost(), fitted.words())


def split_inputs(
    model: Model, *, images: str | None = None, text: Path | None = None, tokens: int = 64,
    calibration: int = 100, held_out: int = 200, held_out_from: int = 0, seed: int = 0,
    data_dir: Path | None = None,
) -> tuple[Sequence[Any], Sequence[Any], str]:  # fmt: skip
    """(inputs for calibration, others that are held out, where they are from, in words).

    Images of a folder, texts of a file (one a line, cut to `tokens`), looked for here, then within
    `data_dir`. Where no images are named: the model's usual ones (digits: their validation images),
    else CIFAR-100. calibration, held_out: how many; held_out_from: leave out the first so many of
    the held-out draw. Raises `InputError` where there are too few.
    """
    first = calibration + held_out_from
    wanted = first + held_out
    random = np.random.default_rng(seed)
    if model.modality == "text":
        if text is None:
            raise InputError(
                f"which inputs? '{model.name}' reads text.\nAdd --text FILE (one text a line)."
            )
        ids = [model.prepare([line])["input_ids"][0] for line in named_texts(text, data_dir)]
        texts = [each[:tokens] for each in ids if len(each) >= tokens]
        chosen = [texts[k] for k in _drawn(random, len(texts), wanted)]
        origin = f"{Path(str(text)).name}, cut to {tokens} tokens"
        return chosen[:calibration], chosen[first:], origin
    if images is not None and not pictures.is_cifar100(images):
        folder = pictures.named_pictures(images, None, data_dir)
        drawn = folder.chosen(_drawn(random, len(folder), wanted))
        origin = f"{Path(images).name}, split by the seed"
        return drawn[:calibration], drawn[first:], origin
    usual = getattr(model.prepare, "usual", None)
    if images is None and usual is not None:
        own = usual(None)
        chosen = own[_drawn(random, len(own), wanted)]
        return chosen[:calibration], chosen[first:], "the model's usual images, split by the seed"
    data = pictures.real_inputs(data_dir)
    known = np.sort(random.permutation(len(pictures.cifar100(data, "train")))[:calibration])
    other = np.random.default_rng([seed, 1])
    held = np.sort(
        other.permutation(pictures.SPLITS["test"])[held_out_from : held_out_from + held_out]
    )
    if len(known) < calibration or len(held) < held_out:
        raise InputError("CIFAR-100 has 50,000 train and 10,000 test images: ask for fewer")
    return (
        list(pictures.cifar100(data, "train", known.tolist())),
        list(pictures.cifar100(data, "test", held.tolist())),
        "CIFAR-100: calibration from the train images, held out from the test images, by the seed",
    )


def _drawn(random: np.random.Generator, there: int, wanted: int) -> list[int]:
    if there < wanted:
        raise InputError(
            f"there are {there} inputs and {wanted} are needed: give more, or lower --calibration "
            "and --held-out"
        )
    return [int(k) for k in random.permutation(there)[:wanted]]


def altered(images: Sequence[Image.Image], number: int, seed: int) -> Iterator[Image.Image]:
    """`number` copies of every image, copy by copy: all mirrors first."""
    random = np.random.default_rng(seed)
    for copy in range(number):
        for image in images:
            if copy == 0:
                yield image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
                continue
            width, height = image.size
            share = random.uniform(SMALLEST, 1.0)
            w, h = share * width, share * height
            x, y = random.uniform(0, width - w), random.uniform(0, height - h)
            box = (x, y, x + w, y + h)
            crop = image.transform(
                image.size, Image.Transform.EXTENT, box, Image.Resampling.BICUBIC
            )
            mirror = random.random() < 0.5
            yield crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else crop
