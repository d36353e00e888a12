"""Another process that compares case after case, ended and begun anew when it does not answer."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

# What takes longer (of the processor) counts as no answer; the oracle itself may need half of it.
SECONDS = 45.0
# The first answer waits for the imports.
_START = 120.0


def answers(
    task: Callable[[Any], Any], items: Iterable[Any], seconds: float = SECONDS
) -> Iterator[tuple[Any, Any]]:
    """(item, task(item)) for each item, (item, None) where `seconds` of work were not enough.

    Raises `RuntimeError` with the trace of whatever the task raises.
    """
    context = multiprocessing.get_context("spawn")
    process, pipe = None, None
    for item in items:
        if process is None:
            pipe, other = context.Pipe()
            process = context.Process(target=_serve, args=(task, other), daemon=True)
            process.start()
            other.close()
            if not pipe.poll(_START):
                process.kill()
                raise RuntimeError("the other process does not start")
            pipe.recv()
        assert pipe is not None
        pipe.send((item, seconds))
        try:
            answer, failure = pipe.recv()
        except EOFError:
            process.join()
            process = None
            yield item, None
            continue
        if failure:
            raise RuntimeError(failure)
        yield item, answer
    if process is not None and pipe is not None:
        pipe.close()
        process.join()


@contextmanager
def patience(seconds: float, error: Exception) -> Iterator[None]:
    """Raises the error where what stands inside, in Python alone, works for longer."""

    def give_up(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _serve(task: Callable[[Any], Any], pipe: Connection) -> None:
    pipe.send("ready")
    while True:
        try:
            item, seconds = pipe.recv()
        except EOFError:
            return
        # Of its own time, whatever else the machine does; at the end of it the process is ended.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            answer, failure = task(item), ""
        except Exception:
            answer, failure = None, traceback.format_exc()
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send((answer, failure))
