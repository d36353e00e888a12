"""Claims run in worker processes, and searches in chunks over several runs.

Evidence holds functions, which no process can send to another: a worker gets an importable function
that makes the ledger, and the name of the claim; what it sends back are positions and outcomes.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, TypeVar

from oversmoothing.theory.proofs.claim import Claim, Effort, Finding, Kind, Outcome
from oversmoothing.theory.proofs.coq import share_built
from oversmoothing.theory.proofs.ledger import Entry, Ledger, run_claim
from oversmoothing.theory.proofs.standing import standing
from oversmoothing.theory.proofs.thorough import Chunk, Coverage, run_chunk
from oversmoothing.theory.proofs.workers import end_with

MakeLedger = Callable[[], Ledger]
Kinds = frozenset[Kind] | None
T = TypeVar("T")


@contextlib.contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes; where the work is given up, an interrupt that reached this process alone
    among them, no worker is waited for."""
    # spawn: a forked copy of torch's thread pools can hang.
    context = multiprocessing.get_context("spawn")
    share_built()
    before = multiprocessing.active_children()
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in before:
                child.kill()
        raise
    pool.shutdown()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """An interrupt that comes within takes effect behind it.

    Within the start of a worker it would leave a process that nobody knows, at work and waited for.
    """
    came: list[int] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def as_done(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """Futures as they are done.

    The kernel may hand an interrupt to another thread than the main one, whose wait for a lock then
    goes on: this one looks up twice a second.
    """
    left = set(futures)
    while left:
        done, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
        yield from done


def _begin(parent: int) -> None:
    """A worker ends with its parent; what a claim prints is no part of the report."""
    end_with(parent)
    sys.stdout = sys.stderr


def _claim_in_worker(
    make: MakeLedger, name: str, effort: Effort, kinds: Kinds
) -> tuple[str, list[tuple[int, Outcome, float]], float]:
    entry = run_claim(make()[name], effort, kinds)
    return name, [(f.index, f.outcome, f.seconds) for f in entry.findings], entry.seconds


def run_claims(
    chosen: Sequence[Claim], make: MakeLedger, effort: Effort, kinds: Kinds, jobs: int
) -> Iterator[Entry]:
    """Each claim's entry as soon as it is done, on `jobs` processes, to be `settled` together; one
    claim, or with one job all of them, in this process.

    make: an importable function; its ledger holds the evidence of the chosen claims.
    """
    known = {claim.name: claim for claim in chosen}
    if jobs == 1 or len(known) == 1:
        # A worker costs the seconds in which it loads the ledger.
        for claim in known.values():
            with contextlib.redirect_stdout(sys.stderr):
                entry = run_claim(claim, effort, kinds)
            yield entry
        return
    with _pool(jobs) as pool:
        # The first ones of these start the workers.
        with _interrupts_held():
            futures = [pool.submit(_claim_in_worker, make, name, effort, kinds) for name in known]
        for future in as_done(futures):
            name, plain, seconds = future.result()
            evidence = known[name].evidence
            findings = [Finding(k, evidence[k], outcome, spent) for k, outcome, spent in plain]
            yield Entry(known[name], standing(known[name], findings), findings, seconds)


def _chunk_in_worker(make: MakeLedger, chunk: Chunk) -> tuple[Chunk, dict[str, Any]]:
    return chunk, run_chunk(chunk, make())


def run_chunks(
    chunks: Iterable[Chunk],
    make: MakeLedger,
    coverage: Coverage,
    jobs: int,
    stop: float | None = None,
) -> Iterator[Chunk]:
    """Search the chunks, each recorded in `coverage` and yielded when done.

    stop: no chunk is begun once time.monotonic() has passed it.
    """
    waiting = iter(chunks)
    running: set[Future[tuple[Chunk, dict[str, Any]]]] = set()
    with _pool(jobs) as pool:
        while True:
            while len(running) < jobs and (stop is None or time.monotonic() < stop):
                following = next(waiting, None)
                if following is None:
                    break
                with _interrupts_held():
                    running.add(pool.submit(_chunk_in_worker, make, following))
            if not running:
                return
            finished = next(as_done(running))
            running.discard(finished)
            chunk, found = finished.result()
            coverage.add(chunk, found)
            yield chunk
