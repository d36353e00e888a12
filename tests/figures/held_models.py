"""The CSVs of the figures of models against their weights and streams, of records against them."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import t as student

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training import TrainedModel, new_model
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.study.answers import decide, holm, values
from oversmoothing.experiments.study.protocol import protocol
from oversmoothing.experiments.study.readings import PUBLISHED
from oversmoothing.experiments.study.study_runs import ROWS, known, read_rows
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.figures import (
    ladder,
    loops,
    metrics_by_layer,
    norm_signs,
    table_1,
    tables_2_3,
)
from oversmoothing.paper_figures.models_shown import (
    CORRUPTION,
    DATA_EFFICIENCY,
    LABEL,
    digits_models,
)
from tests.figures.held import holds, metrics_of, near, same

ROOT = Path(__file__).resolve().parents[2]
METRICS = ("log_hfc_lfc", "cos_mean", "cos_min", "effective_rank")


def record_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "experiments" / name).read_text("utf-8"))
    return found


@torch.no_grad()
def streams(found: TrainedModel, images: int | None) -> list[np.ndarray]:
    """The streams [m, n, d] in front of layer 1 and behind each."""
    stream: list[torch.Tensor] = []
    found.model(digits().validation.pixels[:images], stream)
    return [X.double().numpy() for X in stream]


def interval(values: np.ndarray, fewest: int = 5) -> np.ndarray:
    """Mean and the ends of its 95 % interval, by Student's t; below `fewest` there is none."""
    m = len(values)
    if m < fewest:
        return np.array([values.mean(), np.nan, np.nan])
    reach = student.ppf(0.975, m - 1) * values.std(ddof=1) / m**0.5
    return values.mean() + np.array([0.0, -reach, reach])


def held_to_streams(part: pd.DataFrame, kept: list[np.ndarray]) -> None:
    """Means, intervals and percentiles over images of the metrics; the change over the model."""
    assert part["layer"].tolist() == list(range(len(kept)))
    found = [metrics_of(X) for X in kept]
    for name in METRICS:
        if name not in part:
            continue
        for (_, row), own in zip(part.iterrows(), found, strict=True):
            values = own[name]
            # Float32 streams, whose metrics keep 1e-5 of themselves; ends of an interval less.
            near([row[f"{name}{end}"] for end in ("", "_low", "_high")], interval(values),
                 rel=1e-3, abs=1e-4)  # fmt: skip
            if f"{name}_p05" in row:
                ends = np.percentile(values, [5, 95]) if len(values) >= 5 else [np.nan] * 2
                near([row[f"{name}_p05"], row[f"{name}_p95"]], ends, rel=1e-3, abs=1e-4)
    moved = interval(found[-1]["log_hfc_lfc"] - found[0]["log_hfc_lfc"])
    for end, value in zip(("", "_low", "_high"), moved, strict=True):
        near(part[f"change{end}"], value, rel=1e-3, abs=1e-4)


@holds("metrics_by_layer")
def check_metrics_by_layer(csv: pd.DataFrame, context: Context) -> None:
    models = digits_models(context)
    labels = {f"{label}, digits": name for name, label in LABEL.items()}
    assert set(csv["model"]) == set(labels)
    for label, part in csv.groupby("model", sort=False):
        name = labels[str(label)]
        kept = streams(models[name], metrics_by_layer.IMAGES)
        assert set(part["variant"]) == {name} and set(part["data"]) == {"digits"}
        near(part["test_error"], error_of(models[name]))
        if name == "vit-random":
            assert part["trained"].isna().all()
        else:
            assert part["trained"].str.startswith("depth 2, width 16, 2 epochs").all()
            assert part["trained"].nunique() == 1
        n, d = kept[0].shape[1:]
        assert (part["most"] == min(n, d)).all() and (part["images"] == len(kept[0])).all()
        near(part["rank_share"], part["effective_rank"] / min(n, d))
        held_to_streams(part, kept)


def error_of(found: TrainedModel) -> float:
    """In per cent of the test images, counted by the model itself."""
    test = digits().test
    with torch.no_grad():
        right = found.model(test.inputs(slice(None))).argmax(1) == test.labels
    return 100 * (1 - float(right.double().mean()))


def turned(found: TrainedModel) -> list[float]:
    """cos(H_start, H_end) of every layer, its start drawn anew."""
    start, end = (
        each.value_projections().numpy() for each in (new_model(found.config), found.model)
    )
    return [
        float(np.vdot(H0, H) / np.linalg.norm(H0) / np.linalg.norm(H))
        for H0, H in zip(start, end, strict=True)
    ]


