"""Every operation of one forward pass, written down with its tensors and the module that ran it.

Nothing is computed anew and nothing in the module changes: fused attention is taken apart by
PyTorch itself (its kernel by formula), so that eager, fused, einsum, `nn.MultiheadAttention` and
traced code leave the same operations.

A place in a pass, `Place`, outlives it: the same operation of another pass on other inputs.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
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
SAME = frozenset((
    "view", "_unsafe_view", "reshape", "clone", "alias", "detach", "contiguous", "_reshape_alias",
    "_to_copy", "native_dropout", "unsqueeze", "squeeze", "lift_fresh", "expand",
))  # fmt: skip
MOVES = SAME | {
    "transpose", "t", "permute", "slice", "select", "split", "split_with_sizes", "unbind", "roll",
    "repeat", "index", "index_select", "copy", "as_strided", "constant_pad_nd", "unfold", "im2col",
}  # fmt: skip
ADD = ("add", "add_")
SOFTMAX = ("_softmax", "_safe_softmax", "softmax")
PAIRS = ("bmm", "mm", "baddbmm")
PRODUCT = frozenset((*PAIRS, "addmm", "convolution"))
SCALES = ("mul", "div", "mul_", "div_")
aten = torch.ops.aten
# Sums written as one operation, x - y, x + a y, x + a y z, and the sum x + z that does it.
SUMS = {
    aten.sub.Tensor: aten.add.Tensor, aten.sub_.Tensor: aten.add_.Tensor,
    aten.add.Tensor: aten.add.Tensor, aten.add_.Tensor: aten.add_.Tensor,
    aten.addcmul.default: aten.add.Tensor, aten.addcmul_.default: aten.add_.Tensor,
}  # fmt: skip


def as_sum(func: Any, x: Tensor, y: Any, *more: Any, **kwargs: Any) -> Any:
    """Such an operation on tensors of tokens as x + z; NotImplemented where it is none."""
    weight = kwargs.get("alpha", kwargs.get("value", 1))
    weight = -weight if "sub" in func._schema.name else weight
    if not (isinstance(y, Tensor) and x.is_floating_point()):
        return NotImplemented
    if not more and (weight == 1 or x.shape != y.shape):
        return NotImplemented
    z = aten.mul.Tensor(y, more[0]) if more else y
    z = aten.neg.default(z) if weight == -1 else z if weight == 1 else aten.mul.Tensor(z, weight)
    return SUMS[func](x, z)


def leaves(held: Any) -> list[Tensor]:
    """The tensors within."""
    return [t for t in tree_leaves(held) if isinstance(t, Tensor)]


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


def operation(func: Any) -> str:
    """Its name, whatever its arguments."""
    name: str = func._schema.name.split("::")[1]
    return name


@dataclass(frozen=True)
class Ref:
    """A tensor of the tape within the arguments of an operation."""

    v: int


@dataclass
class Call:
    """A call of a module: numbers of the tensors that went in and came out, the first made within
    and the first behind it, and the call and operations within."""

    module: nn.Module
    name: str
    number: int
    within: Call | None
    ins: list[int] = field(default_factory=list)
    outs: list[int] = field(default_factory=list)
    start: int = 0
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
    """Knows at every operation which call of which module makes it, and its place there; paused:
    what is called now is none of the pass."""

    supports_higher_order_operators = True

    def __init__(self, module: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.root = module
        self.names = {id(each): name for name, each in module.named_modules()}
        self.calls: list[Call] = []
        self.apart = self.paused = False
        self.current = Call(module, "", 0, None)
        self._times: Counter[str] = Counter()
        self._fixed = {_stored(p) for p in module.parameters()}

    def enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        """A module is called."""
        if not self.paused:
            name = self.names.get(id(module), "")
            self.current = Call(module, name, self._times[name], self.current)
            self._times[name] += 1
            self.calls.append(self.current)
            self.around(self.current, "given", leaves((args, kwargs)))

    def leave(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """It has given `output`."""
        if not self.paused:
            call = self.current
            assert call.within is not None
            self.current = call.within
            self.around(call, "gives", leaves(output))

    def around(self, call: Call, kind: str, tensors: list[Tensor]) -> None:
        """These tensors are 'given' to a call, or it 'gives' them."""

    def place(self, op: str, args: Any) -> Place:
        """Of the operation that runs now. Its kind is the same in passes with a mask and without,
        in place or not, of one input or many. A product with a weight is another kind, since with
        its bias it may be one operation or two."""
        kind, call = "softmax" if op in SOFTMAX else op.rstrip("_"), self.current
        if op in PAIRS:
            weighed = any(_stored(t) in self._fixed for t in args[-2:])
            kind = "linear" if weighed else "product"
        call.counts[kind] += 1
        return Place(call.name, call.number, kind, call.counts[kind])

    def by_formula(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What flex attention and `SUMS` give, made of operations that are seen one by
        one; NotImplemented for any other operation outside of the first."""
        if isinstance(func, HigherOrderOperator):
            apart, self.apart = self.apart, True
            try:
                with self:
                    return func.py_kernels[DispatchKey.CompositeExplicitAutograd](*args, **kwargs)
            finally:
                self.apart = apart
        if func in SUMS:
            with self:
                return as_sum(func, *args, **kwargs)
        if not self.apart:
            return NotImplemented
        with self:  # what autograd has taken apart everywhere else
            return func.decompose(*args, **kwargs)


