"""The study: questions before runs, runs that resume, and the rule that decides questions."""

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import t as student
from torch.nn import functional

from oversmoothing.experiments.digits import vit
from oversmoothing.experiments.digits.data import Reads
from oversmoothing.experiments.digits.training_config import Design
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.study import answers, stacked, study_runs, study_tasks
from oversmoothing.experiments.study.answers import Question, decide, holm, power, seeds_needed
from oversmoothing.experiments.study.protocol import (
    PAPER_SCALE,
    PREREGISTERED,
    TIERS,
    Cell,
    Protocol,
    protocol,
)
from oversmoothing.experiments.study.study_tasks import COARSE, RECIPES, task
from oversmoothing.theory.support.errors import RequirementError
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import study_row

TINY = """
title = "tiny"
[[cells]]
tier = "core"
task = "digits"
steps = 24
seeds = 3
depth = 2
width = 16
heads = 2
form = ["ord", "minus"]
[[cells]]
tier = "trainability"
task = "digits"
steps = 8
seeds = 3
depth = 2
width = 16
heads = 2
form = ["ord", "plus"]
[[question]]
name = "errs less"
says = "Negative sign errs less."
measure = "error"
first = "digits-minus-width16-depth2-heads2-steps24"
second = "digits-ord-width16-depth2-heads2-steps24"
predicts = "less"
margin = 1
negligible = 1
primary = true
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, "utf-8")
    return protocol(path)


def test_the_preregistered_study_asks_of_cells_that_there_are_and_trains_a_seed_at_a_time():
    chosen = protocol()
    assert [each.name.split()[0] for each in chosen.questions if each.primary] == (
        ["P1"] * 2 + ["P2"] * 4 + ["P3"] * 2 + ["P4"] * 2 + ["P5"] * 3 + ["P6"] * 3
    )
    assert {each.name.split()[0] for each in chosen.questions} == {f"P{k}" for k in range(1, 13)}
    assert all(each.sd > 0 for each in chosen.questions)
    blocks = list(chosen.blocks())
    runs = [run for block in blocks for run in block]
    assert len(runs) == len(set(runs)) == sum(seeds for _, seeds in chosen.cells.values())
    assert all(len({seed for _, seed in block}) == 1 for block in blocks)
    order = [(TIERS.index(block[0][0].tier), block[0][1]) for block in blocks]
    assert order == sorted(order)
    core = [each for each in blocks if each[0][0].tier == "core"]
    assert len(core) == 40 and len(core[0]) == 22 and len(core[10]) == 9
    assert len({cell.digest for cell, _ in chosen.cells.values()}) == len(chosen.cells)
    cell, _ = chosen.cells["digits-ord-startmimetic"]
    assert cell.configuration["training"] == vars(RECIPES["digits"])
    # Equal steps at every share of the data, so that data varies and not the length of training.
    assert len({c.steps for c, _ in chosen.cells.values() if c.name.startswith("cifar100")}) == 1


def test_the_paper_s_size_is_that_of_its_vit_ti_and_every_image_is_seen_200_times():
    own = protocol(PAPER_SCALE)
    for cell, seeds in own.cells.values():
        net = StudyNet(cell.design, Reads("pixels", 64, 48, 100, 3), 0)
        assert seeds == 3 and net.reads.side == 32 and cell.fraction == 0.1
        # ViT-Ti's 5.5 million, fewer patches' and classes' apart, and d^2 - d less of each form.
        assert 4.9e6 < sum(p.numel() for p in net.parameters()) < 5.5e6
        assert cell.steps * RECIPES[cell.task].batch / 4500 == pytest.approx(200, rel=1e-4)
    assert {cell.design.form for cell, _ in own.cells.values()} == {"ord", "sym", "plus", "minus"}


@cases(
    "old, new, said",
    ('first = "digits-minus', 'first = "digits-sideways', "no cell"),
    ('predicts = "less"', 'predicts = "odd"', "predicts is one of"),
    ('task = "digits"', 'task = "words"', "task 'words'"),
    ("steps = 24", "steps = 0", "0 steps"),
    ("depth = 2", "deepness = 2", "deepness"),
    ("seeds = 3", "", r"'seeds' is missing\n.*preregistered.toml"),
    ('title = "tiny"', "[", "not TOML"),
    ('title = "tiny"', "base = 1", "unknown key base"),
)
def test_a_protocol_with_a_slip_is_refused_in_a_sentence(tmp_path, old, new, said):
    path = tmp_path / "own.toml"
    path.write_text(TINY.replace(old, new, 1), "utf-8")
    refuses(said, protocol, path)


def test_arms_of_one_seed_see_the_same_batches():
    own = task("digits")
    for fraction in (1.0, 0.1):
        one, again, other = (own.batches(seed, fraction, 32) for seed in (0, 0, 1))
        for _ in range(5):
            x, y = next(one)
            X, Y = next(again)
            assert torch.equal(x, X) and torch.equal(y, Y)
            assert not torch.equal(y, next(other)[1])


def test_a_tenth_is_the_seed_s_own_and_every_image_of_it_is_seen(monkeypatch):
    monkeypatch.setattr(study_tasks, "augmented", lambda pixels, rng, **reach: pixels)
    shares = []
    for seed in (0, 1):
        batches = task("digits").batches(seed, 0.1, 36)
        drawn = torch.cat([next(batches)[0] for _ in range(6)]).flatten(1)
        # Each once in every round of 108.
        assert len(drawn[:108].unique(dim=0)) == 108 == len(drawn.unique(dim=0))
        labels = task("digits").parts.with_fraction(0.1, seed).train.labels
        whole = torch.bincount(task("digits").parts.train.labels)
        assert (torch.bincount(labels) - 0.1 * whole).abs().max() <= 1
        shares.append({tuple(each.tolist()) for each in drawn})
    assert 0 < len(shares[0] & shares[1]) < 40


def test_an_image_of_cifar_is_moved_within_its_reflected_border_or_flipped():
    rng = torch.Generator().manual_seed(0)
    image = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    moved = study_tasks._cropped(image.expand(64, 3, 16, 16), rng)
    wide = functional.pad(image.float(), (2,) * 4, mode="reflect")[0, 0].byte()
    crops = [wide[i : i + 16, j : j + 16] for i in range(5) for j in range(5)]
    crops += [crop.flip(1) for crop in crops]
    found = [[k for k, crop in enumerate(crops) if torch.equal(crop, each[0])] for each in moved]
    assert all(found) and len({k for ks in found for k in ks}) > 20
    assert torch.equal(moved[:, 0], moved[:, 2])
    # Five classes have each superclass.
    assert np.bincount(COARSE).tolist() == [5] * 20


def test_the_text_task_says_the_next_character_and_the_masked_one_hides_its_share():
    own = task("bible")
    inputs, targets = next(own.batches(0, 1.0, 8))
    assert torch.equal(inputs[:, 1:], targets[:, :-1]) and inputs.shape == (8, 64)
    number, alphabet = study_tasks.characters()
    assert len(alphabet) == 65 and len(number) == 4_137_451
    assert "".join(alphabet[k] for k in number[:16].tolist()) == "In the beginning"
    hidden = task("bible-masked")
    inputs, targets = next(hidden.batches(0, 1.0, 256))
    gone = inputs == 65
    assert torch.equal(gone, targets >= 0) and abs(float(gone.double().mean()) - 0.15) < 0.01
    assert (targets[~gone] == study_tasks.IGNORED).all()


def test_the_text_is_refused_in_a_sentence_where_its_package_is_not_there(monkeypatch):
    monkeypatch.setattr(study_tasks, "find_spec", lambda name: None)
    refuses(r"oversmoothing\[text\]", study_tasks.characters.__wrapped__, error=RequirementError)
    refuses("no task 'words'", task, "words")


def test_a_run_is_the_same_again_and_its_row_says_what_it_was(tiny):
    cell, _ = tiny.cells["digits-ord-width16-depth2-heads2-steps24"]
    one, again, other = (study_runs.trained(cell, seed)[1] for seed in (0, 0, 1))
    for name in ("score", "trajectory", "lever", "corruption", "start", "configuration"):
        assert one[name] == again[name]
        assert name == "configuration" or one[name] != other[name]
    json.dumps(one, allow_nan=False)
    watched = one["trajectory"]
    assert {len(each) for each in watched.values()} == {13}
    assert np.shape(watched["hfc_lfc"]) == (13, 3) and np.shape(watched["cos"]) == (13, 2)
    assert one["corruption"][0] == one["score"]["error"] and len(one["corruption"]) == 6
    assert one["made"]["commit"] and one["made"]["versions"]["torch"]


def test_training_is_adamw_by_its_formula_with_the_norm_of_all_gradients_clipped(monkeypatch):
    monkeypatch.setattr(study_runs, "CLIP", 0.25)
    cell = Cell("digits", 3, Design().but(width=16, depth=4, heads=2, std=0.5))
    found = dict(study_runs.trained(cell, 0)[0].named_parameters())
    own, recipe = task("digits"), RECIPES["digits"]
    net = StudyNet(cell.design, own.reads, 0)
    decayed = {id(each) for each in net.decayed()[0]}
    names, values = zip(*net.named_parameters(), strict=True)
    m, v = ([torch.zeros_like(each) for each in values] for _ in range(2))
    sizes = []
    for step, (x, y) in zip(range(1, 4), own.batches(0, 1.0, recipe.batch), strict=False):
        loss = functional.cross_entropy(net(x), y, label_smoothing=recipe.smoothing)
        gradients = torch.autograd.grad(loss, values)
        sizes.append(float(torch.cat([g.flatten() for g in gradients]).norm()))
        rate = study_runs.learning_rate(recipe.rate, stacked.WARM, step - 1, 3)
        with torch.no_grad():
            for k, (each, g) in enumerate(zip(values, gradients, strict=True)):
                g = g * min(1.0, 0.25 / (sizes[-1] + 1e-6))
                m[k] = 0.9 * m[k] + 0.1 * g
                v[k] = 0.999 * v[k] + 0.001 * g**2
                each *= 1 - rate * recipe.decay * (id(each) in decayed)
                root = (v[k] / (1 - 0.999**step)).sqrt() + 1e-8
                each -= rate * m[k] / (1 - 0.9**step) / root
    assert min(sizes) > 0.3  # clipping acts
    for name, each in zip(names, values, strict=True):
        torch.testing.assert_close(found[name], each, rtol=1e-4, atol=2e-5, msg=name)
    # In a stack each network is clipped by its own norm, and small gradients are left alone.
    group = stacked.Alike([net, StudyNet(cell.design, own.reads, 1)], torch.device("cpu"))
    whole = sum(each[0].numel() for each in group.values.values()) ** 0.5
    for each in group.values.values():
        each.grad = torch.ones_like(each)
        each.grad[0] /= 2 * whole
    group.clip()
    for each in group.values.values():
        ends = each.grad.flatten(1).mean(1) * whole
        torch.testing.assert_close(ends, torch.tensor([0.5, 1.0]), rtol=1e-4, atol=0)


def test_a_block_is_finished_before_the_next_and_the_next_call_goes_on(tiny, tmp_path):
    folder, own = tmp_path / "study", ("trainability",)
    assert "12 runs, 12 left" in study_runs.cost(tiny, TIERS, [], 1)
    assert study_runs.run_blocks(tiny, folder, tiers=own, blocks=1, progress=False) == 2
    first = study_runs.read_rows(folder / study_runs.ROWS)
    assert {row["seed"] for row in first} == {0} and len(study_runs.known(first, tiny)) == 2
    assert study_runs.run_blocks(tiny, folder, tiers=own, workers=2, progress=False) == 4
    rows = study_runs.read_rows(folder / study_runs.ROWS)
    assert rows[:2] == first and len(study_runs.known(rows, tiny)) == 6
    assert study_runs.run_blocks(tiny, folder, tiers=own, progress=False) == 0
    assert len(list((folder / study_runs.WEIGHTS).iterdir())) == 6
    # One process or two, the same row but for its times.
    again = study_runs.trained(tiny.cells[rows[-1]["cell"]][0], rows[-1]["seed"])[1]
    assert again["trajectory"] == rows[-1]["trajectory"] and again["score"] == rows[-1]["score"]
    again = partial(study_runs.run_blocks, tiny, folder, tiers=TIERS, progress=False)
    with study_runs.locked(folder):
        refuses("another program", again)
    rows[0]["digest"] = "of an earlier recipe"
    assert len(study_runs.known(rows, tiny)) == 5
    assert "6 runs, 1 left" in study_runs.cost(tiny, own, rows, 1)
    (folder / study_runs.ROWS).write_text('{"cell": 1}\n', "utf-8")
    refuses("line 1 is no row", study_runs.read_rows, folder / study_runs.ROWS)


def test_a_run_that_diverges_has_no_score_and_says_where(tiny, monkeypatch):
    cell, _ = tiny.cells["digits-minus-width16-depth2-heads2-steps24"]
    monkeypatch.setattr(study_runs, "learning_rate", lambda *given: 1e18)
    row = study_runs.trained(cell, 0)[1]
    assert row["diverged"] is not None and "score" not in row and "lever" not in row
    assert math.isnan(answers.value(row, "error"))
    json.dumps(row, allow_nan=False)


def stack_of() -> list[tuple[Cell, int]]:
    usual = Design().but(width=16, depth=2, heads=2, std=0.5)
    designs = [usual.but(form="ord", start="mimetic")]
    designs += [usual.but(form=form) for form in ("ord", "sym", "plus", "minus", "clip-")]
    designs += [usual.but(form="shared plus"), usual.but(form="minus", tied=True)]
    shares = [(each, share) for each in designs[:2] for share in (1.0, 0.1)]
    shares += [(each, 1.0) for each in designs[2:]]
    cells = [Cell("digits", 6, *each, "trainability") for each in shares]
    # Networks of one structure do not stand side by side.
    return [(cell, seed) for seed in (0, 1) for cell in cells]


@cases(
    "device",
    "cpu",
    pytest.param("cuda", marks=[
        pytest.mark.cuda,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ]),
)  # fmt: skip
def test_a_stack_trains_as_its_networks_would_alone(device, monkeypatch):
    monkeypatch.setattr(stacked, "CLIP", 0.25)
    monkeypatch.setattr(study_runs, "CLIP", 0.25)
    stack = stack_of()
    found = stacked.learn(stack, task("digits"), torch.device(device), progress=False)
    for (cell, seed), learnt in zip(stack, found, strict=True):
        net, row = study_runs.trained(cell, seed)
        of_stack, same = study_runs.trained(cell, seed, None, learnt)
        # Theta moves by the rounding of a gradient that is nearly 0; Q and H do not see it.
        np.testing.assert_allclose(of_stack.products(), net.products(), rtol=1e-3, atol=1e-4)
        for name, each in net.named_parameters():
            if not name.endswith("theta"):
                torch.testing.assert_close(
                    dict(of_stack.named_parameters())[name], each, rtol=1e-3, atol=1e-4
                )
        for name in ("loss", "hfc_lfc", "cos"):
            np.testing.assert_allclose(
                same["trajectory"][name][1:], row["trajectory"][name][1:], rtol=0.02, atol=0.01
            )
        assert same["score"]["loss"] == pytest.approx(row["score"]["loss"], abs=1e-4)
        assert same["made"]["together"] == len(stack) and "together" not in row["made"]
        assert same["start"] == row["start"] and same["digest"] == row["digest"]


def test_a_program_that_is_compiled_writes_attention_out_and_says_the_same(monkeypatch):
    compiled = Mock(side_effect=lambda call: call)
    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(vit, "FUSED", 1)
    own = task("digits")
    design = stack_of()[2][0].design
    groups = [
        stacked.Alike([StudyNet(design.but(form=form), own.reads, 0)], torch.device("cpu"))
        for form in ("ord", "minus")
    ]
    program = stacked.Program(stacked.ordinary(design), groups, torch.device("cpu"))
    inputs, targets = next(own.batches(0, 1.0, 4))
    given = (torch.stack([inputs] * 2), torch.stack([targets] * 2), RECIPES["digits"])
    fused = program.losses(*given)
    attend = Mock(wraps=functional.scaled_dot_product_attention)
    monkeypatch.setattr(functional, "scaled_dot_product_attention", attend)
    torch.testing.assert_close(program.compiled()(*given), fused, rtol=1e-5, atol=1e-6)
    assert compiled.called and not attend.called


def test_one_network_that_diverges_leaves_the_others_of_its_stack(monkeypatch):
    stack = stack_of()
    good, ill = stack[0], stack[len(stack) // 2]
    alone = stacked.learn([good], task("digits"), torch.device("cpu"), progress=False)[0]

    def spoilt(design, reads, seed):
        net = StudyNet(design, reads, seed)
        if seed == ill[1]:
            torch.nn.init.constant_(net.scores.weight, math.inf)
        return net

    monkeypatch.setattr(stacked, "StudyNet", spoilt)
    found = stacked.learn([good, ill], task("digits"), torch.device("cpu"), progress=False)
    assert [each[0] for each in found[1].points] == [0] and not found[1].score
    assert found[0].score == pytest.approx(alone.score, abs=1e-4) and found[0].score
    row = study_runs.trained(*ill, None, found[1])[1]
    assert row["diverged"] == 0 and "score" not in row


def test_blocks_on_a_device_are_trained_at_once_and_kept_before_they_are_measured(
    tiny, tmp_path, monkeypatch
):
    own = ("trainability",)
    given = {"tiers": own, "device": torch.device("cpu"), "progress": False}
    assert study_runs.run_blocks(tiny, tmp_path, blocks=1, **given) == 2
    stack = [(cell, 1) for cell, _ in tiny.cells.values() if cell.tier == own[0]]
    place = tmp_path / "stack"
    paths = stacked.kept(stack, place, task("digits"), torch.device("cpu"), progress=False)
    found = stacked.Learnt.kept(paths[0], stack[0][0].digest)
    assert found is not None and stacked.Learnt.kept(paths[0], "of an earlier recipe") is None
    again = stacked.learn(stack, task("digits"), torch.device("cpu"), progress=False)[0]
    assert [each[:2] for each in found.points] == [each[:2] for each in again.points]
    for one, other in zip(found.points, again.points, strict=True):
        torch.testing.assert_close(one[2], other[2])

    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole[: len(whole) // 2])
    refuses(r"is damaged .*: delete it", lambda: study_runs.run_blocks(tiny, tmp_path, **given))
    paths[0].write_bytes(whole)
    learn = Mock(wraps=stacked.learn)
    monkeypatch.setattr(stacked, "learn", learn)
    assert study_runs.run_blocks(tiny, tmp_path, **given) == 4
    assert sum(len(call.args[0]) for call in learn.call_args_list) == 2
    rows = study_runs.read_rows(tmp_path / study_runs.ROWS)
    assert [row["made"]["together"] for row in rows] == [2] * 6
    assert len({(row["cell"], row["seed"]) for row in rows}) == 6
    assert not list(place.iterdir())


def test_what_the_lever_did_to_our_own_networks_is_what_the_rows_say():
    """The typed-in table of the page against the answers, to the digits that it gives."""
    file = PREREGISTERED.with_name("results") / "lever.csv"
    rows = list(csv.reader(file.read_text("utf-8").splitlines()))
    asked = answers.answers(answers.recorded_rows()).table.set_index("question")
    for model, data in (("ViTs of CIFAR-100", "CIFAR-100"), ("ViTs of digits", "digits"),
                        ("decoders of text", "text")):  # fmt: skip
        (own,) = [row for row in rows if row[0] == f"our {model}"]
        for name, cell in zip(("P6", "P7", "P8"), own[2:], strict=True):
            said = re.findall(r"-?\d+\.(\d+)", cell)
            typed = [float(x) for x in re.findall(r"[-+]?\d+\.\d+", cell.replace("\u2212", "-"))]
            found = asked.loc[f"{name} {data}", ["value", "low", "high"]].tolist()
            half = [0.5001 * 10 ** -len(digits) for digits in said]
            assert np.all(np.abs(np.subtract(typed, found)) <= half), (model, name)


def asked(**changes: Any) -> Question:
    given: dict[str, Any] = {"name": "Q", "says": "", "measure": "error", "predicts": "less",
                             "first": "a", "second": "b", **changes}  # fmt: skip
    return Question(**given)


samples = st.lists(st.floats(-3, 3, allow_nan=False), min_size=3, max_size=12).map(np.array)


@given(seen=samples, margin=st.sampled_from([0.0, 1.0]), negligible=st.sampled_from([0.0, 1.0]),
       predicts=st.sampled_from(["less", "greater", "within"]))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_decisions_follow_the_interval_as_it_was_written(seen, margin, negligible, predicts):
    if predicts == "within" and not margin:
        margin = 0.5
    spread = seen.std(ddof=1)
    if spread < 1e-6:
        return
    reach = student.ppf(0.975, len(seen) - 1) * spread / len(seen) ** 0.5
    low, high = seen.mean() - reach, seen.mean() + reach
    found = decide(asked(predicts=predicts, margin=margin, negligible=negligible), seen)
    assert (found.low, found.high) == pytest.approx((low, high))
    near = [abs(x - y) for x in (low, high) for y in (0, margin, -margin, negligible, -negligible)]
    if min(near) < 1e-6:
        return
    if predicts == "within":
        said = "supported" if -margin < low and high < margin else (
            "refuted" if low > margin or high < -margin else "open")  # fmt: skip
    else:
        ends = (low, high) if predicts == "greater" else (-high, -low)
        nothing = bool(negligible) and -negligible < low and high < negligible
        # An effect whose interval leaves 0 out is one, however small.
        small = ("smaller than asked for" if ends[0] > 0 else
                 "the other way, but small" if ends[1] < 0 else "no effect")  # fmt: skip
        said = "supported" if ends[0] > margin else (
            small if nothing else "refuted" if ends[1] < 0 else "open")  # fmt: skip
    assert found.decision == said
    assert (found.p < 0.05) == (said != "open")


def test_without_a_second_cell_the_margin_is_the_end_itself():
    slope = asked(second="", margin=-0.5)
    seen = np.array([-1.0, -1.1, -0.9, -1.05])
    assert decide(slope, seen).decision == "supported"
    assert decide(slope, seen + 0.9).decision == "refuted"
    assert decide(slope, seen + 0.5).decision == "open"
    assert decide(slope, seen[:1]).decision == "open"


def test_holm_is_his_step_down():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == [] and holm([0.9, 0.9]) == [1.0, 1.0]


def supported(question: Question, mean: float, sd: float, *shape: int) -> float:
    """In what share of normal draws, of so many seeds each."""
    draws = np.random.default_rng(0).normal(mean, sd, shape)
    return float(np.mean([decide(question, each).decision == "supported" for each in draws]))


def test_power_is_how_often_the_rule_decides():
    share = supported(asked(predicts="greater", margin=1.0), 1.8, 1.0, 2000, 8)
    wanted = power(8, 1.0, 0.8)
    assert abs(share - wanted) < 4 * (wanted * (1 - wanted) / 2000) ** 0.5


def test_seeds_are_those_of_the_textbook():
    """80 % power of a paired t at 5 %: the table of the design, by another program."""
    for sd, effect, seeds in ((0.75, 0.5, 20), (0.75, 1, 7), (1, 0.5, 34), (2, 1, 34), (2, 2, 10)):
        assert seeds_needed(sd, effect) == seeds
    assert math.isnan(seeds_needed(1.0, 0.0)) and math.isnan(seeds_needed(1.0, 1e-3))


def test_seeds_are_counted_at_the_protocol_s_own_confidence(tiny):
    rows = rows_of(tiny, lambda form, seed: 10.0 - (1 + 0.9 * seed) * (form == "minus"), 3)
    less, more = (
        answers.answers(rows, replace(tiny, confidence=level)).table["needed"].iloc[0]
        for level in (0.8, 0.95)
    )
    assert 2 < less < more


def test_an_interval_within_two_ends_needs_the_seeds_that_miss_neither():
    """A true mean of 0 within +- 1: each end is missed as often as the other."""
    question, n = asked(predicts="within", margin=1.0), int(seeds_needed(1.5, 1.0, width=2.0))
    for seeds, enough in ((n, True), (n - 3, False)):
        assert (supported(question, 0.0, 1.5, 4000, seeds) > 0.79) == enough


def test_a_mean_that_only_the_rounding_of_rows_leaves_is_zero():
    made = answers.answers(answers.recorded_rows())
    frame = made.table.set_index("question")
    assert frame.loc["P3 digits", "value"] == 0
    assert frame.loc["P3 digits", "high"] == pytest.approx(0.19, abs=0.001)
    # Said: how many came out how, then a line each, alike ones together.
    first, *lines = [each.says for each in made.sentences]
    for decision, count in frame["decision"].value_counts().items():
        assert f"{count} {decision}" in first
    known = answers.DECISIONS
    order = [k for line in lines for k, each in enumerate(known) if f", {each}: " in line]
    assert order == sorted(order) and len(order) == len(frame)


def rows_of(chosen: Protocol, error: Callable[[str, int], float], seeds: int) -> list[Any]:
    return [study_row(cell, seed, error(cell.design.form, seed)) for cell, planned in
            chosen.cells.values() for seed in range(min(seeds, planned))]  # fmt: skip


def test_no_difference_is_shown_before_all_seeds_are_there(tiny):
    def error(form, seed):
        return 10.0 + seed - (4 + 0.1 * seed) * (form == "minus")

    for seeds in (2, 3):
        rows = rows_of(tiny, error, seeds)
        asked = answers.answers(rows, tiny).table.iloc[0]
        assert asked["decision"] == ("supported" if seeds == 3 else "not run")
        assert math.isnan(asked["value"]) == (seeds == 2)
        early = answers.answers(rows, tiny, so_far=True).table.iloc[0]
        assert early["value"] == pytest.approx(-4.05 if seeds == 2 else -4.1)
    words = answers.answers(rows, tiny).words()
    first = "1 of 1 questions were run with all their seeds, 3 each: 1 supported."
    assert words.startswith(first)
    assert "errs less, supported: Negative sign errs less. Seen: -4.10 points of error." in words
    assert "mean" not in answers.spreads(rows, tiny).table
    picture = answers.answers(rows, tiny).picture
    assert picture is not None and picture.draw is not None
    turns, leans, lever, trains = picture.draw().axes
    # A line a form of the core; the shifts and their controls of the plain one; dots by form.
    assert len(turns.lines) == 2 and len(leans.lines) == 3 and len(trains.collections) == 2
    said = [text.get_text() for text in lever.get_legend().get_texts()]
    assert said == ["predicted", "random, same norm", "digits"]


@cases(
    "value, half, text",
    (2.25e-8, 0.19, "+0.00"),
    (-1.4521, 0.035, "-1.452"),
    (701.3, 54.0, "+701"),
    (0.5, 0.0, "+0.500"),
)
def test_a_value_has_the_digits_that_its_interval_leaves(value, half, text):
    assert answers.rounded(value, value - half, value + half) == text


def test_what_the_correction_does_not_keep_is_open(tiny):
    """One of many primary questions: the others, without runs, count all the same."""
    rows = rows_of(tiny, lambda form, seed: 10.0 - (3 + 0.3 * seed) * (form == "minus"), 3)
    alone = answers.answers(rows, tiny).table.iloc[0]
    many = replace(tiny, questions=tiny.questions + tuple(
        replace(tiny.questions[0], name=f"other {k}", measure="bits", first=name, second="")
        for k, name in enumerate(list(tiny.cells)[2:] * 10)))  # fmt: skip
    asked = answers.answers(rows[:6], many).table.iloc[0]
    assert (alone["decision"], asked["decision"]) == ("supported", "open")
    assert asked["p"] == alone["p"] < 0.05 < asked["p_holm"] == pytest.approx(21 * asked["p"])
    # Three seeds were not enough: no fewer would decide.
    assert alone["needed"] <= 3 < asked["needed"]


def test_void_runs_are_left_out_and_counted(tiny):
    rows = rows_of(tiny, lambda form, seed: 10.0 - 4 * (form == "minus") + 0.1 * seed**2, 3)
    rows[0]["diverged"] = 7
    asked = answers.answers(rows, tiny).table.iloc[0]
    assert (asked["seeds"], asked["void"]) == (2, 1)
    for each in rows:
        each["diverged"] = 7
    asked = answers.answers(rows, tiny).table.iloc[0]
    assert asked["decision"] == "void" and asked["void"] == 3
    assert "nan" not in answers.answers(rows, tiny).words()
    still = study_row(next(iter(tiny.cells.values()))[0], 0, 1.0)
    assert answers.value(still, "alignment gain") == pytest.approx(0.1)
    still["trajectory"]["cos"] = [[1.0, 1.0], [0.2, 0.31]]
    assert math.isnan(answers.value(still, "alignment gain"))


def test_the_lever_is_read_as_it_was_written():
    lever = {
        "changes": ["shift", "shift", "into disc"], "doses": [-0.1, 0.1, 0.5],
        "effect": [0.2, -0.3, 0.04], "control": [0.0, -0.1, 0.01], "kl": [0.5, 0.2, 0.1],
    }  # fmt: skip
    run = {"lever": lever, "diverged": None, "corruption": [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]}
    assert answers.value(run, "slope") == pytest.approx((-0.1 * 0.2 - 0.1 * 0.2) / 0.02)
    assert answers.value(run, "into disc") == pytest.approx(0.03)
    assert answers.value(run, "KL gap") == pytest.approx(-0.3)
    assert answers.value(run, "cost of corruption") == pytest.approx(3.0)
    refuses("no measure 'colour'", answers.value, run, "colour")


def test_ranks_are_over_the_cells_of_a_group_and_a_diverged_one_is_the_worst():
    cells = [Cell("digits", steps) for steps in (1, 2, 3, 4)]
    rows = [study_row(cell, 0, float(cell.steps)) for cell in cells]
    assert answers._rank(rows, "rank of gradient and loss") == pytest.approx(1.0)
    rows[0]["diverged"] = 3
    assert answers._rank(rows, "rank of gradient and loss") == pytest.approx(-0.2)
    rows = answers.recorded_rows()
    assert "diverged" not in answers.answers(rows).words()
    names = protocol().cells_of(next(x for x in protocol().questions if x.group))
    k = next(k for k, row in enumerate(rows) if row["cell"] == names[0])
    rows = [*rows[:k], {**rows[k], "diverged": 3}, *rows[k + 1 :]]
    said = " ".join(answers.answers(rows).words().split())
    assert "Runs that diverged rank as the largest loss: 1." in said


def test_recorded_rows_are_of_the_study_as_it_stands_and_small():
    chosen, rows = protocol(), answers.recorded_rows()
    of_paper = study_runs.known(rows, protocol(PAPER_SCALE))
    assert len(of_paper) == 12 and len(study_runs.known(rows, chosen)) == len(rows) - 12
    assert len(json.dumps(rows)) < 10 * 2**20
    assert len(answers.answers(rows).table) == len(chosen.questions)
