"""The study as it was run and recorded: `results/DATA/runs.csv`, a row a run, as written; of
CIFAR-100 also the base models' streams.csv and watched.csv. starts.csv: cos(H_start, H_end) by
layer of the runs that were trained once more, on another machine, so that last digits differ.

Tables and verdicts are made anew from the runs, by the protocol that stands beside them: nothing of
them is stored twice.
"""

from dataclasses import dataclass
from importlib import resources
from typing import Any

import pandas as pd

from oversmoothing.experiments.study.adjudicate import adjudicated
from oversmoothing.experiments.study.protocol import SHIPPED, Protocol, protocol
from oversmoothing.experiments.study.study_tables import by_choice
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import parse_json


@dataclass(frozen=True)
class RecordedStudy:
    """chosen: its protocol. runs: a row a run. made: versions, commit, date and machine. streams,
    watched: of the base models (`base_streams`, `base_watched`); starts: `start_spectra` of runs
    that were trained once more; each empty where not recorded."""

    chosen: Protocol
    runs: pd.DataFrame
    made: dict[str, Any]
    streams: pd.DataFrame
    watched: pd.DataFrame
    starts: pd.DataFrame

    @property
    def studies(self) -> list[str]:
        """Those that have runs for every kind and a seed at least."""
        known = set(self.runs["run"])
        return [
            study
            for study in self.chosen.studies
            if any(
                {self.chosen.run(choice, seed).name for choice in self.chosen.choices(study)}
                <= known
                for seed in self.chosen.seeds
            )
        ]

    def table(self, study: str) -> pd.DataFrame:
        """`by_choice`: a row a kind of run, mean and sd of each measure."""
        return by_choice(self.chosen, study, self.runs)

    def judged(self) -> pd.DataFrame:
        """`adjudicated`: a row a hypothesis."""
        return adjudicated(self.chosen, self.studies, self.runs)


def recorded_study(data: str) -> RecordedStudy:
    """The recorded study of 'digits' or 'cifar100'. Raises `InputError` where there is none."""
    if data not in SHIPPED:
        raise InputError(f"no study of '{data}' is recorded, but of {', '.join(SHIPPED)}")
    folder = resources.files("oversmoothing.experiments.study") / "results" / data
    if not folder.is_dir():
        raise InputError(f"no study of '{data}' is recorded yet: `oversmoothing study` makes one")
    tables = []
    for name in ("runs.csv", "streams.csv", "watched.csv", "starts.csv"):
        file = folder / name
        if name != "runs.csv" and not file.is_file():
            tables.append(pd.DataFrame())
            continue
        with file.open(encoding="utf-8") as stream:
            tables.append(pd.read_csv(stream))
    runs, streams, watched, starts = tables
    # Known of runs that were trained once more: the recorded ones kept no weights.
    known: Any = starts.groupby("run")["cos_start"].mean() if len(starts) else {}
    runs["cos_start"] = runs["run"].map(known)
    made = parse_json((folder / "provenance.json").read_text("utf-8"), f"{data}, provenance.json")
    return RecordedStudy(protocol(data), runs, made, streams, watched, starts)
