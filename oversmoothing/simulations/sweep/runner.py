"""Who computes the chunks: this process, worker processes (joblib), or a Dask cluster.

All run the same function on the same points with one BLAS thread, so the values do not depend on
who did. (They do depend on the kind of processor that BLAS was made for: on a cluster of unlike
machines the last digits may.)
"""

import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from oversmoothing.simulations.running import Bar
from oversmoothing.simulations.sweep.config import Config
from oversmoothing.simulations.sweep.points import Point, Points
from oversmoothing.simulations.sweep.store import Store, locked
from oversmoothing.simulations.sweep.together import outcomes
from oversmoothing.theory.proofs.workers import end_with
from oversmoothing.theory.support.errors import InputError, RequirementError, required
from oversmoothing.theory.support.files import output_folder

CHUNK = 100
# Chunks handed out ahead of each Dask worker, so that none waits for the next.
_AHEAD = 3
# Seconds to wait for a scheduler to answer.
PATIENCE = 10

Rows = list[dict[str, Any]]
Work = tuple[range, list[Point], tuple[str, ...]]
Backend = Callable[[Iterable[Work]], Iterator[tuple[range, Rows]]]


def compute(work: Work) -> tuple[range, Rows]:
    """The outcomes of one chunk: the function that every worker runs."""
    chunk, points, measures = work
    return chunk, outcomes(points, measures)


def _compute_in_worker(work: Work, parent: int | None) -> tuple[range, Rows]:
    """`compute` in a process of its own: BLAS is pinned for good, the first time."""
    _prepare(parent)
    return compute(work)


@cache
def _prepare(parent: int | None) -> None:
    threadpool_limits(limits=1)
    if parent is not None:
        end_with(parent)


def here(works: Iterable[Work]) -> Iterator[tuple[range, Rows]]:
    """One chunk after the other in this process."""
    for work in works:
        with threadpool_limits(limits=1):
            chunk = compute(work)
        yield chunk


def processes(workers: int) -> Backend:
    """`workers` processes on this machine."""
    if workers == 1:
        return here

    def run(works: Iterable[Work]) -> Iterator[tuple[range, Rows]]:
        from joblib import Parallel, delayed
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        parent = os.getpid()
        parallel = Parallel(
            n_jobs=workers,
            backend="loky",
            return_as="generator_unordered",
            pre_dispatch=workers * _AHEAD,
            batch_size=1,
            max_nbytes=None,
        )
        results = parallel(delayed(_compute_in_worker)(work, parent) for work in works)
        try:
            yield from results
        except TerminatedWorkerError as error:
            raise RequirementError(
                "a worker process was killed (out of memory, perhaps); the finished chunks are "
                "kept: run the same command again, with fewer --workers if it was the memory"
            ) from error
        finally:
            with warnings.catch_warnings():
                # That interrupted work is given up is what an interrupt means.
                warnings.simplefilter("ignore")
                results.close()

    return run


@dataclass(frozen=True)
class Dask:
    """A backend on a Dask cluster: `client` is a distributed.Client.

    A killed worker's chunks are given to another one, or to the one that replaces it. (joblib's own
    Dask backend never hands on a chunk that killed every worker it was given to: tried with joblib
    1.6, the generator waits for ever. Here it is an error that says what to do.)
    """

    client: Any

    def __call__(self, works: Iterable[Work]) -> Iterator[tuple[range, Rows]]:
        distributed = required("distributed")
        waiting = iter(works)

        def submit(number: int) -> list[Any]:
            return [
                self.client.submit(_compute_in_worker, work, None, pure=False)
                for work in itertools.islice(waiting, number)
            ]

        # Not all at once: the scheduler need not hold the whole sweep.
        threads = max(1, sum(self.client.nthreads().values()))
        futures = distributed.as_completed(submit(threads * _AHEAD))
        for future in futures:
            try:
                chunk = future.result()
            except (distributed.KilledWorker, distributed.CancelledError, OSError) as error:
                raise RequirementError(
                    f"the cluster lost a chunk or itself ({type(error).__name__}: {error}); the "
                    "finished chunks are kept: run the same command again"
                ) from error
            future.release()
            for more in submit(1):
                futures.add(more)
            yield chunk

    def close(self) -> None:
        """Leave the cluster; one that was started here ends."""
        for each in (self.client, self.client.cluster):
            if each is not None:
                each.close()


def connect(address: str) -> Dask:
    """A running Dask cluster by the address of its scheduler. Raises `InputError`."""
    distributed = required("distributed")
    try:
        return Dask(distributed.Client(address, timeout=PATIENCE))
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"no Dask scheduler answers at '{address}' ({error}): start one with "
            "'dask scheduler', and give the address it prints"
        ) from error


def local_cluster(workers: int) -> Dask:
    """A Dask cluster of `workers` processes on this machine."""
    distributed = required("distributed")
    cluster = distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    return Dask(distributed.Client(cluster))


def run_sweep(
    config: Config,
    folder: Path,
    *,
    backend: Backend = here,
    chunk: int = CHUNK,
    restart: bool = False,
    progress: bool = False,
    after_chunk: Callable[[range], None] = lambda chunk: None,
) -> Path:
    """Compute every point that the folder does not hold yet. Returns the path of the table.

    Killed at any moment, it loses the chunks in work; the next run computes what is missing, and
    its table is that of an unbroken run, byte for byte. chunk: points a file. after_chunk is called
    when a chunk has been written. Raises `InputError` where the folder holds another
    sweep, and while another process works in it.
    """
    if chunk < 1:
        raise InputError(f"a chunk must have at least 1 point, not {chunk}")
    with locked(output_folder(folder)):
        points = Points(config)
        store = Store(folder, config, len(points))
        if store.open(restart=restart):
            print(f"'{store.table_path}' is complete: nothing to do", file=sys.stderr)
            return store.table_path
        missing = store.missing(chunk)
        for path in store.damaged:
            print(f"damaged, computed again: {path}", file=sys.stderr)
        there = len(points) - sum(map(len, missing))
        if there:
            print(f"resumed: {there:,} of {len(points):,} points are there", file=sys.stderr)

        works = ((part, [points[k] for k in part], config.measures) for part in missing)
        with Bar(len(points) - there, "point", progress) as bar:
            for done, rows in backend(works):
                store.add(done, (points[k] for k in done), rows)
                bar.update(len(done))
                after_chunk(done)
        return store.assemble()


def chosen_backend(workers: int | None, cluster: bool, scheduler: str | None) -> Backend:
    """Processes of this machine, a Dask cluster on it, or one that runs at an address.

    Raises `InputError` for no worker, and for workers or a cluster beside an address.
    """
    if scheduler is not None:
        if cluster or workers is not None:
            raise InputError("--scheduler has its own workers: leave out --workers and --cluster")
        return connect(scheduler)
    number = 1 if workers is None else workers
    if number < 1:
        raise InputError(f"--workers must be at least 1, not {number}")
    return local_cluster(number) if cluster else processes(number)
