"""The lever: H of every layer moved in a trained model, nothing retrained, beside random changes.

H of a layer is the sum over its heads with the gain of the norm in front folded in, written for
tokens as rows: M = diag(g) sum_h W_V,h W_O,h. A change D of M acts on attention averaged over the
heads, or on one head's own:

    attention(X) <- attention(X) + A z(X) D,    z(X) the normed tokens without gain and shift

`shift` is D = delta I, which moves every eigenvalue by delta; `into_disc` moves those further than
DISC from -1/2 a part of the way to that distance, just inside the disc |h + 1/2| < 1/2 (so that its
rim moves too), eigenvectors kept; `without` one head, D = -M of the head, and what its shifts add
to every token goes too. Each change has a random control, of the same Frobenius norm in every
layer. What is measured is the change of log10 HFC/LFC behind the last layer, the Kullback-Leibler
divergence of what the model says from what it said, and whether its first choice is the same.

The prediction is made of the unchanged pass alone: each layer's own effect on its attention
sublayer, with its attention and stream as they were, added up over the layers. It leaves out what
later layers do with the difference.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from oversmoothing.experiments.inspection import extract as passes
from oversmoothing.experiments.intervals import mean_interval, mean_intervals
from oversmoothing.experiments.models.layers import Light, gives_across
from oversmoothing.experiments.models.model import Layer, Model, evaluating
from oversmoothing.experiments.models.tape import running
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state import one_thread
from oversmoothing.simulations.state_metrics import stream_log_ratio
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Doses that are asked where none is named: small enough to be linear.
DOSES = (-0.1, -0.05, 0.05, 0.1)
PARTS = (0.5,)  # of the way into the disc
DISC = 0.45  # radius around -1/2 beyond which eigenvalues are moved, and to which
CONTROLS = 2  # random changes of each size
BATCH = 25
TEN = float(np.log(10))


@dataclass(frozen=True)
class Change:
    """What is added to M by layer [layers, d, d], on the mean of the heads' attention, or of `head`
    (from 0) alone, and to every value b [layers, d]; name, dose: as it was asked for."""

    name: str
    dose: float
    D: Array
    head: int | None = None
    b: Array | None = None

    def times(self, factors: Array) -> "Change":
        """The same with a factor of each layer [layers]."""
        return replace(self, D=factors[:, None, None] * self.D)

    def control(self, rng: np.random.Generator) -> "Change":
        """A random change of the same norm in every layer, on the same attention."""
        drawn = rng.standard_normal(self.D.shape)
        size = np.linalg.norm(self.D, axis=(1, 2)) / np.linalg.norm(drawn, axis=(1, 2))
        return replace(self, name=f"random, {self.name}", D=drawn, b=None).times(size)

    def added(self, number: int, layer: Layer, A: Tensor, X: Tensor) -> Tensor:
        """To the output of attention in a layer (numbers from 0), of its A [b, heads, n, n] and
        stream X [b, n, d]."""
        z = X if layer.placement == "post" else layer.norm_attention.scaled(X)
        values = z @ torch.from_numpy(self.D[number]).to(X)
        if self.b is not None:
            values = values + torch.from_numpy(self.b[number]).to(X)
        return (A.mean(1) if self.head is None else A[:, self.head]).to(values) @ values


def folded(layer: Layer, head: int | None = None) -> Array:
    """M [d, d] float64 of a layer, or of one of its heads; of Post-LN without a gain."""
    W_V, W_O = with_gain(layer)
    return np.asarray(np.einsum("hdr,hre->de", W_V, W_O) if head is None else W_V[head] @ W_O[head])


def with_gain(layer: Layer, gained: bool = True) -> tuple[Array, Array]:
    """(W_V, W_O) of all heads in float64, the gain of a norm in front folded into W_V."""
    gained = gained and layer.placement != "post"
    own = layer.heads.folded(layer.norm_attention, False) if gained else layer.heads.double()
    return own.W_V.detach().numpy(), own.W_O.detach().numpy()


def shift(model: Model, delta: float, place: tuple[int, int] | None = None) -> Change:
    """delta I in every layer, or in head place[1] of layer place[0] alone (numbers from 0)."""
    D = np.zeros((model.depth, model.width, model.width))
    chosen = range(model.depth) if place is None else [place[0]]
    D[list(chosen)] = delta * np.eye(model.width)
    name = "shift" if place is None else f"shift of head {place[0] + 1}.{place[1]}"
    return Change(name, delta, D, None if place is None else place[1])


def without(model: Model, place: tuple[int, int]) -> Change:
    """Head place[1] of layer place[0] (numbers from 0) adds nothing, in that layer alone."""
    (number, head), layer = place, model.layers[place[0]]
    (W_V, W_O), own, norm = with_gain(layer), layer.heads.double(), layer.norm_attention
    D, b = np.zeros((model.depth, model.width, model.width)), np.zeros((model.depth, model.width))
    D[number] = -W_V[head] @ W_O[head]
    start = np.zeros(own.width) if own.b_V is None else own.b_V[head].detach().numpy()
    if layer.placement != "post" and norm.shift is not None:
        start = start + (norm.shift.detach().cpu().double() @ own.W_V[head].detach()).numpy()
    b[number] = -start @ W_O[head]
    return Change(f"without head {number + 1}.{head}", 1.0, D, head, b)


def into_disc(model: Model, part: float) -> Change:
    """Eigenvalues beyond radius DISC moved `part` of the way to the nearest point at it."""
    return Change("into disc", part, np.stack([part * _to_disc(folded(x)) for x in model.layers]))


def _to_disc(M: Array) -> Array:
    h, V = np.linalg.eig(M)
    z = h + 0.5
    inside = np.where(np.abs(z) > DISC, DISC * z / np.maximum(np.abs(z), DISC) - 0.5, h)
    return np.asarray((V @ ((inside - h)[:, None] * np.linalg.inv(V))).real)


@contextmanager
def applied(model: Model, change: Change, batch: Any) -> Iterator[None]:
    """Within it the model's H is changed for one pass, on this batch.

    Raises `InputError` where a layer's attention or its norm is no module of its own, and while
    the model runs where the pass is not the described one.
    """
    light = Light(model.module, model.layers, batch, model.dtype, lambda number, caught: None)

    def added() -> Tensor:
        return change.added(light.seen, model.layers[light.seen], *light.present())

    with ExitStack() as hooks:
        for layer in {id(each.block): each for each in model.layers}.values():
            # Without a module of W_O the attention must give what goes to the stream, no more.
            alone = layer.out is not None or layer.places.output[0].kind == "gives"
            if layer.attention is layer.block or not alone:
                raise InputError(
                    "the attention of this model is no module of its own: its output cannot be "
                    "changed"
                )
            hooks.enter_context(adding(layer, added))
        with running(light):
            yield


def adding(layer: Layer, added: Callable[[], Tensor]) -> RemovableHandle:
    """Within it added() goes to what attention adds to the stream, in each call of the layer's
    block."""

    def add(module: Any, args: Any, output: Any) -> Any:
        first = output[0] if isinstance(output, tuple) else output
        own = layer.output_scale
        own = own.to(first) if isinstance(own, Tensor) else own
        more = added() / own
        more = more.transpose(0, 1) if "out" in layer.places.across else more
        changed = first + more.reshape(first.shape)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    where = layer.attention if layer.out is None else layer.out
    return where.register_forward_hook(add)


@torch.no_grad()
def foreseen(
    model: Model, inputs: Any, changes: Sequence[Change], batch_size: int = BATCH
) -> Array:
    """The predicted change of log10 HFC/LFC behind the last layer, [changes, inputs]."""
    predictions = []
    for batch in _batches(model, inputs, batch_size):
        traces = passes.extract(model, batch, verify=False, dtype=torch.float64).traces
        rows = torch.zeros(len(changes), len(traces[0].before), dtype=torch.float64)
        for number, (layer, trace) in enumerate(zip(model.layers, traces, strict=True)):
            assert trace.attention is not None
            X, heads = trace.before.double(), layer.heads.double()
            y = X if layer.placement == "post" else layer.norm_attention(X)
            output = heads.attended(trace.attention.double(), y)
            before = stream_log_ratio(layer.after_attention(X, output))
            for k, change in enumerate(changes):
                if not change.D[number].any():
                    continue
                added = change.added(number, layer, trace.attention.double(), X)
                after = stream_log_ratio(layer.after_attention(X, output + added))
                rows[k] += (after - before) / TEN
        predictions.append(rows)
    return torch.cat(predictions, 1).numpy()


@torch.no_grad()
def run(
    model: Model, inputs: Any, change: Change | None = None, batch_size: int = BATCH
) -> tuple[Array, list[Tensor]]:
    """(log10 HFC/LFC behind every layer [layers, inputs], scores by batch), with the change."""
    ratios, scores = [], []
    with evaluating(model.module), ExitStack() as hooks:
        rows: list[Tensor] = []
        for layer in {id(layer.block): layer for layer in model.layers}.values():

            def see(block: Any, _: Any, out: Any, across: bool = gives_across(layer)) -> None:
                X = passes.tokens_of(out, block)
                rows.append(stream_log_ratio(X.transpose(0, 1) if across else X) / TEN)

            hooks.enter_context(layer.block.register_forward_hook(see))
        for batch in _batches(model, inputs, batch_size):
            with nullcontext() if change is None else applied(model, change, batch):
                scores.append(_scores(model, batch))
            if len(rows) != model.depth:
                raise InputError(
                    f"the forward pass went through {len(rows)} of the {model.depth} layers"
                )
            ratios.append(torch.stack(rows).numpy())
            rows.clear()
    return np.concatenate(ratios, 1), scores


def _scores(model: Model, batch: Any) -> Tensor:
    """What the model says; nothing of one without a head."""
    output = model.run(batch)
    said = output if isinstance(output, Tensor) else getattr(output, "logits", None)
    return said.detach() if isinstance(said, Tensor) else torch.empty(0)


def _batches(model: Model, inputs: Any, size: int) -> Iterator[Any]:
    """As the model reads them, where it lies; texts one by one, so that none is padded. Raises
    `InputError` for tensors that are."""
    size = 1 if model.modality == "text" and not isinstance(inputs, Tensor) else size
    for part in passes.batches(inputs, size):
        batch = passes.prepared_and_moved(model, part)
        mask = batch.get("attention_mask") if isinstance(batch, Mapping) else None
        if mask is not None and not bool(mask.all()):
            raise InputError("the inputs are padded: give texts, or tensors of one length")
        yield batch


def said_in_batches(
    model: Model, inputs: Any, scores: Sequence[Tensor]
) -> Iterator[tuple[Tensor, Any]]:
    """What `run` returned of each batch, with the batch. Raises `InputError` for no scores."""
    for said, batch in zip(scores, _batches(model, inputs, BATCH), strict=True):
        if not said.numel():
            raise InputError(f"'{model.name}' has no head that says anything: no loss is known")
        yield said, batch


def _said(plain: Sequence[Tensor], changed: Sequence[Tensor]) -> tuple[Array, Array]:
    """By input: sum p log(p / q), p of the unchanged model, mean over tokens; share of tokens (1 of
    an image) whose first choice is the same. NaN of a model without scores."""
    said = []
    for p, q in zip(plain, changed, strict=True):
        if not p.numel():
            return np.array([np.nan]), np.array([np.nan])
        one, other = p.double().log_softmax(-1), q.double().log_softmax(-1)
        equal = (p.argmax(-1) == q.argmax(-1)).double()
        both = torch.stack([(one.exp() * (one - other)).sum(-1), equal])
        said.append(both.flatten(2).mean(2) if both.ndim > 2 else both)
    divergence, same = torch.cat(said, 1).numpy()
    return divergence, same


def slope(changes: Sequence[str], doses: Sequence[float], values: Array) -> Array:
    """Of values [changes, ...], per unit of dose over the shifts: least squares through 0."""
    chosen = [k for k, name in enumerate(changes) if name == "shift"]
    dose = np.array(doses)[chosen]
    return np.asarray(dose @ values[chosen] / (dose @ dose))


@one_thread()
def effects(
    model: Model, inputs: Any, changes: Sequence[Change], *, seed: int = 0, batch_size: int = BATCH
) -> dict[str, Array]:
    """Predict, then run each change and its controls on every input. Raises `InputError` for models
    whose attention is not described or no module of its own.

    effect, predicted: the measured and predicted change of log10 HFC/LFC behind the last layer;
    control: the mean measured one of its random controls; kl, control_kl; same: first choices kept.
    All [changes, inputs]; norm [changes]: of D relative to M, mean over the layers changed.
    """
    predicted = foreseen(model, inputs, changes, batch_size)
    base, scores = run(model, inputs, None, batch_size)
    rng = np.random.default_rng([seed, 4301])
    rows = []
    for change in steps(changes, len(changes), "change"):
        moved, said = run(model, inputs, change, batch_size)
        kl, same = _said(scores, said)
        beside = [run(model, inputs, change.control(rng), batch_size) for _ in range(CONTROLS)]
        row = {
            "effect": moved[-1] - base[-1],
            "control": np.mean([each[0][-1] for each in beside], 0) - base[-1],
            "kl": kl,
            "control_kl": np.mean([_said(scores, each[1])[0] for each in beside], 0),
            "same": same,
        }
        rows.append({name: np.broadcast_to(each, base[-1].shape) for name, each in row.items()})
    whole = [np.linalg.norm(folded(layer)) for layer in model.layers]
    sizes = np.stack([np.linalg.norm(each.D, axis=(1, 2)) for each in changes]) / whole
    norm = np.array([row[row > 0].mean() if row.any() else 0.0 for row in sizes])
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    return {**arrays, "predicted": predicted, "norm": norm}


def intervene(
    model: Model, inputs: Any, *, seed: int = 0, doses: Sequence[float] = DOSES,
    parts: Sequence[float] = PARTS, heads: Sequence[tuple[int, int]] = (),
    left_out: Sequence[tuple[int, int]] = (),
) -> Result:  # fmt: skip
    """What moving H does to a trained model: HFC/LFC predicted and measured, and what it says.

    Shifts by each dose in all layers, parts of the way into the disc, shifts of single heads, and
    heads left out one at a time, each beside its controls. Writes intervene.json and its
    table into intervene/MODEL.
    """
    for layer, head in (*heads, *left_out):
        if not (0 <= layer < model.depth and 0 <= head < model.layers[layer].number):
            raise InputError(
                f"'{model.name}' has no head {layer + 1}.{head}: layers count from 1, heads from 0"
            )
    changes = [
        *(shift(model, dose) for dose in doses),
        *(into_disc(model, part) for part in parts),
        *(shift(model, dose, place) for place in heads for dose in doses),
        *(without(model, place) for place in left_out),
    ]
    results = effects(model, inputs, changes, seed=seed)
    mean = {name: values.mean(-1) for name, values in results.items()}
    table = {
        "change": [change.name for change in changes],
        "amount": [change.dose for change in changes],
        "norm": results["norm"],
        "predicted": mean["predicted"],
        **dict(zip(("measured", "low", "high"), mean_intervals(results["effect"]), strict=True)),
        "random": mean["control"],
        "KL": mean["kl"],
        "random KL": mean["control_kl"],
        "same top-1": mean["same"],
    }
    units = {"predicted": "log10 HFC/LFC", "norm": "share of H", "KL": "nats"}
    means = {
        "change": "of H in every layer, or of one head",
        "amount": "delta added to every eigenvalue; share of the way into the disc; 1: left out",
        "norm": "of the change of H, mean over the layers that it changes",
        "predicted": "change of log10 HFC/LFC, from the unchanged model",
        "measured": "the same at the changed model's end; low, high: its 95 % interval",
        "random": "the same after random changes of the same norm",
        "KL": "sum p ln(p/q) of the outputs, p of the unchanged model, q of the changed one",
        "random KL": "the same after random changes",
        "same top-1": "share of outputs (an image's, a token's) whose likeliest stays",
    }
    return Result(
        "intervene",
        f"{model.name}: what moving H, or leaving heads out, does to its tokens",
        {"changes": Table(pd.DataFrame(table), units, means=means)},
        list(_sentences(model.name, changes, results)),
        {"model": model.name, "inputs": results["effect"].shape[1], "seed": seed},
    )


def _sentences(
    name: str, changes: Sequence[Change], results: dict[str, Array]
) -> Iterator[Sentence]:
    """The slope beside the prediction and the random control; the two sides of a shift."""
    m = results["effect"].shape[1]
    beyond = results["effect"] - results["control"]
    shifts = {each.dose: k for k, each in enumerate(changes) if each.name == "shift"}
    if any(shifts):
        asked = [each.name for each in changes], [each.dose for each in changes]
        mean, low, high = mean_interval(slope(*asked, beyond))
        ahead = float(slope(*asked, results["predicted"]).mean())
        yield Sentence(
            f"{name}: adding delta to every eigenvalue of H changes log10 HFC/LFC by "
            f"{mean:+.2f} delta beyond random changes of the same norm; predicted from the "
            f"unchanged model: {ahead:+.2f} delta.",
            measured(m, low, high),
        )
    discs = [k for k, each in enumerate(changes) if each.name == "into disc"]
    for k in discs:
        mean, low, high = mean_interval(beyond[k])
        yield Sentence(
            f"Moving the eigenvalues further than {DISC} from -1/2 {100 * changes[k].dose:g} % of "
            f"the way to there changes log10 HFC/LFC by {mean:+.3f} beyond random changes of the "
            "same norm.",
            measured(m, low, high),
        )
    pairs = {dose: (k, shifts[-dose]) for dose, k in shifts.items() if dose > 0 and -dose in shifts}
    for dose, (up, down) in pairs.items():
        smoothed, sharpened = results["kl"][up], results["kl"][down]
        mean, low, high = mean_interval(smoothed - sharpened)
        if not np.isnan(mean):
            yield Sentence(
                f"Smoothing by {dose:g} changes the model's output by {smoothed.mean():.3g} nats "
                "(Kullback-Leibler divergence), sharpening by as much by "
                f"{sharpened.mean():.3g}: {mean:+.2g} between them.",
                measured(m, low, high),
            )
    heads = [k for k, each in enumerate(changes) if each.b is not None]
    if heads:
        taken = (results[x][heads] for x in ("predicted", "effect", "control"))
        yield _of_heads(*taken) if len(heads) > 1 else _of_head(*taken)
    elif not (any(shifts) or discs):
        made = "1 change was" if len(changes) == 1 else f"{len(changes)} changes were"
        yield Sentence(f"{name}: {made} made.", measured(m))


def _of_head(foreseen: Array, effect: Array, control: Array) -> Sentence:
    """What the loss of one head does at the model's end, and in its own layer."""
    mean, low, high = mean_interval(effect[0])
    says = (
        f"Without this head log10 HFC/LFC at the model's end changes by {mean:+.2g}, and over the "
        f"head's own attention sublayer by {foreseen.mean():+.2g} (ln: "
        f"{np.log(10) * mean:+.2g} and {np.log(10) * foreseen.mean():+.2g}); random changes of "
        f"the same size give {control.mean():+.2g}."
    )
    return Sentence(says, measured(effect.shape[1], low, high))


def _of_heads(foreseen: Array, effect: Array, control: Array) -> Sentence:
    """Whether what the loss of a head does in its own layer tells what it does at the end."""
    own, end = foreseen.mean(1), effect.mean(1)
    ends = [mean_interval(each) for each in effect]
    clear = sum(low > 0 or high < 0 for _, low, high in ends)
    same = int((np.sign(own) == np.sign(end)).sum())
    beside = ""
    if len(own) > 2 and own.std() and end.std():
        beside = f" (correlation {np.corrcoef(own, end)[0, 1]:.2f})"
    lower = int((end < 0).sum())
    says = (
        f"Heads left out, one at a time: {len(own)}. At the model's end the loss of a head lowers "
        f"log10 HFC/LFC in {lower} (the head keeps tokens apart there) and raises it in "
        f"{int((end > 0).sum())}; in {clear} the 95 % interval leaves out 0. Random changes of the "
        f"same size lower it in {int((control.mean(1) < 0).sum())}. In {same} of "
        f"{len(own)} the change over the head's own attention sublayer has the same "
        f"sign{beside}."
    )
    return Sentence(says, measured(effect.shape[1]))
