"""Whether a layer does what its description says: each part computed anew from what went into it.

Checked of every layer, token by token over the kept tokens:
    a norm is given the stream, and gives what its gain, shift and eps say;
    attention is given what the norm gave, and gives sum_h A_h N W_V,h W_O,h + biases;
    the stream after it is the sum (Post-LN: the norm of the sum);
    the FFN acts on each token by itself, and its sum (and norm) is what the block gives: of the
    first input and of the one with the most padding.
That a block is given what the one before gave is checked where the blocks are watched (`extract`).

The pass that is checked runs in float32, whatever the weights are stored in, or in float64. A part
passes where its error at every token, in the Euclidean norm, is at most
    ROUNDINGS eps c,
eps = 1.2e-7 that of float32 (libraries round softmax and norms to float32 in any dtype) and c how
far one relative rounding of what the part is made of moves that token:
    a sum of streams           the lengths of its terms
    a norm                     the largest gain times |x| / scale, the lengths of output and shift
    attention                  `value_rounding`, and only where that does not cover the error
                               `logit_rounding`: logits move by |q| |k|, outputs by their spread
    the FFN, token by token    its change under a random perturbation of relative size eps
Nothing of another token but those attended to is in it: a sink with a stream of 10^4 excuses nobody
else. Attention whose rounding would be above BLIND of its output at most of its tokens would pass
anything, and is refused as unverifiable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Never

import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection.attention import (
    Attention,
    logit_rounding,
    projected_out,
    value_rounding,
)
from oversmoothing.experiments.models.model import Heads, Layer, Norm
from oversmoothing.theory.support.errors import InputError

EPS = torch.finfo(torch.float32).eps
# Roundings to one side, in sums of a few thousand products.
ROUNDINGS = 32
BLIND = 5e-3
# Tokens on which an FFN is tried in other company, about.
APART = 64

_NORM_INPUT = (
    "something is added to the stream in front of the norm (positions, a second stream), or "
    "another norm stands there; check placement and the norms"
)
_NORM = "its gain, shift, eps or form are others; check which norm is named"
_INPUTS = (
    "something stands between the two (positions, another norm, a branch of its own); check "
    "placement and norm_attention"
)
_ATTENTION = (
    "the model attends in a way that its description does not say (norms on queries and keys, "
    "other positions, masks or scaling, another order of a fused projection); describe it with "
    "rotate=, bias=, scaling= or fused="
)
_SUM = (
    "layer scale, further norms, a parallel FFN and the like are not understood; check placement, "
    "norms and ffn"
)
_NORM_NAMES = {
    "norm_attention": "of its attention",
    "norm_ffn": "of its FFN",
    "output_norm_attention": "behind its attention",
    "output_norm_ffn": "behind its FFN",
}
_APART = "it mixes tokens or treats them by their position, which no FFN of the theory does"


# Of `Layer`: in front of (Post-LN: behind) the residual sums, and behind the sublayers themselves.
NORMS = ("norm_attention", "norm_ffn", "output_norm_attention", "output_norm_ffn")


@dataclass
class Seen:
    """What the hooks saw of one layer, each [b, n, d]; None where there is no such module.

    before, after: of the block. call: the arguments of its attention, by name. inputs, output: of
    its attention, layer scale included. norms: (input, output) by name, of those of `NORMS` called.
    """

    before: Tensor
    after: Tensor
    call: dict[str, Any] = field(default_factory=dict)
    inputs: Tensor | None = None
    output: Tensor | None = None
    norms: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @classmethod
    def of(cls, noted: dict[str, Any], after: Tensor, layer: Layer) -> Seen:
        """What was noted of a layer, tokens as [b, n, d] also where a module sees [b n, d]."""
        before = noted["before"]
        norms = {
            name: (noted[f"{name} input"].view_as(before), noted[f"{name} output"].view_as(before))
            for name in NORMS
            if f"{name} output" in noted
        }
        output = noted.get("output")
        if output is not None:
            # Tokens in another arrangement, as in windows, are not told apart.
            output = output * layer.output_scale if output.shape == before.shape else None
        return cls(before, after, noted.get("call", {}), noted.get("inputs"), output, norms)

    def some(self, inputs: Sequence[int]) -> Seen:
        """Of some inputs of the batch, without the call and the output of its attention."""
        norms = {name: (X[inputs], Y[inputs]) for name, (X, Y) in self.norms.items()}
        given = None if self.inputs is None else self.inputs[inputs]
        return Seen(self.before[inputs], self.after[inputs], inputs=given, norms=norms)

    def attended(self, layer: Layer) -> Tensor:
        """What attention is given: its module's input, or what stands in front of it."""
        if self.inputs is not None:
            return self.inputs
        if layer.placement == "post" or "norm_attention" not in self.norms:
            return self.before
        return self.norms["norm_attention"][1]

    def between(self, layer: Layer) -> Tensor | None:
        """The stream between the sublayers, where a norm is given it or gives it."""
        if layer.placement == "pre" and "norm_ffn" in self.norms:
            return self.norms["norm_ffn"][0]
        if layer.placement == "post" and "norm_attention" in self.norms:
            return self.norms["norm_attention"][1]
        return None

    def added(self, layer: Layer) -> Tensor | None:
        """What attention gives: its projection's output, what the norm behind it is given, or what
        the stream gains."""
        if self.output is not None:
            return self.output
        if "output_norm_attention" in self.norms:
            return self.norms["output_norm_attention"][0]
        after = self.between(layer)
        if layer.placement == "post" and after is not None:
            after = self.norms["norm_attention"][0]
        return None if after is None else after - self.before


