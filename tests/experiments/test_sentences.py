"""No sentence says other than its numbers: reports are drawn, read, and held against them."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
from hypothesis import given, settings, strategies as st

from oversmoothing.commands.options import wrapped
from oversmoothing.experiments.inspection.answer import CAUSES, POST_CAUSES
from oversmoothing.experiments.inspection.report import Report
from oversmoothing.experiments.intervals import FEWEST

PARTS = [part for parts in CAUSES.values() for part in parts]
NUMBER = r"([+-]\d+\.\d\d|0\.00)"


def written(value: float) -> str:
    """Two decimals and a sign, which 0.00 has not."""
    text = f"{value:+.2f}"
    return "0.00" if text[1:] == "0.00" else text


@st.composite
def drawn(draw: st.DrawFn) -> Report:
    """A report of any signs and sizes, accounted on some of its inputs or on none."""
    depth, images = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, noise = (
        draw(st.sampled_from([0.0, 0.02, 0.3, 2.0])),
        draw(st.sampled_from([0.0, 0.02, 1.0])),
    )
    centre = size * rng.standard_normal((len(PARTS), depth, 1))
    parts = centre + noise * rng.standard_normal((len(PARTS), depth, images))
    steps = parts.sum(axis=0)
    start = 2 * rng.standard_normal((1, images)) * noise + rng.uniform(-2, 2)
    logs = np.concatenate([start, start + np.cumsum(steps, axis=0)])
    cosines = 1 / (1 + np.exp(2 * logs)) if draw(st.booleans()) else rng.uniform(-1, 1, logs.shape)
    accounted = draw(st.integers(0, images))
    share = draw(st.sampled_from([None, 0.0, 0.5, 0.501, 0.97]))
    table = pd.DataFrame(
        {
            "layer": range(depth + 1),
            "hfc_lfc": np.exp(logs).mean(axis=1),
            "log_hfc_lfc": logs.mean(axis=1),
            "cos_mean": cosines.mean(axis=1),
            "negative_gains_attention": [np.nan, *rng.uniform(0, 1, depth)],
        }
    )
    if share is not None:
        table["consensus_share"] = [np.nan, *[share] * depth]
    names = dict(zip(PARTS, parts, strict=True))
    by = {
        sublayer: sum(value for name, value in names.items() if name.startswith(sublayer))
        for sublayer in ("attention", "ffn")
    }
    return Report(
        model="m",
        tokens=5,
        images=images,
        by_layer=table,
        logs=logs,
        cosines=cosines,
        by_attention=by["attention"],
        by_ffn=by["ffn"],
        parts={name: value[:, :accounted] for name, value in names.items()} if accounted else {},
        placement=draw(st.sampled_from(["pre", "post"])),
        accounted=accounted,
    )


def numbers(report: Report) -> dict[str, float]:
    """The sums of the causes, anew."""
    return {
        name: float(sum(report.parts[part] for part in of).sum(axis=0).mean())
        for name, of in (POST_CAUSES if report.placement == "post" else CAUSES).items()
    }


NAMED = {
    "attention's mixing": "mixing",
    "the tokens' own scales": "scales",
    "the norms' gains": "gains",
    "the gains of attention's norm": "gains",
    "the FFN": "ffn",
    "the mixing by itself": "mixing",
}


@settings(deadline=None, max_examples=300)
@given(drawn())
def test_every_verb_has_the_sign_of_its_number(report: Report) -> None:
    summary = report.summary()
    sums = numbers(report) if report.parts else {}
    said = re.findall(
        rf"({'|'.join(NAMED)}),?(?: which)? (smooth|sharpen)s?[a-z ]*? ?\({NUMBER}\)", summary
    )
    assert len(re.findall(r"(?:smooth|sharpen)s?[a-z ]*? \((?:[+-]|0\.00)", summary)) == len(said)
    for name, verb, number in said:
        value = sums[NAMED[name]]
        assert written(value) == number and (value < 0) == (verb == "smooth")
        assert abs(float(number)) >= 0.22 or "cause" in summary or "largest part" in summary
    listed = re.search(rf"mixing {NUMBER}, scales {NUMBER}, gains {NUMBER}, FFN {NUMBER}", summary)
    assert (listed is not None) == bool(sums)
    if listed:
        assert list(listed.groups()) == [written(value) for value in sums.values()]


@settings(deadline=None, max_examples=300)
@given(drawn())
def test_the_grade_is_that_of_the_table_s_own_rows(report: Report) -> None:
    summary, table = report.summary(), report.table
    change = float(table["log_hfc_lfc"].iloc[-1] - table["log_hfc_lfc"].iloc[0])
    cosine, ratio = float(table["cos_mean"].iloc[-1]), math.exp(table["log_hfc_lfc"].iloc[-1])
    first = summary.split(": over ")[0]
    if "cannot tell whether" in first:
        assert report.images > 1
        return
    if "collapsed into one" in first:
        assert cosine >= 0.95 and ratio <= 0.25 + 1e-12
    elif "neither smooths nor sharpens" in first:
        assert abs(change) < 0.2232
    elif "m smooths its tokens" in first:
        assert change < -0.2231
        assert ("strongly" in first.split(" open")[0]) == (change <= -math.log(2) and cosine >= 0.5)
    else:
        assert "m sharpens its tokens" in first and change > 0.2231
        assert ("tokens strongly" in first) == (change >= math.log(2) and cosine < 0.5)
    assert ("takes at least 5 to tell" in summary) == (report.images < FEWEST)
    start, end = re.search(r"HFC/LFC goes from (\S+) to (\S+) \(a", summary).groups()
    assert f"{math.exp(table['log_hfc_lfc'].iloc[0]):.3g}" == start and f"{ratio:.3g}" == end
    if "the angles do not close" in summary:
        assert table["cos_mean"].iloc[-1] <= table["cos_mean"].iloc[0] and change < 0
    if "the angles do not open" in summary:
        assert table["cos_mean"].iloc[-1] >= table["cos_mean"].iloc[0] and change > 0


@settings(deadline=None, max_examples=300)
@given(drawn())
def test_the_cause_moves_the_way_of_the_change_and_further_than_any_other(report: Report) -> None:
    summary = report.summary()
    if not report.parts:
        assert "By which part was not measured" in summary
        return
    sums, change = numbers(report), float(report.change.mean())
    sign = 1 if change >= 0 else -1
    found = re.search(rf"(?:[Cc]ause is|largest part is) ({'|'.join(NAMED)}), which", summary)
    if found:
        assert sign * sums[NAMED[found[1]]] == max(sign * value for value in sums.values())
    if "The cause is" in summary:
        assert report.accounted > 1
    if "Its parts cancel" in summary:
        assert min(sums.values()) <= -0.2231 and max(sums.values()) >= 0.2231
    if "No part of its layers" in summary:
        assert max(map(abs, sums.values())) < 0.2232


@settings(deadline=None, max_examples=300)
@given(drawn())
def test_the_spectra_are_never_said_to_agree_where_they_do_not(report: Report) -> None:
    summary = report.summary()
    if "consensus_share" not in report.table:
        assert "No spectra were taken" in summary
        return
    share = report.table["consensus_share"].iloc[1]
    assert f"consensus dominates {100 * share:.1f} %" in summary
    if not report.parts:
        return
    sums = numbers(report)
    agrees = (share > 0.5) == (sums["mixing"] < 0)
    if "as they say" in summary:
        assert agrees
    if "is not what these layers do" in summary:
        assert not agrees
    undone = re.search(
        rf"what they do not see (undoes it|takes back \d+ % of it) \({NUMBER}\)", summary
    )
    if undone:
        rest = sum(sums.values()) - sums["mixing"]
        assert rest * sums["mixing"] < 0 and written(rest) == undone[2]
        assert (undone[1] == "undoes it") == (abs(rest) >= abs(sums["mixing"]))


@settings(deadline=None, max_examples=200)
@given(drawn())
def test_collapse_is_said_where_the_table_shows_it(report: Report) -> None:
    summary, table = report.summary(), report.table
    rows = (table["cos_mean"] >= 0.95) & (table["log_hfc_lfc"] <= math.log(0.25))
    found = re.search(r"count as one \(.*?\) from (the input|layer (\d+)) on", summary)
    assert (found is not None) == bool(rows.iloc[-1])
    if found:
        start = int(found[2] or 0)
        assert rows.iloc[start:].all() and (start == 0 or not rows.iloc[start - 1])
    else:
        k = int(re.search(r"at most \S+ \(layer (\d+)\)", summary)[1])
        assert table["cos_mean"].iloc[k] == table["cos_mean"].iloc[1:].max()


@settings(deadline=None, max_examples=50)
@given(drawn(), st.integers(40, 120))
def test_lines_are_no_wider_than_the_terminal(report: Report, width: int) -> None:
    assert all(len(line) <= width for line in wrapped(report.words(), width).splitlines())
