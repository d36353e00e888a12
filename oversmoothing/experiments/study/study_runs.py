"""The runs of a study: trained or read back, measured, each kept as soon as it is finished.

Interrupted at any moment, the next call goes on where this one stopped: a run from its checkpoint,
the study from the first run that is not measured. Errors are in per cent of the test images; the
stream is that of the first 360 validation images (of digits: all) behind the last layer, CLS in,
means over images; spectra are of H at the kept epoch, means over layers.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from oversmoothing.experiments.digits.corruptions import SEVERITIES, corrupted, kinds_for, published
from oversmoothing.experiments.digits.data import SIZES, LabelledImages
from oversmoothing.experiments.digits.training import (
    ModelKind,
    TrainedModel,
    parts_of,
    score,
    trained,
)
from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.training_loop import Keeping, generator
from oversmoothing.experiments.digits.vit import LayerTrace
from oversmoothing.experiments.forms.lasting_bound import lasting_bound
from oversmoothing.experiments.inspection.heads_and_why import asymmetry, regions
from oversmoothing.experiments.inspection.watcher import Watcher
from oversmoothing.experiments.remedies.digits_vit import RemediedViT
from oversmoothing.experiments.study.base_streams import is_base, keep_streams, streams_place
from oversmoothing.experiments.study.protocol import Protocol, Run
from oversmoothing.experiments.threads import one_thread
from oversmoothing.simulations.spectra.head_values import mean_attention
from oversmoothing.simulations.state_metrics import stream_metrics
from oversmoothing.theory.proofs.workers import end_with
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import (
    json_number,
    parse_json,
    read_text,
    to_json,
    write_atomically,
)

# Another number is another set of measures: what was stored before is measured anew.
VERSION = 2
# Measure -> its name in words, in the order of the tables.
MEASURES = {
    "test_error": "test error, %",
    "validation_error": "validation error, %",
    "log_hfc_lfc": "ln HFC/LFC",
    "cos_mean": "mean cosine",
    "effective_rank": "effective rank",
    "h_universal_disc": "h in the disc |h + 1/2| < 1/2",
    "h_positive": "h with Re h > 0",
    "cos_start": "cos(H_start, H_end)",
    "asymmetry": "asymmetry of H",
    "condition_V_H": "log10 condition of V_H",
    "outside_share": "h outside the safe interval",
    "inside_share": "logged H inside their region",
    "void_share": "images on which T7b is void",
    "corrupted_error": "error at severities 1 to 5, %",
    "cost_of_corruption": "the same less that at 0",
    **{f"error_at_{s}": f"error at severity {s}, %" for s in SEVERITIES},
}
# Validation images whose stream is measured: as many as digits have.
PROBED = SIZES["digits"].validation
# Validation images on which T7b's recursion is iterated.
BOUNDED = 16


def measures(
    finished: TrainedModel, *, with_corruptions: bool, images: int | None = None,
    data_dir: Path | None = None,
) -> dict[str, float]:  # fmt: skip
    """MEASURES of a trained model on the CPU; with_corruptions: those of corrupted test images too,
    the first `images` of them (None: all). data_dir: the folder of real inputs."""
    own = finished.run.metrics
    log, data = finished.run.log, parts_of(finished.config, data_dir, progress=False)
    kept = log[log["epoch"] == own["selected_epoch"]]
    result = {
        "test_error": 100 * (1 - own["test_accuracy"]),
        "validation_error": 100 * (1 - own["validation_accuracy"]),
        "outside_share": float(kept["outside_share"].mean()),
        "inside_share": float((log["region"] == "inside").mean()),
        **_stream_and_bound(finished, data.validation),
        **_spectra(finished),
    }
    return {**result, **(_corruption(finished, images, data_dir) if with_corruptions else {})}


@torch.no_grad()
def _stream_and_bound(finished: TrainedModel, images: LabelledImages) -> dict[str, float]:
    record: list[LayerTrace] = []
    finished.model(images.inputs(slice(PROBED)), record)
    behind = stream_metrics(record[-1].after_ffn)
    result = {
        name: float(behind[name].mean()) for name in ("log_hfc_lfc", "cos_mean", "effective_rank")
    }
    if finished.config.form == "band":
        result["void_share"] = _void_share(finished, record)
    return result


def _void_share(finished: TrainedModel, record: list[LayerTrace]) -> float:
    """The share of images on which T7b's recursion, iterated beside the network on its own A and H
    without norms and FFN, meets a layer whose factor is not below 1: tau reached p/q there."""
    products = [H.numpy().T for H in finished.model.value_projections()]
    void = []
    for k in range(BOUNDED):
        attention = []
        for trace in record:
            A = mean_attention(trace.attention[k : k + 1].cpu().numpy())[0].astype(np.float64)
            attention.append(A / A.sum(-1, keepdims=True))
        start = record[0].before[k].double().cpu().numpy()
        void.append(lasting_bound(attention, products, start).void_at is not None)
    return float(np.mean(void))


def _spectra(finished: TrainedModel) -> dict[str, float]:
    rows = []
    for H in finished.model.value_projections().numpy():
        h, V = np.linalg.eig(H)
        shares = regions(h.astype(np.complex128))
        rows.append(
            {
                "h_universal_disc": shares["universal_disc"],
                "h_positive": float((h.real > 0).mean()),
                "asymmetry": asymmetry(H),
                # Its logarithm: of a defective H the condition is anything up to infinity.
                "condition_V_H": float(np.log10(min(np.linalg.cond(V), 1 / np.finfo(float).eps))),
            }
        )
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {**means, "cos_start": float(np.mean(finished.model.cos_start or [np.nan]))}


def _corruption(
    finished: TrainedModel, count: int | None, data_dir: Path | None
) -> dict[str, float]:
    """Mean error over the kinds of corruption, at each severity."""
    errors: dict[str, Any] = {}
    name = finished.config.data
    kinds = kinds_for(_test(name, count, data_dir))
    for severity in SEVERITIES:
        of_kind = [
            100 * (1 - score(finished.model, images)[1] / len(images))
            for kind in (kinds if severity else kinds[:1])
            for images in [_altered(name, count, data_dir, kind, severity)]
        ]
        errors[f"error_at_{severity}"] = float(np.mean(of_kind))
    errors["corrupted_error"] = float(np.mean([errors[f"error_at_{s}"] for s in SEVERITIES[1:]]))
    errors["cost_of_corruption"] = errors["corrupted_error"] - errors["error_at_0"]
    return errors


@cache
def _test(name: str, count: int | None, data_dir: Path | None) -> LabelledImages:
    """The first `count` test images of a data set."""
    whole = parts_of(TrainConfig(data=name), data_dir, progress=False).test
    return LabelledImages(whole.pixels[:count], whole.labels[:count])


@cache
def _altered(
    name: str, count: int | None, data_dir: Path | None, kind: str, severity: int
) -> LabelledImages:
    """Of the published files where there are any, else made here."""
    files = published(name, data_dir, kind, severity) if severity else None
    if files is None:
        return corrupted(_test(name, count, data_dir), kind, severity)
    return LabelledImages(files.pixels[:count], files.labels[:count])


# Seconds of 10^9 multiplications of a forward pass and of all that training adds to them: the base
# of digits, alone on a core (x86, 2.x GHz, AVX-512).
GIGA = 0.11


def model_of(remedy: str, config: TrainConfig) -> RemediedViT:
    """The shared-value ViT under a remedy, before training."""
    return RemediedViT(config, remedy, generator(config.seed, "weights"))


def run_table(
    chosen: Protocol,
    studies: list[str],
    results: Path,
    *,
    workers: int = 1,
    progress: bool = True,
    data_dir: Path | None = None,
    device: str = "cpu",
    so_far: bool = False,
) -> pd.DataFrame:
    """A row a run of these studies, trained where it is not there yet: what it is, what it gave.

    data_dir: the folder of real inputs. so_far: train nothing, give the runs that are finished.
    Raises `InputError` for damaged runs, folders that cannot be written, trainings that diverge,
    data that are not there, and so_far where no run is finished.
    """
    runs = chosen.runs(studies)
    corrupted = _corrupted(chosen) if "corruption" in studies else set()
    missing = [
        each
        for each in runs
        if _stored(each, results, each.name in corrupted) is None
        or (not so_far and is_base(each) and not streams_place(each, results).exists())
    ]
    if so_far:
        runs, missing = [each for each in runs if each not in missing], []
        if not runs:
            raise InputError(f"no run of {', '.join(studies)} is finished in '{results}'")
    do = partial(
        measured, results=results, corrupted=corrupted, data_dir=data_dir, device=device,
        images=chosen.corrupted_images,
    )  # fmt: skip
    with tqdm(
        total=len(runs), initial=len(runs) - len(missing), unit="run", file=sys.stderr,
        disable=None if progress else True,
    ) as bar:  # fmt: skip
        for _ in _done(do, missing, workers):
            bar.update()
    rows = []
    for each in runs:
        values = _stored(each, results, each.name in corrupted)
        assert values is not None
        rows.append({**each.config.model_dump(), "remedy": each.remedy, "run": each.name, **values})
    return pd.DataFrame(rows)


def _corrupted(chosen: Protocol) -> set[str]:
    """The runs that are scored on corrupted images."""
    return {each.name for each in chosen.runs(["corruption"])}


def _begin(parent: int, threads: int) -> None:
    """A worker's share of the cores; where the study is killed it ends too, its run kept."""
    end_with(parent)
    torch.set_num_threads(threads)


