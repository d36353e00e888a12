"""Of a study's three models at its base: the stream by layer, and H while they train.

It is what the figures of the paper draw of trained models, kept beside the runs so that they can be
drawn without the weights.

`of_finished`: how far each H of finished runs has turned from its start. A share of eigenvalues in
a region says what training did only beside the share that the draw had.

    python -m oversmoothing.experiments.study.base_streams RESULTS   # writes RESULTS/starts.csv
"""

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.digits.training import TrainedModel, load_model, new_model, parts_of
from oversmoothing.experiments.digits.training_config import TRAINED
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.heads_and_why import regions
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.study.protocol import Protocol, Run, protocol
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text, write_atomically

IMAGES = 50
STREAM = ("log_hfc_lfc", "cos_mean", "effective_rank")
_ENDS = ("", "_low", "_high", "_p05", "_p95")


def layer_metrics(model: Model, inputs: Any) -> pd.DataFrame:
    """The paper's three metrics of the residual stream, a row a layer (0 is the input).

    Columns: layer; each of STREAM as its mean over images, with _low and _high of its 95 % interval
    and the percentiles _p05, _p95; rank_share, the effective rank over the largest possible `most`;
    change, change_low, change_high: of log_hfc_lfc from input to output, in every row.
    """
    report = inspect(model, inputs, budget=Plan(ranks=sys.maxsize))
    frame = report.to_frame()
    width = model.layers[0].heads.W_V.shape[1]
    most = min(int(report.tokens or width), width)
    frame = frame[["layer", *(f"{name}{end}" for name in STREAM for end in _ENDS)]]
    frame = frame.assign(rank_share=frame["effective_rank"] / most, most=most)
    names = ("change", "change_low", "change_high")
    return frame.assign(**dict(zip(names, mean_interval(report.change), strict=True)))


def is_base(run: Run) -> bool:
    """Whether a run is of the paper's three models and differs from the base in nothing else."""
    return set(run.choice) <= {"variant"} and run.config.variant in TRAINED


def streams_place(run: Run, results: Path) -> Path:
    """Where the streams of a base run are kept."""
    return results / "measures" / f"{run.name}.streams.csv"


def keep_streams(run: Run, finished: TrainedModel, results: Path, data_dir: Path | None) -> None:
    """Write `layer_metrics` of a base run, of IMAGES validation images of digits or test images of
    CIFAR, behind the columns run, variant, seed, images. Raises what `parts_of` does."""
    data = parts_of(finished.config, data_dir, progress=False)
    inputs = (data.validation if finished.config.data == "digits" else data.test).inputs(
        slice(IMAGES)
    )
    frame = layer_metrics(open_model(finished.run.folder), inputs)
    heads = pd.DataFrame([{**_head(run), "images": len(inputs)}] * len(frame))
    text = pd.concat([heads, frame], axis=1).to_csv(index=False, float_format="%.9g")
    write_atomically(streams_place(run, results), text)


def base_streams(chosen: Protocol, results: Path) -> pd.DataFrame:
    """What `keep_streams` kept of a protocol's base runs; empty where there is none.

    Raises `InputError` where a file of it is damaged.
    """
    frames = [
        _kept(run, results) for run in _base_runs(chosen) if streams_place(run, results).exists()
    ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _kept(run: Run, results: Path) -> pd.DataFrame:
    path = streams_place(run, results)
    why = ""
    try:
        frame = pd.read_csv(io.StringIO(read_text(path)))
        if frame["run"].eq(run.name).all() and frame[["layer", *STREAM]].notna().all(axis=None):
            return frame
    except (ValueError, KeyError) as error:
        why = f" ({error})"
    raise InputError(f"'{path}' is damaged{why}: delete it and run again")


def base_watched(chosen: Protocol, results: Path) -> pd.DataFrame:
    """Asymmetry of every H at every watched step of the base runs that are finished: run, variant,
    seed, step, epoch, layer, asymmetry. Empty where none was watched."""
    frames = []
    for run in _base_runs(chosen):
        if not (results / run.name / "manifest.json").exists():
            continue
        finished = load_model(results / run.name)
        watched = finished.run.watched
        if "asymmetry" not in watched:
            continue
        own = watched.loc[watched["asymmetry"].notna(), ["step", "layer", "asymmetry"]]
        own.insert(1, "epoch", own["step"] / finished.config.per_epoch)
        frames.append(own.assign(**_head(run))[[*_head(run), *own.columns]])
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _base_runs(chosen: Protocol) -> list[Run]:
    return [chosen.run({"variant": variant}, s) for s in chosen.seeds for variant in TRAINED]


def _head(run: Run) -> dict[str, Any]:
    return {"run": run.name, "variant": run.config.variant, "seed": run.seed}


def start_spectra(finished: TrainedModel) -> pd.DataFrame:
    """A row a layer: cos_start, cos(H_start, H_end); disc_at_start, disc_at_end, the shares of
    eigenvalues with |h + 1/2| <= 1/2 as drawn and as trained; negative_at_end, with Re h < 0."""
    start, end = (
        each.value_projections().numpy() for each in (new_model(finished.config), finished.model)
    )
    rows = []
    for number, (first, last) in enumerate(zip(start, end, strict=True)):
        drawn, trained = (np.linalg.eigvals(H).astype(np.complex128) for H in (first, last))
        rows.append(
            {
                "layer": number + 1,
                "cos_start": (finished.model.cos_start or [np.nan] * len(end))[number],
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