def by_consensus(found: TrainedModel) -> np.ndarray:
    """[layers, images]: whether the largest |1 + h a| is that of a = 1."""
    model, rows = found.model, []
    layers = zip(model.blocks(), streams(found, None), model.value_projections(), strict=False)
    for block, X, H in layers:
        A = block.heads_of(torch.from_numpy(X).float()).detach().double().numpy().mean(axis=1)
        a = np.linalg.eigvals(A / A.sum(axis=-1, keepdims=True))
        h = np.linalg.eigvals(H.numpy())
        modulus = np.abs(1 + a[..., None] * h).max(axis=-1)
        rows.append(modulus.argmax(axis=-1) == np.abs(a - 1).argmin(axis=-1))
    return np.array(rows)


@holds("norm_signs")
def check_norm_signs(csv: pd.DataFrame, context: Context) -> None:
    """What T8d proves of frozen layers, and closed forms without a norm; the record of DeiT-Ti."""
    frozen = csv[csv["kind"] == "frozen"]
    table = frozen.set_index(["draw", "placement", "sign_of_h", "gain"])["change"]
    assert table.index.is_unique and table.notna().all() and set(csv["kind"]) == {"frozen", "flip"}
    kinds = {(place, side, gain) for place in norm_signs.PLACEMENTS for side in (-1, 1)
             for gain in ((1,) if place == "none" else (1, -1))}  # fmt: skip
    assert set(table.index) == {(k, *kind) for k in range(norm_signs.DRAWS) for kind in kinds}
    known = frozen_changes(context.seed)
    for key, found in table.items():
        expected, off = known[key]
        near(found, expected, abs=off)
    deep = frozen.set_index(["draw", "placement", "sign_of_h"])["deep"].dropna()
    assert set(deep.index) == {(k, "none", 1) for k in range(norm_signs.DRAWS)}
    for (number, *_), found in deep.items():
        # Differences are rounded with the state, which they are far smaller than by then.
        near(found, known[number, "deep", 1, 1][0], abs=1e-9 + 1e-15 * np.exp(-found))
    flips = pd.DataFrame(record_of("repeated/results/flips_deit_tiny.json")["by_layer"])
    flips = flips[flips["flip"] == "gain"].drop(columns="flip")
    same(csv[csv["kind"] == "flip"], flips)


@cache
def frozen_changes(seed: int) -> dict[tuple[int, str, int, int], tuple[float, float]]:
    """(draw, placement, sign of H, gain): the change, and by how much roundings may move it."""
    known = {}
    kinds = (norm_signs.PLACEMENTS, (-1, 1), (1, -1))
    for number in range(norm_signs.DRAWS):
        rng = np.random.default_rng([seed, number])
        A = norm_signs.SymmetricPsd().draw(norm_signs.TOKENS, rng=rng)
        root = rng.standard_normal((norm_signs.WIDTH,) * 2) / norm_signs.WIDTH**0.5
        S = norm_signs.STRENGTH * (root @ root.T + 0.1 * np.eye(norm_signs.WIDTH))
        X = rng.standard_normal((norm_signs.TOKENS, norm_signs.WIDTH))
        deep = frozen_change(A, S, X, "none", 1, norm_signs.DEEP)
        known[number, "deep", 1, 1] = deep, 1e-9
        for placement, side, gain in product(*kinds):
            expected = frozen_change(A, side * S, X, placement, gain)
            # Norms multiply the roundings of two implementations, by up to 1e10: by how much here,
            # an X of other last digits shows. A layer rounds some 2 n + 2 d times, for one of X.
            noise = rng.uniform(-1, 1, (4, *X.shape)) * 2.0**-52
            moved = [frozen_change(A, side * S, X * (1 + e), placement, gain) for e in noise]
            off = 1e-9 + 100 * max(abs(each - expected) for each in moved)
            known[number, placement, side, gain] = expected, off
    return known


def frozen_change(
    A: np.ndarray, W: np.ndarray, X: np.ndarray, placement: str, gain: float,
    depth: int = norm_signs.DEPTH,
) -> float:  # fmt: skip
    """Of ln HFC/LFC, with PyTorch's LayerNorm."""
    mixing, weights, x = (torch.from_numpy(np.array(each)) for each in (A, W, X))

    def norm(each: torch.Tensor) -> torch.Tensor:
        return gain * torch.nn.functional.layer_norm(each, each.shape[-1:], eps=0.0)

    for _ in range(depth):
        if placement == "post":
            x = norm(x + mixing @ x @ weights)
        else:
            x = x + mixing @ (norm(x) if placement == "pre" else x) @ weights
    both = metrics_of(np.stack([X, x.numpy()]))["log_hfc_lfc"]
    return float(both[1] - both[0])


