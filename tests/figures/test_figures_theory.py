"""The figures of the theory: their contract, their numbers against the statements, their bytes."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from oversmoothing import main
from oversmoothing.commands import figures
from oversmoothing.paper_figures import lambda_plane, metrics_against_depth
from oversmoothing.paper_figures.figure_base import Context, make_figure, make_kinds, new_figure
from oversmoothing.simulations.drawing.picture import (
    FULL_WIDTH,
    KINDS,
    WIDTHS,
    decade_axis,
    page_width,
    plot_log,
)
from oversmoothing.theory.support.errors import InputError

MODULES = {m.NAME: m for m in (metrics_against_depth, lambda_plane)}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    context = Context(tmp_path_factory.mktemp("results"), seed=0, device="cpu", progress=False)
    return {name: module.data(context) for name, module in MODULES.items()}


@pytest.mark.parametrize("name", list(MODULES))
def test_a_figure_writes_the_same_four_files_again(
    name: str, tables: dict[str, pd.DataFrame], tmp_path: Path
) -> None:
    module: ModuleType = MODULES[name]
    once = SimpleNamespace(
        NAME=module.NAME,
        TITLE=module.TITLE,
        data=lambda context: tables[name],
        draw=module.draw,
        caption=module.caption,
    )
    contents = []
    for folder in ("a", "b"):
        files = make_figure(once, Context(tmp_path), tmp_path / folder)
        paths = (files.pdf, files.png, files.csv, files.txt)
        assert [p.name for p in paths] == [
            f"{name}.{kind}" for kind in ("pdf", "png", "csv", "txt")
        ]
        contents.append([p.read_bytes() for p in paths])
    assert contents[0] == contents[1]
    assert contents[0][0].startswith(b"%PDF") and contents[0][1].startswith(b"\x89PNG")
    assert b"CreationDate" not in contents[0][0]
    read = pd.read_csv(tmp_path / "a" / f"{name}.csv")
    pd.testing.assert_frame_equal(read, tables[name], check_dtype=False)


def test_theory_lies_under_the_simulation(tables: dict[str, pd.DataFrame]) -> None:
    data = tables["metrics_against_depth"]
    both = data.pivot_table(
        index=["case", "depth"], columns="source", values=["log_hfc_lfc", "cos_min", "cos_mean"]
    ).dropna()
    assert len(both) > 40
    assert np.abs(both["log_hfc_lfc"].diff(axis=1).iloc[:, 1]).max() < 1e-11
    assert np.abs(both["cos_mean"].diff(axis=1).iloc[:, 1]).max() < 1e-11


def test_each_case_does_what_its_name_says(tables: dict[str, pd.DataFrame]) -> None:
    data = tables["metrics_against_depth"]
    last = data[data["source"] == "theory"].groupby("case").last()
    smoothing, bounded = last.loc["smoothing"], last.loc["non-smoothing"]
    assert smoothing["verdict"] == "SMOOTHING" and smoothing["log_hfc_lfc"] < np.log(1e-18)
    assert smoothing["cos_min"] == 1.0
    assert bounded["hfc_lfc"] == pytest.approx(bounded["limit"], rel=1e-2)
    # Rank collapse without smoothing: cosines +-1 of both signs (T4b).
    assert bounded["effective_rank"] == pytest.approx(1.0, abs=1e-3)
    assert bounded["cos_min"] == pytest.approx(-1.0, abs=1e-3)
    assert bounded["cos_mean"] == pytest.approx(bounded["cos_mean_limit"], abs=1e-3)
    tie = last.loc["tie"]
    assert tie["rho_consensus"] == pytest.approx(tie["rho_quotient"], rel=1e-12)
    twisted = data[(data["case"] == "complex") & (data["depth"] > 30)]
    assert twisted["effective_rank"].min() > 1.01  # rank 2 at every layer (T3f)
    caption = metrics_against_depth.caption(data)
    assert "rank collapse without smoothing" in caption and "SMOOTHING" in caption


def test_the_slope_of_the_smoothing_case_is_log_r(tables: dict[str, pd.DataFrame]) -> None:
    data = tables["metrics_against_depth"]
    run = data[(data["case"] == "smoothing") & (data["source"] == "theory")]
    slope = (run["log_hfc_lfc"].iloc[-1] - run["log_hfc_lfc"].iloc[-201]) / 200
    assert slope == pytest.approx(run["log_rate"].iloc[0], abs=1e-6)
    rank = (run["log_sigma2_sigma1"].iloc[400] - run["log_sigma2_sigma1"].iloc[200]) / 200
    assert rank == pytest.approx(run["log_r_sigma"].iloc[0], abs=1e-3)


def test_runs_agree_with_the_discs_away_from_their_boundary(
    tables: dict[str, pd.DataFrame],
) -> None:
    runs = tables["lambda_plane"].query("kind == 'run'")
    off = runs[runs["measured"] != runs["predicted"]]
    assert (off["log_rate"].abs() * (lambda_plane.DEPTH // 2) < 2 * lambda_plane.DECAY).all()
    assert set(runs["measured"]) == {"SMOOTHING", "NON_SMOOTHING"}
    inside = np.hypot(runs["re"] + 0.5, runs["im"]) <= 0.5
    assert inside.sum() > 10 and (runs[inside]["measured"] == "NON_SMOOTHING").all()


def test_captions_count_what_the_table_holds(tables: dict[str, pd.DataFrame]) -> None:
    data = tables["lambda_plane"].copy()
    runs = data["kind"] == "run"
    for panel in lambda_plane.PANELS:
        here = data[runs & (data["panel"] == panel)]
        agree = int((here["measured"] == here["predicted"]).sum())
        assert f"{agree} of {len(here)} runs agree" in lambda_plane.caption(data)
    far = data.index[runs & (data["log_rate"] > 0.5)][0]
    data.loc[far, "measured"] = "SMOOTHING"
    assert "not explained" in lambda_plane.caption(data)


# ------------------------------------------------------------------------------ base.py


def test_new_figures_leave_no_global_state() -> None:
    before = dict(mpl.rcParams)
    figure, axes = new_figure(2, 3)
    assert isinstance(figure, Figure) and axes.shape == (2, 3)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("low, high", [(-40000.0, 1.0), (-3.0, 1.0), (0.0, 1.0), (0.3, 0.5)])
def test_decade_axes_label_round_numbers_without_repetition(low: float, high: float) -> None:
    figure, axes = new_figure()
    axis = axes[0, 0]
    plot_log(axis, [0, 1, 2], np.log(10.0) * np.array([low, np.inf, high]), color="black")
    decade_axis(axis)
    figure.canvas.draw()
    labels = [t.get_text() for t in axis.get_yticklabels()]
    assert len(labels) >= 2 and len(set(labels)) == len(labels)
    drawn = axis.lines[0].get_ydata()
    assert np.isnan(drawn[1]) and drawn[0] == pytest.approx(low)


def test_a_figure_that_fails_leaves_earlier_files_alone(tmp_path: Path) -> None:
    def fail(data: pd.DataFrame) -> Figure:
        raise InputError("nothing to draw")

    broken = SimpleNamespace(
        NAME="x",
        TITLE="x",
        data=lambda c: pd.DataFrame({"a": [1]}),
        draw=fail,
        caption=lambda d: "",
    )
    (tmp_path / "x.csv").write_text("earlier")
    with pytest.raises(InputError):
        make_figure(broken, Context(tmp_path), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]
    assert (tmp_path / "x.csv").read_text() == "earlier"


# ------------------------------------------------------------------------ format and width


def test_pictures_come_in_the_kinds_and_for_the_page_that_were_asked_for(tmp_path: Path) -> None:
    def draw(data: pd.DataFrame) -> Figure:
        figure, axes = new_figure(height=3.5)
        axes[0, 0].set_xlabel("layer")
        return figure

    module = SimpleNamespace(
        NAME="x",
        TITLE="x",
        data=lambda c: pd.DataFrame({"a": [1]}),
        draw=draw,
        caption=lambda d: "said",
    )

    def made(folder: str, kinds: list[str], page: str) -> dict[str, bytes]:
        paths = make_kinds(module, Context(tmp_path), tmp_path / folder, kinds, page)
        return {path.suffix: path.read_bytes() for path in paths}

    wide, narrow = made("a", ["svg", "pdf"], "two-column"), made("b", ["svg"], "one-column")
    assert set(wide) == {".csv", ".txt", ".svg", ".pdf"} and set(narrow) == {".csv", ".txt", ".svg"}
    # Points: 72 an inch.
    assert b'width="504pt" height="252pt"' in wide[".svg"]
    assert b'width="396pt" height="198pt"' in narrow[".svg"]
    assert wide == made("c", ["svg", "pdf"], "two-column")
    assert b"dc:date" not in wide[".svg"]
    with pytest.raises(InputError, match="no page 'three'; there are one-column, two-column"):
        made("d", ["png"], "three")
    assert new_figure()[0].get_figwidth() == FULL_WIDTH  # and nothing of it is left behind
    with page_width("one-column"):
        axes = new_figure()[1]
        assert axes[0, 0].xaxis.label.get_fontsize() == pytest.approx(8.5 * 5.5 / 7)


def test_the_command_offers_every_kind_and_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(figures.KINDS) == set(KINDS) and set(figures.PAGES) == set(WIDTHS)
    for words, said in (
        (["--format", "gif"], "'gif' is none of pdf, png, svg"),
        (["--width", "3"], "'3' is none of one-column, two-column"),
    ):
        assert main(["figures", "--list", *words]) == 2
        assert said in capsys.readouterr().err
