"""What an inspection costs, in forward passes of the model on its inputs, and what fits a budget.

One forward pass and the streams are taken of all inputs; what is looked at closely (the account,
heads, ranks, sinks, tokens that come together) and the spectra of attention of as many, from the
first, as the budget leaves. Costs are multiplications, each kind of work at the rate that it has on
a CPU beside a product of float32 matrices: what is measured does not depend on the machine.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import torch

from oversmoothing.experiments.inspection import extract
from oversmoothing.experiments.inspection.heads_and_why import LARGEST
from oversmoothing.experiments.intervals import FEWEST
from oversmoothing.experiments.models.model import Model, evaluating
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError

BUDGET = 4.0
# Seconds of a processor that a page takes with its pictures.
PAGE = 10
# Work that is never cut, about a tenth of a second.
SMALL = 5e9
# Inputs that are looked at closely at least: of one alone nothing is told apart.
CLOSELY = 2
# Heads that a report names, and inputs on which their own spectra say why.
NAMED, WHY = 3, 3
# Multiplications of float32 products that take as long as one element of the work, at sides of a
# few hundred: eigenvalues of a symmetric matrix and of any, a verdict with its discs (side^3 each),
# distances between rows, products in float64, the passes over a matrix of pairs.
_SYMMETRIC, GENERAL, _VERDICT, _PAIRS, WIDE, _ENTRIES = 12, 85, 150, 7, 4, 100


@dataclass(frozen=True)
class Plan:
    """On how many inputs, from the first, each kind of number is taken; the streams: on all.

    ranks: those from singular values, and how linear a layer is; `closely` at least. closely: the
    account, heads, sinks and tokens; of those, pairs: Dobrushin coefficients of the heads, spectra:
    of attention, why: where there are no spectra, those of the NAMED heads that smooth most.
    vectors: whether the eigenvectors of the value maps are taken, as spectra do (0 or 1); values:
    whether their eigenvalues are, those of each head's own apart, which always are.
    """

    ranks: int = 0
    closely: int = 0
    pairs: int = 0
    spectra: int = 0
    vectors: int = 0
    values: int = 1
    why: int = 0

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InputError(f"{name} is {number!r}: give 0 for none, or a number of inputs")


@dataclass(frozen=True)
class Costs:
    """In forward passes on one input: `streams`, with the pass itself; `ranks`, `closely`, `pairs`
    `spectra` and `why` of one; once `weights`, and `vectors` of them. forward: multiplications of
    one pass on one input. layer: numbers of the attention of one layer of one input."""

    forward: float
    streams: float
    ranks: float
    closely: float
    pairs: float
    spectra: float
    why: float
    weights: float
    vectors: float
    layer: float

    def of(self, plan: Plan, inputs: int) -> float:
        """Forward passes on all the inputs that a plan takes."""
        names = ("ranks", "closely", "pairs", "spectra" if plan.spectra else "why")
        work = sum(min(inputs, getattr(plan, name)) * getattr(self, name) for name in names)
        once = self.weights if plan.values or plan.spectra else 0.0
        once += self.vectors if plan.vectors or plan.spectra else 0.0
        passes: float = self.streams + (work + once) / inputs
        return passes


def costs(model: Model, tokens: int) -> Costs:
    """Of inputs of so many tokens."""
    n, d, depth = tokens, model.width, model.depth
    heads, r = model.layers[0].number, model.layers[0].width
    blocks = sum(p.numel() for layer in model.layers for p in layer.block.parameters())
    attention, rank = 4 * n * n * heads * r, min(n, d)
    forward = 2 * n * blocks + depth * attention
    seen = depth * (8 * n * d * heads * r + 1.5 * attention)
    cosines = (depth + 1) * n * n * (2 * d + _ENTRIES)
    values = (depth + 1) * (1 + model.cls) * _SYMMETRIC * rank**3
    linear = depth * 4 * WIDE * n * d * d
    sinks = (depth + 1) * _SYMMETRIC * rank**3 / 2
    left_out = depth * (4 * n * d * heads * r + heads * n * n * _ENTRIES / 4)
    return Costs(
        forward=forward,
        # Half of what is seen waits for memory, and a tenth of the pass is copied.
        streams=1.1 + (2 * seen + cosines) / forward,
        ranks=(values + linear) / forward,
        # The account runs both sublayers twice, and small operations cost as much as a half.
        closely=2.5 + (3 * sinks + 2 * left_out) / forward,
        pairs=depth * heads * _PAIRS * n**3 / forward,
        spectra=depth * (_VERDICT + heads * GENERAL) * n**3 / forward,
        why=min(NAMED, depth * heads) * GENERAL * n**3 / forward,
        weights=depth * GENERAL * d**3 / forward,
        vectors=depth * GENERAL * d**3 / forward,
        layer=heads * n * n,
    )


def plan_of(model: Model, tokens: int, inputs: int, budget: float) -> Plan:
    """What fits the budget, at least CLOSELY inputs looked at closely; no spectra where attention
    has sinks, since then it is not row-stochastic.

    First, where five or more inputs are looked at closely, the spectra of the heads that are named.
    Then as many inputs as fit are looked at closely, heads by their pairs of rows as well where
    these do not cost more than the rest; then come those, the eigenvectors of the value maps and
    spectra. Eigenvalues of value maps of more than LARGEST features come in front of their
    eigenvectors, those of smaller ones are always taken.
    """
    cost = costs(model, tokens)
    allowed = max(budget, SMALL / (cost.forward * inputs))
    sinks = any(layer.sinks for layer in model.layers)
    least = min(CLOSELY, inputs)
    plan = Plan(least, least, least if cost.pairs <= cost.closely else 0)
    plan = replace(plan, values=int(model.width <= LARGEST))

    def larger(plan: Plan, most: int, *names: str) -> Plan:
        """With one input more in these, as often as it fits."""
        while getattr(plan, names[0]) < most:
            more = replace(plan, **{name: getattr(plan, name) + 1 for name in names})
            if cost.of(more, inputs) > allowed:
                break
            plan = more
        return plan

    plan = plan if sinks else larger(plan, min(WHY, inputs), "why")
    plan = larger(plan, inputs, "ranks", "closely", *(["pairs"] if plan.pairs else []))
    if plan.closely < FEWEST:  # no head is named
        plan = replace(plan, why=0)
    plan = larger(plan, plan.closely, "pairs")
    plan = larger(plan, 1, "values")
    plan = larger(plan, plan.values, "vectors")
    return plan if sinks else larger(plan, plan.closely, "spectra")


Budget = float | Plan


def plan_for(budget: Budget, model: Model, tokens: int, inputs: int) -> Plan:
    """The plan of a checked budget, for so many inputs of so many tokens."""
    plan = budget if isinstance(budget, Plan) else plan_of(model, tokens, inputs, budget)
    # What is looked at closely is made of singular values, spectra of eigenvectors.
    plan = replace(plan, ranks=max(plan.ranks, plan.closely))
    return replace(plan, vectors=1, values=1) if plan.spectra else plan


def checked_budget(budget: Any) -> Budget:
    """A budget as it is meant: a number of passes, also as text, 'all' or a `Plan`."""
    if isinstance(budget, Plan):
        return budget
    try:
        passes = inf if budget == "all" else float(budget)
    except (TypeError, ValueError):
        passes = nan
    if not passes >= 0 or isinstance(budget, bool):
        raise InputError(
            f"budget is {budget!r}: give a number of forward passes, 0 or more, or 'all'"
        )
    return passes


def left_out(model: Model, plan: Plan, tokens: int, inputs: int) -> tuple[str, ...]:
    """What is said of the eigenvalues of value maps, where a plan leaves them out."""
    if plan.values:
        return ()
    passes = costs(model, tokens).weights / inputs
    return (
        f"the eigenvalues of each layer's H are left out, for {passes:.1f} forward passes more "
        "(budget 'all' takes them); those of each head's own H are taken",
    )


@dataclass(frozen=True)
class Foreseen:
    """What an inspection will take: forward passes on all its inputs, seconds (by the fastest and
    the slowest of the passes that were timed), bytes of memory beyond the model; plan: of how many
    inputs what is measured; `without`: what is left out. tokens: those of the longest input; share:
    the mean length over that of the longest."""

    inputs: int
    tokens: int
    plan: Plan
    passes: float
    seconds: tuple[float, float]
    memory: float
    share: float = 1.0
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        plan, number = self.plan, self.inputs
        own = f"spectra of the {NAMED} heads named on {plan.why}, " * bool(plan.why)
        none = f"{own}no {'others' if own else 'spectra'} (--budget all takes them)"
        spectra = f"spectra on {plan.spectra}" if plan.spectra else none
        return (
            f"{takes(number, self.tokens, self.share, self.seconds)}, then some {PAGE} s "
            "of CPU time for the page. HFC/LFC on all, "
            f"causes and heads on {min(plan.closely, number)}, {spectra}; "
            f"{self.passes:.1f} forward passes and {self.memory / 2**20:.0f} MiB beyond the model"
            + "".join(f"; {each}" for each in self.without)
        )


def takes(number: int, tokens: int, share: float, seconds: tuple[float, float]) -> str:
    """How long something takes on so many inputs, in words."""
    low, high = (f"{max(each, 1):.0f}" for each in seconds)
    return (
        f"{number} input{'' if number == 1 else 's'} of {'' if share == 1 else 'up to '}{tokens} "
        f"tokens: about {low if low == high else f'{low} to {high}'} s to measure at "
        "this machine's present load"
    )


def timed(model: Model, inputs: Any) -> tuple[int, int, float, tuple[float, float]]:
    """(how many inputs, tokens of the longest, `share`, the seconds of the fastest and the slowest
    pass on it), by one to three passes. Raises `InputError` where it is not known how many."""
    extract.check_inputs(inputs)
    number = extract.count(inputs)
    if not number:
        raise InputError("how many inputs there are is not known: give a list or a tensor")
    first, share = next(extract.batches(inputs, 1)), 1.0
    if lengths := text_lengths(model, inputs):
        first = [inputs[lengths.index(max(lengths))]]
        share = sum(lengths) / (number * max(lengths))
    batch = extract.prepared_and_moved(model, first)
    tokens = extract.extract(model, batch, attention=False, verify=False).keep.shape[1]
    took: list[float] = []
    with evaluating(model.module), torch.no_grad():
        while len(took) < 3 and sum(took) < 1:
            start = time.perf_counter()
            model.run(batch)
            took.append(time.perf_counter() - start)
    return number, tokens, share, (min(took), max(took))


@one_thread()
def foresee(model: Model, inputs: Any, budget: Any, batch_size: int) -> Foreseen:
    """By one to three forward passes on one input, on one thread as in the inspection itself: the
    first, of texts the longest; each other is taken to cost its share of that one's tokens.

    inputs: a list of images or texts, a tensor or a dictionary of tensors. Raises `InputError`
    where the number of inputs is not known, and for a budget that is none.
    """
    allowed = checked_budget(budget)
    number, tokens, share, took = timed(model, inputs)
    plan, cost = plan_for(allowed, model, tokens, number), costs(model, tokens)
    passes = cost.of(plan, number)
    without = left_out(model, plan, tokens, number)
    if isinstance(allowed, float) and passes > 1.05 * allowed:
        without += (
            f"more than the budget of {allowed:g} passes (--budget), since causes and heads are "
            f"looked at on at least {min(CLOSELY, number)} inputs, and on more where that takes no "
            "tenth of a second",
        )
    size = max(4, model.dtype.itemsize)
    # Logits, attention and a copy on its way; the pairs of tokens in float64; the streams.
    each = 3 * cost.layer * size + 3 * tokens**2 * 8 + 16 * tokens * model.width * size
    low, high = (passes * number * share * seconds for seconds in took)
    memory = min(batch_size, number) * each
    return Foreseen(number, tokens, plan, passes, (low, high), memory, share, without)


def text_lengths(model: Model, inputs: Any) -> list[int]:
    """The tokens of each text of a list, as the model reads it; [] of other inputs."""
    if not isinstance(inputs, Sequence) or not all(isinstance(each, str) for each in inputs):
        return []
    batches = (model.prepare([text]) for text in inputs)
    ids = (next(iter(b.values())) if isinstance(b, Mapping) else b for b in batches)
    return [each.shape[1] for each in ids]
