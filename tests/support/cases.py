"""A table of cases above a test: what its columns are, then a row a case."""

from typing import Any

import pytest


def cases(columns: str, *rows: Any, **how: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(columns, rows, **how)
