"""Of one attention sublayer: which head has which row of A, and W_V, W_O, W_Q, W_K by head.

`Reading` is what is found of a sublayer; `HeadsReader` reads norm and maps into it, as
`experiments.models.reader` says in (c).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations

import torch
from torch import Tensor, nn

from oversmoothing.experiments.models.fits import AFFINE, Map, Pick, affine, linear_map, norm_of
from oversmoothing.experiments.models.model import NO_NORM, Norm, Placement
from oversmoothing.experiments.models.pass_graph import Graph, like, off
from oversmoothing.experiments.models.tape import MOVES, Node, NotReplayable

# Of the largest number: what a sublayer's output may be off by.
WITHIN = 1e-4


@dataclass(frozen=True)
class Layout:
    """How attention and tokens lie in a model's tensors.

    axes: the order of inputs (b), heads (h) and tokens (i) in the rows of A; across: tokens are
    [n, b, d]; windows [w, m]: the tokens of each window, where A is within windows.
    """

    axes: str
    heads: int
    across: bool = False
    windows: Tensor | None = None

    def by_head(self, M: Tensor, n: int) -> Tensor:
        """[b, heads, n, k] of rows M [.., k] of A, or of A V; n: tokens that attend together."""
        many = M.shape[:-1].numel() // (self.heads * n)
        sizes = {"b": many, "h": self.heads, "i": n}
        whole = M.reshape([*(sizes[each] for each in self.axes), M.shape[-1]])
        return whole.permute([*(self.axes.index(each) for each in "bhi"), 3])

    def attention(self, A: Tensor) -> Tensor:
        """A [b, heads, n, n] over all tokens of an input, 0 between windows."""
        parts = self.by_head(A, A.shape[-1])
        if self.windows is None:
            return parts
        own, side = self.windows.shape
        parts = parts.reshape(-1, own, *parts.shape[1:]).transpose(1, 2)
        whole = parts.new_zeros(*parts.shape[:2], own * side, own * side)
        rows, columns = self.windows[:, :, None], self.windows[:, None, :]
        whole[:, :, rows, columns] = parts
        return whole

    def mixed(self, Z: Tensor, n: int) -> Tensor:
        """A V [b, heads, n, r] of all tokens of an input; n: tokens that attend together."""
        parts = self.by_head(Z, n)
        if self.windows is None:
            return parts
        parts = parts.reshape(-1, len(self.windows), *parts.shape[1:])
        parts = parts.transpose(1, 2).flatten(2, 3)
        return parts[:, :, self.windows.flatten().argsort()]

    @staticmethod
    def tokens(X: Tensor, inputs: int, across: bool) -> Tensor:
        """A stream as [b, n, d]."""
        while X.ndim > 3 and X.shape[-1] == 1:  # einsum keeps the axes that it has summed
            X = X.squeeze(-1)
        if across:
            return X.reshape(-1, inputs, X.shape[-1]).transpose(0, 1)
        return X.reshape(inputs, -1, X.shape[-1])


@dataclass
class Product:
    """A V: numbers of A, V and their product, of the logits and the softmax; flipped: it is
    V^T A^T; averaged: of the softmax whose mean over heads A is."""

    A: int
    V: int
    out: int
    logits: int
    softmax: int
    flipped: bool
    averaged: bool


@dataclass
class Reading:
    """One attention sublayer as it was found; tensors by their numbers on the tape.

    before, total, end: of the stream in front of it, of the sum with it, and behind the layer;
    after: of the stream between the sublayers (None: they are parallel); output: of what W_O gives.
    fed, ffn, ffn_end: what the FFN is given, what it gives, and what is added of it.
    """

    product: Product
    inputs: int
    kind: str = "self"
    sinks: bool = False
    causal: bool = False
    layout: Layout | None = None
    columns: Tensor = field(default_factory=lambda: torch.empty(0))  # of what W_O takes, by head
    value: Map | None = None
    out: Map | None = None
    query: Map | None = None
    key: Map | None = None
    scaling: float | None = None  # None: the logits are not scaling q k^T, masked, alone
    attended: int = -1  # what W_V is applied to
    normed: int = -1  # the same, as it lies in the stream
    before: int = -1
    total: int = -1
    after: int | None = None
    end: int = -1
    output: int = -1
    norm: Norm | None = None
    norm_behind: Norm = NO_NORM
    norm_ffn: Norm = NO_NORM
    norm_ffn_behind: Norm = NO_NORM
    placement: Placement = "pre"
    fed: int = -1
    ffn: int = -1
    ffn_end: int = -1
    error: float = float("inf")
    lacks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def placed(self) -> bool:
        """Whether the residual sum was found."""
        return self.total >= 0


class Lacking(Exception):
    """Why a sublayer is not of the form."""


class HeadsReader:
    """Reads norms and maps of one sublayer into `r`."""

    def __init__(self, g: Graph, module: nn.Module, r: Reading) -> None:
        self.g, self.module, self.r, self.flip = g, module, r, r.product.flipped

    def matrices(self, t: Tensor) -> Tensor:
        """An operand of a product, or what it gives, as [matrices, n, ..]."""
        t = t.mT if self.flip else t
        return t if t.ndim == 3 else t[None]

    def read(self, end: int, logits: Node | None) -> None:
        """end: what is added to the stream; logits: the product q k^T. Raises `Lacking`."""
        g, r, AV = self.g, self.r, self.r.product.out
        start = self._start()
        outs = g.cuts(AV, end)  # Z: what goes into the output projection
        products = (i for i in range(1, len(outs)) if g.multiplies(*outs[i - 1 : i + 1]))
        first = next(products, len(outs))
        # Without an output projection a norm may stand right behind A V.
        ahead = (c for c in reversed(outs[:first]) if first < len(outs) or affine(g, AV, c))
        Z = next(ahead, AV)
        linear = next((c for c in reversed(outs) if c >= Z and affine(g, AV, c)), None)
        if linear is None or g.values[Z].numel() != g.values[AV].numel():
            raise Lacking(f"the output is no linear function of A V ({g.ops(outs[1:])})")
        self._places(Z, start, g.ops(outs[1:first]))
        r.attended = start
        self._projected(Z, [c for c in outs if Z <= c <= linear])
        self._queries(start, logits)
        rest = [c for c in outs if c > r.output]
        while rest and g.op(rest[0]) in MOVES:
            r.output = rest.pop(0)
        behind = norm_of(g, r.output, end) if rest else NO_NORM
        r.norm_behind = behind or NO_NORM
        if behind is None:
            said = g.ops(rest)
            r.lacks.append(f"what stands behind the output projection is no norm ({said})")

    def _start(self) -> int:
        """Where the linear part of the values begins, behind the norm."""
        g, r, stream, V = self.g, self.r, self.r.before, self.r.product.V
        val, cuts = g.values, g.cuts(stream, V)
        start = next((c for c in cuts[:-1] if affine(g, c, V)), None)
        if start is None:
            said = g.ops(cuts[1:])
            raise Lacking(f"the values are no linear function of the stream ({said})")
        for c in cuts[cuts.index(start) + 1 :]:
            same = val[c].numel() == val[start].numel()
            if g.multiplies(start, c) or not same or val[c].shape[-1] != val[start].shape[-1]:
                break
            start = c
        r.normed = stream
        for c in cuts[: cuts.index(start) + 1]:
            if fitted := norm_of(g, stream, c):
                r.norm, r.normed = fitted, c
        between = [c for c in cuts if r.normed < c <= start]
        moved = {g.op(c) for c in between} <= MOVES
        if r.norm is None or not moved or val[start].numel() != val[stream].numel():
            raise Lacking(
                "the values are no linear function of the normed stream "
                f"({g.ops(between)}): a latent, or a norm of values"
            )
        return start

    def _places(self, Z: int, start: int, said: str) -> None:
        """Which row of A and which column of Z belong to which token and head."""
        g, r, val, AV = self.g, self.r, self.g.values, self.r.product.out
        o, weights = self.matrices(val[AV]), self.matrices(val[r.product.A])

        def columns() -> Tensor | None:
            """Numbers of A V where Z has them; None: it is not A V in another order."""
            numbers = torch.arange(o.numel(), dtype=torch.float64)
            labels = numbers.reshape(o.shape)
            labels = (labels.mT if self.flip else labels).reshape(val[AV].shape)
            pushed = g.replay(Z, {AV: like(val[AV], labels)}).cpu().double().flatten()
            return pushed.long() if torch.equal(pushed.sort().values, numbers) else None

        L = g.once(f"columns, flipped {self.flip}", AV, Z, columns)
        if L is None:
            raise Lacking(
                f"something stands between A V and the output projection ({said}): a gate or a norm"
            )
        L = L.reshape(-1, val[Z].shape[-1])
        (_, N, n), rank, (T, wide) = weights.shape, o.shape[-1], L.shape
        heads = wide // rank
        if wide % rank:
            raise Lacking(f"a head of A V has {rank} columns, and {wide} features are no multiple")
        r.columns = torch.argsort(L[0], stable=True).reshape(heads, rank)
        row = (L // rank)[:, r.columns[:, 0]]  # [T, heads]: the rows of A of each token
        same = bool(((L // rank)[:, r.columns] == row[..., None]).all())
        given = val[start].numel() // val[start].shape[-1]
        if T % n or given != T or not same:
            raise Lacking(f"tokens are moved: {T} rows of A of {n}, {given} values")
        self.perm = torch.argsort(row[:, 0])  # tokens sequence by sequence
        self.row = row[self.perm]
        self.n, self.T = n, T
        # [sequences, heads]: which matrix of V.
        self.place = (self.row // N).reshape(T // n, n, heads)[:, 0]
        # In front of W_V tokens lie as those of A V do, or else input by input.
        for inner in (self.perm, torch.arange(T)):
            self.inner = inner
            r.value = linear_map(g, self.module, start, r.product.V, self._values, inner)
            if r.value.error < WITHIN:
                break
        # Which of the stream's tokens each of these is: windows move them, and batches in front.
        seen = val[r.normed]

        def tokens() -> Tensor:
            own = torch.arange(float(T), dtype=torch.float64).view(-1, 1)
            own = own.expand(T, seen.shape[-1]).reshape(seen.shape)
            moved = g.replay(start, {r.normed: like(seen, own)})
            return moved.reshape(T, -1)[:, 0].cpu().long()

        order = g.once("tokens", r.normed, start, tokens)
        layout = _layout(self.row, order[self.inner], n, heads, r.inputs)
        if layout is None:
            raise Lacking(f"tokens are moved: {T // n} sequences of {n} tokens in another order")
        if layout.windows is not None:
            r.notes.append(f"windows: {T // n} sequences of {n} tokens")
        r.layout = layout
        self.weights = weights.reshape(-1, n)[self.row].view(T // n, n, heads, n).transpose(1, 2)
        r.causal = bool(self.weights.triu(1).abs().max() == 0)
        sums = self.weights.sum(-1)
        low = float(sums.min()) < 1 - WITHIN and not r.sinks
        if float(self.weights.min()) < 0 or float(sums.max()) > 1 + WITHIN or low:
            r.lacks.append("what multiplies the values is no stochastic matrix")

    def _values(self, t: Tensor) -> Tensor:
        """[T, heads, r] of the values, or keys, of the products."""
        return self.matrices(t)[self.place].transpose(1, 2).flatten(0, 1)

    def _tokens(self, t: Tensor) -> Tensor:
        """[T, 1, d] of a tensor of tokens as they lie in front of W_V."""
        return t.reshape(self.T, -1)[self.inner][:, None]

    def _projected(self, Z: int, linear: list[int]) -> None:
        """W_O up to the last tensor that is affine in A V, held against it."""
        g, r, T, n = self.g, self.r, self.T, self.n
        assert r.value is not None
        X = self._tokens(g.values[r.attended])[:, 0]
        V = torch.einsum("bjc,hcr->bhjr", X.reshape(-1, n, X.shape[1]), r.value.W.to(X))
        mixed = self.weights.to(X) @ (V + r.value.b[:, None].to(X))

        def given(t: Tensor) -> Tensor:
            return t.reshape(T, -1)[self.perm][:, None]

        for Y in (c for c in reversed(linear) if g.values[c].numel() % T == 0):
            if Y == Z:
                eye = torch.eye(g.values[Z].shape[-1], dtype=X.dtype, device=X.device)
                projection = Map.of(self.module, eye[:, None], torch.zeros_like(eye[:1]))
            else:
                projection = linear_map(g, self.module, Z, Y, given, self.perm)
            W = projection.W[0].to(X)
            made = torch.einsum("bhir,hrd->bid", mixed, W[r.columns]) + projection.b[0]
            error = off(made, given(g.values[Y]).reshape(made.shape))
            if error < r.error:
                r.error, r.out, r.output = error, projection, Y
            if error < WITHIN:
                break
        if r.error >= WITHIN:
            r.lacks.append(f"A N(X) W_V W_O is not the sublayer's output: off by {r.error:.0e}")

    def _queries(self, start: int, logits: Node | None) -> None:
        """W_Q and W_K, and the scaling where the logits are scaling q k^T, masked, alone."""
        g, r = self.g, self.r
        if logits is None or r.value is None:
            return
        q, k = logits.ins[-2:]
        start = g.root(start)  # of which values, queries and keys may have views of their own
        if self.flip or not (g.from_(q, start) and g.from_(k, start)):
            return
        row, place, A = self.row, self.place, self.weights
        if r.product.averaged:
            A = g.values[r.product.softmax]
            place = torch.arange(A.shape[:2].numel()).view(A.shape[:2])
            row = (place[:, None] * self.n + torch.arange(self.n)[:, None]).flatten(0, 1)

        def queries(t: Tensor) -> Tensor:
            return t.reshape(-1, t.shape[-1])[row]

        def keys(t: Tensor) -> Tensor:
            return self.matrices(t.mT)[place].transpose(1, 2).flatten(0, 1)

        try:
            r.query = self._first(start, q, queries)
            r.key = self._first(start, k, keys)
        except (NotReplayable, RuntimeError, IndexError):  # of another arrangement than A
            return
        if r.query.whole and r.key.whole:
            self._scaled(start, A)

    def _first(self, start: int, target: int, pick: Pick) -> Map:
        """The map of queries or keys: whole, or where no one map makes them of every token
        (rotations, norms) the last in front of that, its features head by head."""
        g = self.g
        if self._is_map(start, target, pick):
            projection = linear_map(g, self.module, start, target, pick, self.inner)
            if projection.error < WITHIN:
                return projection
        heads, r = pick(g.values[target]).shape[1:]
        for c in reversed(g.cuts(start, target)[1:-1]):
            width, left = divmod(g.values[c].numel(), self.T * r)
            if left or heads % max(width, 1) or not self._is_map(start, c, self._tokens):
                continue
            projection = linear_map(g, self.module, start, c, self._tokens, self.inner)
            if projection.error < WITHIN:
                return projection.by_head(width, heads // width)
        raise NotReplayable("queries or keys")

    def _is_map(self, start: int, target: int, pick: Pick) -> bool:
        """Whether one affine map makes what is picked of each token: drawn tokens, and others
        midway between them. Tokens that are rotated by their places have no one map. Asked once
        for layers that do the same with other weights."""

        def maps_each() -> bool:
            g, x, at = self.g, self.g.values[start], torch.arange(self.T) % 3
            two = torch.randn(2, x.numel() // self.T, generator=torch.Generator().manual_seed(0))
            tokens = torch.cat([two, two.mean(0, keepdim=True)])[at][self.inner.argsort()]
            made = pick(g.replay(target, {start: like(x, tokens.reshape(x.shape))}))
            half = (made[0] + made[1]) / 2
            return off(torch.stack([made[0], made[1], half])[at], made) <= AFFINE

        return self.g.once(f"map, by {pick.__name__}", start, target, maps_each)

    def _scaled(self, start: int, A: Tensor) -> None:
        """The number with A = softmax(scaling q k^T), masked where A is causal; held against some
        48 queries of each head and input."""
        g, r, n = self.g, self.r, self.n
        assert r.query is not None and r.key is not None
        X = self._tokens(g.values[start]).reshape(-1, 1, n, r.query.W.shape[1])
        q, k = (X @ m.W.to(X) + m.b[:, None].to(X) for m in (r.query, r.key))
        some = slice(None, None, max(1, n // 48))
        q, logs = q[..., some, :], A[..., some, :].log()
        # Differences of logits within a row are those of log A; what is masked is left out.
        most, kept = logs.argmax(-1, keepdim=True), logs > -12
        x, y = ((t - t.gather(-1, most)).where(kept, 0.0) for t in (q @ k.mT, logs))
        if not x.any():
            r.scaling = 1.0 if float(y.abs().max()) < WITHIN else None
            return
        slope = float((x * y).sum(dtype=torch.float64) / x.square().sum(dtype=torch.float64))
        if float((slope * x - y).abs().max()) <= 1e-3 * max(1.0, float(y.abs().max())):
            r.scaling = slope


def _layout(row: Tensor, perm: Tensor, n: int, heads: int, inputs: int) -> Layout | None:
    """How rows of A, and tokens of the stream, lie; row [T, heads], perm [T]. None: otherwise."""
    T = len(perm)
    many = T // n
    grid, sizes = row.reshape(many, n, heads), {"b": many, "i": n, "h": heads}
    for axes in map("".join, permutations("bhi")):
        rows = torch.arange(T * heads).reshape([sizes[each] for each in axes])
        if torch.equal(rows.permute([axes.index(each) for each in "bih"]), grid):
            break
    else:
        return None
    if many % inputs:
        return None
    order = perm.reshape(many, n)
    if torch.equal(perm, torch.arange(T)):
        return Layout(axes, heads)
    if many == inputs and torch.equal(order, torch.arange(T).reshape(n, many).T):
        return Layout(axes, heads, across=True)
    own = many // inputs
    windows = order.reshape(inputs, own, n)
    shifted = windows - windows.new_tensor(range(inputs))[:, None, None] * (own * n)
    alike = bool((shifted == shifted[0]).all()) and int(shifted.min()) == 0
    return Layout(axes, heads, windows=shifted[0]) if alike else None
