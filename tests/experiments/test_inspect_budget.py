"""What an inspection costs: passes, products, attention in memory; and what a budget buys."""

import gc
import json
import subprocess
import sys
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from oversmoothing import inspect, open_model
from oversmoothing.experiments.inspection.budget import (
    Plan,
    checked_budget,
    costs,
    foresee,
    plan_of,
)
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.observe import Observer
from oversmoothing.experiments.models.model import Model
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import DEIT_TI, Letters, tiny

INPUTS = 8


@pytest.fixture(scope="module")
def deit():
    """Two layers of DeiT-Ti's width, heads and tokens, with random weights."""
    return open_model(tiny("vit", **DEIT_TI))


@pytest.fixture(scope="module")
def pixels():
    return torch.randn(INPUTS, 3, 224, 224, generator=torch.Generator().manual_seed(1))


def test_small_work_is_never_cut():
    report = inspect(open_model(tiny("vit")), torch.randn(6, 3, 32, 32), budget=0)
    assert (report.closer, report.spectra) == (6, 6)


def spent(model: Model, inputs: Tensor, **how: Any) -> tuple[int, float]:
    """(passes of the module, products in units of those of one pass on the inputs)."""
    passes = []
    handle = model.module.register_forward_hook(lambda *_: passes.append(1))
    counts = []
    try:
        for run in (lambda: model.run(inputs), lambda: inspect(model, inputs, **how)):
            passes.clear()
            with torch.no_grad(), FlopCounterMode(display=False) as counter:
                run()
            counts.append(counter.get_total_flops())
    finally:
        handle.remove()
    return len(passes), counts[1] / counts[0]


@cases("how, most", ({}, 4), ({"budget": Plan(INPUTS, INPUTS, INPUTS)}, 8))
def test_the_default_costs_four_forward_passes_at_most_and_all_on_all_inputs_eight(
    deit, pixels, how, most
):
    passes, products = spent(deit, pixels, **how)
    assert passes == 1 and products <= most


def test_one_layers_attention_is_in_memory_at_a_time(deit, pixels):
    """Every tensor of the size of attention that is alive when a layer is handed on."""
    seen = Observer(deit, checked_budget(Plan(2, 2, 2, 1)), 2)
    alive: list[int] = []

    def see(number, trace, keep, verified):
        seen.see(number, trace, keep, verified)
        gc.collect()
        tokens = keep.shape[1]
        held = {
            each.untyped_storage().data_ptr(): each.untyped_storage().nbytes()
            for each in gc.get_objects()
            if type(each) is Tensor and each.ndim == 4 and each.shape[-2:] == (tokens, tokens)
        }
        alive.append(len(held))

    for batch in stream(deit, pixels[:2], see=see):
        assert not batch.traces
    assert alive == [1, 1]


def test_a_budget_is_spent_on_inputs_in_turn(deit):
    """More passes, never less of anything; all of it in the end; two inputs closely at least."""
    plans = [plan_of(deit, 197, 100, budget) for budget in (0, 4, 6, 10, 20, 40, 1e9)]
    for less, more in pairwise(plans):
        assert all(getattr(less, name) <= number for name, number in vars(more).items())
    assert (plans[0].closely, plans[0].spectra, plans[-1].spectra) == (2, 0, 100)
    assert [plan.why for plan in plans[:2]] == [0, 3] and plan_of(deit, 197, 3, 4).why == 0
    cost = costs(deit, 197)
    for budget, plan in zip((6, 10, 20), plans[2:], strict=False):
        assert budget - 1 < cost.of(plan, 100) <= budget


def test_a_model_is_read_and_timed_on_one_thread(deit, pixels):
    """On a loaded machine the threads of a pool wait for each other: 88 s in place of 10."""
    threads: list[int] = []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    handle = deit.module.register_forward_hook(lambda *_: threads.append(torch.get_num_threads()))
    try:
        foresee(deit, pixels, 4, 32)
        assert 2 <= len(threads) <= 4
        open_model(deit.module)
    finally:
        handle.remove()
        torch.set_num_threads(before)
    assert set(threads) == {1}


@pytest.mark.parametrize("budget", [-1, "much", float("nan"), True, None])
def test_what_is_no_budget_is_refused(budget):
    refuses("give a number of forward passes, 0 or more, or 'all'", checked_budget, budget)


def test_a_dry_run_says_what_it_would_take_and_writes_nothing(tmp_path, told):
    words = ["inspect", "vit-random", "--count", "3", "--out", str(tmp_path), "--dry-run"]
    said = told(0, *words)
    assert "3 inputs of 17 tokens: about " in said
    assert "HFC/LFC on all, causes and heads on 3, spectra on 3" in said
    assert "forward passes" in said and "MiB beyond the model" in said
    assert not (tmp_path / "inspect").exists()


