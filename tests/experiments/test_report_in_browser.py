"""The page of `inspect` in a real browser: one layer at a time, and all can read it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page

from oversmoothing import Report, inspect, open_model
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.report import cell
from oversmoothing.experiments.inspection.sentences import NARROW, WIDE
from oversmoothing.simulations.drawing.web_page import as_data, typeset
from tests.support.browser import DESKTOP, LOADED, PHONE, every_screen, opened
from tests.support.cases import cases
from tests.support.made_models import made, sharing
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import Letters, tiny

KINDS = ("image", "text", "bare")


def report_of(kind: str) -> Report:
    """On images, on texts with words, and with nothing but the stream looked at.

    Without positions equal patches and equal words are equal tokens: some come together.
    """
    if kind == "image":
        vit, pixels = tiny_model("vit-", depth=3), random_pixels(4)
        pixels[:, :4] = 0.5
        with torch.no_grad():
            vit.position.zero_()
        return inspect(vit, pixels, name="tiny")
    if kind == "text":
        bert = tiny("bert")
        with torch.no_grad():
            bert.embeddings.position_embeddings.weight.zero_()
        return inspect(open_model(bert, tokenizer=Letters()), ["aaabb", "cdea"], name="letters")
    return inspect(made(value=2.0, depth=1), sharing(2), name="bare", budget=Plan(ranks=2))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    found = {}
    for kind in KINDS:
        report = report_of(kind)
        found[kind] = (report, report.save(tmp_path_factory.mktemp(kind))["html"])
    return found


def written(value: float) -> str:
    """A number as a table has it: three digits, a true minus, a dash for what is not known."""
    if np.isnan(value):
        return "–"
    return (f"{value:.1e}" if 0 < abs(value) < 0.0005 else f"{value:.3f}").replace("-", "−")


def cells(page: Page, table: str) -> list[list[str]]:
    """The text of a table's body, row by row as it stands."""
    return list(page.evaluate(ROWS, table))


UNFOLD = "() => document.querySelectorAll('details').forEach((each) => { each.open = true; })"
VALUES = """() => Array.from(document.querySelectorAll("#values > div"),
  (pair) => [pair.dataset.name, pair.lastChild.textContent])"""
ROWS = """(id) => Array.from(document.getElementById(id).tBodies[0].rows,
  (row) => Array.from(row.cells, (cell) => cell.textContent))"""
# The corners of the first line of a chart, and its ticks: place and text.
CURVE = """(key) => {
  const svg = document.querySelector(`svg[data-key=${key}]`);
  const ticks = Array.from(svg.querySelectorAll(".grid line"),
    (line) => [Number(line.getAttribute("y1")), line.nextSibling.textContent]);
  return [svg.querySelector(".series").getAttribute("d"), ticks];
}"""
BARS = """() => {
  const svg = document.querySelector("svg[data-key=account]");
  const zero = Number(svg.querySelector(".zero").getAttribute("y1"));
  return Array.from(svg.querySelectorAll("rect"), (bar) => ["x", "y", "height"]
    .map((name) => Number(bar.getAttribute(name))).concat(zero));
}"""


def in_map(page: Page, layer: int, head: int) -> Locator:
    """The cell of a head in the map."""
    return page.locator(f"#map tbody tr:nth-child({head + 1}) td:nth-child({layer + 1})")


def shown(page: Page) -> dict[str, str]:
    """What stands below the slider, by the name of its column."""
    return dict(page.evaluate(VALUES))


def test_tables_have_the_numbers_of_the_report(chromium, pages):
    for report, path in pages.values():
        with opened(chromium, path) as work:
            for table, wide in (("by-layer", False), ("by-layer-whole", True)):
                rows = report.short_table(wide=wide).to_numpy(float)
                expected = [[str(int(row[0])), *map(written, row[1:])] for row in rows]
                assert cells(work.page, table) == expected
            if not report.heads.empty:
                rows = cells(work.page, "by-head")
                assert len(rows) == len(report.heads)
                assert [row[2] for row in rows] == list(map(written, report.heads["log_change"]))


