"""Pictures and texts are read as they are, or refused in a sentence: no clipping; texts
that are too long are cut and counted."""

import json
import os
import struct
import weakref
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, PngImagePlugin
from torch import Tensor
from transformers import AutoImageProcessor

import oversmoothing
from oversmoothing import inspect, main, open_model, reparameterise
from oversmoothing.experiments.digits.data import Pixels
from oversmoothing.experiments.inspection.budget import foresee
from oversmoothing.experiments.inspection.extract import batches, prepared
from oversmoothing.experiments.models import pictures
from oversmoothing.experiments.models.inputs import Images, text_lines
from oversmoothing.experiments.models.pictures import picture_folder, upright_rgb
from oversmoothing.experiments.models.sources import cut_texts, named_inputs
from tests.support.cases import cases
from tests.support.processes import python
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny

GREY = np.linspace(0, 1, 64).reshape(8, 8)
DEEP = {
    "sixteen.png": Image.fromarray((65535 * GREY).astype(np.uint16)),
    "sixteen.tiff": Image.fromarray((65535 * GREY).astype(np.uint16)),
    "integers.tiff": Image.fromarray((65535 * GREY).astype(np.int32)),
    "floats.tiff": Image.fromarray(GREY.astype(np.float32)),
    "nan.tiff": Image.fromarray(np.full((8, 8), np.nan, np.float32)),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("read", [Images(8), Pixels(8, (0.5,), (0.5,))], ids=["colour", "grey"])
def test_more_than_eight_bits_are_refused_from_a_file_and_in_memory(tmp_path, name, read):
    DEEP[name].save(tmp_path / name)
    for given in (picture_folder(tmp_path), [Image.open(tmp_path / name)], [DEEP[name]]):
        refuses("more than 8 bits a channel", read, given)


def test_colour_of_sixteen_bits_keeps_its_range(tmp_path):
    level = (65535 * np.linspace(0, 1, 8)).astype(">u2")
    rows = b"".join(b"\0" + np.repeat(level, 3).tobytes() for _ in range(8))
    write_png(tmp_path / "a.png", 8, 8, rows, depth=16)
    found = np.asarray(picture_folder(tmp_path)[0])[0, :, 0]
    assert np.abs(found - 255 * np.linspace(0, 1, 8)).max() <= 1


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_picture_is_turned_once_as_its_exif_says(tmp_path, turn):
    shown = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    # EXIF: where row 0 and column 0 of the stored picture are shown.
    stored = {
        1: shown, 2: shown[:, ::-1], 3: shown[::-1, ::-1], 4: shown[::-1],
        5: shown.swapaxes(0, 1), 6: np.rot90(shown, 1), 7: np.rot90(shown, 2).swapaxes(0, 1),
        8: np.rot90(shown, -1),
    }[turn]  # fmt: skip
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.fromarray(np.ascontiguousarray(stored)).save(tmp_path / "a.png", exif=exif)
    upright = Images(8)([Image.fromarray(shown)])
    assert torch.equal(Images(8)(picture_folder(tmp_path)), upright)
    assert torch.equal(Images(8)([Image.open(tmp_path / "a.png")]), upright)


def write_png(path: Path, width: int, height: int, rows: bytes, depth: int = 8) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, depth, 2, 0, 0, 0)
    packed = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + packed)


@pytest.mark.parametrize("side", [9001, 20000, 2**31 - 1])
def test_a_picture_that_declares_too_many_pixels_is_not_decoded(tmp_path, side):
    write_png(tmp_path / "a.png", side, side, b"")
    refuses("more than 81 million|cannot be read", lambda: picture_folder(tmp_path)[0])


def test_of_pictures_in_files_one_is_held_at_a_time(tmp_path, monkeypatch):
    for k in range(8):
        Image.new("RGB", (32, 32), (k, 0, 0)).save(tmp_path / f"{k}.png")
    held: list[int] = []
    seen: list[weakref.ref[Image.Image]] = []

    def watched(*given, opened=pictures._opened):
        image = opened(*given)
        seen.append(weakref.ref(image))
        held.append(sum(each() is not None for each in seen))
        return image

    monkeypatch.setattr(pictures, "_opened", watched)
    read = Images(8)
    parts = list(batches(picture_folder(tmp_path), 5))
    assert [len(part) for part in parts] == [5, 3] and not held
    model = type("Model", (), {"prepare": read})()
    found = torch.cat([prepared(model, part) for part in parts])
    # The loop's own variable still holds one while the next is opened.
    assert found.shape == (8, 3, 8, 8) and max(held) <= 2
    assert (found[1:, 0] > found[:-1, 0]).all()


