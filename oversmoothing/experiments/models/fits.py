"""What a piece of a pass is: linear maps, norms, and FFNs as functions.

Linear maps. A piece is run again on one unit vector with a weight's entries replaced by ones and by
their own numbers: that tells which entries the map is made of, whatever order they are fused in,
and what they are multiplied with. Where a map is no such piece of one weight (adapters beside it),
unit vectors through it give its numbers. Either way it is held against what the pass computed.

Norms are fitted to what a pass computed and to random tokens. FFNs are the modules that ran and the
operations between them, or else the piece of the pass itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.models.model import Norm
from oversmoothing.experiments.models.pass_graph import Graph, like, off
from oversmoothing.experiments.models.tape import PRODUCT, SAME, Call, Node, NotReplayable


def affine(g: Graph, a: int, b: int) -> bool:
    """Whether b is an affine function of a, tried on random numbers."""
    x, draw = g.values[a], torch.Generator().manual_seed(0)
    if not x.is_floating_point():
        return False
    one, two = (like(x, torch.randn(x.shape, generator=draw)) for _ in range(2))
    zero = like(x, torch.zeros(x.shape))
    f = [g.replay(b, {a: y}) for y in (one, two, one + two, zero)]
    return off(f[0] + f[1], f[2] + f[3]) <= 2e-4


def mixes(g: Graph, a: int, b: int) -> bool | None:
    """Whether another first and last token in a change other tokens of b; None: not
    replayable."""
    x = g.values[a].clone(memory_format=torch.contiguous_format)
    rows = x.view(-1, x.shape[-1])
    noise = torch.randn(2, x.shape[-1], generator=torch.Generator().manual_seed(0)).to(x)
    rows[[0, -1]] += 1e-3 * x.abs().max() * noise
    try:
        moved = g.replay(b, {a: like(g.values[a], x)}) - g.values[b]
    except NotReplayable:
        return None
    moved = moved.reshape(len(rows), -1).abs().amax(-1)
    return len(rows) > 2 and bool(moved[1:-1].max() > 1e-5 * moved[[0, -1]].max())


# Of a map's largest number: what it may differ by from what the pass computed.
MAP_WITHIN = 1e-4
# A tensor that a map gives -> [T, heads, r], tokens input by input.
Pick = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Weight:
    """Entries of a weight as a map [heads, d, r]: those at `lines`, columns of a weight [d, ..]
    (`across`) or rows of one [.., d], times `scale`. name: of the weight in the module; '': it has
    none, and is as it was `held`."""

    module: nn.Module
    name: str
    held: Tensor | None
    lines: Tensor
    across: bool
    scale: Tensor | float = 1.0

    @property
    def one(self) -> float | None:
        """The scale, where it is one number."""
        return self.scale if isinstance(self.scale, float) else None

    def read(self) -> Tensor:
        """The map as the module holds it now."""
        weight: Any = self.held
        if self.name:
            weight = reduce(getattr, self.name.split("."), self.module)
        flat = weight.detach().flatten(1)
        lines = self.lines.to(flat.device)
        W: Tensor = flat[:, lines].transpose(0, 1) if self.across else flat[lines].mT
        # In float32 at least: a product rounded to half precision is another model's.
        W = W.to(torch.promote_types(W.dtype, torch.float32))
        if self.one == 1.0:
            return W.contiguous()
        scale = torch.as_tensor(self.scale).to(W)
        return W * (scale if scale.ndim == 0 else scale[:, None])


@dataclass(frozen=True)
class Map:
    """x -> x W + b, W [heads, d, r], b [heads, r]; weight: where W stands, if in one weight, else
    its numbers; own: the bias as it is stored; whole: whether nothing follows that is no map."""

    weight: Weight | Tensor
    b: Tensor
    error: float
    own: Tensor | None = None
    whole: bool = True

    @property
    def W(self) -> Tensor:
        """As the module holds it now."""
        return self.weight if isinstance(self.weight, Tensor) else self.weight.read()

    def by_head(self, width: int, times: int) -> Map:
        """Of one head: its columns as those of so many, each as often; something follows it."""

        def by(t: Any) -> Any:
            return t.reshape(width, -1, *t.shape[2:]).repeat_interleave(times, 0)

        if isinstance(own := self.weight, Tensor):
            return Map(by(own.mT).mT, by(self.b), self.error, whole=False)
        scale = by(own.scale) if isinstance(own.scale, Tensor) else own.scale
        weight = replace(own, lines=by(own.lines), scale=scale)
        return Map(weight, by(self.b), self.error, whole=False)

    @property
    def placed(self) -> Weight | None:
        """Where W stands."""
        return None if isinstance(self.weight, Tensor) else self.weight


def linear_map(g: Graph, module: nn.Module, a: int, b: int, pick: Pick, perm: Tensor) -> Map:
    """The map by which `a`, tokens [T, d] in the order `perm`, makes what `pick` takes of b.

    Raises `NotReplayable` where the piece between cannot be run again.
    """
    tokens = g.values[a].reshape(len(perm), -1)[perm]
    bias = pick(g.replay(b, {a: torch.zeros_like(g.values[a])}))[0].clone()
    seen = pick(g.values[b])
    constants = [v for v in g.constants(a, b) if g.values[v].ndim > 1]
    if len(constants) == 1:
        weight = _weight(g, module, a, b, constants[0], pick, perm)
        if weight is not None and (W := weight.read()).shape[1] == tokens.shape[1]:
            own = _own_bias(g, a, b, weight, bias)
            bias = bias if own is None else own * torch.as_tensor(weight.scale).to(own)
            error = off(_mapped(tokens, W, bias), seen)
            if error <= MAP_WITHIN:
                return Map(weight, bias, error, own)
    W = _by_units(g, a, b, pick, perm, tokens.shape[1])
    return Map(W, bias, off(_mapped(tokens, W, bias), seen))


def _mapped(X: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """X [T, d] by W [heads, d, r]: [T, heads, r]."""
    wide = X.to(W.dtype) if X.dtype != W.dtype else X
    out = wide @ W.transpose(0, 1).flatten(1)
    return out.view(len(X), len(W), -1) + b


def _weight(
    g: Graph, module: nn.Module, a: int, b: int, v: int, pick: Pick, perm: Tensor
) -> Weight | None:
    """Which entries of the parameter v the map is made of; None: it is not made so."""
    P = g.values[v]
    flat = P.detach().flatten(1)
    first = torch.zeros(len(perm), g.values[a].numel() // len(perm), dtype=torch.float64)
    first[perm[0], 0] = 1
    unit = like(g.values[a], first.reshape(g.values[a].shape))
    beside = {u: g.values[u].double() for u in g.constants(a, b, frozenset())}

    def row(numbers: Tensor) -> Tensor:
        """What the first unit vector gives with such numbers in the place of the parameter."""
        given = beside | {v: numbers.reshape(P.shape).to(P.device)}
        zero = pick(g.replay(b, given | {a: torch.zeros_like(unit)}))[0]
        return (pick(g.replay(b, given | {a: unit}))[0] - zero).cpu()

    order = torch.arange(1.0, flat.numel() + 1, dtype=torch.float64).view(flat.shape)
    try:
        scale, numbered = row(torch.ones_like(order)), row(order)
    except NotReplayable:
        return None
    if bool((scale == 0).any()):
        return None
    entries = numbered / scale - 1
    index = entries.round().long()
    if bool((entries - index).abs().max() > 1e-3) or int(index.max()) >= flat.numel():
        return None
    down, along = index // flat.shape[1], index % flat.shape[1]
    across = bool((down == 0).all())
    if not across and not bool((along == 0).all()):
        return None
    one = float(scale.flatten()[0])
    plain = bool((scale - one).abs().max() <= 1e-12 * abs(one))
    lines = along if across else down
    name = g.name(v)
    held = None if name else P.detach()
    return Weight(module, name, held, lines, across, one if plain else scale)


def _own_bias(g: Graph, a: int, b: int, weight: Weight, made: Tensor) -> Tensor | None:
    """The bias [heads, r] as it is stored, where it stands beside the weight; None: it does not."""
    for v in g.constants(a, b):
        p = g.values[v].detach()
        if p.ndim == 1 and int(weight.lines.max()) < len(p):
            own = p[weight.lines.to(p.device)]
            scaled = own * torch.as_tensor(weight.scale).to(p)
            if bool((scaled - made).abs().max() <= MAP_WITHIN * made.abs().max()):
                return own
    return None


def _by_units(g: Graph, a: int, b: int, pick: Pick, perm: Tensor, width: int) -> Tensor:
    """W [heads, d, r] by unit vectors, as many at once as there are tokens."""
    T, x = len(perm), g.values[a]
    zero = pick(g.replay(b, {a: torch.zeros_like(x)}))
    parts = []
    for k in range(0, width, T):
        count = min(T, width - k)
        units = torch.zeros(T, width, dtype=x.dtype)
        units[perm[:count], torch.arange(k, k + count)] = 1
        parts.append((pick(g.replay(b, {a: like(x, units.reshape(x.shape))})) - zero)[:count])
    return torch.cat(parts).transpose(0, 1).contiguous()


# ------------------------------------------------------------------------------------------- norms

# Beside the constants that the pass itself uses.
EPS = (0.0, torch.finfo(torch.float32).eps)
# Of the largest number: what a norm may be off by; what ends the search for its kind.
NORM_WITHIN, ENOUGH = 2e-4, 1e-6
# A parameter is the gain where the two differ by less, relative to the largest.
ITS_OWN = 1e-4
KINDS = ("none", "rms", "layer")


def _scaled(X: Tensor, kind: str, eps: float) -> Tensor:
    if kind == "none":
        return X
    Z = X - X.mean(-1, keepdim=True) if kind == "layer" else X
    return Z * (Z.square().mean(-1, keepdim=True) + eps).rsqrt()


def _fit(X: Tensor, F: Tensor, kind: str, eps: float, on: Any) -> tuple[float, Tensor, Tensor]:
    """(largest error, gain, shift) of F = gain N(X) + shift, fitted on the tokens `on`."""
    Z = _scaled(X, kind, eps)
    z, f = Z[on], F[on]
    zc, fc = z - z.mean(0), f - f.mean(0)
    plain = (z * f).sum(0) / z.square().sum(0).clamp_min(1e-30)
    gain = (zc * fc).sum(0) / zc.square().sum(0).clamp_min(1e-30)
    tries = ((plain, torch.zeros_like(plain)), (gain, f.mean(0) - gain * z.mean(0)))
    # A token of zeros has no norm without eps.
    errors = (
        (float((Z * g + t - F).abs().max().nan_to_num(nan=torch.inf)), g, t) for g, t in tries
    )
    return min(errors, key=lambda each: each[0])


def fit_norm(X: Tensor, F: Tensor, constants: set[float]) -> Norm | None:
    """The norm with F = N(X) over tokens [.., d], its gains fitted; None: there is none."""
    X, F = (t.reshape(-1, t.shape[-1]) for t in (X, F))
    few = torch.arange(0, len(X), max(1, len(X) // 48))
    size, candidates = float(F.abs().max()) or 1.0, []
    x, f = X[few].double(), F[few].double()
    for kind in KINDS:
        all_eps = (*EPS, *sorted(constants)) if kind != "none" else (0.0,)
        tries = [(*_fit(x, f, kind, eps, slice(None)), kind, eps) for eps in all_eps]
        candidates.append(min(tries, key=lambda each: each[0]))
        if candidates[0][0] < ENOUGH * size:
            break
    _, gain, shift, kind, eps = min(candidates, key=lambda each: each[0])
    error = _fit(X.double(), F.double(), kind, eps, few)[0]
    fits = error <= NORM_WITHIN * size and len(few) > 3
    shifted = bool(shift.abs().max() > 0)
    return Norm(kind, gain, shift if shifted else None, eps) if fits else None  # type: ignore[arg-type]


def norm_of(g: Graph, a: int, b: int) -> Norm | None:
    """The norm that makes b of a: of the tokens seen and of random ones, so that kind and eps show;
    with its own parameters as they are, and the module that is it."""
    X, F = g.values[a], g.values[b]
    if X.numel() != F.numel() or X.shape[-1] != F.shape[-1] or not F.is_floating_point():
        return None
    made = [g.made(v) for v in range(a + 1, b + 1) if g.from_(v, a) and g.from_(b, v)]
    constants = {
        x
        for node in made
        for x in tree_leaves((node.args, node.kwargs))
        if isinstance(x, float) and 0 < x < 0.01
    }
    seen = fit_norm(X, F, constants)
    if seen is None or a == b:
        return seen
    rows, noise = X.reshape(-1, X.shape[-1]), torch.Generator().manual_seed(0)
    tilt, sizes = torch.linspace(-1, 1, len(rows)), torch.linspace(-2, 0.5, len(rows))
    other = (torch.randn(rows.shape, generator=noise) + tilt[:, None]).to(X)
    other = other * rows.abs().mean() * (10 ** sizes[:, None]).to(X)
    replayed = g.replay(b, {a: like(X, other.reshape(X.shape))})
    both, given = (
        torch.cat([t.reshape(rows.shape), u.reshape(rows.shape)])
        for t, u in ((X, other), (F, replayed))
    )
    norm = fit_norm(both, given, constants)
    return None if norm is None else _named(g, a, b, norm)


def _named(g: Graph, a: int, b: int, norm: Norm) -> Norm:
    """The norm with the numbers that it is made of in place of fitted ones, and its module."""
    gain, shift = norm.gain, norm.shift
    if norm.kind == "none":
        return Norm("none", gain, shift, 0.0)
    size = float(gain.abs().max())
    for p in (g.values[v].detach() for v in g.constants(a, b, frozenset())):
        if p.shape == gain.shape and _alike(p, gain, size):
            gain = p.clone()
        elif p.shape == gain.shape and shift is not None and _alike(p, shift, size):
            shift = p.clone()
    if shift is not None and not bool(shift.abs().max() > ENOUGH * size):
        shift = None
    if bool((gain.double() - 1).abs().max() < 1e-5):
        gain = torch.ones_like(gain)
    gain = gain.to(g.values[b].dtype)
    shift = None if shift is None else shift.to(gain.dtype)
    return Norm(norm.kind, gain, shift, norm.eps, _module(g, a, b))


def _alike(p: Tensor, fitted: Tensor, size: float) -> bool:
    return bool((p.double() - fitted).abs().max() <= ITS_OWN * max(size, float(fitted.abs().max())))


def _module(g: Graph, a: int, b: int) -> nn.Module | None:
    """The module that was called on a and gave b."""
    for call in g.calls:
        given, gives = ({g.root(v) for v in held} for held in (call.ins, call.outs))
        if g.root(a) in given and g.root(b) in gives:
            return call.module
    return None


def norm_within(g: Graph, a: int, b: int) -> tuple[Norm, int] | None:
    """(the norm that a passes first on its way to b, its gain with it; its output)."""
    pair = None
    for c in g.cuts(a, b)[1:-1]:
        fitted = norm_of(g, a, c)
        if pair and not fitted:
            break
        pair = (fitted, c) if fitted and fitted.kind != "none" else pair
    return pair


# --------------------------------------------------------------------------------------- the FFN

Step = Callable[[Tensor], Any]
_SIZED = SAME | frozenset(("expand", "slice", "select", "_unsafe_view"))


@dataclass(frozen=True)
class _Again:
    """A piece of the pass on other tokens, of any number: so many at a time as it was recorded on.
    An FFN acts token by token, so that what fills the rest does not matter."""

    g: Graph
    start: int
    end: int

    def __call__(self, X: Tensor) -> Tensor:
        held = self.g.values[self.start]
        flat, many = X.reshape(-1, X.shape[-1]), held.numel() // held.shape[-1]
        given = []
        for part in torch.split(flat, many):
            filled = torch.cat([part, part[:1].expand(many - len(part), -1)])
            out = self.g.replay(self.end, {self.start: filled.reshape(held.shape)})
            given.append(out.reshape(many, -1)[: len(part)])
        return torch.cat(given).reshape(*X.shape[:-1], -1)


def ffn_of(g: Graph, module: nn.Module, fed: int, ffn: int) -> Callable[[Tensor], Tensor] | None:
    """Normed tokens [..., d] -> what the FFN gives of them."""
    if fed < 0:
        return None
    steps = _steps(g, fed, ffn)

    @torch.no_grad()
    def call(X: Tensor) -> Tensor:
        # The module's device and dtype are looked up at each call: it may have moved.
        reference = next(module.parameters())
        answer = X.to(reference.device, reference.dtype)
        for step in steps:
            answer = step(answer)
            answer = answer[0] if isinstance(answer, tuple) else answer
        return answer.reshape(X.shape).to(X.device, X.dtype)

    return call


def _steps(g: Graph, start: int, end: int) -> list[Step]:
    """Modules, and operations between them, that make `end` of `start` one after the other; where
    they are not, the piece of the pass itself."""
    cuts = [g.root(c) for c in g.cuts(start, end)]
    order = {c: k for k, c in enumerate(cuts)}
    steps: list[Step] = []
    at, last = 0, len(cuts) - 1
    while at < last:
        taken = [call for call in g.calls if call.outs and _takes(g, call, cuts[at])]
        ends = [g.root(call.outs[0]) for call in taken]
        reach = [
            (order[v], -k, call)
            for k, (v, call) in enumerate(zip(ends, taken, strict=True))
            if v in order
        ]
        best = max(reach, default=None, key=lambda each: each[:2])
        if best is not None and at < best[0]:
            steps.append(best[2].module)
            at = best[0]
            continue
        step = _operation(g, g.maker[cuts[at + 1]], cuts[at])
        if step is None:
            return [_Again(g, start, end)]
        steps.append(step)
        at += 1
    return steps


def _takes(g: Graph, call: Call, v: int) -> bool:
    """Whether v alone of the data goes into a call."""
    data = {g.root(u) for u in call.ins if g.data[u]}
    return data == {v}


def _operation(g: Graph, node: Node | None, v: int) -> Step | None:
    """One operation on v and constants as a function; None for another one."""
    if node is None or node.func is None or node.op in PRODUCT | _SIZED or node.writes:
        return None
    if {g.root(u) for u in node.ins if g.data[u]} != {v} or len(node.outs) != 1:
        return None
    func, args, kwargs = node.func, node.args, node.kwargs
    values = {u: g.values[u] for u in node.ins if not g.data[u]}

    def step(X: Tensor) -> Any:
        def get(x: Any) -> Any:
            return values.get(x.v, X) if hasattr(x, "v") else x

        given, named = tree_map(get, (args, kwargs), is_leaf=lambda x: hasattr(x, "v"))
        return func(*given, **named)

    return step
