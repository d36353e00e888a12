"""Worker processes end with the one that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from oversmoothing.theory.support.workers import end_with

ROOT = Path(__file__).resolve().parents[2]


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


def test_workers_of_a_thorough_search_end_when_it_is_killed(tmp_path):
    run = subprocess.Popen(
        [sys.executable, "-m", "oversmoothing", "prove", "--thorough", "--claim", "T2d"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    # Chunks are written: the workers are at work.
    while not (tmp_path / "results" / "thorough.json").exists():
        assert run.poll() is None
        time.sleep(0.1)
    workers = [pid for pid in members(run.pid) if pid != run.pid]
    assert workers
    run.send_signal(signal.SIGKILL)
    run.wait()
    for _ in range(300):
        if not members(run.pid):
            return
        time.sleep(0.1)
    raise AssertionError(f"still there: {members(run.pid)}")


def test_a_process_with_another_parent_ends_at_once():
    child = os.fork()
    if child == 0:
        end_with(os.getpid())  # nobody's parent here
        time.sleep(20)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