def test_the_slider_moves_the_layer_and_shows_its_row_of_the_table(chromium, pages):
    for report, path in pages.values():
        table = report.short_table(wide=True)
        titles = {title: name for name, title in (NARROW | WIDE).items()}
        with opened(chromium, path) as work:
            web = work.page
            web.locator("#layer").focus()
            for layer in reversed(range(len(table))):
                assert web.locator("#layer-value").inner_text() == str(layer)
                row = table.iloc[layer].drop("layer")
                expected = {
                    titles[str(title)]: written(value)
                    for title, value in row.items()
                    if not np.isnan(value)
                }
                assert shown(web) == expected
                for key, column in (("ratio", "HFC/LFC"), ("cosine", "cosine"), ("rank", "rank")):
                    said = web.locator(f"#said-{key}").inner_text()
                    assert said.startswith(f"Layer {layer}: {column} {written(row[column])}")
                for chosen in ("by-layer", "by-layer-whole"):
                    now = web.locator(f"#{chosen} tr.now td:first-child")
                    assert now.all_text_contents() == [str(layer)]
                heard = web.locator("#layer").get_attribute("aria-valuetext") or ""
                assert written(row["HFC/LFC"]) in heard and written(row["cosine"]) in heard
                web.keyboard.press("ArrowLeft")
            assert not work.complaints


def test_curves_go_through_the_values_of_their_layers(chromium, pages):
    """Two ticks give the scale of an axis, and every corner of a line the value back."""
    named = {"cosine": "cos_mean", "rank": "effective_rank", "ratio": "log_hfc_lfc"}
    for report, path in (pages["image"], pages["bare"]):
        with opened(chromium, path) as work:
            curves = {key: work.page.evaluate(CURVE, key) for key in named}
        for key, (d, ticks) in curves.items():
            (y0, low), (y1, high) = ticks[0], ticks[-1]
            ends = [float(text.replace("−", "-")) for text in (low, high)]
            if key == "ratio":
                ends = list(np.log(ends))
            drawn = np.array([float(point.split()[1]) for point in re.split("[ML]", d)[1:]])
            values = ends[0] + (drawn - y0) / (y1 - y0) * (ends[1] - ends[0])
            # Places are written to a tenth of the 104 units of the axis.
            error = 0.06 / 104 * abs(ends[1] - ends[0])
            assert np.abs(values - report.table[named[key]]).max() <= error


def test_bars_add_up_to_the_change_of_their_layer(chromium, pages):
    for kind in ("image", "bare"):
        report, path = pages[kind]
        parts = report.table.filter(regex="^log_change_(attention|ffn)_(body|scales|gains)$")
        if parts.empty:
            parts = report.table[["log_change_attention", "log_change_ffn"]]
        with opened(chromium, path) as work:
            bars = work.page.evaluate(BARS)
        drawn: dict[float, list[float]] = {}
        for x, y, height, zero in bars:
            upward = y + height <= zero + 1e-6
            drawn.setdefault(round(x, 3), []).append(height if upward else -height)
        sums = np.array([sum(heights) for _, heights in sorted(drawn.items())])
        sizes = np.array([np.abs(heights).sum() for _, heights in sorted(drawn.items())])
        inner = parts.iloc[1:]
        unit = sizes[0] / inner.abs().sum(axis=1).iloc[0]
        # A browser holds lengths in binary32.
        np.testing.assert_allclose(sums / unit, inner.sum(axis=1), atol=1e-7)


def test_the_pointer_says_the_values_of_a_layer_and_a_click_chooses_it(chromium, pages):
    report, path = pages["image"]
    last = len(report.table) - 1
    with opened(chromium, path) as work:
        chart, said = work.page.locator("svg[data-key=cosine]"), work.page.locator("#said-cosine")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        work.page.mouse.move(box["x"] + box["width"] * (34 + 8) / 300, box["y"] + 20)
        mean = report.table["cos_mean"]
        assert said.inner_text().startswith(f"Layer 0: cosine {written(mean[0])}")
        work.page.mouse.move(box["x"] + 5, box["y"] - 5)
        assert said.inner_text().startswith(f"Layer {last}: cosine {written(mean[last])}")
        chart.click(position={"x": box["width"] * (42 + 244 / last) / 300, "y": 20.0})
        assert work.page.locator("#layer").input_value() == "1"


