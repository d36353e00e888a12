"""`python -m benchmarks`: rows say whether targets hold, and only what can be measured is."""

import json
import math
import sys
import time
from pathlib import Path

import pytest
import torch

from benchmarks import gpu, history, running
from benchmarks.__main__ import main
from benchmarks.benchmark import Measurement, Row
from benchmarks.scaling import measure_one
from benchmarks.timing import in_fresh_process
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.paper_figures.figure_base import processor_seconds
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]


@cases(
    "ratio, target, at_most, holds",
    (1.0, 1.0, True, True),
    (1.1, 1.0, True, False),
    (1.0, 1.0, False, True),
    (0.9, 1.0, False, False),
    (5.0, None, True, None),
    (math.nan, 1.0, True, False),
    (math.nan, 1.0, False, False),
)
def test_a_row_holds_on_its_own_side_of_the_target(ratio, target, at_most, holds):
    row = Row("x", ratio, {"a": 1.0}, **{"at_most" if at_most else "at_least": target})
    assert row.holds is holds
    json.dumps(row.to_json_object(), allow_nan=False)


def test_medians_are_interleaved_after_one_warm_up():
    order: list[str] = []
    found = interleaved_medians([lambda: order.append("a"), lambda: order.append("b")], 3)
    assert order == ["a", "b"] * 4 and len(found) == 2 and min(found) >= 0


