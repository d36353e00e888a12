"""Figures of trained models: the picture shows the table, the caption's verdict follows from it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import oversmoothing.paper_figures.digits_models
from oversmoothing.experiments.digits.config import VARIANTS
from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.inspection.sentences import DOES
from oversmoothing.paper_figures import dominance_table, observed_smoothing
from oversmoothing.paper_figures.digits_models import LABEL
from oversmoothing.paper_figures.figure_base import Context, make_figure
from oversmoothing.theory.support.errors import RequirementError
from tests.support.tiny_models import tiny_config, tiny_model


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pd.DataFrame]:
    """Both tables, computed by the figures' own code on tiny models."""
    context = Context(tmp_path_factory.mktemp("results"), device="cpu", progress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            oversmoothing.paper_figures.digits_models,
            "default_config",
            lambda name, seed: tiny_config(name),
        )
        patch.setattr(
            oversmoothing.paper_figures.digits_models, "require_accuracy", lambda model: None
        )
        return {
            module.NAME: module.data(context) for module in (dominance_table, observed_smoothing)
        }


def test_every_model_is_in_both_figures(tables: dict[str, pd.DataFrame]) -> None:
    ours = tables["dominance_table"]
    ours = ours[ours["source"] == dominance_table.OURS]
    assert set(ours["model"]) == set(VARIANTS) == set(tables["observed_smoothing"]["model"])


def test_bars_stack_to_a_hundred_percent_and_carry_their_numbers(
    tables: dict[str, pd.DataFrame],
) -> None:
    table = tables["dominance_table"]
    ours, theirs = dominance_table.draw(table).axes
    for axis, bars in ((ours, 4), (theirs, 3)):
        boxes = [
            patch.get_extents().transformed(axis.transData.inverted()) for patch in axis.patches
        ]
        assert [box.y1 for box in boxes][3::4] == pytest.approx([100.0] * bars)
    assert {"98.92", "1.08", "100.00"} < {text.get_text() for text in theirs.texts}
    assert [tick.get_text() for tick in ours.get_xticklabels()] == list(LABEL.values())
    written = {text.get_text() for text in ours.texts}
    largest = table.groupby("model", sort=False)["h_real_max"].first()
    assert f"{largest['vit+']:.2f}" in written


