"""What proofs cost: processor seconds of a verdict, its certificate, its check, an enclosure.

A verdict and its certificate are of one drawn A [n, n] (softmax) and H [d, d] (Gaussian); an
enclosure is of the metrics in front of and behind one block of an untrained ViT on a drawn stream
[n, d], and its yardstick the same in floats. All of one size run in turn, in one process, on one
thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from oversmoothing.experiments.enclosures.enclosing import enclosed
from oversmoothing.experiments.enclosures.network import network_of
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.study.table1_models import untrained_vit
from oversmoothing.experiments.threads import one_thread
from oversmoothing.paper_figures.costs.timing import interleaved_medians
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.simulations.state_metrics import stream_metrics
from oversmoothing.theory.certificate import make_certificate
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.support.files import to_json
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.verdict import given_layer, verdict

# What is varied, the other size at FIXED.
SIZES = {"n": (8, 16, 32, 64, 128), "d": (8, 16, 32, 64, 128)}
FIXED = 16
# What is timed, and what its seconds are divided by.
YARDSTICK = {
    "verdict": "verdict",
    "certify": "verdict",
    "check": "verdict",
    "forward": "forward",
    "enclose": "forward",
}
REPEATS, ONCE_FROM = 3, 100


def layer(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """A [n, n] and H [d, d] of a size, the same for the same seed."""
    rng = np.random.default_rng([seed, n, d])
    return Softmax().draw(n, rng=rng), rng.standard_normal((d, d)) / (2 * d**0.5)


def measure(seed: int = 0, progress: bool = False) -> pd.DataFrame:
    """One row a size and kind of answer; some 15 s of a core.

    Columns: variable ('n' or 'd'), n, d, what (of `YARDSTICK`), seconds (processor time: median of
    REPEATS, one run at sizes from ONCE_FROM on), ratio (to its yardstick's), verdict (as it and the
    certificate say; '' for the others).
    """
    work = [(variable, size) for variable, sizes in SIZES.items() for size in sizes]
    with (
        one_thread(),
        tqdm(work, disable=None if progress else True, file=sys.stderr, unit="size") as bar,
    ):
        rows = [row for variable, size in bar for row in of_size(variable, size, seed)]
    return pd.DataFrame(rows)


def of_size(variable: str, size: int, seed: int) -> list[dict[str, Any]]:
    """The rows of one size."""
    n, d = (size, FIXED) if variable == "n" else (FIXED, size)
    A, H = layer(n, d, seed)
    given, _ = given_layer(A, None, H, None, None)
    certificate = make_certificate(given)
    said = {
        "verdict": str(verdict(A=A, H=H).verdict),
        "certify": certificate.body["claim"]["verdict"],
    }
    text = to_json(certificate.body)
    forward, enclose = _block(n, d, seed)
    runs: dict[str, Callable[[], object]] = {
        "verdict": lambda: verdict(A=A, H=H),
        "certify": lambda: make_certificate(given),
        "check": lambda: check_certificate(text),
        "forward": forward,
        "enclose": enclose,
    }
    repeats = REPEATS if size < ONCE_FROM else 1
    times = interleaved_medians(list(runs.values()), repeats, clock=time.process_time)
    seconds = dict(zip(runs, times, strict=True))
    return [
        {"variable": variable, "n": n, "d": d, "what": what, "seconds": seconds[what],
         "ratio": seconds[what] / seconds[of], "verdict": said.get(what, "")}
        for what, of in YARDSTICK.items()
    ]  # fmt: skip


def _block(n: int, d: int, seed: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """(the forward pass of a block with the metrics of its streams, the same enclosed)."""
    heads = max(1, d // 16)
    vit = untrained_vit(seed, width=d, depth=1, heads=heads, patch=16, side=32).double()
    model = open_model(vit, dtype=torch.float64)
    network = replace(network_of(model), patches=None, cls=False)
    X = np.random.default_rng([seed, n, d, 1]).standard_normal((n, d))
    stream = torch.from_numpy(X)[None]

    @torch.no_grad()
    def forward() -> object:
        return stream_metrics(stream), stream_metrics(vit.blocks[0](stream))

    return forward, lambda: enclosed(network, X)
