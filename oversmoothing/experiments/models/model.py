"""A trained Transformer as the theory sees it: per layer the heads' weights, norms and FFN.

Everything is in X W form (rows = tokens): a linear layer y = x W + b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, Protocol, runtime_checkable

import pandas as pd
import torch
from torch import Tensor, nn
from torch.backends import mha

from oversmoothing.simulations.drawing.wording import as_html
from oversmoothing.simulations.state import fetched
from oversmoothing.theory.support.errors import InputError

START_UNKNOWN = "start unknown"


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode within, without PyTorch's fused encoder layer, which calls none of its parts;
    every submodule is as it was on leaving."""
    training = [(each, each.training) for each in module.modules()]
    fused = mha.get_fastpath_enabled()
    module.eval()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(fused)
        for each, state in training:
            each.training = state


@contextmanager
def without_autocast() -> Iterator[bool]:
    """Autocast is off within; gives whether it was on."""
    kinds = [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]
    with ExitStack() as off:
        for kind in kinds:
            off.enter_context(torch.autocast(kind, enabled=False))
        yield bool(kinds)


def called_within(f: Callable[[Tensor], Tensor], X: Tensor) -> tuple[list[nn.Module], Tensor]:
    """(the modules without children that run in f on X, in their order; what f gives)."""
    called: list[nn.Module] = []

    def see(module: nn.Module, *_: Any) -> None:
        if not list(module.children()):
            called.append(module)

    hook = nn.modules.module.register_module_forward_hook(see)
    try:
        return called, f(X)
    finally:
        hook.remove()


@dataclass(frozen=True)
class ValueParts:
    """The modules that hold W_V and W_O of one block of `heads` heads in `kv_heads` groups;
    columns: which outputs of `value` are values, group by group; None: all of them."""

    value: nn.Module
    out: nn.Module
    heads: int
    kv_heads: int
    columns: Tensor | None = None

    @property
    def name(self) -> str:
        """The name of the weight in `value`."""
        return "in_proj_weight" if isinstance(self.value, nn.MultiheadAttention) else "weight"


def layer_table(layers: Sequence[Layer]) -> pd.DataFrame:
    """One row for each run of like layers: numbers from 1, heads, norms, FFN."""
    rows: list[dict[str, Any]] = []
    for number, layer in enumerate(layers, 1):
        behind = (layer.output_norm_attention, layer.output_norm_ffn)
        also = {
            "logits are not q k^T alone": not layer.plain,
            "sinks": layer.sinks,
            "norms behind": any(norm.kind != "none" for norm in behind),
        }
        norms = dict.fromkeys((layer.norm_attention.kind, layer.norm_ffn.kind))
        row = {
            "heads": layer.number,
            "head width": layer.width,
            "norms": f"{layer.placement}: {', '.join(norms)}",
            "FFN": "no" if layer.ffn is None else "yes",
            "also": ", ".join(name for name, has in also.items() if has) or "-",
        }
        if rows and rows[-1].items() >= row.items():
            rows[-1]["layers"] = f"{rows[-1]['layers'].split(' ')[0]} to {number}"
        else:
            rows.append({"layers": str(number), **row})
    return pd.DataFrame(rows)


Placement = Literal["pre", "post", "parallel"]
Modality = Literal["vision", "text", "features"]


def carried(few: Tensor, X: Tensor) -> Tensor:
    """These numbers where X lies, in its dtype; nobody waits for what comes from the CPU."""
    return few.to(X, non_blocking=few.is_cpu)