def test_published_numbers_are_labelled_as_quoted(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["dominance_table"]
    quoted = table[table["source"] == dominance_table.QUOTED]
    assert "quoted" in dominance_table.QUOTED
    assert quoted.groupby("model")["percent"].sum().tolist() == [100.0] * 3
    assert "for comparison alone" in dominance_table.caption(table)
    assert "quoted" in dominance_table.draw(table).axes[1].get_title()


def test_the_verdict_of_the_table_is_computed_from_it(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["dominance_table"]
    assert "ViT+ is dominated by consensus in 100 %" in dominance_table.caption(table)
    altered = table.copy()
    minus = altered["model"] == "vit-"
    altered.loc[minus, "layers_beyond_one"] = 2
    altered.loc[minus, "h_real_min"] = -2.5
    altered.loc[minus, "outside_percent"] = 1.25
    caption = dominance_table.caption(altered)
    assert "In 2 layers some psi^2 exceeds 1 (largest 2.50)" in caption
    assert "1.25 % of \u2212psi^2 leave the safe interval" in caption


def test_lines_show_the_means_of_the_table(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["observed_smoothing"]
    axes = observed_smoothing.draw(table).axes
    for axis, (name, _) in zip(axes[1:4], observed_smoothing.PANELS[1:], strict=True):
        drawn = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
        for model, label in LABEL.items():
            part = table[table["model"] == model]
            assert drawn[label] == pytest.approx(part[name].tolist())


@pytest.mark.parametrize(
    ("change", "cosine", "said"),
    [
        ((-1.0, -1.2, -0.8), 0.6, "smooths its tokens strongly ("),
        ((-1.0, -1.2, -0.8), 0.4, "smooths its tokens mildly ("),
        ((-0.3, -0.35, -0.28), 0.6, "smooths its tokens mildly ("),
        ((1.0, 0.8, 1.2), 0.2, "sharpens its tokens strongly ("),
        ((0.1, 0.05, 0.15), 0.6, "neither smooths nor sharpens its tokens ("),
        (
            (-0.3, -1.0, -0.28),
            0.6,
            "smooths its tokens mildly, which leaves strong smoothing open (",
        ),
        (
            (0.0, -1.0, 1.0),
            0.6,
            "cannot be told to smooth or sharpen (strong smoothing to mild sharpening) (",
        ),
        ((float("nan"),) * 3, 0.6, "cannot be graded ("),
    ],
)
def test_the_caption_grades_as_the_report_of_inspect_does(
    tables: dict[str, pd.DataFrame], change: tuple[float, ...], cosine: float, said: str
) -> None:
    table = tables["observed_smoothing"].copy()
    rows = table["model"] == "vit"
    last = table[rows].index[-1]
    for suffix, moved, turned, end in zip(
        ("", "_low", "_high"), change, (0.0, -0.01, 0.01), (0.0, -0.1, 0.1), strict=True
    ):
        table.loc[rows, f"total_change{suffix}"] = moved
        table.loc[last, f"cos_mean{suffix}"] = cosine + turned
        table.loc[last, f"log_hfc_lfc{suffix}"] = end
    assert f"shared-value ViT {said}" in observed_smoothing.caption(table)


def test_the_caption_has_the_grade_that_inspect_gives(tables: dict[str, pd.DataFrame]) -> None:
    pixels = digits().validation.pixels
    found = inspect(tiny_model("vit-random"), pixels, budget=Plan()).answer
    said = observed_smoothing.caption(tables["observed_smoothing"])
    said = said.split(f"{LABEL['vit-random']} ")[1].split(";")[0]
    assert found.grade is not None and said.startswith(DOES[found.grade])
    assert ("open" in said) == (not found.sure)
    assert f"(ln HFC/LFC {found.change:+.2f}, 95 % interval {found.low:+.2f}" in said


@pytest.mark.parametrize("module", [dominance_table, observed_smoothing])
def test_the_same_table_gives_the_same_files(
    tables: dict[str, pd.DataFrame], module: object, tmp_path: Path
) -> None:
    class Fixed:
        NAME, TITLE = module.NAME, module.TITLE  # type: ignore[attr-defined]
        draw, caption = module.draw, module.caption  # type: ignore[attr-defined]

        @staticmethod
        def data(context: Context) -> pd.DataFrame:
            return tables[module.NAME]  # type: ignore[attr-defined, no-any-return]

    context = Context(tmp_path, progress=False)
    first = make_figure(Fixed, context, tmp_path / "first")  # type: ignore[arg-type]
    second = make_figure(Fixed, context, tmp_path / "second")  # type: ignore[arg-type]
    for kind in ("pdf", "png", "csv", "txt"):
        a, b = getattr(first, kind), getattr(second, kind)
        assert a.read_bytes() == b.read_bytes() and a.stat().st_size > 100


def test_a_model_below_the_required_accuracy_makes_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        oversmoothing.paper_figures.digits_models,
        "default_config",
        lambda name, seed: tiny_config(name),
    )
    with pytest.raises(RequirementError, match="below the required 97 %"):
        dominance_table.data(Context(tmp_path, device="cpu", progress=False))


def test_the_legend_names_what_is_drawn_and_nothing_else() -> None:
    rows = [
        {"source": source, "model": model, "class": name, "percent": percent}
        for source, models in (
            (dominance_table.OURS, ("vit+", "vit-")),
            (dominance_table.QUOTED, ("ViT-Ti",)),
        )
        for model in models
        for name, percent in (("consensus", 60.0), ("smallest", 40.0), ("other", 0.0), ("tie", 0.0))
    ]
    extra = {
        "test_accuracy_percent": 98.0,
        "h_real_min": -1.0,
        "h_real_max": 1.0,
        "outside_percent": 5.0,
        "cos_start_low": 0.1,
        "cos_start_high": 0.2,
    }
    table = pd.DataFrame([row | extra for row in rows])

    def named(given: pd.DataFrame) -> list[str]:
        return [text.get_text() for text in dominance_table.draw(given).legends[0].get_texts()]

    assert named(table) == [dominance_table.MEANING[name] for name in ("consensus", "smallest")]
    tied = table.assign(percent=table["percent"].where(table["class"] != "tie", 2.0))
    assert "tie" in named(tied)
