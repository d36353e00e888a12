"""`inspect`: its numbers are the metrics of the residual stream, its errors say what to do."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from scipy.stats import gmean
from torch import Tensor, nn

from oversmoothing import inspect, inspect_stages, metrics, open_model
from oversmoothing.experiments.digits.data import Pixels
from oversmoothing.experiments.digits.training import load_model, new_model, trained
from oversmoothing.experiments.digits.training_state import save_run
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.observe import PART_NAMES
from oversmoothing.experiments.inspection.sentences import CONVENTIONS
from oversmoothing.experiments.models.pictures import cifar100, named_pictures, picture_folder
from oversmoothing.experiments.models.sources import open_stages
from oversmoothing.simulations.state_metrics import NAMES
from tests.support.cases import cases
from tests.support.families_of_today import inputs, today, whole
from tests.support.made_models import made, sharing
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_config, tiny_model
from tests.support.tiny_transformers import FAMILIES, TEXT, batch, tiny, tokens

IMAGES = 6


@pytest.fixture(scope="module")
def report():
    return inspect(tiny_model("vit-"), random_pixels(IMAGES), name="tiny")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    config = tiny_config("vit-random")
    return trained(config, tmp_path_factory.mktemp("runs"), progress=False).run.folder


def test_observed_metrics_are_those_of_the_residual_stream(report):
    states: list[torch.Tensor] = []
    with torch.no_grad():
        tiny_model("vit-")(random_pixels(IMAGES), states)
    frame = report.to_frame()
    for state, (_, row) in zip(states, frame.iterrows(), strict=True):
        for name in NAMES:
            # HFC/LFC has one kind of mean in every table, the geometric one.
            mean = gmean if name == "hfc_lfc" else np.mean
            assert row[name] == pytest.approx(mean(metrics(state)[name].numpy()), rel=1e-5)
            without = mean(metrics(state[:, 1:])[name].numpy())
            assert row[f"{name}_without_cls"] == pytest.approx(without, rel=1e-5)
            assert row[f"{name}_low"] <= row[name] <= row[f"{name}_high"]
            assert row[f"{name}_p05"] <= row[f"{name}_p95"]


def test_every_table_of_a_report_has_the_same_mean_of_hfc_lfc(report):
    frame = report.to_frame()
    logs = report.logs.mean(axis=1)
    np.testing.assert_allclose(frame["hfc_lfc"], np.exp(logs))
    np.testing.assert_allclose(report.short_table()["HFC/LFC"], np.exp(logs))
    np.testing.assert_allclose(report.answer.ratios, np.exp(logs[[0, -1]]))
    layers = report.to_json_object()["layers"]
    np.testing.assert_allclose([row["hfc_lfc"] for row in layers], np.exp(logs))
    # The arithmetic mean of these inputs is another number.
    assert (np.abs(np.exp(report.logs).mean(axis=1) / np.exp(logs) - 1) > 1e-4).any()
    assert "geometric" in CONVENTIONS["hfc_lfc"] and "HFC/LFC: geometric" in report.words()


def test_a_model_in_memory_has_no_known_start_and_a_stored_run_has(report, stored, tmp_path):
    assert report.table["cos_start"].iloc[1:].isna().all()
    assert "H of its layers: start unknown" in " ".join(report.words().split())
    config = tiny_config("vit")
    run = trained(config, tmp_path, progress=False).run
    own = inspect(str(run.folder), random_pixels(IMAGES))
    start, end = new_model(config).value_projections(), load_model(run.folder).model
    turned = [float((H0 * H).sum() / H0.norm() / H.norm())
              for H0, H in zip(start, end.value_projections(), strict=True)]  # fmt: skip
    np.testing.assert_allclose(own.table["cos_start"].iloc[1:], turned)
    np.testing.assert_allclose(run.metrics["cos_start"], turned)
    assert all(-1 <= each < 1 for each in turned)  # it moved
    assert "H of its layers: cos(H_start, H_end)" in " ".join(own.words().split())
    assert own.short_table(wide=True)["cos start"].iloc[1:].notna().all()
    # A model that was not trained stands where it was drawn.
    drawn = inspect(str(stored), random_pixels(IMAGES)).table["cos_start"].iloc[1:]
    np.testing.assert_allclose(drawn, 1)


def test_the_start_of_a_run_from_before_it_was_recorded_is_drawn_again(tmp_path):
    run = trained(tiny_config("vit"), tmp_path, progress=False).run
    old = {name: value for name, value in run.metrics.items() if name != "cos_start"}
    kept = save_run(tmp_path / "old", config=run.config, weights=run.weights, log=run.log,
                    metrics=old)  # fmt: skip
    found = load_model(kept.folder).model.cos_start
    np.testing.assert_allclose(found, run.metrics["cos_start"])


def test_the_spectral_columns_describe_the_model(report):
    layers = report.to_frame().iloc[1:]
    shares = layers[["consensus_share", "smallest_share", "other_share", "tie_share"]]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (layers["consensus_share"] == 0).all()  # psi^2 <= 1 before training (T3d)
    assert (layers["rho_quotient_median"] > layers["rho_consensus"]).all()
    assert (layers["safe_interval_min"] <= layers["safe_interval_median"]).all()
    assert (layers["negative_layernorm_weights"] == 0).all()


def test_batches_do_not_show(monkeypatch, report):
    monkeypatch.setattr("oversmoothing.experiments.inspection.inspect.BATCH", 4)
    again = inspect(tiny_model("vit-"), random_pixels(IMAGES), name="tiny")
    pd.testing.assert_frame_equal(again.to_frame(), report.to_frame(), rtol=1e-4, atol=1e-6)


def test_one_image_has_no_interval_and_still_a_report():
    report = inspect(tiny_model(), random_pixels(1), name="tiny")
    assert report.to_frame()["cos_mean_low"].isna().all()
    assert "to speak of others takes at least 5" in report.summary()
    layer = report.to_json_object()["layers"][1]
    assert layer["cos_mean_low"] is None and layer["cos_mean"] is not None


def test_json_is_strict_and_complete(report):
    parsed = json.loads(json.dumps(report.to_json_object(), allow_nan=False))
    assert parsed["schema_version"] == 2
    assert (parsed["model"], parsed["tokens"], parsed["images"]) == ("tiny", 17, IMAGES)
    assert parsed["conventions"] == CONVENTIONS
    assert [layer["layer"] for layer in parsed["layers"]] == [0, 1, 2]
    assert set(NAMES) <= set(parsed["layers"][0])
    assert parsed["summary"] == report.summary()
    assert "\n" not in report.summary() and report.summary().endswith(".")
    assert str(report).count("\n\n") > 3 and str(report).split() == report.summary().split()


def test_pixels_of_another_shape_and_none_are_refused():
    for shape, said in (((2, 9, 9), "8"), ((8, 8), "8"), ((0, 8, 8), "there are no inputs")):
        refuses(said, inspect, tiny_model(), torch.zeros(shape))


@cases(
    "change, words",
    (-1.0, "Does tiny smooth? Yes, by HFC/LFC alone"),
    (1.0, "Does tiny smooth? No: HFC/LFC rises"),
    (0.0, "Does tiny smooth? No: its tokens end about as different"),
)
def test_the_summary_follows_the_interval_of_the_change(report, change, words):
    noise = np.linspace(-0.05, 0.05, IMAGES)
    logs = np.stack([np.zeros(IMAGES), 0 * noise, change + noise])
    altered = replace(report, logs=logs, cosines=np.full_like(logs, 0.4))
    assert words in altered.summary()


def pixels_of(folder: Path) -> torch.Tensor:
    """What the project's own ViT reads of a folder of image files."""
    return Pixels(8, (0.5,), (0.5,))(list(picture_folder(folder)))