@dataclass(frozen=True)
class Norm:
    """LayerNorm (kind 'layer'), RMSNorm ('rms') or none ('none'); gain [d], shift [d] or None.

    `module`, for hooks, is the norm itself where there is one.
    """

    kind: Literal["layer", "rms", "none"]
    gain: Tensor
    shift: Tensor | None = None
    eps: float = 0.0
    module: nn.Module | None = None

    def __call__(self, X: Tensor) -> Tensor:
        """N(X) for X [..., d], in the dtype of X; half precision is computed in float32."""
        if self.kind == "none":
            return X
        Y = self.scaled(X.float() if X.dtype in (torch.float16, torch.bfloat16) else X)
        Y = Y * carried(self.gain, Y)
        return (Y if self.shift is None else Y + carried(self.shift, Y)).to(X.dtype)

    def scaled(self, X: Tensor) -> Tensor:
        """N(X) with each token's own scale and unit gains."""
        if self.kind == "none":
            return X
        Y = self.centred(X)
        return Y * self.square(Y).rsqrt()

    def centred(self, X: Tensor) -> Tensor:
        """X [..., d] less each token's mean where the norm takes it off."""
        return X - X.mean(-1, keepdim=True) if self.kind == "layer" else X

    def square(self, centred: Tensor) -> Tensor:
        """The square of what each token [..., d], once centred, is divided by: [..., 1]."""
        return centred.square().mean(-1, keepdim=True) + self.eps


NO_NORM = Norm("none", torch.ones(()))


def projected(X: Tensor, W: Tensor, bias: Tensor | None) -> Tensor:
    """X [b, n, d] by W [heads, d, r]: [b, heads, n, r]."""
    (b, n, _), (heads, _, r) = X.shape, W.shape
    out = (X @ W.transpose(0, 1).flatten(1)).view(b, n, heads, r).transpose(1, 2)
    return out if bias is None else out + bias.unsqueeze(1)


