"""No sentence says other than its numbers: reports are drawn, read, and held against them."""

import json
import math
import os
import re
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

import oversmoothing
from oversmoothing import Report, compare
from oversmoothing.commands.options import wrapped
from oversmoothing.experiments.inspection.answer import CAUSES, MILD, POST_CAUSES
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.repeated.growth import DRAWS
from oversmoothing.simulations.drawing.wording import factor_text
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model

PARTS = [part for parts in CAUSES.values() for part in parts]
NUMBER = r"([+-]\d+\.\d\d|0\.00)"


@st.composite
def drawn(draw: st.DrawFn) -> Report:
    """A report of any signs and sizes, accounted on some of its inputs or on none."""
    depth, images = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size, noise = (draw(st.sampled_from(x)) for x in ([0.0, 0.02, 0.3, 2.0], [0.0, 0.02, 1.0]))
    centre = size * rng.standard_normal((len(PARTS), depth, 1))
    parts = centre + noise * rng.standard_normal((len(PARTS), depth, images))
    steps = parts.sum(axis=0)
    start = 2 * rng.standard_normal((1, images)) * noise + rng.uniform(-2, 2)
    logs = np.concatenate([start, start + np.cumsum(steps, axis=0)])
    cosines = 1 / (1 + np.exp(2 * logs)) if draw(st.booleans()) else rng.uniform(-1, 1, logs.shape)
    accounted = draw(st.integers(0, images))
    share = draw(st.sampled_from([None, 0.0, 0.5, 0.501, 0.97]))
    means = {"hfc_lfc": np.exp(logs), "log_hfc_lfc": logs, "cos_mean": cosines}
    table = pd.DataFrame({name: value.mean(axis=1) for name, value in means.items()})
    table.insert(0, "layer", range(depth + 1))
    table["negative_gains_attention"] = [np.nan, *rng.uniform(0, 1, depth)]
    table["cos_mean_desunk"] = rng.uniform(-1, 1, depth + 1)
    if share is not None:
        table["consensus_share"] = [np.nan, *[share] * depth]
    names = dict(zip(PARTS, parts, strict=True))
    by = {
        f"by_{sublayer}": sum(value for name, value in names.items() if name.startswith(sublayer))
        for sublayer in ("attention", "ffn")
    }
    kept = {name: value[:, :accounted] for name, value in names.items()} if accounted else {}
    given = {"images": images, "by_layer": table, "logs": logs, "cosines": cosines, "parts": kept}
    placement = draw(st.sampled_from(["pre", "post"]))
    return Report(model="m", tokens=5, placement=placement, accounted=accounted, **given, **by)


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
    "the FFN (with any gains of its norm)": "ffn",
}


@settings(deadline=None, max_examples=100)
@given(drawn())
def test_every_verb_has_the_sign_of_its_number(report):
    """What moves far is named, and nothing else; the cause moves furthest the way of the change."""
    short, summary = report.replies[1].short, report.summary()
    assert short in summary
    if not report.parts:
        assert short == "The parts of its layers were not measured."
        return
    sums, cause = numbers(report), report.answer.cause
    said = {}
    for clause in short.rstrip(".").split(", but "):
        acts = re.fullmatch(r"(.+?) (smooth|sharpen)s?(?:, and less so (.+))?", clause)
        if acts is not None:
            names = [acts[1][0].lower() + acts[1][1:], *(acts[3] or "").split(" and ")]
            own = [NAMED[name] for name in names if name]
            said |= dict.fromkeys(own, acts[2])
            assert own == sorted(own, key=lambda name: -abs(sums[name]))
    verbs = {name: "smooth" if value < 0 else "sharpen" for name, value in sums.items()}
    assert said == {name: verbs[name] for name, value in sums.items() if abs(value) >= MILD}
    listed = re.search(r"By part: (.*?)[.;] ", summary)[1].split(", ")
    assert {NAMED[each.rpartition(" ")[0]]: each.split()[-1] for each in listed} == {
        name: signed(value) for name, value in sums.items()
    }
    # In front of an FFN a norm's gains count as its own, behind the sum (Post-LN) they do not.
    assert ("the FFN (with any gains of its norm)" in summary) == (report.placement != "post")
    sign = 1 if float(report.change.mean()) >= 0 else -1
    best = max(sums, key=lambda name: sign * sums[name])
    assert cause.name == (best if sign * sums[best] > 0 else None)
    assert report.accounted > 1 or not cause.sure
    assert ("do not show which part" in summary) == bool(said and not largest_is_told(report))


