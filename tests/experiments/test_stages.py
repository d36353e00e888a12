"""A model of stages, whole: every stage as the model computes it, and the merging between them."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from oversmoothing import inspect, inspect_stages, metrics, open_model
from oversmoothing.experiments.models.sources import open_stages
from tests.support.families_of_today import inputs, today, whole
from tests.support.made_models import made, sharing
from tests.support.refusals import refuses


def states(module: nn.Module) -> list[list[Tensor]]:
    """Of each stage the stream in front of its first block and behind every one of them."""
    seen: list[list[Tensor]] = [[] for _ in module.encoder.layers]
    for own, stage in zip(seen, module.encoder.layers, strict=True):
        stage.blocks[0].register_forward_pre_hook(lambda _, args, own=own: own.append(args[0]))
        for block in stage.blocks:
            block.register_forward_hook(
                lambda _, __, out, own=own: own.append(out[0] if isinstance(out, tuple) else out)
            )
    with torch.no_grad():
        module(**inputs("Swin"))
    return seen


@pytest.fixture(scope="module")
def found():
    return inspect_stages(today("Swin"), inputs("Swin"), name="swin")


def test_swin_whole_is_its_stages_and_the_mergings_between_them(found):
    stages = states(today("Swin"))
    logs = [[metrics(X.double())["log_hfc_lfc"].numpy() for X in stage] for stage in stages]
    for report, own in zip(found.reports, logs, strict=True):
        np.testing.assert_allclose(report.logs, own, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.merging, [logs[1][0] - logs[0][-1]], atol=1e-6)
    assert [report.tokens for report in found.reports] == [64, 16]
    whole = sum(report.change for report in found.reports) + found.merging.sum(0)
    np.testing.assert_allclose(whole, logs[1][-1] - logs[0][0], atol=1e-6)


def test_the_boundary_is_said_with_its_number_and_interval(found):
    mean = float(found.merging[0].mean())
    first, second = found.reports
    assert (
        f"stage 1 (2 layers on 64 tokens) {first.change.mean():+.2f}, merging 64 tokens into 16 "
        f"{mean:+.2f} (no interval: 2 inputs, at least 5 are needed), stage 2 (2 layers on 16 "
        f"tokens) {second.change.mean():+.2f}. Behind a merging the tokens are others"
        in found.summary()
    )
    assert "swin stage 2" in found.summary() and repr(found) == "Stages('swin', 2 stages, 2 images)"
    table = found.to_frame()
    assert list(table["stage"]) == [1] * 3 + [2] * 3 and list(table["layer"]) == [0, 1, 2] * 2
    assert list(table["tokens"]) == [64] * 3 + [16] * 3
    merging = table["log_change_merging"]
    assert merging[3] == pytest.approx(mean) and merging.isna().sum() == 5
    alone = inspect_stages(today("Swin"), inputs("Swin")["pixel_values"][:1])
    assert "95 % interval" not in alone.said()[0]


def test_stages_are_saved_whole(found, tmp_path):
    files = found.save(tmp_path)
    assert {"json", "csv", "txt", "html", "stage-1/report.json", "stage-2/heads.csv"} < set(files)
    held = json.loads(files["json"].read_text())
    assert [each["tokens"] for each in held["stages"]] == [64, 16]
    assert held["merging"][0]["after_stage"] == 1
    assert held["merging"][0]["log_change"] == pytest.approx(found.merging.mean())
    assert len(pd.read_csv(files["csv"])) == 6
    assert "swin stage 2" in files["stage-2/report.html"].read_text()


def test_towers_are_no_stages_and_one_stack_is_one_stage():
    refuses(r"part='text_model' or part='vision_model'$", open_stages, whole("CLIP, texts"))
    refuses("or all of them to inspect_stages", lambda: open_model(today("Swin")))
    found = inspect_stages([made(value=0.2)], sharing(3))
    assert found.merging.shape == (0, 3)
    plain = inspect(made(value=0.2), sharing(3))
    assert found.reports[0].logs.tolist() == plain.logs.tolist()
    refuses("no iterator", lambda: inspect_stages(today("Swin"), iter([])))


def test_a_model_of_stages_is_inspected_whole_at_the_command_line(tmp_path, told):
    today("Swin").save_pretrained(tmp_path / "swin")
    command = ["inspect", str(tmp_path / "swin"), "--count", "2", "--out", str(tmp_path)]
    printed = told(0, *command)
    assert "Over the 2 stages of swin HFC/LFC goes from" in " ".join(printed.split())
    assert (tmp_path / "inspect" / "swin" / "stages.csv").exists()
    assert (tmp_path / "inspect" / "swin" / "stage-2" / "report.html").exists()
