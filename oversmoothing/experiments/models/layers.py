"""The layers that a reader found, and what another pass does to each of them, caught while it runs.

`layers_of` makes `Layer`s of readings, with the places of a layer's tensors in a pass. `Light` is
the mode that catches those in later passes; only they are kept, of one layer at a time, and all
else is the model's own pass, its attention by formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from oversmoothing.experiments.models import tape
from oversmoothing.experiments.models.fits import Map, ffn_of
from oversmoothing.experiments.models.heads import Layout, Reading
from oversmoothing.experiments.models.model import Heads, Layer, Norm, ValueParts
from oversmoothing.experiments.models.pass_graph import Graph
from oversmoothing.experiments.models.tape import PRODUCT, Call, Place, Scoped, leaves, running


class Places(NamedTuple):
    """Where a pass has a layer's tensors, each a place and which of its outputs.

    product: A V, head by head where code loops; first: whether A is its first factor; weights,
    logits: A itself and what its softmax is taken of, where it is a softmax's whole output. before,
    after, end: of the stream, in front of the layer, between its sublayers (None: they are
    parallel) and behind it; normed: of what the norm in front of attention gives; output: of what
    W_O gives; across: which of these have tokens as [n, b, d], and of 'block' and 'out', what the
    block, and the module of W_O or else of attention, give.
    """

    product: tuple[Place, ...]
    first: bool
    weights: tuple[Place, int] | None
    logits: tuple[Place, int] | None
    before: tuple[Place, int]
    normed: tuple[Place, int] | None
    output: tuple[Place, int]
    after: tuple[Place, int] | None
    end: tuple[Place, int]
    across: frozenset[str]

    def of_block(self) -> Places:
        """The same where the block runs once, by itself, on its stream."""

        def first(x: Any) -> Any:
            return x._replace(call=0) if isinstance(x, Place) else x

        alone: Places = tree_map(first, self, is_leaf=lambda x: isinstance(x, Place))
        return alone._replace(before=(Place("", 0, "input", 0), 0))


@dataclass
class Caught:
    """A layer's tensors: A [b, heads, n, n], its product with the values [b, heads, n, r] (None
    where the softmax is taken anew, in a wider dtype), and the stream [b, n, d] at its places; None
    where it was not asked for or has none."""

    A: Tensor | None
    mixed: Tensor | None
    before: Tensor
    output: Tensor
    end: Tensor
    normed: Tensor | None = None
    after: Tensor | None = None


class Light(Scoped):  # type: ignore[no-untyped-call]
    """Catches every layer of one pass on a batch, and tells `see` of it (number, caught) at once;
    dtype: A and A V, too, A to its rounding, whatever the model takes its softmax in."""

    def __init__(
        self, module: nn.Module, layers: Sequence[Any], batch: Any, dtype: torch.dtype | None,
        see: Callable[[int, Caught], None], normed: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(module)
        self.layers, self.dtype, self.see, self.normed = layers, dtype, see, normed
        self.seen = 0
        self.held: list[dict[str, Tensor]] = [{} for _ in layers]
        self._wanted: dict[Place, list[tuple[int, str, int]]] = {}
        for number, layer in enumerate(layers):
            for name, at in layer.places._asdict().items():
                if isinstance(at, tuple):
                    places = [(t, k) for k, t in enumerate(at)] if name == "product" else [at]
                    for place, which in places:
                        self._wanted.setdefault(place, []).append((number, name, which))
        given = leaves(batch)
        self.inputs = len(given[0]) if given else 1
        for k, t in enumerate(given):
            self._catch(Place("", 0, "input", k), (), [t])

    def around(self, call: Call, kind: str, tensors: list[Tensor]) -> None:
        for k, t in enumerate(tensors):
            place = Place(call.name, call.number, kind, k)
            if place in self._wanted:
                self.paused = True  # a copy is no operation of the pass
                self._catch(place, (), [t])
                self.paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        parts = self.by_formula(func, args, kwargs or {})
        if parts is not NotImplemented:
            return parts
        out = func(*args, **(kwargs or {}))
        if self.paused:
            return out
        place = self.place(tape.operation(func), args)
        if place in self._wanted:
            self._catch(place, args, out if isinstance(out, tuple | list) else [out])
        return out

    def _catch(self, place: Place, args: Any, outs: Sequence[Any]) -> None:
        for number, name, which in self._wanted.get(place, ()):
            if number < self.seen:
                continue
            held = self.held[number]
            if name == "product":
                if self.dtype:
                    names = (f"{each}{which}" for each in "AVZ")
                    held |= zip(names, (*args[-2:], outs[0]), strict=True)
            elif name in ("weights", "logits"):
                # Made anew by every pass: a reference will do.
                if self.dtype and (name == "weights" or self.dtype == torch.float64):
                    held[name] = outs[which].detach()
            elif name != "normed" or self.normed:  # copied: a module may work in place
                held[name] = outs[which].detach().clone()
            if name == "end" and number == self.seen:
                self._tell(number)

    def present(self) -> tuple[Tensor, Tensor]:
        """(A, the stream in front) of the layer in which the pass is, behind its A V."""
        layer, held = self.layers[self.seen], self.held[self.seen]
        X = layer.layout.tokens(held["before"], self.inputs, "before" in layer.places.across)
        return self._attended(layer, held)[0], X

    def _attended(self, layer: Any, held: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """(A, A V) by head."""
        layout, places = layer.layout, layer.places
        heads = range(len(places.product))
        parts = [[held[f"{name}{k}"] for k in heads] for name in "AVZ"]
        if len(heads) > 1:  # those of each product as one
            parts = [[torch.cat([t if t.ndim == 3 else t[None] for t in own])] for own in parts]
        (A,), (V,), (Z,) = parts
        A, V, Z = (A, V, Z) if places.first else (V.mT, A.mT, Z.mT)
        n = A.shape[-1]
        own, logits = held.get("weights", A), held.get("logits")
        narrow = logits is not None and own.dtype != self.dtype
        if narrow and logits is not None:
            own = logits.to(self.dtype).softmax(-1)
        A = layout.attention(own)
        if A.shape[1] > 1 and Z.shape[:-1].numel() * A.shape[1] == A.shape[:-1].numel():
            return A, A @ (V.unsqueeze(1) / A.shape[1])  # A was averaged over its heads
        return A, None if narrow else layout.mixed(Z, n)

    def _tell(self, number: int) -> None:
        layer = self.layers[number]
        layout, places = layer.layout, layer.places
        held, self.held[number] = self.held[number], {}
        A = mixed = None
        if self.dtype:
            A, mixed = self._attended(layer, held)
        streams = {
            name: layout.tokens(held[name], self.inputs, name in places.across)
            for name in ("before", "normed", "output", "after", "end")
            if name in held
        }
        self.seen = number + 1
        paused, self.paused = self.paused, True
        try:
            self.see(number, Caught(A, mixed, **streams))
        finally:
            self.paused = paused


def attention_of(module: nn.Module, layer: Any, run: Callable[[], Any], X: Tensor) -> Tensor:
    """A [b, heads, n, n] of one layer of a module, in `run()` of its block alone on X [b, n, d]."""
    matrices: list[Tensor] = []

    def see(_: int, caught: Caught) -> None:
        assert caught.A is not None
        matrices.append(caught.A)

    light = Light(module, [replace(layer, places=layer.places.of_block())], X, X.dtype, see)
    with running(light):
        run()
    return matrices[0]


def layers_of(g: Graph, module: nn.Module, reads: list[Reading]) -> tuple[Layer, ...]:
    """The layers that were read, in their order."""
    ends = [None, *(r.end for r in reads)]
    return tuple(_layer(g, module, *pair) for pair in zip(reads, ends, strict=False))


def _layer(g: Graph, module: nn.Module, r: Reading, before: int | None) -> Layer:
    value, out, norm, layout = r.value, r.out, r.norm, r.layout
    assert value is not None and out is not None and norm is not None and layout is not None
    averaged = g.values[r.product.softmax].shape[1] if r.product.averaged else 1
    number, d, width = value.W.shape
    scaling = _scales(r)
    query, key = (None, None) if scaling is None else (r.query, r.key)
    b_V = value.b if averaged == 1 else value.b.expand(averaged, -1) / averaged
    shifts = _raw_bias(query), _raw_bias(key), b_V, out.b[0]
    # Biases are held, and asked but once whether they are 0.
    some = torch.stack([(b != 0).any().to(b_V.device) for b in shifts]).tolist()
    given = [b if any_ else None for b, any_ in zip(shifts, some, strict=True)]

    def heads() -> Heads:
        W_V, W_O = value.W, out.W[0]
        W_O = W_O[r.columns.to(W_O.device, non_blocking=True)]
        if averaged > 1:
            W_V = W_V.expand(averaged, *W_V.shape[1:]) / averaged
            W_O = W_O.expand(averaged, -1, -1)
        return Heads(_raw(query, W_V), _raw(key, W_V), W_V, W_O, *given)

    attends, block = _attends(g, r), g.block(r.product.out, r.end).module
    last = module.get_submodule(out.name.rpartition(".")[0]) if out.name else None
    places = _places(g, r, before)
    hooked = {"block": block, "out": attends if last is None else last}
    across = {name for name, each in hooked.items() if _gives_across(g, r, each)}
    return Layer(
        read=heads,
        number=number * averaged,
        width=width,
        live=bool(value.name and out.name),
        norm_attention=_held(norm, d),
        norm_ffn=_held(r.norm_ffn, d),
        placement=r.placement,
        ffn=ffn_of(g, module, r.fed, r.ffn),
        block=block,
        attention=attends,
        out=last,
        scaling=scaling,
        sinks=r.sinks,
        plain=scaling is not None,
        output_scale=out.one or out.scale[0],  # type: ignore[index]
        output_norm_attention=_held(r.norm_behind, d),
        output_norm_ffn=_held(r.norm_ffn_behind, d),
        parts=_parts(module, r),
        layout=layout if averaged == 1 else Layout("bhi", averaged),
        places=places._replace(across=places.across | across),
    )


def _held(norm: Norm, width: int) -> Norm:
    """With its numbers on the CPU: an accelerator is given them without a wait."""
    gain = torch.ones(width) if norm.gain.ndim == 0 else norm.gain.cpu()
    return replace(norm, gain=gain, shift=None if norm.shift is None else norm.shift.cpu())


def _scales(r: Reading) -> float | None:
    """The scaling of q k^T with W_Q and W_K as the module holds them; None: that is not all."""
    if r.scaling is None or r.query is None or r.key is None:
        return None
    scaling = r.scaling * (r.query.one or 1.0) * (r.key.one or 1.0)
    alike = (x for x in (r.query.W.shape[-1] ** -0.5, 1.0) if abs(scaling / x - 1) < 1e-5)
    return next(alike, scaling)


def _raw(m: Map | None, W_V: Tensor) -> Tensor:
    """W without what it is multiplied with; of queries that are no linear map, empty."""
    if m is None:
        return W_V.new_zeros(*W_V.shape[:2], 0)
    return replace(m, scale=1.0).W if m.one else m.W


def _raw_bias(m: Map | None) -> Tensor:
    """b without what it is multiplied with, or empty."""
    if m is None or not m.one:
        return torch.empty(0) if m is None else m.b
    return m.b / m.one if m.own is None else m.own


def _attends(g: Graph, r: Reading) -> nn.Module:
    """The innermost module within which values are made and mixed."""
    call = g.made(r.product.out).call
    products = (node for node in g.between(r.attended, r.product.V) if node.op in PRODUCT)
    first = next(products, None)
    while first and call and not (first.call and first.call.inside(call)):
        call = call.within
    assert call is not None
    return call.module


def _parts(module: nn.Module, r: Reading) -> ValueParts | None:
    """Where W_V and W_O stand, both in one weight each."""
    value, out = r.value, r.out
    if r.product.averaged or not (value and out and value.name and out.name):
        return None
    if value.one != 1.0 or not torch.equal(r.columns.flatten(), torch.arange(r.columns.numel())):
        return None
    groups = list(dict.fromkeys(tuple(each) for each in value.lines.tolist()))
    lines = torch.tensor(groups).flatten()
    places = [each.name.rpartition(".") for each in (value, out)]
    holder, joins = (module.get_submodule(place[0]) for place in places)
    weight: Tensor = getattr(holder, places[0][2])
    every = torch.equal(lines, torch.arange(weight.shape[1 if value.across else 0]))
    return ValueParts(holder, joins, len(value.lines), len(groups), None if every else lines)


# ------------------------------------------------------------------------------ where tensors are


def _places(g: Graph, r: Reading, before: int | None) -> Places:
    """before: the end of the layer in front; None: there is none."""
    product = r.product
    joined = g.joined.get(product.out)
    products = joined.products if joined else [g.made(product.out)]
    whole = g.root(product.A) == product.softmax or product.averaged
    streams = {"before": r.before if before is None else before, "output": r.output, "end": r.end}
    if r.placement != "post" and g.root(r.normed) != g.root(r.before):
        streams["normed"] = r.normed
    if r.after is not None:
        streams["after"] = r.after
    at: dict[str, Any] = {"normed": None, "after": None}
    at |= {name: _output(g, v) for name, v in streams.items()}
    if before is None:
        at["before"] = _given(g, r, r.before)
    return Places(
        product=tuple(each.place for each in products if each.place),
        weights=_operation_of(g, product.softmax) if whole else None,
        logits=_operation_of(g, product.logits) if whole else None,
        first=g.made(product.out).ins[-2] == (product.V if product.flipped else product.A),
        across=frozenset(name for name, v in streams.items() if _across(g, r, g.root(v))),
        **at,
    )


def _across(g: Graph, r: Reading, v: int) -> bool:
    """Whether tokens lie there as [n, b, d]."""
    assert r.layout is not None
    X = g.values[v]
    n = X.numel() // X.shape[-1] // r.inputs
    if X.ndim == 3 and n != r.inputs:
        return X.shape[:2] == (n, r.inputs)
    return r.layout.across


def gives_across(layer: Layer) -> bool:
    """Whether its block gives tokens as [n, b, d]."""
    return layer.places is not None and "block" in layer.places.across


def _gives_across(g: Graph, r: Reading, module: nn.Module) -> bool:
    given = (v for call in g.calls if call.module is module for v in call.outs)
    first = next((v for v in given if g.values[v].ndim == 3), None)
    return first is not None and _across(g, r, first)


def _given(g: Graph, r: Reading, v: int) -> tuple[Place, int]:
    """Of what the block is given: masks and positions may be made anew in front of it."""
    call = g.block(r.product.out, r.end)
    for k, u in enumerate(call.ins):
        if g.root(u) == g.root(v):
            return Place(call.name, call.number, "given", k), 0
    return _output(g, v)


def _output(g: Graph, v: int) -> tuple[Place, int]:
    """(place of what made v's numbers, which of its outputs): a call, or an operation."""
    v = g.root(v)
    for call in reversed(g.calls):  # the innermost
        for k, u in enumerate(call.outs):
            if g.root(u) == v and call.stop > v >= call.start:
                return Place(call.name, call.number, "gives", k), 0
    return _operation_of(g, v)


def _operation_of(g: Graph, v: int) -> tuple[Place, int]:
    """(place of the operation that made v's numbers, which of its outputs)."""
    v = g.root(v)
    if v in g.inputs:
        return Place("", 0, "input", g.inputs[v]), 0
    node = g.made(v)
    assert node.place is not None
    return node.place, node.outs.index(v)
