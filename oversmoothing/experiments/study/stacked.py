"""Runs of one task trained together, as one program: what a card needs to be busy.

The weights of networks of one structure are stacked along a new first axis (`torch.func`), and the
losses of all networks are added: the gradient of a sum is each network's own. Each gradient is
clipped alone and AdamW acts on each number alone, so that a stack trains as its networks would by
themselves, up to the rounding of sums. Batches are drawn on the CPU as for a single run. On a card
a step is recorded once and replayed (CUDA graph).
"""

import io
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from tqdm import tqdm

from oversmoothing.experiments.digits.training_config import HEADED, Design
from oversmoothing.experiments.digits.training_loop import learning_rate
from oversmoothing.experiments.digits.vit import StudyNet, eigenvalues
from oversmoothing.experiments.forms.form import orthogonal_factor
from oversmoothing.experiments.study.protocol import Cell
from oversmoothing.experiments.study.study_tasks import RECIPES, ROUGH, Recipe, Task, loss_of
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import write_atomically

POINTS = {"core": 12, "trainability": 4, "exploratory": 4}  # of trajectories, behind the start
WARM = 0.05
CLIP = 1.0  # of the norm of all gradients together
# Steps of a card before one is recorded: libraries get their work space.
WARM_UP = 3
DRAWING = 8  # threads that draw batches


@dataclass(frozen=True)
class Learnt:
    """What is left of a run of a stack: `points` (step, mean loss since the point before, weights
    on the CPU), a last one without weights where the loss was no number any more; `score` of the
    last weights; `seconds` of the stack's training, divided among its runs."""

    points: list[tuple[int, float, dict[str, Tensor]]]
    score: dict[str, float]
    seconds: float
    made: dict[str, Any]

    def onto(self, net: StudyNet) -> Iterator[tuple[int, float]]:
        """The network at each point, and (step, loss) of it."""
        for step, loss, weights in self.points:
            if weights:
                net.load_state_dict(weights)
            yield step, loss

    def keep(self, path: Path, digest: str) -> None:
        """As a file, for the run of that digest."""
        stream = io.BytesIO()
        torch.save({"digest": digest, **vars(self)}, stream)
        write_atomically(path, stream.getvalue())

    @classmethod
    def kept(cls, path: Path, digest: str) -> "Learnt | None":
        """The file's, if there is one of that digest. Raises `InputError` for a damaged one."""
        if not path.exists():
            return None
        try:
            held = torch.load(path, weights_only=True)
        except (OSError, EOFError, RuntimeError, ValueError, UnpicklingError) as error:
            said = " ".join(str(error).split())[:200]
            raise InputError(f"'{path}' is damaged ({said}): delete it") from error
        return cls(**held) if held.pop("digest") == digest else None


def kept(
    stack: Sequence[tuple[Cell, int]], folder: Path, own: Task, device: torch.device, *,
    progress: bool = True,
) -> list[Path]:  # fmt: skip
    """A file of `Learnt` for each run; missing ones are trained at once and kept first of all."""
    paths = [folder / f"{cell.name}-seed{seed}.pt" for cell, seed in stack]
    left = [k for k, (cell, _) in enumerate(stack) if Learnt.kept(paths[k], cell.digest) is None]
    missing = learn([stack[k] for k in left], own, device, progress=progress) if left else []
    for k, learnt in zip(left, missing, strict=True):
        learnt.keep(paths[k], stack[k][0].digest)
    return paths


def marks(cell: Cell) -> set[int]:
    """The steps behind which a run is looked at."""
    count = POINTS[cell.tier]
    return {round(k * cell.steps / count) for k in range(1, count + 1)}