def test_a_text_chunk_without_end_is_an_image_that_cannot_be_read(tmp_path):
    chunk = PngImagePlugin.PngInfo()
    chunk.add_text("comment", "x" * 2**21, zip=True)
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png", pnginfo=chunk)
    refuses("cannot be read", lambda: picture_folder(tmp_path)[0])


@cases("mark", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\r")
def test_a_text_ends_where_its_line_does_and_nowhere_else(tmp_path, mark):
    (tmp_path / "a.txt").write_text(f"one{mark}still one\n\n  two \n", "utf-8", newline="")
    assert text_lines(tmp_path / "a.txt") == [f"one{mark}still one", "two"]


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_no_part_of_a_text(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffone\r\ntwo \ufeff\r\n\r\n".encode())
    assert text_lines(tmp_path / "a.txt") == ["one", "two \ufeff"]
    (tmp_path / "a.txt").write_bytes("\ufeff\n \n".encode())
    refuses("holds no text", text_lines, tmp_path / "a.txt")


def test_pipes_and_devices_are_no_pictures_and_no_texts(tmp_path):
    for name in ("pipe", "endless"):
        folder = tmp_path / name
        folder.mkdir()
        Image.new("RGB", (8, 8)).save(folder / "a.png")
        if name == "pipe":
            os.mkfifo(folder / "b.png")
        else:
            (folder / "b.png").symlink_to("/dev/zero")
        assert len(picture_folder(folder, 1)) == 1
        refuses("no regular file", picture_folder, folder)
        refuses("no regular file", text_lines, folder / "b.png")


class Words:
    """A tokenizer of the library's kind: a word is a token, between two special ones."""

    model_max_length = 10**30

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"<{number}>" for number in ids]

    def __call__(
        self, text: str, *, truncation: bool = False, max_length: int = 10**30
    ) -> dict[str, list[int]]:
        words = [3 + len(word) for word in text.split()]
        return {"input_ids": [1, *words[: max_length - 2 if truncation else None], 2]}


TEXTS = ["a bb ccc", "a " * 40, "bb " * 15]


def test_texts_beyond_the_model_s_length_are_cut_and_said():
    model = open_model(tiny("bert"), tokenizer=Words())  # reads 16 tokens
    assert inspect(model, TEXTS).notes[-1] == "2 texts were cut to the first 16 tokens"
    ids = model.prepare(TEXTS)["input_ids"]
    assert ids.shape == (3, 16) and ids[1, -1] == 2  # the last special token is kept
    assert not any("cut" in note for note in inspect(model, TEXTS[:1]).notes)
    refuses("reads at most 16: cut it", lambda: model.prepare([torch.full((17,), 3)]))


def test_what_texts_will_cost_counts_the_tokens_of_each_as_they_are_cut():
    """16, 5 and 16 tokens: not three times those of the first, nor those of what is cut off."""
    model = open_model(tiny("bert"), tokenizer=Words())
    texts = ["a bb ccc", *TEXTS[1:]]
    said = foresee(model, texts, 4, 32)
    assert (said.inputs, said.tokens) == (3, 16)
    assert said.share == pytest.approx((5 + 16 + 16) / (3 * 16))
    assert "3 inputs of up to 16 tokens" in str(said)
    assert "3 inputs of 16 tokens" in str(foresee(model, [TEXTS[1]] * 3, 4, 32))


def test_texts_are_cut_to_the_tokens_asked_for(tmp_path):
    (tmp_path / "t.txt").write_text("\n".join(TEXTS))
    model = open_model(tiny("bert"), tokenizer=Words())
    cut_texts([model], 4)
    texts = named_inputs(model, text=tmp_path / "t.txt")
    assert model.prepare(texts)["input_ids"].shape == (3, 4)
    assert model.prepare.notes == ("3 texts were cut to the first 4 tokens",)
    refuses("--tokens cuts texts", lambda: cut_texts([open_model(tiny("vit"))], 4))


PEAK = """
import sys
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.pictures import picture_folder

def mebibytes(name):
    # Not ru_maxrss, which holds what the process was before it became this program.
    found = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(found.split()[1]) // 1024

before = mebibytes("VmRSS")  # torch alone may take half a gibibyte
pixels = Images(8)(picture_folder(sys.argv[1]))
print(len(pixels), mebibytes("VmHWM") - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone says the peak")
@pytest.mark.parametrize(("mode", "turned"), [("RGB", 1), ("RGBA", 6)])
def test_the_largest_pictures_take_less_than_800_mebibytes(tmp_path, mode, turned):
    """1.75 GB once: copies of what was RGB already, and the last picture beside the next."""
    exif = Image.Exif()
    exif[0x0112] = turned
    Image.new(mode, (9000, 9000)).save(tmp_path / "a.png", exif=exif, compress_level=1)
    (tmp_path / "b.png").symlink_to("a.png")
    done = python("-c", PEAK, tmp_path)
    assert done.returncode == 0, done.stderr
    count, peak = map(int, done.stdout.split())
    assert count == 2 and peak < 800


def test_a_picture_in_memory_stays_as_it_is():
    image = Image.new("RGB", (6, 4), (1, 2, 3))
    image.getexif()[0x0112] = 6
    assert upright_rgb(image).size == (4, 6) and image.size == (6, 4)
    plain = Image.new("RGB", (6, 4))
    assert upright_rgb(plain) is plain


# --- pictures of a model folder are what its own image processor makes of them ---


MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]
# The tiny ViT reads 32 x 32: as DeiT's 256 and 224, pictures of 40 x 40 are cropped.
BASE: dict[str, object] = {
    "image_processor_type": "MobileViTImageProcessor", "do_resize": True, "resample": 3,
    "size": {"height": 40, "width": 40}, "do_center_crop": True,
    "crop_size": {"height": 32, "width": 32}, "do_rescale": True, "rescale_factor": 1 / 255,
    "do_flip_channel_order": False,
}  # fmt: skip
NORMAL = BASE | {
    "image_processor_type": "ViTImageProcessor", "do_normalize": True, "image_mean": MEAN,
    "image_std": STD,
}  # fmt: skip
OPTIONS: list[dict[str, object]] = [
    {"do_resize": False}, {"size": {"height": 36, "width": 36}}, {"size": {"shortest_edge": 40}},
    {"size": {"height": 32, "width": 32}, "do_center_crop": False}, {"resample": 0},
    {"resample": 2}, {"do_rescale": False}, {"rescale_factor": 1 / 127.5},
]  # fmt: skip
STATISTICS: list[dict[str, object]] = [
    {"do_normalize": False}, {"image_mean": [0.5] * 3}, {"image_mean": 0.5},
    {"image_std": [0.5] * 3},
]  # fmt: skip


def noise(count: int = 2) -> list[Image.Image]:
    random = np.random.default_rng(0)
    return [
        Image.fromarray(random.integers(0, 256, (48 + k, 64, 3), np.uint8)) for k in range(count)
    ]


def folder(place: Path, settings: dict[str, object] | None) -> Path:
    tiny("vit").save_pretrained(place)
    if settings is not None:
        (place / "preprocessor_config.json").write_text(json.dumps(settings))
    return place


def theirs(place: Path, count: int = 2) -> Tensor:
    """The pixels that the library's own processor of the folder makes."""
    processor = AutoImageProcessor.from_pretrained(place, backend="pil")
    return processor(noise(count), return_tensors="pt")["pixel_values"]


def ours(place: Path, settings: dict[str, object], **given: object) -> Tensor:
    return open_model(folder(place, settings), **given).prepare(noise())


@cases(
    "base, change",
    *((BASE, change) for change in [*OPTIONS, {"do_flip_channel_order": True}]),
    *((NORMAL, change) for change in [*OPTIONS, *STATISTICS]),
)
def test_pixels_are_those_of_the_library_and_every_option_changes_them(tmp_path, base, change):
    found = ours(tmp_path, base | change)
    assert found.dtype == torch.float32 and torch.equal(found, theirs(tmp_path).float())
    assert not torch.equal(found, ours(tmp_path, base))


def test_pixels_are_resized_cropped_and_normalised_by_hand(tmp_path):
    expected = []
    for picture in noise():
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
    torch.testing.assert_close(model.prepare(noise(1)), same, atol=2e-6, rtol=0)
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
    written = (place / "open_clip_config.json").write_text
    written(json.dumps({"preprocess_cfg": stated}))
    model = open_model(place)
    same = ours(tmp_path / "same", NORMAL | {"size": size, "resample": how})
    assert not model.run_notes
    torch.testing.assert_close(model.prepare(noise()), same, atol=2e-6, rtol=0)
    written('{"preprocess_cfg": {"std": [0, 1, 1]}}')
    refuses("open_clip_config.json.*std of pixels must be", open_model, place)
    written('{"preprocess_cfg": {"resize_mode": ["squash"]}}')
    assert "not said, or not understood" in open_model(place).run_notes[0]


def test_settings_within_the_processor_of_a_whole_model_come_first(tmp_path):
    place = folder(tmp_path, BASE)
    (place / "processor_config.json").write_text(json.dumps({"image_processor": NORMAL}))
    expected = theirs(tmp_path)
    assert torch.equal(open_model(place).prepare(noise()), expected)
    assert torch.equal(expected, ours(tmp_path / "plain", NORMAL))


def test_a_mean_that_is_given_stands_in_the_place_of_the_stated_one(tmp_path):
    found = ours(tmp_path, NORMAL, mean=(0.1, 0.2, 0.3))
    assert torch.equal(found, ours(tmp_path, NORMAL | {"image_mean": [0.1, 0.2, 0.3]}))
    unscaled = ours(tmp_path, NORMAL | {"do_normalize": False})
    found = ours(tmp_path, NORMAL | {"do_normalize": False}, mean=(1.0, 1.0, 1.0))
    torch.testing.assert_close(found, unscaled - 1)


def test_a_picture_is_turned_upright_and_made_rgb_before_it_is_processed(tmp_path):
    model = open_model(folder(tmp_path, NORMAL))
    plain = noise(1)[0]
    turned = plain.transpose(Image.Transpose.ROTATE_90)
    turned.getexif()[0x0112] = 6
    grey = plain.convert("L")
    assert torch.equal(model.prepare([turned]), model.prepare([plain]))
    assert torch.equal(model.prepare([grey]), model.prepare([grey.convert("RGB")]))


def test_what_is_used_without_settings_is_said(tmp_path):
    said = "resized whole to 32 x 32 (bicubic), and mean 0.5 and std 0.5 are used"
    model = open_model(folder(tmp_path, None))
    assert said in model.run_notes[0] and said in open_model(tiny("vit")).run_notes[0]
    report = oversmoothing.inspect(model, noise())
    assert said in str(report.notes)
    # Of pixels nothing is resized or normalised.
    pixels = model.prepare(noise())
    for given in (pixels, list(pixels), {"pixel_values": pixels}):
        assert said not in str(oversmoothing.inspect(model, given).notes)
    whole = {**NORMAL, "size": {"height": 32, "width": 32}, "image_mean": 0.5, "image_std": 0.5}
    torch.testing.assert_close(model.prepare(noise()), ours(tmp_path, whole))
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
    refuses(r"pixels 3 x 32 x 42 of a picture of 64 x 48", lambda: model.prepare(noise(1)))
    long = [Image.new("RGB", (1, 80000))]
    refuses("more than 81 million: crop the picture first", model.prepare, long)


@cases(
    "command",
    "inspect", "loop --group 1 --loops 20", "stability", "flips", "readings",
    "tilt", "certified", "exponents --depth 200", "enclose",
    "ladder --calibration 12 --standard 12 --held-out 4",
)  # fmt: skip
def test_every_command_reads_pictures_as_the_folder_says(tmp_path, command, monkeypatch):
    (tmp_path / "shown").mkdir()
    for k, picture in enumerate(noise(16)):
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
    expected = theirs(place, 16)
    shown = [x for x in seen if not any(x.shape == y.shape and x.equal(y) for y in drawn)]
    assert shown
    for batch in shown:
        for pixels in batch:
            assert (pixels.float() == expected).flatten(1).all(1).any()


def test_a_bound_reads_pictures_as_the_folder_of_its_model_says(tmp_path):
    model = open_model(folder(tmp_path, NORMAL))
    changed = reparameterise(model, "band")
    by_pictures, by_pixels = (changed.bound(each) for each in (noise(), model.prepare(noise())))
    assert repr(by_pictures) == repr(by_pixels)
