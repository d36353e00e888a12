"""Two reports on the same inputs: the sentence says what the table says, and no more."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import oversmoothing
from oversmoothing import InputError, Report, compare
from oversmoothing.experiments.inspection.answer import MILD
from oversmoothing.experiments.intervals import FEWEST
from tests.support.tiny_models import random_pixels, tiny_model


def signed(value: float) -> str:
    text = f"{value:+.2f}"
    return "0.00" if text[1:] == "0.00" else text


OUTCOMES = {"smooths more", "smooths less", "the same", "cannot tell"}


def rows(number: int) -> pd.DataFrame:
    return pd.DataFrame({"layer": range(number), "negative_gains_attention": 0.0})


def made(name: str, logs: np.ndarray, cosines: np.ndarray, *by: np.ndarray) -> Report:
    """by: the changes of attention and FFN."""
    return Report(
        model=name, tokens=5, images=logs.shape[1], by_layer=rows(len(logs)), logs=logs,
        cosines=cosines, by_attention=by[0], by_ffn=by[1],
    )  # fmt: skip


def drawn(rng: np.random.Generator, images: int, depth: int, drift: float, name: str) -> Report:
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
    first = drawn(rng, images, depth, float(rng.normal(0, 1)), "first")
    second = drawn(rng, images, other, float(rng.normal(0, 1)), "second")
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
    one = drawn(rng, 5, 3, 0.0, "one")
    by_ffn = one.by_ffn - 0.5
    logs = np.concatenate([one.logs[:1], one.logs[1:] - 0.5 * np.arange(1, 4)[:, None]])
    other = made("other", logs, one.cosines, one.by_attention, by_ffn)
    table = compare(one, other).to_frame()
    assert table["since_input"].to_numpy() == pytest.approx(-0.5 * np.arange(4))
    assert table["since_input_low"].to_numpy() == pytest.approx(
        table["since_input_high"].to_numpy()
    )
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
    with pytest.raises(
        InputError, match="5 images, ViT, ord on 3 images: inspect both on the same"
    ):
        compare(report, oversmoothing.inspect(model, random_pixels(3)))


def test_a_comparison_is_saved_whole(tmp_path):
    reports = [
        oversmoothing.inspect(tiny_model(depth=depth), random_pixels(4)) for depth in (2, 2, 3)
    ]
    for other in reports[1:]:
        found = compare(reports[0], other)
        files = found.save(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "compare.csv", "compare.html", "compare.json", "compare.pdf", "compare.png",
            "compare.txt",
        ]  # fmt: skip
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
