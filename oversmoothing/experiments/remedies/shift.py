"""The remedies by name, and the shift of (rho_C, rho_Q) by each: predicted, measured, in long runs.

Drawn layers X' = X + A X W: A softmax attention of random tokens, H = W^T Gaussian of a drawn size.
Predicted: from the eigenvalues of A and from H, by `Remedy.mode`. Measured: the derivative of the
module itself at a consensus state (the map itself where it is linear), cut into its two blocks.
Observed: the slope of log HFC/LFC in a run of the module through many layers with the same weights.
Cost: the time of an attention sublayer (queries, keys, values and the output projection; streams
are mixed in it too) with the remedy over that without, on one thread, in turn, medians.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oversmoothing.experiments.intervals import interleaved_medians, share_interval
from oversmoothing.experiments.remedies import on_branch, on_stream
from oversmoothing.experiments.remedies.on_branch import FormOfH
from oversmoothing.experiments.remedies.on_stream import HyperConnections
from oversmoothing.experiments.remedies.remedy import (
    FORCED,
    LINEAR,
    Plain,
    Remedy,
    mean_token,
    norm_of,
)
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured as on_inputs
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.simulations.running import steps
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError, whole_number

REMEDIES: dict[str, Callable[..., Remedy]] = {
    "attnscale": on_branch.AttnScale, "featscale": on_branch.FeatScale,
    "gfsa": on_branch.GFSA, "outlier-removal": on_branch.OutlierRemoval,
    "centred-attention": on_branch.CentredAttention, "shaped-attention": on_branch.ShapedAttention,
    "laplacian-head": on_branch.LaplacianHead, "contranorm": on_stream.ContraNorm,
    "de-escalation": on_stream.DeEscalation, "neutreno": on_branch.NeuTRENO,
    "value-residual": on_branch.ValueResidual, "layerscale": on_branch.LayerScale,
    "residual-scaling": on_stream.ResidualScaling, "lambda-skip": on_stream.LambdaSkip,
    "deepnorm": on_stream.DeepNorm, "ln-scaling": on_stream.LNScaling,
    "hyper-connections": on_stream.HyperConnections,
    "hyper-connections-ds": on_stream.DoublyStochasticConnections,
    "vit-minus": on_branch.ViTMinus, "band": on_branch.BandOfH,
}  # fmt: skip
# The setting of the table: a start at which a remedy is the plain layer would show nothing.
SETTINGS: dict[str, dict[str, Any]] = {
    "attnscale": {"omega": 0.5},
    "featscale": {"s": 0.0, "t": 0.5},
    "gfsa": {"w_0": 0.2, "w_1": 1.0, "w_K": -0.3},
    "shaped-attention": {"alpha": 1.0, "beta": 0.5, "gamma": 0.5},
    "contranorm": {"s": 0.5},
    "hyper-connections": {"jitter": 0.2},
    "hyper-connections-ds": {"jitter": 0.2},
}
_WIDTH = ("featscale", "layerscale")


def remedy(name: str, **options: Any) -> Remedy:
    """The remedy of that name around a layer of its own; its class says what each option is.

    Raises `InputError` for a name or an option that there is not.
    """
    if name not in REMEDIES:
        raise InputError(f"no remedy '{name}': choose one of {', '.join(REMEDIES)}")
    try:
        return REMEDIES[name](**options)
    except TypeError as error:
        said = str(error).split("__init__() ")[-1]
        raise InputError(f"the remedy '{name}': {said}") from error


def in_table(name: str, width: int) -> Remedy:
    """The remedy at the setting of the table, in float64, for tokens of `width` features."""
    own = {"width": width} if name in _WIDTH else {}
    return remedy(name, **own, **SETTINGS.get(name, {})).double()


def without(name: str) -> Remedy:
    """What the remedy is held against: the plain layer, or the same norms without the remedy."""
    if name == "ln-scaling":
        return on_stream.LNScaling(1)
    if name == "deepnorm":
        plain = on_stream.DeepNorm(1)
        plain.alpha = 1.0
        return plain
    return Plain()


TOKENS, WIDTH = 8, 6
# |log rho_C/rho_Q| below which a run of DEPTH layers does not show which of them is larger.
NEAR_TIE = 0.03
DEPTH = 1200


@dataclass(frozen=True)
class Drawn:
    """Layers [count]: A [count, n, n], H [count, d, d], consensus x [count, d], X0 [count, n, d],
    all float64, and the eigenvalues of A but its 1, complex [count, n - 1]."""

    A: Tensor
    H: Tensor
    x: Tensor
    X0: Tensor
    a: Tensor


def drawn(count: int, seed: int, n: int = TOKENS, d: int = WIDTH) -> Drawn:
    """`count` layers; spectral radii of H up to about 3, so that both verdicts occur."""
    whole_number("the number of drawn layers", count, 1)
    rng = np.random.default_rng([seed, 17])
    A = Softmax(temperature=0.5).draw(n, rng=rng, batch=(count,))
    size = rng.uniform(0.3, 3.0, (count, 1, 1)) / sqrt(d)
    H = torch.from_numpy(rng.standard_normal((count, d, d)) * size)
    x = norm_of(torch.from_numpy(rng.standard_normal((count, d))))
    X0 = torch.from_numpy(rng.standard_normal((count, n, d)))
    values = np.linalg.eigvals(A)
    order = np.argsort(np.abs(values - 1), axis=-1)
    a = np.take_along_axis(values, order[:, 1:], axis=-1)
    return Drawn(torch.from_numpy(A), H, x, X0, torch.from_numpy(a))


def predicted(remedy: Remedy, layers: Drawn) -> Tensor:
    """(rho_C, rho_Q) [count, 2] from the modes."""
    radii = []
    for a, H, x in zip(layers.a, layers.H, layers.x, strict=True):
        rest = torch.stack([remedy.mode(complex(each), 0.0, H, x) for each in a])
        radii.append([radius(remedy.mode(1.0, 1.0, H, x)), radius(rest)])
    return torch.tensor(radii, dtype=torch.float64)


def measured(remedy: Remedy, layers: Drawn) -> Tensor:
    """(rho_C, rho_Q) [count, 2] of the derivative of `remedy.layer` at 1 x^T."""
    each = zip(layers.A, layers.H.mT, layers.x, strict=True)
    return torch.tensor([blocks(remedy, *one) for one in each], dtype=torch.float64)


def blocks(remedy: Remedy, A: Tensor, W: Tensor, x: Tensor) -> tuple[float, float]:
    """(rho_C, rho_Q) of the module at 1 x^T; tokens' consensus is kept, which is checked."""
    n, d = len(A), len(W)
    X = x.expand(n, d)
    if isinstance(remedy, HyperConnections):
        X = remedy.spread(X)
    first = remedy.own_values(X, W).detach()
    J = torch.func.jacrev(lambda state: remedy.layer(state, A, W, first))(X).detach()
    # Streams or one of them, then tokens and features: [s, n, d, s, n, d].
    s = X.numel() // (n * d)
    J = J.reshape(s, n, d, s, n, d)
    common = J.sum(4)  # what 1 v^T goes to, [s, n, d, s, d]
    spread = float((common - common.mean(1, keepdim=True)).abs().max())
    if not spread <= 1e-9 * (1 + float(common.abs().max())):
        raise AssertionError(f"{remedy.title}: equal tokens become different by {spread:.1e}")
    basis = torch.linalg.svd(torch.ones(1, n, dtype=A.dtype))[2][1:]
    rest = torch.einsum("in,snatmb,jm->siatjb", basis, J, basis)
    side = s * (n - 1) * d
    return radius(common.mean(1).reshape(s * d, s * d)), radius(rest.reshape(side, side))


