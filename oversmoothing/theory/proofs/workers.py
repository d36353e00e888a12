"""Worker processes that end with their parent."""

import ctypes
import os
import signal
import sys
import threading
import time

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
