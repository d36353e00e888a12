"""The runs of the study: trained, measured, and kept as one JSON row each, block by block.

A run is trained on one thread from its seed alone, so that its row is the same on the same kind of
machine. Finished rows stand in `rows.jsonl` of the study's folder, a line each, and are not trained
again; the weights beside them in `weights` are for the lever and for `inspect`, and are never part
of a record. A row holds its configuration, how the test went, what the start was (gradients,
HFC/LFC), a trajectory of H and HFC/LFC at POINTS, and what moving H does (`lever`).

Of H = sum over heads, by layer: `cos` to the start, `cos_free` the same without the trace,
`alignment` -tr H / (sqrt d ||H||_F), the cosine to -I, whose standard deviation at random is 1/d;
`negative` and `disc`, the shares of eigenvalues with Re h < 0 and |h + 1/2| < 1/2; `head_negative`
and `head_disc` those of the heads' own; norm, radius, and `asymmetry` ||H - H^T||_F / 2 ||H||_F.
With `folded_` the gain of the norm in front is folded in: the H that acts on normed tokens.
"""

import itertools
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save as saved
from torch import Tensor, nn
from tqdm import tqdm

from oversmoothing.experiments.digits.training_loop import adamw, learning_rate
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.models.pictures import real_inputs
from oversmoothing.experiments.study.lever import DOSES, PARTS, TEN, effects, into_disc, shift
from oversmoothing.experiments.study.protocol import Cell, Protocol, protocol
from oversmoothing.experiments.study.stacked import CLIP, WARM, Learnt, kept, marks
from oversmoothing.experiments.study.study_tasks import RECIPES, ImageTask, Task, loss_of, task
from oversmoothing.simulations.running import provenance
from oversmoothing.simulations.state import one_thread
from oversmoothing.simulations.state_metrics import stream_log_ratio
from oversmoothing.simulations.sweep.store import locked
from oversmoothing.theory.proofs.workers import as_done, workers as workers_of
from oversmoothing.theory.support import files
from oversmoothing.theory.support.errors import InputError

ROWS, WEIGHTS = "rows.jsonl", "weights"
LEVERED = 250  # test inputs on which H is moved
NICE = 19


@one_thread()
def trained(
    cell: Cell, seed: int, data: Path | None = None, learnt: Learnt | None = None
) -> tuple[StudyNet, dict[str, Any]]:
    """(the network, its row) of one run. data: the folder of real inputs; learnt: what a stack
    trained, which is measured only. Raises what `task` does."""
    began = time.process_time()
    own = task(cell.task, data)
    began_training = time.process_time()
    net = StudyNet(cell.design, own.reads, seed)
    watched = Trajectory(own, net.products())
    watched.see(net, 0, math.nan)
    at_start = start_measures(net, own, seed)
    diverged = None
    for step, loss in _learning(net, cell, seed, own) if learnt is None else learnt.onto(net):
        if not math.isfinite(loss):
            diverged = step
            break
        watched.see(net, step, loss)
    net.eval()
    net.cos_start = watched.rows["cos"][-1]
    seconds = time.process_time() - began_training if learnt is None else learnt.seconds
    row: dict[str, Any] = {
        "cell": cell.name, "seed": seed, "digest": cell.digest, "tier": cell.tier,
        "configuration": cell.configuration, "diverged": diverged,
        "parameters": sum(p.numel() for p in net.parameters()), "start": at_start,
        "trajectory": watched.rows,
    }  # fmt: skip
    if diverged is None:
        row["score"] = own.score(net) if learnt is None else learnt.score
        if cell.tier == "core" and cell.fraction == 1:
            row["lever"] = lever_measures(net, own, seed)
            if isinstance(own, ImageTask):
                row["corruption"] = own.corruption(net)
    row |= {
        "seconds": round(seconds, 1),
        "seconds_in_all": round(time.process_time() - began, 1),
        "made": {
            **provenance(), "date": datetime.now(UTC).date().isoformat(), "threads": 1,
            **({} if learnt is None else learnt.made),
        },
    }  # fmt: skip
    return net, rounded(row)


