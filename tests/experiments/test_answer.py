"""The answer of a report: cause, grade and certainty are right on models made to be known."""

import math
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from oversmoothing import Comparison, Report, compare, inspect, open_model
from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training import trained
from oversmoothing.experiments.digits.training_config import TrainConfig, default_config
from oversmoothing.experiments.inspection.answer import CAUSES, Advice, Grade, advice, answer, grade
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.observe import PART_NAMES
from oversmoothing.experiments.inspection.sentences import by_what, does_it, what_to_try
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.models.pictures import picture_folder
from oversmoothing.experiments.models.sources import named_inputs
from oversmoothing.theory.proofs.ledger import claims
from tests.support.cases import cases
from tests.support.made_models import draw, made, sharing

PARTS = [part for parts in CAUSES.values() for part in parts]

# (settings, cause, grade): one cause acts in each, or two of which one wins. `large` is of inputs.
KNOWN = [
    ({"value": 0.15}, "mixing", Grade.STRONG_SMOOTHING),
    ({"value": 0.03}, "mixing", Grade.MILD_SMOOTHING),
    ({"value": 0.6}, "mixing", Grade.COLLAPSED),
    ({"value": -0.4}, "mixing", Grade.STRONG_SHARPENING),
    ({"value": 0.04, "gain": 5.0}, "gains", Grade.STRONG_SMOOTHING),
    ({"value": -0.02, "gain": 5.0}, "gains", Grade.STRONG_SHARPENING),
    ({"value": -0.5, "gain": -1.0}, "gains", Grade.COLLAPSED),
    ({"value": 0.08, "gain": -1.0}, "gains", Grade.STRONG_SHARPENING),
    ({"push": 0.3}, "ffn", Grade.STRONG_SMOOTHING),
    ({"push": 3.0, "depth": 8}, "ffn", Grade.COLLAPSED),
    ({"pull": 0.2}, "ffn", Grade.STRONG_SHARPENING),
    ({"value": 0.15, "large": 30.0}, "scales", Grade.MILD_SMOOTHING),
    ({"value": 0.3, "large": 10.0, "share": 1.0}, "scales", Grade.STRONG_SMOOTHING),
    ({"value": -0.15, "large": 30.0}, "scales", Grade.STRONG_SHARPENING),
    ({"pull": 0.2, "large": 30.0}, "scales", Grade.STRONG_SHARPENING),
]
NAMED = {
    "mixing": "attention's mixing",
    "scales": "the tokens' own scales",
    "gains": "the gains of attention's norm",
    "ffn": "the FFN",
}
# The same for inputs that differ by much: each cause both ways, the gains of either sign.
VARIED = [
    ({"value": 0.05}, "mixing", Grade.MILD_SMOOTHING),
    ({"value": -0.4, "share": 1.0}, "mixing", Grade.STRONG_SHARPENING),
    ({"value": 0.04, "gain": 5.0}, "gains", Grade.STRONG_SMOOTHING),
    ({"value": -0.2, "gain": -1.0}, "gains", Grade.STRONG_SMOOTHING),
    ({"value": 0.08, "gain": -1.0}, "gains", Grade.STRONG_SHARPENING),
    ({"push": 0.3}, "ffn", Grade.STRONG_SMOOTHING),
    ({"pull": 0.2, "share": 1.0}, "ffn", Grade.STRONG_SHARPENING),
    ({"value": 0.15, "large": 30.0}, "scales", Grade.MILD_SMOOTHING),
    ({"value": -0.15, "large": 30.0}, "scales", Grade.STRONG_SHARPENING),
]


def asked(settings: dict[str, float], count: int, spread: float = 0.0) -> Report:
    """The report on a made model, or on plain inputs that are its own."""
    of_inputs = {"share": 1.0 if "pull" in settings else 0.5, "large": 0.0}
    drawn = {name: settings.get(name, usual) for name, usual in of_inputs.items()}
    built = {name: value for name, value in settings.items() if name not in of_inputs}
    return inspect(made(**built), sharing(count, spread=spread, **drawn), name="made", budget="all")


