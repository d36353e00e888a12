"""What is written over, through and beside, and what is read whole or refused in a sentence."""

import os
import time
from fractions import Fraction
from pathlib import Path

import pytest

from oversmoothing.theory.layer.layer import load_layer, read_layer
from oversmoothing.theory.numbers.exact import to_fraction
from oversmoothing.theory.support import files
from oversmoothing.theory.support.errors import DIGITS, InputError
from oversmoothing.theory.support.files import (
    DEPTH,
    output_folder,
    parse_json,
    parse_toml,
    read_text,
    write_atomically,
    write_together,
)
from oversmoothing.theory.verdict.verdict import heads_verdict
from tests.support.cases import cases
from tests.support.refusals import refuses


def test_where_the_way_back_fails_too_the_message_says_what_is_kept(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / name).write_text(f"old {name}")
    genuine, calls = os.replace, []

    def replace(source: str, target: Path) -> None:
        calls.append(source)
        if len(calls) > 1:
            raise OSError(5, "Input/output error")
        genuine(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(InputError, match=r"what '.*a' held before is kept as '(.*)'") as error:
        write_together({tmp_path / name: f"new {name}" for name in "ab"})
    assert Path(str(error.value).split("'")[-2]).read_text() == "old a"
    assert (tmp_path / "b").read_text() == "old b" and len(list(tmp_path.iterdir())) == 3


def test_a_link_is_written_through_and_stays(tmp_path):
    (tmp_path / "far").mkdir()
    real, link, second = tmp_path / "far" / "real", tmp_path / "link", tmp_path / "second"
    real.write_text("old")
    link.symlink_to("far/real")
    second.symlink_to(link)
    assert write_atomically(second, "new") == second
    assert second.is_symlink() and link.is_symlink() and real.read_text() == "new"
    dangling = tmp_path / "dangling"
    dangling.symlink_to("far/made")
    write_atomically(dangling, "x")
    assert dangling.is_symlink() and (tmp_path / "far" / "made").read_text() == "x"
    assert {path.name for path in (tmp_path / "far").iterdir()} == {"real", "made"}


def test_what_is_no_regular_file_is_refused_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "full").symlink_to("/dev/full")
    for name in ("pipe", "folder", "loop", "full", "x" * 300, "folder/" * 2000):
        refuses("cannot write", write_together, {tmp_path / "a": "a", tmp_path / name: "b"})
    refuses("a device or a pipe", write_atomically, "/dev/null", "x")
    assert not Path("/dev/null").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "folder", "loop", "full"}


def test_a_file_keeps_its_mode_and_a_long_name_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    path.write_text("old")
    path.chmod(0o640)
    write_atomically(path, "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o640


def test_a_folder_is_proved_by_real_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROOM", 0)
    assert output_folder(tmp_path / "new" / "folder", 2**16) == tmp_path / "new" / "folder"
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**12, hard))
    try:
        refuses(r"cannot write to the output folder .*too large", output_folder, tmp_path, 2**16)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


# --- what a user writes ---


REFUSED = {
    '{"a": 1, "b": 2, "a": 1}': "'a' occurs more than once",
    '[{"x": {"y": 1, "y": 2}}]': "'y' occurs more than once",
    "[NaN]": "NaN",
    '{"a": -Infinity}': "-Infinity",
    "[1e400]": "beyond the range",
    "[-1e309]": "beyond the range",
    "1" * (DIGITS + 1): "more than 4000 digits",
    "-" + "1" * 10**6: "more than 4000 digits",
    "[0." + "1" * 5000 + "]": "more than 4000 digits",
    "[1e-99999999999]": "more than 4000 digits",
    "[1e999999999]": "more than 4000 digits",
    "[" * (DEPTH + 1) + "]" * (DEPTH + 1): "nested too deeply",
    '{"a":' * 10**5: "nested too deeply",
    "[1,]": "not JSON",
    "{'a': 1}": "not JSON",
    "": "not JSON",
    "1 2": "not JSON",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_a_text_that_means_no_one_thing_is_refused_with_its_name(text):
    began = time.perf_counter()
    with pytest.raises(InputError, match=REFUSED[text]) as error:
        parse_json(text, "'file'")
    assert str(error.value).startswith("'file'") and len(str(error.value)) < 400
    assert time.perf_counter() - began < 5


@cases(
    "text, says",
    ("x = " + "[" * 10**5, "nested too deeply"),
    ("x = " + "1" * 5000, "not TOML"),
    ("x", "not TOML"),
)
def test_toml_that_cannot_be_read_is_refused_with_its_name(text, says):
    refuses(f"^'file' is {says}", parse_toml, text, "'file'")


def test_plain_json_is_what_it_says():
    text = '{"a": [1, -2.5e-3, "x", null, true], "b": {"a": 1' + "0" * 3000 + "}}"
    assert parse_json(text, "") == {"a": [1, -0.0025, "x", None, True], "b": {"a": 10**3000}}
    nested = "[" * DEPTH + "]" * DEPTH
    assert str(parse_json(nested, "")) == nested


@cases("text", "1e999999999", "1e-9999999999", "1/" + "3" * 5000, "0." + "3" * 5000, "x" * 5000)
def test_a_number_without_end_is_refused_before_it_is_made(text):
    began = time.perf_counter()
    refuses("more than 4000 digits", to_fraction, text, "H[0, 0]")
    assert time.perf_counter() - began < 1


def test_numbers_of_many_digits_are_exact():
    assert to_fraction("1e-400", "") == Fraction(1, 10**400)
    assert to_fraction(" -12.5e+2 ", "") == -1250
    assert to_fraction("1/" + "3" * 4000, "") == Fraction(1, int("3" * 4000))


@pytest.mark.parametrize("name", ["A", "H", "X0", "logits"])
def test_what_binary64_cannot_hold_is_refused_by_name(name):
    given = {"A": [["1"]], "H": [["1/2"]], "X0": [["2"]]} | {name: [["1e400"]]}
    given.pop("A" if name == "logits" else "", None)
    refuses(f"{name} has an entry beyond the range of binary64", read_layer, **given)
    for entry in ("1e400", 10**400) if name == "A" else ():
        refuses("A has an entry beyond the range", heads_verdict, A=[[[entry]]], W=[[[0.5]]])


def test_only_a_regular_file_of_some_size_is_read(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        refuses("no regular file", read_text, path)
    for path in (tmp_path, tmp_path / ("x" * 300), tmp_path / "absent"):
        refuses("cannot read", read_text, path)
    (tmp_path / "case.json").write_text('{"A": [["1"]], "H": [["1"]], "H": [["2"]]}')
    refuses("'H' occurs more than once", lambda: load_layer(str(tmp_path / "case.json")))
    monkeypatch.setattr(files, "BYTES", 2**10)
    (tmp_path / "large").write_text("x" * 2**10 + "y")
    refuses("larger than", read_text, tmp_path / "large")
