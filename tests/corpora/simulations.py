"""What simulations give: runs by every method, a sweep."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import oversmoothing
from oversmoothing import Drawn, FromState, InputError, PerLayer, Trajectory
from tests.corpora.asking import inside, json_number, printed
from tests.evolve_errors.draws import draw
from tests.support.kronecker import evolve_by

Entries = Iterator[tuple[str, Any]]
METHODS = ("auto", "plain", "core", "closed_form", "balls", "squaring", "kronecker")
ONE_LAYER, BATCHES, HEADS, MOST = 168, 8, 24, 60
# What a row of a run keeps: the rest are these, by exp or log. How far X is from rank one is kept
# where it is more than rounding leaves of HFC.
METRICS = (
    "log_hfc_lfc", "cos_mean", "cos_min", "cos_abs_mean", "cos_abs_min", "effective_rank",
    "sigma2_sigma1", "log_one_minus_cos_min",
)  # fmt: skip
OF_RANK = ("log_effective_rank_excess", "log_sigma2_sigma1")
ROUNDING = -25.0


def evolve() -> Entries:
    """Metrics and claimed errors of runs: one layer by every method, batches, many heads."""
    for k in range(ONE_LAYER):
        drawn, method = draw(32, k, MOST), METHODS[k % len(METHODS)]
        how: dict[str, Any] = {"method": method, "depth": sorted({0, 1, 2, 7, drawn.depth})}
        if k % 10 == 9:
            how["residual"] = False
        if k % 9 == 8:
            how["dtype"] = torch.float32
        W = drawn.W if drawn.factors is None else drawn.factors
        name = f"{k} {method}{' float32' * ('dtype' in how)}{' bare' * ('residual' in how)}"
        try:
            run = evolve_by(X0=drawn.X0, A=drawn.A, W=W, **how)
        except InputError:
            yield f"{name}: {drawn.kind}", {"refused": True}
        else:
            yield f"{name}: {drawn.kind}", run_of(run)
    yield from _batches()
    yield from _heads()


def _batches() -> Entries:
    """Several A beside several W: batch dimensions broadcast."""
    for k in range(BATCHES):
        rng = np.random.default_rng([32, k])
        dense = 0.6 * rng.standard_normal((3, 2, 2)) - 0.4 * np.eye(2)
        heads = rng.standard_normal((3, 2, 1)), rng.standard_normal((3, 1, 2))
        method, X0 = METHODS[k % len(METHODS)], rng.standard_normal((4, 2))
        A, W = rng.dirichlet(np.ones(4), size=(2, 1, 4)), heads if method == "core" else dense
        run = evolve_by(X0=X0, A=A, W=W, depth=[1, 5, 40], method=method)
        yield f"batch {k} {method}", run_of(run)


def _heads() -> Entries:
    """Heads fixed, given by layer, drawn by layer, or following the state; dense and factored."""
    for k in range(HEADS):
        rng = np.random.default_rng([33, k])
        n, d, heads = int(rng.integers(2, 6)), 4, int(rng.integers(1, 4))
        fixed = rng.dirichlet(np.ones(n), size=(heads, n))
        layers = [rng.dirichlet(np.ones(n), size=(heads, n)) for _ in range(12)]
        attention = (
            fixed,
            PerLayer(layers),
            Drawn(lambda g, n=n, h=heads: g.dirichlet(np.ones(n), size=(h, n)), seed=k),
            FromState(*rng.standard_normal((2, heads, d, 2)), causal=k % 8 == 3),
        )[k % 4]
        dense = 0.4 * rng.standard_normal((heads, d, d)) / heads
        weights: Any = dense
        if k % 3 == 1:
            weights = tuple(0.5 * rng.standard_normal(s) for s in ((heads, d, 2), (heads, 2, d)))
        if k % 3 == 2:
            weights = Drawn(lambda g, s=dense.shape: 0.3 * g.standard_normal(s), seed=k)
        run = oversmoothing.evolve_heads(
            X0=rng.standard_normal((n, d)), attention=attention, weights=weights,
            depth=[0, 1, 2, 12], residual=k % 5 != 4,
        )  # fmt: skip
        kinds = ("fixed", "by layer", "drawn", "from the state")
        yield f"heads {k} {kinds[k % 4]}", run_of(run)


def run_of(run: Trajectory) -> dict[str, Any]:
    """Method and, of each depth, the metrics and the errors that are claimed of them."""
    errors = ("error", "hfc_error", "cosine_error")
    claimed = {depth: {name: json_number(float(f"{getattr(run, name)[k]:.2g}")) for name in errors}
               for k, depth in enumerate(run.depths)}  # fmt: skip
    rows = []
    for row in run.metrics().to_dict("records"):
        above = row["log_sigma2_sigma1"] > row["log_hfc_lfc"] + ROUNDING
        kept = {name: json_number(row[name]) for name in (*METRICS, *(OF_RANK if above else ()))}
        rows.append({"depth": row["depth"], **kept, **claimed[row["depth"]]})
    return {"method": run.method, "rows": rows}


# The example sweep over heads with fewer seeds: the points of these are the same.
SWEEP = """
[fixed]
value = "ginibre"
n = 8
d = 6
depth = 300

[axes]
heads = [1, 2, 4, 8]
scale = { from = 0.25, to = 4.0, steps = 9, scale = "log" }
seed = { from = 0, to = 2, steps = 3 }
"""


def sweep() -> Entries:
    """The table of a sweep over heads, point by point."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        Path("heads.toml").write_text(SWEEP)
        printed("sweep", "heads.toml", "--out", ".")
        table = pd.read_parquet(next(Path().rglob("sweep.parquet")))
    for row in table.to_dict("records"):
        found = {k: json_number(v) if isinstance(v, float) else v for k, v in row.items()}
        del found["point"]
        yield f"{row['heads']} heads, scale {row['scale']:.3g}, seed {row['seed']}", found