class Alike:
    """The networks of a stack that have one structure: `values`, by name [networks, ...]."""

    def __init__(self, nets: list[StudyNet], device: torch.device) -> None:
        self.numbers = range(len(nets))
        decayed = {id(each) for each in nets[0].decayed()[0]}
        named = [dict(net.named_parameters()) for net in nets]
        self.decayed = {name for name, each in named[0].items() if id(each) in decayed}
        self.values = {
            name: torch.stack([own[name].detach() for own in named])
            .to(device)
            .requires_grad_(each.requires_grad)
            for name, each in named[0].items()
        }
        self.base = nets[0].to(device)

    def as_ordinary(self) -> dict[str, Tensor]:
        """`values`, in the place of Theta and psi W_V and W_O; Q of all layers at once, since a
        card takes one matrix no quicker than many."""
        values = dict(self.values)
        places = [name.removesuffix("theta") for name in values if name.endswith(".theta")]
        if places:
            thetas = torch.stack([values.pop(f"{place}theta") for place in places])
            for place, Q in zip(places, orthogonal_factor(thetas), strict=True):
                form = self.base.get_submodule(place.rstrip(".")).form
                psi = values.pop(f"{place}psi")
                values[f"{place}W_V"] = Q
                values[f"{place}W_O"] = eigenvalues(str(form), psi)[..., None] * Q.mT
        return values

    @torch.no_grad()
    def clip(self) -> None:
        """Each network's gradient to a norm of at most CLIP."""
        gradients = [each.grad for each in self.values.values() if each.grad is not None]
        norm = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()
        share = (CLIP / (norm + 1e-6)).clamp(max=1.0)
        for g in gradients:
            g.mul_(share.view(-1, *[1] * (g.ndim - 1)))

    def networks(self) -> list[dict[str, Tensor]]:
        """The weights of each, on the CPU."""
        held = {name: each.detach().cpu() for name, each in self.values.items()}
        return [{name: each[k].clone() for name, each in held.items()} for k in self.numbers]


