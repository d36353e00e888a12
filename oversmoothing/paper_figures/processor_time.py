"""What a figure costs, however busy the machine: processor time of everything that it started."""

import os
from contextlib import suppress

import psutil


def processor_seconds() -> float:
    """Of this process, its finished children, and its living ones with theirs.

    A figure whose worker processes descend from a server that outlives it (`scaling`), or wait for
    more work, is counted whole. Off Linux the finished children of a living child are not counted.
    """
    own = os.times()
    found = own.user + own.system + own.children_user + own.children_system
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # finished meanwhile
            spent = child.cpu_times()
            found += spent.user + spent.system + spent.children_user + spent.children_system
    return found
