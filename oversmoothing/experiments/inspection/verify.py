"""Whether a layer does what its description says: each part computed anew from what went into it.

Checked of every layer, token by token over the kept tokens:
    attention gives sum_h A_h N(X) W_V,h W_O,h + biases, N the norm in front (Pre-LN), A the pass's;
    the stream after it is the sum (Post-LN: the norm of the sum), of what the norm behind gives;
    the FFN acts on each token by itself, and its sum (and norm) is what the layer gives: of the
    first input and of the one with the most padding.

The pass that is checked runs in float32, whatever the weights are stored in, or in float64. A part
passes where its error at every token, in the Euclidean norm, is at most
    ROUNDINGS eps c,
eps = 1.2e-7 that of float32 (libraries round softmax and norms to float32 in any dtype) and c how
far one relative rounding of what the part is made of moves that token:
    a sum of streams           the lengths of its terms
    a norm                     the largest gain times |x| / scale, the lengths of output and shift
    attention                  `_value_rounding`
    the FFN, token by token    its change under a random perturbation of relative size eps
Nothing of another token but those attended to is in it: a sink with a stream of 10^4 excuses nobody
else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Never

import torch
from torch import Tensor

from oversmoothing.experiments.models.layers import Caught
from oversmoothing.experiments.models.model import Heads, Layer, Norm, carried, without_autocast
from oversmoothing.simulations.state import fetched
from oversmoothing.theory.support.errors import InputError

EPS = torch.finfo(torch.float32).eps
# Roundings to one side, in sums of a few thousand products.
ROUNDINGS = 32
# Of a token's output: attention whose rounding may be more at most tokens passes anything.
BLIND = 5e-3
# Tokens on which an FFN is tried in other company, about.
APART = 64

_ATTENTION = "what mixes tokens is not A N(X) W_V W_O on these inputs"
_NORM = "what attention is given is not the norm of the stream that the layer was read to have"
_SUM = "what is added to the stream is not what the layer was read to add"
_APART = "it mixes tokens or treats them by their position, which no FFN of the theory does"


class Questions:
    """Numbers that are asked for where a layer lies, and told together: the host waits once."""

    def __init__(self) -> None:
        self._asked: list[Tensor] = []
        self._judges: list[tuple[int, Callable[..., object]]] = []

    def ask(self, number: Tensor, told: Callable[[float], object]) -> None:
        """number []: `told` of it, if it is not 0, in the order of asking."""
        self.judge([number], lambda copy: told(float(copy)) if copy else None)

    def judge(self, numbers: Sequence[Tensor], by: Callable[..., object]) -> None:
        """`by` of their copies on the CPU, in the order of asking."""
        self._asked += numbers
        self._judges.append((len(numbers), by))

    def answered(self, also: Sequence[Tensor]) -> list[Tensor]:
        """`also`, copied to the CPU in the same wait. Raises what one that is told raises."""
        copies = fetched([*also, *self._asked])
        asked = iter(copies[len(also) :])
        for many, judge in self._judges:
            judge(*islice(asked, many))
        return copies[: len(also)]


@dataclass(frozen=True)
class Verifier:
    """The checks of layer `number`, from 0; keep [b, n] on the CPU: the tokens that count; fewest:
    which input has the fewest; questions: where the answers are asked for, of which one raises
    `InputError` with the layer, the part, the size of the error and the token where it is largest;
    inputs: which those are of the batch, where they are not all of it."""

    number: int
    layer: Layer
    keep: Tensor
    fewest: int
    questions: Questions
    inputs: Sequence[int] | None = None

    def attention(
        self, A: Tensor, V: Tensor, caught: Caught, heads: Heads, told: Callable[[float], object]
    ) -> None:
        """sum_h A_h V_h W_O,h + bias; told: the largest error, relative to the token's output."""
        if caught.normed is not None:
            N = self.layer.norm_attention(caught.before)
            moved = _moved(self.layer.norm_attention, caught.before, N)
            self._compare(N, caught.normed, [moved], "the norm of its attention", _NORM)
        mixed, reach = _mixed_values(A, V)
        parts = [reach, heads.W_O @ heads.W_O.mT, *([] if heads.b_O is None else [heads.b_O])]
        own, part = heads.joined(mixed), "attention times values"
        self._compare(
            own, caught.output, parts, part, _ATTENTION, of=_value_rounding, blind=BLIND, told=told
        )

    def sublayers(self, caught: Caught, middle: Tensor) -> None:
        """Norms, sums and FFN; middle: the stream between the sublayers.

        Of the first input and the one with the fewest tokens: an FFN costs as much as the layer.
        """
        few, layer = sorted({0, self.fewest}), self.layer
        part = replace(self, keep=self.keep[few], inputs=few)
        streams = (caught.before, caught.output, middle, caught.end)
        before, output, middle, after = (_wide(torch.stack([X[k] for k in few])) for X in streams)
        norms = layer.output_norm_attention, layer.norm_attention
        part._added("attention", before, output, middle, *norms)
        if layer.ffn is None:
            part._compare(middle, after, [_lengths(after)], "the stream behind it", _SUM)
            return
        seen = before if layer.placement == "parallel" else middle
        N = seen if layer.placement == "post" else layer.norm_ffn(seen)
        norms = layer.output_norm_ffn, layer.norm_ffn
        part._added("FFN", middle, part._ffn(N), after, *norms)

    def _added(
        self, of: str, before: Tensor, output: Tensor, after: Tensor, behind: Norm, norm: Norm
    ) -> None:
        """The stream behind a sublayer is the sum, or its norm, relative to what is added."""
        added = behind(output)
        total = before + added
        moved = _lengths(before) + _moved(behind, output, added) + _lengths(added)
        size: Tensor | None = torch.maximum(_lengths(added), _lengths(after - before))
        if self.layer.placement == "post":
            moved = _stretched(norm, total, moved) + _lengths(after)
            total, size = norm(total), None
        part = f"its {of} sublayer, as a residual sum,"
        self._compare(total, after, [moved], part, _SUM, size)

    def _ffn(self, N: Tensor) -> Tensor:
        """What the FFN gives; that it does so token by token is asked of the first input."""
        ffn = self.layer.ffn
        assert ffn is not None
        given = ffn(N)
        if N.shape[1] > 1:
            # In another order and without the first: position and company are no matter.
            some = slice(1, None, max(1, N.shape[1] // APART))
            one = N[:1, some].flip(1).contiguous()
            apart = ffn(one)
            signs = torch.randn(one.shape, generator=torch.Generator().manual_seed(0)).sign()
            signs = signs.to(one, non_blocking=True)
            moved = _lengths(ffn(one * (1 + EPS * signs)) - apart) / EPS + _lengths(apart)
            rest = replace(self, keep=self.keep[:1, some], inputs=None)
            rest._compare(
                apart.flip(1), given[:1, some], [moved.flip(1)], "its FFN, token by token,", _APART
            )
        return given

    def _compare(
        self, own: Tensor, given: Tensor, moved: Sequence[Tensor], part: str, advice: str,
        size: Tensor | None = None, *, of: Callable[..., Tensor] = lambda moved: moved,
        blind: float = torch.inf, told: Callable[[float], object] | None = None,
    ) -> None:  # fmt: skip
        """of: what makes of `moved`, on the CPU, how far a rounding moves each token [b, n]. told:
        the largest error at a token, relative to size [b, n] (default: the longer of both), if it
        is not 0."""
        own, given, keep = _wide(own), _wide(given), self.keep
        longer = torch.maximum(_lengths(own), _lengths(given)) if size is None else size

        def judged(error: Tensor, length: Tensor, *moved: Tensor) -> None:
            allowed = (ROUNDINGS * EPS) * of(*moved).to(error)
            relative = torch.where(error == 0, 0.0, error / length)
            # At which of the kept tokens they differ beyond rounding.
            wrong = keep & ~(error <= allowed)
            if bool(wrong.any()):
                shown = torch.where(wrong, relative, -1.0).nan_to_num(torch.inf)
                worst = int(shown.argmax())
                where, token = divmod(worst, keep.shape[1])
                where = where if self.inputs is None else self.inputs[where]
                rounding = float((allowed / length).flatten()[worst])
                self._refuse(
                    f"{part} differs from what the description says by "
                    f"{float(relative.flatten()[worst]):.1e} of it at token {token} of input "
                    f"{where}, beyond rounding at {int(wrong.sum())} of {int(keep.sum())} tokens "
                    f"(there at most {rounding:.1e} is rounding): {advice}"
                )
            if 2 * int((keep & (allowed > blind * length)).sum()) > int(keep.sum()):
                self._refuse(
                    f"{part} cannot be verified: rounding alone may be "
                    f"{float((allowed / length)[keep].median()):.1e} of it at a token, its terms "
                    "cancelling"
                )
            if told is not None and (most := float(torch.where(keep, relative, 0.0).amax())):
                told(most)

        self.questions.judge([_lengths(own - given), longer, *moved], judged)

    def _refuse(self, what: str) -> Never:
        raise InputError(f"layer {self.number}: {what}")


def _moved(norm: Norm, X: Tensor, Y: Tensor) -> Tensor:
    """How far a rounding of X and of the norm moves what it gives, Y: [b, n]."""
    if norm.kind == "none":
        return _lengths(Y)
    moved = _lengths(Y) + _stretched(norm, X, _lengths(X))
    return moved if norm.shift is None else moved + _lengths(carried(norm.shift, X))


def _stretched(norm: Norm, X: Tensor, moved: Tensor) -> Tensor:
    """How far the norm moves what it gives, at most, where X is moved so far at each token."""
    scale = norm.square(norm.centred(X)).squeeze(-1).rsqrt()
    return moved * scale * carried(norm.gain.abs().max(), X)


def _mixed_values(A: Tensor, V: Tensor) -> tuple[Tensor, Tensor]:
    """(A_h V_h [b, heads, n, r], sum_j A_tj |v_j| [b, heads, n]) by one product."""
    both = A @ torch.cat([V, _lengths(V).unsqueeze(-1)], -1)
    return both[..., :-1], both[..., -1]


def _value_rounding(reach: Tensor, squares: Tensor, b_O: Tensor | None = None) -> Tensor:
    """By how many eps rounding values, their sum and the softmax moves each token of the output, to
    first order: [b, n], sum_h |W_O,h| sum_j A_tj |v_j| and the bias's length, |W_O| spectral.
    reach: of `_mixed_values`; squares: W_O W_O^T of each head."""
    square = torch.linalg.eigvalsh(squares)[:, -1]
    total: Tensor = (reach * square.clamp_min(0.0).sqrt().unsqueeze(-1)).sum(1)
    return total if b_O is None else total + torch.linalg.vector_norm(b_O)


def _wide(X: Tensor) -> Tensor:
    return X.to(torch.promote_types(X.dtype, torch.float32))


def _lengths(X: Tensor) -> Tensor:
    """Euclidean lengths of the last axis."""
    lengths: Tensor = torch.linalg.vector_norm(_wide(X), dim=-1)
    return lengths


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