def _done(do: Any, missing: Sequence[Run], workers: int) -> Any:
    if workers == 1:
        yield from map(do, missing)
        return
    # Spawned: torch's threads do not survive a fork.
    given = (os.getpid(), max(1, (os.cpu_count() or 1) // workers))
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, given) as pool:
        waiting = [pool.submit(do, each) for each in missing]
        try:
            for future in as_completed(waiting):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def measured(
    run: Run,
    *,
    results: Path,
    corrupted: set[str],
    images: int | None = None,
    data_dir: Path | None = None,
    device: str = "cpu",
) -> str:
    """Train one run, or read it back, measure what is not measured yet and keep it. Returns its
    name."""
    kind = None if run.remedy is None else ModelKind(run.remedy, partial(model_of, run.remedy))
    keeping = Keeping(watch=lambda model, every: Watcher(model, every=every, budget=None))
    own = None if run.remedy else keeping  # a layer under a remedy has no one H to be read
    finished = trained(
        run.config, results, device=device, progress=False, data_dir=data_dir, keeping=own,
        kind=kind,
    )  # fmt: skip
    finished.model.cpu()
    with_corruptions = run.name in corrupted
    with one_thread():
        if is_base(run):
            keep_streams(run, finished, results, data_dir)
        if _stored(run, results, with_corruptions) is not None:
            return run.name
        values = measures(
            finished, with_corruptions=with_corruptions, images=images, data_dir=data_dir
        )
    kept = {
        "version": VERSION,
        "corruptions": with_corruptions,
        "seconds": finished.run.metrics["seconds"],
        "measures": {name: json_number(value) for name, value in values.items()},
    }
    write_atomically(_place(run, results), to_json(kept))
    return run.name


def _place(run: Run, results: Path) -> Path:
    return results / "measures" / f"{run.name}.json"


def _stored(run: Run, results: Path, corrupted: bool) -> dict[str, float] | None:
    """What was measured of a run before; None where that is not all that is asked for."""
    path = _place(run, results)
    if not path.exists():
        return None
    record: Any = parse_json(read_text(path), str(path))
    try:
        if record["version"] != VERSION or (corrupted and not record["corruptions"]):
            return None
        values = {
            name: float(value) for name, value in record["measures"].items() if name in MEASURES
        }
        return {**values, "seconds": float(record["seconds"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"'{path}' is damaged ({error}): delete it and run again") from error


def cost(chosen: Protocol, studies: list[str], results: Path, workers: int) -> str:
    """How many runs there are, how many are left, and about how long they take, in a sentence."""
    runs = chosen.runs(studies)
    left = [each for each in runs if _stored(each, results, False) is None]
    known = {each.name: _stored(each, results, False) for each in runs}
    done = [(seen["seconds"], _work(each)) for each in runs if (seen := known[each.name])]
    if done:
        unit, source = sum(a for a, _ in done) / sum(b for _, b in done), "as those before took"
    else:
        unit, source = GIGA, "as measured elsewhere"
    minutes = sum(unit * _work(each) for each in left) / workers / 60
    return (
        f"{len(runs)} runs, {len(left)} left: about {minutes:.0f} minutes on {workers} "
        f"process{'es' if workers > 1 else ''} ({source})"
    )


def _work(run: Run) -> float:
    """10^9 multiplications of the layers' forward passes, what a run's time is about in proportion
    to."""
    config, d = run.config, run.config.width
    n = 1 + (config.sizes.size // config.patch) ** 2
    of_token = (3 + 2 * config.ffn_ratio) * d**2 + 2 * n * d
    images = config.epochs * config.per_epoch * config.batch_size
    return images * config.depth * n * of_token / 1e9
