"""Directions that tokens may tilt towards, and steering: from which alpha does F' = F + alpha u w^T
make tokens tilt its way?

The tokens x of X' = X + A X H^T at consensus go x -> (I + H) x, so that their directions are right
eigenvectors of H = (W_V W_proj)^T. A complex pair spans a real plane, within which they turn.

In a linear layer, X' = X + A X F'^T with w^T u = 1, the eigenvalues of F' other than those of F
solve alpha w^T (mu - F)^-1 u = 1; as alpha grows one of them, real, goes like alpha, its
eigenvector v = (mu - F)^-1 u towards u (N-2605.25619-steering). The tokens end along v once
|1 + mu| is above |1 + a h| for every other pair of an eigenvalue a of A and h of F' (T2d).
Predicted: the last alpha at which that fails, from eigenvalues alone; `benchmarks.steering` holds
it against runs of drawn layers.

In a trained model there is one more head in every layer, with even attention. It reads the normed
tokens as the others do, averages u^T N(x_k) over the tokens that token i sees with equal weights
(queries of 0), and adds alpha u times it: F' = F + alpha u w^T at consensus, |u| = 1 and w is u
with the norm's gain folded in (our reading of arXiv 2605.25619; its formula was not at hand). In
each layer alpha is a multiple of that layer's own threshold for the linear layer of the same H with
even attention, 0 at the least. Weights differ by layer, so that no theorem says where a trained
model tilts: the multiples are a scale, and the tilt is measured.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.budget import GENERAL, WIDE, costs, takes, timed
from oversmoothing.experiments.inspection.extract import BATCH, batches, extract, stream
from oversmoothing.experiments.inspection.spectra import Direction
from oversmoothing.experiments.intervals import FEWEST, in_words, mean_intervals
from oversmoothing.experiments.models.model import Layer, Model
from oversmoothing.experiments.study.atlas import factors
from oversmoothing.experiments.study.lever import adding
from oversmoothing.simulations.drawing.result import Sentence, measured
from oversmoothing.simulations.running import steps
from oversmoothing.theory.support.errors import InputError

Matrix = NDArray[np.float64]
Rule = Literal["power", "residual"]


def eigendirections(H: Matrix) -> list[Direction]:
    """One for each real eigenvalue and each complex pair of H [d, d]."""
    values, vectors = np.linalg.eig(H)
    pairs = zip(values, vectors.T, strict=True)
    return [Direction.of(value, vector) for value, vector in pairs if value.imag >= 0]


def outside_kernel(directions: list[Direction], H: Matrix) -> list[int]:
    """Which of `eigendirections` are not of H's kernel, whose basis is any: what the nullity of H,
    by its singular values, leaves of them by size of the eigenvalue (rounding parts its zeros)."""
    order = np.argsort([abs(each.value) for each in directions], kind="stable")
    ends = np.cumsum([directions[k].basis.shape[1] for k in order])
    return sorted(order[ends > len(H) - np.linalg.matrix_rank(H)].tolist())


def principal(directions: list[Direction], rule: Rule) -> int:
    """Which dominates: 'power' by |lambda|, 'residual' by |1 + lambda| (N-2605.25619-direction)."""
    shift = 1.0 if rule == "residual" else 0.0
    return int(np.argmax([abs(shift + each.value) for each in directions]))


def shares(X: Matrix, bases: Matrix) -> Matrix:
    """Mean over tokens of |B^T x|^2 / |x|^2 times d/k: 1 is what a random B has on average.

    X [..., n, d] with zero rows left out of the mean; bases [m, d, k]; the result is [..., m].
    """
    m, d, k = bases.shape
    length = np.sqrt(np.square(X).sum(-1, keepdims=True))
    kept = length[..., 0] > 0
    unit = np.divide(X, length, out=np.zeros_like(X), where=length > 0)
    flat = bases.transpose(1, 0, 2).reshape(d, m * k)
    squares = np.square(unit @ flat).reshape(*X.shape[:-1], m, k).sum(-1)
    counted = squares.sum(-2) / kept.sum(-1)[..., None]
    return np.asarray(counted * (d / k))


def random_bases(count: int, d: int, k: int, rng: np.random.Generator) -> Matrix:
    """Orthonormal bases [count, d, k] of uniformly drawn subspaces."""
    return np.linalg.qr(rng.standard_normal((count, d, k)))[0]


def product(layer: Layer, scale: float) -> Matrix:
    """H [d, d] of a layer: (scale sum_h W_V,h W_O,h)^T, the norm's gain folded in."""
    W_V, W_O = factors(layer, "unfolded" if layer.placement == "post" else "folded")
    return np.asarray(scale * np.einsum("hdr,hre->de", W_V, W_O).T)


