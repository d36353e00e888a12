"""Draws cases, asks every method, and prints each claimed error that was too small."""

import argparse
import collections
import math
import sys

import numpy as np
import torch

from oversmoothing.simulations.engine.evolve_heads import evolve_heads
from oversmoothing.theory.layer.attention import stationary_distribution
from oversmoothing.theory.support.errors import InputError
from tests.evolve_errors.draws import Drawn, draw
from tests.evolve_errors.oracle import Truth, truth
from tests.support.kronecker import evolve_by

METHODS = ("auto", "plain", "core", "closed_form", "squaring", "kronecker", "balls", "heads")
# A claimed error may be too small by this factor.
FACTOR = 10.0
# Iterations of many layers cost seconds a case, three times.
_LAYERS = 400


def ask(case: Drawn, method: str, dtype: torch.dtype = torch.float64):
    """The trajectory, None where the method does not apply."""
    W = case.W if case.factors is None else case.factors
    if method == "core" and case.factors is None:
        return None
    if method in ("plain", "core", "heads", "kronecker") and case.depth > _LAYERS:
        return None
    try:
        if method == "heads":
            return evolve_heads(
                X0=case.X0, attention=case.A, weights=W, depth=[case.depth], dtype=dtype
            )
        return evolve_by(X0=case.X0, A=case.A, W=W, depth=[case.depth], method=method, dtype=dtype)
    except InputError:
        return None


def faults(run, true: Truth) -> list[str]:
    """What this run says wrongly, with a claim that it is right."""
    table = run.metrics().iloc[0]
    said = []
    for name, claimed, exact in (
        ("log_hfc_lfc", run.error[0], true.log_ratio),
        ("cos_min", run.cosine_error[0], true.cos_min),
        ("cos_mean", run.cosine_error[0], true.cos_mean),
    ):
        found = float(table[name])
        if not math.isfinite(claimed) or claimed > 1.0:
            continue
        same = found == exact or (math.isnan(found) and math.isnan(exact))
        allowed = FACTOR * claimed + 1e-15 * abs(exact)
        if not same and not abs(found - exact) <= allowed:
            said.append(f"{name} {found!r}, true {exact!r}, claimed error {claimed:.1e}")
    return said


def check(seed: int, index: int, methods=METHODS) -> tuple[dict[str, list[str]], dict[str, float]]:
    """(faults, the larger claimed error) by method, for one drawn case; empty where it is open."""
    case = draw(seed, index)
    balanced = bool((stationary_distribution(case.A) == 1.0 / len(case.A)).all())
    true = truth(*case.exact, case.depth, balanced)
    wrong, claims = {}, {}
    if true is None:
        return wrong, claims
    for method in methods:
        run = ask(case, method)
        if run is None:
            continue
        claims[method] = max(run.error[0], run.cosine_error[0])
        found = faults(run, true)
        if found:
            wrong[method] = [
                f"{case.kind}, n d = {case.X0.shape}, L = {case.depth}: {f}" for f in found
            ]
    return wrong, claims


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    failed = 0
    for index in range(given.first, given.first + given.number):
        wrong, claims = check(given.seed, index)
        counts["cases"]["open" if not claims else "decided"] += 1
        for method, claim in claims.items():
            kind = "no claim" if not claim < 0.1 else ("above 1e-8" if claim > 1e-8 else "good")
            counts[method][kind] += 1
        for method, found in wrong.items():
            counts[method]["WRONG"] += 1
            for line in found:
                failed += 1
                print(f"{given.seed} {index} {method}: {line}", flush=True)
    for name, counter in counts.items():
        print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in sorted(counter.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