@holds("table_1", {
    "norm": "a setting of the readings",
    **dict.fromkeys(("percent_low", "percent_high"), "`share_interval`, tested on its own; those"
                    " of the record are the record's"),
    **dict.fromkeys(("outside_percent", "safe_interval_min", "consensus_within_unit"),
                    "of the layers' dominance, which has tests of its own; said in the caption"),
}, rows=lambda csv: (csv["reading"] == "E2") | (csv["kind"] == "asymmetry"))  # fmt: skip
def check_table_1(csv: pd.DataFrame, context: Context) -> None:
    """The paper's as typed in, DeiT-Ti's as recorded, reading E2 of ours counted anew by LAPACK."""
    assert set(csv["kind"]) == {"share", "asymmetry"}
    shares = csv[csv["kind"] == "share"]
    check_asymmetry(csv[csv["kind"] == "asymmetry"], context)
    sources = (table_1.PAPER, table_1.RECORDED, table_1.COMPUTED)
    paper, recorded, ours = (shares[shares["source"] == source] for source in sources)
    assert len(paper) + len(recorded) + len(ours) == len(shares)
    for name, pair in PUBLISHED.items():
        part = paper[paper["column"] == name]
        assert tuple(part["percent"]) == pair and set(part["reading"]) == {"paper"}
        assert part["class"].tolist() == ["consensus", "smallest"]
    same(recorded, pd.read_csv(ROOT / "experiments/study/results/readings_deit_tiny.csv")
         .drop(columns="model"))  # fmt: skip
    near(ours["percent"], 100 * ours["count"] / ours["cases"])
    # Below five images there is no interval.
    few = ours["images"] < FEWEST
    assert (ours["percent_low"].isna() == few).all()
    assert few.any() and "fewer than 5 images have none" in table_1.words(csv)
    own = ours[~few]
    assert ((own["percent_low"] <= own["percent"]) & (own["percent"] <= own["percent_high"])).all()
    assert (ours.groupby(["model", "reading"])["count"].sum()
            == ours.groupby(["model", "reading"])["cases"].first()).all()  # fmt: skip
    models, columns = digits_models(context), {"random ViT-B/16": ("random ViT-B/16", "")}
    for name, sign in (("vit", ""), ("vit+", "+"), ("vit-", "\u2212")):
        columns[f"ViT{sign}, digits"] = f"ViT-Ti{sign}", "digits"
        check_digits(ours[ours["model"] == f"ViT{sign}, digits"], name, models[name])
    assert set(ours["model"]) == set(columns)
    for (label, _), part in ours.groupby(["model", "reading"]):
        column, data = columns[str(label)]
        assert (part["column"] == column).all() and (part["data"].fillna("") == data).all()
        assert part["class"].tolist() == ["consensus", "smallest", "other", "tie"]
        for name in ("cases", "images", "layers"):
            assert part[name].nunique() == 1
    assert set(recorded["model"]) == {table_1.DEIT}
    assert set(recorded["column"]) == {"DeiT-B/16"} and set(recorded["data"]) == {"ImageNet"}
    assert (paper["model"] == paper["column"]).all()


def check_digits(part: pd.DataFrame, name: str, found: TrainedModel) -> None:
    """Reading E2 on every validation image, E1 and E4 on some; weights and error of the model."""
    assert set(part["variant"]) == {name}
    near(part["test_error"], error_of(found))
    near(part["cos_start_low"], min(turned(found)))
    near(part["cos_start_high"], max(turned(found)))
    few, part = part[part["reading"] != "E2"], part[part["reading"] == "E2"]
    assert (few["images"] == table_1.IMAGES).all() and few["h_abs_max"].isna().all()
    own = by_consensus(found)
    assert part.set_index("class")["count"]["consensus"] == own.sum()
    assert (part["cases"] == own.size).all()
    assert (part["layers"] == own.shape[0]).all() and (part["images"] == own.shape[1]).all()
    h = np.linalg.eigvals(found.model.value_projections().numpy())
    for column, value in {
        "h_real_min": h.real.min(), "h_real_max": h.real.max(), "h_abs_max": np.abs(h).max(),
        "layers_within_unit": ((h.real >= -1) & (h.real < 0)).all(axis=1).sum(),
        "layers_beyond_one": (h.real < -1).any(axis=1).sum(),
    }.items():  # fmt: skip
        near(part[column], value, rel=1e-6, abs=1e-6)


