"""How property tests run: without a deadline (machines are shared); in CI the same each time.

What is slow is marked by `tests/costs.py`. OVERSMOOTHING_SHAPES=1, which `make test-all` sets,
holds arrays to the shapes in their signatures; the simulations' tests then take twice their time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

import oversmoothing
from oversmoothing.theory.proofs.coq import share_built
from tests.support.shapes import CHECKED, shapes

if TYPE_CHECKING:
    from playwright.sync_api import Browser

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

pytest_plugins = ["tests.costs"]

if CHECKED:
    # In tests alone, which is soon enough to see one broken; where users' own input comes in, the
    # arrays alone.
    for checker, rooms in {
        "beartype.beartype": ("state", "state_metrics", "singular_values"),
        f"{shapes.__module__}.{shapes.__name__}": ("engine", "generators", "spectra"),
    }.items():
        install_import_hook([f"oversmoothing.simulations.{room}" for room in rooms], checker)

# By the process that starts the others, before it does: what Coq's kernel accepts, it accepts once.
share_built()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # Imported by those who ask: playwright is no need of the other tests.
    from tests.support.browser import browser

    with browser() as launched:
        yield launched


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command of these words says that ends with this status: its output, or where that is
    neither 0 nor 1 its errors."""

    def run(status: int, *words: object) -> str:
        assert oversmoothing.main([str(word) for word in words]) == status
        out, err = capsys.readouterr()
        return out if status in (0, 1) else err

    return run
