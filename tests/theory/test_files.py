"""Results are written whole or not at all, whatever step of the file system fails."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from oversmoothing.theory.support import files
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, write_atomically, write_together

# Every step by which a writer touches the disk, as `files` names it.
STEPS = {
    os: ("stat", "fdopen", "fsync", "chmod", "replace"),
    tempfile: ("mkstemp",),
    shutil: ("copy2",),
    Path: ("mkdir",),
}
FAULTS = [OSError(28, "No space left on device"), KeyboardInterrupt()]


@contextmanager
def failing(step: int, fault: BaseException, after: bool = False) -> Iterator[SimpleNamespace]:
    """Raise `fault` in the place of the file-system call of that number, or right after it."""
    told = SimpleNamespace(calls=0, failed="")

    def watched(genuine: Any, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            told.calls += 1
            if told.calls != step + 1:
                return genuine(*arguments, **named)
            told.failed = name
            if after:
                genuine(*arguments, **named)
            raise fault

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, names in STEPS.items():
            for name in names:
                patch.setattr(owner, name, watched(getattr(owner, name), name))
        yield told


def held(folder: Path) -> dict[str, str]:
    """Every file of a folder, hidden ones too, with its content."""
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("fault", FAULTS, ids=["full", "interrupt"])
@pytest.mark.parametrize(
    "before", [{}, {"a": "old a"}, {"a": "old a", "b": "old b", "c": "old c"}], ids=len
)
def test_several_files_are_all_new_or_all_old_whichever_step_fails(tmp_path, before, fault):
    new = {name: f"new {name}" for name in "abc"}
    step, steps = 0, []
    while True:
        folder = tmp_path / str(step)
        folder.mkdir()
        for name, content in before.items():
            (folder / name).write_text(content)
        wanted = {folder / name: content for name, content in new.items()}
        with failing(step, fault) as told:
            said = None
            try:
                write_together(wanted)
            except (InputError, KeyboardInterrupt) as error:
                said = error
                assert isinstance(fault, KeyboardInterrupt) or "No space left" in str(error)
        if not told.failed:
            break
        steps.append(told.failed)
        # shutil does without some answers of the file system.
        assert held(folder) == (new if said is None else before), (step, told.failed)
        step += 1
    assert held(folder) == new
    assert steps.count("replace") == 3 and steps.count("fsync") == 3
    assert steps.count("copy2") == len(before.keys() - {"c"})


@pytest.mark.parametrize("step", range(40))
def test_an_interrupt_right_after_a_step_leaves_all_new_or_all_old(tmp_path, step):
    old, new = ({name: f"{age} {name}" for name in "ab"} for age in ("old", "new"))
    for name, content in old.items():
        (tmp_path / name).write_text(content)
    with failing(step, KeyboardInterrupt(), after=True) as told, suppress(KeyboardInterrupt):
        write_together({tmp_path / name: content for name, content in new.items()})
    if told.failed == "mkstemp":  # its name never came back
        for stray in tmp_path.glob(".writing-*"):
            stray.unlink()
    assert held(tmp_path) in (old, new)


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
        with pytest.raises(InputError, match="cannot write"):
            write_together({tmp_path / "a": "a", tmp_path / name: "b"})
    with pytest.raises(InputError, match="a device or a pipe"):
        write_atomically("/dev/null", "x")
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
        with pytest.raises(InputError, match=r"cannot write to the output folder .*too large"):
            output_folder(tmp_path, 2**16)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