def test_the_road_to_a_card_is_walked_on_the_cpu_and_refused_without_a_card(
    tmp_path, monkeypatch, capsys
):
    """All but the tests that are marked `cuda`, which the suite itself skips."""
    monkeypatch.setattr(gpu, "REPEATS", 1)
    monkeypatch.setattr(gpu, "tested", lambda device: {"exit status": 5})
    assert gpu.main(["--device", "cpu", "--small", "--out", str(tmp_path)]) == 0
    (written,) = tmp_path.iterdir()
    told = json.loads(written.read_text())
    assert set(told["paths"]) == set(gpu.cases(small=True)) and told["card"].startswith("none")
    for path in (*told["paths"].values(), *told["eigenvalues, by side"].values()):
        assert path["largest difference, relative"] == 0
        assert path["cpu / card"] == pytest.approx(path["cpu seconds"] / path["seconds"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--out", str(tmp_path)]) == 2
    assert "there is no card here" in capsys.readouterr().err and len([*tmp_path.iterdir()]) == 1


@pytest.fixture
def two(monkeypatch, tmp_path):
    ran: list[str] = []
    monkeypatch.setattr(history, "RECORD", tmp_path / "recorded" / "history.jsonl")

    def measure(name, **flags):
        def run(device):
            ran.append(f"{name} on {device}")
            return [Row(name, 0.5, {"ours": 0.5, "theirs": 1.0}, "a note", at_most=1.0)]

        return Measurement(name, "in words", run, **flags)

    offered = [measure("first/plain"), measure("second/real", data=True)]
    monkeypatch.setattr(running, "measurements", lambda: offered)
    monkeypatch.delenv("OVERSMOOTHING_DATA", raising=False)
    return ran


def test_json_is_a_list_of_named_ratios(two, capsys):
    assert main(["--json", "--only", "first"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert {"name", "ratio", "target", "holds", "seconds"} <= row.keys()
    assert row["holds"] is True and two == ["first/plain on cpu"]


def test_what_needs_real_inputs_is_skipped_aloud_without_them(two, capsys, tmp_path):
    assert main(["--report", str(tmp_path / "b.json")]) == 0
    printed = capsys.readouterr()
    assert "1 of 1 targets hold" in printed.out
    assert "second/real: skipped, it needs real inputs" in printed.err
    kept = json.loads((tmp_path / "b.json").read_text())
    assert kept["device"] == "cpu" and kept["rows"][0]["note"] == "a note"
    assert main(["--data-dir", str(tmp_path)]) == 0
    assert "2 of 2 targets hold" in capsys.readouterr().out


def test_unknown_names_are_refused(two, capsys):
    assert main(["--only", "third"]) == 2
    assert "choose from first/plain, second/real" in capsys.readouterr().err
    assert two == []


def test_every_measurement_has_a_name_of_its_own():
    names = [each.name for each in running.measurements()]
    assert len(names) == len(set(names)) > 10 and "scaling" in names
    assert all(each.summary for each in running.measurements())


def test_the_peak_is_that_of_the_measured_size_alone():
    # A and what is formed from it: between 2 and 20 copies of n^2 float64 numbers, 2 MiB each.
    _, mib = measure_one(0, 512)
    assert 2 * 2 < mib < 20 * 2
    seconds, small = measure_one(1, 1000)
    assert seconds > 0 and small < 2 * 2


def burn(seconds: float) -> None:
    start = time.process_time()
    while time.process_time() - start < seconds:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of such children")
def test_the_work_of_a_worker_of_a_server_counts():
    in_fresh_process(burn, 0.0)  # the server has loaded its libraries
    start = processor_seconds()
    in_fresh_process(burn, 0.5)
    assert processor_seconds() - start > 0.45


def test_a_row_is_worse_than_the_median_on_record_by_more_than_noise(tmp_path):
    file, took = tmp_path / "history.jsonl", {"ours": 1.0}
    for ratio in (0.8, 1.0, 0.9):
        rows = [Row("time", ratio, took, at_most=2.0), Row("speed", ratio, took, at_least=0.5)]
        history.append(rows, "cpu", file)
    past = history.Past.read(file)
    beyond = 1 + history.NOISE
    for row, worse in (
        (Row("time", 0.9 * beyond * 1.001, took, at_most=2.0), True),
        (Row("time", 0.9 * beyond * 0.999, took, at_most=2.0), False),
        (Row("time", math.nan, took, at_most=2.0), True),
        (Row("speed", 0.9 / beyond * 0.999, took, at_least=0.5), True),
        (Row("speed", 0.9 / beyond * 1.001, took, at_least=0.5), False),
        (Row("time", 9.0, took), False),  # it only compares
        (Row("time", 9.0, at_most=2.0), False),  # no times: an error
        (Row("new", 9.0, took, at_most=2.0), False),
    ):
        assert past.is_worse(row, "cpu") is worse, row
        assert not past.is_worse(row, "cuda")
    other = file.read_text().replace(history.machine(), "another machine")
    file.write_text(other)
    assert not history.Past.read(file).is_worse(Row("time", 9.0, took, at_most=2.0), "cpu")


def test_what_looks_worse_is_measured_twice_more_and_the_median_counts():
    past = history.Past([{"machine": history.machine(), "device": "cpu", "ratios": {"time": 1.0}}])
    for later, ratio, worse in (((1.0, 1.1), 1.1, []), ((3.0, 1.0), 2.0, ["time"])):
        tries = iter(later)
        rows, names = history.settled(
            [Row("time", 2.0, {"ours": 1.0}, at_most=5.0)],
            lambda tries=tries: [Row("time", next(tries), {"ours": 1.0}, at_most=5.0)],
            past,
            "cpu",
        )
        assert [row.ratio for row in rows] == [ratio] and names == worse


def test_each_run_is_added_and_drawn_and_a_worse_one_exits_with_1(two, tmp_path, capsys):
    file = tmp_path / "history.jsonl"
    asked = ["--only", "first", "--record", str(file)]
    assert main([*asked, "--no-record"]) == 0 and not file.exists()
    assert main(asked) == 0 and file.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    file.write_text(file.read_text().replace("0.5", "0.1"))
    assert main(asked) == 1
    worse = "15% worse than the median of the latest 10 runs of this machine: first"
    assert worse in capsys.readouterr().err
    assert len(file.read_text().splitlines()) == 2
    whole = file.read_text()
    for broken in ("half a li", '{"ratios": {}, "commit": "x", "device": "cpu"}'):
        file.write_text(whole + broken)
        assert main(asked) == 2
        assert "line 3, is no run" in capsys.readouterr().err


def test_the_page_of_costs_says_of_the_card_what_its_record_says():
    record = json.loads((ROOT / "benchmarks/gpu-2026-11-27.json").read_text("utf-8"))
    page = (ROOT / "docs/findings/costs.md").read_text("utf-8").split("### On a GPU")[1]
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    paths = list(record["paths"].values())
    for (_, *cells), path in zip(lines[1 : 1 + len(paths)], paths, strict=True):
        said = [float(cell.removesuffix(" s")) for cell in cells]
        own = [path["cpu seconds"], path["seconds"], path["cpu / card"]]
        assert said[:3] == pytest.approx(own, rel=0.05)
        assert said[3] == sum(path["waits"].values())
    sides, ratios = lines[1 + len(paths)][1:], lines[2 + len(paths)][1:]
    own = record["eigenvalues, by side"]
    assert sides == list(own)
    assert [float(each) for each in ratios] == pytest.approx(
        [each["cpu / card"] for each in own.values()], rel=0.05
    )
    before = record["before"]["inspect without spectra"]
    assert f"{sum(before['waits'].values()):,} times and took {before['seconds']:.1f} s" in page
    assert "7 passed" in record["tests"]["marked cuda"]["last line"] and "All seven tests" in page


def test_the_page_of_costs_says_of_processes_what_the_record_says():
    record = json.loads((ROOT / "benchmarks/gpu-2026-11-27.json").read_text("utf-8"))["processes"]
    page = (ROOT / "docs/findings/costs.md").read_text("utf-8")
    before, inside = (
        [f"{each['ratio']:.1f}" for each in part.values()]
        for part in record.values()
        if isinstance(part, dict)
    )
    two, four, dask = before
    said = f"two processes were {two} times as fast in wall-clock time as one, four processes "
    assert said + four in page and f"workers of Dask {dask} times, where" in page
    assert "two were {} times as quick and four {} times".format(*inside) in page


def test_of_runs_that_are_repeated_each_counts_and_a_miss_exits_with_1(
    two, tmp_path, capsys, monkeypatch
):
    file = tmp_path / "history.jsonl"
    asked = ["--only", "first", "--times", "3", "--record", str(file)]
    assert main(asked) == 0 and two == 3 * ["first/plain on cpu"]
    assert len(file.read_text().splitlines()) == 3
    assert "3 of 3        0.5  0.5 0.5 0.5" in capsys.readouterr().out
    ratios = iter((0.5, 2.0, 0.9))
    seen = [[Row("a", next(ratios), at_most=1.0), Row("b", 9.0)] for _ in range(3)]
    words, every = running.held(seen)
    assert "2 of 3        0.9  0.5 2 0.9" in words and not every and "b" not in words.split()
    monkeypatch.setattr(running, "held", lambda runs: ("", False))
    assert main([*asked, "--no-record"]) == 1


def test_what_takes_minutes_is_skipped_unless_all_is_asked_for(monkeypatch):
    slow = Measurement("slow", "in words", lambda device: [], long=True)
    monkeypatch.delenv("OVERSMOOTHING_BENCH_FULL", raising=False)
    assert "set OVERSMOOTHING_BENCH_FULL=1" in (running.skipped(slow, "cpu", None) or "")
    monkeypatch.setenv("OVERSMOOTHING_BENCH_FULL", "1")
    assert running.skipped(slow, "cpu", None) is None