def largest_is_told(report):
    """Whether the part largest in size exceeds the size of every other, at 95 % over the inputs."""
    causes = POST_CAUSES if report.placement == "post" else CAUSES
    by = [sum(report.parts[part].sum(0) for part in of) for of in causes.values()]
    by = sorted((each * np.sign(each.mean()) for each in by), key=lambda each: -each.mean())
    if (m := len(by[0])) < FEWEST:
        return False
    reach = scipy.stats.t.ppf(0.975, m - 1) / m**0.5
    return all((by[0] - x).mean() > reach * (by[0] - x).std(ddof=1) for x in by[1:])


@settings(deadline=None, max_examples=100)
@given(drawn())
def test_the_grade_is_that_of_the_table_s_own_rows(report):
    does, table = report.replies[0], report.table
    change = float(table["log_hfc_lfc"].iloc[-1] - table["log_hfc_lfc"].iloc[0])
    cosine, ratio = float(table["cos_mean"].iloc[-1]), math.exp(table["log_hfc_lfc"].iloc[-1])
    closer = cosine >= table["cos_mean"].iloc[0]
    first, moved = does.short, does.details[0][0]
    assert ("takes at least 5" in first) == (report.images < FEWEST)
    start, end = re.search(r"goes from (\S+) to (\S+) over", moved).groups()
    assert f"{math.exp(table['log_hfc_lfc'].iloc[0]):.3g}" == start and f"{ratio:.3g}" == end
    logs = table["log_hfc_lfc"].to_numpy()
    if step := re.search(r"largest step is in layer (\d+), a factor of (\S+)\.", moved):
        layer = int(step[1])
        assert step[2] == factor_text(logs[layer] - logs[layer - 1])
        assert (logs[layer] - logs[layer - 1]) * change == max(np.diff(logs) * change)
    way = [words for words, _ in does.details[1:] if words.startswith("On the way")]
    fall = max(np.max(np.maximum.accumulate(y := np.sign(change or 1) * logs) - y), 0)
    assert bool(way) == (fall >= math.log(1.1)) or abs(fall - math.log(1.1)) < 1e-9
    rest = [words for words, _ in does.details[1:] if words.startswith("Without the largest")]
    ends = table["cos_mean_desunk"].iloc[[0, -1]]
    assert bool(rest) == (report.answer.grade < 0)
    for words in rest:
        assert "from {:.3f} to {:.3f} (over".format(*ends) in words
    if "do not show whether" in first:
        assert report.images >= FEWEST
    elif "collapse into one" in first:
        assert cosine >= 0.95 and ratio <= 0.25 + 1e-12
    elif "about as different" in first:
        assert abs(change) < 0.2232
    elif "HFC/LFC alone" in first or "HFC/LFC rises" in first:
        assert abs(change) > 0.2231 and ("rises" in first) == (change > 0)
        assert cosine == table["cos_mean"].iloc[0] or closer == (change > 0)
    else:
        strong = abs(change) >= math.log(2) and (cosine >= 0.5) == (change < 0)
        assert abs(change) > 0.2231 and first.startswith("Yes" if change < 0 else "No")
        assert (
            "strongly" in first.partition(":")[0 if change < 0 else 2].partition(".")[0]
        ) == strong


@settings(deadline=None, max_examples=100)
@given(drawn())
def test_the_spectra_are_never_said_to_agree_where_they_do_not(report):
    summary = report.summary()
    if "consensus_share" not in report.table:
        assert "No spectra were taken" in summary
        return
    share = report.table["consensus_share"].iloc[1]
    assert f"consensus dominates {100 * share:.1f} %" in summary
    if not report.parts:
        return
    sums = numbers(report)
    mixing = sums["mixing"]
    alone = re.search(rf"mixing by itself (smooth|sharpen)s?[a-z ]*? \({NUMBER}\)", summary)
    if alone:
        assert (alone[1] == "smooth") == (mixing < 0) and alone[2] == signed(mixing)
    agrees = (share > 0.5) == (mixing < 0)
    if "agrees in direction" in summary:
        assert agrees
    if "is not what these layers do" in summary:
        assert not agrees
    undone = re.search(
        rf"what they do not see (undoes it|takes back \d+ % of it) \({NUMBER}\)", summary
    )
    if undone:
        rest = sum(sums.values()) - mixing
        assert rest * mixing < 0 and signed(rest) == undone[2]
        assert (undone[1] == "undoes it") == (abs(rest) >= abs(mixing))


