"""What a piece of a pass is: linear maps, norms, and FFNs as functions.

Linear maps. A piece is run again on two unit vectors with a weight's entries replaced by their own
numbers: that tells which entries the map is made of, whatever order they are fused in, and what
they are multiplied with. Where a map is no such piece of one weight (adapters beside it),
unit vectors through it give its numbers. Either way it is held against what the pass computed.

Norms are fitted to what a pass computed and to random tokens. FFNs are the modules that ran and the
operations between them, or else the piece of the pass itself.

One file for one room: maps, norms and FFNs are told by the same replays of a piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from math import inf
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.models import tape
from oversmoothing.experiments.models.model import NO_NORM, Norm
from oversmoothing.experiments.models.pass_graph import Graph, like, off

# Of the largest number: what an affine map of drawn numbers may be off by.
AFFINE = 2e-4


def affine(g: Graph, a: int, b: int) -> bool:
    """Whether b is an affine function of a: by its operations, else tried on random numbers, once
    for layers that do the same with other weights."""
    if not g.values[a].is_floating_point():
        return False

    def tried() -> bool:
        x, draw = g.values[a], torch.Generator().manual_seed(0)
        one, two = (like(x, torch.randn(x.shape, generator=draw)) for _ in range(2))
        f = [g.replay(b, {a: y}) for y in (one, two, one + two, torch.zeros_like(x))]
        return off(f[0] + f[1], f[2] + f[3]) <= AFFINE

    by_operations = all(_affine_in(g, node, a) for node in g.between(a, b))
    return by_operations or g.once("affine", a, b, tried)


def _affine_in(g: Graph, node: tape.Node, a: int) -> bool:
    """Whether an operation on what comes from a, by its name, keeps what is affine in a so."""
    ins = [g.from_(v, a) for v in node.ins]
    if node.writes or any(g.values[v].dtype != g.values[a].dtype for v in node.outs):
        return False
    if node.op in tape.PRODUCT | {*tape.SCALES}:  # by constants, and what is divided is in front
        return sum(ins) == 1 and (ins[0] or not node.op.startswith("div"))
    return node.op in tape.MOVES or node.op in (*tape.ADD, "neg")


def mixes(g: Graph, a: int, b: int) -> bool | None:
    """Whether another first and last token in a change other tokens of b, asked once for layers
    that do the same with other weights, but for weights with a side for tokens; None: not
    replayable."""

    def mixed() -> bool | None:
        x = g.values[a].clone(memory_format=torch.contiguous_format)
        rows = x.view(-1, x.shape[-1])
        noise = torch.randn(2, x.shape[-1], generator=torch.Generator().manual_seed(0)).to(x)
        rows[[0, -1]] += 1e-3 * x.abs().max() * noise
        try:
            moved = g.replay(b, {a: like(g.values[a], x)}) - g.values[b]
        except tape.NotReplayable:
            return None
        if moved.numel() % len(rows):  # other tokens
            return True
        moved = moved.reshape(len(rows), -1).abs().amax(-1)
        return len(rows) > 2 and bool(moved[1:-1].max() > 1e-5 * moved[[0, -1]].max())

    sides = set(g.values[a].shape[:-1]) | {g.values[a].shape[:-1].numel()}
    sided = any(sides & set(g.values[v].shape) for v in g.constants(a, b, frozenset()))
    return mixed() if sided else g.once("mixes", a, b, mixed)


# Of a map's largest number: what it may differ by from what the pass computed.
MAP_WITHIN = 1e-4
# A tensor that a map gives -> [T, heads, r], tokens input by input.
Pick = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Map:
    """x -> x W + b, b [heads, r]. W [heads, d, r] is made of entries of a weight, times `scale`:
    those at `lines` [heads, r], columns of one [d, ..] (`across`) or rows of one [.., d].

    name: of the weight in the module; '': it has none, and is as it was `held`. error: against what
    the pass computed. own: the bias as it is stored, where one with W's scale makes b. whole:
    whether nothing follows that is no map.
    """

    module: nn.Module
    name: str
    held: Tensor | None
    lines: Tensor
    across: bool
    b: Tensor
    scale: Tensor | float = 1.0
    error: float = inf
    own: Tensor | None = None
    whole: bool = True

    @classmethod
    def of(cls, module: nn.Module, W: Tensor, b: Tensor) -> Map:
        """Of the numbers W [d, heads, r], which are in no one weight."""
        held = W.flatten(1)
        return cls(module, "", held, torch.arange(held.shape[1]).view(b.shape), True, b)

    @property
    def one(self) -> float | None:
        """The scale, where it is one number."""
        return self.scale if isinstance(self.scale, float) else None

    @property
    def W(self) -> Tensor:
        """As the module holds it now."""
        weight: Any = self.held
        if self.name:
            weight = reduce(getattr, self.name.split("."), self.module)
        flat = weight.detach().flatten(1)
        # From the CPU, nobody waits for them.
        lines = self.lines.to(flat.device, non_blocking=True)
        W: Tensor = flat[:, lines].transpose(0, 1) if self.across else flat[lines].mT
        # In float32 at least: a product rounded to half precision is another model's.
        W = W.to(torch.promote_types(W.dtype, torch.float32))
        if self.one == 1.0:
            return W.contiguous()
        scale = torch.as_tensor(self.scale).to(W, non_blocking=True)
        return W * (scale if scale.ndim == 0 else scale[:, None])

    def by_head(self, width: int, times: int) -> Map:
        """Of one head: its columns as those of so many, each as often; something follows it."""

        def by(t: Any) -> Any:
            return t.reshape(width, -1, *t.shape[2:]).repeat_interleave(times, 0)

        scale = by(self.scale) if isinstance(self.scale, Tensor) else self.scale
        return replace(self, lines=by(self.lines), b=by(self.b), scale=scale, own=None, whole=False)


def linear_map(g: Graph, module: nn.Module, a: int, b: int, pick: Pick, perm: Tensor) -> Map:
    """The map by which `a`, tokens [T, d] in the order `perm`, makes what `pick` takes of b.

    Raises `NotReplayable` where the piece between cannot be run again.
    """
    tokens = g.values[a].reshape(len(perm), -1)[perm]
    seen = pick(g.values[b])
    constants = [v for v in g.constants(a, b) if g.values[v].ndim > 1]
    entries = "entries", seen.shape, g.alike(a, b)
    for way in (_as_before, _weight) if len(constants) == 1 else ():
        made = way(g, module, a, b, constants[0], pick, perm, g.known.get(entries))
        if made is not None and (W := made.W).shape[1] == tokens.shape[1]:
            bias = made.b.to(seen)
            error = off(_mapped(tokens, W, bias), seen)
            if error <= MAP_WITHIN:
                g.known[entries] = made
                return replace(made, b=bias, error=error, own=_own_bias(g, a, b, made, bias))
    made = _by_units(g, module, a, b, pick, perm, tokens.shape[1])
    return replace(made, error=off(_mapped(tokens, made.W, made.b), seen))


def _mapped(X: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """X [T, d] by W [heads, d, r]: [T, heads, r]."""
    wide = X.to(W.dtype) if X.dtype != W.dtype else X
    out = wide @ W.transpose(0, 1).flatten(1)
    return out.view(len(X), len(W), -1) + b


def _own_bias(g: Graph, a: int, b: int, of: Map, made: Tensor) -> Tensor | None:
    """The bias [heads, r] as it is stored, which a scaled weight hides by a rounding."""
    for v in g.constants(a, b) if of.one != 1.0 else ():
        p = g.values[v].detach()
        if p.ndim == 1 and int(of.lines.max()) < len(p):
            own = p[of.lines.to(p.device)]
            if off(own.to(made) * torch.as_tensor(of.scale).to(made), made) <= MAP_WITHIN:
                return own
    return None


def _as_before(
    g: Graph, _: nn.Module, a: int, b: int, v: int, __: Pick, ___: Tensor, before: Map | None
) -> Map | None:
    """By the entries found in another weight with which the same is done, and the only bias."""
    others = [t for u in g.constants(a, b, frozenset()) if u != v and (t := g.values[u]).ndim]
    if before is None or before.one is None or len(others) > 1:
        return None
    bias = torch.zeros(before.lines.shape)
    for p in others:
        if p.ndim > 1 or int(before.lines.max()) >= len(p):
            return None
        bias = before.one * p.detach()[before.lines.to(p.device)]
    name = g.name(v)
    return replace(before, name=name, held=None if name else g.values[v].detach(), b=bias)


def _weight(
    g: Graph, module: nn.Module, a: int, b: int, v: int, pick: Pick, perm: Tensor, _: Map | None
) -> Map | None:
    """By entries of the parameter v; None: the map is not made so.

    The entries of the parameter are replaced by their own numbers, 1, 2, ..; one token is the
    first unit vector, the next one the second unit vector less the first, all others are 0.
    """
    P = g.values[v]
    flat, x = P.detach().flatten(1), g.values[a]
    across = flat.shape[1]
    units = torch.zeros(len(perm), x.numel() // len(perm), dtype=torch.float64)
    units[perm[:2], :2] = torch.tensor([[1.0, 0.0], [-1.0, 1.0]], dtype=torch.float64)
    order = torch.arange(1.0, flat.numel() + 1, dtype=torch.float64).view(P.shape)
    given = {u: g.values[u].double() for u in g.constants(a, b, frozenset())}
    given |= {v: order.to(P.device), a: like(x, units.reshape(x.shape))}
    try:
        made = pick(g.replay(b, given))
    except tape.NotReplayable:
        return None
    bias = made[2].clone()
    first, step = ((t - bias).cpu() for t in made[:2])
    # The entry beside the first is that of the next feature, or else the one below it.
    for beside in (1, across):
        entry = first * beside / step
        index = entry.nan_to_num(0.0, 0.0, 0.0).round().long() - 1
        lines, left = (index // across, index % across)[:: 1 if beside == 1 else -1]
        known = int(index.min()) >= 0 and int(index.max()) < flat.numel()
        if known and not left.any() and bool((entry - index - 1).abs().max() < 1e-3):
            scale, name = step / beside, g.name(v)
            one = float(scale.flatten()[0])
            plain = bool((scale - one).abs().max() <= 1e-12 * abs(one))
            held = None if name else P.detach()
            return Map(module, name, held, lines, beside != 1, bias, one if plain else scale)
    return None


def _by_units(
    g: Graph, module: nn.Module, a: int, b: int, pick: Pick, perm: Tensor, width: int
) -> Map:
    """By unit vectors, as many at once as there are tokens."""
    T, x = len(perm), g.values[a]
    zero = pick(g.replay(b, {a: torch.zeros_like(x)}))
    parts = []
    for k in range(0, width, T):
        count = min(T, width - k)
        units = torch.zeros(T, width, dtype=x.dtype)
        units[perm[:count], torch.arange(k, k + count)] = 1
        parts.append((pick(g.replay(b, {a: like(x, units.reshape(x.shape))})) - zero)[:count])
    return Map.of(module, torch.cat(parts), zero[0].clone())


# ------------------------------------------------------------------------------------------- norms

# Beside the constants that the pass itself uses.
EPS = (0.0, torch.finfo(torch.float32).eps)
# Of the largest number: what a norm may be off by; what ends the search for its kind.
NORM_WITHIN, ENOUGH = 2e-4, 1e-6
# A parameter is the gain where the two differ by less, relative to the largest.
ITS_OWN = 1e-4
KINDS: tuple[Literal["none", "rms", "layer"], ...] = ("none", "rms", "layer")


def _fit(X: Tensor, F: Tensor, constants: set[float], likely: str) -> Norm:
    """The norm of the least error in F = gain N(X) + shift, [T, d]; the likely kind goes first."""
    size, best = float(F.abs().max()) or 1.0, (torch.inf, NO_NORM)
    # What is the same of every token is any kind with gains of 0: it counts as none.
    varies = bool((F - F.mean(0)).abs().max() > ENOUGH * size)
    for kind in sorted(KINDS, key=lambda each: each != likely) if varies else KINDS:
        all_eps = [*sorted(constants), *EPS] if kind != "none" else [0.0]
        eps = torch.tensor(all_eps, dtype=X.dtype, device=X.device)
        Z = Norm(kind, eps, eps=eps[:, None, None]).scaled(X[None])  # type: ignore[arg-type]
        mean = Z.mean(1)
        Zc = Z - mean[:, None]
        plain = (Z * F).sum(1) / Z.square().sum(1).clamp_min(1e-30)
        gain = (Zc * (F - F.mean(0))).sum(1) / Zc.square().sum(1).clamp_min(1e-30)
        for g, t in ((plain, 0 * plain), (gain, F.mean(0) - gain * mean)):
            # A token of zeros has no norm without eps.
            error = (Z * g[:, None] + t[:, None] - F).abs().amax((1, 2)).nan_to_num(torch.inf)
            k = int((error <= 2 * error.min()).int().argmax())  # the pass's own one, if it will do
            if float(error[k]) < best[0]:
                shift = t[k] if bool(t[k].any()) else None
                best = float(error[k]), Norm(kind, g[k], shift, float(eps[k]))
        if best[0] < ENOUGH * size:
            break
    return best[1]


def _fits(norm: Norm, X: Tensor, F: Tensor) -> bool:
    shift = 0.0 if norm.shift is None else norm.shift.to(X)
    error = (norm.scaled(X) * norm.gain.to(X) + shift - F).abs().max()
    return bool(error <= NORM_WITHIN * (float(F.abs().max()) or 1.0))


def norm_of(g: Graph, a: int, b: int) -> Norm | None:
    """The norm that makes b of a, its gains fitted to tokens of the pass and to random ones, so
    that kind and eps show; with its own parameters as they are, and the module that is it. None:
    there is none."""
    X, F = g.values[a], g.values[b]
    if X.numel() != F.numel() or X.shape[-1] != F.shape[-1] or not F.is_floating_point():
        return None
    if X.numel() <= 3 * X.shape[-1]:  # too few tokens to tell a norm from another map
        return None
    if (key := (g.root(a), g.root(b))) not in g.norms:
        g.norms[key] = NO_NORM if key[0] == key[1] else _norm(g, a, b, X, F)
    return g.norms[key]


def _norm(g: Graph, a: int, b: int, X: Tensor, F: Tensor) -> Norm | None:
    """`norm_of`; of layers that do the same with other gains the first tells what it is."""
    stored = [g.values[v].detach() for v in g.constants(a, b, frozenset())]
    X, F = (t.reshape(-1, t.shape[-1]) for t in (X, F))
    asked = "norm", g.alike(a, b)
    if asked in g.known:
        if g.known[asked] is None:
            return None
        kind, eps, at = g.known[asked]
        shift = next((p for k, p in enumerate(stored) if k != at), None)
        norm = Norm(kind, stored[at], shift, eps)
        if _fits(norm, X, F):
            return _named(g, a, b, norm)
    fitted = g.known[asked] = _fitted(g, a, b, X, F)
    if fitted is None:
        return None
    named, size = _named(g, a, b, fitted), float(fitted.gain.abs().max())
    gains = [p.shape == named.gain.shape and _alike(p, fitted.gain, size) for p in stored]
    g.known.pop(asked)
    if len(stored) <= 2 and sum(gains) == 1 and named.kind != "none":
        g.known[asked] = named.kind, named.eps, gains.index(True)
    return named


def _fitted(g: Graph, a: int, b: int, X: Tensor, F: Tensor) -> Norm | None:
    constants = {
        x
        for node in g.between(a, b)
        for x in tree_leaves((node.args, node.kwargs))
        if isinstance(x, float) and 0 < x < 0.01
    }
    few = torch.arange(0, len(X), max(1, len(X) // 48))
    x, f = X[few].double(), F[few].double()
    likely = next((n.kind for n in reversed(g.norms.values()) if n and n.kind != "none"), "none")
    fewer = slice(None, None, max(1, len(x) // 12))
    if not _fits(_fit(x[fewer], f[fewer], constants, likely), x[fewer], f[fewer]):
        return None
    other = _drawn(*X.shape).to(X) * X.abs().mean()
    made = g.replay(b, {a: like(g.values[a], other.reshape(g.values[a].shape))}).reshape(F.shape)
    norm = _fit(
        torch.cat([x, other[few].double()]), torch.cat([f, made[few].double()]), constants, likely
    )
    return norm if _fits(norm, X, F) and _fits(norm, other, made) else None


@lru_cache(maxsize=4)
def _drawn(rows: int, width: int) -> Tensor:
    """Tokens of many sizes about different means."""
    tilt, sizes = torch.linspace(-1, 1, rows), torch.linspace(-2, 0.5, rows)
    drawn = torch.randn(rows, width, generator=torch.Generator().manual_seed(0))
    return (drawn + tilt[:, None]) * 10 ** sizes[:, None]


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
    # The module that was called on a and gave b.
    calls = (call for given, gives, call in g.ends() if g.root(a) in given and g.root(b) in gives)
    module = next((call.module for call in calls), None)
    return Norm(norm.kind, gain, shift, norm.eps, module)


def _alike(p: Tensor, fitted: Tensor, size: float) -> bool:
    return bool((p.double() - fitted).abs().max() <= ITS_OWN * max(size, float(fitted.abs().max())))


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
_SIZED = tape.SAME | {"slice", "select"}


def _again(g: Graph, start: int, end: int) -> Step:
    """A piece of the pass on other tokens, of any number: so many at a time as it was recorded on.
    An FFN acts token by token, so that what fills the rest does not matter."""
    held = g.values[start]
    many = held.numel() // held.shape[-1]

    def step(X: Tensor) -> Tensor:
        given = []
        for part in torch.split(X.reshape(-1, X.shape[-1]), many):
            filled = torch.cat([part, part[:1].expand(many - len(part), -1)])
            out = g.replay(end, {start: filled.reshape(held.shape)})
            given.append(out.reshape(many, -1)[: len(part)])
        return torch.cat(given).reshape(*X.shape[:-1], -1)

    return step


def ffn_of(g: Graph, module: nn.Module, fed: int, ffn: int) -> Callable[[Tensor], Tensor] | None:
    """Normed tokens [..., d] -> what the FFN gives of them."""
    if fed < 0:
        return None
    steps = _steps(g, fed, ffn)

    @torch.no_grad()
    def call(X: Tensor) -> Tensor:
        # The module's device and dtype are looked up at each call: it may have moved.
        reference = next(module.parameters())
        answer = X.to(reference.device, reference.dtype, non_blocking=X.is_cpu)
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
        # Calls into which this tensor alone of the data goes.
        calls = [call for given, _, call in g.ends() if call.outs and given == {cuts[at]}]
        reach = [
            (order[v], -k, call)
            for k, call in enumerate(calls)
            if (v := g.root(call.outs[0])) in order
        ]
        best = max(reach, default=None, key=lambda each: each[:2])
        if best is not None and at < best[0]:
            steps.append(best[2].module)
            at = best[0]
            continue
        step = _operation(g, g.maker[cuts[at + 1]], cuts[at])
        if step is None:
            return [_again(g, start, end)]
        steps.append(step)
        at += 1
    return steps


def _operation(g: Graph, node: tape.Node | None, v: int) -> Step | None:
    """One operation on v and constants as a function; None for another one."""
    if node is None or node.func is None or node.op in tape.PRODUCT | _SIZED or node.writes:
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