class Program:
    """What runs networks of several forms of H at once: given W_V and W_O, they are ordinary."""

    def __init__(self, design: Design, groups: Sequence[Alike], device: torch.device) -> None:
        """design: the one that all share, `ordinary` of their own."""
        self.groups, first = groups, groups[0].base
        self.ordinary = design.form == "ord"
        self.base = StudyNet(design, first.reads, 0).to(device) if self.ordinary else first

    def losses(self, inputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        """[networks] of a batch each, group behind group."""

        def one(values: dict[str, Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
            scores: Tensor = functional_call(self.base, values, (inputs,))
            return loss_of(scores.float(), targets, recipe.smoothing)

        given = [each.as_ordinary() if self.ordinary else each.values for each in self.groups]
        values = {name: torch.cat([each[name] for each in given]) for name in given[0]}
        return vmap(one)(values, inputs, targets)

    def compiled(self) -> Callable[..., Tensor]:
        """`losses` with the many small steps between two products as one: a minute or two to make.
        Attention is written out, since torch (2.11) compiles its fused one of a stack into a
        program that fails."""
        for block in self.base.blocks():
            block.attention.fused = False
        made: Callable[..., Tensor] = torch.compile(self.losses)
        return made


def ordinary(design: Design) -> Design:
    """The design whose networks do the same with other W_V and W_O: of heads with values of their
    own, and layers that share nothing; else the design itself."""
    forms = {design.form_of(number) for number in range(1, design.depth + 1)}
    if design.tied or not forms <= set(HEADED):
        return design
    return design.but(form="ord", signed=None)


def learn(
    stack: Sequence[tuple[Cell, int]], own: Task, device: torch.device, *, progress: bool = True
) -> list[Learnt]:
    """Train runs (cell, seed) of one task, number of steps and tier at once; a result each, also
    where the loss of others is no number any more. Raises torch's own error where the card has too
    little memory."""
    first, card = stack[0][0], device.type == "cuda"
    recipe, steps = RECIPES[first.task], first.steps
    streams = sorted({(seed, cell.fraction) for cell, seed in stack})
    members: dict[Design, dict[Design, list[int]]] = {}
    for number, (cell, _) in enumerate(stack):
        design = cell.design.but(start="normal", std=1.0)
        members.setdefault(ordinary(design), {}).setdefault(design, []).append(number)
    nets = [StudyNet(cell.design, own.reads, seed) for cell, seed in stack]
    programs = [
        Program(design, [Alike([nets[k] for k in each], device) for each in alike.values()], device)
        for design, alike in members.items()
    ]
    orders = [list(itertools.chain(*numbers.values())) for numbers in members.values()]
    order, groups = list(itertools.chain(*orders)), [g for each in programs for g in each.groups]
    read = [streams.index((seed, cell.fraction)) for cell, seed in stack]
    reads = [torch.tensor([read[k] for k in numbers]).to(device) for numbers in orders]
    rate = torch.zeros((), device=device)
    optimizer = torch.optim.AdamW(
        [{"params": [value for group in groups for name, value in group.values.items()
                     if (name in group.decayed) == decays], "weight_decay": recipe.decay * decays}
         for decays in (True, False)],
        lr=rate, fused=True, capturable=card,
    )  # fmt: skip
    batches = _batches(own, streams, recipe.batch)
    inputs, targets = (each.to(device) for each in next(batches))
    losses = torch.zeros(len(stack), device=device)
    history = torch.zeros(steps, len(stack), device=device)

    rough = card and first.task in ROUGH
    losses_of = [each.compiled() if rough else each.losses for each in programs]

    def step() -> None:
        with torch.autocast(device.type, torch.bfloat16, enabled=rough):
            of_batch = torch.cat([
                each(inputs[read], targets[read], recipe)
                for each, read in zip(losses_of, reads, strict=True)
            ])  # fmt: skip
        torch.autograd.backward(of_batch.sum())
        for group in groups:
            group.clip()
        optimizer.step()
        losses.copy_(of_batch.detach())

    points_at = marks(first)
    seen: list[tuple[int, list[dict[str, Tensor]]]] = []
    began, recorded = time.perf_counter(), None
    for number in tqdm(range(steps), desc=f"{len(stack)} networks", unit="step",
                       file=sys.stderr, disable=None if progress else True):  # fmt: skip
        rate.fill_(learning_rate(recipe.rate, WARM, number, steps))
        if number:
            for held, drawn in zip((inputs, targets), next(batches), strict=True):
                held.copy_(drawn)
        if recorded is not None:
            recorded.replay()
        else:
            optimizer.zero_grad(set_to_none=True)
            if card:
                recorded = _on_card(step, number)
            else:
                step()
        history[number] = losses
        if number + 1 in points_at:
            seen.append((number + 1, [each for group in groups for each in group.networks()]))
    said = history.cpu()
    seconds = (time.perf_counter() - began) / len(stack)
    made = {"device": torch.cuda.get_device_name() if card else "cpu", "together": len(stack)}
    results: dict[int, Learnt] = {}
    scored = [group.base for group in groups for _ in group.numbers]
    for place, (number, net) in enumerate(zip(order, scored, strict=True)):
        points = _points(said[:, place], [(at, nets[place]) for at, nets in seen])
        score: dict[str, float] = {}
        if points[-1][2]:
            net.load_state_dict(points[-1][2])
            score = own.score(net.eval())
        results[number] = Learnt(points, score, seconds, made)
    return [results[number] for number in range(len(stack))]


def _on_card(step: Callable[[], None], number: int) -> torch.cuda.CUDAGraph | None:
    """One step; from the one with this number on it is recorded, and is to be replayed."""
    if number >= WARM_UP:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        graph.replay()
        return graph
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        step()
    torch.cuda.current_stream().wait_stream(aside)
    return None


def _points(
    losses: Tensor, seen: list[tuple[int, dict[str, Tensor]]]
) -> list[tuple[int, float, dict[str, Tensor]]]:
    points: list[tuple[int, float, dict[str, Tensor]]] = []
    start = 0
    for at, weights in seen:
        part = losses[start:at]
        if not bool(part.isfinite().all()):
            return [*points, (start + int((~part.isfinite()).nonzero()[0]), math.nan, {})]
        points.append((at, float(part.double().mean()), weights))
        start = at
    return points


def _batches(
    own: Task, streams: list[tuple[int, float]], size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """(inputs, targets), [streams, size, ...] each, drawn one step ahead."""
    drawing = [own.batches(seed, fraction, size) for seed, fraction in streams]
    with ThreadPoolExecutor(DRAWING) as pool:
        ahead = [pool.submit(next, each) for each in drawing]
        while True:
            drawn = [each.result() for each in ahead]
            ahead = [pool.submit(next, each) for each in drawing]
            inputs, targets = (torch.stack(list(part)) for part in zip(*drawn, strict=True))
            yield inputs, targets