@settings(deadline=None, max_examples=100)
@given(drawn())
def test_collapse_is_said_where_the_table_shows_it(report):
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
def test_lines_are_no_wider_than_the_terminal(report, width):
    with mock.patch.dict(os.environ, COLUMNS=str(width)):
        lines = wrapped(report.words()).splitlines()
    assert all(len(line) <= width for line in lines)


# --- of few inputs: no interval, and how many it takes ---

NONE = "at least 5 are needed"


@pytest.fixture
def said(told, tmp_path):
    """What a probe of the untrained ViT says."""
    of = ("probe", "vit-random")
    return lambda *words: " ".join(told(0, *of, *words, "--out", tmp_path).split())


def kept(folder: Path, name: str, *tables: str) -> dict[str, Any]:
    """The JSON of the one NAME beneath a folder, with its picture and these tables beside it."""
    (path,) = folder.rglob(f"{name}.json")
    beside = {each.name for each in path.parent.iterdir()}
    kinds = {f"{name}.{kind}" for kind in ("csv", "txt", "html", "png", "pdf")}
    assert kinds | {f"{each}.csv" for each in tables} <= beside
    return json.loads(path.read_text())


def test_loops_of_two_runs_have_no_interval(tmp_path, said):
    """It was 'agrees on collapse in 100 % of 2 runs (95 % 100 to 100)'."""
    words = ("loop", "--loops", "20", "--plot")
    few = said(*words, "--count", "2")
    assert kept(tmp_path, "loop", "runs", "predictors")["loops"] == 20
    # The legend of the columns alone names one.
    assert f"no interval: 1 input, {NONE}" in few and few.count("95 %") == few.count("its 95 %")
    # Five of ten inputs are scored, and 3 of 6 blocks: both are drawn again.
    more = said(*words, "--count", "10")
    assert "(groups: 3, inputs: 5) it is right on collapse in 100 % of runs" in more
    assert f"100 % of runs (no interval: 3 groups, {NONE}" in more


def test_runs_that_all_agree_have_an_interval_with_a_width(said):
    """With the default count it was '100 % of 40 runs (95 % interval 100% to 100%, 10 inputs)'."""
    found = json.loads(said("loop", "--loops", "20", "--count", "5", "--json"))["scores"]
    for score in found.values():
        assert (score["blocks"], score["inputs"]) == (6, 5)
        assert 0 <= score["agree_low"] < score["agree_high"] <= 1
    whole = [score for score in found.values() if score["agree"] == 1]
    # Wilson's for 5 of 5, 5 / (5 + 1.96^2).
    assert whole and all(abs(score["agree_low"] - 0.5655) < 1e-4 for score in whole)


def test_flips_scored_on_two_inputs_have_no_interval(tmp_path, said):
    """It was 'R² .89 (.89 to .89)'; the share is Wilson's over the inputs, as many as there are."""
    few = said("flips", "--plot", "--count", "4")
    assert few.count(NONE) == 3 and "95 %" not in few
    assert all(row["r2_low"] is None for row in kept(tmp_path, "flips", "scores")["scores"])
    many = said("flips", "--plot", "--count", "10")
    assert ", 10 inputs" in many and ", 5 inputs" in many


def test_readings_of_two_images_have_no_interval(tmp_path, said):
    """It was '61.11 [61.11, 61.11]'."""
    for count, words in ((2, f"no interval: 2 inputs, {NONE}"), (5, "over 5 inputs")):
        assert words in said("readings", "--count", count)
        low = pd.read_csv(tmp_path / "readings.csv")["percent_low"]
        assert (low.isna() == (count == 2)).all()


