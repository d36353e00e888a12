"""One thread: the same last digits on any number of cores, and small matrices run faster."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """torch and every BLAS on one thread within the context (or decorated function).

    Sums are split by thread, so that another number of cores would give other last digits; and two
    thread pools side by side slow each other down many times.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(before)
