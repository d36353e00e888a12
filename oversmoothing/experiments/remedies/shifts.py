"""Every remedy in one table: what it does to the spectrum as predicted, measured and observed."""

from collections.abc import Sequence
from textwrap import fill

import pandas as pd
import torch

from oversmoothing.experiments.intervals import share_interval
from oversmoothing.experiments.remedies.by_name import REMEDIES, in_table, without
from oversmoothing.experiments.remedies.cost import cost_ratio, parameters
from oversmoothing.experiments.remedies.shift import (
    DEPTH,
    WIDTH,
    as_claimed,
    drawn,
    log_shift,
    measured,
    observed,
    predicted,
    verdicts_agree,
)
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.errors import InputError

# Relative difference of a predicted from a measured radius that rounding explains: an eigenvalue
# moves by its condition number, of a few hundred, times n d eps.
MOST = 1e-8


@one_thread()
def remedies_table(
    only: Sequence[str] | None = None, *, draws: int = 100, seed: int = 0, cost: bool = True
) -> pd.DataFrame:
    """A row a remedy, on `draws` drawn layers.

    log_shift_C, log_shift_Q: means of log rho_C'/rho_C and log rho_Q'/rho_Q, predicted, and
    measured_shift_C, _Q. error: the largest relative difference of a predicted radius from the
    measured one. runs_right of runs_clear: runs through `DEPTH` layers that smooth or not as
    predicted, near ties left out (missing where the layer is no linear map). as_claimed of draws,
    with the ends of its 95 % interval. cost: time over that of the plain sublayer.

    Raises `InputError` for a name that is none.
    """
    layers = drawn(draws, seed)
    rows = []
    for name in only or REMEDIES:
        if name not in REMEDIES:
            raise InputError(f"no remedy '{name}': choose one of {', '.join(REMEDIES)}")
        remedy, plain = in_table(name, WIDTH), without(name)
        before, after = predicted(plain, layers), predicted(remedy, layers)
        start, found = measured(plain, layers), measured(remedy, layers)
        size = torch.maximum(found, after).clamp(min=1e-3)
        slopes = observed(remedy, layers)
        right, clear = (None, None) if slopes is None else verdicts_agree(remedy, after, slopes)
        hits = as_claimed(remedy.claim, start, found)
        ends = (None, None) if hits is None else share_interval(hits / draws, draws)
        shift, own = log_shift(before, after), log_shift(start, found)
        rows.append(
            {
                "name": name,
                "remedy": remedy.title,
                "paper": remedy.paper,
                "our_reading": remedy.reading or "-",
                "claim": remedy.claim,
                "holds_for": remedy.scope,
                "log_shift_C": shift[0],
                "log_shift_Q": shift[1],
                "measured_shift_C": own[0],
                "measured_shift_Q": own[1],
                "error": float(((after - found).abs() / size).max()),
                "runs_right": right,
                "runs_clear": clear,
                "as_claimed": hits,
                "draws": draws,
                "as_claimed_low": ends[0],
                "as_claimed_high": ends[1],
                "cost": cost_ratio(name) if cost else None,
                "parameters": parameters(name),
            }
        )
    return pd.DataFrame(rows)


def short(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that fit a terminal."""
    return pd.DataFrame(
        {
            "remedy": table["remedy"],
            "log rho_C'/rho_C": table["log_shift_C"],
            "log rho_Q'/rho_Q": table["log_shift_Q"],
            "error": table["error"].map("{:.0e}".format),
            "runs": [_of(a, b) for a, b in zip(table.runs_right, table.runs_clear, strict=True)],
            "as claimed": [_of(a, b) for a, b in zip(table.as_claimed, table.draws, strict=True)],
            "cost": table["cost"],
        }
    )


def words(table: pd.DataFrame, width: int = 100) -> str:
    """Which remedies act on the spectrum as they claim, in sentences."""
    draws = int(table["draws"].iloc[0])
    claiming = table[table["as_claimed"].notna()]
    some, most = claiming.as_claimed < draws, claiming.as_claimed_low > 0.5
    groups = {
        f"In all {draws} layers": ~some,
        "In most": some & most,
        "Not clearly in more than half": some & ~most,
    }
    sentences = []
    for said, chosen in groups.items():
        rows = claiming[chosen]
        hits = rows["as_claimed"].astype(int).tolist()
        names = [
            name if hit == draws else f"{name} ({hit})"
            for name, hit in zip(rows["remedy"].astype(str), hits, strict=True)
        ]
        if names:
            sentences.append(f"{said} the measured spectrum moves as claimed: {', '.join(names)}.")
    none = table[table["as_claimed"].isna()]
    if len(none):
        sentences.append(f"No claim on tokens: {', '.join(none.remedy)}.")
    sentences.append(
        "A shift is a mean over the drawn layers at the table's setting; runs: of "
        f"{DEPTH} layers, right of those that are no near tie."
    )
    return "\n".join(fill(each, width) for each in sentences)


def _of(part: object, whole: object) -> str:
    return "-" if pd.isna(part) else f"{int(part)} of {int(whole)}"  # type: ignore[call-overload]
