"""What a report says, for programs: its answer as one JSON object, its tables as lists of them."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from oversmoothing.experiments.inspection.advice import Advice
from oversmoothing.experiments.inspection.answer import Answer
from oversmoothing.theory.support.files import json_number


def answer_object(found: Answer, tried: Sequence[Advice]) -> dict[str, Any]:
    """Grades by name, their certainty, the change with its interval, the cause, what to try."""
    grades = {"grade": found.grade, "least": found.least, "most": found.most}
    cause = found.cause
    return {
        **{name: None if one is None else one.name.lower() for name, one in grades.items()},
        "certainty": found.certainty,
        **{name: json_number(getattr(found, name)) for name in ("change", "low", "high")},
        "cause": None if cause is None else cause.name,
        "cause_sure": cause is not None and cause.sure,
        "causes": None
        if cause is None
        else {name: json_number(value) for name, value in cause.sums.items()},
        "collapsed_from": found.collapsed_from,
        "to_try": [
            {
                "words": each.words,
                "known": each.known,
                "claims": list(each.claims),
                "measured": each.measured,
            }
            for each in tried
        ],
    }


def row_objects(table: pd.DataFrame) -> list[dict[str, Any]]:
    """One JSON object a row: whole numbers stay whole, unknown is null, infinite "inf", "-inf"."""
    return [
        {
            str(name): value if isinstance(value, int) else json_number(value)
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]