@dataclass(frozen=True)
class Verifier:
    """The checks of layer `number`, from 0; keep [b, n]: the tokens that count; inputs: which those
    are of the batch, where they are not all of it.

    Every one raises `InputError` with the layer, the part, the size of the error and the token
    where it is largest.
    """

    number: int
    layer: Layer
    keep: Tensor
    inputs: Sequence[int] | None = None

    def sublayers(self, seen: Seen, middle: Tensor, output: Tensor) -> None:
        """Norms, sums and FFN; middle: the stream between the sublayers; output: of attention.

        Of the first input and the one with the fewest tokens: an FFN costs as much as the layer.
        """
        few = sorted({0, int(self.keep.sum(-1).argmin())})
        part = replace(self, keep=self.keep[few], inputs=few)
        part._sublayers(seen.some(few), middle[few], output[few])

    def _sublayers(self, seen: Seen, middle: Tensor, output: Tensor) -> None:
        layer, before = self.layer, seen.before
        post = layer.placement == "post"
        given = before if post else self._norm("norm_attention", seen, before)
        if seen.inputs is not None and seen.inputs.shape == given.shape:
            self._same(seen.inputs, given, "what its attention is given", _INPUTS)
        added = self._norm("output_norm_attention", seen, output)
        if post:
            self._post("norm_attention", seen, before, added, middle)
        else:
            self._sum(before, added, middle, "attention")
        self._second(seen, middle)

    def _second(self, seen: Seen, middle: Tensor) -> None:
        """The FFN with its norms and sum."""
        layer, before, after = self.layer, seen.before, seen.after
        if layer.placement == "post":
            added = self._norm("output_norm_ffn", seen, self._ffn(middle))
            self._post("norm_ffn", seen, middle, added, after)
            return
        N = self._norm("norm_ffn", seen, before if layer.placement == "parallel" else middle)
        self._sum(middle, self._norm("output_norm_ffn", seen, self._ffn(N)), after, "FFN")

    def attention(
        self, found: Attention, V: Tensor, mixed: Tensor, reach: Tensor, heads: Heads, seen: Seen
    ) -> float:
        """The largest error of sum_h A_h V_h W_O,h + bias, relative to the token's output; mixed,
        reach: of `mixed_values`."""
        given = seen.added(self.layer)
        if given is None:
            return 0.0
        own = projected_out(mixed, heads)
        moved = value_rounding(reach, heads)
        if seen.output is None:
            moved = moved + _lengths(seen.before)
        # What holds without the logits' part holds with it, and that part costs as much again.
        if bool(self._beyond(own, given, moved).any()):
            moved = moved + logit_rounding(found, V, heads)
        return self._compare(own, given, moved, "attention times values", _ATTENTION, blind=BLIND)

    def _norm(self, name: str, seen: Seen, given: Tensor) -> Tensor:
        """What a norm gives: it is given `given`, and gives what its gain, shift and eps say."""
        norm: Norm = getattr(self.layer, name)
        if norm.module is None:
            return given
        called = f"the norm {_NORM_NAMES[name]}"
        if name not in seen.norms:
            self._refuse(f"{called} is not called: name the one that is")
        X, Y = seen.norms[name]
        self._same(X, given, f"what {called} is given", _NORM_INPUT)
        X = _wide(X)
        moved = _lengths(Y)
        if norm.kind != "none":
            scale = norm.square(norm.centred(X)).squeeze(-1).rsqrt()
            moved = moved + _lengths(X) * scale * norm.gain.abs().max().to(X)
        if norm.shift is not None:
            moved = moved + _lengths(norm.shift.to(X))
        self._compare(norm(X), Y, moved, called, _NORM)
        return Y

    def _post(self, name: str, seen: Seen, before: Tensor, added: Tensor, after: Tensor) -> None:
        """after = norm(before + added)."""
        of = "attention" if name == "norm_attention" else "FFN"
        total = seen.norms[name][0] if name in seen.norms else after
        self._sum(before, added, total, of)
        self._same(after, self._norm(name, seen, total), f"what follows its {of}", _SUM)

    def _ffn(self, N: Tensor) -> Tensor:
        """What the FFN gives; that it does so token by token is asked of the first input."""
        ffn, N = self.layer.ffn, _wide(N)
        if ffn is None:
            return torch.zeros_like(N)
        given = ffn(N)
        if N.shape[1] > 1:
            # In another order and without the first: position and company are no matter.
            some = slice(1, None, max(1, N.shape[1] // APART))
            one = N[:1, some].flip(1).contiguous()
            apart = ffn(one)
            signs = torch.randn(one.shape, generator=torch.Generator().manual_seed(0)).sign()
            moved = _lengths(ffn(one * (1 + EPS * signs.to(one))) - apart) / EPS + _lengths(apart)
            rest = Verifier(self.number, self.layer, self.keep[:1, some])
            rest._compare(
                apart.flip(1), given[:1, some], moved.flip(1), "its FFN, token by token,", _APART
            )
        return given

    def _sum(self, first: Tensor, second: Tensor, given: Tensor, of: str) -> None:
        """The stream after the sublayer is the sum; errors are relative to what it adds."""
        lengths = _lengths(second)
        part = f"its {of} sublayer, as a residual sum,"
        moved = _lengths(first) + lengths
        size = torch.maximum(lengths, _lengths(_wide(given) - _wide(first)))
        self._compare(_wide(first) + _wide(second), given, moved, part, _SUM, size)

    def _same(self, X: Tensor | None, given: Tensor, part: str, advice: str) -> None:
        """The one is the other, but for a change of dtype."""
        if X is not None:
            self._compare(_wide(X), given, _lengths(given), part, advice)

    def _beyond(self, own: Tensor, given: Tensor, moved: Tensor) -> Tensor:
        """At which of the kept tokens the two differ by more than rounding."""
        error = _lengths(_wide(own) - _wide(given))[self.keep]
        return ~(error <= (ROUNDINGS * EPS) * moved.to(error)[self.keep])

    def _compare(
        self, own: Tensor, given: Tensor, moved: Tensor, part: str, advice: str,
        size: Tensor | None = None, *, blind: float = torch.inf,
    ) -> float:  # fmt: skip
        """The largest error at a token, relative to size [b, n] (default: the longer of both)."""
        own, given, keep = _wide(own), _wide(given), self.keep
        error = _lengths(own - given)[keep]
        allowed = (ROUNDINGS * EPS) * moved.to(error)[keep]
        longer = torch.maximum(_lengths(own), _lengths(given)) if size is None else size
        size = longer[keep]
        relative = torch.where(error == 0, 0.0, error / size)
        wrong = self._beyond(own, given, moved)
        if bool(wrong.any()):
            worst = int(torch.where(wrong, relative, -1.0).nan_to_num(torch.inf).argmax())
            where, token = keep.nonzero()[worst].tolist()
            where = where if self.inputs is None else self.inputs[where]
            self._refuse(
                f"{part} differs from what the description says by {float(relative[worst]):.1e} "
                f"of it at token {token} of input {where}, beyond rounding at {int(wrong.sum())} "
                f"of {len(wrong)} tokens (there at most {float(allowed[worst] / size[worst]):.1e}"
                f" is rounding): {advice}"
            )
        if int((allowed > blind * size).sum()) * 2 > len(size):
            self._refuse(
                f"{part} cannot be verified: rounding alone may be "
                f"{float((allowed / size).median()):.1e} of it at a token, its logits being so "
                "large or its terms cancelling"
            )
        return float(relative.max()) if len(relative) else 0.0

    def _refuse(self, what: str) -> Never:
        raise InputError(f"layer {self.number}: {what}")


def _wide(X: Tensor) -> Tensor:
    return X.to(torch.promote_types(X.dtype, torch.float32))


def _lengths(X: Tensor) -> Tensor:
    """Euclidean lengths of the last axis."""
    lengths: Tensor = torch.linalg.vector_norm(_wide(X), dim=-1)
    return lengths


@contextmanager
def in_float32(module: nn.Module) -> Iterator[None]:
    """Half-precision parameters and buffers are float32 within, and the same tensors on leaving.

    Needs twice the memory of the half-precision weights on top of them.
    """
    held = [p for p in module.parameters() if _half(p)]
    stored = [p.data for p in held]
    buffers = [
        (owner, name, buffer)
        for owner in module.modules()
        for name, buffer in owner.named_buffers(recurse=False)
        if _half(buffer)
    ]
    try:
        for parameter in held:
            parameter.data = parameter.data.float()
        for owner, name, buffer in buffers:
            owner._buffers[name] = buffer.float()
        yield
    finally:
        for parameter, data in zip(held, stored, strict=True):
            parameter.data = data
        for owner, name, buffer in buffers:
            owner._buffers[name] = buffer


@contextmanager
def unrounded_products() -> Iterator[None]:
    """Products of float32 matrices are not rounded to TF32 or bfloat16 within."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with without_autocast():
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def without_autocast() -> Iterator[bool]:
    """Autocast is off within; gives whether it was on."""
    kinds = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    with ExitStack() as off:
        for kind in kinds:
            off.enter_context(torch.autocast(kind, enabled=False))
        yield bool(kinds)


def _half(each: torch.Tensor) -> bool:
    return each.is_floating_point() and each.dtype.itemsize < 4
