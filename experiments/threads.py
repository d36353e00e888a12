"""Small models run on one CPU thread: as fast as two, and the same bits on any number of cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """torch computes on one CPU thread within, and on as many as before afterwards.

    The order of floating-point sums follows the number of threads, so that weights would differ
    between machines; and matrices of 17 x 64 are too small to share out.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