def test_few_inputs_say_nothing_of_heads_percentiles_or_tilts(tmp_path, said, told):
    """Of three images it was said that no head is told to smooth."""
    words = ("inspect", "vit-random", "--count", "3", "--out", tmp_path)
    record = json.loads(told(0, *words, "--json"))
    assert "no head" not in record["summary"].lower()
    assert all(row["cos_mean_p05"] is None for row in record["layers"])
    few = said("tilt", "--count", "1")
    assert f"no interval: 1 input, {NONE}" in few and "speaks for is not known" in few


def test_stability_shows_the_spread_of_its_random_directions(tmp_path, said):
    """One direction an input was shown as a property of the layer."""
    assert "r2_jvp_observed" in said("stability", "--count", "2", "--plot")
    record = kept(tmp_path, "stability", "distances")
    assert record["gaussian_draws"] == DRAWS and record["inputs"] == 2
    spreads = np.array([[row[f"{name}_spread"] for name in ("closed", "observed")]
                        for row in record["layers"]])  # fmt: skip
    assert (spreads > 0).all() and (spreads < 1).all()


# --- two reports on the same inputs: the sentence says what the table says, and no more ---


def signed(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if text[1:] == "0.00" else text


OUTCOMES = {"smooths more", "smooths less", "the same", "cannot tell"}


def made(name: str, logs: np.ndarray, cosines: np.ndarray, *by: np.ndarray) -> Report:
    """by: the changes of attention and FFN."""
    rows = pd.DataFrame({"layer": range(len(logs)), "negative_gains_attention": 0.0})
    return Report(
        model=name, tokens=5, images=logs.shape[1], by_layer=rows, logs=logs, cosines=cosines,
        by_attention=by[0], by_ffn=by[1],
    )  # fmt: skip


def report_of(rng: np.random.Generator, images: int, depth: int, drift: float, name: str) -> Report:
    """A report whose stack changes ln HFC/LFC by about `drift`, in layers of any sign."""
    by = rng.normal(drift / depth / 2, 0.3, (2, depth, 1)) + rng.normal(0, 0.02, (2, depth, images))
    start = rng.normal(0.3, 0.5, (1, images))
    logs = np.concatenate([start, start + by.sum(0).cumsum(0)])
    return made(name, logs, rng.uniform(-1, 1, (depth + 1, images)), *by)


@pytest.mark.parametrize("seed", range(40))
def test_the_sentence_never_contradicts_the_table(seed):
    rng = np.random.default_rng(seed)
    images, depth = int(rng.choice([1, 4, 5, 20])), int(rng.integers(1, 6))
    other = depth if seed % 4 else depth + 1
    first = report_of(rng, images, depth, float(rng.normal(0, 1)), "first")
    second = report_of(rng, images, other, float(rng.normal(0, 1)), "second")
    found = compare(first, second)
    end, said = found.table.iloc[-1], found.summary()
    assert found.outcome in OUTCOMES and signed(end["since_input"]) in said
    assert found.interval[0] == pytest.approx(end["since_input"])
    low, high = end["since_input_low"], end["since_input_high"]
    if images < FEWEST:
        assert found.outcome == "cannot tell" and "at least 5 are needed" in said
    elif found.outcome == "cannot tell":
        assert low <= 0 <= high and "is not known" in said
    elif found.outcome == "the same":
        assert low > -MILD and high < MILD and "changes HFC/LFC as first does" in said
    else:
        sign = 1 if found.outcome == "smooths less" else -1
        assert min(sign * low, sign * high) > 0
        more = re.search(r"^second (smooths|sharpens) (more|less) than first", said)
        assert more is not None
        assert (more[1] == "sharpens") == (min(first.change.mean(), second.change.mean()) > 0)
        assert ((more[1], more[2]) in {("smooths", "more"), ("sharpens", "less")}) == (sign < 0)
        named = re.search(r"in layer (\d+) \((attention|FFN) ([+-]?[\d.]+)\)", said)
        if named:
            row = found.table.set_index("layer").loc[int(named[1])]
            assert sign * row["log_change_low"] > 0 and sign * row["log_change_high"] > 0
            assert sign * row["log_change"] == (sign * found.table["log_change"]).max()
    assert f"{end['first_hfc_lfc']:.3g}" in said and f"{end['second_hfc_lfc']:.3g}" in said


def test_differences_are_paired_and_the_intervals_those_of_students_t():
    """What the inputs have in common cancels: a constant difference is known exactly."""
    rng = np.random.default_rng(0)
    one = report_of(rng, 5, 3, 0.0, "one")
    by_ffn = one.by_ffn - 0.5
    logs = np.concatenate([one.logs[:1], one.logs[1:] - 0.5 * np.arange(1, 4)[:, None]])
    other = made("other", logs, one.cosines, one.by_attention, by_ffn)
    table = compare(one, other).to_frame()
    assert table["since_input"].to_numpy() == pytest.approx(-0.5 * np.arange(4))
    assert np.allclose(table["since_input_low"], table["since_input_high"])
    assert table["log_change_ffn"].iloc[1:].to_numpy() == pytest.approx(-0.5)
    assert np.allclose(table["log_change_attention"].iloc[1:], 0)
    difference = np.array([-3.0, 0.0, 1.0, 2.0, 5.0])
    logs = np.stack([np.zeros(5), difference])
    none = np.zeros((2, 5))
    other = made("other", logs, none, difference[None], none[:1])
    still = made("still", none, none, none[:1], none[:1])
    # t_4(.975) = 2.776445, s.e. = sqrt(34 / 4) / sqrt(5)
    mean, low, high = compare(still, other).interval
    assert (mean, high - mean) == pytest.approx((1.0, 2.776445 * 1.7**0.5), rel=1e-6)
    assert low < 0 < high and compare(still, other).outcome == "cannot tell"
    # ln 1.25 = .223
    for change, outcome in ((-0.3, "smooths more"), (-0.2, "the same"), (0.3, "smooths less")):
        logs = np.stack([np.zeros(5), np.full(5, change)])
        assert compare(still, made("other", logs, none, logs[1:], none[:1])).outcome == outcome
    # Together surely 1, of either layer not surely anything.
    both = np.stack([difference - 0.5, 1.5 - difference])
    three = np.zeros((3, 5))
    other = made("other", np.stack([three[0], both[0], three[0] + 1]), three, both, none)
    said = compare(made("still", three, three, none, none), other).summary()
    assert "from no one layer for sure" in said


def test_a_model_compared_with_itself_is_the_same_and_inputs_must_agree():
    model = tiny_model()
    report = oversmoothing.inspect(model, random_pixels(5))
    found = compare(report, report)
    assert found.outcome == "the same" and found.interval == (0.0, 0.0, 0.0)
    assert "difference is 0.00" in found.summary() and "measurably" not in found.summary()
    said, other = "5 images, ViT, ord on 3 images: inspect both on the same", random_pixels(3)
    refuses(said, compare, report, oversmoothing.inspect(model, other))


def test_a_comparison_is_saved_whole(tmp_path):
    first, *others = (
        oversmoothing.inspect(tiny_model(depth=depth), random_pixels(4)) for depth in (2, 2, 3)
    )
    for other in others:
        found = compare(first, other)
        files = found.save(tmp_path)
        kinds = ("csv", "html", "json", "pdf", "png", "txt")
        assert {path.name for path in tmp_path.iterdir()} == {f"compare.{kind}" for kind in kinds}
        written = json.loads(files["json"].read_text())
        assert written["summary"] == found.summary() and written["outcome"] == found.outcome
        assert len(written["layers"]) == len(pd.read_csv(files["csv"])) == len(found.table)
    assert list(found.table["layer"]) == [0, 2] and list(found.table["second_layer"]) == [0, 3]
    assert "The depths differ" in found.words()


def test_two_models_are_compared_at_the_command_line(tmp_path, told):
    words = ["inspect", "vit-random", "vit-random", "--count", "5"]
    printed = told(0, *words, "--out", tmp_path)
    assert "changes HFC/LFC as" in printed and "wrote" in printed
    assert (tmp_path / "inspect" / "vit-random, vit-random" / "compare.json").exists()
    assert json.loads(told(0, *words, "--out", tmp_path, "--json"))["inputs"] == 5