def _learning(net: StudyNet, cell: Cell, seed: int, own: Task) -> Iterator[tuple[int, float]]:
    """(step, mean loss since the point before) at each point, and where it is no number."""
    recipe = RECIPES[cell.task]
    optimizer = adamw(*net.decayed(), recipe.rate, recipe.decay)
    points, total, since = marks(cell), 0.0, 0
    net.train()
    batches = own.batches(seed, cell.fraction, recipe.batch)
    for step, (inputs, targets) in zip(range(cell.steps), batches, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(recipe.rate, WARM, step, cell.steps)
        loss = loss_of(net(inputs), targets, recipe.smoothing)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
        total, since = total + float(loss.detach()), since + 1
        if not math.isfinite(total):
            yield step, math.nan
        elif step + 1 in points:
            yield step + 1, total / since
            total, since = 0.0, 0


def rounded(value: Any, digits: int = 7) -> Any:
    """Floats to so many digits, as JSON has them: seven are more than another machine keeps."""
    if isinstance(value, dict):
        return {name: rounded(each, digits) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each, digits) for each in value]
    return files.json_number(float(f"{value:.{digits}g}")) if isinstance(value, float) else value


class Trajectory:
    """What is seen of H and of the stream while a network trains: `rows`, by name [points][...]."""

    def __init__(self, own: Task, start: Tensor) -> None:
        self.own, self.start = own, start
        self.rows: dict[str, list[Any]] = {}

    @torch.no_grad()
    def see(self, net: StudyNet, step: int, loss: float) -> None:
        """At a step: `loss`, the mean training loss since the point before; `hfc_lfc`, log10 of it
        in front of the first layer and behind each, mean over the probe inputs."""
        training = net.training
        net.eval()
        stream: list[Tensor] = []
        net(self.own.probe, stream)
        net.train(training)
        ratios = [float(stream_log_ratio(X).mean()) / TEN for X in stream]
        seen: dict[str, Any] = {"step": step, "loss": loss, "hfc_lfc": ratios}
        layers = [h_measures(*each) for each in zip(net.blocks(), self.start, strict=True)]
        seen |= {name: [each[name] for each in layers] for name in layers[0]}
        for name, value in seen.items():
            self.rows.setdefault(name, []).append(rounded(value, 3))


def h_measures(block: Any, start: Tensor) -> dict[str, float]:
    """What a row says of H of a layer; start [d, d]: W_V W_O as it was drawn."""
    attention = block.attention
    W_V, W_O = (each.double().numpy() for each in attention.maps())
    M, M_0, d = W_V @ W_O, start.numpy(), len(start)
    said = {"cos": _cosine(M, M_0), "cos_free": _cosine(_traceless(M), _traceless(M_0))}
    gain = np.ones(d) if block.post else block.norm_attention.weight.double().numpy()
    k = d // (1 if attention.shared else attention.heads)
    for name, scaled in (("", np.ones(d)), ("folded_", gain)):
        V = scaled[:, None] * W_V
        whole, size = V @ W_O, float(np.linalg.norm(V @ W_O))
        aligned = -float(np.trace(whole)) / (d**0.5 * size) if size else math.nan
        said[f"{name}alignment"] = aligned
        spectrum = np.linalg.eigvals(whole)
        cores = [W_O[i : i + k] @ V[:, i : i + k] for i in range(0, d, k)]
        own = np.concatenate([np.linalg.eigvals(core) for core in cores])
        for of, h in (("", spectrum), ("head_", own)):
            said[f"{name}{of}negative"] = float((h.real < 0).mean())
            said[f"{name}{of}disc"] = float((np.abs(h + 0.5) < 0.5).mean())
        if not name:
            skew = float(np.linalg.norm(whole - whole.T)) / (2 * size) if size else math.nan
            said |= {"norm": size, "radius": float(np.abs(spectrum).max()), "asymmetry": skew}
    return said


def _traceless(M: np.ndarray) -> np.ndarray:
    return np.asarray(M - np.trace(M) / len(M) * np.eye(len(M)))


