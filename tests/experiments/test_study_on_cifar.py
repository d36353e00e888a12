"""The study on CIFAR-100: its own protocol, its own tables, and what is finished so far."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversmoothing import main
from oversmoothing.experiments.study import study_runs
from oversmoothing.experiments.study.base_streams import base_streams, streams_place
from oversmoothing.experiments.study.protocol import PREREGISTERED, SHIPPED, protocol
from oversmoothing.experiments.study.study_files import folder_name
from oversmoothing.experiments.study.study_runs import cost, run_table
from oversmoothing.experiments.study.study_tables import _spread
from oversmoothing.theory.support.errors import InputError

# Grey levels that follow the class, in the binary form of the original archives.
TINY = """
seeds = [0, 1]
confidence = 0.95
corrupted_images = 20
[base]
data = "cifar100"
depth = 1
width = 8
heads = 2
patch = 16
epochs = 1
batch_size = 5000
log_every = 1
probe_images = 2
[design]
variants = ["vit"]
tied = [false]
fractions = [1.0, 0.5]
[[hypothesis]]
name = "E1"
study = "data-efficiency"
says = "Half of the images cost less than half a point."
measure = "test_error"
first = { fraction = 0.5 }
second = {}
predicts = "less"
margin = 0.5
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cifar")
    (folder / "cifar-100-binary").mkdir()
    for name, of_class in (("train.bin", 500), ("test.bin", 100)):
        labels = np.repeat(np.arange(100, dtype=np.uint8), of_class)
        rows = np.empty((len(labels), 2 + 3 * 32 * 32), np.uint8)
        rows[:, 0], rows[:, 1], rows[:, 2:] = 0, labels, 2 * labels[:, None]
        rows[:, 2::7] = np.arange(len(labels))[:, None] % 251
        rows.tofile(folder / "cifar-100-binary" / name)
    return folder


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("protocol") / "tiny.toml"
    path.write_text(TINY)
    return path