@pytest.mark.parametrize(("settings", "cause", "expected"), KNOWN)
def test_every_single_cause_is_named_with_its_grade(settings, cause, expected):
    report = asked(settings, 12)
    found = report.answer
    assert found.cause is not None and found.cause.name == cause and found.cause.sure
    assert found.grade == expected and found.certainty == "told"
    verb = "sharpen" if expected > 0 else "smooth"
    does, why, tried = report.replies
    assert "do not show which part" not in report.summary()
    assert does.short.startswith("Yes" if expected < 0 else "No")
    assert (
        f"{NAMED[cause]} {verb}" in why.short.lower().replace("ffn", "FFN") or " and " in why.short
    )
    assert tried.short.startswith("Nothing") == (not report.advice)
    if expected > 0:
        assert all("gains of attention's norm" in each.words for each in report.advice)
    for each in report.advice:
        assert (each.known == "proved") == bool(each.claims)
        assert each.measured or each.known != "measured"
        assert set(each.claims) <= set(claims())


@pytest.mark.parametrize("count", [1, 6, 100])
@pytest.mark.parametrize(("settings", "cause", "truth"), VARIED)
def test_cause_grade_and_certainty_are_right_on_few_inputs_and_many(settings, cause, truth, count):
    """Few inputs leave open what they do not tell; what they tell is what many say."""
    found = asked(settings, count, spread=0.8)
    said, summary = found.answer, found.summary()
    assert said.cause is not None and said.cause.name == cause
    if count < FEWEST:
        assert said.certainty == "cannot tell" and not said.cause.sure
        assert "to speak of others takes at least 5" in summary and "no interval" in summary
        return
    assert said.least is not None and said.most is not None
    assert said.least <= truth <= said.most
    assert (said.certainty == "told") == (said.grade == said.least == said.most)
    assert ("do not show which part is the largest" in summary) == (not said.cause.largest)
    if count == 100:
        assert said.grade == truth and said.certainty == "told" and said.cause.sure


def test_the_way_against_the_change_is_said_from_a_tenth_on():
    for path, words in (
        ([0.0, 1.0, 0.5, 2.0], "falls from 2.72 after layer 1 to 1.65 after layer 2."),
        ([2.0, 2.2, 1.0, 0.0], "rises from 7.39 at the input to 9.03 after layer 1."),
        ([0.0, 1.0, 0.95, 2.0], None), ([0.0, 1.0, 1.5, 2.0], None),
    ):  # fmt: skip
        logs = np.array(path)[:, None] + np.linspace(-0.01, 0.01, 5)
        said = answer(logs, np.zeros_like(logs), {})
        details = does_it(said, "5 images").details
        assert (said.against is None) == (words is None)
        assert [each[0] for each in details[1:]] == (
            [] if words is None else [f"On the way it {words}"]
        )


def test_nothing_acts_nothing_is_said_to():
    report = inspect(made(), sharing(12), name="made")
    assert report.answer.grade == Grade.NONE and report.answer.sure and not report.advice
    assert "Does made smooth? No: its tokens end about as different" in report.summary()
    assert "No part of its layers moves it far." in report.summary()


def test_what_cancels_is_said_to_cancel():
    """Gains of size 1/10 undo nearly all of a strong mixing."""
    report = inspect(made(value=0.6, gain=0.01), sharing(12), name="made")
    assert report.answer.grade == Grade.NONE
    words = "Attention's mixing smooths, but the gains of attention's norm sharpen."
    assert words in report.summary()
    assert re.search(r"do not see takes back 9\d % of it \(\+", report.summary())


def test_the_largest_part_is_told_though_what_is_named_as_the_cause_is_not():
    """The gains are the largest by far, against the change; three others share the change."""
    sizes = {"attention_body": -0.2, "attention_scales": -0.15, "ffn_body": -0.2}
    parts = {
        name: np.array([[sizes.get(name, 0.0)]]) + 0.01 * draw(1, 12, seed=k).numpy()
        for k, name in enumerate(PART_NAMES)
    }
    parts["attention_gains"] = parts["attention_gains"] + 0.5
    logs = np.concatenate([np.zeros((1, 12)), sum(parts.values())])
    found = answer(logs, np.full(logs.shape, 0.3), parts)
    said = by_what(found, (0.0, 0.0))
    assert said.short == "The gains of attention's norm sharpen."
    assert not found.cause.sure and "do not show" not in said.details[0][0]
    parts["attention_body"] = parts["attention_body"] - 0.3
    even = answer(logs, np.full(logs.shape, 0.3), parts)
    assert "do not show which part is the largest" in by_what(even, (0.0, 0.0)).details[0][0]