def scales(model: Model, inputs: Any) -> list[float]:
    """The mean over tokens of what the norm in front of each attention multiplies a token by."""
    sums, count = np.zeros(len(model.layers)), 0
    for batch in stream(model, inputs, attention=False):
        tokens = int(batch.keep.sum())
        count += tokens
        for number, (layer, trace) in enumerate(zip(model.layers, batch.traces, strict=True)):
            norm, X = layer.norm_attention, trace.before[batch.keep].double()
            plain = layer.placement == "post" or norm.kind == "none"
            sums[number] += tokens if plain else float(norm.square(norm.centred(X)).rsqrt().sum())
    return [float(each) for each in sums / count]


# Of the eigenvalue mu, in units of 1 + |F|, where alpha is found between.
MOST, STEPS = 20.0, 1500
# Of the thresholds, in a trained model.
MULTIPLES = (0.0, 0.5, 1.0, 2.0, 4.0)
DIRECTIONS = 5
MEANS = {
    "multiple": "of each layer's own threshold in the linear layer",
    "median_alpha": "of the weight of the added head, over layers and directions",
    "along_u": "the last stream's share along the direction u that it is steered to, of a random "
    "one's mean; low, high: its 95 % interval over inputs",
    "elsewhere": "the same along others; else_low, else_high: its interval",
}


@dataclass(frozen=True)
class Case:
    """One layer: A [n, n], F [d, d], and what it is steered by, u, w [d] with w^T u > 0."""

    A: Matrix
    F: Matrix
    u: Matrix
    w: Matrix


def steered(case: Case, alpha: float) -> Matrix:
    """F' [d, d]."""
    return case.F + alpha * np.outer(case.u, case.w)


def predicted_threshold(case: Case) -> tuple[float, float]:
    """(alpha, mu): the last alpha at which the planted eigenvalue mu does not dominate.

    mu comes down from far above, where alpha(mu) = 1/(w^T (mu - F)^-1 u) is mu/w^T u and a
    constant, to where it first ties with another pair: where alpha turns and it is real no more,
    with the larger root of the same alpha.
    """
    size = 1 + float(np.linalg.norm(case.F, 2))

    # |1 + mu| in equal ratios.
    grid = np.geomspace(MOST * size, 1e-2, STEPS) - 1
    first = next((k for k, mu in enumerate(grid) if not margin(case, mu) > 0), STEPS)
    low, high = grid[min(first, STEPS - 1)], grid[max(first - 1, 0)]
    for _ in range(60):  # halving, to the last digit
        middle = (low + high) / 2
        low, high = (low, middle) if margin(case, middle) > 0 else (middle, high)
    return alpha_of(case, high), float(high)


def alpha_of(case: Case, mu: float) -> float:
    """The alpha of either sign at which mu is an eigenvalue of F'; infinite where there is none."""
    shifted = mu * np.eye(len(case.F)) - case.F
    try:
        g = case.w @ np.linalg.solve(shifted, case.u)
    except np.linalg.LinAlgError:
        # An eigenvalue of F to the last digit: alpha is continuous there.
        g = case.w @ np.linalg.solve(shifted + 1e-13 * (1 + abs(mu)) * np.eye(len(shifted)), case.u)
    return float(1 / g) if g != 0 else float("inf")


def margin(case: Case, mu: float) -> float:
    """|1 + mu| less the largest |1 + a h| of every other pair, at the alpha of mu."""
    alpha = alpha_of(case, mu)
    if not np.isfinite(alpha):
        return -np.inf
    h = np.linalg.eigvals(steered(case, alpha))
    a = np.linalg.eigvals(case.A)
    moduli = np.abs(1 + np.outer(a, h))
    # mu itself, with the a that is 1.
    moduli[np.argmin(np.abs(a - 1)), np.argmin(np.abs(h - mu))] = -np.inf
    return float(abs(1 + mu) - moduli.max())


def thresholds(model: Model, by_norm: Sequence[float], u: Matrix) -> Matrix:
    """alpha by layer [layers] for a direction u [d] of length 1 as `predicted_threshold` gives it
    for the layer's H and even attention; 0, no steering at any multiple, where H's own
    leading eigenvalue is what alpha moves: it dominates from alpha = 0 on, and its v is not yet u.

    by_norm: `scales` of the model on its inputs.
    """
    alphas = []
    for layer, scale in zip(model.layers, by_norm, strict=True):
        norm, H = layer.norm_attention, product(layer, scale)
        # w^T N(x) of a token: the norm's gain and centring, as H has them.
        w = norm.centred(norm.gain.detach().cpu().double() * torch.from_numpy(u)).numpy()
        # Even attention: its other eigenvalues are 0, and one token more than one will do.
        case = Case(np.full((2, 2), 0.5), H, u, w)
        # In units of the normed tokens' scale, which H has in it.
        alphas.append(max(predicted_threshold(case)[0], 0.0) / scale)
    return np.array(alphas)


