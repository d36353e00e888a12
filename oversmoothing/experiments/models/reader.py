"""Every attention sublayer of a watched pass: A, W_V, W_O, W_Q, W_K, norms and streams.

No name of a module or class is in it. Of the tape of one pass (`experiments.models.tape`):
(a) A is what a softmax became when it is multiplied by a tensor of data. Nothing of it is computed
    anew: masks, scaling, caps, sinks, position terms, rotations are in it.
(b) The first sum behind A V whose other term its values (or logits) came from is the residual sum;
    a term in between is a parallel sublayer. The next such sum is the FFN's.
(c) The values' linear part begins at the first tensor that all ways from the stream pass and of
    which V is affine. Numbered entries pushed from A V to the output projection tell which column
    belongs to which head (`fits.linear_map` gives W_V and W_O). Queries and keys likewise.
(d) Norms are fitted (`fits.norm_of`); Pre-, Post-LN and parallel follow from where they stand.
(e) Held against the pass: A N(X) W_V W_O + bias is the sublayer's output, A is stochastic, the
    stream after is before + sublayer, the FFN acts token by token, a layer ends where the next one
    begins.
Code that makes A_h V_h head by head and joins them by one `cat` leaves as many products on the tape
as there are heads. In front of the `cat` the tape is given what code without the loop does, each
run on the numbers of the pass: A and V of all heads joined, their product, and the parts of it,
which the `cat` takes.

What is not found is said in `lacks`, what is unusual in `notes`. What is true of one pass is said
of that pass: masks, experts.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.utils._pytree import tree_map

from oversmoothing.experiments.models import tape
from oversmoothing.experiments.models.fits import mixes, norm_of, norm_within
from oversmoothing.experiments.models.heads import HeadsReader, Lacking, Product, Reading
from oversmoothing.experiments.models.model import NO_NORM, Norm
from oversmoothing.experiments.models.pass_graph import Graph, Joined, off
from oversmoothing.experiments.models.tape import ADD, MOVES, PAIRS, PRODUCT, SCALES, Node, Ref

# What may stand between a softmax and its product with values.
POINT = {"mul", "div", "add", "sub", "where", "masked_fill", "masked_fill_", "nan_to_num", "clamp",
         "cat", "mul_", "div_", "mean"}  # fmt: skip
SUMS = 1e-5
# Operations, at most, of a norm that is written out.
WRITTEN = 16
UNSEEN = "no softmax over tokens multiplies values"
SOME = "the residual sum is of some tokens alone, such as CLS"
NO_SUM = "no residual sum behind the attention"
aten = torch.ops.aten


def products(g: Graph) -> list[Product]:
    """Each product of a softmax with values, in order."""
    outputs: dict[int, Product] = {}
    for shares, logits in g.softmaxes.items():
        if not g.data[logits]:
            continue
        todo, seen = [(shares, False)], set()
        while todo:
            v, averaged = todo.pop()
            for use in g.uses[v]:
                out = use.outs[0] if use.outs else -1
                if use.op in PAIRS and out not in outputs:
                    a, b = use.ins[-2:]
                    if g.data[b if a == v else a]:
                        pair = (a, b) if a == v else (b, a)
                        outputs[out] = Product(*pair, out, logits, shares, a != v, averaged)
                elif use.op in MOVES | POINT and out not in seen:
                    seen.add(out)
                    todo += [(u, averaged or use.op == "mean") for u in use.outs]
    return [outputs[out] for out in sorted(outputs)]


def _join_heads(g: Graph) -> None:
    """Each group of products that one `cat` joins becomes one."""
    groups: dict[int, list[Product]] = {}
    for each in products(g):
        cat = _cat(g, each.out)
        if cat is not None and not each.flipped and not each.averaged:
            groups.setdefault(cat.outs[0], []).append(each)
    added = [
        (g.made(v), _joined(g, g.made(v), group))
        for v, group in groups.items()
        if len(group) == len(set(g.made(v).ins)) > 1 and _alike(g, group)
    ]
    if added:
        gone = {id(node) for each in g.joined.values() for node in each.products}
        g.nodes = [node for node in g.nodes if id(node) not in gone]
        g.numbered(added)


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


def _alike(g: Graph, group: list[Product]) -> bool:
    """Whether they are of one shape, and none comes from another."""
    shapes = {(g.values[p.A].shape, g.values[p.V].shape) for p in group}
    return len(shapes) == 1 and not any(
        g.from_(p.A, q.out) or g.from_(p.V, q.out) for p in group for q in group
    )


def _joined(g: Graph, cat: Node, group: list[Product]) -> list[Node]:
    """The operations that are to stand in front of a `cat`, which takes what they give."""
    added: list[Node] = []

    def run(func: object, *args: object) -> Ref:
        added.append(g.run(func, args, cat.call))
        return Ref(added[-1].outs[0])

    def product(pairs: Iterable[tuple[int, ...] | list[int]]) -> Ref:
        """Of matrices of several products, joined as those of one, [matrices, n, r]."""
        a, b = (
            run(aten.cat.default, [
                run(aten.unsqueeze.default, Ref(v), 0) if g.values[v].ndim == 2 else Ref(v)
                for v in each
            ], 0)
            for each in zip(*pairs, strict=True)
        )  # fmt: skip
        return run(aten.bmm.default, a, b)

    logits = [scores(g, p.logits) for p in group]
    pairs = [node.ins[-2:] for node in logits if node is not None]
    known = len(pairs) == len(group) and len({g.values[q].shape for q, _ in pairs}) == 1
    if known:
        product(pairs)
    scored = added[-1] if known else None
    out, taken = product((p.A, p.V) for p in group), {}
    g.joined[out.v] = Joined([g.made(p.out) for p in group], scored)
    for k, p in enumerate(group):
        shape, old = g.values[p.out].shape, p.out
        size = 1 if len(shape) == 2 else shape[0]
        part = run(aten.slice.Tensor, out, 0, k * size, (k + 1) * size)
        part = run(aten.squeeze.dim, part, 0) if len(shape) == 2 else part
        while (node := g.uses[old][0]) is not cat:
            args = tree_map(lambda x, v=part: v if isinstance(x, Ref) else x, node.args)
            part, old = run(node.func, *args), node.outs[0]
        taken[old] = part
    cat.ins = [taken[v].v for v in cat.ins]
    cat.args = ([taken[each.v] for each in cat.args[0]], *cat.args[1:])
    return added


@torch.no_grad()
def read(g: Graph, module: nn.Module, inputs: int) -> list[Reading]:
    """The attention sublayers of a watched pass of so many inputs, in order."""
    _join_heads(g)
    reads = [_attention(g, module, each, inputs) for each in products(g)]
    for k, r in enumerate(reads):
        if not r.placed:
            continue
        behind = (s for s in reads[k + 1 :] if s.placed and g.from_(s.before, r.total))
        after = next(behind, None)
        if after and after.kind == "cross" and g.root(after.before) == r.total:
            r.notes.append("cross-attention follows")
            continue
        _second(g, r, after.before if after else None)
        if r.end >= 0:
            _behind(g, r)
            _joint(g, r, after, reads[:k])
    return reads


def _joint(g: Graph, r: Reading, after: Reading | None, earlier: list[Reading]) -> None:
    """Whether a layer ends where the next one begins, and the first one begins the stream."""
    val = g.values
    v = g.only(after.before, r.end, (*ADD, "mul", "div")) if after else -1
    reached = bool(after) and (v == r.end or torch.equal(val[v], val[r.end]))
    further = any(
        g.root(p) == r.end and q != p and g.from_(q, r.end)
        for out, *ways in g.sums(r.end)
        for p, q in ways
        if val[out].shape == val[r.end].shape
    )
    if not reached and further:
        r.lacks.append("further sublayers stand behind this layer")
    elif after and not reached:
        r.notes.append("a stack ends here")
    elif after and not torch.equal(val[after.before].flatten(), val[r.end].flatten()):
        r.lacks.append("the stream changes behind this layer: something is added or multiplied")
    first = not any(g.from_(r.before, s.total) for s in earlier if s.placed)
    made = g.maker[r.before]
    if first and made and made.op in ADD and len(made.ins) == 2:
        ways = ((p, q) for p, q in (made.ins, made.ins[::-1]) if g.data[p] and p != q)
        if any(g.from_(q, g.root(p)) and val[p].is_floating_point() for p, q in ways):
            r.lacks.append("further sublayers stand in front of the first attention")


def scores(g: Graph, v: int) -> Node | None:
    """The product q k^T of which the logits v are made."""
    for _ in range(40):
        node = g.maker[v]
        if node is None or node.op in PRODUCT or not node.ins:
            break
        v = max([u for u in node.ins if g.data[u]] or node.ins,
                key=lambda u: (g.values[u].numel(), u))  # fmt: skip
    return g.maker[v] if g.op(v) in PAIRS else None


def _attention(g: Graph, module: nn.Module, product: Product, inputs: int) -> Reading:
    val, V, out = g.values, product.V, product.out
    joined = g.joined.get(product.out)
    logits = joined.scores if joined else scores(g, product.logits)
    r = Reading(product, inputs)
    A = val[product.A].mT if product.flipped else val[product.A]
    r.sinks = val[product.softmax].shape[-1] == A.shape[-1] + 1
    if g.root(V) in g.softmaxes:
        r.lacks.append("a softmax is multiplied by a softmax")
        return r
    partner = beside = stream = branch = None
    some = False
    for total, *ways in g.sums(out):  # noqa: B007  it is the last one that counts
        # The first sum of what comes from the attention and what its values or logits came from.
        for p, q in ways:
            if g.from_(q, out) and not g.from_(p, out):
                break
        else:
            continue
        if not g.data[p] or val[p].shape != val[q].shape or not val[p].is_floating_point():
            continue
        root, bare = g.root(p), g.only(p)
        if g.from_(V, root) or g.from_(product.A, root):
            stream, branch = root, q
            break
        if g.from_(V, bare):
            stream, branch = bare, q
            r.lacks.append("the residual itself is multiplied")
            break
        part = g.made(root).ins[0] if g.op(root) in MOVES else root
        some = some or (g.from_(V, part) and val[part].numel() > val[root].numel())
        partner, beside = (q, p) if partner is None else (partner, beside)
    if stream is None or branch is None:
        shared = any(
            g.from_(product.A, u) and g.from_(V, u)
            for u in range(min(product.A, V))
            if g.data[u] and val[u].ndim == 3
        )
        r.kind = "self" if shared and A.shape[-2] == A.shape[-1] else "pooling"
        r.lacks.append(SOME if some else NO_SUM)
        return r
    r.before, r.total, r.after = stream, total, total
    if not g.from_(V, stream):
        r.kind = "cross"
        r.lacks.append("cross-attention: the values come from another sequence")
        return r
    summed = off(val[stream].reshape(val[branch].shape) + val[branch], val[total])
    if summed > SUMS and not r.lacks:
        r.lacks.append("the residual sum is weighted")
    try:
        if partner is not None and beside is not None:
            _beside(g, r, stream, beside)
        HeadsReader(g, module, r).read(branch if partner is None else partner, logits)
    except tape.NotReplayable as error:
        r.lacks.append(f"cannot be replayed ({error})")
    except Lacking as lack:
        r.lacks.append(str(lack))
    return r


def _beside(g: Graph, r: Reading, stream: int, beside: int) -> None:
    """The sublayer whose output is added together with the attention's."""
    r.placement, r.ffn_end = "parallel", beside
    if g.from_(beside, stream):
        _fed(g, r, stream, beside)
        if mixes(g, stream, beside):
            r.lacks.append("what is added beside the attention mixes tokens too")


