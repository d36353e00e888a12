"""A study from its runs to its files: tables, pictures and judged hypotheses in RESULTS/study."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from oversmoothing.experiments.study import study_tables
from oversmoothing.experiments.study.adjudicate import adjudicated
from oversmoothing.experiments.study.base_streams import base_streams, base_watched
from oversmoothing.experiments.study.protocol import Protocol
from oversmoothing.experiments.study.study_runs import run_table
from oversmoothing.simulations.provenance import provenance
from oversmoothing.theory.support.files import output_folder, to_json, write_atomically


@dataclass(frozen=True)
class Written:
    """tables: by study, a row a kind of run. pictures: their paths. judged: a row a hypothesis."""

    tables: dict[str, pd.DataFrame]
    pictures: dict[str, list[Path]]
    judged: pd.DataFrame


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
) -> Written:
    """Train what is missing of these studies, judge every hypothesis, write all of it.

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
    tables, pictures = {}, {}
    for each in studies:
        tables[each] = study_tables.by_choice(chosen, each, runs)
        write_atomically(folder / f"{each}.csv", tables[each].to_csv(index=False))
        pictures[each] = study_tables.picture(chosen, each, tables[each], folder / each)
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
    return Written(tables, pictures, judged)