def test_images_are_read_lazily_in_the_order_of_their_names(tmp_path):
    refuses("is not a folder", pixels_of, tmp_path / "missing")
    refuses("holds no files", pixels_of, tmp_path)
    for name, level, size in (("b", 255, (8, 8)), ("a", 0, (8, 8, 3)), ("c", 0, (9, 8))):
        Image.fromarray(np.full(size, level, np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "d.png").write_text("no image")
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / "folder").mkdir()
    pixels = Pixels(8, (0.5,), (0.5,))(list(picture_folder(tmp_path, 2)))
    assert pixels.dtype == torch.float32 and pixels.shape == (2, 8, 8)
    assert (pixels[0] == -1).all() and (pixels[1] == 1).all()
    pictures = picture_folder(tmp_path)
    assert [image.getpixel((0, 0))[0] for image in pictures[:3]] == [0, 255, 0]
    refuses("not an image", lambda: pictures[3])
    refuses("", lambda: pictures[4], error=IndexError)
    (tmp_path / "d.png").unlink()
    refuses("8 x 9 pixels, the model reads 8 x 8: resize", pixels_of, tmp_path)


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "bmp"])
def test_a_truncated_image_is_refused_wherever_it_ends(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)).save(path)
    content = path.read_bytes()
    for end in range(0, len(content) * 3 // 4, 7):
        path.write_bytes(content[:end])
        refuses(r"is not an image|cannot be read", pixels_of, tmp_path)


def test_the_command_prints_json_alone(stored, tmp_path, told):
    for name, level in (("a", 0), ("b", 90)):
        Image.linear_gradient("L").resize((8, 8)).rotate(level).save(tmp_path / f"{name}.png")
    out_folder = str(tmp_path / "out")
    command = ["inspect", str(stored), "--images", str(tmp_path), "--out", out_folder]
    parsed = json.loads(told(0, *command, "--json"))
    assert parsed["images"] == 2 and len(parsed["layers"]) == 3
    out = told(0, *command)
    asked = [line for line in out.splitlines() if line.endswith("?")]
    assert asked == ["Does it smooth?", "By what?", "What to try?"] and "--wide" in out
    out = told(0, *command, "--wide")
    printed = " ".join(out.split())
    asked_of, *sentences = re.split(r"(?<=[.?]) ", parsed["summary"])
    assert asked_of == f"Does {stored.name} smooth?" and len(sentences) > 3
    assert [words for words in sentences if " ".join(words.split()) not in printed] == []
    assert ["layer", "HFC/LFC", "cosine", "rank", "attention", "FFN"] in [
        line.split()[:6] for line in out.splitlines()
    ]
    assert "safe s" in out
    report = next((tmp_path / "out" / "inspect").iterdir())
    assert json.loads((report / "report.json").read_text()) == parsed
    page = (report / "report.html").read_text()
    assert "Does " in page and "data:image/png;base64," in page
    assert len(pd.read_csv(report / "report.csv")) == 3


# --- on every family of models: the account closes, the report is whole, errors advise ---


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


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_padding_is_left_out_of_everything(family):
    model, both = tiny(family), tokens((7, 4))
    alone = {name: value[1:, :4] for name, value in both.items()}
    single = {name: value[:1] for name, value in both.items()}
    reports = [inspect(model, each) for each in (both, alone, single)]
    parts = [f"log_change_{name}" for name in PART_NAMES]
    heads = ["log_change", "margin", "dobrushin", "entropy", "sink_mass"]
    for table, names in (
        ("table", [*NAMES, *parts, "tilt_residual", "dobrushin_mean"]), ("heads", heads),
    ):  # fmt: skip
        first, second, other = (getattr(report, table) for report in reports)
        for name in names:
            mean = (second[name] + other[name]) / 2
            if name == "hfc_lfc":  # the geometric mean, as everywhere
                mean = (second[name] * other[name]) ** 0.5
            np.testing.assert_allclose(first[name], mean, rtol=1e-5, atol=1e-5, err_msg=name)


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


def test_cifar_100_is_whole(real):
    test, train = (cifar100(real("cifar100").parent, split) for split in ("test", "train"))
    assert (len(test), len(train)) == (10_000, 50_000)
    assert test[9_999].size == train[0].size == (32, 32)


# --- a model of stages, whole ---


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
