"""What a ladder found: every rung's predictions, score and cost, as a table and as JSON."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.ladder.scores import Score
from oversmoothing.theory.support.arrays import Array
from oversmoothing.theory.support.files import json_number


@dataclass(frozen=True)
class Rung:
    """predicted [m, layers]; cost: multiply-adds for one held-out input (None: the model's own run
    is needed); calibration: inputs it was fitted on (0: none), copies: altered copies of each;
    note: what it is."""

    name: str
    predicted: Array
    cost: int | None
    calibration: int
    copies: int
    note: str
    score: Score


@dataclass(frozen=True)
class LadderResult:
    """measured [m, layers]; rungs in order; skipped {rung: why it does not apply}."""

    model: str
    tokens: int
    measured: Array
    model_cost: int
    rungs: tuple[Rung, ...]
    skipped: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)

    def rows(self) -> list[dict[str, Any]]:
        """One a rung: its name, score, cost and what it was fitted on."""
        return [
            {
                "rung": rung.name,
                **asdict(rung.score),
                "multiply_adds": rung.cost,
                "cost_share": None if rung.cost is None else rung.cost / self.model_cost,
                "calibration": rung.calibration,
                "copies": rung.copies,
                "note": rung.note,
            }
            for rung in self.rungs
        ]

    def to_frame(self) -> pd.DataFrame:
        """One row a rung: scores with their intervals, cost and calibration."""
        return pd.DataFrame(self.rows()).astype({"multiply_adds": "Int64", "cost_share": float})

    def by_layer(self) -> pd.DataFrame:
        """R^2 of each layer alone (around its held-out mean), a column a rung."""
        spread = np.square(self.measured - self.measured.mean(0)).sum(0)
        spread = np.where(spread > 0, spread, np.nan)
        columns = {
            rung.name: 1 - np.square(self.measured - rung.predicted).sum(0) / spread
            for rung in self.rungs
        }
        index = pd.RangeIndex(1, self.measured.shape[1] + 1, name="layer")
        return pd.DataFrame(columns, index=index)

    def to_json_object(self) -> dict[str, Any]:
        """Everything but the single predictions."""
        rungs = [
            {key: json_number(x) if isinstance(x, float) else x for key, x in row.items()}
            for row in self.rows()
        ]
        layers = {
            name: [json_number(value) for value in column]
            for name, column in self.by_layer().items()
        }
        return {
            "model": self.model,
            "tokens": self.tokens,
            "target": "change of log HFC/LFC over a whole layer, all tokens, Frobenius",
            "held_out": len(self.measured),
            "layers": self.measured.shape[1],
            "model_multiply_adds": self.model_cost,
            "settings": self.settings,
            "rungs": rungs,
            "r2_by_layer": layers,
            "skipped": self.skipped,
        }