def radius(matrices: Tensor) -> float:
    """The largest modulus of an eigenvalue of matrices [..., d, d]."""
    return float(torch.linalg.eigvals(matrices).abs().max())


@torch.no_grad()
def observed(remedy: Remedy, layers: Drawn, depth: int = DEPTH) -> Tensor | None:
    """The slope of log HFC/LFC over the second half of `depth` equal layers, [count].

    None where the layer is no linear map of the state, whose rates depend on the state's size.
    Infinite where the mean is exactly 0 at the end, as HFC/LFC is: a remedy with rho_C = 0 leaves
    its rounding, which may be 0. HFC is run on its own beside the state: modulo consensus it goes
    its own way (T1), and in the state itself it would be lost in rounding.
    """
    if remedy.scope not in (LINEAR, FORCED):
        return None
    A, W, X = layers.A, layers.H.mT, layers.X0
    acting = remedy
    if isinstance(remedy, FormOfH):
        W, acting = remedy.product(W), Plain()  # the same W' in every layer
    if isinstance(remedy, HyperConnections):
        # Differences between the streams, so that no mode is missing from the start.
        draw = torch.Generator().manual_seed(1)
        shape = (len(X), len(remedy.p), *X.shape[1:])
        X = remedy.spread(X) + 0.1 * torch.randn(shape, generator=draw, dtype=X.dtype)
    first = acting.own_values(X, W)
    none = torch.zeros(len(X), dtype=X.dtype)
    runs = [(X, first, none), (X - mean_token(X), first - mean_token(first), none)]
    logs = []
    for layer in range(1, depth + 1):
        (whole, _, low), (Y, own, high) = runs = [_stepped(acting, A, W, *run) for run in runs]
        runs[1] = Y - mean_token(Y), own, high
        if layer in (depth // 2, depth):
            sizes = [_size(part).log() for part in (mean_token(whole).expand_as(X), runs[1][0])]
            logs.append(sizes[1] + high - sizes[0] - low)
    slope: Tensor = (logs[1] - logs[0]) / (depth - depth // 2)
    return slope.where(~logs[1].isposinf(), torch.inf)


def _stepped(
    remedy: Remedy, A: Tensor, W: Tensor, X: Tensor, first: Tensor, log: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A state behind a layer with a factor taken out of it, the first layer's values over that
    factor (both belong to one linear system), and the log of the factors so far."""
    X = remedy.layer(X, A, W, first)
    size = torch.maximum(_size(X), _size(first)).clamp(min=1e-300)
    over = size.view(-1, *[1] * (X.ndim - 1)), size.view(-1, *[1] * (first.ndim - 1))
    return X / over[0], first / over[1], log + size.log()


def _size(X: Tensor) -> Tensor:
    size: Tensor = torch.linalg.vector_norm(X.flatten(1), dim=1)
    return size


def verdicts_agree(remedy: Remedy, radii: Tensor, slopes: Tensor) -> tuple[int, int]:
    """(runs that smooth or not as predicted, runs that are no near tie). SMOOTHING iff rho_C >
    rho_Q, generically; with the first layer's values in every layer both are at least 1."""
    floor = 1.0 if remedy.scope == FORCED else 0.0
    C, Q = radii.clamp(min=floor).unbind(1)
    gap = C.log() - Q.log()
    clear = gap.abs() > NEAR_TIE
    # Smoothing falls by the gap a layer; else the slope is 0 or more, up to turning modes.
    right = torch.where(gap > 0, slopes < -gap / 2, slopes > -NEAR_TIE / 2)
    return int((right & clear).sum()), int(clear.sum())


def as_claimed(claim: str, before: Tensor, after: Tensor) -> int | None:
    """In how many layers the radii [count, 2] do what the claim says; None for no claim."""
    if claim == "raises rho_Q/rho_C":
        ratio = [each[:, 1].log() - each[:, 0].log() for each in (before, after)]
        return int((ratio[1] > ratio[0] + 1e-9).sum())
    if claim == "brings rho_C and rho_Q towards 1":
        return int(((after - 1).abs() < (before - 1).abs()).all(1).sum())
    if claim == "rho_Q > rho_C under every attention":
        return int((after[:, 1] > after[:, 0]).sum())
    return None


def log_shift(before: Tensor, after: Tensor) -> tuple[float, float]:
    """The means of log rho_C'/rho_C and log rho_Q'/rho_Q; -inf where a radius is 0 throughout."""
    means = (after / before).log().mean(0).exp().tolist()
    low, high = (log(mean) if mean else -np.inf for mean in means)
    return low, high


# Of the sublayer whose time is taken.
LONG, BROAD, BATCH, ROUNDS = 64, 128, 8, 60


@one_thread()
@torch.no_grad()
def cost_ratio(name: str, rounds: int = ROUNDS) -> float:
    """Seconds of processor time with the remedy over those without, a forward pass in float32."""
    draw = torch.Generator().manual_seed(0)
    X = torch.randn(BATCH, LONG, BROAD, generator=draw)
    weights = torch.randn(4, BROAD, BROAD, generator=draw) / BROAD**0.5
    remedy = in_table(name, BROAD).float()
    state = remedy.spread(X) if isinstance(remedy, HyperConnections) else X
    free: tuple[Tensor, ...] = ()
    if isinstance(remedy, FormOfH):
        free = remedy.form.nearest((weights[2] @ weights[3]).mT)
    plain, own = interleaved_medians(
        [lambda: sublayer(Plain(), X, weights), lambda: sublayer(remedy, state, weights, free)],
        rounds,
        clock=time.thread_time,  # a shared machine does not count
    )
    return own / plain


def sublayer(remedy: Remedy, X: Tensor, weights: Tensor, free: tuple[Tensor, ...] = ()) -> Tensor:
    """One attention sublayer of one head: weights [4, d, d] are W_Q, W_K, W_V, W_O; free: the free
    tensors of a form of H, which takes the place of W_V W_O."""
    W_Q, W_K, W_V, W_O = weights
    Z = remedy.entered(X)
    A = ((Z @ W_Q) @ (Z @ W_K).mT * X.shape[-1] ** -0.5).softmax(-1)
    if isinstance(remedy, FormOfH):
        # Formed anew in every pass, as in training.
        H: Tensor = remedy.form(*free)
        after: Tensor = X + A @ (Z @ H.mT)
        return after
    V = Z @ W_V
    V = remedy.values(V, V)
    Y = remedy.output(remedy.attention(A) @ V, V, V)
    return remedy.joined(X, Y @ W_O)


# Relative difference of a predicted from a measured radius that rounding explains: an eigenvalue
# moves by its condition number, of a few hundred, times n d eps.
MOST = 1e-8
SHOWN = ("remedy", "log_shift_C", "log_shift_Q", "error", "runs_right", "runs_clear", "as_claimed",
         "cost")  # fmt: skip
MEANS = {
    "log_shift_C": "predicted mean change of ln rho_C (growth of equal tokens)",
    "log_shift_Q": "the same of ln rho_Q (growth of differences between tokens)",
    "error": "largest relative difference of a predicted radius from the measured one",
    "runs_right": "how many of runs_clear smooth, or not, as predicted",
    "runs_clear": f"runs through {DEPTH} layers that are no near tie",
    "as_claimed": "drawn layers on which the spectrum does what the remedy claims",
    "cost": "processor time of an attention sublayer over that without the remedy",
}


@one_thread()
def remedies_table(
    only: Sequence[str] | None = None, *, draws: int = 100, seed: int = 0, cost: bool = True
) -> pd.DataFrame:
    """A row a remedy, on `draws` drawn layers.

    log_shift_C, log_shift_Q: means of log rho_C'/rho_C and log rho_Q'/rho_Q, predicted, and
    measured_shift_C, _Q. error: the largest relative difference of a predicted radius from the
    measured one. runs_right of runs_clear: runs through `DEPTH` layers that smooth or not as
    predicted, near ties left out (missing where the layer is no linear map). as_claimed of draws,
    with the ends of its 95 % interval. cost: time over that of the plain sublayer; parameters: the
    trained numbers that the remedy adds to a layer of `BROAD` features.

    Raises `InputError` for a name that is none.
    """
    layers = drawn(draws, seed)
    rows = []
    names = only or list(REMEDIES)
    both = [(name, in_table(name, WIDTH), without(name)) for name in names]
    for name, remedy, plain in steps(both, len(both), "remedy"):
        before, after = predicted(plain, layers), predicted(remedy, layers)
        start, end = measured(plain, layers), measured(remedy, layers)
        size = torch.maximum(end, after).clamp(min=1e-3)
        slopes = observed(remedy, layers)
        right, clear = (None, None) if slopes is None else verdicts_agree(remedy, after, slopes)
        hits = as_claimed(remedy.claim, start, end)
        ends = (None, None) if hits is None else share_interval(hits / draws, draws)
        shifts = "log_shift_C", "log_shift_Q", "measured_shift_C", "measured_shift_Q"
        moved = *log_shift(before, after), *log_shift(start, end)
        row = {
            "name": name,
            "remedy": remedy.title,
            "paper": remedy.paper,
            "our_reading": remedy.reading or "-",
            "claim": remedy.claim,
            "holds_for": remedy.scope,
            **dict(zip(shifts, moved, strict=True)),
            "error": float(((after - end).abs() / size).max()),
            "runs_right": right,
            "runs_clear": clear,
            "as_claimed": hits,
            "draws": draws,
            "as_claimed_low": ends[0],
            "as_claimed_high": ends[1],
            "cost": cost_ratio(name) if cost else None,
            "parameters": sum(each.numel() for each in in_table(name, BROAD).parameters()),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def remedy_shifts(only: Sequence[str] | None = None, *, draws: int = 100, seed: int = 0) -> Result:
    """`remedies_table`, and which remedies act on the spectrum as they claim."""
    table = remedies_table(only, draws=draws, seed=seed)
    return Result(
        "remedies",
        f"Which remedies move the spectrum as they claim, on {draws} random layers?",
        {"remedies": Table(table, shown=SHOWN, means=MEANS)},
        sentences(table),
        {"draws": draws, "seed": seed},
    )


def sentences(table: pd.DataFrame) -> list[Sentence]:
    """Which of the table's remedies do as they claim in how many of the drawn layers."""
    draws = int(table["draws"].iloc[0])
    claiming = table[table["as_claimed"].notna()]
    some, most = claiming.as_claimed < draws, claiming.as_claimed_low > 0.5
    groups = {
        f"In all {draws} layers": ~some,
        "In most": some & most,
        "Not clearly in more than half": some & ~most,
    }
    said = []
    for start, chosen in groups.items():
        pairs = claiming.loc[chosen, ["remedy", "as_claimed"]].itertuples(index=False)
        names = [name if hit == draws else f"{name} ({hit:.0f})" for name, hit in pairs]
        if names:
            said.append(f"{start} the measured spectrum moves as claimed: {', '.join(names)}.")
    none = table[table["as_claimed"].isna()]
    if len(none):
        said.append(f"These claim nothing about tokens: {', '.join(none.remedy)}.")
    said.append(
        "A remedy works against smoothing where rho_Q/rho_C rises: log_shift_Q above log_shift_C."
    )
    return [Sentence(each, on_inputs(draws, of="layer")) for each in said]