def _stored(t: Any) -> int:
    """Where a tensor's numbers are; -1 for what has no memory of its own."""
    t = t.stored if isinstance(t, Widened) else t
    return t.untyped_storage().data_ptr() or -1 if type(t) in (Tensor, nn.Parameter) else -1


@contextmanager
def running(mode: Scoped) -> Iterator[None]:
    """The mode on and told of calls; attention by its formula, nothing fused or compiled."""
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
    """Every operation of a pass; a tensor that is written to gets a new number, its views too."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module)
        self.nodes: list[Node] = []
        self.values: list[Tensor] = []
        self.held: list[Tensor] = []
        self.known: dict[int, int] = {}
        self._stored: dict[int, dict[int, Tensor]] = {}

    def around(self, call: Call, kind: str, tensors: list[Tensor]) -> None:
        start, numbers = len(self.values), [self.number(t) for t in tensors]
        if kind == "given":
            call.start, call.ins = start, numbers
        else:
            call.outs, call.stop = numbers, len(self.values)

    def number(self, t: Tensor, fresh: bool = False) -> int:
        """Of a tensor."""
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
        ins = [self.number(t) for t in leaves((args, kwargs))]
        coded = tree_map(
            lambda x: Ref(self.number(x)) if isinstance(x, Tensor) else x, (args, kwargs)
        )
        written, others = self._written(func, args, kwargs)
        for each in (*written, *others):
            self.values[self.number(each)] = each.clone()
        out = func(*args, **kwargs)
        op = operation(func)
        place = self.place(op, args)
        node = Node(op, func, coded[0], coded[1], ins, [], self.current, place, bool(written))
        for each in written:
            node.outs.append(self.number(each, fresh=True))
        for each in others:
            before = [self.known[id(each)], node.outs[0]]
            after = [self.number(each, fresh=True)]
            self.nodes.append(Node("aliased", None, (), {}, before, after, self.current))
        for t in leaves(out):
            if not any(t is each for each in written):
                node.outs.append(self.number(t, fresh=id(t) in self.known))
        self.nodes.append(node)
        return out

    def _written(self, func: Any, args: Any, kwargs: Any) -> tuple[list[Tensor], list[Tensor]]:
        """The tensors that an operation writes to, and others of their memory."""
        if not func._schema.is_mutable:
            return [], []
        named = func._schema.arguments
        given = dict(zip((each.name for each in named), args, strict=False)) | kwargs
        changed = (given.get(x.name) for x in named if x.alias_info and x.alias_info.is_write)
        written = [t for t in changed if isinstance(t, Tensor)]
        others = [
            each
            for t in written
            for each in self._stored.get(t.untyped_storage().data_ptr(), {}).values()
            if each is not t
        ]
        return written, others