@pytest.mark.parametrize("count", [5, 10])
def test_a_grade_that_is_told_is_wrong_for_few(count):
    """Of inputs whose mean change is that between two grades, 5 % at most are told the wrong one,
    up to what is drawn."""
    rng, wrong, draws = np.random.default_rng(0), 0, 1000
    for _ in range(draws):
        change = math.log(1.25) * -1.05 + 0.3 * rng.standard_normal(count)
        logs, cosines = np.stack([0 * change, change]), np.full((2, count), 0.3)
        found = answer(logs, cosines, {})
        wrong += found.sure and found.grade != Grade.MILD_SMOOTHING
    assert wrong / draws < 0.05


def test_the_grade_falls_with_the_cosine_and_rises_with_the_change():
    changes, levels = np.linspace(-2, 2, 21), np.linspace(-1, 1, 21)
    for end in (-3.0, 0.0):
        found = np.array([[grade(c, cos, end) for cos in levels] for c in changes])
        assert (np.diff(found, axis=0) >= 0).all() and (np.diff(found, axis=1) <= 0).all()


def test_a_falling_ratio_with_tokens_apart_is_mild_at_most():
    assert grade(-3.0, 0.26, -2.0) == Grade.MILD_SMOOTHING


def test_what_is_undefined_or_infinite_is_no_grade_or_the_inputs_own():
    start, five = [0.0, 0.1, 0.0, 0.1, 0.0], np.ones(5)
    logs = np.array([start, [np.nan, -1.0, -1.0, -1.0, -1.0]])
    assert answer(logs, np.full((2, 5), 0.3), {}).grade is None
    equal = np.array([start, -np.inf * five])
    found = answer(equal, np.stack([0.3 * five, five]), {})
    assert found.grade == Grade.COLLAPSED and found.sure and found.collapsed_from == 1


def test_collapse_is_dated():
    cosines = np.array([[0.1], [0.97], [0.5], [0.96], [0.99]])
    logs = np.array([[1.0], [-2.0], [0.0], [-2.0], [-3.0]])
    assert answer(logs, cosines, {}).collapsed_from == 3
    assert answer(logs[:4][::-1], cosines[:4][::-1], {}).collapsed_from is None
    assert answer(logs[3:], cosines[3:], {}).collapsed_from == 0


def test_the_sentence_on_the_trained_deit(real):
    """The mixing smooths, as the theory says, and the gains of its norms undo it."""
    model, given = open_model(real("deit-tiny-patch16-224")), picture_folder(real("photographs"), 6)
    report = inspect(model, given, name="DeiT", budget=Plan(6, 6, 6, 2))
    found, summary = report.answer, report.summary()
    assert (
        found.cause is not None and found.cause.sums["mixing"] < -2 < 2 < found.cause.sums["gains"]
    )
    assert found.grade in (Grade.NONE, Grade.MILD_SHARPENING) and found.collapsed_from is None
    assert "ttention's mixing" in summary and "the gains of attention's norm sharpen" in summary
    assert "the mixing by itself smooths (-" in summary
    assert "what they do not see undoes it (+" in summary
    assert [each.known for each in report.advice] == ["measured"]
    assert "in an earlier run of the trained DeiT-Ti on 50 other photographs" in report.words()


@cases(
    "ratios, cosines, says, tries",
    ((1.0, 0.6), (0.6, 0.5), "Yes, by HFC/LFC alone", None),
    ((1.0, 1.6), (0.5, 0.6), "No: HFC/LFC rises, though", "Nothing: there is no smoothing"),
    ((1.0, math.nan), (0.5, math.nan), "This is not known", "Nothing yet"),
    ((1.0, 1.6), (0.6, 0.5), "No: its tokens grow apart mildly", "Nothing: there is no smoothing"),
)
def test_the_short_answer_says_nothing_other_than_its_numbers(ratios, cosines, says, tries):
    logs, angles = (np.repeat(np.array(x)[:, None], 6, axis=1) for x in (np.log(ratios), cosines))
    found = answer(logs, angles, {})
    does = does_it(found, "6 inputs")
    tried = what_to_try(advice(found, placement="pre", negative_gains=0.0), found)
    assert does.short.startswith(says)
    assert tried.short.startswith(tries) if tries else not tried.short.startswith("Nothing")


def test_a_decoder_is_told_of_no_mean_that_shows_later_tokens():
    logs, angles = (np.repeat(np.array(x)[:, None], 6, axis=1) for x in ((0.0, -1.0), (0.2, 0.6)))
    found = answer(logs, angles, {})
    plain, causal = (
        advice(found, placement="pre", negative_gains=0.0, causal=c, in_disc=0.41)
        for c in (False, True)
    )
    said = "\n".join(words for words, _ in what_to_try(plain, found).details)
    assert "Subtract a part tau of the mean" in what_to_try(plain, found).short
    assert "untested on trained models" in said.lower() and "41 % of this model's lie there" in said
    assert "causal" not in said and not any("mean over" in each.words for each in causal)
    (disc,) = causal
    assert "this model's is causal: above the diagonal it is 0" in disc.how


