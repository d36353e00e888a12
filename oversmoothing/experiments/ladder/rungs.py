"""The rungs one by one: what each is fitted on, what it costs, and its score on held-out inputs."""

from collections.abc import Callable
from functools import partial

import numpy as np
from torch import Tensor

from oversmoothing.experiments.ladder.features import (
    StartFeatures,
    singular_value_cost,
    spectral_statistics,
)
from oversmoothing.experiments.ladder.landmarks import Landmarks
from oversmoothing.experiments.ladder.lifted_state import FUNCTIONS, lifted_state
from oversmoothing.experiments.ladder.linear_state import linear_state
from oversmoothing.experiments.ladder.recording import Recording
from oversmoothing.experiments.ladder.reduced_landmarks import ReducedLandmarks
from oversmoothing.experiments.ladder.regression import Block, kernel_cost, kernel_ridge, ridge
from oversmoothing.experiments.ladder.result import Rung
from oversmoothing.experiments.ladder.scores import score
from oversmoothing.experiments.models.model import Model
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

ENERGY_WEIGHT = 2.0  # of P6's energies beside the features of X_0


class Climb:
    """Collects the rungs of one ladder, and why others are skipped. few: calibration inputs of P0
    to P5."""

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
        fitted = ridge(spectral_statistics(self.known.start), self.known.change)
        self._spectral = fitted(spectral_statistics(start))
        self.add("P0", np.zeros(held.change.shape), 0, 0, "no change")
        self.add("P0'", np.tile(self.means, (len(held), 1)), 0, few, "means of the layers")
        gram = singular_value_cost(*start.shape[1:])
        self.add("P0''", self._spectral, gram, few, "ridge on spectral statistics of X_0")

    def add(
        self, name: str, predicted: Array, cost: int | None, fitted: int, note: str, copies: int = 0
    ) -> None:
        """Score one rung; one that is not finite is left out, and why."""
        if not np.isfinite(predicted).all():
            self.skipped[name] = "its predictions are not finite"
            return
        found = score(self.held.change, predicted, self.means, self._spectral, seed=self.seed)
        self.rungs.append(Rung(name, predicted, cost, fitted, copies, note, found))

    def operator(self, name: str, predicted: Array, trained: Array) -> None:
        """One of P1 to P5 as it is, and with a slope and an intercept for each layer.

        trained [few, layers]: what it predicts of the calibration inputs.
        """
        fitted = self.few if "FFN" in name else 0
        self.add(name, predicted, None, fitted, "as the theory gives it, not fitted")
        if not np.isfinite(trained).all():
            return
        centred = trained - trained.mean(0)
        spread = np.square(centred).sum(0)
        slope = (centred * self.known.change).sum(0) / np.where(spread > 0, spread, np.inf)
        line = self.means + slope * (predicted - trained.mean(0))
        note = "with a slope and an intercept a layer from calibration"
        self.add(f"{name}, calibrated", line, None, self.few, note)

    def cheap(self, known: Recording, everything: Recording, label: str, first_layers: int) -> None:
        """P0''', each P6 and each P7, fitted on `known`, by kernels on `everything`: the same and
        altered copies below; first_layers: of P7's landmarks."""
        number = len(known)
        # Which input each row of `everything` is, or is a copy of.
        sources = np.arange(len(everything)) % number

        def kernel(
            name: str, features: Callable[[Tensor], list[Block]], cost: int, note: str
        ) -> None:
            blocks, targets = features(everything.start), features(self.held.start)
            predicted = kernel_ridge(blocks, everything.change, targets, sources)
            cost += kernel_cost(blocks, len(everything), predicted.shape[1])
            copies = len(everything) // number - 1
            self.add(f"{name}{label}", predicted, cost, number, note, copies)

        start = StartFeatures.fit(known.start)
        kernel("P0'''", start, start.cost(), "kernel ridge on features of X_0")
        fixed = linear_state(known)
        lifted = lifted_state(known, int(self.model.cls), seed=self.seed)
        note = (
            f"one affine operator a layer on X_0's tokens lifted by {FUNCTIONS} fixed random "
            "functions"
        )
        for name, state, words in (
            ("P6", fixed, "one affine operator a layer from X_0, refitted on propagated states"),
            ("P6 lifted", lifted, note),
        ):
            self.add(name + label, state.predict(self.held.start), state.cost(), number, words)
        kernel(
            "P6 lifted, kernel reading", lambda X: [Block(lifted.logs(X))], lifted.cost(),
            f"{note}, its propagated energies read by kernel ridge",
        )  # fmt: skip
        kernel(
            "P7 kernel", lambda X: [Block(fixed.logs(X), ENERGY_WEIGHT), *start(X)],
            fixed.cost() + start.cost(),
            "P6 with a kernel correction on X_0's features and P6's energies",
        )  # fmt: skip
        fits: dict[str, Callable[[Model, Recording], Landmarks]] = {
            "P7 landmarks": partial(Landmarks.fit, first_layers=first_layers),
            "P7 landmarks, reduced FFN": ReducedLandmarks.fit,
        }
        for name, fit in fits.items():
            try:
                found = fit(self.model, known)
            except InputError as error:  # where it does not apply
                self.skipped[f"{name}{label}"] = str(error)
            else:
                kernel(name, found.features, found.cost(), found.words())
