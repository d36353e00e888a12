"""How far each H of finished runs has turned from its start, and where its eigenvalues were drawn.

A share of eigenvalues in a region says what training did only beside the share that the draw had.

    python -m oversmoothing.experiments.study.start_spectra RESULTS   # writes RESULTS/starts.csv
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.digits.training import TrainedModel, load_model, new_model
from oversmoothing.experiments.inspection.heads_and_why import regions
from oversmoothing.experiments.study.protocol import Protocol, protocol
from oversmoothing.theory.support.files import write_atomically


def start_spectra(found: TrainedModel) -> pd.DataFrame:
    """A row a layer: cos_start, cos(H_start, H_end); disc_at_start, disc_at_end, the shares of
    eigenvalues with |h + 1/2| <= 1/2 as drawn and as trained; negative_at_end, with Re h < 0."""
    start, end = (
        each.value_projections().numpy() for each in (new_model(found.config), found.model)
    )
    rows = []
    for number, (first, last) in enumerate(zip(start, end, strict=True)):
        drawn, trained = (np.linalg.eigvals(H).astype(np.complex128) for H in (first, last))
        rows.append(
            {
                "layer": number + 1,
                "cos_start": (found.model.cos_start or [np.nan] * len(end))[number],
                "disc_at_start": regions(drawn)["universal_disc"],
                "disc_at_end": regions(trained)["universal_disc"],
                "negative_at_end": float((trained.real < 0).mean()),
            }
        )
    return pd.DataFrame(rows)


def of_finished(chosen: Protocol, results: Path) -> pd.DataFrame:
    """`start_spectra` of a protocol's finished runs without a remedy, behind the columns run,
    variant and seed; empty where there is none. Raises `InputError` for a damaged one."""
    frames = []
    for run in chosen.runs(chosen.studies):
        if run.remedy is None and (results / run.name / "manifest.json").exists():
            head: dict[str, Any] = {
                "run": run.name,
                "variant": run.config.variant,
                "seed": run.seed,
            }
            frame = start_spectra(load_model(results / run.name))
            frames.append(frame.assign(**head)[[*head, *frame.columns]])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def main(arguments: Sequence[str]) -> None:
    """Of the runs of the digits' protocol in a folder of results."""
    results = Path(arguments[0])
    table = of_finished(protocol(), results)
    path = write_atomically(results / "starts.csv", table.to_csv(index=False, float_format="%.6g"))
    print(f"wrote {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
