"""What people wait for at a shell: points of a sweep, and how long commands take to begin.

Processor time, but for two processes: what the program computes, however busy the machine. Starts
are told beside `import numpy`, in the same run.
"""

import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.benchmark import Row, measurement
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.simulations.sweep.config import DEFAULT_MEASURES, make_config
from oversmoothing.simulations.sweep.points import Points, outcome
from oversmoothing.simulations.sweep.runner import (
    CHUNK,
    Backend,
    local_cluster,
    processes,
    run_sweep,
)
from oversmoothing.simulations.sweep.together import outcomes
from oversmoothing.theory.support.sizes import Array

# (n, d, heads), and points a second wanted with all columns, and of verdicts alone.
_SIZES = (
    (32, 16, 1, 1200.0, 3000.0),
    (16, 8, 1, None, None),
    (64, 32, 1, None, None),
    (16, 8, 2, 300.0, None),
)
_FEW = 10
_STARTS = 5


def _eigenvectors(M: Array) -> None:
    """What a proof by all eigenvectors needs at least: a basis, its inverse, three products."""
    values, vectors = np.linalg.eig(M)
    P = vectors.real + vectors.imag
    Y = np.linalg.inv(P)
    _ = Y @ P, Y @ (M @ P - P * values.real[:, None])


@measurement("sweep/points", "points of a sweep worked on together, against one by one")
def sweep() -> list[Row]:
    rows = []
    for n, d, heads, wanted, wanted_verdicts in _SIZES:
        axes = {"seed": {"from": 0, "to": CHUNK - 1, "steps": CHUNK}}
        fixed = {"n": n, "d": d, "heads": heads}
        points = list(Points(make_config({"axes": axes, "fixed": fixed})))
        rng = np.random.default_rng(0)
        A, H = rng.random((CHUNK, n - 1, n - 1)), rng.random((CHUNK, d, d))
        ours, verdicts, alone, least, basis = interleaved_medians(
            [
                lambda points=points: outcomes(points, DEFAULT_MEASURES),
                lambda points=points: outcomes(points, ()),
                lambda points=points: [outcome(p, DEFAULT_MEASURES) for p in points[:_FEW]],
                lambda A=A, H=H: (np.linalg.eigvals(A), np.linalg.eigvals(H)),
                lambda A=A, H=H: (_eigenvectors(A), _eigenvectors(H)),
            ],
            clock=time.process_time,
        )
        shape = f"n = {n}, d = {d}" + (f", {heads} heads" if heads > 1 else "")
        each = ours / CHUNK
        seconds = {"together": each, "one by one": alone / _FEW, "eigenvalues": least / CHUNK}
        rows += [
            Row(f"sweep, points a second, {shape}", 1 / each, seconds, "all columns",
                at_least=wanted),
            Row(f"sweep, verdicts a second, {shape}", CHUNK / verdicts, at_least=wanted_verdicts),
            Row(f"sweep, eigenvectors of A and H a second, {shape}", CHUNK / basis,
                note="with an inverse and three products each, without draws"),
            Row(f"sweep, one by one / together, {shape}", alone / _FEW / each, seconds),
            Row(f"sweep / eigenvalues of A and H alone, {shape}", ours / least, seconds),
        ]  # fmt: skip
    return rows


@measurement("sweep/processes", "a sweep in one process, in two and in four", pinned=False)
def processes_of_a_sweep() -> list[Row]:
    axes = {"seed": {"from": 0, "to": 2999, "steps": 3000}}
    config, rows, number = make_config({"axes": axes}), list[Row](), itertools.count()
    tables: set[bytes] = set()

    def swept(folder: Path, backend: Backend) -> None:
        path = run_sweep(config, folder / str(next(number)), backend=backend)
        tables.add(path.read_bytes())

    with tempfile.TemporaryDirectory() as folder, closing(local_cluster(4)) as dask:
        others: dict[str, Backend] = {
            "two processes": processes(2),
            "four processes": processes(4),
            "four workers of Dask": dask,
        }
        # One beside each: joblib keeps the workers of a pool until a pool of another size starts.
        for name, backend in others.items():
            one, own = interleaved_medians(
                [partial(swept, Path(folder), backend) for backend in (processes(1), backend)], 3
            )
            rows.append(
                Row(f"sweep, one process over {name}", one / own, {"one": one, name: own},
                    "on the clock, workers started before: for as many idle cores; load "
                    f"{os.getloadavg()[0]:.1f} on {os.cpu_count()}",
                    at_least=1.7 if name == "two processes" else None)
            )  # fmt: skip
    return [*rows, Row("sweep, different tables of one, two and four", len(tables), at_most=1.0)]


@measurement("starting", "the front door, a first verdict and a command, beside import numpy")
def starting() -> list[Row]:
    layer = {"A": [[0.75, 0.25], [0.3, 0.7]], "H": [[-0.51, 0.1], [0.2, 0.3]]}
    with tempfile.TemporaryDirectory() as folder:
        case = Path(folder) / "case.json"
        case.write_text(json.dumps(layer))
        asked = {
            "an empty program": ["-c", ""],
            "import numpy": ["-c", "import numpy"],
            "import oversmoothing": ["-c", "import oversmoothing"],
            "first verdict": [
                "-c", f"import oversmoothing; oversmoothing.verdict(A={layer['A']}, H={layer['H']})"
            ],
            "oversmoothing verdict CASE": ["-m", "oversmoothing", "verdict", str(case)],
        }  # fmt: skip
        taken: dict[str, list[float]] = {name: [] for name in asked}
        for _ in range(_STARTS + 1):
            for name, words in asked.items():
                taken[name].append(_processor_seconds(words))
    seconds = {name: median(times[1:]) for name, times in taken.items()}
    base = seconds.pop("import numpy")
    wanted = {
        "import oversmoothing": (0.03, "beyond an empty program"),
        "first verdict": (0.15, "of floats, beyond an empty program"),
        "oversmoothing verdict CASE": (0.4, "with Python's own start"),
    }
    empty = seconds.pop("an empty program")
    return [
        row
        for name, own in seconds.items()
        for most, note in (wanted[name],)
        for row in (
            Row(f"{name} / import numpy", own / base, {name: own, "import numpy": base}),
            Row(f"{name}: processor seconds", own - empty * ("beyond" in note), note=note,
                at_most=most),
        )
    ]  # fmt: skip


def _processor_seconds(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The program is compiled once, as where it is installed; the first start is not counted.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
