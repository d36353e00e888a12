"""Runs against depth: what is drawn is what was measured, on axes that fit it."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import oversmoothing
from oversmoothing.simulations.against_theory.simulate import Configuration, simulate
from oversmoothing.simulations.drawing.depth_plot import draw_run, great, predictions
from oversmoothing.simulations.drawing.picture import decade_axis
from oversmoothing.simulations.drawing.wording import ROWS, few
from tests.support.cases import cases
from tests.support.processes import python
from tests.support.refusals import refuses

A = np.array([[0.75, 0.25], [0.25, 0.75]])
START = np.array([[1.0, 0.0], [0.5, 2.0]])


def run_of(depth, X0=START, W=0.5):
    n, d = X0.shape[-2:]
    mean = np.full((n, n), 1 / n)
    return oversmoothing.evolve(X0=X0, A=0.5 * (mean + np.eye(n)), W=W * np.eye(d), depth=depth)


def test_the_lines_are_the_metrics():
    run = run_of(range(20))
    ratio, cosine = run.plot()
    table = run.metrics()
    drawn = table["log_hfc_lfc"] / np.log(10.0), table["cos_mean"], table["cos_min"]
    for line, values in zip((ratio.lines[0], *cosine.lines), drawn, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), table["depth"])
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert (ratio.get_xlabel(), cosine.get_xlabel()) == ("layer", "layer")
    assert "HFC/LFC" in ratio.get_ylabel() and "cosine" in cosine.get_ylabel()
    shown = [text.get_text() for text in cosine.get_legend().get_texts()]
    assert shown == ["mean of the pairs", "least of them"]


def test_a_ratio_far_below_the_least_float_has_its_place():
    run = run_of([0, 10, 10**9])
    ratio, _ = run.plot()
    log10 = ratio.lines[0].get_ydata()
    assert np.isfinite(log10).all() and log10[-1] < -(10**6)
    low, high = ratio.get_ylim()
    assert low <= log10.min() and high >= log10.max()
    ratio.figure.canvas.draw()
    labels = [tick.get_text() for tick in ratio.get_yticklabels()]
    assert len(set(labels)) == len(labels) >= 2
    assert {"1", "$10^{-100}$", "$10^{-10^{8}}$"} <= {*labels}


@cases(
    "depths, logarithmic",
    (range(50), False),
    (range(1001), False),
    ([0, 500, 1000], False),
    ([0, 1000], False),
    ([0, 10, 10**9], True),
    (np.unique(np.rint(np.geomspace(1, 1000, 60))).astype(int), True),
    ([0], False),
)
def test_great_depths_that_crowd_at_one_end_have_a_logarithmic_axis(depths, logarithmic):
    assert great(list(depths)) == logarithmic
    ratio, cosine = run_of([int(depth) for depth in depths]).plot()
    scale = "symlog" if logarithmic else "linear"
    assert (ratio.get_xscale(), cosine.get_xscale()) == (scale, scale)
    for panel in (ratio, cosine):
        low, high = panel.get_xlim()
        assert low <= min(depths) and high >= max(depths)


def test_cosines_that_differ_by_rounding_are_not_drawn_as_movement():
    _, cosine = run_of([0, 1, 2], X0=np.array([[1.0, 0.0], [2.0, 1e-9]])).plot()
    low, high = cosine.get_ylim()
    assert high - low >= 0.1 and low < 1 < high <= 1.01


def test_a_ratio_that_falls_by_great_powers_is_a_straight_line_and_the_axis_says_how():
    depths = [0, *np.geomspace(1, 10**6, 30).round().astype(int)]
    run = run_of([int(depth) for depth in depths])
    ratio, _ = run.plot()
    assert ratio.get_yscale() == "symlog" and run_of(range(60)).plot()[0].get_yscale() == "linear"
    # As far from one to the next decade of layers, over all of them.
    shown = [ratio.transData.transform((10.0**k, np.interp(10.0**k, *ratio.lines[0].get_data())))
             for k in range(2, 7)]  # fmt: skip
    falls = np.diff(np.array(shown)[:, 1])
    assert falls.max() < 0 and falls.min() == pytest.approx(falls.max(), rel=0.05)
    assert "ten times as many powers of ten" in ratio.get_ylabel()
    assert "powers" not in run_of(range(60)).plot()[0].get_ylabel()


def test_an_axis_of_a_small_span_has_two_numbers_at_least():
    for low, high in ((11, 21), (1.01, 1.99), (2.1, 4.9), (0.51, 0.99), (1.3, 1.45)):
        axis = Figure().subplots()
        decade_axis(axis)
        axis.set_ylim(np.log10(low), np.log10(high))
        assert len(axis.get_yticks()) >= 2, (low, high)


@pytest.mark.parametrize("X0", [np.ones((1, 2)), np.zeros((3, 2)), np.ones((3, 2))])
def test_where_there_is_no_ratio_the_panel_says_so(X0):
    ratio, cosine = run_of([0, 5], X0=X0).plot()
    assert not ratio.lines and "at every depth" in ratio.texts[0].get_text()
    alike = X0.any() and len(X0) > 1
    assert bool(cosine.lines) == alike
    assert alike or "fewer than two tokens" in cosine.texts[0].get_text()


def test_a_batch_is_drawn_by_its_median_and_its_ends():
    starts = np.random.default_rng(0).standard_normal((5, 4, 2))
    run = run_of(range(7), X0=starts)
    ratio, cosine = run.plot()
    by = run.metrics().groupby("depth")
    np.testing.assert_allclose(cosine.lines[0].get_ydata(), by["cos_mean"].median())
    band = cosine.collections[0].get_paths()[0].get_extents()
    assert band.y0 == pytest.approx(by["cos_mean"].min().min())
    assert band.y1 == pytest.approx(by["cos_mean"].max().max())
    assert "median of 5 runs" in ratio.get_legend().get_texts()[0].get_text()


def test_axes_of_one_s_own_are_drawn_in():
    mine = Figure().subplots(2, 1)
    assert list(run_of([0, 1]).plot(mine)) == list(mine)
    for wrong in (Figure().subplots(3), 3, ["a", "b"]):
        refuses("give two Axes of matplotlib", run_of([0, 1]).plot, wrong)


def test_matplotlib_loads_when_it_is_drawn():
    code = (
        "import sys, numpy as np, oversmoothing\n"
        "run = oversmoothing.evolve(X0=np.eye(2), A=np.full((2, 2), 0.5), H=np.eye(2), depth=3)\n"
        "repr(run), run._repr_html_(), run.metrics()\n"
        "assert 'matplotlib' not in sys.modules\n"
        "run.plot()\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    python("-c", code).check_returncode()


def drawn(**settings):
    return simulate(Configuration(n=6, d=2, points=12, **settings), device="cpu").table


def test_predictions_are_the_closed_form_and_the_limit_or_the_rate():
    smooth = drawn(value="spectrum", value_options={"eigenvalues": [0.5, 0.2]}, depth=300)
    rate = float(smooth["log_rate"].iloc[0])
    found = predictions(smooth, rate)
    assert list(found) == ["closed form", "predicted rate"]
    np.testing.assert_allclose(found["closed form"], smooth["log_hfc_lfc"], atol=1e-9)
    line = found["predicted rate"]
    np.testing.assert_allclose(np.diff(line), rate * np.diff(smooth["depth"]), rtol=1e-9)
    assert line.iloc[-1] == smooth["log_hfc_lfc"].iloc[-1]
    assert predictions(smooth.drop(columns="predicted_log_hfc_lfc"), 0.1) == {}
    ends = drawn(value="spectrum", value_options={"eigenvalues": [-0.9, -0.1]}, depth=3000)
    limit = ends["predicted_limit"].iloc[0]
    level = predictions(ends, float(ends["log_rate"].iloc[0]))["predicted limit"]
    assert np.exp(level.iloc[0]) == pytest.approx(limit)
    assert limit == pytest.approx(ends["hfc_lfc"].iloc[-1], rel=1e-3)


def test_the_picture_names_the_curves_that_are_predicted():
    table = drawn(value="spectrum", value_options={"eigenvalues": [0.5, 0.2]}, depth=300)
    rate = float(table["log_rate"].iloc[0])
    names = [line.get_label() for line in draw_run(table, "a run", rate).axes[0].lines]
    assert names == ["simulation", *predictions(table, rate)]


@pytest.mark.parametrize(("stem", "form"), [("simulate", []), ("heads", ["--heads=2"])])
def test_the_command_draws_on_demand_beside_its_table(stem, form, tmp_path, capsys):
    small = ["simulate", *form, "--n=5", "--d=2", "--depth=200", "--points=9", "--device=cpu"]
    for name, options in (("plain", []), ("drawn", ["--plot"]), ("again", ["--plot"])):
        assert oversmoothing.main([*small, *options, "--out", str(tmp_path / name)]) == 0
    printed = capsys.readouterr().out
    plain = {".csv", ".json", ".txt", ".html"}
    assert {path.suffix for path in (tmp_path / "plain").iterdir()} == plain
    written = {path.name: path.read_bytes() for path in (tmp_path / "drawn").iterdir()}
    assert written.keys() == {f"{stem}{kind}" for kind in (*plain, ".png", ".pdf")}
    assert all(name in printed for name in written)
    for name, held in written.items():
        assert (tmp_path / "again" / name).read_bytes() == held, name
    table = tmp_path / "plain" / f"{stem}.csv"
    assert table.read_bytes() == written[f"{stem}.csv"]
    said = written[f"{stem}.txt"].decode()
    assert said.splitlines()[0] in " ".join(printed.split()) and "(certified): " in said
    assert f"{stem}: 5 tokens, 2 features, seed 0" in printed
    assert pd.read_csv(table)["depth"].iloc[-1] == 200


def test_a_trajectory_is_shown_by_some_of_its_depths():
    run = run_of(range(100))
    page = run._repr_html_()
    assert page.startswith("<p>Trajectory(100 depths from 0 to 99, n=2, d=2")
    assert page.count("<tr") == 1 + len(few(100)) <= 1 + ROWS
    last = run.metrics().iloc[-1]
    cells = (f"{last['log_hfc_lfc'] / np.log(10):.3f}", f"{last['cos_mean']:.3f}")
    assert all(f"<td>{cell}</td>" in page for cell in ("99", *cells))
    batched = run_of(range(3), X0=np.stack([START, 2 * START, -START]))._repr_html_()
    assert "Element 0 of the batch" in batched and batched.count("<tr") == 4


@pytest.mark.parametrize("count", [1, 2, 8, 9, 10, 17, 18, 1000])
def test_few_are_spread_from_the_first_to_the_last(count):
    found = few(count)
    assert len(found) <= ROWS and found == sorted(set(found))
    assert found[0] == 0 and found[-1] == count - 1
