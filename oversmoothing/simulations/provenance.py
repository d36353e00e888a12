"""Where a result came from, kept beside it."""

import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

_RECORDED = (
    "oversmoothing",
    "numpy",
    "scipy",
    "torch",
    "sympy",
    "python-flint",
    "matplotlib",
    "scikit-learn",
    "accelerate",
    "kornia",
)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


@cache
def _commit() -> str | None:
    """The commit of the checkout this code runs from; None for an installed wheel."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def provenance() -> dict[str, object]:
    """Versions of Python and of the libraries that shape a number, the commit, the platform."""
    return {
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "commit": _commit(),
        "versions": {name: _version(name) for name in _RECORDED},
    }
