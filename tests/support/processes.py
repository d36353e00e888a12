"""What is asked of a Python of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def python(
    *words: str | Path, env: Mapping[str, str] | None = None, timeout: float = 300, **how: Any
) -> subprocess.CompletedProcess[str]:
    """`python WORDS` with the project on its path; env: what is added to this environment, how:
    what `subprocess.run` takes."""
    around = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=timeout, env=around, **how
    )
