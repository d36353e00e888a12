"""A study from its runs to its files in RESULTS/study, and as it was run and recorded.

`results/DATA/runs.csv` has a row a run, as written; of CIFAR-100 also the base models' streams.csv
and watched.csv. starts.csv: cos(H_start, H_end) by layer of the runs that were trained once more,
on another machine, so that last digits differ.

Tables and verdicts are made anew from the runs, by the protocol that stands beside them: nothing of
them is stored twice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from oversmoothing.experiments.study.base_streams import base_streams, base_watched
from oversmoothing.experiments.study.protocol import SHIPPED, Protocol, protocol
from oversmoothing.experiments.study.study_runs import run_table
from oversmoothing.experiments.study.study_tables import adjudicated, by_choice, columns, picture
from oversmoothing.simulations.drawing.result import UNTESTED, Result, Sentence, Table, measured
from oversmoothing.simulations.provenance import provenance
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, parse_json, to_json, write_atomically

JUDGED = ("name", "measure", "difference", "low", "high", "seeds", "verdict")


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


def folder_name(chosen: Protocol) -> str:
    """Where a study's tables stand within the results: 'study', of other data 'study-DATA'."""
    return "study" if chosen.data == "digits" else f"study-{chosen.data}"


def write_study(
    chosen: Protocol,
    studies: Sequence[str],
    results: Path,
    *,
    workers: int = 1,
    progress: bool = True,
    data_dir: Path | None = None,
    device: str = "cpu",
    so_far: bool = False,
) -> Result:
    """Train what is missing of these studies, judge every hypothesis, write all of it.

    The result has a table a study (`by_choice`) and `hypotheses`, and says each with its verdict.
    so_far: train nothing, take the runs that are finished. Files: STUDY.csv with its picture,
    runs.csv and hypotheses.csv (of one study alone: runs_STUDY.csv), and of the base models
    streams.csv and watched.csv, in the folder study, of other data than digits in study-DATA.
    Raises what `run_table` does.
    """
    runs = run_table(
        chosen, list(studies), results, workers=workers, progress=progress, data_dir=data_dir,
        device=device, so_far=so_far,
    )  # fmt: skip
    folder = output_folder(results / folder_name(chosen))
    tables = {}
    for each in studies:
        table = by_choice(chosen, each, runs)
        write_atomically(folder / f"{each}.csv", table.to_csv(index=False))
        picture(chosen, each, table, folder / each)
        tables[each.replace("-", "_")] = Table(table, {}, columns(each, table), "{:.2f}")
    judged = adjudicated(chosen, list(studies), runs)
    own = "" if len(studies) == len(chosen.studies) else f"_{'_'.join(studies)}"
    # Nine digits: more than the last bits of another machine keep.
    written = runs.to_csv(index=False, float_format="%.9g")
    write_atomically(folder / f"runs{own}.csv", written)
    write_atomically(folder / f"hypotheses{own}.csv", judged.to_csv(index=False))
    of_base = (
        ("streams", base_streams(chosen, results)),
        ("watched", base_watched(chosen, results)),
    )
    for name, table in of_base:
        if len(table):
            text = table.to_csv(index=False, float_format="%.9g")
            write_atomically(folder / f"{name}.csv", text)
    made = {
        **provenance(),
        "date": datetime.now(UTC).date().isoformat(),
        "device": device,
        "protocol": chosen.source,
        "runs": len(runs),
        "hours_of_training": round(float(runs["seconds"].sum()) / 3600, 2),
    }
    write_atomically(folder / f"provenance{own}.json", to_json(made))
    if len(judged):
        tables["hypotheses"] = Table(judged, shown=JUDGED)
    return Result(
        "study",
        f"{chosen.title or chosen.source}: {', '.join(studies)}",
        tables,
        sentences(chosen, judged),
        {"protocol": chosen.source, "studies": list(studies), "confidence": chosen.confidence},
        made=made,
    )


def sentences(chosen: Protocol, judged: pd.DataFrame) -> list[Sentence]:
    """Each hypothesis with its verdict, and what the intervals are."""
    said = []
    for row in judged.to_dict("records"):
        low, high = (row["low"], row["high"]) if chosen.confidence == 0.95 else (math.nan, math.nan)
        seen = row["seeds"] and row["verdict"] != "withdrawn"
        says = f"{row['name']}, {row['verdict']}: {row['says']} {row['note']}".strip()
        said.append(Sentence(says, measured(row["seeds"], low, high, "seed") if seen else UNTESTED))
    kind = (
        f"Intervals: {100 * chosen.confidence:.0f} %, Student's t over seeds, not corrected for "
        "the number of hypotheses."
    )
    return [*said, Sentence(kind, measured(len(chosen.seeds), of="seed"))]
