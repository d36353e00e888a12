"""What the tests of experiments share: the folder of real inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from oversmoothing.experiments.models.pictures import real_inputs


@pytest.fixture(scope="session")
def real() -> Callable[..., Path]:
    """A path within OVERSMOOTHING_DATA; where it is not, the test is skipped and says so."""

    def within(name: str = "") -> Path:
        folder = real_inputs()
        if folder is None or not (folder / name).exists():
            pytest.skip(f"needs real inputs: {name} in OVERSMOOTHING_DATA")
        return folder / name

    return within
