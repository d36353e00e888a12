"""The runs of a study: trained or read back, measured, each kept as soon as it is finished.

Interrupted at any moment, the next call goes on where this one stopped: a run from its checkpoint,
the study from the first run that is not measured.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from oversmoothing.experiments.digits.config import TrainConfig
from oversmoothing.experiments.digits.training import Kind, trained
from oversmoothing.experiments.digits.training_loop import Keeping, generator
from oversmoothing.experiments.inspection.watcher import Watcher
from oversmoothing.experiments.remedies.digits_vit import RemediedViT
from oversmoothing.experiments.study.base_streams import is_base, keep_streams, streams_place
from oversmoothing.experiments.study.protocol import Protocol, Run
from oversmoothing.experiments.study.run_measures import MEASURES, VERSION, measures
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.proofs.workers import end_with
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import (
    json_number,
    parse_json,
    read_text,
    to_json,
    write_atomically,
)

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
        found = _stored(each, results, each.name in corrupted)
        assert found is not None
        rows.append({**each.config.model_dump(), "remedy": each.remedy, "run": each.name, **found})
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
    kind = None if run.remedy is None else Kind(run.remedy, partial(model_of, run.remedy))
    keeping = Keeping(watch=lambda model, every: Watcher(model, every=every, budget=None))
    own = None if run.remedy else keeping  # a layer under a remedy has no one H to be read
    found = trained(
        run.config, results, device=device, progress=False, data_dir=data_dir, keeping=own,
        kind=kind,
    )  # fmt: skip
    found.model.cpu()
    with_corruptions = run.name in corrupted
    with one_thread():
        if is_base(run):
            keep_streams(run, found, results, data_dir)
        if _stored(run, results, with_corruptions) is not None:
            return run.name
        values = measures(
            found, with_corruptions=with_corruptions, images=images, data_dir=data_dir
        )
    kept = {
        "version": VERSION,
        "corruptions": with_corruptions,
        "seconds": found.run.metrics["seconds"],
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
    found: Any = parse_json(read_text(path), str(path))
    try:
        if found["version"] != VERSION or (corrupted and not found["corruptions"]):
            return None
        values = {
            name: float(value) for name, value in found["measures"].items() if name in MEASURES
        }
        return {**values, "seconds": float(found["seconds"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"'{path}' is damaged ({error}): delete it and run again") from error


def cost(chosen: Protocol, studies: list[str], results: Path, workers: int) -> str:
    """How many runs there are, how many are left, and about how long they take, in a sentence."""
    runs = chosen.runs(studies)
    left = [each for each in runs if _stored(each, results, False) is None]
    known = {each.name: _stored(each, results, False) for each in runs}
    done = [(found["seconds"], _work(each)) for each in runs if (found := known[each.name])]
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
