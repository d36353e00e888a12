"""A study from its runs to its files: tables, pictures and judged hypotheses in RESULTS/study."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from oversmoothing.experiments.study import study_tables
from oversmoothing.experiments.study.adjudicate import adjudicated
from oversmoothing.experiments.study.protocol import STUDIES, Protocol
from oversmoothing.experiments.study.study_runs import run_table
from oversmoothing.theory.support.files import output_folder, write_atomically


@dataclass(frozen=True)
class Written:
    """tables: by study, a row a kind of run. pictures: their paths. judged: a row a hypothesis."""

    tables: dict[str, pd.DataFrame]
    pictures: dict[str, list[Path]]
    judged: pd.DataFrame


def write_study(
    chosen: Protocol,
    studies: Sequence[str],
    results: Path,
    *,
    workers: int = 1,
    progress: bool = True,
) -> Written:
    """Train what is missing of these studies, judge every hypothesis, write all of it.

    Files: STUDY.csv with its picture, runs.csv and hypotheses.csv (of one study alone:
    runs_STUDY.csv). Raises what `run_table` does.
    """
    runs = run_table(chosen, list(studies), results, workers=workers, progress=progress)
    folder = output_folder(results / "study")
    tables, pictures = {}, {}
    for each in studies:
        tables[each] = study_tables.by_choice(chosen, each, runs)
        write_atomically(folder / f"{each}.csv", tables[each].to_csv(index=False))
        pictures[each] = study_tables.picture(chosen, each, tables[each], folder / each)
    judged = adjudicated(chosen, list(studies), runs)
    own = "" if len(studies) == len(STUDIES) else f"_{'_'.join(studies)}"
    write_atomically(folder / f"runs{own}.csv", runs.to_csv(index=False))
    write_atomically(folder / f"hypotheses{own}.csv", judged.to_csv(index=False))
    return Written(tables, pictures, judged)
