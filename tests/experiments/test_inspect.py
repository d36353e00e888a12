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

from oversmoothing import inspect, metrics
from oversmoothing.experiments.digits.data import Pixels
from oversmoothing.experiments.digits.training import load_model, new_model, trained
from oversmoothing.experiments.digits.training_state import save_run
from oversmoothing.experiments.inspection.sentences import CONVENTIONS
from oversmoothing.experiments.models.pictures import picture_folder
from oversmoothing.simulations.state_metrics import NAMES
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_config, tiny_model

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