@pytest.mark.parametrize("table", ["by-layer-whole", "by-head"])
def test_sorting_sorts_by_every_column_with_the_unknown_last(chromium, pages, table):
    report, path = pages["image"]
    columns = report.short_table(wide=True) if table == "by-layer-whole" else report.heads
    with opened(chromium, path) as work:
        web = work.page
        web.evaluate(UNFOLD)
        buttons = web.locator(f"#{table} th button")
        assert buttons.count() == columns.shape[1]
        key = ["layer", "head"] if table == "by-head" else ["layer"]
        names = [str(name) for name in columns]
        for k, name in enumerate(names):
            buttons.nth(k).focus()
            for ascending in (True, False):
                web.keyboard.press("Enter")
                said = "ascending" if ascending else "descending"
                heads = web.locator(f"#{table} th").all()
                sorts = [head.get_attribute("aria-sort") for head in heads]
                assert sorts == [said if j == k else None for j in range(len(names))]
                values = columns[name].to_numpy(float)
                of = dict(zip(map(tuple, columns[key].to_numpy(int)), values, strict=True))
                rows = [tuple(map(int, row[: len(key)])) for row in cells(web, table)]
                found = np.array([of[row] for row in rows])
                known = found[~np.isnan(found)]
                assert not np.isnan(found[: len(known)]).any()
                steps = np.diff(known) if ascending else -np.diff(known)
                assert (steps >= 0).all() and len(found) == len(columns)
        # A sorted table is still the one that the slider reads.
        web.locator("#layer").fill("0")
        assert shown(web)["hfc_lfc"] == written(np.exp(report.table["log_hfc_lfc"][0]))


def test_the_map_has_every_head_and_answers_to_the_keyboard(chromium, pages):
    for kind in ("image", "text"):
        report, path = pages[kind]
        grid = report.heads.set_index(["layer", "head"])
        with opened(chromium, path) as work:
            web = work.page
            assert web.locator("#map tbody td").count() == len(grid)
            for name in ("log_change", "margin", "share", "dobrushin", "entropy", "sink_mass"):
                web.locator("#of-map").select_option(name)
                for (layer, head), value in grid[name].items():
                    cell = in_map(web, layer, head)
                    assert cell.inner_text() == written(value)
                    low, high = (grid[f"log_change_{end}"][layer, head] for end in ("low", "high"))
                    if name == "log_change" and value:  # none where the interval holds 0
                        share = cell.evaluate("(x) => Number(x.style.getPropertyValue('--share'))")
                        assert (share == 0) == (not (low > 0 or high < 0))
            depth = len(report.by_attention)
            assert web.locator("#said-map").inner_text().startswith(f"Layer {depth}, head 0: ")
            for svg in web.locator("svg.chart").all():
                assert "layer" in svg.locator("text").all_text_contents()
            assert "over their mean" not in web.locator("body").inner_text()
            assert "logarithmic axis" in web.locator("#title-ratio").inner_text()
            web.locator("#map td[tabindex='0']").focus()
            web.keyboard.press("ArrowRight")
            web.keyboard.press("ArrowDown")
            assert web.locator("#map td[tabindex='0']").count() == 1
            said = web.locator("#said-map").inner_text()
            change = written(grid["log_change"][2, 1])
            assert said.startswith(f"Layer 2, head 1: ln HFC/LFC {change}")
            web.keyboard.press("Enter")
            assert web.locator("#layer").input_value() == "2"
            assert web.locator("#map td.now").count() == web.locator("#map tbody tr").count()
            in_map(web, 1, 0).click()
            assert web.locator("#layer").input_value() == "1"


def test_the_three_answers_come_first(chromium, pages):
    for report, path in pages.values():
        with opened(chromium, path) as work:
            shown = work.page.locator(".reply").all_inner_texts()
            assert len(shown) == len(report.replies) == 3
            for text, reply in zip(shown, report.replies, strict=True):
                short, *details = (
                    typeset(words).striptags()
                    for words in (reply.short, *(words for words, _ in reply.details))
                )
                assert text.startswith(reply.question) and short in text
                assert all(words in text for words in details)
                assert all(known in text for _, known in reply.details)
            box = work.page.locator("svg.chart").first.bounding_box()
            assert box is not None and box["y"] + box["height"] < DESKTOP[1]


def test_the_slider_stays_in_sight_of_what_it_moves(chromium, pages):
    with opened(chromium, pages["image"][1], size=PHONE) as work:
        work.page.evaluate(UNFOLD)
        for place in ("#values", "#clusters", "#map"):
            work.page.locator(place).scroll_into_view_if_needed()
            box = work.page.locator("#layer").bounding_box()
            assert box is not None and 0 <= box["y"] < PHONE[1]


