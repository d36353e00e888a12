"""Every operation of one forward pass, written down with its tensors and the module that ran it.

Nothing is computed anew and nothing in the module changes: fused attention is taken apart by
PyTorch itself (its kernel by formula), so that eager, fused, einsum, `nn.MultiheadAttention` and
traced code leave the same operations. Pieces of the pass can be run again on other numbers
(`Graph.replay`), which is how the reader (`experiments.models.reader`) tells what they are.

A place in a pass, `Place`, outlives it: the same operation of another pass on other inputs.

In one file, as one room: writing a pass down and finding its places in another obey the same rules.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._C import DispatchKey
from torch._ops import HigherOrderOperator
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.models.checkpoints import Widened

# Names of operations: those that keep every number, or place it elsewhere; sums; products.
SAME = frozenset(
    (
        "view", "_unsafe_view", "reshape", "clone", "alias", "detach", "contiguous",
        "_reshape_alias", "_to_copy", "native_dropout", "unsqueeze", "squeeze", "lift_fresh",
        "expand",
    )
)  # fmt: skip
MOVES = SAME | frozenset(
    (
        "transpose", "t", "permute", "slice", "select", "split", "split_with_sizes",
        "unbind", "roll", "repeat", "index", "index_select", "copy", "as_strided",
        "constant_pad_nd", "unfold", "im2col",
    )
)  # fmt: skip
ADD = ("add", "add_")
SOFTMAX = ("_softmax", "_safe_softmax", "softmax")
PAIRS = ("bmm", "mm", "baddbmm")
PRODUCT = frozenset((*PAIRS, "addmm", "convolution"))
SCALES = ("mul", "div", "mul_", "div_")


class NotReplayable(Exception):
    """A part of the pass that cannot be run again on other numbers."""


class Place(NamedTuple):
    """The `which`-th operation of its kind within the `call`-th call of a module, by its name; or
    of the tensors that the call is given or gives, or of the inputs, the one of that number: then
    `kind` is 'given', 'gives' or 'input'. Calls are surer: what a pass computes on the side, as
    for masks, does not change their numbers."""

    module: str
    call: int
    kind: str
    which: int


def kind_of(op: str) -> str:
    """What of an operation's name is the same in passes with a mask and without, in place or not,
    of one input or many."""
    return "softmax" if op in SOFTMAX else "product" if op in PAIRS else op.rstrip("_")


@dataclass(frozen=True)
class Ref:
    """A tensor of the tape within the arguments of an operation."""

    v: int


@dataclass
class Call:
    """A call of a module: tensors that went in and came out, the calls and operations within."""

    module: nn.Module
    name: str
    number: int
    within: Call | None
    start: int
    ins: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)
    stop: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def inside(self, other: Call | None) -> bool:
        """Whether this call is made within another, or is it."""
        call: Call | None = self
        while call is not None and call is not other:
            call = call.within
        return call is other


@dataclass
class Node:
    """An operation: its function, its arguments with `Ref` for tensors, its tensors' numbers."""

    op: str
    func: Any
    args: Any
    kwargs: Any
    ins: list[int]
    outs: list[int]
    call: Call | None
    place: Place | None = None
    writes: bool = False


