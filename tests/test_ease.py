"""What a new user stumbles over: each complaint, once heard, is a test."""

import json
import re
import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
import torch

import oversmoothing
from oversmoothing.simulations import running
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import Stack, pixels, tiny


def run_of(depth=(0, 1, 9)) -> oversmoothing.Trajectory:
    return oversmoothing.evolve(
        X0=np.eye(4, 2), A=np.full((4, 4), 0.25), W=-0.5 * np.eye(2), depth=depth
    )


def test_metrics_take_arrays_and_lists():
    X = np.random.default_rng(0).standard_normal((3, 5, 4))
    exact = oversmoothing.metrics(torch.from_numpy(X))
    for form in (X, X.tolist()):
        found = oversmoothing.metrics(form)
        assert all(torch.equal(found[name], exact[name]) for name in exact)
    assert oversmoothing.metrics(X.astype(np.float32))["cos_mean"].shape == (3,)
    for nonsense in ("text", [["a"]], 42, [[1.0], [2.0, 3.0]], None):
        refuses("X", oversmoothing.metrics, nonsense)


def test_states_are_counted_from_the_end_too():
    assert torch.equal(run_of().X(-1)[0], run_of().X(2)[0])


def test_what_is_printed_is_short():
    report = oversmoothing.inspect(tiny_model(), random_pixels(2))
    described = oversmoothing.open_model(tiny("vit"))
    objects = [run_of(), report, oversmoothing.compare(report, report), described]
    for each in objects:
        assert len(repr(each)) < 120 and "\n" not in repr(each) and "tensor" not in repr(each)
    assert repr(run_of()) == (
        f"Trajectory(3 depths from 0 to 9, n=4, d=2, method='{run_of().method}')"
    )
    assert "2 layers" in repr(described)
    verdict = oversmoothing.verdict(A=[[1.0]], H=[[2.0]])
    for each in (*objects, verdict):
        page = each._repr_html_()
        assert page.startswith("<p>") and "<script" not in page


def test_names_in_a_notebook_are_text_and_no_markup():
    report = oversmoothing.inspect(tiny_model(), random_pixels(2), name="<b>x</b>")
    for each in (report, oversmoothing.open_model(tiny("vit")).renamed("<b>x</b>")):
        assert "&lt;b&gt;x" in each._repr_html_() and "<b>x" not in each._repr_html_()


TABLES = ("by-layer", "by-layer-whole")


def test_the_page_shows_six_columns_and_the_rest_when_asked(tmp_path):
    report = oversmoothing.inspect(tiny_model(), random_pixels(3))
    page = report.save(tmp_path)["html"].read_text("utf-8")
    narrow, wide = (re.findall(f'<table[^>]*id="{i}">(.*?)</table>', page, re.S) for i in TABLES)
    assert len(narrow) == len(wide) == 1
    assert narrow[0].count("<th ") == 6 < wide[0].count("<th ")
    assert wide[0].count("<th ") == len(report.short_table(wide=True).T)
    assert f"All {wide[0].count('<th ')} columns" in page
    for table in (*narrow, *wide):
        assert table.count("<tr>") == 1 + len(report.table)
    assert "@media (max-width" in page


def test_every_panel_has_a_title_in_words():
    report = oversmoothing.inspect(tiny_model(), random_pixels(3))
    for figure in (report.plot(), oversmoothing.compare(report, report).plot()):
        panels = [axis.get_title(loc="left") for axis in figure.axes]
        named = [title for title in panels if title]  # a colour bar has none
        assert len(named) in (3, 10) and all(len(title.split()) >= 3 for title in named)
        assert [title[0] for title in named] == list("abcdefghij"[: len(named)])
        layers = [axis for axis in figure.axes if axis.get_xlabel().startswith("layer")]
        assert all(tick == round(tick) for axis in layers for tick in axis.get_xticks())


def test_a_model_in_a_notebook_is_a_row_for_each_kind_of_layer():
    model = oversmoothing.open_model(tiny("llama"))
    assert model._repr_html_().count("<tr") == 2 and "<td>1 to 2</td>" in model._repr_html_()
    first, second = model.layers
    mixed = replace(model, layers=(first, first, first, replace(second, ffn=None), first))
    shown = mixed._repr_html_()
    assert [f"<td>{x}</td>" in shown for x in ("1 to 3", "4", "5")] == [True] * 3
    assert shown.count("<td>no</td>") == 1 and "pre: rms" in shown
    assert "Note: it was read" in model.noted("it was read so")._repr_html_()


