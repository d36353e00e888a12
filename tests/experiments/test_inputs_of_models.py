"""Pictures and texts are read as they are, or refused in a sentence: no clipping; texts
that are too long are cut and counted."""

import os
import struct
import weakref
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, PngImagePlugin

from oversmoothing import InputError, inspect, open_model
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
    with pytest.raises(InputError, match=r"more than 81 million|cannot be read"):
        picture_folder(tmp_path)[0]


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
    with pytest.raises(InputError, match="cannot be read"):
        picture_folder(tmp_path)[0]


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
    report = inspect(model, TEXTS, name="bert")
    assert report.notes[-1] == "2 texts were cut to the first 16 tokens"
    ids = model.prepare(TEXTS)["input_ids"]
    assert ids.shape == (3, 16) and ids[1, -1] == 2  # the last special token is kept
    short = inspect(model, TEXTS[:1], name="bert")
    assert not any("cut" in note for note in short.notes)
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