# --- what is said to be measured is what the commands in docs/guide/compare.md give ---


ROOT = Path(__file__).parents[2]
NUMBER = r"([+-]\d\.\d\d)"


def given(settings: dict[str, float]) -> list[Advice]:
    """The advice that carries a measurement, of those on a made model."""
    return [each for each in asked(settings, 12).advice if each.measured]


def figures(each: Advice) -> tuple[float, ...]:
    """(with, without, difference, low, high) as the advice says them; each stands on the page."""
    found = re.findall(NUMBER, each.measured)
    page = (ROOT / "docs/guide/compare.md").read_text(encoding="utf-8").replace("\u2212", "-")
    assert len(found) >= 5 and all(number in page for number in found), each.measured
    return tuple(map(float, found[:5]))


def both(models: list[Any], inputs: Any) -> Comparison:
    return compare(*(inspect(each, inputs, budget=Plan()) for each in models))


def test_figures_agree_with_one_another_and_stand_where_they_apply():
    """The disc where the mixing smooths, the gains where they undo it."""
    (disc,) = given({"value": 0.15})
    assert disc.claims == ("T3c",) and "measured on a small ViT of this project" in str(disc)
    (gains,) = given({"value": 0.08, "gain": -1.0})
    assert gains.known == "measured" and str(gains).endswith("in training was not tried]")
    for each in (disc, gains):
        with_it, without, difference, low, high = figures(each)
        assert with_it - without == pytest.approx(difference, abs=0.011) and low < difference < high
    page = (ROOT / "docs/guide/compare.md").read_text(encoding="utf-8")
    assert "accuracies are 96.9 and 98.6 %" in page and "96.9 in place of 98.6 %" in disc.measured
    assert not given({"push": 0.3}) and not given({"value": 0.15, "large": 30.0})


def test_a_trained_vit_whose_h_stays_in_the_disc_smooths_less(tmp_path):
    """The measurement in small: half the depth and width, a few epochs."""
    small = {"depth": 4, "width": 32, "epochs": 8, "log_every": 4}
    models = [
        open_model(trained(TrainConfig(variant=name, **small), tmp_path, progress=False).model)
        for name in ("vit", "vit-")
    ]
    for layer in models[1].layers:
        h = torch.linalg.eigvals(layer.heads.total())
        assert float(((h + 0.5).abs()).max()) <= 0.5 and float(h.abs().min()) > 0
    found = both(models, digits().validation.pixels)
    assert found.outcome == "smooths less" and found.interval[1] > 0


def test_the_figure_of_the_disc_is_that_of_the_trained_digits():
    results = ROOT / "results"
    configs = [default_config(variant) for variant in ("vit", "vit-")]
    if not all((results / config.folder_name()).exists() for config in configs):
        pytest.skip("needs the digits models: oversmoothing train")
    models = [open_model(trained(config, results).model) for config in configs]
    found = both(models, digits().validation.pixels)
    (disc,) = given({"value": 0.15})
    with_it, without, difference, *_ = figures(disc)
    own = [float(report.change.mean()) for report in (found.second, found.first)]
    # Training is not the same to the last bit on every machine: +0.46 on one, +0.63 on another.
    assert own == pytest.approx([with_it, without], abs=0.25)
    assert found.interval[0] == pytest.approx(difference, abs=0.35)


def test_the_figure_of_the_gains_is_that_of_the_trained_deit(real):
    """On each fifth of its photographs, whose interval holds what the fifty gave."""
    model = open_model(real("deit-tiny-patch16-224"))
    plain = deepcopy(model.module)
    for layer in plain.vit.layers:
        layer.layernorm_before.weight.data.fill_(1)
    # Those that `--count 50` draws; the first fifty by name gave -0.90.
    inputs = named_inputs(model, images=str(real("photographs")), count=50, drawn=0)[::5]
    found = both([model, replace(open_model(plain), prepare=model.prepare)], inputs)
    assert found.outcome == "smooths more"
    (gains,) = given({"value": 0.08, "gain": -1.0})
    _, low, high = found.interval
    assert low < figures(gains)[2] < high