class Scoped(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Knows at every operation which call of which module makes it, and its place there."""

    supports_higher_order_operators = True

    def __init__(self, module: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.root = module
        self.names = {id(each): name for name, each in module.named_modules()}
        self.calls: list[Call] = []
        self.apart = False
        self.current = Call(module, "", 0, None, 0)
        self._times: Counter[str] = Counter()
        self._fixed = {_stored(p) for p in module.parameters()}

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module is called."""
        name = self.names.get(id(module), "")
        call = Call(module, name, self._times[name], self.current, self.now())
        self._times[name] += 1
        call.ins = [self.number(t) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        self.calls.append(call)
        self.current = call

    def leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """It has given `output`."""
        call = self.current
        call.outs = [self.number(t) for t in tree_leaves(output) if isinstance(t, Tensor)]
        call.stop = self.now()
        assert call.within is not None
        self.current = call.within

    def place(self, op: str, args: Any) -> Place:
        """Of the operation that runs now. A product with a weight is another kind, since with its
        bias it may be one operation or two."""
        kind, call = kind_of(op), self.current
        if kind == "product" and any(_stored(t) in self._fixed for t in args[-2:]):
            kind = "linear"
        call.counts[kind] += 1
        return Place(call.name, call.number, kind, call.counts[kind])

    def by_formula(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What flex attention gives, made of operations that are seen one by one; NotImplemented
        for any other operation outside of it."""
        if isinstance(func, HigherOrderOperator):
            apart, self.apart = self.apart, True
            try:
                with self:
                    return func.py_kernels[DispatchKey.CompositeExplicitAutograd](*args, **kwargs)
            finally:
                self.apart = apart
        if not self.apart:
            return NotImplemented
        with self:  # what autograd has taken apart everywhere else
            return func.decompose(*args, **kwargs)

    def now(self) -> int:
        """How many tensors there are so far."""
        return 0

    def number(self, t: Tensor) -> int:
        """Of a tensor."""
        return -1


def _stored(t: Any) -> int:
    """Where a tensor's numbers are; -1 for what has no memory of its own."""
    t = t.stored if isinstance(t, Widened) else t
    return t.untyped_storage().data_ptr() or -1 if type(t) in (Tensor, nn.Parameter) else -1


@contextmanager
def running(mode: Scoped) -> Iterator[None]:
    """The mode on, told of the calls of modules; attention by its formula, no fused layer,
    nothing compiled."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    with ExitStack() as within:
        within.callback(torch.backends.mha.set_fastpath_enabled, fast)
        for module in mode.root.modules():
            before = module.register_forward_pre_hook(mode.enter, with_kwargs=True)
            within.callback(before.remove)
            after = module.register_forward_hook(mode.leave, with_kwargs=True, always_call=True)
            within.callback(after.remove)
        within.enter_context(sdpa_kernel(SDPBackend.MATH))
        within.enter_context(torch.compiler.set_stance("force_eager"))
        within.enter_context(mode)
        yield


class Tape(Scoped):  # type: ignore[no-untyped-call]
    """Every operation of a pass. A tensor that is written to gets a new number, and so do its
    views."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module)
        self.nodes: list[Node] = []
        self.values: list[Tensor] = []
        self.held: list[Tensor] = []
        self.known: dict[int, int] = {}
        self._stored: dict[int, dict[int, Tensor]] = {}

    def now(self) -> int:
        return len(self.values)

    def number(self, t: Tensor, fresh: bool = False) -> int:
        if fresh or id(t) not in self.known:
            self.known[id(t)] = len(self.values)
            self.values.append(t)
            self.held.append(t)  # kept alive: no id is given twice
            with contextlib.suppress(Exception):  # tensors without storage
                self._stored.setdefault(t.untyped_storage().data_ptr(), {})[id(t)] = t
        return self.known[id(t)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        parts = self.by_formula(func, args, kwargs)
        if parts is not NotImplemented:
            return parts
        ins = [self.number(t) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        coded = tree_map(
            lambda x: Ref(self.number(x)) if isinstance(x, Tensor) else x, (args, kwargs)
        )
        written, others = self._written(func, args, kwargs)
        for each in (*written, *others):
            self.values[self.number(each)] = each.clone()
        out = func(*args, **kwargs)
        op = func._schema.name.split("::")[1]
        place = self.place(op, args)
        node = Node(op, func, coded[0], coded[1], ins, [], self.current, place, bool(written))
        for each in written:
            node.outs.append(self.number(each, fresh=True))
        for each in others:
            before = [self.known[id(each)], node.outs[0]]
            after = [self.number(each, fresh=True)]
            self.nodes.append(Node("aliased", None, (), {}, before, after, self.current))
        for t in tree_leaves(out):
            if isinstance(t, Tensor) and not any(t is each for each in written):
                node.outs.append(self.number(t, fresh=id(t) in self.known))
        self.nodes.append(node)
        return out

    def _written(self, func: Any, args: Any, kwargs: Any) -> tuple[list[Tensor], list[Tensor]]:
        """The tensors that an operation writes to, and others of their memory."""
        if not func._schema.is_mutable:
            return [], []
        named = func._schema.arguments
        given = dict(zip((each.name for each in named), args, strict=False)) | kwargs
        written = [
            given[each.name]
            for each in named
            if each.alias_info
            and each.alias_info.is_write
            and isinstance(given.get(each.name), Tensor)
        ]
        others = [
            each
            for t in written
            for each in self._stored.get(t.untyped_storage().data_ptr(), {}).values()
            if each is not t
        ]
        return written, others


class Graph:
    """The tape of one pass; who comes from whom is held as sets of bits."""

    def __init__(self, tape: Tape, inputs: Any, module: nn.Module) -> None:
        self.nodes = sorted(tape.nodes, key=lambda node: max(node.outs, default=0))
        self.values, self.calls = tape.values, tape.calls
        self.names = {
            tape.known[id(p)]: name for name, p in module.named_parameters() if id(p) in tape.known
        }
        given = [t for t in tree_leaves(inputs) if isinstance(t, Tensor)]
        order = {id(t): k for k, t in enumerate(given)}
        self.inputs = {v: order[id(t)] for v, t in enumerate(tape.held) if id(t) in order}
        self.data = [v in self.inputs for v in range(len(self.values))]  # comes from the inputs
        self.anc = [0] * len(self.values)
        self.maker: list[Node | None] = [None] * len(self.values)
        self.uses: list[list[Node]] = [[] for _ in self.values]
        for node in self.nodes:
            bits = 0
            for v in set(node.ins):
                bits |= self.anc[v] | 1 << v
                self.uses[v].append(node)
            for v in node.outs:
                self.maker[v] = node
                self.anc[v] |= bits
                self.data[v] |= any(self.data[u] for u in node.ins)

    def op(self, v: int) -> str:
        """The name of the operation that made v."""
        node = self.maker[v]
        return node.op if node else ""

    def made(self, v: int) -> Node:
        """The operation that made v."""
        node = self.maker[v]
        assert node is not None
        return node

    def ops(self, cuts: list[int]) -> str:
        """Names of the operations that make these tensors, moves left out."""
        named = dict.fromkeys(self.op(c) for c in cuts if self.op(c) not in MOVES)
        return " ".join(named) or "moves"

    def from_(self, v: int, a: int) -> bool:
        """Whether v is a, or comes from it."""
        return v == a or bool(self.anc[v] >> a & 1)

    def root(self, v: int) -> int:
        """v behind operations that keep every number in its place."""
        while self.op(v) in SAME:
            before = self.made(v).ins[0]
            if self.values[before].numel() != self.values[v].numel():
                break
            v = before
        return v

    def only(self, v: int, stop: int | None = None, ops: tuple[str, ...] = SCALES) -> int:
        """v behind operations that join it with constants."""
        v = self.root(v)
        while v != stop and self.op(v) in ops:
            data = [u for u in self.made(v).ins if self.data[u]]
            if len(data) != 1:
                break
            v = self.root(data[0])
        return v

    def sums(self, after: int) -> Iterator[tuple[int, tuple[int, int], tuple[int, int]]]:
        """(out, (p, q), (q, p)) of the sums of two tensors made behind `after`."""
        for node in self.nodes:
            if node.op in ADD and len(node.ins) == 2 and node.outs[0] > after:
                p, q = node.ins
                yield node.outs[0], (p, q), (q, p)

    def cuts(self, a: int, b: int) -> list[int]:
        """The tensors that every way from a to b goes through, in order, both ends with them."""
        on = [v for v in range(a, b + 1) if self.from_(v, a) and self.from_(b, v)]
        place, cover = {v: i for i, v in enumerate(on)}, [0] * (len(on) + 1)
        for v in on[1:]:
            for u in set(self.made(v).ins) & set(place):
                cover[place[u] + 1] += 1
                cover[place[v]] -= 1
        level, tensors = 0, []
        for i, v in enumerate(on):
            level += cover[i]
            tensors += [v] if level == 0 else []
        return tensors

    def block(self, product: int, end: int) -> Call | None:
        """The innermost call of a module that holds the product and gives `end`."""
        call = self.made(product).call
        while call is not None:
            if any(self.root(v) == self.root(end) for v in call.outs):
                return call
            call = call.within
        return None

    def block_name(self, product: int, end: int) -> str:
        """Its name; '' where there is none."""
        call = self.block(product, end)
        return call.name if call else ""

    def replay(self, target: int, given: dict[int, Tensor]) -> Tensor:
        """The value of `target` had the tensors {number: value} been others.

        Raises `NotReplayable` where an operation does not take them.
        """
        bits, known, todo = sum(1 << v for v in given), dict(given), [target]
        while todo:
            v = todo[-1]
            if v in known or not self.anc[v] & bits:
                known.setdefault(v, self.values[v])
                todo.pop()
                continue
            node = self.made(v)
            rest = [u for u in node.ins if u not in known and self.anc[u] & bits]
            if rest:
                todo += rest
                continue
            known |= {
                u: t for u, t in zip(node.outs, self._again(node, known), strict=False)
                if u not in known
            }  # fmt: skip
        return known[target]

    def _again(self, node: Node, known: dict[int, Tensor]) -> list[Tensor]:
        if node.func is None:
            raise NotReplayable("a view is written to")
        args = self._given(node.args, known)
        kwargs = {name: self._given(x, known) for name, x in node.kwargs.items()}
        args = (args[0].clone(), *args[1:]) if node.writes else args
        try:
            outs = tree_leaves(node.func(*args, **kwargs))
        except Exception as error:  # what anybody's operations raise
            raise NotReplayable(f"{node.op}: {str(error)[:60]}") from error
        return [t for t in outs if isinstance(t, Tensor)]

    def _given(self, x: Any, known: dict[int, Tensor]) -> Any:
        """An argument with its tensors. A closure would keep them until garbage is collected."""
        if isinstance(x, Ref):
            return known.get(x.v, self.values[x.v])
        return type(x)(self._given(y, known) for y in x) if isinstance(x, tuple | list) else x

    def constants(self, a: int, b: int, ops: frozenset[str] = PRODUCT) -> list[int]:
        """What enters such operations (none: all) on the way from a to b and does not come from the
        inputs, as it was in front of moves: weights, biases, gains."""
        constants: dict[int, None] = {}
        for v, node in enumerate(self.maker[a + 1 : b + 1], a + 1):
            if node and (not ops or node.op in ops) and self.from_(v, a) and self.from_(b, v):
                for u in node.ins:
                    while u not in self.names and self.op(u) in MOVES and not self.data[u]:
                        u = self.made(u).ins[0]
                    if not self.data[u] and self.values[u].is_floating_point():
                        constants[self._stored(u)] = None
        return list(constants)

    def _stored(self, v: int) -> int:
        """v, or a view of it that the module holds by name."""
        views = (u for node in self.uses[v] if node.op in MOVES for u in node.outs)
        return v if v in self.names or self.name(v) else next(filter(self.name, views), v)

    def name(self, v: int) -> str:
        """Of a parameter, or of a tensor that a parametrisation of the module makes; or ''."""
        if v in self.names:
            return self.names[v]
        for node in self.uses[v]:
            for use in (node, *(each for u in node.outs for each in self.uses[u])):
                held = getattr(use.call.module, "parametrizations", {}) if use.call else {}
                for name in held:
                    own = getattr(use.call.module, name)  # type: ignore[union-attr]
                    if own.shape == self.values[v].shape and torch.equal(own, self.values[v]):
                        return f"{use.call.name}.{name}"  # type: ignore[union-attr]
        return ""

    def place(self, v: int) -> Place | None:
        """Of the operation that made v; of an input, its number."""
        if v in self.inputs:
            return Place("", 0, "input", self.inputs[v])
        node = self.maker[v]
        return node.place if node else None


def like(x: Tensor, y: Tensor) -> Tensor:
    """y with the strides of x, where it lies, in the dtype of y where that is float64."""
    dtype = y.dtype if y.dtype == torch.float64 else x.dtype
    return torch.empty_like(x, dtype=dtype).copy_(y)


def off(made: Tensor, seen: Tensor) -> float:
    """The largest difference relative to the largest number seen."""
    return float((made - seen).abs().max() / seen.abs().max().clamp_min(1e-30))


@torch.no_grad()
def watch(run: Callable[[], Any], module: nn.Module, inputs: Any) -> Graph:
    """The graph of one pass, `run()`, of a module on `inputs`."""
    tape = Tape(module)
    with running(tape):
        run()
    return Graph(tape, inputs, module)