def _cosine(M: np.ndarray, N: np.ndarray) -> float:
    size = float(np.linalg.norm(M) * np.linalg.norm(N))
    return float((M * N).sum()) / size if size else math.nan


def start_measures(net: StudyNet, own: Task, seed: int) -> dict[str, float]:
    """Before training, on one batch: `gradient`, log10 of the loss's gradient by the stream behind
    the first layer over that behind the last; `change`, of log10 HFC/LFC between the same."""
    inputs, targets = next(own.batches(seed, 1.0, 64))
    stream: list[Tensor] = []
    loss = loss_of(net(inputs, stream), targets, 0.0)
    gradients = torch.autograd.grad(loss, stream)
    first, last = (float(torch.linalg.vector_norm(gradients[k])) for k in (1, -1))
    before, after = (float(stream_log_ratio(stream[k].detach()).mean()) / TEN for k in (1, -1))
    return {
        "gradient": math.log10(first / last) if first and last else math.nan,
        "change": after - before,
    }


def lever_measures(net: StudyNet, own: Task, seed: int) -> dict[str, Any]:
    """What moving H does to a trained network (`lever.effects`), means over LEVERED test inputs."""
    inputs = torch.cat([inputs for inputs, _ in own.test()])[:LEVERED]
    model = net.described(None)
    changes = [*(shift(model, dose) for dose in DOSES), *(into_disc(model, p) for p in PARTS)]
    results = effects(model, inputs, changes, seed=seed, batch_size=LEVERED)
    names = ("effect", "predicted", "control", "kl", "control_kl", "same")
    return {
        "changes": [each.name for each in changes],
        "doses": [each.dose for each in changes],
        "norm": results["norm"].tolist(),
        **{name: results[name].mean(1).tolist() for name in names},
    }


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, none where there is no file. Raises `InputError` for a damaged line."""
    if not path.exists():
        return []
    rows = []
    lines = files.read_text(path).split("\n")
    for number, line in ((k, each) for k, each in enumerate(lines, 1) if each.strip()):
        row = files.parse_json(line, f"{path}, line {number}")
        if not isinstance(row, dict) or not {"cell", "seed", "digest"} <= set(row):
            raise InputError(f"'{path}', line {number} is no row of a run: delete that line")
        rows.append(row)
    return rows


def known(rows: Sequence[dict[str, Any]], chosen: Protocol) -> dict[tuple[str, int], Any]:
    """Rows of the protocol's cells as they are now, by (cell, seed): of an earlier recipe none."""
    digests = {name: cell.digest for name, (cell, _) in chosen.cells.items()}
    return {
        (row["cell"], int(row["seed"])): row
        for row in rows
        if digests.get(row["cell"]) == row["digest"]
    }


def run_blocks(
    chosen: Protocol, folder: Path, *, tiers: tuple[str, ...], workers: int = 1,
    data: Path | None = None, blocks: int | None = None, device: torch.device | None = None,
    progress: bool = True,
) -> int:  # fmt: skip
    """Train what is missing, block by block, and keep each row as soon as it is there.

    blocks: stop behind so many that had something left. device: a card, on which all runs of one
    task and length in these blocks are trained together (`stacked`); the processes then measure.
    Interrupted at any moment, the next call goes on with the first run that has no row; a run or a
    stack in training is lost, minutes at most. Returns how many runs were made. Raises `InputError`
    for a folder that is in use or damaged, and what `task` does.
    """
    folder = files.output_folder(folder, room=2**24)
    files.output_folder(folder / WEIGHTS)
    made = 0
    with locked(folder):
        rows = read_rows(folder / ROWS)
        there = set(known(rows, chosen))
        left = [[r for r in b if (r[0].name, r[1]) not in there] for b in chosen.blocks(tiers)]
        left = [block for block in left if block][:blocks]
        if device is not None:
            alike: dict[tuple[Any, ...], list[tuple[Cell, int]]] = {}
            for cell, seed in itertools.chain(*left):
                alike.setdefault((cell.task, cell.steps, cell.tier), []).append((cell, seed))
            left = list(alike.values())
        bar = tqdm(
            total=sum(map(len, left)), unit="run", file=sys.stderr,
            disable=None if progress else True,
        )  # fmt: skip
        with bar, workers_of(workers, NICE) as submit:
            for block in left:
                bar.set_description(f"{block[0][0].tier}, seed {block[0][1]}")
                learnt: list[Path] = []
                if device is not None:
                    own = task(block[0][0].task, data)
                    place = files.output_folder(folder / "stack")
                    learnt = kept(block, place, own, device, progress=progress)
                waiting = [
                    submit(_one, *run, folder, data, *learnt[k : k + 1])
                    for k, run in enumerate(block)
                ]
                for each in as_done(waiting):
                    made += 1
                    rows.append(each.result())
                    write_rows(rows, folder / ROWS)
                    bar.update()
                for path in learnt:
                    path.unlink()
    return made


