"""The CSV of every figure is held against the theory or a recorded run, and the check can fail."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from oversmoothing.paper_figures import FIGURES
from tests.figures import held_models, held_theory
from tests.figures.held import HELD
from tests.figures.small import Tables, patched

assert held_models and held_theory  # they declare the checks


def read_back(table: pd.DataFrame) -> pd.DataFrame:
    """As a reader of the CSV has it, to the last digit, which pandas took an option for once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return pd.read_csv(io.StringIO(table.to_csv(index=False)), float_precision="round_trip")


def checked(name: str, csv: pd.DataFrame, small: Tables) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        HELD[name].check(csv, small.context)


def test_every_figure_has_a_check_of_its_csv() -> None:
    assert set(HELD) == set(FIGURES)


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_csv_is_what_theory_or_record_say(name: str, small: Tables) -> None:
    csv = read_back(small[name])
    assert {*HELD[name].free, *HELD[name].only} <= set(csv)
    checked(name, csv, small)


def planted(csv: pd.DataFrame, column: str, row: int) -> pd.DataFrame:
    """One number off by a twentieth of its column's size, one word replaced."""
    wrong, values = csv.copy(), csv[column]
    if pd.api.types.is_bool_dtype(values):
        wrong[column] = values ^ (csv.index == row)
    elif pd.api.types.is_numeric_dtype(values):
        finite = values[np.isfinite(values)]
        size = max(abs(values[row]), finite.max() - finite.min(), 1e-3)
        whole = (values.dropna() % 1 == 0).all()
        wrong[column] = values.astype(float)
        wrong.loc[row, column] = values[row] + (1 if whole else 0.05 * size)
    else:
        wrong.loc[row, column] = f"{values[row]}?"
    return wrong


@pytest.mark.parametrize("name", list(FIGURES))
def test_an_error_in_a_column_is_seen(name: str, small: Tables) -> None:
    csv = read_back(small[name])
    own = HELD[name]
    rng = np.random.default_rng(0)
    chosen = csv if own.rows is None else csv[own.rows(csv)]
    unseen = []
    for column in csv:
        filled = chosen.index[chosen[column].notna()]
        if column in own.free or (own.only and column not in own.only) or not len(filled):
            continue
        wrong = planted(csv, column, int(rng.choice(filled)))
        try:
            checked(name, wrong, small)
        except (AssertionError, KeyError, StopIteration, ValueError):
            continue
        unseen.append(column)
    assert not unseen
