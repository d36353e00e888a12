"""`make gpu`: everything that depends on the device, on the card that is there, in one file.

    python -m benchmarks.gpu [--out DIR] [--small] [--device cuda]

The tests that are marked `cuda`; each path of `CASES` on the CPU and on the card (seconds as
medians of runs in turn, how far the answers differ, peak memory of the card, how often the host
waits for it, by line); where eigenvalues are quicker, by side; and the measurements of `make bench`
that know the card. The file `gpu-DATE.json` names the card and the versions, is written anew behind
each part, and says of a part that failed why. Without a card nothing is written, and the exit
status is 2; `--device cpu --small` walks the same road without one.
"""

import argparse
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import running
from benchmarks.benchmark import Measurement
from benchmarks.history import Past
from benchmarks.inspecting import vit
from oversmoothing import FromState, evolve, evolve_heads, inspect, metrics
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.support.files import to_json, write_atomically

Run = Callable[[str], Tensor]
ROOT = Path(__file__).resolve().parent.parent
REPEATS, LONG = 5, 0.5  # runs in turn, one where the CPU takes more seconds than that
# Torch's words for a call at which the host waits.
WAITS = re.compile("synchroniz")


def cases(small: bool) -> dict[str, Run]:
    """By name: device -> numbers, which the CPU and the card must share. ViT-B/16's shape."""
    n, d, heads, layers = (17, 12, 3, 2) if small else (197, 768, 12, 12)
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(n), size=(heads, n))
    X0 = rng.standard_normal((1 if small else 8, n, d))
    W = 0.3 * rng.standard_normal((d, d)) / d**0.5
    parts = tuple(
        rng.standard_normal(shape) / shape[1] ** 0.5
        for shape in ((heads, d, d // heads), (heads, d // heads, d))
    )
    follows = FromState(*rng.standard_normal((2, heads, d, d // heads)) / d**0.5)
    model = vit(12, 3, 2) if small else vit(768, 12)
    pixels = torch.randn(
        (1 if small else 8, 3, 224, 224), generator=torch.Generator().manual_seed(0)
    )

    def one_head(method: str, depth: int) -> Run:
        return lambda device: evolve(
            A=A[0], W=W, X0=X0, depth=[depth], method=method, device=device
        ).states  # fmt: skip

    def many(attention: Any) -> Run:
        return lambda device: evolve_heads(
            X0=X0, attention=attention, weights=parts, depth=[layers], device=device
        ).states  # fmt: skip

    def of_state(device: str) -> Tensor:
        return metrics(torch.from_numpy(X0).to(device))["log_hfc_lfc"]

    def of_model(device: str) -> Tensor:
        model.module.to(device)
        return torch.from_numpy(inspect(model, pixels.to(device), budget=Plan(2, 2)).logs)

    return {
        "evolve, plain": one_head("plain", layers),
        "evolve, closed form, 1e6 layers": one_head("closed_form", 10**6),
        "many heads, attention given": many(A),
        "many heads, attention from the state": many(follows),
        "metrics": of_state,
        "inspect without spectra": of_model,
    }


def waits(run: Callable[[], object]) -> dict[str, int]:
    """How often the host waits for the card in a run, by file and line."""
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return dict(
        Counter(
            f"{Path(each.filename).name}:{each.lineno}"
            for each in caught
            if WAITS.search(str(each.message))
        )
    )


def compared(run: Run, device: str) -> dict[str, Any]:
    """Seconds on the CPU and the device, their quotient, and how far the answers differ."""
    card = device == "cuda"
    if card:
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    here = run("cpu").double()
    repeats = REPEATS if time.perf_counter() - began < LONG else 1
    there = run(device).cpu().double()
    off = (here - there).abs().max() / here.abs().max()
    entry: dict[str, Any] = {"largest difference, relative": float(off)}
    if card:
        entry["peak MiB"] = torch.cuda.max_memory_allocated() / 2**20
        entry["waits"] = waits(lambda: run(device))
    cpu, seconds = interleaved_medians(
        [lambda: run("cpu"), lambda: run(device)],
        repeats,
        torch.cuda.synchronize if card else (lambda: None),
    )
    return entry | {"cpu seconds": cpu, "seconds": seconds, "cpu / card": cpu / seconds}


def eigenvalues(side: int, device: str) -> dict[str, Any]:
    """Of 16 general matrices in float64, 2 large ones: the sizes at which a card pays, if any."""
    M = torch.randn(
        (16 if side < 512 else 2, side, side), dtype=torch.float64,
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    return compared(lambda place: torch.linalg.eigvals(M.to(place)).abs().sort().values, device)


def tested(device: str) -> dict[str, Any]:
    """What pytest says of the tests that need the card; without one they are skipped."""
    asked = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "cuda",
        "-p",
        "no:cacheprovider",
        *sorted(
            str(path)
            for path in (ROOT / "tests").rglob("test_*.py")
            if "mark.cuda" in path.read_text("utf-8")
        ),
    ]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
    return {"device": device, "exit status": done.returncode, "last line": last}


def parts(device: str, small: bool) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """(section, name, what measures it), the quick ones first: a card may be lent for minutes."""
    paths = cases(small)
    long = "inspect without spectra"
    for name, run in paths.items():
        if name != long:
            yield "paths", name, partial(compared, run, device)
    for side in (8,) if small else (16, 64, 256, 384, 512, 768, 1024):
        yield "eigenvalues, by side", str(side), partial(eigenvalues, side, device)
    yield "tests", "marked cuda", lambda: tested(device)
    yield "paths", long, partial(compared, paths[long], device)
    for each in [] if small else [each for each in running.measurements() if each.cuda]:
        yield "measurements", each.name, partial(_rows, each, device)


def _rows(each: Measurement, device: str) -> list[dict[str, Any]]:
    rows, _ = running.measure([each], device, None, Past([]))
    return [row.to_json_object() for row in rows]


def record(device: str, small: bool, path: Path) -> dict[str, Any]:
    """Everything, written as soon as it is there: a part that fails says why, and the others go
    on."""
    card = device == "cuda"
    told: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d"),
        "card": torch.cuda.get_device_name() if card else "none: the CPU twice",
        "cuda": torch.version.cuda,
        "provenance": provenance(),
        "failed": {},
    }
    for section, name, measured in parts(device, small):
        try:
            told.setdefault(section, {})[name] = measured()
        except Exception as error:  # hours of a card are not lost for one part
            told["failed"][name] = f"{type(error).__name__}: {error}"
        write_atomically(path, to_json(told))
    return told


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 written, 1 a test or a part failed (written too), 2 no card."""
    told = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    told.add_argument("--out", type=Path, default=Path(__file__).parent, metavar="DIR")
    told.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    told.add_argument("--small", action="store_true", help="tiny sizes, no measurements of bench")
    asked = told.parse_args(argv)
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("benchmarks.gpu: there is no card here: nothing was run, nothing written. The same "
              "road on the CPU: --device cpu --small --out DIR", file=sys.stderr)  # fmt: skip
        return 2
    path = asked.out / f"gpu-{time.strftime('%Y-%m-%d')}.json"
    report = record(asked.device, asked.small, path)
    print(f"wrote {path}")
    for name, why in report["failed"].items():
        print(f"{name}: {why}", file=sys.stderr)
    passed = report["tests"].get("marked cuda", {}).get("exit status") in (0, 5)
    return int(bool(report["failed"]) or not passed)


if __name__ == "__main__":
    sys.exit(main())
