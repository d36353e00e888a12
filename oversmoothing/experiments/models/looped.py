"""Attention looped over its heads, as one product of all of them.

Code that makes A_h V_h head by head and joins them by one `cat` leaves as many products on the tape
as there are heads. Behind them, in front of the `cat`, the tape is given what code without the loop
does: A and V of all heads joined, their product, and the parts of it, which the `cat` takes. Each
is run on the numbers of the pass, so that it can be read and run again as any other operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map

from oversmoothing.experiments.models.heads import Product
from oversmoothing.experiments.models.pass_graph import Graph, Joined
from oversmoothing.experiments.models.tape import MOVES, Node, Ref

aten = torch.ops.aten


class _Added:
    """Operations run in front of the node `before`, their tensors numbered behind all others until
    `Graph.numbered`."""

    def __init__(self, g: Graph, before: Node) -> None:
        self.g, self.before = g, before
        self.nodes: list[Node] = []

    def run(self, func: Any, ins: Sequence[int], args: Any) -> int:
        g, out = self.g, len(self.g.values)
        g.values.append(func(*g.given(args, {})))
        op = func._schema.name.split("::")[1]
        self.nodes.append(Node(op, func, args, {}, list(ins), [out], self.before.call))
        return out

    def joined(self, each: Sequence[int]) -> int:
        """Matrices of several products as those of one, [matrices, n, r]."""
        g = self.g
        if g.values[each[0]].ndim == 2:
            each = [self.run(aten.unsqueeze.default, [v], (Ref(v), 0)) for v in each]
        return self.run(aten.cat.default, each, ([Ref(v) for v in each], 0))

    def product(self, left: Sequence[int], right: Sequence[int]) -> int:
        a, b = self.joined(left), self.joined(right)
        return self.run(aten.bmm.default, (a, b), (Ref(a), Ref(b)))


def join_heads(g: Graph, products: Sequence[tuple[Product, Node | None]]) -> None:
    """Each group of products, with their q k^T, that one `cat` joins becomes one."""
    groups: dict[int, list[tuple[Product, Node | None]]] = {}
    for each in products:
        cat = _cat(g, each[0].out)
        if cat is not None and not each[0].flipped and not each[0].averaged:
            groups.setdefault(cat.outs[0], []).append(each)
    added = [
        _join(g, g.made(v), group)
        for v, group in groups.items()
        if len(group) == len(set(g.made(v).ins)) > 1 and _alike(g, [p for p, _ in group])
    ]
    if added:
        gone = {id(node) for each in g.joined.values() for node in each.products}
        g.nodes = [node for node in g.nodes if id(node) not in gone]
        g.numbered([(each.before, each.nodes) for each in added])


def _cat(g: Graph, v: int) -> Node | None:
    """The `cat` that takes v, moved at most."""
    while len(g.uses[v]) == 1:
        node = g.uses[v][0]
        if node.op in ("cat", "stack"):
            return node
        if node.op not in MOVES or len(node.outs) != 1 or node.writes:
            return None
        v = node.outs[0]
    return None


def _alike(g: Graph, group: Sequence[Product]) -> bool:
    """Whether they are of one shape, and none comes from another."""
    shapes = {(g.values[p.A].shape, g.values[p.V].shape) for p in group}
    return len(shapes) == 1 and not any(
        g.from_(p.A, q.out) or g.from_(p.V, q.out) for p in group for q in group
    )


def _join(g: Graph, cat: Node, group: Sequence[tuple[Product, Node | None]]) -> _Added:
    added = _Added(g, cat)
    pairs = [scores.ins[-2:] for _, scores in group if scores is not None]
    known = len(pairs) == len(group) and len({g.values[q].shape for q, _ in pairs}) == 1
    scored = added.product([q for q, _ in pairs], [k for _, k in pairs]) if known else None
    scores = None if scored is None else added.nodes[-1]
    out = added.product([p.A for p, _ in group], [p.V for p, _ in group])
    g.joined[out] = Joined([g.made(p.out) for p, _ in group], scores)
    taken = {}
    for k, (p, _) in enumerate(group):
        shape = g.values[p.out].shape
        size = 1 if len(shape) == 2 else shape[0]
        v = added.run(aten.slice.Tensor, [out], (Ref(out), 0, k * size, (k + 1) * size))
        if len(shape) == 2:
            v = added.run(aten.squeeze.dim, [v], (Ref(v), 0))
        taken[p.out] = v
        old = p.out
        while (node := g.uses[old][0]) is not cat:
            rest = tree_map(lambda x, v=v: Ref(v) if isinstance(x, Ref) else x, node.args[1:])
            v, old = added.run(node.func, [v], (Ref(v), *rest)), node.outs[0]
        taken[old] = v
    cat.ins = [taken[v] for v in cat.ins]
    cat.args = ([Ref(taken[each.v]) for each in cat.args[0]], *cat.args[1:])
    return added
