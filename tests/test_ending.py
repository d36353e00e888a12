"""Whatever happens, a command ends with one sentence and a status that is no false answer."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oversmoothing
from oversmoothing.commands import ending, main
from tests.support.cases import cases
from tests.support.processes import python

ROOT = Path(__file__).resolve().parent.parent
SWEEP = 'measures = []\n[fixed]\nn = 3\nd = 2\nvalue = "interval"\n[axes]\nseed = [0, 1, 2]\n'


def shell(words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A line of bash in which $O is the command; its exit status is that of the command."""
    return subprocess.run(
        ["bash", "-c", words],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "O": f"{sys.executable} -m oversmoothing"},
    )


@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
@pytest.mark.parametrize("words", ["verdict --example GT4", "--help", "certify --example GT4"])
def test_an_output_that_takes_no_text_is_said_with_a_status_of_its_own(tmp_path, words, output):
    done = shell(f"$O {words} {output}", tmp_path)
    assert done.returncode == ending.UNWRITTEN
    assert "standard output did not take the text" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_bad_input_stays_bad_input_without_any_output(tmp_path):
    done = shell("$O verdict absent.json", tmp_path)
    assert (done.returncode, done.stdout) == (2, "") and "cannot read 'absent.json'" in done.stderr
    assert shell("$O verdict absent.json >&-", tmp_path).returncode == 2
    assert shell("$O verdict absent.json >&- 2>&-", tmp_path).returncode == 2


def test_a_reader_that_goes_away_is_no_failure_and_a_sweep_without_one_is_computed(tmp_path):
    done = shell("$O verdict --example GT4 | true; exit ${PIPESTATUS[0]}", tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    (tmp_path / "s.toml").write_text(SWEEP)
    done = shell("$O sweep s.toml --out out | true; exit ${PIPESTATUS[0]}", tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert (tmp_path / "out" / "sweeps" / "s" / "sweep.parquet").exists()


def test_a_refused_certificate_stays_refused_without_a_reader(tmp_path):
    assert oversmoothing.main(["certify", "--example", "GT4", "--out", f"{tmp_path}/c.json"]) == 0
    text = (tmp_path / "c.json").read_text()
    digest = text.split('"digest": "')[1][:64]
    (tmp_path / "c.json").write_text(text.replace(digest, "0" * 64))
    done = shell("$O check c.json | true; exit ${PIPESTATUS[0]}", tmp_path)
    assert done.returncode == 1 and done.stderr == ""


@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.3, 0.6])
def test_an_interrupt_at_the_start_is_one_line_or_none(tmp_path, seconds):
    started = subprocess.Popen(
        [sys.executable, "-m", "oversmoothing", "prove", "T2"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(seconds)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=60)
    # Else Python itself was still starting: its module `site` has a `main` as well.
    if re.search(r"oversmoothing.*, in main", said) or "interrupted" in said:
        assert started.returncode == 130
        assert said.splitlines()[0].endswith("interrupted")
        assert "Traceback" not in said


@pytest.mark.parametrize("module", ["oversmoothing.commands.ending", "oversmoothing.commands.main"])
def test_an_interrupt_inside_exec_while_a_module_is_read_ends_with_its_status(tmp_path, module):
    # CPython remembers an interrupt that passed through `exec` of a text: it dies of it at its end.
    (tmp_path / "sitecustomize.py").write_text(f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            exec("raise KeyboardInterrupt")
sys.meta_path.insert(0, Interrupt())
""")
    words = "oversmoothing", "verdict", "--example", "GT4"
    done = python("-m", *words, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "oversmoothing verdict: interrupted\n"


def test_an_interrupt_while_a_module_is_imported_is_said(monkeypatch, told):
    def load(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "load", load)
    assert "interrupted" in told(130, "verdict", "--example", "GT4")


@cases(
    "fault, said",
    (ZeroDivisionError("division\nby zero"), "a fault of the program, not an answer: ZeroDiv"),
    (RecursionError("x" * 10**4), "RecursionError"),
    (AssertionError(), "AssertionError"),
    (MemoryError(), "not enough memory"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "not enough memory"),
    ids=lambda x: type(x).__name__,
)
@pytest.mark.parametrize("name", ["check", "verdict"])
def test_a_fault_of_the_program_is_one_line_and_no_answer(monkeypatch, capsys, fault, said, name):
    def load(word: str) -> None:
        raise fault

    monkeypatch.setattr(main, "load", load)
    status = oversmoothing.main([name, "x"])
    assert status == ending.FAILED
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(f"oversmoothing {name}: ")
    assert said in printed.err and printed.err.count("\n") == 1 and len(printed.err) < 600


def test_the_traceback_of_a_fault_is_shown_where_it_is_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(main, "load", lambda name: 1 / 0)
    monkeypatch.setenv(ending.TRACEBACK, "1")
    assert oversmoothing.main(["verdict", "x"]) == ending.FAILED
    assert "Traceback" in capsys.readouterr().err
