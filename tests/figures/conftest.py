"""What the tests of figures share: a small table of each, made once."""

from __future__ import annotations

import pytest

from oversmoothing.paper_figures.figure_base import Context
from tests.figures.small import Tables


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(Context(tmp_path_factory.mktemp("small"), device="cpu", progress=False))
