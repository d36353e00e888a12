"""The figures of the theory: their numbers against the statements; and how figures are drawn."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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
    regions,
    rotation,
    stream_mixing,
)
from oversmoothing.paper_figures.figures.regions import CELLS, PANELS, Panel, span
from oversmoothing.simulations.drawing.picture import (
    FULL_WIDTH,
    KINDS,
    WIDTHS,
    decade_axis,
    new_figure,
    page_width,
    plot_log,
)
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


def test_runs_agree_with_the_discs_away_from_their_boundary(small):
    runs = small["lambda_plane"].query("kind == 'run'")
    off = runs[runs["measured"] != runs["predicted"]]
    assert (off["log_rate"].abs() * (lambda_plane.DEPTH // 2) < 2 * lambda_plane.DECAY).all()
    assert set(runs["measured"]) == {"SMOOTHING", "NON_SMOOTHING"}
    inside = np.hypot(runs["re"] + 0.5, runs["im"]) <= 0.5
    assert inside.sum() > 10 and (runs[inside]["measured"] == "NON_SMOOTHING").all()


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


def test_every_panel_is_a_statement_of_the_ledger():
    names = [panel.claim for panel in PANELS]
    assert len(names) == len(set(names)) and set(names) <= set(claims())


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


def test_bands_are_the_region(small):
    """Of psi: the share of the square in which psi^2 (1 + a) < 2, within the cells' size."""
    table = small["regions"]
    bands = table[(table["kind"] == "band") & (table["claim"] == "P-2401.04301v1-psi")]
    held = bands[bands["said"] == "holds"]
    area = float((held["high"] - held["low"]).sum()) * 2 / CELLS
    # sqrt(2/(1 + a)) below 3, a from -7/9: 3 * 2/9 + 2 sqrt 2 (sqrt 2 - sqrt(2/9)).
    wanted = 3 * 2 / 9 + 2 * 2**0.5 * (2**0.5 - (2 / 9) ** 0.5)
    assert area == pytest.approx(wanted, abs=2 * 3 / CELLS / 2)
    assert span(-1, 1)[0] == regions.Fraction(-47, 48)


def test_the_caption_counts_points_that_disagree(small):
    altered = small["regions"].copy()
    place = altered.index[(altered["kind"] == "point") & (altered["checked"] == "holds")][0]
    altered.loc[place, "checked"] = "fails"
    first = PANELS[0].claim
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
    def contradicted(case):
        raise RequirementError("the checker contradicts what was to be certified")

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
    def fail(data):
        raise InputError("nothing to draw")

    (tmp_path / "x.csv").write_text("earlier")
    refuses("", lambda: given(pd.DataFrame({"a": [1]}), fail).make(Context(tmp_path), tmp_path))
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
    for words, said in (
        (["--format", "gif"], "no format 'gif'"),
        (["--width", "3"], "no page '3'"),
    ):
        assert said in told(2, "figures", "--list", *words)


def test_all_names_every_figure_and_none_draws_none(capsys):
    assert main(["figures", "all", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(FIGURES)
    assert main(["figures"]) == 2 and capsys.readouterr().out == ""