@contextmanager
def steering(model: Model, u: Matrix, alphas: Matrix) -> Iterator[None]:
    """Within it the model's layers have the further head."""
    multiples: dict[int, list[float]] = {}
    for layer, alpha in zip(model.layers, alphas.tolist(), strict=True):
        norm = layer.norm_attention.module
        if norm is None or layer.placement != "pre" or layer.attention is layer.block:
            raise InputError(
                f"the model '{model.name}' has no norm in front of its attention, or no "
                "attention, as a module of its own: steering reads what the one gives, and "
                "adds to what the other does"
            )
        # A block that serves several layers is called for each of them in turn.
        multiples.setdefault(id(layer.block), []).append(alpha)
    with ExitStack() as hooks:
        for layer in {id(each.block): each for each in model.layers}.values():
            normed: list[Tensor] = []
            in_turn = cycle(multiples[id(layer.block)])

            def keep(module: Any, given: Any, output: Tensor, normed: Any = normed) -> None:
                normed[:] = [output]

            def added(normed: Any = normed, in_turn: Any = in_turn) -> Tensor:
                direction = torch.from_numpy(u).to(normed[0])
                along = normed[0] @ direction
                even = along.mean(-1, keepdim=True).expand_as(along)
                if model.causal:
                    number = torch.arange(1, along.shape[-1] + 1, device=along.device)
                    even = along.cumsum(-1) / number
                further: Tensor = next(in_turn) * even[..., None] * direction
                return further

            assert layer.norm_attention.module is not None
            hooks.enter_context(layer.norm_attention.module.register_forward_hook(keep))
            hooks.enter_context(adding(layer, added))
        yield


def steered_tilts(
    model: Model, inputs: Sequence[Any], *, multiples: Sequence[float] = MULTIPLES,
    directions: int = DIRECTIONS, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """A row a multiple of the thresholds: the share along u in the last stream, d times the squared
    cosine (1 is a random direction's mean), over inputs and drawn directions u, with its 95 %
    interval over the inputs; the same along directions that were not steered to.

    Raises `InputError` for a model that cannot be steered so.
    """
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((2, directions, model.width))
    own, others = drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)
    along = np.empty((len(multiples), 2, directions, len(inputs)))
    by_norm = scales(model, inputs)
    alphas = [thresholds(model, by_norm, u) for u in own]
    # Of other inputs one at a time: no padding, so that even attention is over real tokens.
    size = BATCH if model.modality == "vision" else 1
    pairs = steps(zip(own, others, strict=True), directions, "direction")
    for number, (u, v) in enumerate(pairs):
        for k, multiple in enumerate(multiples):
            for start, part in enumerate(batches(inputs, size)):
                with steering(model, u, multiple * alphas[number]):
                    batch = extract(model, part, attention=False, verify=False)
                X = batch.traces[-1].after_ffn.double().cpu().numpy()
                own_inputs = slice(start * size, start * size + len(X))
                along[k, :, number, own_inputs] = shares(X, np.stack([u, v])[..., None]).T
    steered_to, elsewhere = (mean_intervals(each.mean(1)) for each in along.swapaxes(0, 1))
    return pd.DataFrame(
        {
            "multiple": multiples,
            "median_alpha": np.multiply(multiples, np.median(alphas)),
            **dict(zip(("along_u", "low", "high"), steered_to, strict=True)),
            **dict(zip(("elsewhere", "else_low", "else_high"), elsewhere, strict=True)),
            "inputs": len(inputs),
        }
    )


def foreseen(model: Model, inputs: Any) -> str:
    """What a tilt with steering takes, in words, by passes that are timed."""
    number, tokens, share, took = timed(model, inputs)
    # About half of the steps of mu lie above 1, where it can dominate; three systems are solved at
    # each, and two passes are the tilt's own.
    each = (GENERAL + WIDE) * model.width**3 / costs(model, tokens).forward
    alone = DIRECTIONS * model.depth * (STEPS / 2 + 60) * each
    runs = (2 + DIRECTIONS * len(MULTIPLES)) * number * share
    seconds = tuple(max((alone + runs) * x, 1) for x in took)
    return (
        f"{takes(number, tokens, share, (seconds[0], seconds[1]))}; {runs:.0f} forward passes on "
        f"one input, and thresholds that take as long as {alone:.0f}, however few inputs there are"
    )


def on_steering(table: pd.DataFrame, model: str, inputs: int) -> Sentence:
    """What steering did."""
    start, end = table.iloc[0], table.iloc[-1]
    first = table[(table["low"] > start["high"])]
    ends = in_words(end["low"], end["high"], inputs, "{:.2f}".format)
    when = (
        "is not told"
        if inputs < FEWEST
        else "is so for no multiple that was run"
        if first.empty
        else f"is so from {first.iloc[0]['multiple']:g} times the linear thresholds on"
    )
    return Sentence(
        f"{model}, {inputs} inputs: the last stream's share along u goes from "
        f"{start['along_u']:.2f} to {end['along_u']:.2f} ({ends}) of what a random direction has; "
        f"that it is above the unsteered one's interval {when}; elsewhere "
        f"{start['elsewhere']:.2f} to {end['elsewhere']:.2f}.",
        measured(inputs, end["low"], end["high"], told=True),
    )