def test_blue_smooths_in_the_map(chromium, pages, tmp_path):
    report = pages["image"][0]
    change = report.heads["log_change"]
    told = replace(report, heads=report.heads.assign(log_change_low=change, log_change_high=change))
    with opened(chromium, told.save(tmp_path)["html"]) as work:
        for layer, head, value in told.heads[["layer", "head", "log_change"]].itertuples(
            index=False
        ):
            style = in_map(work.page, layer, head).get_attribute("style") or ""
            assert ("--smooths" if value < 0 else "--sharpens") in style
            share = float(re.findall(r"--share: ([\d.e-]+)", style)[0])
            assert share == pytest.approx(abs(value) / change.abs().max())


def test_tokens_are_marked_on_the_image_and_in_the_words(chromium, pages):
    for kind in ("image", "text"):
        report, path = pages[kind]
        tokens = report.tokens_together
        assert (tokens["cluster"] >= 0).any() and (tokens["cluster"] < 0).any()
        with opened(chromium, path) as work:
            web = work.page
            web.evaluate(UNFOLD)
            for layer in range(len(report.table)):
                web.locator("#layer").fill(str(layer))
                for number, rows in tokens[tokens["layer"] == layer].groupby("input"):
                    rows = rows.sort_values("token")
                    joined = rows[rows["cluster"] >= 0]
                    count = joined["cluster"].nunique()
                    said = web.locator(f"#said-input-{number}").inner_text()
                    assert f"{len(joined)} of {len(rows)} tokens are in {count} cluster" in said
                    figure = web.locator("#clusters figure").nth(int(str(number)))
                    if kind == "image":
                        # CLS has no place on the image, and is said.
                        assert "Token 0: " in said
                        marks = figure.locator("rect title").all_text_contents()
                        clusters = rows["cluster"].iloc[1:]
                        ends = ["alone" if c < 0 else f"cluster {c + 1}" for c in clusters]
                        assert [mark.split(": ")[1] for mark in marks] == ends
                    else:
                        words = figure.locator(".token > span").all_text_contents()
                        subs = figure.locator(".token > sub").all_text_contents()
                        assert words == list(rows["word"])
                        assert subs == ["" if c < 0 else str(c + 1) for c in rows["cluster"]]


@every_screen
def test_all_can_read_the_page_and_it_asks_for_nothing(chromium, pages, screen):
    for kind, (_, path) in pages.items():
        with opened(chromium, path, **screen) as work:
            work.page.evaluate(UNFOLD)
            work.readable()
            assert work.page.evaluate(LOADED) == [True] * (1 if kind == "bare" else 2)


def test_without_scripts_the_tables_and_pictures_stand(chromium, pages):
    for kind, (report, path) in pages.items():
        with opened(chromium, path, java_script_enabled=False) as work:
            web = work.page
            # What is folded opens without a script.
            for summary in web.locator("main > details > summary").all():
                summary.click()
            assert web.locator("#by-layer tbody tr").count() == len(report.table)
            assert web.locator("#by-layer").is_visible()
            assert web.locator("img.wide").count() == (1 if kind == "bare" else 2)
            assert all(image.is_visible() for image in web.locator("img.wide").all())
            assert not any(part.is_visible() for part in web.locator(".scripted").all())
            if kind == "text":
                assert web.locator("#words").is_visible()


def test_on_paper_nothing_is_folded_or_cut(chromium, pages):
    with opened(chromium, pages["image"][1]) as work:
        web = work.page
        web.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        web.emulate_media(media="print")
        assert web.locator("details:not([open])").count() == 0
        assert web.locator("#by-layer th").all_inner_texts()[1] == "HFC/LFC"
        web.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        assert web.locator("details[open]").count() == 0


def test_words_cannot_leave_the_data_of_a_page():
    words = ["</script><!--<script>", "a<b", "\u2028", '"']
    held = str(as_data(words))
    assert "<" not in held and json.loads(held) == words


@cases(
    "value, text, exact",
    (np.nan, "–", None),
    (0.0, "0.000", "0.0"),
    (-0.25, "−0.250", "-0.25"),
    (3.2e-7, "3.2e−07", "3.2e-07"),
    (np.inf, "∞", "Infinity"),
    (-np.inf, "−∞", "-Infinity"),
    (7, "7", 7),
)
def test_a_cell_has_its_text_and_all_its_digits(value, text, exact):
    assert cell(value) == {"text": text, "value": exact}
