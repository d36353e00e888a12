"""What a result is written over, through and beside; whole or not: tests/test_writers.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oversmoothing.theory.support import files
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, write_atomically, write_together
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
    kept = Path(str(error.value).split("'")[-2])
    assert kept.read_text() == "old a"
    assert (tmp_path / "b").read_text() == "old b"
    assert len(list(tmp_path.iterdir())) == 3


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
