"""The figures of the theory: their numbers against the statements; and how figures are drawn."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from oversmoothing import InputError, main
from oversmoothing.commands import pages
from oversmoothing.paper_figures import FIGURES
from oversmoothing.paper_figures.figure_base import Context, PaperFigure, processor_seconds
from oversmoothing.paper_figures.figures import (
    costs,
    ladder,
    lambda_plane,
    loops,
    metrics_against_depth,
    phase_diagram,
    regions,
    rotation,
    stream_mixing,
)
from oversmoothing.paper_figures.figures.regions import PANELS, Panel
from oversmoothing.simulations.drawing.picture import (
    FULL_WIDTH,
    KINDS,
    WIDTHS,
    decade_axis,
    new_figure,
    page_width,
    plot_log,
)
from oversmoothing.simulations.sweep import phase_diagram as diagram
from oversmoothing.simulations.sweep.config import PARAMETERS, Config, make_config
from oversmoothing.simulations.sweep.points import Points
from oversmoothing.simulations.sweep.runner import run_sweep
from oversmoothing.simulations.sweep.store import read_table
from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.support.errors import RequirementError
from tests.figures import pictures
from tests.figures.small import timed_by_a_law
from tests.support.refusals import refuses

ROOT = Path(__file__).resolve().parents[2]


def test_the_rank_collapses_by_its_own_rate_and_the_caption_says_where(small):
    data = small["metrics_against_depth"]
    run = data[(data["case"] == "smoothing") & (data["source"] == "theory")]
    rank = (run["log_sigma2_sigma1"].iloc[400] - run["log_sigma2_sigma1"].iloc[200]) / 200
    assert rank == pytest.approx(run["log_r_sigma"].iloc[0], abs=1e-3)
    caption = metrics_against_depth.words(data)
    assert "rank collapse without smoothing" in caption and "SMOOTHING" in caption


def test_captions_count_what_the_table_holds(small):
    data = small["lambda_plane"].copy()
    runs = data["kind"] == "run"
    for panel in lambda_plane.PANELS:
        here = data[runs & (data["panel"] == panel)]
        agree = int((here["measured"] == here["predicted"]).sum())
        assert f"{agree} of {len(here)} runs agree" in lambda_plane.words(data)
    far = data.index[runs & (data["log_rate"] > 0.5)][0]
    data.loc[far, "measured"] = "SMOOTHING"
    assert "not explained" in lambda_plane.words(data)


def test_captions_say_what_the_tables_hold(small):
    said = rotation.words(small["rotation"])
    assert "NON_SMOOTHING" in said and "3-4-5" in said
    table = small["loops"]
    blocks = table[table["kind"] == "block"]
    collapsed = int((blocks["end"] <= table["collapsed_at"].iloc[0]).sum())
    assert f"{collapsed} of {len(blocks)} blocks end below it" in loops.words(table)
    best = small["ladder"].sort_values("r2").iloc[-1]
    assert f"best: {best['what']}, {best['r2']:.2f}" in ladder.words(small["ladder"])
    # Sorted by their score, no row may speak of the row before.
    assert not any("the same" in what for what in small["ladder"]["what"])
    table = small["stream_mixing"]
    runs = table[table["kind"] == "run"]
    assert f"{len(runs)} of {len(runs)} do what" in stream_mixing.words(table)
    assert stream_mixing.words(table).count("1e-06") == 2


def points_of(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    return table[(table["kind"] == "point") & (table["claim"] == panel.claim)]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.claim)
def test_points_are_as_the_region_says_and_a_larger_region_is_noticed(
    panel, small, monkeypatch, tmp_path
):
    points = points_of(small["regions"], panel)
    assert len(points) == regions.POINTS
    right = regions.agrees(points)
    assert right.all() and len(right) > 9
    # Points lie on both sides of a boundary, and the check knows both answers.
    assert points["said"].nunique() > 1 and {"holds", "fails"} <= set(points["checked"])
    # The statement said of the whole square: some point is not as said.
    everywhere = replace(panel, said=lambda x, y: (x == x, x != x))
    monkeypatch.setattr(regions, "PANELS", (everywhere,))
    table = regions.data(Context(tmp_path, progress=False))
    assert not regions.agrees(points_of(table, panel)).all()


def test_every_panel_is_a_statement_of_the_ledger_whose_disagreeing_points_are_counted(small):
    names = [panel.claim for panel in PANELS]
    assert len(names) == len(set(names)) and set(names) <= set(claims())
    altered = small["regions"].copy()
    place = altered.index[(altered["kind"] == "point") & (altered["checked"] == "holds")][0]
    altered.loc[place, "checked"] = "fails"
    first = names[0]
    assert f"{first}: 60 of 60" in regions.words(small["regions"])
    assert f"{first}: 59 of 60" in regions.words(altered)


def test_an_exponent_is_that_of_a_power_law_with_its_standard_error():
    sizes = [64, 128, 256, 512, 1024]
    slope, error = costs.exponent(sizes, [3e-6 * s**1.7 for s in sizes])
    assert slope == pytest.approx(1.7, abs=1e-12) and error < 1e-12
    rng = np.random.default_rng(0)
    deviations = []
    for _ in range(400):
        noisy = [s**2 * np.exp(0.1 * rng.standard_normal()) for s in sizes]
        slope, error = costs.exponent(sizes, noisy)
        deviations.append((slope - 2) / error)
    # Student's t with 3 degrees of freedom: 95 % lie within 3.18.
    assert 0.91 < np.mean(np.abs(deviations) < 3.18) < 0.985
    assert np.isnan(costs.exponent([1, 2, 4], [1.0, 0.0, 2.0])).all()
    assert np.isnan(costs.exponent([4], [1.0])).all()


def test_costs_say_every_exponent_and_multiple():
    table = timed_by_a_law()["costs"]
    said = costs.words(table)
    assert "time in n (one more layer, d = 16): exponent 2.00 ± 0.00, in theory 2" in said
    assert "certify: 12.1 at 8 tokens, 338 at 128" in said
    assert "5 of 5 certificates prove the verdict that floats gave" in said
    wrong = table.assign(verdict=table["verdict"].mask(table["what"] == "certify", "UNDECIDED"))
    assert "0 of 5 certificates" in costs.words(wrong)


def test_a_certificate_that_would_be_false_is_no_timing(monkeypatch):
    contradicted = Mock(side_effect=RequirementError("contradicts what was to be certified"))
    monkeypatch.setattr(costs, "make_certificate", contradicted)
    refuses("contradicts", costs.proof_rows, 4, 0, error=RequirementError)


def test_the_work_of_this_process_counts_and_its_waiting_does_not():
    work, start = 0.5, processor_seconds()
    time.sleep(work)
    before = time.process_time()
    while time.process_time() - before < work:
        pass
    # os.times counts hundredths.
    assert work - 0.05 < processor_seconds() - start < 2 * work - 0.05


@pytest.mark.parametrize("name", ["lambda_plane", "regions"])
def test_the_picture_of_the_book_is_the_figure_of_today(name):
    """Loosely, by the thumbnail that the figure is held to: panels that change places move it by
    more than twice MOST."""
    shown = pictures.thumbnail(Image.open(ROOT / f"docs/pictures/{name}.png"))
    assert pictures.distance(shown, pictures.stored(name)) < pictures.MOST


def test_new_figures_leave_no_global_state():
    before = dict(mpl.rcParams)
    figure, axes = new_figure(2, 3)
    assert isinstance(figure, Figure) and axes.shape == (2, 3)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("low, high", [(-40000.0, 1.0), (-3.0, 1.0), (0.0, 1.0), (0.3, 0.5)])
def test_decade_axes_label_round_numbers_without_repetition(low, high):
    figure, axes = new_figure()
    axis = axes[0, 0]
    plot_log(axis, [0, 1, 2], np.log(10.0) * np.array([low, np.inf, high]), color="black")
    decade_axis(axis)
    figure.canvas.draw()
    labels = [t.get_text() for t in axis.get_yticklabels()]
    assert len(labels) >= 2 and len(set(labels)) == len(labels)
    drawn = axis.lines[0].get_ydata()
    assert np.isnan(drawn[1]) and drawn[0] == pytest.approx(low)


def given(table: pd.DataFrame, draw: Callable[[pd.DataFrame], Figure]) -> PaperFigure:
    return PaperFigure("x", "", "", lambda context: table, draw, lambda table: "said", name="x")


def test_a_figure_that_fails_leaves_earlier_files_alone(tmp_path):
    (tmp_path / "x.csv").write_text("earlier")
    own = given(pd.DataFrame({"a": [1]}), Mock(side_effect=InputError("nothing to draw")))
    refuses("nothing to draw", own.make, Context(tmp_path), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]
    assert (tmp_path / "x.csv").read_text() == "earlier"


def test_pictures_come_in_the_kinds_and_for_the_page_that_were_asked_for(tmp_path):
    def draw(data):
        drawn, axes = new_figure(height=3.5)
        axes[0, 0].set_xlabel("layer")
        return drawn

    own = given(pd.DataFrame({"a": [1]}), draw)

    def made(folder, kinds, page):
        paths = own.make(Context(tmp_path), tmp_path / folder, kinds, page)
        return {path.suffix: path.read_bytes() for path in paths}

    wide, narrow = made("a", ["svg", "pdf"], "two-column"), made("b", ["svg"], "one-column")
    assert set(wide) == {".csv", ".txt", ".svg", ".pdf"} and set(narrow) == {".csv", ".txt", ".svg"}
    # Points: 72 an inch.
    assert b'width="504pt" height="252pt"' in wide[".svg"]
    assert b'width="396pt" height="198pt"' in narrow[".svg"]
    assert wide == made("c", ["svg", "pdf"], "two-column")
    assert b"dc:date" not in wide[".svg"]
    refuses("no page 'three'; there are one-column, two-column", made, "d", ["png"], "three")
    assert new_figure()[0].get_figwidth() == FULL_WIDTH  # and nothing of it is left behind
    with page_width("one-column"):
        axes = new_figure()[1]
        assert axes[0, 0].xaxis.label.get_fontsize() == pytest.approx(8.5 * 5.5 / 7)


def test_the_command_offers_every_kind_and_page(told):
    assert set(pages.KINDS) == set(KINDS) and set(pages.PAGES) == set(WIDTHS)
    assert "no format 'gif'" in told(2, "figures", "--list", "--format", "gif")
    assert "no page '3'" in told(2, "figures", "--list", "--width", "3")


def test_all_names_every_figure_and_none_draws_none(capsys):
    assert main(["figures", "all", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)
    assert main(["figures"]) == 2 and capsys.readouterr().out == ""


# --- phase diagrams ---


def swept(folder: Path, config: Config) -> pd.DataFrame:
    return read_table(run_sweep(config, folder)).to_pandas()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    fixed = {"n": 6, "d": 4, "depth": 400, "value": "interval", "low": -0.5}
    axes = {"attention": ["softmax", "symmetric_psd"], "temperature": [0.3, 1.0, 3.0]}
    axes |= {"high": [-0.7, -0.1, 0.8], "seed": [0, 1, 2, 3]}
    config = make_config({"measures": ["ratio"], "fixed": fixed, "axes": axes})
    return swept(tmp_path_factory.mktemp("sweep"), config)


def test_runs_do_as_their_verdict_says_or_are_too_slow_to_tell(table):
    found = diagram.cells(table, "temperature", "high")
    assert found["runs"].sum() == (table["status"] != "error").sum() == 48
    failed = found[found["y"] == -0.7]  # low = -0.5 exceeds it
    assert (failed["errors"] == 8).all() and failed["share"].isna().all()
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