def test_what_is_foreseen_is_what_is_done(deit, pixels):
    said = foresee(deit, pixels, 4, 32)
    report = inspect(deit, pixels)
    assert (said.tokens, said.inputs) == (report.tokens, report.images) == (197, INPUTS)
    assert (said.plan.closely, said.plan.spectra) == (report.closer, report.spectra)
    assert said.seconds[0] <= said.seconds[1] and "this machine's present load" in str(said)
    assert "more than the budget" not in str(said)
    over = str(foresee(deit, pixels, 0, 32))
    assert "the budget of 0 passes (--budget)" in over and "on at least 2 inputs, and" in over
    refuses("how many inputs there are is not known", lambda: foresee(deit, iter(pixels), 4, 32))


def test_inputs_that_are_not_looked_at_closely_have_the_same_streams(deit, pixels):
    few, all_of_them = (inspect(deit, pixels[:4], budget=Plan(each, each, each)) for each in (1, 4))
    np.testing.assert_array_equal(few.logs, all_of_them.logs)
    np.testing.assert_array_equal(few.by_ffn, all_of_them.by_ffn)
    assert few.closer == few.accounted == 1 and all_of_them.closer == 4
    assert json.dumps(few.to_json_object())


def test_a_long_text_costs_the_same_wherever_it_stands(monkeypatch):
    """What is said before it starts is what is done, whatever the order and the batches."""
    model = open_model(tiny("gpt2", n_positions=321), tokenizer=Letters())
    texts = ["abc", "cabba", "bcab", "aabcc", "cab", "bca", "abca" * 80]
    # Each pass takes a second, and a token its share of the longest text's.
    clock = SimpleNamespace(perf_counter=count().__next__)
    with monkeypatch.context() as stopped:
        stopped.setattr("oversmoothing.experiments.inspection.budget.time", clock)
        foreseen = foresee(model, texts, 4, 32)
    assert foreseen.share == sum(len(text) + 1 for text in texts) / (7 * 321)
    assert foreseen.seconds == pytest.approx((foreseen.passes * 7 * foreseen.share,) * 2)
    said = foreseen.plan
    assert said.closely > said.spectra
    for order, size in ((texts, 32), (texts, 2), (texts[::-1], 2)):
        report = inspect(model, order, batch_size=size)
        assert (report.closer, report.spectra) == (said.closely, said.spectra)


def test_heads_are_explained_whatever_the_batches():
    """The spectra of the heads that are named are taken of three inputs, not of the first batch."""
    model, plan = tiny("vit", num_attention_heads=4), Plan(closely=8, why=3)
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    whole = inspect(model, images, budget=plan).heads
    assert whole["margin"].notna().any()
    for size in (1, 2, 3):
        heads = inspect(model, images, budget=plan, batch_size=size).heads
        pd.testing.assert_frame_equal(heads, whole, rtol=1e-4, atol=1e-5)


def test_what_is_looked_at_closely_has_its_ranks():
    model, images = tiny("vit"), torch.randn(3, 3, 32, 32)
    ranks = (inspect(model, images, budget=Plan(k, 2)).table["rank_growth"] for k in (0, 1, 2))
    first, *others = ranks
    assert all(first.equals(other) for other in others) and first.notna().all()


# --- which files of the package an answer enters: what a reader of it has to know at most ---


# The files behind the report of a folder: those that are loaded, and those of which a function runs
# (`__init__.py` and `moved.py` apart, as in tests/test_budgets.py); fewer is better, more needs a
# reason.
LOADED, RUN = 57, 40
ASKED = """
import sys
from pathlib import Path
run = set()
def seen(frame, event, _):
    if event == "call" and frame.f_code.co_flags & 1 and frame.f_code.co_name[0] != "<":
        run.add(frame.f_code.co_filename)
sys.setprofile(seen)
import oversmoothing
assert oversmoothing.main(["inspect", sys.argv[1], "--images", sys.argv[2], "--out", "out"]) == 0
sys.setprofile(None)
root = Path(oversmoothing.__file__).resolve().parent
loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
for kind, files in (("loaded", loaded), ("run", run)):
    for path in sorted(Path(file).resolve() for file in files if file):
        if path.is_relative_to(root):
            print(kind, path.relative_to(root).as_posix())
"""


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    """Of `inspect` at the command line, on a folder of transformers' weights so large that spectra
    are not in the budget: what takes those is the theory of the verdict."""
    place = tmp_path_factory.mktemp("entered")
    tiny("vit", **DEIT_TI).save_pretrained(place / "model")
    (place / "images").mkdir()
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3))):
        Image.fromarray(pixels.astype(np.uint8)).save(place / "images" / f"{number}.png")
    words = [sys.executable, "-c", ASKED, "model", "images"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=place).stdout
    lines = [line.partition(" ") for line in said.splitlines()]
    return {kind: [name for one, _, name in lines if one == kind] for kind in ("loaded", "run")}


def test_inspect_of_a_model_folder_enters_no_file_of_digits(entered):
    assert "experiments/models/sources.py" in entered["run"]
    assert not [name for name in entered["loaded"] if "digits" in name]


def test_inspect_of_a_model_folder_enters_so_many_files_at_most(entered):
    run = [name for name in entered["run"] if not name.endswith(("__init__.py", "moved.py"))]
    assert len(run) <= RUN, "\n".join(run)
    assert len(entered["loaded"]) <= LOADED, "\n".join(entered["loaded"])
