"""Simulated evidence for claims of the theory: the torch iteration against the predictions.

theory/ states the claims and knows no torch; SIMULATED is what only a simulation can add to them.
torch and the generators are imported when one of these runs: the ledger is listed, and most claims
are asked, without.
"""

import math
from collections.abc import Callable
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


def _case(seed: int, eigenvalues: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from oversmoothing.simulations.generators.attention import SymmetricPsd
    from oversmoothing.simulations.generators.value_projection import chosen_spectrum

    rng = np.random.default_rng([2401, 4301, seed])
    A = SymmetricPsd().draw(6, rng=rng)
    H = chosen_spectrum(len(eigenvalues), rng=rng, eigenvalues=eigenvalues)
    return A, H, rng.standard_normal((6, len(eigenvalues)))


def smoothing(effort: Effort) -> list[Measurement]:
    """T4a: h in {0.6, 0.2}; HFC/LFC against the closed form, cosines and rank at layer 300."""
    rows = []
    for k in range(3):
        A, H, X0 = _case(effort.seed + k, [0.6, 0.2])
        table = _iterated(X0=X0, A=A, H=H, depth=[300, 600])
        states = closed_form(A=A, H=H, X0=X0, depths=[300, 600])
        for measured, state in zip(table["log_hfc_lfc"], states, strict=True):
            # Each layer rounds once; the sum of 600 roundings stays below this.
            what = f"log HFC/LFC at layer {state.depth}, case {k}"
            rows.append(Measurement(what, state.log_hfc_lfc, float(measured), 1e-9))
        last = table.iloc[-1]
        rows.append(Measurement(f"minimum cosine, case {k}", 1.0, float(last["cos_min"]), 1e-12))
        rows.append(
            Measurement(f"effective rank, case {k}", 1.0, float(last["effective_rank"]), 1e-12)
        )
    return rows


def non_smoothing(effort: Effort) -> list[Measurement]:
    """T4b: h in {-0.9, -0.4}; limits of HFC/LFC, of the minimum cosine and of the rank."""
    rows = []
    for k in range(3):
        A, H, X0 = _case(effort.seed + k, [-0.9, -0.4])
        answer = verdict(A=A, H=H, X0=X0)
        last = _iterated(X0=X0, A=A, H=H, depth=4000).iloc[-1]
        if answer.limit is None or not math.isfinite(answer.limit):
            raise AssertionError(f"case {k} has no finite limit: {answer.reason}")
        limit = answer.limit
        rows.append(Measurement(f"HFC/LFC, case {k}", limit, float(last["hfc_lfc"]), 1e-6 * limit))
        rows.append(Measurement(f"minimum cosine, case {k}", -1.0, float(last["cos_min"]), 1e-9))
        rows.append(
            Measurement(f"effective rank, case {k}", 1.0, float(last["effective_rank"]), 1e-6)
        )
    return rows


def rate(effort: Effort) -> list[Measurement]:
    """T5a: the slope of log HFC/LFC between layers 2000 and 4000 against log r."""
    rows = []
    for k in range(4):
        A, H, X0 = _case(effort.seed + k, [0.5, 0.3, -0.2])
        a, h = attention_spectrum(A).values, eigenvalues(H).values
        predicted = math.log(np.abs(1 + np.outer(a, h)).max() / np.abs(1 + h).max())
        logs = _iterated(X0=X0, A=A, H=H, depth=[2000, 4000])["log_hfc_lfc"]
        slope = float(logs.iloc[-1] - logs.iloc[-2]) / 2000
        rows.append(Measurement(f"log rate per layer, case {k}", predicted, slope, 1e-6))
    return rows


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

    A, H, X0 = _case(effort.seed, [0.6, 0.2])
    table = _iterated(X0=X0, A=A, H=H, depth=2000, dtype=torch.float32)
    state = closed_form(A=A, H=H, X0=X0, depths=[2000])[0]
    measured = float(table["log_hfc_lfc"].iloc[-1])
    # 2000 layers, each with a relative error of a few eps in float32.
    tolerance = 2000 * 16 * float(torch.finfo(torch.float32).eps)
    return [Measurement("log HFC/LFC at layer 2000", state.log_hfc_lfc, measured, tolerance)]


def contractions_at_real_size(effort: Effort) -> Settled:
    """T3c at n = 197, d = 64: H = -(I - K)/2 with ||K||_2 < 1 is certified NON_SMOOTHING."""
    return _certify_all(effort, _contraction, Outcome.NON_SMOOTHING)


def negative_spectra_at_real_size(effort: Effort) -> Settled:
    """T3d at n = 197, d = 64: symmetric H with spectrum in [-0.95, -0.05]."""
    from oversmoothing.simulations.generators.value_projection import chosen_spectrum

    return _certify_all(
        effort,
        lambda rng, d: chosen_spectrum(
            d, rng=rng, eigenvalues=list(rng.uniform(-0.95, -0.05, d)), basis="orthogonal"
        ),
        Outcome.NON_SMOOTHING,
    )


def _contraction(rng: np.random.Generator, d: int) -> np.ndarray:
    K = rng.standard_normal((d, d))
    return -(np.eye(d) - 0.9 * K / np.linalg.norm(K, 2)) / 2


def _certify_all(
    effort: Effort, make: Callable[[np.random.Generator, int], np.ndarray], expected: Outcome
) -> Settled:
    from oversmoothing.simulations.generators.attention import Softmax

    for k, temperature in enumerate((0.3, 1.0, 3.0)):
        rng = np.random.default_rng([197, 64, effort.seed, k])
        A = Softmax(temperature=temperature).draw(197, rng=rng)
        dominance = float_stage(Layer.of(A, make(rng, 64)))
        if dominance.verdict == Outcome.UNDECIDED:
            yield False
        elif dominance.verdict == expected:
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