def check_asymmetry(csv: pd.DataFrame, context: Context) -> None:
    """Both ends of what the runs recorded; the start drawn again; the random value by its
    definition."""
    found = digits_models(context)["vit"]
    own = found.run.watched[found.run.watched["asymmetry"].notna()]
    own = own.assign(epoch=own["step"] / found.config.per_epoch, model="digits")
    own["cos_start"] = own["layer"].map(dict(enumerate(turned(found), 1)))
    deit = pd.read_csv(ROOT / "experiments/study/results/value_spectra_deit_tiny.csv")
    deit = deit[(deit["norm"] == "unfolded") & (deit["of"] == "whole")].assign(model=table_1.DEIT)
    ends = own[own["epoch"].isin([own["epoch"].min(), own["epoch"].max()])]
    deit = deit.assign(at_random=random_of(192))[["layer", "asymmetry", "model", "at_random"]]
    rows = [ends.assign(variant="vit", at_random=random_of(16)), deit]
    names = ["model", "variant", "layer", "epoch", "asymmetry", "at_random", "cos_start"]
    expected = pd.concat(rows, ignore_index=True).reindex(columns=names)
    order = ["model", "layer", "epoch"]
    same(csv.sort_values(order), expected.sort_values(order))
    assert (csv["source"] == table_1.COMPUTED).all()


def random_of(d: int) -> float:
    return float(((d - 1) / (d + 1)) ** 0.5)


# What the paper's tables give for a question: percentages correct, as typed in.
REPORTED = {
    "P1": 28.67 - 33.99, "P2 tenth": 32.47 - 33.99, "P2 all": 66.78 - 64.34,
    # Of accuracies lost under corruption.
    "P9": (66.62 - sum((61.62, 58.00, 53.56, 49.70, 40.07)) / 5)
    - (66.78 - sum((61.59, 57.75, 53.12, 49.32, 39.17)) / 5),
}  # fmt: skip


@holds("tables_2_3")
def check_tables_2_3(csv: pd.DataFrame, context: Context) -> None:
    """The paper's as typed in; ours from the stored rows; decisions by the rule of the study."""
    assert set(csv["table"]) == {"Table 2", "Table 3"} and csv["recorded"].isna().all()
    assert set(csv["source"]) == {tables_2_3.PAPER, "digits", "cifar100"}
    for title, accuracies, sd in (
        ("Table 2", {(v, x): right for v, row in DATA_EFFICIENCY.items()
                     for x, (right, _) in row.items()},
         {(v, x): sd for v, row in DATA_EFFICIENCY.items() for x, (_, sd) in row.items()}),
        ("Table 3", {(v, x): right for v, row in CORRUPTION.items() for x, right in enumerate(row)},
         {}),
    ):  # fmt: skip
        own = csv[csv["table"] == title]
        typed = own[own["source"] == tables_2_3.PAPER]
        assert (typed["kind"] == "error").all()
        keys = list(zip(typed["variant"], typed["x"], strict=True))
        assert set(keys) == set(accuracies) and len(keys) == len(accuracies)
        near(typed["error"], [100 - accuracies[key] for key in keys])
        near(typed["sd"], [sd.get(key, np.nan) for key in keys])
        near(typed["gap"], [accuracies["vit", x] - accuracies[v, x] for v, x in keys], abs=1e-9)
        check_ours(own, context, title)


