"""Worker processes end with the one that started them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from oversmoothing.theory.proofs.reals import Query
from oversmoothing.theory.proofs.workers import end_at_once_with, end_with, in_order
from tests.support.cases import cases
from tests.support.refusals import refuses

ROOT = Path(__file__).resolve().parents[2]


def interruptible() -> None:
    """A background job inherits SIGINT ignored; what is started here must see it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(entry.name)) == session:
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                found += [int(entry.name)] if state != "Z" else []
        except (OSError, ProcessLookupError):
            continue
    return found


def started(*words: str, **more: Any) -> subprocess.Popen[str]:
    """Python with these words, in a session of its own."""
    paths = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = (sys.executable, *words)
    return subprocess.Popen(words, text=True, start_new_session=True, env=paths, **more)


def gone(session: int, seconds: float) -> bool:
    """Whether nothing of a session lives, soon."""
    end = time.monotonic() + seconds
    while members(session) and time.monotonic() < end:
        time.sleep(0.1)
    return not members(session)


@cases(
    "command, at_work",
    (["prove", "--thorough", "T2d"], "thorough.json"),
    (["study", "trainability", "--workers", "2"], "study/weights/*"),
)
def test_workers_of_a_long_command_end_when_it_is_killed(tmp_path, command, at_work):
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = started("-m", "oversmoothing", *command, cwd=tmp_path, **nowhere)
    # Chunks or folders are written: the workers are at work.
    while not any((tmp_path / "results").glob(at_work)):
        assert run.poll() is None
        time.sleep(0.1)
    workers = [pid for pid in members(run.pid) if pid != run.pid]
    assert workers
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert gone(run.pid, 30), f"still there: {members(run.pid)}"


def test_an_interrupt_of_the_command_alone_waits_for_no_worker(tmp_path):
    words = ["-m", "oversmoothing", "prove", "T2", "--examples", "20000", "--jobs", "2"]
    told = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    run = started(*words, cwd=tmp_path, preexec_fn=interruptible, **told)
    # The command, its tracker of resources and the first worker: the interrupt falls into the start
    # of the second one, or soon behind it.
    while len(members(run.pid)) < 3:
        assert run.poll() is None
        time.sleep(0.001)
    run.send_signal(signal.SIGINT)
    begun = time.monotonic()
    _, said = run.communicate(timeout=120)
    # All claims of T2 take a minute and more with so many examples.
    assert time.monotonic() - begun < 30
    assert run.returncode == 130 and "interrupted" in said and "Traceback" not in said
    assert gone(run.pid, 10), f"still there: {members(run.pid)}"


# The interrupt goes to a thread that waits for something else.
ELSEWHERE = """
import signal, threading, time
from concurrent.futures import Future
from oversmoothing.theory.proofs.workers import as_done
other = threading.Thread(target=time.sleep, args=(60,), daemon=True)
other.start()
threading.Timer(1, signal.pthread_kill, (other.ident, signal.SIGINT)).start()
begun = time.monotonic()
try:
    list(as_done([Future()]))
except KeyboardInterrupt:
    print(time.monotonic() - begun)
"""


def test_an_interrupt_that_another_thread_is_handed_ends_the_wait():
    run = started("-c", ELSEWHERE, stdout=subprocess.PIPE, preexec_fn=interruptible)
    assert float(run.communicate(timeout=60)[0]) < 10 and run.returncode == 0


# A minute and more for cvc5.
HARD = Query(
    "hard",
    ("x", "y", "u", "v"),
    ("u*u+v*v < 1", "x*x+y*y+x <= 0", "x*x+y*y > 0"),
    "(1+x*u-y*v)**2+(x*v+y*u)**2 > (1+x)**2+y*y or (1+x*u+y*v)**2+(y*u-x*v)**2 > (1+x)**2+y*y",
)
ASK = "from oversmoothing.theory.proofs.solver import solve; solve({!r}, 'cvc5', 300.0)"
# `re` lets no other thread run, as cvc5 does not.
BUSY = """
import os, re
from oversmoothing.theory.proofs.reals import Query
from oversmoothing.theory.proofs.workers import end_at_once_with
child = os.fork()
if child == 0:
    end_at_once_with(os.getppid())
    print("at work", flush=True)
    re.match("(a*)*b", "a" * 60)
os.waitpid(child, 0)
"""


def ended_with_its_parent(run: subprocess.Popen[str]) -> bool:
    """Kill the parent of a session once it has a child."""
    while len(members(run.pid)) < 2:
        assert run.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    assert len(members(run.pid)) == 2, "the child was done too early"
    run.send_signal(signal.SIGKILL)
    run.wait()
    return gone(run.pid, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked on Linux")
def test_a_process_that_lets_no_thread_run_ends_with_its_parent():
    run = started("-c", BUSY, stdout=subprocess.PIPE)
    assert run.stdout is not None and run.stdout.readline() == "at work\n"
    assert ended_with_its_parent(run)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked on Linux")
def test_a_solver_ends_with_the_process_that_asked():
    assert ended_with_its_parent(started("-c", ASK.format(HARD.to_smtlib())))


@cases("end, seconds", (end_with, 20.0), (end_at_once_with, 0.0))
def test_a_process_with_another_parent_ends_or_is_not_begun(end, seconds):
    child = os.fork()
    if child == 0:
        end(os.getpid())  # nobody's parent here
        time.sleep(seconds)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_of_several_processes_come_in_the_order_of_the_calls(jobs):
    # The first takes longest; each has its own arguments.
    calls = [(time.sleep, 0.3), *((pow, 2, k) for k in range(5)), (int, "x")]
    results = in_order(calls, jobs)
    assert [next(results) for _ in calls[:-1]] == [None, 1, 2, 4, 8, 16]
    refuses("invalid literal", next, results, error=ValueError)
    assert list(in_order([], jobs)) == []
