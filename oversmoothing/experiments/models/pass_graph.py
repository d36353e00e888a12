"""The operations of one pass as a graph: who comes from whom, and what pieces of it are.

Pieces of the pass can be run again on other numbers (`Graph.replay`), which is how the reader
(`experiments.models.reader`) tells what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.models import tape
from oversmoothing.experiments.models.model import Norm
from oversmoothing.experiments.models.tape import Call, Node, Ref, Tape, leaves, running

Made = TypeVar("Made")


class Joined(NamedTuple):
    """The products, one a head, that one product of all heads stands for, and its q k^T."""

    products: list[Node]
    scores: Node | None


class Graph:
    """The tape of one pass; who comes from whom is held as sets of bits."""

    def __init__(self, written: Tape, inputs: Any, module: nn.Module) -> None:
        self.nodes = sorted(written.nodes, key=lambda node: max(node.outs, default=0))
        self.values, self.calls = written.values, written.calls
        known, named = written.known, module.named_parameters()
        self.names = {known[id(p)]: name for name, p in named if id(p) in known}
        order = {id(t): k for k, t in enumerate(leaves(inputs))}
        self.inputs = {v: order[id(t)] for v, t in enumerate(written.held) if id(t) in order}
        self.joined: dict[int, Joined] = {}  # by the product that stands for others
        self.link()

    def link(self) -> None:
        """Who makes, uses and comes from whom, by the present nodes."""
        self.data = [v in self.inputs for v in range(len(self.values))]  # comes from the inputs
        self.norms: dict[tuple[int, int], Norm | None] = {}  # of `fits.norm_of`, by its ends
        self.known: dict[Hashable, Any] = {}  # of `once`
        self._roots: dict[int, int] = {}
        self._ends: list[tuple[set[int], set[int], Call]] = []
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
        # Of each softmax, its numbers and its logits.
        self.softmaxes = dict(pair for node in self.nodes if (pair := self._softmax(node)))

    def run(self, func: Any, args: Any, call: Call | None) -> Node:
        """An operation on numbers of the pass, whose tensor is numbered last until `numbered`."""
        self.values.append(func(*self.given(args, {})))
        ins = [x.v for x in tree_leaves(args) if isinstance(x, Ref)]
        return Node(tape.operation(func), func, args, {}, ins, [len(self.values) - 1], call)

    def numbered(self, added: Sequence[tuple[Node, list[Node]]]) -> None:
        """Places nodes, whose tensors are numbered last, in front of others: all numbers anew."""
        before = {v: node.outs[0] for node, nodes in added for each in nodes for v in each.outs}
        order = sorted(range(len(self.values)), key=lambda v: (before.get(v, v), v not in before))
        new = {v: k for k, v in enumerate(order)}
        self.nodes = sorted(
            [*self.nodes, *(each for _, nodes in added for each in nodes)],
            key=lambda node: max((new[v] for v in node.outs), default=0),
        )
        for node in self.nodes:
            node.args, node.kwargs = tree_map(
                lambda x: Ref(new[x.v]) if isinstance(x, Ref) else x, (node.args, node.kwargs)
            )
            node.ins, node.outs = [new[v] for v in node.ins], [new[v] for v in node.outs]
        for call in self.calls:
            call.ins, call.outs = [new[v] for v in call.ins], [new[v] for v in call.outs]
            call.start, call.stop = (new.get(at, len(order)) for at in (call.start, call.stop))
        self.values = [self.values[v] for v in order]
        self.names = {new[v]: name for v, name in self.names.items()}
        self.inputs = {new[v]: k for v, k in self.inputs.items()}
        self.joined = {new[v]: each for v, each in self.joined.items()}
        self.link()

    def _softmax(self, node: Node) -> tuple[int, int] | None:
        """(shares, logits) of a softmax: one operation, or exp(x) / sum exp(x)."""
        if node.op in tape.SOFTMAX:
            return node.outs[0], node.ins[0]
        if node.op not in ("div", "div_") or len(node.ins) != 2:
            return None
        share, total = (self.root(v) for v in node.ins)
        if self.op(share) != "exp" or self.op(total) != "sum":
            return None
        if self.root(self.made(total).ins[0]) != share:
            return None
        if bool((self.values[node.outs[0]].sum(-1) - 1).abs().max() > 1e-4):
            return None
        logits = self.made(share).ins[0]
        if self.op(logits) == "sub" and self.values[self.made(logits).ins[-1]].shape[-1] == 1:
            logits = self.made(logits).ins[0]  # a number was taken off each row: no matter
        return node.outs[0], logits

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
        named = dict.fromkeys(self.op(c) for c in cuts if self.op(c) not in tape.MOVES)
        return " ".join(named) or "moves"

    def from_(self, v: int, a: int) -> bool:
        """Whether v is a, or comes from it."""
        return v == a or bool(self.anc[v] >> a & 1)

    def root(self, v: int) -> int:
        """v behind operations that keep every number in its place."""
        if v not in self._roots:
            before = self.made(v).ins[0] if self.op(v) in tape.SAME else v
            same = before != v and self.values[before].numel() == self.values[v].numel()
            self._roots[v] = self.root(before) if same else v
        return self._roots[v]

    def ends(self) -> list[tuple[set[int], set[int], Call]]:
        """Of each call: the roots of the data that it was given and of what it gave, and it."""
        if not self._ends:
            for call in self.calls:
                given = {self.root(v) for v in call.ins if self.data[v]}
                self._ends.append((given, {self.root(v) for v in call.outs}, call))
        return self._ends

    def only(self, v: int, stop: int | None = None, ops: tuple[str, ...] = tape.SCALES) -> int:
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
            if node.op in tape.ADD and len(node.ins) == 2 and node.outs[0] > after:
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

    def between(self, a: int, b: int) -> Iterator[Node]:
        """The operations on the ways from a to b."""
        for v, node in enumerate(self.maker[a + 1 : b + 1], a + 1):
            if node and self.from_(v, a) and self.from_(b, v):
                yield node

    def multiplies(self, a: int, b: int) -> bool:
        """Whether a product stands on a way from a to b."""
        return any(node.op in tape.PRODUCT for node in self.between(a, b))

    def alike(self, a: int, b: int) -> Hashable:
        """What is done on the ways from a to b: equal where the operations, their arguments, the
        shapes of tensors and whole numbers among the constants are, whatever the other numbers."""
        nodes, place = list(self.between(a, b)), {a: 0}
        for node in nodes:
            place |= {v: len(place) + k for k, v in enumerate(node.outs)}

        def told(x: Any) -> Hashable:
            if isinstance(x, tuple | list):
                return tuple(map(told, x))
            if not isinstance(x, Ref):
                return repr(x)
            t = self.values[x.v]
            whole = not (t.is_floating_point() or self.data[x.v])
            held = t.cpu().numpy().tobytes() if whole else b""
            return place.get(x.v, -1), t.shape, held

        done = ((node.op, told(node.args), told([*node.kwargs.items()])) for node in nodes)
        return self.values[a].shape, place.get(b, -1), tuple(done)

    def once(self, what: str, a: int, b: int, make: Callable[[], Made]) -> Made:
        """`make()`, which depends on nothing but what is `alike` from a to b: once for all such."""
        key = what, self.alike(a, b)
        if key not in self.known:
            self.known[key] = make()
        made: Made = self.known[key]
        return made

    def block(self, product: int, end: int) -> Call:
        """The innermost call that holds the product and gives `end`, or that of the whole."""
        call = self.made(product).call
        assert call is not None
        while call.within and all(self.root(v) != self.root(end) for v in call.outs):
            call = call.within
        return call

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
            for u, t in zip(node.outs, self._again(node, known), strict=False):
                known.setdefault(u, t)
        return known[target]

    def _again(self, node: Node, known: dict[int, Tensor]) -> list[Tensor]:
        if node.func is None:
            raise tape.NotReplayable("a view is written to")
        args = self.given(node.args, known)
        kwargs = {name: self.given(x, known) for name, x in node.kwargs.items()}
        args = (args[0].clone(), *args[1:]) if node.writes else args
        try:
            return leaves(node.func(*args, **kwargs))
        except Exception as error:  # what anybody's operations raise
            raise tape.NotReplayable(f"{node.op}: {str(error)[:60]}") from error

    def given(self, x: Any, known: dict[int, Tensor]) -> Any:
        """An argument with its tensors. A closure would keep them until garbage is collected."""
        if isinstance(x, Ref):
            return known.get(x.v, self.values[x.v])
        return type(x)(self.given(y, known) for y in x) if isinstance(x, tuple | list) else x

    def constants(self, a: int, b: int, ops: frozenset[str] = tape.PRODUCT) -> list[int]:
        """What enters such operations (none: all) on the way from a to b and does not come from the
        inputs, as it was in front of moves: weights, biases, gains."""
        constants: dict[int, None] = {}
        for node in self.between(a, b):
            if not ops or node.op in ops:
                for u in node.ins:
                    while u not in self.names and self.op(u) in tape.MOVES and not self.data[u]:
                        u = self.made(u).ins[0]
                    if not self.data[u] and self.values[u].is_floating_point():
                        constants[self._stored(u)] = None
        return list(constants)

    def _stored(self, v: int) -> int:
        """v, or a view of it that the module holds by name."""
        views = (u for node in self.uses[v] if node.op in tape.MOVES for u in node.outs)
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


def like(x: Tensor, y: Tensor) -> Tensor:
    """y with the strides of x, where it lies, in the dtype of y where that is float64."""
    dtype = y.dtype if y.dtype == torch.float64 else x.dtype
    return torch.empty_like(x, dtype=dtype).copy_(y)


def off(made: Tensor, seen: Tensor) -> float:
    """The largest difference relative to the largest number seen."""
    return float((made - seen).abs().max() / seen.abs().max().clamp_min(1e-30))


@torch.no_grad()
def watch(run: Callable[[Any], Any], module: nn.Module, inputs: Any) -> Graph:
    """The graph of one pass, `run(inputs)`, of a module."""
    written = Tape(module)
    with running(written):
        run(inputs)
    return Graph(written, inputs, module)
