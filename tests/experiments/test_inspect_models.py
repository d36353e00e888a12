"""`inspect` on every family of models: the account closes, the report is whole, errors advise."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from oversmoothing import inspect
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.models.pictures import cifar100, named_pictures
from oversmoothing.simulations.state_metrics import NAMES
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import FAMILIES, TEXT, batch, tiny, tokens

DATA = os.environ.get("OVERSMOOTHING_DATA")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_account_of_every_family_closes(family):
    report = inspect(tiny(family), batch(family), name=family)
    assert report.account_error < 1e-6 and report.av_error < 1e-5
    frame = report.to_frame()
    parts = [name for name in frame if name.startswith("log_change_") and name.count("_") == 3]
    parts = [name for name in parts if not name.endswith(("_low", "_high"))]
    assert len(parts) == 6
    whole = frame["log_hfc_lfc"].iloc[-1] - frame["log_hfc_lfc"].iloc[0]
    for columns in (parts, ["log_change_attention", "log_change_ffn"]):
        assert frame[columns].sum().sum() == pytest.approx(whole, abs=2e-6)
    assert report.change.mean() == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("family", ("vit", "bert", "llama"))
def test_every_family_gets_a_whole_report(family, tmp_path):
    report = inspect(tiny(family), batch(family), name=family)
    files = report.save(tmp_path)
    assert json.loads(files["json"].read_text())["summary"] == report.summary()
    page = files["html"].read_text()
    assert f"Does {family} oversmooth?" in page and ">nan<" not in page
    assert files["png"].read_bytes()[:4] == b"\x89PNG"
    with_cls = family in ("vit", "deit", "bert")
    assert ("with CLS" in report.words()) == with_cls
    assert ("cos_mean_without_cls" in report.table) == with_cls
    assert ("2 texts" if family in TEXT else "2 images") in report.words()


def test_padding_is_left_out_of_everything():
    model, both = tiny("bert"), tokens((7, 4))
    alone = {name: value[1:, :4] for name, value in both.items()}
    first, second = inspect(model, both).table, inspect(model, alone).table
    single = {name: value[:1] for name, value in both.items()}
    other = inspect(model, single).table
    for name in (*NAMES, "log_change_ffn_body", "tilt_residual", "dobrushin_mean"):
        mean = (second[name] + other[name]) / 2
        if name == "hfc_lfc":  # the geometric mean, as everywhere
            mean = (second[name] * other[name]) ** 0.5
        np.testing.assert_allclose(first[name], mean, rtol=1e-5, atol=1e-6, err_msg=name)


def test_without_spectra_the_report_says_so():
    report = inspect(tiny("vit"), batch("vit"), budget=Plan(2, 2))
    assert report.spectra == 0 and "No spectra were taken" in report.summary()
    assert "consensus_share" not in report.table and "asymmetry" in report.table
    report.plot()
    refuses("spectra is -1", lambda: inspect(tiny("vit"), batch("vit"), budget=Plan(spectra=-1)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_models_are_upcast_where_spectra_need_it(dtype):
    exact, half = tiny("vit"), tiny("vit").to(dtype)
    expected, found = inspect(exact, batch("vit")), inspect(half, batch("vit"))
    eps = float(torch.finfo(dtype).eps)
    np.testing.assert_allclose(
        found.table["log_hfc_lfc"], expected.table["log_hfc_lfc"], atol=50 * eps
    )
    np.testing.assert_allclose(
        found.table["rho_consensus"].iloc[1:], expected.table["rho_consensus"].iloc[1:],
        rtol=50 * eps,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("model") / "tiny-vit"
    tiny("vit").save_pretrained(place)
    return place


@cases(
    "options, message",
    (["vit+"], r"run `oversmoothing train --variant vit\+ --seed 0 --out"),
    (["vit7"], "no model 'vit7' here"),
    (["vit-random", "--text", __file__], "reads images, not text"),
    (["vit-random", "--device", "abacus"], "not available here"),
    (["--count", "0"], "--count must be at least 1"),
    (["--images", "no-such-folder"], "no images 'no-such-folder' were found here"),
    (["--images", "cifar100"], "CIFAR-100 is needed"),
    (["--text", __file__], "reads images, not text"),
    (["--data-dir", "no-such-folder"], "does not exist: name one"),
    (["{out}/empty"], "is no model folder"),
    (["{out}/gpt"], r"reads text\.\n +Add --text FILE \(one text a line\)\."),
    (["{out}/gpt", "--text", "{out}/empty.txt"], "holds no text"),
)
def test_the_command_refuses_with_advice(folder, tmp_path, told, monkeypatch, options, message):
    monkeypatch.delenv("OVERSMOOTHING_DATA", raising=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.txt").write_text("\n \n")
    if "{out}/gpt" in options:
        tiny("gpt2").save_pretrained(tmp_path / "gpt")
    model = [str(folder)] if options[0].startswith("--") else []
    words = [*model, *(each.format(out=tmp_path) for each in options)]
    assert re.search(message, told(2, "inspect", *words, "--out", tmp_path))


def test_cifar_100_refuses_what_is_not_there_and_is_a_folder_where_one_has_its_name(
    tmp_path, monkeypatch
):
    refuses("no folder was named", cifar100, None)
    refuses("holds no cifar100", cifar100, tmp_path)
    (tmp_path / "cifar100").mkdir()
    refuses("splits train and test", cifar100, tmp_path, "validation")
    refuses("numbered 0 to 9999", cifar100, tmp_path, "test", [10_000])
    refuses("a shard is missing", lambda: cifar100(tmp_path, "test", [0])[0])
    (tmp_path / "cifar100" / "test-0.parquet").write_bytes(b"PAR1 cut short")
    refuses("cannot be read", lambda: cifar100(tmp_path, "test", [0])[0])
    monkeypatch.delenv("OVERSMOOTHING_DATA", raising=False)
    refuses("give --data-dir", named_pictures, "cifar100", 2, None)
    monkeypatch.chdir(tmp_path)
    assert len(named_pictures("cifar100", 2, None)) == 1


@pytest.mark.skipif(DATA is None, reason="needs OVERSMOOTHING_DATA")
def test_cifar_100_is_whole():
    assert DATA is not None
    test, train = (cifar100(Path(DATA), split) for split in ("test", "train"))
    assert (len(test), len(train)) == (10_000, 50_000)
    assert test[9_999].size == train[0].size == (32, 32)
