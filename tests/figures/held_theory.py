"""The CSVs of the theory's figures against the theory, by NumPy alone where that is enough."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.figures import (
    costs,
    lambda_plane,
    metrics_against_depth,
    regions,
    rotation,
    stream_mixing,
)
from oversmoothing.simulations.engine.evolve_streams import MIXING_STREAM
from oversmoothing.simulations.engine.layers import Drawn
from oversmoothing.simulations.generators.attention import draw_mixing
from oversmoothing.simulations.sweep.store import read_table
from oversmoothing.theory.streams.streams import make_mixing
from tests.figures.held import holds, metrics_of, near, radii, run

FLOATS_END = "where floats end; the metrics have tests of their own at every scale"


@holds("metrics_against_depth", {
    **dict.fromkeys(
        ("log_one_minus_cos_mean", "log_one_minus_cos_min", "log_one_minus_cos_abs_min",
         "log_effective_rank_excess", "log_sigma2_sigma1"), FLOATS_END),
})  # fmt: skip
def check_metrics_against_depth(csv: pd.DataFrame, context: Context) -> None:
    """Iterated anew; radii by LAPACK; limits as the last layers have them."""
    for name, layer, last in metrics_against_depth.cases(context.seed):
        A, H, X0 = layer["A"], layer["H"], layer["X0"]
        part = csv[csv["case"] == name]
        assert set(part["source"]) == {"theory", "simulation"}
        depth = part["depth"].to_numpy()
        assert sorted(part[part["source"] == "theory"]["depth"]) == list(range(last + 1))
        logs, states = run(A, H, X0, last)
        near(part["log_hfc_lfc"], logs[depth], rel=1e-9, abs=1e-9)
        near(part["hfc_lfc"], np.exp(logs[depth]), rel=1e-8)
        found = metrics_of(states)
        for metric in ("cos_mean", "cos_min", "cos_abs_mean", "cos_abs_min", "effective_rank",
                     "sigma2_sigma1"):  # fmt: skip
            near(part[metric], found[metric][depth], rel=1e-7, abs=1e-8)
        consensus, rest = radii(A, H)
        near(part["rho_consensus"], consensus, rel=1e-7)
        near(part["rho_quotient"], rest, rel=1e-7)
        near(part["log_rate"], np.log(rest / consensus), abs=1e-7)
        said = "TIE" if name == "tie" else "NON_SMOOTHING"
        assert set(part["verdict"]) == {"SMOOTHING" if rest < consensus * 0.999 else said}
        once = ["log_r_sigma", "limit", "limit_rank", "cos_mean_limit"]
        assert (part[once].nunique(dropna=False) == 1).all()
        end = part[part["depth"] == last].iloc[0]
        for name, value in (("limit", "hfc_lfc"), ("cos_mean_limit", "cos_mean")):
            if np.isfinite(end[name]):
                near(end[value], end[name], rel=2e-2, abs=1e-3)


@holds("lambda_plane")
def check_lambda_plane(csv: pd.DataFrame, context: Context) -> None:
    """Spectra by LAPACK, rates by |1 + h a|, every run iterated anew."""
    for number, (panel, A) in enumerate(lambda_plane.attentions(context.seed).items()):
        part = csv[csv["panel"] == panel]
        values = np.linalg.eigvals(A)
        stationary = np.linalg.svd(A.T - np.eye(len(A)))[2][-1]
        stationary = stationary / stationary.sum()
        deviation = np.linalg.norm(stationary - 1 / len(A))
        near(part["log_floor"], -np.log(len(A) ** 0.5 * deviation), rel=1e-8)
        spectrum = part[part["kind"] == "eigenvalue"]
        rest = np.delete(values, np.argmin(np.abs(values - 1)))
        apart = np.abs((spectrum["re"] + 1j * spectrum["im"]).to_numpy()[:, None] - rest)
        assert len(spectrum) == len(rest) and max(apart.min(0).max(), apart.min(1).max()) < 1e-9
        runs = part[part["kind"] == "run"].reset_index(drop=True)
        h = (runs["re"] + 1j * runs["im"]).to_numpy()
        grid = lambda_plane.grid_of_h()
        near(np.abs(h - grid), 0.0, abs=1e-12)
        rate = np.log(np.abs(1 + np.outer(h, rest)).max(axis=1) / np.abs(1 + h))
        near(runs["log_rate"], rate, abs=1e-9)
        clear = np.abs(rate) > 1e-9
        said = np.where(rate < 0, "SMOOTHING", "NON_SMOOTHING")
        assert (runs["predicted"][clear] == said[clear]).all()
        assert (runs["measured"] == np.where(
            runs["fall"] > lambda_plane.DECAY, "SMOOTHING", "NON_SMOOTHING")).all()  # fmt: skip
        early, late = _windows(A, h, np.random.default_rng([context.seed, number]))
        near(runs["mean_log"], late, rel=1e-7, abs=1e-6)
        near(runs["fall"], early - late, rel=1e-7, abs=1e-6)


def _windows(
    A: np.ndarray, h: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Means of ln HFC/LFC over both windows, all h at once: one complex feature for a pair."""
    n, depth, window = len(A), lambda_plane.DEPTH, lambda_plane.WINDOW
    real = h.imag == 0
    first = rng.standard_normal((n, 1))[:, 0]
    pair = rng.standard_normal((n, 2))
    # X H^T for H = [[x, y], [-y, x]] is the product of X_1 + i X_2 and x - iy.
    X = np.where(real[:, None], first[None], (pair[:, 0] + 1j * pair[:, 1])[None]).astype(complex)
    mean = X.mean(axis=1)
    D = X - mean[:, None]
    scale_d, scale_m = np.zeros(len(h)), np.zeros(len(h))
    step = np.where(real, h, h.conj())
    sums = {depth // 2: np.zeros(len(h)), depth: np.zeros(len(h))}
    for layer in range(1, depth + 1):
        AD = D @ A.T
        mean = mean * (1 + step) + step * np.exp(scale_d - scale_m) * AD.mean(axis=1)
        D = D + step[:, None] * AD
        D = D - D.mean(axis=1, keepdims=True)
        size_d, size_m = np.linalg.norm(D, axis=1), np.abs(mean)
        D, mean = D / size_d[:, None], mean / size_m
        scale_d, scale_m = scale_d + np.log(size_d), scale_m + np.log(size_m)
        for end in sums:
            if end - window < layer <= end:
                sums[end] += scale_d - scale_m - np.log(n) / 2
    return sums[depth // 2] / window, sums[depth] / window


@holds("rotation")
def check_rotation(csv: pd.DataFrame, context: Context) -> None:
    """Every layer by matrices, the rate by hand."""
    A = np.array(rotation.A)
    turning = rotation.weights(rotation.LAYERS)
    assert set(csv["each_layer"]) == {"NON_SMOOTHING"} and csv["run"].nunique() == 2
    for name, layers in (("the first, repeated", turning[:1] * len(turning)), ("in turn", turning)):
        states = [np.array(rotation.X0)]
        for W in layers:
            states.append(states[-1] + A @ states[-1] @ W)
        part = csv[csv["run"] == name]
        near(part["layer"], np.arange(len(states)))
        near(part["log_hfc_lfc"], metrics_of(np.array(states))["log_hfc_lfc"], abs=1e-9)
        near(part["rate"], 0.4875**0.5 / 0.76 if name == "in turn" else np.nan)


@holds("phase_diagram")
def check_phase_diagram(csv: pd.DataFrame, context: Context) -> None:
    """Counted anew from the sweep that is stored."""
    (path,) = context.results.glob(f"sweeps/phase_diagram-{context.seed}/*.parquet")
    points = read_table(path).to_pandas()
    for place, name in (("x", "temperature"), ("y", "high"), ("panel", "asymmetry")):
        assert (csv[f"{place}_name"] == name).all()
    assert csv["points"].sum() == len(points) and not csv.duplicated(["panel", "x", "y"]).any()
    for row in csv.itertuples():
        at = (points["temperature"] == row.x) & (points["high"] == row.y)
        own = points[at & (points["asymmetry"] == row.panel)]
        assert len(own) == row.points
        for name in ("smoothing", "non_smoothing", "tie", "trivial", "undecided"):
            assert (own["verdict"] == name.upper()).sum() == getattr(row, name), name
        assert (own["status"] == "error").sum() == row.errors
        decided = row.smoothing + row.non_smoothing + row.tie
        near(row.share, row.smoothing / decided if decided else np.nan)
        near(row.slope, own["slope"].median())
        near(row.predicted, own["predicted_log_rate"].median())
        # T2: the verdict is the sign of log(rho_Q/rho_C).
        assert (own["predicted_log_rate"] < 0).sum() == row.smoothing
        ran = own[own["verdict"].isin(["SMOOTHING", "NON_SMOOTHING"]) & own["log_hfc_lfc"].notna()]
        below = ran["log_hfc_lfc"] < -0.5 * np.log(ran["n"] - 1)
        right = below == (ran["verdict"] == "SMOOTHING")
        assert (row.runs, row.agree) == (len(ran), right.sum())
        assert row.slow == row.runs - row.agree


@holds("stream_mixing")
def check_stream_mixing(csv: pd.DataFrame, context: Context) -> None:
    """Radii of the families R + t p q^T (T13a) by LAPACK, contraction by Dobrushin's tau (T13b)."""
    a = np.linalg.eigvals(stream_mixing.ATTENTION).real
    a = np.delete(a, np.argmax(a))
    cells, runs, layers = (csv[csv["kind"] == kind] for kind in ("cell", "run", "layer"))
    assert len(cells) + len(runs) + len(layers) == len(csv)
    assert set(csv.loc[csv["kind"] != "layer", "panel"]) == set(stream_mixing.PANELS)
    assert (cells.groupby(["panel", "amount"])["band"].nunique() <= 1).all()
    inside = cells[(cells["h"] >= cells["band"]) & (cells["h"] < 0)]
    assert "SMOOTHING" not in set(inside["outcome"])
    for part, cell in ((cells, True), (runs, False)):
        for row in part.itertuples():
            mixing = make_mixing(R := stream_mixing.mixing_of(row.panel, row.amount))
            pq = np.outer([float(x) for x in mixing.p], [float(x) for x in mixing.q])
            radius = [np.abs(np.linalg.eigvals(R + row.h * x * pq)).max() for x in (1.0, *a)]
            lead = np.log(radius[0] / max(radius[1:]))
            said = "SMOOTHING" if lead > 0 else "NON_SMOOTHING"
            assert row.outcome == ("TIE" if abs(lead) < 1e-9 else said)
            if not cell:
                assert row.measured == row.outcome
                # Of the second half of 300 layers; phases and powers of L move it by about 1/L.
                assert abs(row.slope + lead) < 2e-2 or (row.slope > 0 and lead < 0)
    # A cell stands in the middle of its part of the plane.
    for part, name, (low, high), number in (
        (cells, "h", stream_mixing.H_RANGE, stream_mixing.H_CELLS),
        (cells, "amount", (0.0, 1.0), stream_mixing.MIX_CELLS),
    ):
        middles = low + (high - low) * (np.arange(number) + 0.5) / number
        assert all(np.abs(middles - value).min() < 1e-9 for value in part[name])
    assert set(layers["panel"]) == {"changing", "fixed"}
    for panel, part in layers.groupby("panel"):
        near(part["depth"], np.arange(len(part)))
        near(part["log_spread"].iloc[0], 0.0, abs=1e-12)
        assert (part["log_spread"] <= part["log_bound"] + 1e-9).all()
        bounds = _contractions(str(panel) == "changing", len(part), context)
        near(part["log_bound"], bounds, abs=1e-9)
        # What it bounds is within a factor of 100 of it.
        assert (part["log_bound"] - part["log_spread"] < np.log(100)).all()


def _contractions(changing: bool, layers: int, context: Context) -> list[float]:
    """log tau(R_L ... R_1) for L = 0, 1, ... of the same drawn mixings."""
    kind, streams = "doubly-stochastic", stream_mixing.FOUR
    rule = Drawn(lambda rng: draw_mixing(kind, streams, rng=rng, temperature=0.7), context.seed)
    product, found = np.eye(streams), [0.0]
    for layer in range(layers - 1):
        product = np.asarray(rule.at(layer if changing else 0, MIXING_STREAM)) @ product
        apart = np.abs(product[:, None] - product[None]).sum(axis=2).max() / 2
        found.append(float(np.log(apart)))
    return found


@holds("costs", {"expected": "of the series; compared below"})
def check_costs(csv: pd.DataFrame, context: Context) -> None:
    """Fits and ratios computed anew; verdicts by the spectra of the same draws; what is measured is
    only positive."""
    assert set(csv["kind"]) == {"growth", "proof"} and (csv["seconds"].dropna() > 0).all()
    grown, proofs = (csv[csv["kind"] == kind] for kind in ("growth", "proof"))
    series = {each.name: each for each in costs.SERIES}
    assert set(grown["what"]) == set(series)
    for name, part in grown.groupby("what"):
        own = series[str(name)]
        assert part["size"].tolist() == list(own.sizes) and set(part["variable"]) == {own.variable}
        assert (part["expected"] == own.time).all()
        assert part["exponent_error"].nunique(dropna=False) == 1
        if (part["seconds"] > 0).all():
            slope = np.polyfit(np.log(part["size"]), np.log(part["seconds"]), 1)[0]
            near(part["exponent"], slope, abs=1e-9)
        else:
            assert part["exponent"].isna().all()
    assert set(proofs["variable"]) == {"n"} and set(proofs["size"]) == set(costs.TOKENS)
    for n, part in proofs.groupby("size"):
        seconds = part.set_index("what")["seconds"]
        assert list(seconds.index) == list(costs.YARDSTICK)
        near(part["ratio"], [seconds[w] / seconds[costs.YARDSTICK[w]] for w in part["what"]])
        consensus, rest = radii(*costs.layer(int(n), context.seed))
        said = "SMOOTHING" if consensus > rest else "NON_SMOOTHING"
        assert part["verdict"].fillna("").tolist() == [said, said, "", "", ""]


@holds("regions")
def check_regions(csv: pd.DataFrame, context: Context) -> None:
    """Bands cover the cells where something is said, and no other; checks say what it says."""
    assert set(csv["kind"]) == {"band", "point"}
    assert set(csv["claim"]) == {panel.claim for panel in regions.PANELS}
    for panel in regions.PANELS:
        part = csv[csv["claim"] == panel.claim]
        bands, points = (part[part["kind"] == kind] for kind in ("band", "point"))
        columns, rows = (np.array([float(x) for x in each]) for each in (panel.columns, panel.rows))
        half = (rows[1] - rows[0]) / 2
        holds_at, fails_at = panel.said(*np.meshgrid(columns, rows))
        for name, where in (("holds", holds_at), ("fails", fails_at & ~holds_at)):
            own, covered = bands[bands["said"] == name], np.zeros(where.shape, dtype=int)
            for band in own.itertuples():
                column = np.flatnonzero(np.abs(columns - band.x) < 1e-9)
                inside = (rows > band.low) & (rows < band.high)
                assert len(column) == 1 and inside.any()
                near([rows[inside][0] - half, rows[inside][-1] + half], [band.low, band.high],
                     abs=1e-9)  # fmt: skip
                covered[inside, column[0]] += 1
            assert (covered == where).all()
        assert set(bands["said"]) <= {"holds", "fails"} and (points["check"] == panel.check).all()
        for point in points.itertuples():
            x = [each for each in panel.columns if abs(float(each) - point.x) < 1e-9]
            y = [each for each in panel.rows if abs(float(each) - point.y) < 1e-9]
            assert x and y
            says_yes, says_no = panel.said(float(x[0]), float(y[0]))
            said = "holds" if says_yes else "fails" if says_no else "nothing said"
            assert point.said == said and point.checked in ("holds", "fails", "tie or cannot tell")
            assert said == "nothing said" or point.checked in (said, "tie or cannot tell")
