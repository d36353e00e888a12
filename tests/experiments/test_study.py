"""The study: its protocol says what runs and what refutes; verdicts follow the intervals alone."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from oversmoothing import main
from oversmoothing.experiments.study import base_streams, study_runs
from oversmoothing.experiments.study.protocol import (
    CORRUPTION,
    DATA_EFFICIENCY,
    PREREGISTERED,
    STUDIES,
    Protocol,
    protocol,
)
from oversmoothing.experiments.study.study_runs import MEASURES, VERSION, cost, run_table
from oversmoothing.experiments.study.study_tables import (
    Difference,
    adjudicated,
    by_choice,
    difference,
    in_words,
    paired,
    verdict,
)
from oversmoothing.theory.support.errors import InputError

TINY = """
seeds = [0, 1]
confidence = 0.95
[base]
depth = 2
width = 8
heads = 2
patch = 4
epochs = 1
batch_size = 64
log_every = 1
probe_images = 2
[design]
variants = ["vit", "vit-band"]
tied = [false]
fractions = [1.0]
depths = [1, 2]
placements = ["pre"]
gains = ["free"]
[design.spectrum]
weight_decay = [0.0]
[design.remedies]
names = ["attnscale"]
[[hypothesis]]
name = "E1"
study = "depth"
says = "The band's H is in its region."
measure = "inside_share"
first = { variant = "vit-band", depth = 2 }
value = 0.99
predicts = "greater"
[[hypothesis]]
name = "R1"
study = "remedies"
says = "AttnScale changes the stream."
measure = "log_hfc_lfc"
first = { remedy = "attnscale" }
second = {}
predicts = "greater"
"""


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("protocol") / "tiny.toml"
    path.write_text(TINY)
    return path


# --- the protocol ---


def test_every_preregistered_hypothesis_names_runs_and_a_measure() -> None:
    chosen = protocol()
    assert {each.study for each in chosen.hypotheses} == set(STUDIES)
    for each in chosen.hypotheses:
        assert each.measure in MEASURES and each.says.endswith(".")
        names = {run.name for run in chosen.runs([each.study])}
        for choice in each.choices:
            for seed in chosen.seeds:
                assert chosen.run(choice, seed).name in names
        # It can be refuted, and it can be supported.
        far = 1e6
        ends = {
            verdict(Difference(x, x - 1, x + 1, 3), each.predicts, each.margin)
            for x in (-far, 0.0 if each.margin > 1 else -far, far)
        }
        assert "refuted" in ends
        if each.predicts != "within":
            assert "supported" in ends


def test_as_many_steps_are_made_with_less_data_and_as_many_looks() -> None:
    chosen = protocol()
    whole, tenth = (chosen.run({"fraction": f}, 0).config for f in (1.0, 0.1))
    assert whole.epochs * whole.per_epoch == 990
    assert abs(tenth.epochs * tenth.per_epoch - 990) < tenth.per_epoch
    assert whole.epochs // whole.log_every == 6 and tenth.epochs // tenth.log_every == 6


def test_a_run_of_two_studies_is_trained_once() -> None:
    chosen = protocol()
    apart = sum(len(chosen.runs([study])) for study in STUDIES)
    assert len(chosen.runs(list(STUDIES))) < apart
    base = {chosen.run({}, seed).name for seed in chosen.seeds}
    for study in STUDIES:
        assert base <= {run.name for run in chosen.runs([study])}
    # What is the base anyway is no choice.
    assert chosen.run({"variant": "vit", "depth": 8}, 0) == chosen.run({}, 0)
    assert in_words({}) == "vit" and in_words({"variant": "vit-", "tied": True}) == "vit-, tied"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('predicts = "greater"', 'predicts = "more"', "predicts one of less, greater, within"),
        ('study = "depth"', 'study = "deep"', "study is one of"),
        ('name = "R1"', 'name = "E1"', "each name once"),
        ("second = {}", "", "either second or value"),
        ("second = {}", "second = {}\nless_first = {}", "both less_first and less_second"),
        ('remedy = "attnscale"', 'remedy = "cure"', "no remedy 'cure'"),
        ("seeds = [0, 1]", "seeds = [0]", "two different seeds"),
        ("depth = 2\nwidth", "deep = 2\nwidth", "deep"),
        ('variants = ["vit"', 'variants = ["vet"', "vit-band"),
        ("[design.remedies]", "[design.cures]", "unknown key cures"),
        ("second = {}", "second = { length = 3 }", "length"),
        ("seeds", "seeds =", "is not TOML"),
    ],
)
def test_a_protocol_that_is_none_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TINY
    path = tmp_path / "own.toml"
    path.write_text(TINY.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        protocol(path)
    assert "\n" not in str(caught.value)


# --- verdicts ---


@given(
    values=st.lists(st.floats(-10, 10), min_size=2, max_size=6),
    margin=st.floats(0, 3),
    predicts=st.sampled_from(["less", "greater", "within"]),
)
@settings(max_examples=200, deadline=None)
def test_a_verdict_holds_at_every_point_of_the_interval(
    values: list[float], margin: float, predicts: str
) -> None:
    found = difference(values, 0.95)
    assert found.low <= found.mean <= found.high
    says = {
        "less": lambda x: x < margin, "greater": lambda x: x > margin,
        "within": lambda x: abs(x) < margin,
    }[predicts]  # fmt: skip
    points = [says(x) for x in np.linspace(found.low, found.high, 7)]
    answer = verdict(found, predicts, margin)
    assert (answer == "supported") <= all(points)
    assert (answer == "refuted") <= (not any(points))


def test_the_interval_is_students() -> None:
    found = difference([1.0, 2.0, 3.0], 0.95)
    # 4.3027 is the 97.5 % point of Student's t with 2 degrees of freedom; sd = 1.
    assert found.high - found.mean == pytest.approx(4.302653 / 3**0.5, rel=1e-6)
    assert difference([2.0, 2.0], 0.95) == Difference(2.0, 2.0, 2.0, 2)
    assert verdict(difference([2.0], 0.95), "greater", 0) == "open"
    assert verdict(difference([], 0.95), "greater", 0) == "no runs"
    assert verdict(difference([math.nan, 1.0], 0.95), "greater", 0) == "open"


def test_pairs_share_their_seed_and_differences_of_differences_are_taken() -> None:
    chosen = protocol()
    (d3,) = (each for each in chosen.hypotheses if each.name == "D3")
    values = {}
    for k, choice in enumerate(d3.choices):
        for seed in chosen.seeds:
            values[chosen.run(choice, seed).name] = 10.0 ** (k + 1) * (seed + 1)
    table = pd.DataFrame({"run": list(values), d3.measure: list(values.values())})
    # first - second - (less_first - less_second) = 10 - 100 - 1000 + 10000, times seed + 1.
    assert paired(d3, chosen, table) == [8910.0, 17820.0, 26730.0]
    assert paired(d3, chosen, table.iloc[1:]) == [17820.0, 26730.0]
    judged = adjudicated(chosen, ["data-efficiency"], table)
    judged = judged.set_index("name")
    # -90, -180, -270: three seeds that differ as much tell nothing.
    assert judged.loc["D1", ["difference", "verdict"]].tolist() == [-180.0, "open"]
    assert judged.loc["D5", "verdict"] == "no runs"


def test_the_papers_numbers_agree_with_each_other() -> None:
    """Table 2 with all images is Table 3 without corruption."""
    for variant, shares in DATA_EFFICIENCY.items():
        assert shares[1.0][0] == CORRUPTION[variant][0]


# --- the runs ---


def test_a_tiny_study_runs_resumes_and_is_judged(
    tiny_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = ["--protocol", str(tiny_file), "--out", str(tmp_path)]
    chosen = protocol(tiny_file)
    assert main(["study", "depth", "--dry-run", *out]) == 0
    assert "8 runs, 8 left: about" in capsys.readouterr().out
    genuine, seen = study_runs.measured, []

    def counted(run: study_runs.Run, **given: object) -> str:
        seen.append(run.name)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return genuine(run, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(study_runs, "measured", counted)
    assert main(["study", "depth", *out]) == 130
    capsys.readouterr()
    assert "8 runs, 5 left" in cost(chosen, ["depth"], tmp_path, 1)
    assert main(["study", "depth", *out]) == 0
    assert len(seen) == 9 and len(set(seen)) == 8  # the interrupted one alone came twice
    printed = capsys.readouterr().out
    assert "E1, supported: The band's H is in its region." in printed
    table = pd.read_csv(tmp_path / "study" / "depth.csv")
    assert set(table["what"]) == {"vit", "vit-band", "vit, depth 1", "vit-band, depth 1"}
    assert (table["seeds"] == 2).all() and table["test_error"].notna().all()
    assert table.set_index("what")["void_share"].notna().sum() == 2
    judged = pd.read_csv(tmp_path / "study" / "hypotheses_depth.csv")
    assert judged["verdict"].tolist() == ["supported"]
    for end in (".png", ".pdf"):
        assert (tmp_path / "study" / f"depth{end}").stat().st_size > 5000
    runs = pd.read_csv(tmp_path / "study" / "runs_depth.csv")
    again = by_choice(chosen, "depth", runs)
    np.testing.assert_allclose(again["test_error"], table["test_error"])


def test_starts_of_finished_runs_stand_beside_their_spectra(
    tiny_file: Path, tmp_path: Path
) -> None:
    chosen = protocol(tiny_file)
    table = run_table(chosen, ["data-efficiency"], tmp_path, progress=False)
    found = base_streams.of_finished(chosen, tmp_path)
    assert set(found["run"]) == set(table["run"])
    for name, part in found.groupby("run"):
        own = table[table["run"] == name].iloc[0]
        for whole, column in (("cos_start", "cos_start"), ("h_universal_disc", "disc_at_end")):
            assert part[column].mean() == pytest.approx(own[whole])
        # A band is drawn within the disc.
        assert own["variant"] == "vit" or (part["disc_at_start"] == 1).all()


def test_a_withdrawn_hypothesis_has_its_interval_and_says_why(tiny_file: Path) -> None:
    text = tiny_file.read_text().replace(
        'measure = "inside_share"', 'withdrawn = "2026-11-24: no"\nmeasure = "inside_share"'
    )
    path = tiny_file.with_name("withdrawn.toml")
    path.write_text(text)
    chosen = protocol(path)
    runs = [{"run": run.name, "inside_share": 1.0} for run in chosen.runs(["depth"])]
    row = adjudicated(chosen, ["depth"], pd.DataFrame(runs)).iloc[0]
    assert row["verdict"] == "withdrawn" and row["note"] == "Withdrawn 2026-11-24: no."
    assert row["difference"] == pytest.approx(0.01) and row["seeds"] == 2


def test_remedies_and_corruptions_are_measured(tiny_file: Path, tmp_path: Path) -> None:
    chosen = protocol(tiny_file)
    table = run_table(chosen, ["remedies", "corruption"], tmp_path, progress=False)
    remedied = table[table["remedy"] == "attnscale"]
    assert len(remedied) == 2 and remedied["log_hfc_lfc"].notna().all()
    assert remedied["corrupted_error"].isna().all()
    scored = table[table["remedy"].isna()]
    mean = scored[[f"error_at_{s}" for s in range(1, 6)]].mean(axis=1)
    np.testing.assert_allclose(scored["corrupted_error"], mean)
    np.testing.assert_allclose(scored["error_at_0"], scored["test_error"])
    path = tmp_path / "measures" / f"{scored['run'].iloc[0]}.json"
    path.write_text(json.dumps({"version": VERSION, "corruptions": True}))
    with pytest.raises(InputError, match=r"is damaged .*delete it and run again"):
        run_table(chosen, ["remedies", "corruption"], tmp_path, progress=False)


def test_the_preregistered_file_is_what_the_package_reads() -> None:
    assert tomllib.loads(PREREGISTERED.read_text("utf-8"))["title"] == protocol().title
    assert isinstance(protocol(), Protocol)