def _fed(g: Graph, r: Reading, stream: int, given: int) -> None:
    """The norm in front of the FFN, and where it begins and ends."""
    pair = norm_within(g, stream, given)
    r.norm_ffn, r.fed = pair if pair else (NO_NORM, stream)
    r.ffn = given


def _second(g: Graph, r: Reading, until: int | None) -> None:
    """The stream behind the feed-forward sublayer, and the norms about it."""
    stream, total, val = r.before, r.total, g.values
    if r.placement == "parallel":
        r.end, r.after = total, None
        return
    for out, *ways in g.sums(total):
        sizes = ((t.numel(), t.shape[-1:]) for t in (val[out], val[total]))
        if (until is not None and not g.from_(until, out)) or len({*sizes}) > 1:
            continue
        for p, q in ((g.root(p), q) for p, q in ways):
            if not g.from_(p, total) or not g.data[q] or q == p or val[p].numel() != val[q].numel():
                continue
            if p == total and g.from_(q, stream) and not g.from_(q, total):
                _beside(g, r, stream, q)
                r.end, r.after = out, None
                return
            behind = norm_of(g, total, p) if p != total else NO_NORM
            if not g.from_(q, p) or behind is None:
                continue
            _sequential(g, r, p, q, out, behind)
            return
    if until is None or g.only(until, total, (*ADD, *SCALES)) == total:  # the next attention's
        r.end = total
        return
    r.lacks.append("no second residual sum: no feed-forward sublayer found")


