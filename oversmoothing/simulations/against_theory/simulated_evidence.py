"""Simulated evidence for claims of the theory: the torch iteration against the predictions.

theory/ states the claims and knows no torch; SIMULATED is what only a simulation can add to them.
torch and the generators are imported when one of these runs: the ledger is listed, and most claims
are asked, without.
"""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from oversmoothing.theory.depth.closed_form import closed_form
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.proofs.claim import Effort, Evidence
from oversmoothing.theory.proofs.evidence import Certified, Measurement, Settled, Simulated
from oversmoothing.theory.proofs.ledger import Ledger, claims
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, eigenvalues
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.stages import float_stage
from oversmoothing.theory.verdict.verdict import verdict

if TYPE_CHECKING:
    import pandas as pd


def _iterated(**case: Any) -> "pd.DataFrame":
    """The metrics of the plain iteration, a row for each depth."""
    from oversmoothing.simulations.engine.evolve import evolve

    return evolve(**case, method="plain").metrics()


def _cases(seed: int, eigenvalues: list[float], number: int) -> Iterator[tuple[str, Any]]:
    """Their names, and A, H and X_0 of each by name."""
    from oversmoothing.simulations.generators.attention import SymmetricPsd
    from oversmoothing.simulations.generators.value_projection import chosen_spectrum

    for k in range(number):
        rng = np.random.default_rng([2401, 4301, seed + k])
        A = SymmetricPsd().draw(6, rng=rng)
        H = chosen_spectrum(len(eigenvalues), rng=rng, eigenvalues=eigenvalues)
        yield f"case {k}", {"A": A, "H": H, "X0": rng.standard_normal((6, len(eigenvalues)))}


def smoothing(effort: Effort) -> Iterator[Measurement]:
    """T4a: h in {0.6, 0.2}; HFC/LFC against the closed form, cosines and rank at layer 300."""
    for name, case in _cases(effort.seed, [0.6, 0.2], 3):
        table = _iterated(**case, depth=[300, 600])
        states = closed_form(**case, depths=[300, 600])
        for seen, state in zip(table["log_hfc_lfc"], states, strict=True):
            # Each layer rounds once; the sum of 600 roundings stays below this.
            what = f"log HFC/LFC at layer {state.depth}, {name}"
            yield Measurement(what, state.log_hfc_lfc, float(seen), 1e-9)
        last = table.iloc[-1]
        yield Measurement(f"minimum cosine, {name}", 1.0, float(last["cos_min"]), 1e-12)
        yield Measurement(f"effective rank, {name}", 1.0, float(last["effective_rank"]), 1e-12)


def non_smoothing(effort: Effort) -> Iterator[Measurement]:
    """T4b: h in {-0.9, -0.4}; limits of HFC/LFC, of the minimum cosine and of the rank."""
    for name, case in _cases(effort.seed, [-0.9, -0.4], 3):
        answer = verdict(**case)
        last, limit = _iterated(**case, depth=4000).iloc[-1], answer.limit
        if limit is None or not math.isfinite(limit):
            raise AssertionError(f"{name} has no finite limit: {answer.reason}")
        yield Measurement(f"HFC/LFC, {name}", limit, float(last["hfc_lfc"]), 1e-6 * limit)
        yield Measurement(f"minimum cosine, {name}", -1.0, float(last["cos_min"]), 1e-9)
        yield Measurement(f"effective rank, {name}", 1.0, float(last["effective_rank"]), 1e-6)


def rate(effort: Effort) -> Iterator[Measurement]:
    """T5a: the slope of log HFC/LFC between layers 2000 and 4000 against log r."""
    for name, case in _cases(effort.seed, [0.5, 0.3, -0.2], 4):
        a, h = attention_spectrum(case["A"]), eigenvalues(case["H"])
        predicted = math.log(np.abs(1 + np.outer(a, h)).max() / np.abs(1 + h).max())
        logs = _iterated(**case, depth=[2000, 4000])["log_hfc_lfc"]
        slope = float(logs.iloc[-1] - logs.iloc[-2]) / 2000
        yield Measurement(f"log rate per layer, {name}", predicted, slope, 1e-6)


