"""A run in a few lines: some of its layers as a table, and what was found in words."""

import math

import pandas as pd

from oversmoothing.simulations.against_theory.simulate import Simulation

_ROWS = 9


def short_table(table: pd.DataFrame) -> pd.DataFrame:
    """At most nine of the layers measured, the first and the last among them."""
    step = max(1, math.ceil((len(table) - 1) / (_ROWS - 1)))
    rows = sorted({*range(0, len(table), step), len(table) - 1})
    columns = {"layer": table["depth"], "log10 HFC/LFC": table["log_hfc_lfc"] / math.log(10.0)}
    if "predicted_log_hfc_lfc" in table:
        columns["predicted"] = table["predicted_log_hfc_lfc"] / math.log(10.0)
    columns |= {
        "cos mean": table["cos_mean"],
        "cos min": table["cos_min"],
        "eff. rank": table["effective_rank"],
    }
    return pd.DataFrame(columns).iloc[rows]


def words(result: Simulation) -> str:
    """Prediction against measurement, and the verdict."""
    lines = [f"{result.verdict.verdict} ({result.verdict.status}): {result.verdict.reason}"]
    if result.closed_form_note is not None:
        lines.insert(0, f"no closed form: {result.closed_form_note}")
    elif result.largest_error is not None:
        error = f"{result.largest_error:.2e} (natural log)"
        lines.insert(0, f"largest |log HFC/LFC measured - predicted|: {error}")
    return "\n".join(lines)
