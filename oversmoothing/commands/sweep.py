"""`oversmoothing sweep`: a grid of parameters, its outcomes as one Parquet table."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pandas as pd

from oversmoothing.simulations.sweep.config import Config, example, examples, read_config
from oversmoothing.simulations.sweep.points import Points
from oversmoothing.simulations.sweep.runner import (
    CHUNK,
    Backend,
    Dask,
    connect,
    local_cluster,
    processes,
    run_sweep,
)
from oversmoothing.simulations.sweep.store import read_table
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import write_atomically


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `sweep`."""
    add = parser.add_argument
    add("config", nargs="?", metavar="CONFIG.toml", help="[fixed] values, [axes] and measures")
    add("--example", choices=examples(), help="a configuration that comes with the package instead")
    add("--out", metavar="DIR", help="folder of sweep.parquet (default results/sweeps/NAME)")
    add("--workers", type=int, metavar="N", help="worker processes (default 1: this process)")
    add("--cluster", choices=["local"], help="let a Dask cluster on this machine run the workers")
    add("--scheduler", metavar="ADDRESS", help="a running Dask cluster, e.g. tcp://host:8786")
    add("--chunk", type=int, default=CHUNK, help="points a file; a kill loses the ones in work")
    add("--restart", action="store_true", help="give up what the folder holds and start again")
    add("--csv", action="store_true", help="write sweep.csv too")
    add("--figure", nargs="+", metavar="AXIS", help="draw a phase diagram over X Y [PANEL]")


def run(arguments: Namespace) -> int:
    """Run `sweep`: 0, or 1 where every point failed. Raises `InputError`."""
    name, config = _config(arguments)
    if arguments.figure is not None and len(arguments.figure) not in (2, 3):
        raise InputError("--figure takes two axes, X Y, and perhaps a third for the panels")
    folder = Path("results", "sweeps", name) if arguments.out is None else Path(arguments.out)
    backend = _backend(arguments)
    print(f"{len(Points(config)):,} points: {_axes(config)}", flush=True)
    try:
        path = run_sweep(
            config,
            folder,
            backend=backend,
            chunk=arguments.chunk,
            restart=arguments.restart,
            progress=True,
        )
    finally:
        if isinstance(backend, Dask):
            backend.close()
    table = read_table(path).to_pandas()
    print(summary(table))
    print(f"wrote {path}")
    if arguments.csv:
        print(f"wrote {write_atomically(path.with_suffix('.csv'), table.to_csv(index=False))}")
    if arguments.figure is not None:
        from oversmoothing.simulations.drawing import phase_diagram as diagram

        found = diagram.cells(table, *arguments.figure)
        title = config.title or "Phase diagram"
        for file in diagram.write(found, folder, "phase_diagram", title):
            print(f"wrote {file}")
        print(diagram.caption(found))
    return 1 if (table["status"] == "error").all() else 0


def _config(arguments: Namespace) -> tuple[str, Config]:
    if (arguments.config is None) == (arguments.example is None):
        raise InputError(
            "give either a CONFIG.toml or --example NAME, one of " + ", ".join(examples())
        )
    if arguments.example is not None:
        return arguments.example, example(arguments.example)
    return Path(arguments.config).stem, read_config(arguments.config)


def _backend(arguments: Namespace) -> Backend:
    if arguments.scheduler is not None:
        if arguments.cluster is not None or arguments.workers is not None:
            raise InputError("--scheduler has its own workers: leave out --workers and --cluster")
        return connect(arguments.scheduler)
    workers = 1 if arguments.workers is None else arguments.workers
    return processes(workers) if arguments.cluster is None else local_cluster(workers)


def _axes(config: Config) -> str:
    return " x ".join(f"{len(values)} {name}" for name, values in config.axes.items()) or "one case"


def summary(table: pd.DataFrame) -> str:
    """How many points have which verdict, whether the runs bear it out, and what failed."""
    good = table[table["status"] != "error"]
    counts = good["verdict"].value_counts()
    lines = [", ".join(f"{number:,} {verdict}" for verdict, number in counts.items())]
    if "slope" in table:
        smoothing = good[(good["verdict"] == "SMOOTHING") & good["slope"].notna()]
        if len(smoothing):
            gap = (smoothing["slope"] - smoothing["predicted_log_rate"]).abs().median()
            lines.append(
                f"SMOOTHING points: measured slope of log HFC/LFC per layer against the predicted "
                f"log(rho_Q/rho_C), median difference {gap:.1e}"
            )
    failed = table[table["status"] == "error"]
    if len(failed):
        reasons = failed["note"].value_counts()
        lines.append(f"{len(failed):,} points failed, most often: {reasons.index[0]}")
    return "\n".join(line for line in lines if line)