def _sequential(g: Graph, r: Reading, p: int, q: int, out: int, behind: Norm) -> None:
    """The FFN's sum out = p + q, p the stream between the sublayers."""
    val = g.values
    r.placement = "post" if behind.kind != "none" else "pre"
    r.end, r.ffn_end = out, q
    if off(val[p].reshape(val[q].shape) + val[q], val[out]) > SUMS:
        r.lacks.append("the feed-forward sublayer's residual sum is weighted")
    if mixes(g, p, q):
        r.lacks.append("the second sublayer mixes tokens: no feed-forward sublayer")
    if r.placement == "post":
        r.norm, r.after, r.fed, r.ffn = behind, p, p, q
        _norm_behind(g, r, out)
        return
    _fed(g, r, p, q)


def _norm_behind(g: Graph, r: Reading, out: int) -> None:
    """The norm behind the FFN's sum `out`, in one operation or several: the first of its form, and
    what gains and shifts make of it. A norm behind that one is no part of it."""
    for v in range(out + 1, min(out + WRITTEN, len(g.values))):
        further = r.end == out or g.only(v, r.end, (*ADD, *SCALES)) == r.end
        if further and g.op(v) not in MOVES and g.from_(v, out):
            fitted = norm_of(g, out, v)
            if fitted and fitted.kind != "none":
                r.end, r.norm_ffn = v, fitted


def _behind(g: Graph, r: Reading) -> None:
    """The norm between the FFN and the sum: the last tensor whose norm is what is added."""
    if r.fed < 0:
        return
    cuts = g.cuts(r.fed, r.ffn_end)
    for c in reversed(cuts[1:-1]):
        if g.values[c].shape[-1] != g.values[r.ffn_end].shape[-1]:
            break
        norm = norm_of(g, c, r.ffn_end)
        if norm is not None and norm.kind != "none":
            r.ffn, r.norm_ffn_behind = c, norm
            return


def told(reads: list[Reading]) -> str:
    """What a user is told: the first causes why a model is not read, by layer."""
    own = [r for r in reads if r.kind == "self"]
    if not own:
        return UNSEEN
    causes: dict[str, list[int]] = {}
    for k, r in enumerate(own, 1):
        for each in r.lacks:
            causes.setdefault(each, []).append(k)
    said = "; ".join(f"{each} (attention {', '.join(map(str, at))})" for each, at in causes.items())
    others = sorted({r.kind for r in reads} - {"self"})
    more = f"; left out: {', '.join(others)} attention" if others else ""
    return f"{said if causes else f'read: {len(own)} layers'}{more}"