def _one(
    cell: Cell, seed: int, folder: Path, data: Path | None, learnt: Path | None = None
) -> dict[str, Any]:
    of_stack = None if learnt is None else Learnt.kept(learnt, cell.digest)
    net, row = trained(cell, seed, data, of_stack)
    weights = {name: value.contiguous() for name, value in net.state_dict().items()}
    said = {"cell": cell.name, "seed": str(seed), "configuration": json.dumps(cell.configuration),
            "cos_start": json.dumps(net.cos_start)}  # fmt: skip
    place = folder / WEIGHTS / f"{cell.name}-seed{seed}.safetensors"
    files.write_atomically(place, saved(weights, metadata=said))
    return row


def write_rows(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """A line a run, the whole file or nothing."""
    text = "".join(json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n" for row in rows)
    return files.write_atomically(path, text)


# For the table of `models.sources`: 'study:digits-ord' and so on, of a seed.
NAMES = tuple(f"study:{name}" for name in protocol().cells)
USUAL = ("study:CELL",)


def made(name: str, results: Path, seed: int, device: torch.device) -> StudyNet:
    """The trained network of a cell and seed, from the weights in the folder of results."""
    cell, _ = protocol().cells[name.removeprefix("study:")]
    path = results / "study" / WEIGHTS / f"{cell.name}-seed{seed}.safetensors"
    if not path.exists():
        raise InputError(
            f"'{name}' (seed {seed}) has not been trained in '{results}': run `oversmoothing study "
            f"{cell.tier} --out {results}` first"
        )
    with safe_open(path, "pt") as file:
        said = file.metadata()
        weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if json.loads(said.get("configuration", "null")) != cell.configuration:
        raise InputError(f"'{path}' is of an earlier recipe: delete it and run the study again")
    net = StudyNet(cell.design, task(cell.task, real_inputs()).reads, seed)
    net.load_state_dict(weights)
    net.cos_start = json.loads(said["cos_start"])
    return net.to(device).eval()


def stored(folder: Path) -> StudyNet:
    """No folder of runs is one network: raises `InputError`, which says how one is named."""
    raise InputError(
        f"'{folder}' holds many networks: name one, study:digits-ord, with --seed and --out"
    )


def cost(
    chosen: Protocol, tiers: tuple[str, ...], rows: Sequence[dict[str, Any]], workers: int
) -> str:
    """How many runs there are, how many are left, and about how long they take, in a sentence."""
    there = known(rows, chosen)
    runs = [(cell, there.get((cell.name, seed))) for b in chosen.blocks(tiers) for cell, seed in b]
    left = [cell.seconds for cell, row in runs if row is None]
    # What the runs so far took, those on a card apart, against what they were thought to.
    done = [(row, cell.seconds) for cell, row in runs if row and "device" not in row["made"]]
    took = sum(row["seconds_in_all"] for row, _ in done)
    factor = took / sum(thought for _, thought in done) if done else 1.0
    hours = factor * sum(left) / 3600
    source = "as those before took" if done else "as pilots took"
    return (
        f"{len(runs)} runs, {len(left)} left: about {hours:.1f} core-hours, {hours / workers:.1f} "
        f"hours on {workers} process{'es' if workers > 1 else ''} ({source})"
    )
