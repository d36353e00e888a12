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
    P7 kernel   P6's propagated energies and X_0's features in one kernel regression
    P7 landmarks  a few tokens through the model's layers: see `landmarks`

P2 to P5 need the model's own run on the held-out image; P0 to P0''', P6 and P7 do not. A kernel
lift of X_0 propagated by linear operators (Koopman style) is the same map as P0''', and is
therefore no rung of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from experiments.bridge.extract import stream
from experiments.bridge.model import Model
from experiments.bridge.predict.copies import altered
from experiments.bridge.predict.costs import model_cost
from experiments.bridge.predict.features import StateFeatures, spectral_statistics
from experiments.bridge.predict.landmarks import Landmarks
from experiments.bridge.predict.linear_state import LinearState
from experiments.bridge.predict.operators import Affine, FfnSums, check_pre_norm, operator_changes
from experiments.bridge.predict.recording import Recording, log_energies, record, streams
from experiments.bridge.predict.regression import Block, kernel_cost, kernel_ridge, ridge
from experiments.bridge.predict.scores import Score, score
from experiments.bridge.predict.spectral_gap import spectral_gaps
from experiments.threads import one_thread
from theory.errors import InputError
from theory.files import json_number

Array = NDArray[np.float64]

STANDARD = 100  # calibration inputs of P0 to P5


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


@dataclass(frozen=True)
class LadderResult:
    """measured [m, layers]; rungs in order; skipped {rung: why it does not apply}."""

    model: str
    tokens: int
    measured: Array
    model_cost: int
    rungs: tuple[Rung, ...]
    skipped: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)

    def to_frame(self) -> pd.DataFrame:
        """One row a rung: scores with their intervals, cost and calibration."""
        rows = []
        for rung in self.rungs:
            share = float("nan") if rung.cost is None else rung.cost / self.model_cost
            rows.append(
                {
                    "rung": rung.name,
                    **asdict(rung.score),
                    "multiply_adds": rung.cost,
                    "cost_share": share,
                    "calibration": rung.calibration,
                    "copies": rung.copies,
                    "note": rung.note,
                }
            )
        return pd.DataFrame(rows).astype({"multiply_adds": "Int64"})

    def by_layer(self) -> pd.DataFrame:
        """R^2 of each layer alone (around its held-out mean), a column a rung."""
        spread = np.square(self.measured - self.measured.mean(0)).sum(0)
        spread = np.where(spread > 0, spread, np.nan)
        columns = {
            rung.name: 1 - np.square(self.measured - rung.predicted).sum(0) / spread
            for rung in self.rungs
        }
        index = pd.RangeIndex(1, self.measured.shape[1] + 1, name="layer")
        return pd.DataFrame(columns, index=index)

    def to_json_object(self) -> dict[str, Any]:
        """Everything but the single predictions."""
        rungs = []
        for rung in self.rungs:
            values = {name: json_number(value) for name, value in asdict(rung.score).items()}
            share = None if rung.cost is None else rung.cost / self.model_cost
            rungs.append(
                {
                    "rung": rung.name,
                    **values,
                    "multiply_adds": rung.cost,
                    "cost_share": share,
                    "calibration": rung.calibration,
                    "copies": rung.copies,
                    "note": rung.note,
                }
            )
        layers = {
            name: [json_number(value) for value in column]
            for name, column in self.by_layer().items()
        }
        return {
            "model": self.model,
            "tokens": self.tokens,
            "target": "change of log HFC/LFC over a whole layer, all tokens, Frobenius",
            "held_out": len(self.measured),
            "layers": self.measured.shape[1],
            "model_multiply_adds": self.model_cost,
            "settings": self.settings,
            "rungs": rungs,
            "r2_by_layer": layers,
            "skipped": self.skipped,
        }


@one_thread()
@torch.no_grad()
def ladder(
    model: Model,
    calibration: Sequence[Any],
    held_out: Sequence[Any],
    *,
    standard: int = STANDARD,
    copies: int = 0,
    batch_size: int = 10,
    seed: int = 0,
) -> LadderResult:
    """Climb the ladder: fit on `calibration`, predict and score on `held_out`.

    calibration: inputs as `model.prepare` reads them; the first `standard` serve P0 to P5, all of
    them P0''', P6 and P7. copies: altered copies of each calibration image for the kernel rungs
    (PIL images only). Raises `InputError` for Post-LN models, fewer than 10 calibration or 2
    held-out inputs, and inputs of different lengths.
    """
    check_pre_norm(model)
    if len(calibration) < 10 or len(held_out) < 2:
        raise InputError(
            f"{len(calibration)} calibration and {len(held_out)} held-out inputs: give at least 10 "
            "and 2"
        )
    known = record(model, calibration, states=True, batch_size=batch_size)
    extra = _copies(model, calibration, copies, seed, batch_size)
    few = min(standard, len(known))
    affine = _affine_ffns(model, calibration[:few], batch_size)
    _, trained = _observe(model, calibration[:few], affine, batch_size)
    held, live = _observe(model, held_out, affine, batch_size)
    if held.start.shape[1] != known.start.shape[1]:
        raise InputError("calibration and held-out inputs have different numbers of tokens")
    climb = _Climb(model, known, held, few, copies, seed)
    climb.regressions(extra)
    for name, values in live.items():
        climb.operator(name, values, trained[name])
    climb.fixed_operator(extra)
    climb.landmarks(extra)
    return climb.result(
        {
            "calibration": len(known),
            "standard_calibration": few,
            "copies": copies,
            "seed": seed,
            "dtype": str(model.dtype).removeprefix("torch."),
        }
    )


def _copies(
    model: Model, calibration: Sequence[Any], copies: int, seed: int, batch_size: int
) -> Recording | None:
    if copies == 0:
        return None
    images = list(calibration)
    if not all(isinstance(image, Image.Image) for image in images):
        raise InputError(
            "copies are made of PIL images: give images, or leave copies out (copies=0)"
        )
    return record(model, altered(images, copies, seed), batch_size=batch_size)


Affines = tuple[list[Affine | None], list[Affine | None]]


def _affine_ffns(model: Model, inputs: Sequence[Any], batch_size: int) -> Affines:
    """The affine stand-ins of the FFNs, from calibration tokens."""
    sums = FfnSums(model)
    for batch in stream(model, inputs, batch_size=batch_size, attention=False):
        sums.update(batch.traces)
    return sums.solve()


def _observe(
    model: Model, inputs: Sequence[Any], affine: Affines, batch_size: int
) -> tuple[Recording, dict[str, Array]]:
    """The recording of the inputs and what P1 to P5 predict of them, in one run."""
    starts, logs = [], []
    found: dict[str, list[Tensor]] = {}
    for batch in stream(model, inputs, batch_size=batch_size):
        states = streams(batch)
        starts.append(states[0].float().cpu())
        logs.append(torch.stack([log_energies(X) for X in states], dim=1).cpu())
        changes = spectral_gaps(model.layers, batch.traces)
        changes |= operator_changes(model, batch.traces, *affine)
        for name, values in changes.items():
            found.setdefault(name, []).append(values)
    if len({X.shape[1] for X in starts}) > 1:
        raise InputError("the inputs have different lengths: give inputs of one number of tokens")
    recording = Recording(torch.cat(starts), torch.cat(logs).numpy())
    return recording, {name: torch.cat(parts).numpy() for name, parts in found.items()}


class _Climb:
    """Collects the rungs of one ladder."""

    def __init__(
        self, model: Model, known: Recording, held: Recording, few: int, copies: int, seed: int
    ) -> None:
        self.model, self.known, self.held = model, known, held
        self.few, self.copies, self.seed = few, copies, seed
        self.means = known.change[:few].mean(0)
        self._spectral: Array | None = None
        self._rungs: list[Rung] = []
        self._skipped: dict[str, str] = {}

    def add(
        self,
        name: str,
        predicted: Array,
        cost: int | None,
        calibration: int,
        note: str,
        copies: int = 0,
    ) -> None:
        measured = self.held.change
        if not np.isfinite(predicted).all():
            self._skipped[name] = "its predictions are not finite"
            return
        found = score(measured, predicted, self.means, self._spectral, seed=self.seed)
        self._rungs.append(Rung(name, predicted, cost, calibration, copies, note, found))

    def regressions(self, extra: Recording | None) -> None:
        """P0 to P0'''."""
        known, held, few = self.known, self.held, self.few
        m, (n, d) = len(held), held.start.shape[1:]
        shape = held.change.shape
        statistics = spectral_statistics(known.start[:few])
        fitted = ridge(statistics, known.change[:few])
        self._spectral = fitted(spectral_statistics(held.start))
        self.add("P0", np.zeros(shape), 0, 0, "no change")
        self.add("P0'", np.tile(self.means, (m, 1)), 0, few, "means of the layers")
        gram = min(n, d) * n * d + min(n, d) ** 3
        self.add("P0''", self._spectral, gram, few, "ridge on spectral statistics of X_0")
        self._start = _StartFeatures.fit(known.start)
        blocks = self._blocks(self._start, known, extra)
        targets = self._start(held.start)
        predicted = kernel_ridge(blocks, self._changes(extra), targets, self._sources(extra))
        cost = self._start.cost() + kernel_cost(blocks, len(blocks[0].values), shape[1])
        note = "kernel ridge on features of X_0"
        self.add("P0'''", predicted, cost, len(known), note, self.copies)

    def operator(self, name: str, predicted: Array, trained: Array) -> None:
        """One of P1 to P5 as it is, and with a slope and an intercept for each layer.

        trained [few, layers]: what it predicts of the calibration inputs.
        """
        fitted = self.few if "FFN" in name else 0
        self.add(name, predicted, None, fitted, "as the theory gives it, not fitted")
        if not np.isfinite(trained).all():
            return
        known = self.known.change[: self.few]
        centred = trained - trained.mean(0)
        spread = np.square(centred).sum(0)
        slope = (centred * known).sum(0) / np.where(spread > 0, spread, np.inf)
        line = self.means + slope * (predicted - trained.mean(0))
        note = "with a slope and an intercept a layer from calibration"
        self.add(f"{name}, calibrated", line, None, self.few, note)

    def fixed_operator(self, extra: Recording | None) -> None:
        """P6, and the kernel correction of P7 on top of it."""
        known, held = self.known, self.held
        fixed = LinearState.fit(known)
        note = "one affine operator a layer from X_0, refitted on propagated states"
        self.add("P6", fixed.predict(held.start), fixed.cost(), len(known), note)

        def both(start: Tensor) -> list[Block]:
            return [Block(fixed.logs(start), 2.0), *self._start(start)]

        blocks = self._blocks(both, known, extra)
        predicted = kernel_ridge(
            blocks, self._changes(extra), both(held.start), self._sources(extra)
        )
        layers = held.change.shape[1]
        cost = fixed.cost() + self._start.cost()
        cost += kernel_cost(blocks, len(blocks[0].values), layers)
        note = "P6 with a kernel correction on X_0's features and P6's energies"
        self.add("P7 kernel", predicted, cost, len(known), note, self.copies)

    def landmarks(self, extra: Recording | None) -> None:
        """P7 with landmark tokens; skipped, with the reason, where it does not apply."""
        try:
            found = Landmarks.fit(self.model, self.known)
        except InputError as error:
            self._skipped["P7 landmarks"] = str(error)
            return
        blocks = self._blocks(found.features, self.known, extra)
        targets = found.features(self.held.start)
        predicted = kernel_ridge(blocks, self._changes(extra), targets, self._sources(extra))
        layers = predicted.shape[1]
        cost = found.cost() + kernel_cost(blocks, len(blocks[0].values), layers)
        followed = [len(x) + found.grid.prefix for x in found.grid.landmarks]
        note = (
            f"{followed[0]} tokens through the first {found.first} layers, {followed[1]} through "
            "the others; kernel ridge"
        )
        self.add("P7 landmarks", predicted, cost, len(self.known), note, self.copies)

    def result(self, settings: dict[str, Any]) -> LadderResult:
        tokens = self.held.start.shape[1]
        return LadderResult(
            self.model.name,
            tokens,
            self.held.change,
            model_cost(self.model, tokens),
            tuple(self._rungs),
            self._skipped,
            settings,
        )

    def _blocks(self, features: Any, known: Recording, extra: Recording | None) -> list[Block]:
        """Features of the calibration inputs and, below them, of their copies."""
        own: list[Block] = features(known.start)
        if extra is None:
            return own
        more: list[Block] = features(extra.start)
        return [
            Block(np.concatenate([a.values, b.values]), a.weight)
            for a, b in zip(own, more, strict=True)
        ]

    def _changes(self, extra: Recording | None) -> Array:
        if extra is None:
            return self.known.change
        return np.concatenate([self.known.change, extra.change])

    def _sources(self, extra: Recording | None) -> NDArray[np.int_]:
        own = np.arange(len(self.known))
        return own if extra is None else np.tile(own, 1 + self.copies)


@dataclass(frozen=True)
class _StartFeatures:
    """The blocks of P0''': principal energies and means of X_0, with and without each position's
    calibration mean, and the logs of the leading singular values of HFC."""

    content: StateFeatures
    whole: StateFeatures
    shape: tuple[int, int]

    @classmethod
    def fit(cls, start: Tensor) -> _StartFeatures:
        n, d = start.shape[1:]
        return cls(StateFeatures.fit(start, content=True), StateFeatures.fit(start), (n, d))

    def __call__(self, start: Tensor) -> list[Block]:
        rows = []
        for X in torch.split(start, 100):
            sigma = torch.linalg.svdvals((X - X.mean(1, keepdim=True)).double())
            floor = 1e-12 * sigma[:, :1] + 1e-300
            rows.append((sigma[:, :40] + floor).log())
        return [*self.content(start), *self.whole(start), Block(torch.cat(rows).numpy())]

    def cost(self) -> int:
        n, d = self.shape
        gram = min(n, d) * n * d + min(n, d) ** 3
        return self.content.cost(n) + self.whole.cost(n) + gram