KEPT = r"no kept depth: 3 are kept, \[0, 1, 9\]"
NO_MODEL = "is no model: give a module, a folder"
OF_ANOTHER_KIND = {
    "a state that was not kept": (lambda: run_of().X(3), KEPT),
    "a state before the first": (lambda: run_of().X(-4), KEPT),
    "a number as a model": (lambda: oversmoothing.inspect(42, random_pixels(2)), NO_MODEL),
    "a list as a model": (lambda: oversmoothing.inspect([1.0], random_pixels(2)), NO_MODEL),
    "no model": (lambda: oversmoothing.inspect(None, random_pixels(2)), NO_MODEL),
    "what a model does not take": (
        lambda: oversmoothing.inspect(Stack(), pixels()),
        "cannot run on this batch",
    ),
    "a verdict on a batch": (
        lambda: oversmoothing.verdict(A=np.full((2, 3, 3), 1 / 3), H=np.eye(2)),
        "a verdict is on one matrix",
    ),
    "a state by no number": (lambda: run_of().X("last"), "'last': give a whole number"),
    "a state by half a number": (lambda: run_of().state(0.5), "0.5: give a whole number"),
    "no inputs": (lambda: oversmoothing.inspect(tiny_model(), None), "the inputs are NoneType"),
    "a number as inputs": (lambda: oversmoothing.inspect(tiny_model(), 42), "the inputs are int"),
    "one text": (
        lambda: oversmoothing.inspect(tiny("gpt2"), "a text"),
        "the inputs are a single text: give a list",
    ),
    "half a batch": (
        lambda: oversmoothing.inspect(tiny_model(), random_pixels(2), batch_size=0.5),
        "batch_size is 0.5: give a whole number",
    ),
    "two numbers compared": (lambda: oversmoothing.compare(1, 2), "int is no report"),
    "a dtype by name": (
        lambda: oversmoothing.open_model(tiny("vit"), dtype="float32"),
        r"give one of torch, torch.float32",
    ),
    "a device that is none": (
        lambda: oversmoothing.open_model(tiny("vit"), device="abacus"),
        "the device 'abacus' is not available here",
    ),
    "no name": (lambda: oversmoothing.open_model(""), "no model is named"),
    "watched now and then": (
        lambda: oversmoothing.Watcher(tiny("vit"), every="often"),
        "every is 'often': give a whole number",
    ),
}


@pytest.mark.parametrize("what", OF_ANOTHER_KIND)
def test_input_of_another_kind_is_answered_in_a_sentence(what):
    ask, said = OF_ANOTHER_KIND[what]
    refuses(said, ask)


def test_arrays_that_cannot_be_written_are_read_without_a_warning(recwarn):
    X = np.random.default_rng(0).standard_normal((4, 3))
    X.flags.writeable = False
    assert oversmoothing.metrics(X)["cos_mean"].shape == ()
    assert not recwarn.list


@pytest.mark.parametrize("depth", [1e3, np.float64(1000), [0.0, 1e3]])
def test_depths_may_be_written_as_floats(depth):
    assert run_of(depth).depths == (0, 1000)
    found = oversmoothing.verdict(A=[[0.5, 0.5]] * 2, H=[[1.0]], X0=[[1], [2]], depth=depth)
    assert 1000 in found.hfc_lfc
    for wrong in (1.5, float("nan"), float("inf"), -1.0):
        refuses("depth", run_of, wrong)
        refuses("depth", oversmoothing.verdict, A=[[1.0]], H=[[1.0]], X0=[[1]], depth=wrong)


def test_depths_at_the_command_line(told):
    words = ["verdict", "--example", "GT4", "--json", "--json", "--depth", "5", "--depth"]
    assert list(json.loads(told(0, *words, "1", "1e6"))["hfc_lfc"]) == ["1", "5", "1000000"]
    for wrong in ("-3", "1.5", "many", "1e99", "nan", "1" * 400):
        assert "whole number of layers" in told(2, *words, wrong)


def test_simulate_has_its_default_depth_and_takes_floats(capsys, tmp_path):
    words = ["simulate", "--n", "4", "--d", "2", "--points", "2", "--out", str(tmp_path)]
    for depth, most in ((["--depth", "1e3"], 1000), ([], 1000)):
        assert oversmoothing.main([*words, *depth]) == 0
        capsys.readouterr()
        lines = (tmp_path / "simulate.csv").read_text().splitlines()
        assert lines[-1].startswith(f"{most},")


def test_a_second_report_lies_beside_the_first(tmp_path, capsys):
    words = ["inspect", "vit-random", "--count", "2", "--out", str(tmp_path)]
    for _ in range(3):
        assert oversmoothing.main(words) == 0
    found = sorted(path.name for path in (tmp_path / "inspect").iterdir())
    assert found == ["vit-random", "vit-random-2", "vit-random-3"]


def test_how_far_it_is_is_shown_where_a_command_asks_and_on_a_terminal_alone(monkeypatch, tmp_path):
    def hidden():
        with running.Bar(3, "layer") as shown:
            return shown._bar is None or shown._bar.disable

    class Terminal(StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    # A command that was asked for from Python leaves nothing switched on.
    assert oversmoothing.main(["remedies", "deepnorm", "--draws", "1", "--json"]) == 0
    assert oversmoothing.main(["remedies", "deepnorm", "--draws", "1", "--out", str(tmp_path)]) == 0
    assert hidden()
    running.show()
    try:
        assert not hidden()
        assert list(running.steps("abc", 3, "letter")) == ["a", "b", "c"]
        monkeypatch.setattr(sys, "stderr", StringIO())
        assert hidden()
    finally:
        running.show(False)
