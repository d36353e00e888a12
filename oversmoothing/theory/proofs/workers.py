"""Worker processes that end with their parent, and never hear Ctrl-C, which is for it."""

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any, TypeVar

T = TypeVar("T")

# prctl(2): the signal that a process gets when the thread that started it ends.
_PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """End this process soon after `parent` is gone: nobody would collect its results."""
    threading.Thread(target=_wait, args=(parent,), daemon=True).start()


def end_at_once_with(parent: int) -> None:
    """`end_with` where no other thread may run for minutes: cvc5 holds the interpreter.

    On Linux the kernel ends this process together with the thread of `parent` that started it, and
    that waits for it; elsewhere it ends as soon as a thread may run. Raises `OSError`.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL):
            raise OSError(ctypes.get_errno(), "prctl")
        if os.getppid() != parent:
            os._exit(1)  # it was gone before the kernel was asked
    else:
        end_with(parent)


def _wait(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


@contextlib.contextmanager
def workers(jobs: int, nice: int = 0) -> Iterator[Callable[..., Future[Any]]]:
    """What hands a call to one of `jobs` processes, of that niceness.

    Where the work is given up, an interrupt among the reasons, no process is waited for. What one
    of them prints goes to standard error.
    """
    # spawn: a forked copy of torch's thread pools can hang.
    context = multiprocessing.get_context("spawn")
    before = multiprocessing.active_children()
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(os.getpid(), nice))

    def submit(call: Callable[..., T], *given: Any) -> Future[T]:
        # The first call starts the processes.
        with _interrupts_held():
            return pool.submit(call, *given)

    try:
        yield submit
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            if child not in before:
                child.kill()
        raise
    pool.shutdown()


def _begin(parent: int, nice: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if nice:
        os.nice(max(0, nice - os.nice(0)))
    end_with(parent)
    # The lock between processes that a bar makes outlives one that is killed, with a warning.
    with contextlib.suppress(ImportError):
        from tqdm import tqdm

        tqdm.set_lock(threading.RLock())
    sys.stdout = sys.stderr


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


def in_order(calls: Iterable[tuple[Any, ...]], jobs: int) -> Generator[Any, None, None]:
    """The results of (function, arguments...), in their order, each as soon as it and all before it
    are there: of `jobs` processes, or with one job in this process."""
    if jobs == 1:
        yield from (call(*given) for call, *given in calls)
        return
    with workers(jobs) as submit:
        for future in [submit(*call) for call in calls]:
            yield next(as_done([future])).result()
