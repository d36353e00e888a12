"""The recorded studies: whole, of their protocol; what is said of them follows from the runs."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.study import study_tables
from oversmoothing.experiments.study.protocol import CORRUPTION, DATA_EFFICIENCY, STUDIES
from oversmoothing.experiments.study.study_files import RecordedStudy, recorded_study
from oversmoothing.experiments.study.study_tables import VERDICTS
from oversmoothing.theory.support.errors import InputError

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDED = ("digits", "cifar100")
# Forms whose guarantee is on the spectrum of H itself, not on a measured attention.
KEPT = ("vit+", "vit-band")


@pytest.fixture(scope="module", params=RECORDED)
def found(request: pytest.FixtureRequest) -> RecordedStudy:
    return recorded_study(request.param)


def test_every_recorded_run_is_one_of_the_protocol_each_once(found: RecordedStudy) -> None:
    wanted = {run.name: run for run in found.chosen.runs(found.chosen.studies)}
    assert found.runs["run"].is_unique and set(found.runs["run"]) <= set(wanted)
    for row in found.runs.to_dict("records"):
        own = wanted[row["run"]].config
        assert (row["variant"], row["seed"], row["depth"]) == (own.variant, own.seed, own.depth)
        assert row["fraction"] == own.fraction and row["tied"] == own.tied


def test_the_study_of_digits_is_whole() -> None:
    digits = recorded_study("digits")
    assert digits.studies == list(STUDIES)
    assert len(digits.runs) == len(digits.chosen.runs(list(STUDIES)))
    assert set(digits.judged()["verdict"]) <= set(VERDICTS) - {"no runs"}
    assert digits.made["runs"] == len(digits.runs)


def test_the_study_of_cifar_has_its_base_models_by_layer() -> None:
    cifar = recorded_study("cifar100")
    assert cifar.studies == ["data-efficiency", "corruption"]
    assert cifar.made["runs"] == len(cifar.runs) and cifar.made["protocol"] == "cifar100.toml"
    runs = cifar.runs.set_index("run")
    depth = cifar.chosen.run({}, 0).config.depth
    for seed in cifar.runs["seed"].unique():
        for variant in ("vit", "vit+", "vit-"):
            name = cifar.chosen.run({"variant": variant}, int(seed)).name
            own = cifar.streams[cifar.streams["run"] == name]
            assert own["layer"].tolist() == list(range(depth + 1)) and (own["images"] == 50).all()
            moved = own["log_hfc_lfc"].iloc[-1] - own["log_hfc_lfc"].iloc[0]
            assert own["change"].to_numpy() == pytest.approx(moved, rel=1e-6, abs=1e-7)
            # Of other images than those of the runs' table: within the spread over images.
            last = own.iloc[-1]
            for metric in ("log_hfc_lfc", "cos_mean", "effective_rank"):
                low, high = last[f"{metric}_p05"], last[f"{metric}_p95"]
                assert low < runs.loc[name, metric] < high, metric
            watched = cifar.watched[cifar.watched["run"] == name]
            assert set(watched["layer"]) == set(range(1, depth + 1))
            if variant == "vit":
                # Of a random 96 x 96 matrix sqrt(95/97), within 1/d or so.
                assert watched["asymmetry"].between(0.9, 1.1).all()
            else:
                assert (watched["asymmetry"] < 1e-6).all()


def test_what_was_measured_is_possible(found: RecordedStudy) -> None:
    runs = found.runs
    assert (
        runs["test_error"].between(0, 100).all() and runs["validation_error"].between(0, 100).all()
    )
    assert runs["cos_mean"].between(-1, 1).all() and (runs["effective_rank"] >= 1).all()
    assert (runs["asymmetry"].dropna() >= 0).all()
    for name in ("h_universal_disc", "h_positive", "outside_share", "inside_share"):
        given = runs[name].dropna()
        assert given.between(0, 1 + 1e-6).all(), name
    # An h in the disc |h + 1/2| < 1/2 has a negative real part.
    both = (runs["h_universal_disc"] + runs["h_positive"]).dropna()
    assert (both <= 1 + 1e-6).all()
    if "corrupted_error" in runs:
        scored = runs[runs["corrupted_error"].notna()]
        mean = scored[[f"error_at_{s}" for s in SEVERITIES[1:]]].mean(axis=1)
        np.testing.assert_allclose(scored["corrupted_error"], mean, rtol=1e-6)
        cost = scored["corrupted_error"] - scored["error_at_0"]
        np.testing.assert_allclose(scored["cost_of_corruption"], cost, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("variant", KEPT)
def test_a_form_keeps_H_in_its_region_at_every_logged_step(
    found: RecordedStudy, variant: str
) -> None:
    own = found.runs[(found.runs["variant"] == variant)]
    assert (own["inside_share"] == 1).all()
    assert len(own) or variant not in found.chosen.design["variants"]


def test_signs_of_H_are_those_of_the_form(found: RecordedStudy) -> None:
    runs = found.runs.set_index("run")
    minus, plus = (runs[runs["variant"] == name] for name in ("vit-", "vit+"))
    assert (minus["h_positive"] == 0).all() and (plus["h_universal_disc"] == 0).all()
    assert (pd.concat([minus, plus])["asymmetry"] < 1e-6).all()


def test_the_book_shows_each_verdict_as_the_runs_give_it(found: RecordedStudy) -> None:
    sys.path.insert(0, str(DOCS / "_extensions"))
    try:
        from study import HEADS, hypotheses, means
    finally:
        sys.path.remove(str(DOCS / "_extensions"))
    for study in found.studies:
        heads, cells = means(found, study)
        assert len(cells) == len(found.chosen.choices(study))
        assert all(
            isinstance(cell, str) and len(row) == len(heads) for row in cells for cell in row
        )
        assert not any("nan" in cell for row in cells for cell in row)
    rows = hypotheses(found)
    judged = found.judged()
    assert len(rows) == len(judged) and all(len(row) == len(HEADS) for row in rows)
    for row, (_, own) in zip(rows, judged.iterrows(), strict=True):
        assert row[-1] == own["verdict"] and row[0].startswith(f"{own['name']}: ")
        assert own["note"] in row[0]
        if own["verdict"] in ("supported", "refuted"):
            assert math.isfinite(own["low"]) and own["seeds"] >= 2


def test_one_name_is_one_hypothesis_over_the_protocols() -> None:
    asked: dict[str, tuple[object, ...]] = {}
    for data in RECORDED:
        for each in recorded_study(data).chosen.hypotheses:
            rule = (each.measure, each.first, each.second, each.less_first, each.less_second,
                    each.value, each.predicts, each.margin)  # fmt: skip
            assert asked.setdefault(each.name, rule) == rule, each.name
    assert {"D1", "D2", "D3"} < set(asked)  # asked of both
    assert len(set(map(str, asked.values()))) == len(asked)


def test_hypotheses_quote_the_paper_s_tables_as_they_are() -> None:
    """Means of Table 3 over severities 1 to 5, less or beside each other."""
    error = {name: 100 - np.array(row) for name, row in CORRUPTION.items()}
    mean = {name: float(row[1:].mean()) for name, row in error.items()}
    cost = {name: mean[name] - float(row[0]) for name, row in error.items()}
    says = {(d, h.name): h.says for d in RECORDED for h in recorded_study(d).chosen.hypotheses}
    quoted = {
        ("digits", "C1"): f"Table 3: {mean['vit'] - mean['vit-']:.2f} points",
        ("digits", "C2"): f"Table 3: {mean['vit+'] - mean['vit']:.2f} points",
        ("cifar100", "C4"): f"severities: {cost['vit-']:.2f} against {cost['vit']:.2f} points",
        ("cifar100", "C5"): f"Table 3: {error['vit-'][5]:.2f} against {error['vit'][5]:.2f} %",
        ("cifar100", "C6"): f"Table 3: {error['vit+'][5]:.2f} against {error['vit'][5]:.2f} %",
    }
    for key, words in quoted.items():
        assert words.replace(" 0.", " .") in says[key], key
    two = {name: {x: 100 - y for x, (y, _) in row.items()} for name, row in DATA_EFFICIENCY.items()}
    for name, first, fraction in (("D1", "vit-", 0.1), ("D2", "vit+", 0.1), ("D6", "vit+", 1.0),
                                  ("D7", "vit-", 1.0)):  # fmt: skip
        words = f"{two[first][fraction]:.2f} against {two['vit'][fraction]:.2f} %"
        assert words in says["cifar100", name], name


def test_what_free_H_are_said_to_do_is_withdrawn_and_their_start_stands_beside_them() -> None:
    """The recorded free H had not left their random start: S1 to S4 say nothing of training."""
    digits = recorded_study("digits")
    judged = digits.judged().set_index("name")
    withdrawn = judged[judged["verdict"] == "withdrawn"]
    assert withdrawn.index.tolist() == ["S1", "S2", "S3", "S4"]
    assert withdrawn["note"].str.startswith("Withdrawn 2026-11-24: ").all()
    assert np.isfinite(withdrawn[["difference", "low", "high"]]).all(axis=None)
    known = digits.runs[digits.runs["cos_start"].notna()].set_index("run")
    base = [digits.chosen.run({}, seed).name for seed in digits.chosen.seeds]
    # Independent H would stand at 0 with a standard deviation of 1/64.
    assert known.loc[base, "cos_start"].between(0.84, 0.90).all()
    assert known.loc[base, "h_universal_disc"].between(0.40, 0.45).all()
    shown = study_tables.shown("spectrum", digits.table("spectrum")).set_index("what")
    assert shown.loc["vit", "cos(H_start, H_end)"].startswith("0.8")
    cifar = recorded_study("cifar100")
    cells = study_tables.shown("data-efficiency", cifar.table("data-efficiency"))
    assert set(cells["cos(H_start, H_end)"]) == {"end not recorded"}


def test_another_data_set_has_no_record() -> None:
    with pytest.raises(InputError, match="no study of 'cifar10' is recorded, but of digits"):
        recorded_study("cifar10")


def test_differences_are_of_one_seed_and_from_the_plain_model_of_the_same_kind() -> None:
    digits = recorded_study("digits")
    table = digits.table("depth").set_index("what")
    assert table.loc["vit-band, depth 32", "against"] == "vit, depth 32"
    assert table.loc["vit, depth 32", "against"] == "vit" and table.loc["vit", "against"] == ""
    by_run = digits.runs.set_index("run")["test_error"]
    pairs = [
        [
            by_run[digits.chosen.run({"variant": v, "depth": 32}, s).name]
            for v in ("vit-band", "vit")
        ]
        for s in (0, 1, 2)
    ]
    less = [a - b for a, b in pairs]
    row = table.loc["vit-band, depth 32"]
    assert row["test_error_less"] == pytest.approx(np.mean(less))
    # 4.3027: the 97.5 % point of Student's t with 2 degrees of freedom.
    reach = 4.302653 * np.std(less, ddof=1) / 3**0.5
    assert row["test_error_high"] - row["test_error_less"] == pytest.approx(reach, rel=1e-6)
    cure = digits.table("remedies").set_index("what").loc["vit, remedy layerscale"]
    assert cure["against"] == "vit" and cure["log_hfc_lfc_low"] > 0