def a_million_layers(effort: Effort) -> list[Measurement]:
    """T11.5: h = 1, a = 1/2, X_0 = (1, 2): -log 3 + L log(3/4), without overflow."""
    layers = 200_000
    A = [[0.75, 0.25], [0.25, 0.75]]
    table = _iterated(X0=[[1.0], [2.0]], A=A, H=[[1.0]], depth=layers)
    exact = -math.log(3) + layers * math.log(0.75)
    measured = float(table["log_hfc_lfc"].iloc[-1])
    return [Measurement(f"log HFC/LFC after {layers} layers", exact, measured, 1e-9 * -exact)]


def drift(effort: Effort) -> list[Measurement]:
    """T11.9: (Y, c) in float32 follows the closed form where X itself has saturated near eps."""
    import torch

    _, case = next(_cases(effort.seed, [0.6, 0.2], 1))
    table = _iterated(**case, depth=2000, dtype=torch.float32)
    state = closed_form(**case, depths=[2000])[0]
    measured = float(table["log_hfc_lfc"].iloc[-1])
    # 2000 layers, each with a relative error of a few eps in float32.
    tolerance = 2000 * 16 * float(torch.finfo(torch.float32).eps)
    return [Measurement("log HFC/LFC at layer 2000", state.log_hfc_lfc, measured, tolerance)]


def contractions_at_real_size(effort: Effort) -> Settled:
    """T3c at n = 197, d = 64: H = -(I - K)/2 with ||K||_2 < 1 is certified NON_SMOOTHING."""

    def make(rng: np.random.Generator, d: int) -> np.ndarray:
        K = rng.standard_normal((d, d))
        return -(np.eye(d) - 0.9 * K / np.linalg.norm(K, 2)) / 2

    return _non_smoothing(effort, make)


def negative_spectra_at_real_size(effort: Effort) -> Settled:
    """T3d at n = 197, d = 64: symmetric H with spectrum in [-0.95, -0.05]."""
    from oversmoothing.simulations.generators.value_projection import chosen_spectrum

    def make(rng: np.random.Generator, d: int) -> np.ndarray:
        return chosen_spectrum(d, rng=rng, eigenvalues=list(rng.uniform(-0.95, -0.05, d)))

    return _non_smoothing(effort, make)


def _non_smoothing(
    effort: Effort, make: Callable[[np.random.Generator, int], np.ndarray]
) -> Settled:
    from oversmoothing.simulations.generators.attention import Softmax

    for k, temperature in enumerate((0.3, 1.0, 3.0)):
        rng = np.random.default_rng([197, 64, effort.seed, k])
        A = Softmax(temperature=temperature).draw(197, rng=rng)
        dominance = float_stage(Layer.of(A, make(rng, 64)))
        if dominance.verdict == Outcome.UNDECIDED:
            yield False
        elif dominance.verdict == Outcome.NON_SMOOTHING:
            yield True
        else:
            yield f"seed {effort.seed}, case {k}: {dominance.reason}"


SIMULATED: dict[str, tuple[Evidence, ...]] = {
    "T3c": (Certified("contractions at n = 197, d = 64", contractions_at_real_size),),
    "T3d": (Certified("negative spectra at n = 197, d = 64", negative_spectra_at_real_size),),
    "T4a": (Simulated("torch iteration: ratio, cosines, rank", smoothing),),
    "T4b": (Simulated("torch iteration: limits of ratio, cosines, rank", non_smoothing),),
    "T5a": (Simulated("torch iteration: rate of HFC/LFC", rate),),
    "T11.5": (Simulated("torch iteration of many layers", a_million_layers),),
    "T11.9": (Simulated("torch iteration in float32", drift),),
}


def whole_ledger() -> Ledger:
    """Every claim, with the evidence that simulations add; workers make it anew."""
    return Ledger(claims(), extra=SIMULATED)
