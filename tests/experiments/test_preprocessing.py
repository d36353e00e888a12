"""Pictures of a model folder are what its own image processor makes of them, in every command."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from transformers import AutoImageProcessor

import oversmoothing
from oversmoothing import InputError, main, open_model, reparameterise
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
# The tiny ViT reads 32 x 32: as DeiT's 256 and 224, pictures of 40 x 40 are cropped.
BASE: dict[str, object] = {
    "image_processor_type": "MobileViTImageProcessor",
    "do_resize": True,
    "size": {"height": 40, "width": 40},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 32, "width": 32},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_flip_channel_order": False,
}
NORMAL = {
    **BASE,
    "image_processor_type": "ViTImageProcessor",
    "do_normalize": True,
    "image_mean": MEAN,
    "image_std": STD,
}
OPTIONS: list[dict[str, object]] = [
    {"do_resize": False},
    {"size": {"height": 36, "width": 36}},
    {"size": {"shortest_edge": 40}},
    {"size": {"height": 32, "width": 32}, "do_center_crop": False},
    {"resample": 0},
    {"resample": 2},
    {"do_rescale": False},
    {"rescale_factor": 1 / 127.5},
]
STATISTICS: list[dict[str, object]] = [
    {"do_normalize": False},
    {"image_mean": [0.5] * 3},
    {"image_mean": 0.5},
    {"image_std": [0.5] * 3},
]


def pictures(count: int = 2) -> list[Image.Image]:
    random = np.random.default_rng(0)
    return [
        Image.fromarray(random.integers(0, 256, (48 + k, 64, 3), np.uint8)) for k in range(count)
    ]


def folder(place: Path, settings: dict[str, object] | None) -> Path:
    tiny("vit").save_pretrained(place)
    if settings is not None:
        (place / "preprocessor_config.json").write_text(json.dumps(settings))
    return place


def ours(place: Path, settings: dict[str, object], **given: object) -> Tensor:
    return open_model(folder(place, settings), **given).prepare(pictures())


@cases(
    "base, change",
    *((BASE, change) for change in [*OPTIONS, {"do_flip_channel_order": True}]),
    *((NORMAL, change) for change in [*OPTIONS, *STATISTICS]),
)
def test_pixels_are_those_of_the_library_and_every_option_changes_them(tmp_path, base, change):
    found = ours(tmp_path, base | change)
    theirs = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    expected = theirs(pictures(), return_tensors="pt")["pixel_values"]
    assert found.dtype == torch.float32 and torch.equal(found, expected.float())
    assert not torch.equal(found, ours(tmp_path, base))


def test_pixels_are_resized_cropped_and_normalised_by_hand(tmp_path):
    expected = []
    for picture in pictures():
        whole = np.asarray(picture.resize((40, 40), Image.Resampling.BICUBIC), dtype=float)
        expected.append((whole[4:36, 4:36] / 255 - MEAN) / STD)
    # float32 of numbers up to 3.
    found = ours(tmp_path, NORMAL).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(found, np.stack(expected), atol=2e-6)


@cases(
    "mode, how, edge",
    ("center", 3, {"shortest_edge": 36}),
    ("center", 2, {"shortest_edge": 36}),
    ("squash", 3, {"height": 36, "width": 36}),
)
def test_a_module_of_timm_reads_pictures_as_its_configuration_says(tmp_path, mode, how, edge):
    module = tiny("vit")
    module.pretrained_cfg = {
        "input_size": (3, 32, 32), "crop_pct": 0.875, "crop_mode": mode, "mean": tuple(MEAN),
        "std": tuple(STD), "interpolation": {2: "bilinear", 3: "bicubic"}[how],
    }  # fmt: skip
    model = open_model(module)
    same = ours(tmp_path, NORMAL | {"size": edge, "resample": how})[:1]
    assert not model.run_notes
    torch.testing.assert_close(model.prepare(pictures(1)), same, atol=2e-6, rtol=0)
    module.pretrained_cfg["crop_pct"] = 0.0
    refuses("crop_pct 0.0", open_model, module)
    module.pretrained_cfg |= {"crop_pct": 0.875, "crop_mode": "border"}
    assert "not understood: they are resized whole" in open_model(module).run_notes[0]
    module.pretrained_cfg["input_size"] = 32
    assert "mean 0.5 and std 0.5" in open_model(module).run_notes[0]


@cases(
    "mode, how, size",
    ("shortest", 3, {"shortest_edge": 32}),
    ("squash", 2, {"height": 32, "width": 32}),
)
def test_a_folder_of_open_clip_reads_pictures_as_its_own_settings_say(tmp_path, mode, how, size):
    stated = {"mean": MEAN, "std": STD, "interpolation": {2: "bilinear", 3: "bicubic"}[how],
              "resize_mode": mode}  # fmt: skip
    place = folder(tmp_path / "own", None)
    (place / "open_clip_config.json").write_text(json.dumps({"preprocess_cfg": stated}))
    model = open_model(place)
    same = ours(tmp_path / "same", NORMAL | {"size": size, "resample": how})
    assert not model.run_notes
    torch.testing.assert_close(model.prepare(pictures()), same, atol=2e-6, rtol=0)
    (place / "open_clip_config.json").write_text('{"preprocess_cfg": {"std": [0, 1, 1]}}')
    refuses("open_clip_config.json.*std of pixels must be", open_model, place)
    (place / "open_clip_config.json").write_text('{"preprocess_cfg": {"resize_mode": ["squash"]}}')
    assert "not said, or not understood" in open_model(place).run_notes[0]


def test_settings_within_the_processor_of_a_whole_model_come_first(tmp_path):
    place = folder(tmp_path, BASE)
    (place / "processor_config.json").write_text(json.dumps({"image_processor": NORMAL}))
    theirs = AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    expected = theirs(pictures(), return_tensors="pt")["pixel_values"]
    assert torch.equal(open_model(place).prepare(pictures()), expected)
    assert torch.equal(expected, ours(tmp_path / "plain", NORMAL))


def test_a_mean_that_is_given_stands_in_the_place_of_the_stated_one(tmp_path):
    found = ours(tmp_path, NORMAL, mean=(0.1, 0.2, 0.3))
    assert torch.equal(found, ours(tmp_path, NORMAL | {"image_mean": [0.1, 0.2, 0.3]}))
    unscaled = ours(tmp_path, NORMAL | {"do_normalize": False})
    found = ours(tmp_path, NORMAL | {"do_normalize": False}, mean=(1.0, 1.0, 1.0))
    torch.testing.assert_close(found, unscaled - 1)


def test_a_picture_is_turned_upright_and_made_rgb_before_it_is_processed(tmp_path):
    model = open_model(folder(tmp_path, NORMAL))
    plain = pictures(1)[0]
    turned = plain.transpose(Image.Transpose.ROTATE_90)
    turned.getexif()[0x0112] = 6
    grey = plain.convert("L")
    assert torch.equal(model.prepare([turned]), model.prepare([plain]))
    assert torch.equal(model.prepare([grey]), model.prepare([grey.convert("RGB")]))


def test_what_is_used_without_settings_is_said(tmp_path):
    said = "resized whole to 32 x 32 (bicubic), and mean 0.5 and std 0.5 are used"
    model = open_model(folder(tmp_path, None))
    assert said in model.run_notes[0] and said in open_model(tiny("vit")).run_notes[0]
    report = oversmoothing.inspect(model, pictures())
    assert said in str(report.notes)
    # Of pixels nothing is resized or normalised.
    pixels = model.prepare(pictures())
    for given in (pixels, list(pixels), {"pixel_values": pixels}):
        assert said not in str(oversmoothing.inspect(model, given).notes)
    whole = {**NORMAL, "size": {"height": 32, "width": 32}, "image_mean": 0.5, "image_std": 0.5}
    torch.testing.assert_close(model.prepare(pictures()), ours(tmp_path, whole))
    assert not open_model(folder(tmp_path, NORMAL)).run_notes


def test_settings_that_the_processor_does_not_read_are_named(tmp_path):
    found = open_model(folder(tmp_path, NORMAL | {"do_flip": True, "do_thumbnail": False}))
    assert "states do_flip, which its ViTImageProcessor" in found.run_notes[0]


@cases(
    "change, said",
    *(
        ({"image_mean": value}, "mean of pixels must be a list of 3 numbers")
        for value in ([0.5] * 2, "abc", [True] * 3, [[0.5]] * 3)
    ),
    *(
        ({"image_std": value}, "std of pixels must be a list of 3 positive numbers")
        for value in ([0.0, 1, 1], [-1] * 3, [1e300] * 3, ["1"] * 3, [], 0)
    ),
    ({"size": "large"}, "preprocessor_config.json"),
    ({"size": {"height": 10**6, "width": 10**6}}, "a side in size is 1000000: give 1 to 9000"),
    ({"size": {"height": 0, "width": 8}}, "a side in size is 0"),
    ({"crop_size": -3}, "a side in crop_size is -3"),
    ({"size": {"depth": 4}}, "preprocessor_config.json"),
    ({"crop_size": 24}, "makes pictures of 24 x 24 pixels, the model reads 32 x 32"),
    ({"crop_size": {"height": 32, "width": 24}}, "no finite pixels of 3 square channels"),
    ({"resample": 99}, "cannot be used"),
    ({"rescale_factor": "x"}, "cannot be used"),
    ({"rescale_factor": 1e300}, "no finite pixels|cannot be used"),
    ({"image_processor_type": "NoSuchProcessor"}, "no image processor that can be loaded"),
)  # fmt: skip
def test_wrong_settings_are_refused_in_a_sentence(tmp_path, change, said):
    refuses(said, lambda: open_model(folder(tmp_path, NORMAL | change)))


def test_pictures_that_stay_oblong_are_refused_and_long_ones_not_enlarged(tmp_path):
    settings = NORMAL | {"size": {"shortest_edge": 32}, "do_center_crop": False}
    model = open_model(folder(tmp_path, settings))
    assert model.prepare([Image.new("RGB", (50, 50))]).shape == (1, 3, 32, 32)
    refuses(r"pixels 3 x 32 x 42 of a picture of 64 x 48", lambda: model.prepare(pictures(1)))
    with pytest.raises(InputError, match="more than 81 million: crop the picture first"):
        model.prepare([Image.new("RGB", (1, 80000))])


@cases(
    "command",
    "inspect", "loop --group 1 --loops 20", "stability", "flips", "readings",
    "tilt", "certified", "exponents --depth 200", "enclose",
    "ladder --calibration 12 --standard 12 --held-out 4",
)  # fmt: skip
def test_every_command_reads_pictures_as_the_folder_says(tmp_path, command, monkeypatch):
    (tmp_path / "shown").mkdir()
    for k, picture in enumerate(pictures(16)):
        picture.save(tmp_path / "shown" / f"{k:02}.png")
    place = folder(tmp_path / "model", NORMAL)
    seen: list[Tensor] = []
    module = type(tiny("vit"))
    forward = module.forward

    def watched(self, pixel_values, **given):
        seen.append(pixel_values)
        return forward(self, pixel_values, **given)

    monkeypatch.setattr(module, "forward", watched)
    # A model is read on inputs that are made up, the same ones each time.
    open_model(place)
    drawn, seen[:] = list(seen), []
    name, *options = command.split()
    count = (
        [] if name in ("ladder", "exponents") else ["--count", "2" if name == "stability" else "4"]
    )
    where = ["--images", str(tmp_path / "shown"), "--out", str(tmp_path / "out")]
    asked = [name, str(place)] if name in ("inspect", "enclose") else ["probe", str(place), name]
    main([*asked, *options, *count, *where])
    theirs = AutoImageProcessor.from_pretrained(place, backend="pil")
    expected = theirs(pictures(16), return_tensors="pt")["pixel_values"]
    shown = [x for x in seen if not any(x.shape == y.shape and x.equal(y) for y in drawn)]
    assert shown
    for batch in shown:
        for pixels in batch:
            assert (pixels.float() == expected).flatten(1).all(1).any()


def test_a_bound_reads_pictures_as_the_folder_of_its_model_says(tmp_path):
    model = open_model(folder(tmp_path, NORMAL))
    changed = reparameterise(model, "band")
    by_pictures, by_pixels = (
        changed.bound(each) for each in (pictures(), model.prepare(pictures()))
    )
    assert repr(by_pictures) == repr(by_pixels)