@dataclass(frozen=True)
class Heads:
    """The attention sublayer's weights, head by head (r = width of a head), in X W form.

    W_Q, W_K, W_V [heads, d, r], b_Q, b_K, b_V [heads, r] or None, W_O [heads, r, d], b_O [d] or
    None. Grouped key-value heads are already repeated. H of head h is (W_V[h] W_O[h])^T.
    """

    W_Q: Tensor
    W_K: Tensor
    W_V: Tensor
    W_O: Tensor
    b_Q: Tensor | None = None
    b_K: Tensor | None = None
    b_V: Tensor | None = None
    b_O: Tensor | None = None

    @property
    def number(self) -> int:
        return len(self.W_V)

    @property
    def width(self) -> int:
        """r, the width of a head."""
        return self.W_V.shape[-1]

    def to(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Heads:
        """The same weights on another device and in another dtype."""
        held: dict[str, Any] = {name: each for name, each in vars(self).items() if each is not None}
        if device is not None and torch.device(device).type == "cpu":
            held = dict(zip(held, fetched(list(held.values())), strict=True))
        moved = (each.to(device, dtype, non_blocking=each.is_cpu) for each in held.values())
        return Heads(**dict(zip(held, moved, strict=True)))

    def double(self) -> Heads:
        """The same weights in float64 on the CPU, as the theory takes them."""
        return self.to("cpu", torch.float64)

    def folded(self, norm: Norm, centred: bool = True) -> Heads:
        """`double`, the norm in front of attention folded into W_V <- C diag(g) W_V, but for each
        token's own scale and the constant shift. C is I - 1 1^T / d for a LayerNorm; centred:
        whether that is folded too, or the gain g alone."""
        own = self.double()
        if norm.kind == "none":
            return own
        W_V = norm.gain.detach().cpu().double()[:, None] * own.W_V
        if centred and norm.kind == "layer":
            W_V = W_V - W_V.mean(1, keepdim=True)
        return replace(own, W_V=W_V)

    def attended(self, A: Tensor, X: Tensor) -> Tensor:
        """sum_h A_h X W_V,h W_O,h + biases [b, n, d] of A [b, heads, n, n] and X [b, n, d]."""
        return self.joined(A @ projected(X, self.W_V, self.b_V))

    def joined(self, mixed: Tensor) -> Tensor:
        """sum_h Z_h W_O,h + bias, [b, n, d], of Z = A_h V_h [b, heads, n, r]."""
        out: Tensor = mixed.transpose(1, 2).flatten(2) @ self.W_O.flatten(0, 1)
        return out if self.b_O is None else out + self.b_O

    def total(self) -> Tensor:
        """sum_h W_V,h W_O,h [d, d] in float64 on the CPU; its transpose is the sum of all H."""
        return torch.einsum("hdr,hre->de", self.W_V.cpu().double(), self.W_O.cpu().double())


@dataclass(frozen=True)
class Layer:
    """One layer: X <- X + sum_h A_h N(X) W_V,h W_O,h + bias, then X <- X + FFN(N'(X)) ('pre').

    'post': X <- N(X + attention(X)), then X <- N'(X + FFN(X)). 'parallel': both are added to X, and
    both see X. output_norm_attention and output_norm_ffn stand behind a sublayer, in front of the
    residual sum. `attention` and `block` are the modules themselves, for hooks; ffn maps normalised
    tokens [..., d] to the FFN's output [..., d] (None for a model without one).

    plain: A_h = softmax(scaling q_h k_h^T), masked; scaling is r^-1/2 where None; otherwise more
    than that makes A (positions, norms of q and k, caps), and W_Q, W_K are the maps in front of it.
    sinks: rows of A sum to less than 1. `out` is the output projection, whose output times
    `output_scale` (layer scale, already in the heads and in ffn) is the attention sublayer's.
    `read` gives the weights of `number` heads of that `width`, which are not kept: a model may be
    larger than memory. They are as the module holds them at that moment where they are `live`
    (parts of its weights), else as they were when it was described; `parts`: where they stand.
    places, layout: where a pass has the layer's tensors, and how they lie. cos_start:
    cos(H_start, H_end) of H with where it was drawn, None where the start is unknown.
    """

    read: Callable[[], Heads]
    number: int
    width: int
    norm_attention: Norm
    norm_ffn: Norm
    placement: Placement
    ffn: Callable[[Tensor], Tensor] | None
    block: nn.Module
    attention: nn.Module
    out: nn.Module | None = None
    scaling: float | None = None
    plain: bool = True
    sinks: bool = False
    output_scale: Tensor | float = 1.0
    output_norm_attention: Norm = NO_NORM
    output_norm_ffn: Norm = NO_NORM
    live: bool = False
    parts: ValueParts | None = None
    layout: Any = None  # `heads.Layout`
    places: Any = None  # `layers.Places`
    cos_start: float | None = None

    @property
    def heads(self) -> Heads:
        """Its weights, read anew each time."""
        return self.read()

    def once(self) -> Layer:
        """The same layer, whose weights are read once at most and lie on the CPU."""
        return replace(self, read=cache(lambda: self.heads.to("cpu")))

    def kept(self) -> Layer:
        """The same layer with its weights kept, in float64: for those who ask for them often."""
        own = self.heads.double()
        return replace(self, read=lambda: own)

    def after_attention(self, X: Tensor, output: Tensor) -> Tensor:
        """The stream [b, n, d] after the attention sublayer that gave `output` on the stream X."""
        Y = X + self.output_norm_attention(output)
        return self.norm_attention(Y) if self.placement == "post" else Y

    def after_ffn(self, X: Tensor, Y: Tensor) -> Tensor:
        """The stream after the layer: X [b, n, d] is that in front of it, Y after its attention."""
        if self.ffn is None:
            return Y
        if self.placement == "post":
            return self.norm_ffn(Y + self.output_norm_ffn(self.ffn(Y)))
        seen = X if self.placement == "parallel" else Y
        return Y + self.output_norm_ffn(self.ffn(self.norm_ffn(seen)))


@dataclass(frozen=True)
class Model:
    """A trained model in evaluation mode, described.

    modality: 'vision', 'text', or 'features' (tensors of numbers, as of sounds). cls: whether token
    0 is a CLS token; registers: how many of the tokens behind it are registers. causal: whether a
    token attends to itself and earlier ones only. run(batch) executes the forward pass on one batch
    of inputs as `prepare` makes them; prepare turns raw inputs (PIL images, strings) into a batch:
    a tensor or a dictionary of tensors, whose first dimension counts the inputs.
    """

    name: str
    module: nn.Module
    layers: tuple[Layer, ...]
    width: int
    modality: Modality
    cls: bool
    causal: bool
    run: Callable[[Any], Any]
    prepare: Callable[[list[Any]], Any]
    run_notes: tuple[str, ...] = ()
    registers: int = 0

    def __repr__(self) -> str:
        heads = self.layers[0].number if self.layers else 0
        kind = f"{self.modality}, {'causal' if self.causal else 'not causal'}"
        return (
            f"Model('{self.name}', {self.depth} layers, width {self.width}, {heads} heads, {kind})"
        )

    def __str__(self) -> str:
        """The line, what was remarked on the reading, and the layers."""
        notes = "".join(f"\n{note}" for note in self.run_notes)
        return f"{self!r}{notes}\n{layer_table(self.layers).to_string(index=False)}"

    def _repr_html_(self) -> str:
        """What a notebook shows: the line, what was remarked on the reading, and the layers."""
        notes = "".join(f" Note: {note}." for note in self.run_notes)
        return as_html(f"{self!r}{notes}", layer_table(self.layers))

    @torch.no_grad()
    def logits(self, batch: Any) -> Tensor:
        """What the forward pass gives on a batch of `prepare`: class or token scores, of a model
        without a head its last tokens; `InputError` where it gives none."""
        output = self.run(batch)
        for scores in (output, getattr(output, "logits", None)):
            if isinstance(scores, Tensor):
                return scores
        raise InputError(f"the model '{self.name}' has no head that gives scores")

    @property
    def depth(self) -> int:
        return len(self.layers)

    @property
    def device(self) -> torch.device:
        """Where the module's parameters lie."""
        return next(self.module.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the forward pass: of the module's first floating parameter."""
        return next(p.dtype for p in self.module.parameters() if p.is_floating_point())

    def renamed(self, name: str) -> Model:
        """The same model under another name."""
        return replace(self, name=name)

    def noted(self, *notes: str) -> Model:
        """The same model with further remarks on how it was read."""
        return replace(self, run_notes=(*self.run_notes, *notes))


def check_stochastic(model: Model) -> None:
    """Raises `InputError` for learned sinks: verdicts are of rows that sum to 1."""
    if any(layer.sinks for layer in model.layers):
        raise InputError(
            f"the model '{model.name}' has learned sinks, with which rows of attention sum to less "
            "than 1, and this is of rows that sum to 1: ask inspect, which tells what is left"
        )


@runtime_checkable
class DescribesItself(Protocol):
    """A module in memory that says itself how it is read, so that no adapter is asked."""

    def described(self, name: str | None) -> Model: ...


@dataclass(frozen=True)
class Trace:
    """What one layer did to a batch of b inputs; all detached, on the CPU unless asked otherwise.

    attention [b, heads, n, n], row-stochastic over the kept tokens, rows and columns of padding
    are 0; None where it was not asked for; mixed [b, heads, n, r]: A_h V_h, while the layer is
    there. The stream [b, n, d] before the layer and after each sublayer, with Post-LN its norm.
    """

    attention: Tensor | None
    before: Tensor
    after_attention: Tensor
    after_ffn: Tensor
    mixed: Tensor | None = None

    def some(self, inputs: slice) -> Trace:
        """Of some of the inputs; views."""
        held = {name: X[inputs] for name, X in vars(self).items() if X is not None}
        return replace(self, **held)


@dataclass(frozen=True)
class Extraction:
    """One batch: its layers' traces; keep [b, n] bool, False at padding; av_error [layers], the
    largest relative difference between sum_h A_h N(X) W_V,h W_O,h + bias and the attention
    module's own output (0 where attention was not asked for)."""

    traces: tuple[Trace, ...]
    keep: Tensor
    av_error: tuple[float, ...]


def start_spread(cosines: Sequence[float] | None) -> str:
    """'0.86 to 0.89', smallest to largest `Layer.cos_start`; 'start unknown': none is known."""
    known = [value for value in cosines or () if not math.isnan(value)]
    if not known:
        return START_UNKNOWN
    return " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(known), max(known))))


def start_in_words(cosines: Sequence[float] | None) -> str:
    """'cos(H_start, H_end) 0.86 to 0.89' over the layers; 'start unknown' where it is not known."""
    said = start_spread(cosines)
    return said if said == START_UNKNOWN else f"cos(H_start, H_end) {said}"
