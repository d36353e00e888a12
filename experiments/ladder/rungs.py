"""The rungs one by one: what each is fitted on, what it costs, and its score on held-out inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.ladder.costs import model_cost
from oversmoothing.experiments.ladder.features import StartFeatures, spectral_statistics
from oversmoothing.experiments.ladder.landmarks import Landmarks
from oversmoothing.experiments.ladder.lifted_state import FUNCTIONS, LiftedState
from oversmoothing.experiments.ladder.linear_state import LinearState
from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.reduced_landmarks import ReducedLandmarks
from oversmoothing.experiments.ladder.regression import (
    Block,
    joined,
    kernel_cost,
    kernel_ridge,
    ridge,
)
from oversmoothing.experiments.ladder.result import LadderResult, Rung
from oversmoothing.experiments.ladder.scores import score
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.errors import InputError

Features = Callable[[Tensor], list[Block]]

ENERGY_WEIGHT = 2.0  # of P6's energies beside the features of X_0


@dataclass(frozen=True)
class Known:
    """What a rung may be fitted on: recorded calibration inputs and altered copies of them (each
    copy of all inputs after the other; None: no copies)."""

    recording: Recording
    copies: Recording | None = None
    label: str = ""

    @property
    def number(self) -> int:
        """Copies of each input."""
        return 0 if self.copies is None else len(self.copies) // len(self.recording)

    @property
    def changes(self) -> Array:
        """Measured changes of the inputs and, below, of their copies."""
        if self.copies is None:
            return self.recording.change
        return np.concatenate([self.recording.change, self.copies.change])

    @property
    def sources(self) -> NDArray[np.int_]:
        """Which input each row of `changes` is, or is a copy of."""
        return np.tile(np.arange(len(self.recording)), 1 + self.number)

    def blocks(self, features: Features) -> list[Block]:
        """Features of the rows of `changes`."""
        known = [self.recording] if self.copies is None else [self.recording, self.copies]
        return joined([features(each.start) for each in known])


class Climb:
    """Collects the rungs of one ladder. few: calibration inputs of P0 to P5."""

    def __init__(
        self, model: Model, calibration: Recording, held: Recording, few: int, seed: int
    ) -> None:
        self.model, self.calibration, self.held = model, calibration, held
        self.few, self.seed = few, seed
        self.means = calibration.change[:few].mean(0)
        self._spectral: Array | None = None
        self._rungs: list[Rung] = []
        self._skipped: dict[str, str] = {}

    def add(
        self, name: str, predicted: Array, cost: int | None, fitted: int, note: str, copies: int = 0
    ) -> None:
        """Score one rung; one that is not finite is left out, and why."""
        if not np.isfinite(predicted).all():
            self._skipped[name] = "its predictions are not finite"
            return
        measured = self.held.change
        found = score(measured, predicted, self.means, self._spectral, seed=self.seed)
        self._rungs.append(Rung(name, predicted, cost, fitted, copies, note, found))

    def baselines(self) -> None:
        """P0, P0' and P0''."""
        few, start = self.few, self.held.start
        m, n, d = start.shape
        statistics = spectral_statistics(self.calibration.start[:few])
        fitted = ridge(statistics, self.calibration.change[:few])
        self._spectral = fitted(spectral_statistics(start))
        self.add("P0", np.zeros(self.held.change.shape), 0, 0, "no change")
        self.add("P0'", np.tile(self.means, (m, 1)), 0, few, "means of the layers")
        gram = min(n, d) * n * d + min(n, d) ** 3
        self.add("P0''", self._spectral, gram, few, "ridge on spectral statistics of X_0")

    def operator(self, name: str, predicted: Array, trained: Array) -> None:
        """One of P1 to P5 as it is, and with a slope and an intercept for each layer.

        trained [few, layers]: what it predicts of the calibration inputs.
        """
        fitted = self.few if "FFN" in name else 0
        self.add(name, predicted, None, fitted, "as the theory gives it, not fitted")
        if not np.isfinite(trained).all():
            return
        known = self.calibration.change[: self.few]
        centred = trained - trained.mean(0)
        spread = np.square(centred).sum(0)
        slope = (centred * known).sum(0) / np.where(spread > 0, spread, np.inf)
        line = self.means + slope * (predicted - trained.mean(0))
        note = "with a slope and an intercept a layer from calibration"
        self.add(f"{name}, calibrated", line, None, self.few, note)

    def cheap(self, known: Known, first_layers: int) -> None:
        """P0''', each P6 and each P7, fitted on `known`; first_layers: of P7's landmarks."""
        start = StartFeatures.fit(known.recording.start)
        self._kernel("P0'''", known, start, start.cost(), "kernel ridge on features of X_0")
        fixed = LinearState.fit(known.recording)
        note = "one affine operator a layer from X_0, refitted on propagated states"
        predicted = fixed.predict(self.held.start)
        self.add(f"P6{known.label}", predicted, fixed.cost(), len(known.recording), note)
        lifted = LiftedState.fit(known.recording, int(self.model.cls), seed=self.seed)
        note = (
            f"one affine operator a layer on X_0's tokens lifted by {FUNCTIONS} fixed random "
            "functions"
        )
        predicted = lifted.predict(self.held.start)
        name = f"P6 lifted{known.label}"
        self.add(name, predicted, lifted.cost(), len(known.recording), note)

        def propagated(X: Tensor) -> list[Block]:
            return [Block(lifted.logs(X))]

        note += ", its propagated energies read by kernel ridge"
        self._kernel("P6 lifted, kernel reading", known, propagated, lifted.cost(), note)

        def both(X: Tensor) -> list[Block]:
            return [Block(fixed.logs(X), ENERGY_WEIGHT), *start(X)]

        note = "P6 with a kernel correction on X_0's features and P6's energies"
        self._kernel("P7 kernel", known, both, fixed.cost() + start.cost(), note)
        recording = known.recording
        self._landmarks(
            "P7 landmarks", known, lambda: Landmarks.fit(self.model, recording, first_layers)
        )
        self._landmarks(
            "P7 landmarks, reduced FFN", known, lambda: ReducedLandmarks.fit(self.model, recording)
        )

    def _landmarks(
        self, name: str, known: Known, fit: Callable[[], Landmarks | ReducedLandmarks]
    ) -> None:
        """P7 with landmark tokens; skipped, with the reason, where it does not apply."""
        try:
            found = fit()
        except InputError as error:
            self._skipped[f"{name}{known.label}"] = str(error)
            return
        self._kernel(name, known, found.features, found.cost(), found.words())

    def _kernel(self, name: str, known: Known, features: Features, cost: int, note: str) -> None:
        blocks = known.blocks(features)
        predicted = kernel_ridge(blocks, known.changes, features(self.held.start), known.sources)
        cost += kernel_cost(blocks, len(blocks[0].values), predicted.shape[1])
        fitted = len(known.recording)
        self.add(f"{name}{known.label}", predicted, cost, fitted, note, known.number)

    def result(self, settings: dict[str, Any]) -> LadderResult:
        """The ladder as climbed so far."""
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