def test_the_protocol_of_cifar_is_the_papers_two_tables_and_nothing_else() -> None:
    chosen = protocol("cifar100")
    assert chosen.studies == ["data-efficiency", "corruption"] and chosen.data == "cifar100"
    runs = chosen.runs(chosen.studies)
    assert len(runs) == 27 and {each.config.data for each in runs} == {"cifar100"}
    # The first seed is complete before the second begins.
    assert [each.seed for each in runs] == [0] * 9 + [1] * 9 + [2] * 9
    steps = {each.config.epochs * each.config.per_epoch for each in runs}
    whole = chosen.run({}, 0).config
    assert max(steps) - min(steps) < whole.per_epoch / 10 * 2
    assert folder_name(chosen) == "study-cifar100" and folder_name(protocol()) == "study"
    assert protocol("digits") == protocol() and SHIPPED["digits"] == PREREGISTERED
    with pytest.raises(InputError, match=r"'cifar100.toml' has no design for the study depth, but"):
        chosen.runs(["depth"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('study = "data-efficiency"', 'study = "depth"', "no design for depth, of a hypothesis"),
        ('variants = ["vit"]\n', "", "the design is of none of|no design for"),
        ("corrupted_images = 20", "corrupted_images = 0", "no whole number from 1"),
        ("corrupted_images = 20", "corrupted_images = true", "no whole number from 1"),
    ],
)
def test_a_protocol_without_what_it_needs_is_said(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in TINY
    path = tmp_path / "own.toml"
    path.write_text(TINY.replace(old, new, 1))
    with pytest.raises(InputError, match=message):
        protocol(path)


def test_the_runs_of_cifar_are_trained_measured_and_shown_so_far(
    tiny_file: Path, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.delenv("OVERSMOOTHING_DATA", raising=False)
    command = ["study", "all", "--protocol", str(tiny_file), "--out", str(tmp_path)]
    assert main([*command, "--so-far"]) == 2
    assert "no run of data-efficiency, corruption is finished" in capsys.readouterr().err
    assert main(command) == 2
    assert "cifar100 is needed and" in capsys.readouterr().err
    chosen = protocol(tiny_file)
    first = protocol(tiny_file)
    # One seed of two, as where the rest was interrupted.
    object.__setattr__(first, "seeds", (0,))
    scored = []
    genuine = study_runs.score
    monkeypatch.setattr(
        study_runs,
        "score",
        lambda model, images: scored.append(len(images)) or genuine(model, images),
    )
    table = run_table(first, first.studies, tmp_path, progress=False, data_dir=data_dir)
    assert len(table) == 2 and set(scored) == {20}  # the first images alone
    assert (table["fraction"] == [1.0, 0.5]).all() and table["test_error"].between(0, 100).all()
    assert table["corrupted_error"].notna().tolist() == [True, False]
    assert "4 runs, 2 left" in cost(chosen, chosen.studies, tmp_path, 1)
    assert main([*command, "--so-far"]) == 0
    printed = capsys.readouterr().out
    assert "E1, open: Half of the images" in printed
    assert "nan" not in printed  # one seed has no spread
    written = tmp_path / "study-cifar100"
    found = pd.read_csv(written / "data-efficiency.csv")
    assert found["seeds"].tolist() == [1, 1] and not (tmp_path / "study").exists()
    assert len(pd.read_csv(written / "runs.csv")) == 2
    assert (written / "corruption.png").stat().st_size > 5000
    # Of the base model: its stream by layer, layer 0 the input, and its H at watched steps.
    streams, watched = (pd.read_csv(written / f"{name}.csv") for name in ("streams", "watched"))
    base = chosen.run({}, 0)
    assert set(streams["run"]) == set(watched["run"]) == {base.name}
    assert streams["layer"].tolist() == [0, 1] and (streams["images"] == 50).all()
    moved = streams["log_hfc_lfc"].diff().iloc[1]
    np.testing.assert_allclose(streams["change"], moved, rtol=1e-6, atol=1e-9)
    assert watched["asymmetry"].between(0, 1).all() and (watched["layer"] == 1).all()


def test_streams_of_a_base_run_are_measured_where_they_alone_are_missing(
    tiny_file: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = protocol(tiny_file)
    object.__setattr__(chosen, "seeds", (0,))
    first = run_table(chosen, ["data-efficiency"], tmp_path, progress=False, data_dir=data_dir)
    kept = streams_place(chosen.run({}, 0), tmp_path)
    known = kept.read_text()
    kept.unlink()
    monkeypatch.setattr(study_runs, "measures", None)
    again = run_table(chosen, ["data-efficiency"], tmp_path, progress=False, data_dir=data_dir)
    assert kept.read_text() == known
    for damaged in (
        "",
        known.replace("log_hfc_lfc,", "other,"),
        known.replace(chosen.run({}, 0).name, "x"),
    ):
        kept.write_text(damaged)
        with pytest.raises(InputError, match=r"streams.csv' is damaged.*delete it and run again"):
            base_streams(chosen, tmp_path)
    pd.testing.assert_frame_equal(first, again)


def test_published_corruptions_go_before_those_made_here(data_dir: Path, tmp_path: Path) -> None:
    whole = study_runs._test.__wrapped__("cifar100", None, data_dir)
    made = study_runs._altered.__wrapped__("cifar100", 3, data_dir, "fog", 2)
    assert len(whole) == 10_000 and len(made) == 3
    folder = tmp_path / "CIFAR-100-C"
    folder.mkdir()
    (tmp_path / "cifar-100-binary").symlink_to(data_dir / "cifar-100-binary")
    np.save(folder / "fog.npy", np.full((50_000, 32, 32, 3), 7, np.uint8))
    np.save(folder / "labels.npy", np.tile(np.arange(10_000) % 100, 5))
    found = study_runs._altered.__wrapped__("cifar100", 3, tmp_path, "fog", 2)
    assert (found.pixels == 7).all() and found.labels.tolist() == [0, 1, 2]
    assert not (made.pixels == 7).all()


def test_the_spread_of_equal_seeds_is_0_and_a_small_one_is_itself() -> None:
    assert _spread(1.3888888888888888, 2.7e-16) == "1.39 ± 0"
    assert _spread(1.3888888888888888, 2.7e-10) == "1.39 ± 2.7e-10"
    assert _spread(0.0, 0.0) == "0 ± 0" and _spread(2.0, math.nan) == "2"
    assert _spread(math.nan, math.nan) == ""
