"""Phase diagrams: what the cells count, and the pictures."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversmoothing import main
from oversmoothing.paper_figures.figures import phase_diagram
from oversmoothing.simulations.sweep import phase_diagram as diagram
from oversmoothing.simulations.sweep.config import PARAMETERS, Config, make_config
from oversmoothing.simulations.sweep.points import Points
from oversmoothing.simulations.sweep.runner import run_sweep
from oversmoothing.simulations.sweep.store import read_table
from tests.support.refusals import refuses


def swept(folder: Path, config: Config) -> pd.DataFrame:
    return read_table(run_sweep(config, folder)).to_pandas()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    fixed = {"n": 6, "d": 4, "depth": 400, "value": "interval", "low": -0.5}
    axes = {"attention": ["softmax", "symmetric_psd"], "temperature": [0.3, 1.0, 3.0]}
    axes |= {"high": [-0.7, -0.1, 0.8], "seed": [0, 1, 2, 3]}
    config = make_config({"measures": ["ratio"], "fixed": fixed, "axes": axes})
    return swept(tmp_path_factory.mktemp("sweep"), config)


def test_cells_count_every_point_once(table):
    found = diagram.cells(table, "temperature", "high", "attention")
    assert len(found) == 18 and (found["points"] == 4).all()
    assert found["points"].sum() == len(table)
    failed = found[found["y"] == -0.7]  # low = -0.5 exceeds it
    assert (failed["errors"] == 4).all() and failed["share"].isna().all()
    # All h in [-1, 0): consensus loses whatever A is (T3d). What else a cell counts, the check of
    # the figure counts anew.
    assert (found[found["y"] == -0.1]["share"] == 0).all()
    assert (found[found["y"] == 0.8]["smoothing"] > 0).any()


def test_runs_do_as_their_verdict_says_or_are_too_slow_to_tell(table):
    found = diagram.cells(table, "temperature", "high")
    assert found["runs"].sum() == (table["status"] != "error").sum() == 48
    assert (found["agree"] + found["slow"] == found["runs"]).all()
    turned = table.assign(verdict=table["verdict"].replace("SMOOTHING", "NON_SMOOTHING"))
    wrong = diagram.cells(turned, "temperature", "high")
    assert wrong["agree"].sum() < wrong["runs"].sum() - 5
    words = diagram.caption(found)
    assert f"{found['agree'].sum()} of 48 runs" in words and "24 points failed" in words


def test_several_heads_have_no_floor_to_be_judged_by(tmp_path):
    fixed = {"n": 4, "d": 3, "depth": 50, "heads": 2}
    config = make_config({"fixed": fixed, "axes": {"scale": [0.5, 2.0]}})
    found = diagram.cells(swept(tmp_path, config), "scale", "heads")
    assert found["runs"].sum() == 0 and "do as their verdict" not in diagram.caption(found)


def test_axes_that_are_not_there_are_refused(table):
    refuses(r"no axis 'radius'.*temperature", diagram.cells, table, "radius", "high")
    refuses("must differ", diagram.cells, table, "high", "high")
    many = pd.concat([table.assign(seed=k) for k in range(diagram.MAX_PANELS + 1)])
    refuses("panels", diagram.cells, many, "temperature", "high", "seed")


@pytest.mark.parametrize("panel, measured", [(None, False), ("attention", True)])
def test_a_phase_diagram_is_drawn_of_any_sweep(table, tmp_path, panel, measured):
    given = table if measured else table.drop(columns=["slope", "log_hfc_lfc"])
    found = diagram.cells(given, "temperature", "high", panel)
    figure = diagram.draw(found)
    meshes = [axis for axis in figure.axes if axis.get_xlim()[1] == 3.0]
    assert len(meshes) == (2 if measured else 1) * (2 if panel else 1)
    once = diagram.write(found, tmp_path / "a", "x", "x")
    again = diagram.write(found, tmp_path / "b", "x", "x")
    assert {p.suffix for p in once} == {".png", ".pdf", ".csv", ".txt"}
    for one, other in zip(once, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_the_command_draws_what_it_swept(tmp_path, capsys):
    file = tmp_path / "a.toml"
    file.write_text(
        "[fixed]\nn = 4\nd = 2\ndepth = 20\n[axes]\nscale = [0.5, 2.0]\ntemperature = [1.0, 2.0]"
    )

    def run(*words):
        return main(["sweep", str(file), "--out", str(tmp_path), *words])

    assert run("--figure", "scale", "temperature") == 0
    assert (tmp_path / "sweeps" / "a" / "phase_diagram.png").read_bytes().startswith(b"\x89PNG")
    assert "Share of SMOOTHING" in capsys.readouterr().out
    assert run("--figure", "scale") == 2
    assert "two axes" in capsys.readouterr().err


def test_the_figure_of_the_page_is_the_packaged_example(small):
    whole = phase_diagram.configuration(0)
    assert not set(whole.axes["seed"]) & set(phase_diagram.configuration(1).axes["seed"])
    assert len(Points(whole)) < 10_000
    table = small["phase_diagram"]
    assert set(table["panel"]) == {0.0, 1.0}
    # The caption counts what is drawn; the cells that are not are named as the table's.
    said, drawn = phase_diagram.words(table), table[table["y"] > 0]
    assert len(drawn) < len(table) and " Below: " not in said and "W_Q W_K^T" in said
    assert f"{drawn['points'].sum():,} points in {len(drawn):,} cells" in said
    assert f"of {drawn['runs'].sum():,} runs of one head" in said
    assert f"{len(table) - len(drawn):,} cells with high of at most 0" in said
    assert table["runs"].sum() > 20


def test_ticks_are_few_and_short_and_words_are_the_fields():
    temperatures = list(np.geomspace(0.1, 10, 13))
    shown = [diagram.label_of(temperatures[k]) for k in diagram.shown_ticks(temperatures)]
    assert shown == ["0.1", "1", "10"]
    highs = list(np.linspace(-1, 1, 11))
    assert [diagram.label_of(highs[k]) for k in diagram.shown_ticks(highs)] == ["−1", "0", "1"]
    assert list(diagram.shown_ticks(["a", "b"])) == [0, 1]
    assert len(diagram.shown_ticks(list(range(8)))) <= 8
    assert all(name in PARAMETERS for name in diagram._WORDS)


def test_the_boundary_of_scattered_shares_is_one_line():
    share = (np.arange(12)[:, None] + np.zeros(14) > 5.5).astype(float)
    share[2, 3], share[9, 9] = 0.6, 0.4  # what a few draws do
    averaged = diagram.averaged(share)
    assert averaged[2, 3] < 0.5 < averaged[9, 9]
    assert np.isnan(diagram.averaged(np.where(share == 0.6, np.nan, share))[2, 3])
    assert np.allclose(diagram.averaged(np.ones((3, 4))), 1.0)