def check_ours(csv: pd.DataFrame, context: Context, title: str) -> None:
    """Means, sd, counts and gaps paired by seed; judged rows by their own intervals."""
    rows = read_rows(context.results / "study" / ROWS)
    forms = {"vit": "ord", "vit+": "plus", "vit-": "minus"}
    for data in ("digits", "cifar100"):
        errors = csv[(csv["kind"] == "error") & (csv["source"] == data)]
        places = (1.0, 0.1) if title == "Table 2" else range(6)
        wanted = {(variant, float(x)) for variant in forms for x in places}
        assert set(zip(errors["variant"], errors["x"], strict=True)) == wanted
        assert len(errors) == len(wanted)
        depth = {"digits": "depth 6, width 64, 990 steps"}
        depth["cifar100"] = "16 x 16 pixels, depth 6, width 64, 4212 steps"
        assert set(csv.loc[csv["source"] == data, "size"]) == {depth[data]}

        def of(variant: str, x: float, data: str = data) -> np.ndarray:
            share = x if title == "Table 2" else 1.0
            name = f"{data}-{forms[variant]}" + ("" if share == 1 else f"-fraction{share:g}")
            own = sorted((r for r in rows if r["cell"] == name), key=lambda r: r["seed"])
            tell = [r["score"]["error"] if title == "Table 2" else r["corruption"][int(x)]
                    for r in own]  # fmt: skip
            return np.array(tell)

        for row in errors.itertuples():
            own, vit = of(row.variant, row.x), of("vit", row.x)
            near([row.error, row.sd, row.seeds], [own.mean(), own.std(ddof=1), len(own)], rel=1e-9)
            near([row.gap, row.gap_low, row.gap_high], interval(own - vit, fewest=2), abs=1e-9)
        chosen = protocol()
        judged = {each.name: each for each in chosen.questions}
        orders = csv[(csv["kind"] == "order") & (csv["source"] == data)]
        assert len(orders) == (3 if title == "Table 2" else 1)
        primary = [q for q in chosen.questions if q.primary]
        found = {q.name: decide(q, values(q, known(rows, chosen), chosen)[0]) for q in primary}
        levels = dict(zip(found, holm([each.p for each in found.values()]), strict=True))
        for row in orders.itertuples():
            question = judged[row.question]
            seen = values(question, known(rows, chosen), chosen)[0]
            near([row.value, row.low, row.high], interval(seen, fewest=2), abs=1e-9)
            kept = not question.primary or levels[question.name] < 0.05
            assert row.decision == (decide(question, seen).decision if kept else "open")
            assert row.says == question.says and row.seeds == len(seen)
            assert row.planned == chosen.seeds(question) and row.margin == question.margin
            share = chosen.cells[question.first][0].fraction
            assert row.x == (share if title == "Table 2" else 0)
            asked = re.sub(r",? (CIFAR-100|digits)$", "", question.name)
            near(row.paper, REPORTED[asked], abs=1e-9)


@holds("loops", rows=lambda csv: csv["kind"] == "block")
def check_loops(csv: pd.DataFrame, context: Context) -> None:
    run = record_of("repeated/results/loop_deit_tiny.json")
    blocks, scores = (csv[csv["kind"] == kind] for kind in ("block", "score"))
    same(blocks, pd.DataFrame(run["by_block"])[["block", "exponent", "collapsed", *loops.SERIES]])
    named = pd.DataFrame([{"predictor": name, **values}
                          for name, values in run["all_runs_nothing_chosen"].items()])  # fmt: skip
    same(scores, named)
    for name in ("loops", "collapsed_at"):
        assert (csv[name] == run[name]).all()


@holds("ladder", {"what": "words"})
def check_ladder(csv: pd.DataFrame, context: Context) -> None:
    rungs = pd.DataFrame(record_of("ladder/results/ladder_deit_tiny_200.json")["rungs"])
    rungs = rungs.set_index("rung").loc[list(ladder.SHOWN)].reset_index()
    same(csv, rungs[["rung", "r2", "r2_low", "r2_high", "sign", "cost_share", "calibration"]])


@holds("remedies", {
    **dict.fromkeys(("as_claimed_low", "as_claimed_high"), "Clopper and Pearson's, tested there"),
    **dict.fromkeys(("name", "paper", "our_reading", "claim", "holds_for", "remedy"), "words"),
    **dict.fromkeys(("parameters", "cost", "as_claimed"), "not of the spectrum; tested there"),
}, rows=lambda csv: np.isfinite(csv["log_shift_C"]) & csv["runs_clear"].notna())  # fmt: skip
def check_remedies(csv: pd.DataFrame, context: Context) -> None:
    """By formula and by the derivative of the module: two routes to each shift."""
    finite = np.isfinite(csv["log_shift_C"])
    for side in ("C", "Q"):
        near(csv.loc[finite, f"log_shift_{side}"], csv.loc[finite, f"measured_shift_{side}"],
             abs=1e-6)  # fmt: skip
    assert (csv["error"] < 1e-8).all() and csv["draws"].nunique() == 1
    known = csv["runs_clear"].notna()
    assert (csv["runs_right"][known] == csv["runs_clear"][known]).all()
    assert csv["name"].is_unique
