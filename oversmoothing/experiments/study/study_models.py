"""The models of the study: a plain Transformer, and the forms of arXiv 2401.04301 head by head.

Every head h has its own values, k = d / heads columns of W_V [d, d] and the same rows of W_O:

    X <- X + sum_h A_h N(X) W_V,h W_O,h,    then X <- X + FFN(N(X))

    ord        W_V, W_O free: an ordinary ViT, 2 d^2 parameters
    sym        W_V = Q, W_O = diag(psi) Q^T, Q of Theta = QR: d^2 + d parameters
    plus minus the same with psi^2 and -psi^2 (ViT+ and ViT-)
    clip+ clip-  the same with psi cut to [0, 1] and to [-1, 0] (third version)
    old        one free H for all heads, on the mean of their attention; 'old plus' and 'old minus'
               the same with Q Lambda Q^T, the reading that earlier runs of ours had

Splitting one Q among the heads is our reading: putting the result of QR in the place of the two
matrices of ordinary code gives it, and H_h = Q_h Lambda_h Q_h^T is symmetric in every head. Arms of
one seed share every draw but that of their own W_V and W_O, and ||H||_F of every layer at the start
is that of `ord`. What cannot be equal: signed arms have d^2 - d fewer parameters a layer than `ord`
(`sym` is their matched control), and H of `plus` and `minus` starts with a trace.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.digits.training_loop import generator
from oversmoothing.experiments.forms.form import orthogonal_factor
from oversmoothing.experiments.models.describe import watched_model, with_own_heads
from oversmoothing.experiments.models.model import Heads, Model
from oversmoothing.experiments.study.study_tasks import Pixels, Reads, numbers, seen
from oversmoothing.theory.support.errors import InputError

Form = Literal["ord", "sym", "plus", "minus", "clip+", "clip-", "old", "old plus", "old minus"]
FORMS: tuple[str, ...] = get_args(Form)
START = ("normal", "mimetic", "small mimetic")
PLACEMENTS = ("pre", "post", "sandwich", "peri")
MASKS = ("dense", "local", "strided", "axial")
# 2305.09828: W_V W_O = MIMETIC (Z - I), Z with entries of variance 1/d.
MIMETIC = 0.4
# Tokens beyond which the fused attention of torch is the faster one.
FUSED = 32


@dataclass(frozen=True)
class Design:
    """A network, without what it reads.

    std: of the start of every weight of a layer; .035 at width 64 gives H the rms eigenvalue of a
    DeiT's start. start: of W_V and W_O of `ord`, 'mimetic' as in arXiv 2305.09828, 'small mimetic'
    the same with the ||H||_F of a normal start. placement: of the norms; 'sandwich' has one behind
    each sublayer too, 'peri' also one behind the embedding (arXiv 2502.02732). removal: the mean
    token is taken out behind every layer (2312.06182). laplacian: how many heads have I - A for A
    (2602.09297). signed: the first layers that have the form, the others are `ord` (None: all).
    mask: which tokens a token sees.

    Raises `InputError` for another name, and heads that do not divide the width.
    """

    form: Form = "ord"
    width: int = 64
    depth: int = 6
    heads: int = 4
    ratio: int = 2
    std: float = 0.035
    start: Literal["normal", "mimetic", "small mimetic"] = "normal"
    placement: Literal["pre", "post", "sandwich", "peri"] = "pre"
    removal: bool = False
    laplacian: int = 0
    signed: int | None = None
    mask: Literal["dense", "local", "strided", "axial"] = "dense"

    def __post_init__(self) -> None:
        known = (("form", FORMS), ("start", START), ("placement", PLACEMENTS), ("mask", MASKS))
        for name, names in known:
            if getattr(self, name) not in names:
                raise InputError(f"{name} is {getattr(self, name)!r}: choose {', '.join(names)}")
        if self.width % self.heads or not 0 <= self.laplacian <= self.heads:
            raise InputError(
                f"width {self.width}, {self.heads} heads, {self.laplacian} of them Laplacian: the "
                "width must be a multiple of the heads, and no more heads Laplacian than there are"
            )

    def form_of(self, number: int) -> Form:
        """The form of layer `number`, from 1."""
        return self.form if self.signed is None or number <= self.signed else "ord"


def eigenvalues(form: str, psi: Tensor) -> Tensor:
    """Lambda [d] of a signed form."""
    if form == "plus":
        return psi.square()
    if form == "minus":
        return -psi.square()
    if form == "clip+":
        return psi.clamp(0, 1)
    return psi.clamp(-1, 0) if form == "clip-" else psi


class HeadedAttention(nn.Module):
    """sum_h A_h y W_V,h W_O,h of normed tokens y [b, n, d]."""

    seen: Tensor | None

    def __init__(self, design: Design, reads: Reads, number: int, seed: int) -> None:
        super().__init__()
        form, self.heads, self.causal = design.form_of(number), design.heads, reads.causal
        # shared: one H on the mean of the heads' attention.
        self.shared, self.form = form.startswith("old"), form.removeprefix("old ")
        self.laplacian = design.laplacian
        d, std = design.width, design.std

        def draw(purpose: str, *shape: int) -> Tensor:
            return torch.randn(shape, generator=generator(seed, f"layer {number}, {purpose}"))

        self.query_key = nn.Parameter(std * draw("query and key", d, 2 * d))
        W_V, W_O = std * draw("value", d, d), std * draw("output", d, d)
        norm = torch.linalg.matrix_norm(W_V @ W_O)
        if design.start != "normal":
            product = MIMETIC * (draw("mimetic", d, d) / d**0.5 - torch.eye(d))
            if design.start == "small mimetic":
                product *= norm / torch.linalg.matrix_norm(product)
            U, size, V = torch.linalg.svd(product)
            W_V, W_O = U * size.sqrt(), size.sqrt()[:, None] * V
        if self.form == "ord":
            self.W_V, self.W_O = nn.Parameter(W_V), nn.Parameter(W_O)
        elif self.form == "old":
            self.W_H = nn.Parameter(W_V @ W_O)
        else:
            self.theta = nn.Parameter(std * draw("theta", d, d))
            drawn = draw("psi", d)
            if self.form != "sym":
                drawn = drawn.abs() * (-1 if self.form in ("minus", "clip-") else 1)
            size = drawn * norm / torch.linalg.vector_norm(drawn)
            squared = self.form in ("plus", "minus")
            self.psi = nn.Parameter(size.abs().sqrt() if squared else size)
        self.register_buffer("seen", seen(design.mask, reads), persistent=False)
        # Its output is the sublayer's: a place for hooks.
        self.out = nn.Identity()

    def maps(self) -> tuple[Tensor, Tensor]:
        """(W_V, W_O), [d, d] each, heads side by side and below each other; shared: (H^T, 1)."""
        if self.form == "ord":
            return self.W_V, self.W_O
        if self.form == "old":
            return self.W_H, torch.eye(len(self.W_H)).to(self.W_H)
        Q = orthogonal_factor(self.theta)
        W_O = eigenvalues(self.form, self.psi)[:, None] * Q.mT
        return (Q @ W_O, torch.eye(len(Q)).to(Q)) if self.shared else (Q, W_O)

    def total(self) -> Tensor:
        """W_V W_O = H^T [d, d], the sum over heads."""
        W_V, W_O = self.maps()
        return W_V @ W_O

    def forward(self, y: Tensor) -> Tensor:
        b, n, d = y.shape
        h, k = self.heads, d // self.heads
        q, key = (y @ self.query_key).view(b, n, 2, h, k).permute(2, 0, 3, 1, 4)
        W_V, W_O = self.maps()
        whole = self.shared
        values = y @ W_V if whole else (y @ W_V).view(b, n, h, k).transpose(1, 2)
        if n > FUSED and not (whole or self.laplacian):
            mixed = functional.scaled_dot_product_attention(
                q, key, values, attn_mask=self.seen, is_causal=self.causal and self.seen is None
            )
        else:
            A = self.attention(q, key)
            mixed = A.mean(1) @ values if whole else A @ values
        mixed = mixed if whole else mixed.transpose(1, 2).reshape(b, n, d)
        added: Tensor = self.out(mixed if whole else mixed @ W_O)
        return added

    def attention(self, q: Tensor, key: Tensor) -> Tensor:
        """A [b, heads, n, n] of queries and keys, of Laplacian heads, the first ones, I - A."""
        n = q.shape[-2]
        logits = q @ key.mT * q.shape[-1] ** -0.5
        if self.seen is not None:
            logits = logits.masked_fill(~self.seen[:n, :n], -torch.inf)
        elif self.causal:
            logits = logits.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -torch.inf)
        A: Tensor = logits.softmax(-1)
        if self.laplacian:
            rest = torch.eye(n) - A[:, : self.laplacian]
            A = torch.cat([rest, A[:, self.laplacian :]], 1)
        return A


class Block(nn.Module):
    """One layer on the stream x [b, n, d]."""

    def __init__(self, design: Design, reads: Reads, number: int, seed: int) -> None:
        super().__init__()
        d, wide = design.width, design.ratio * design.width
        self.post, self.removal = design.placement == "post", design.removal
        behind = design.placement in ("sandwich", "peri")
        self.norm_attention, self.norm_ffn = nn.LayerNorm(d), nn.LayerNorm(d)
        self.behind_attention = nn.LayerNorm(d) if behind else None
        self.behind_ffn = nn.LayerNorm(d) if behind else None
        self.attention = HeadedAttention(design, reads, number, seed)
        self.ffn = nn.Sequential(
            linear(d, wide, design.std, seed, f"layer {number}, first of FFN"),
            nn.GELU(),
            linear(wide, d, design.std, seed, f"layer {number}, second of FFN"),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.norm_attention(x + self.attention(x))
            x = self.norm_ffn(x + self.ffn(x))
        else:
            x = x + _behind(self.behind_attention, self.attention(self.norm_attention(x)))
            x = x + _behind(self.behind_ffn, self.ffn(self.norm_ffn(x)))
        return x - x.mean(1, keepdim=True) if self.removal else x


def _behind(norm: nn.LayerNorm | None, added: Tensor) -> Tensor:
    return added if norm is None else norm(added)


def linear(inputs: int, outputs: int, std: float, seed: int, purpose: str) -> nn.Linear:
    """Weights of that deviation from a generator of their own, bias 0."""
    made = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        drawn = torch.randn(made.weight.shape, generator=generator(seed, purpose))
        made.weight.copy_(std * drawn)
        made.bias.zero_()
    return made


class StudyNet(nn.Module):
    """The whole network; every parameter is drawn from (seed, its purpose) alone."""

    # cos(H_start, H_end) by layer, of a network that was trained.
    cos_start: list[float] | None = None

    def __init__(self, design: Design, reads: Reads, seed: int) -> None:
        super().__init__()
        self.design, self.reads, self.seed = design, reads, seed
        d, pixels = design.width, reads.kind == "pixels"

        def draw(purpose: str, std: float, *shape: int) -> nn.Parameter:
            return nn.Parameter(std * torch.randn(shape, generator=generator(seed, purpose)))

        if pixels:
            self.patches = linear(reads.inputs, d, reads.inputs**-0.5, seed, "patches")
            self.cls = nn.Parameter(torch.zeros(d))
        else:
            self.letters = draw("letters", 0.1, reads.inputs, d)
        positions = reads.tokens + pixels
        self.position = draw("positions", 0.3 if pixels else 0.1, positions, d)
        peri = design.placement == "peri"
        self.norm_embedding: nn.Module = nn.LayerNorm(d) if peri else nn.Identity()
        self.layers = nn.ModuleList(
            Block(design, reads, number, seed) for number in range(1, design.depth + 1)
        )
        self.norm = nn.LayerNorm(d)
        self.scores = linear(d, reads.outputs, 0.02, seed, "scores")

    def embedded(self, inputs: Tensor) -> Tensor:
        """The stream in front of the first layer, [b, n, d]."""
        if self.reads.kind == "characters":
            x = self.letters[inputs] + self.position[: inputs.shape[1]]
        else:
            b, c, p = len(inputs), self.reads.channels, self.reads.patch
            m = self.reads.side // p
            cut = inputs.reshape(b, c, m, p, m, p).permute(0, 2, 4, 1, 3, 5)
            cut = cut.reshape(b, m * m, c * p * p)
            x = torch.cat([self.cls.expand(b, 1, -1), self.patches(cut)], 1) + self.position
        embedded: Tensor = self.norm_embedding(x)
        return embedded

    def forward(self, inputs: Tensor, stream: list[Tensor] | None = None) -> Tensor:
        """Scores [b, outputs] of pixels [b, c, s, s], or [b, n, outputs] of characters [b, n].

        stream: the residual stream in front of and behind every layer is appended to it.
        """
        x = self.embedded(inputs)
        for block in self.layers:
            if stream is not None:
                stream.append(x)
            x = block(x)
        if stream is not None:
            stream.append(x)
        scores: Tensor = self.scores(self.norm(x if self.reads.kind == "characters" else x[:, 0]))
        return scores

    def blocks(self) -> list[Any]:
        """The layers, first to last."""
        return list(self.layers)

    @torch.no_grad()
    def products(self) -> Tensor:
        """W_V W_O = H^T of every layer, [depth, d, d] float64."""
        return torch.stack([each.attention.total().double() for each in self.blocks()])

    def decayed(self) -> tuple[list[Tensor], list[Tensor]]:
        """(parameters whose weight is decayed, the others): psi as W_V is; Theta, whose length Q
        does not see, norms, biases, positions and the CLS token are not."""
        kept = ("theta", "position", "cls", "bias")
        decayed: list[Tensor] = []
        free: list[Tensor] = []
        for name, parameter in self.named_parameters():
            last = name.rpartition(".")[2]
            weight = last not in kept and (parameter.ndim > 1 or last == "psi")
            (decayed if weight else free).append(parameter)
        return decayed, free

    def described(self, name: str | None) -> Model:
        """How the theory sees it (`models.model.DescribesItself`).

        Raises `InputError` for Laplacian heads, whose rows do not sum to 1, and for removal of the
        mean, which no layer of the described form has."""
        if self.design.laplacian or self.design.removal:
            raise InputError(
                "Laplacian heads and removal of the mean are not described as layers X + A N(X) H^T"
            )
        reads = self.reads
        pictured = reads.kind == "pixels"
        read = watched_model(
            self, cls=pictured, modality="vision" if pictured else "text",
            name=name or f"study, {self.design.form}",
            prepare=Pixels(reads.side, reads.mean, reads.deviation)
            if pictured
            else partial(numbers, reads),
        )  # fmt: skip
        own = with_own_heads(read, self._heads, self.cos_start)
        return replace(own, causal=reads.causal)

    @torch.no_grad()
    def _heads(self, number: int) -> Heads:
        attention = self.blocks()[number].attention
        d, h = self.design.width, self.design.heads
        W_Q, W_K = attention.query_key.detach().view(d, 2, h, d // h).permute(1, 2, 0, 3)
        W_V, W_O = (each.detach() for each in attention.maps())
        if attention.shared:
            return Heads(W_Q, W_K, (W_V / h).expand(h, d, d), W_O.expand(h, d, d))
        return Heads(W_Q, W_K, W_V.view(d, h, d // h).transpose(0, 1), W_O.view(h, d // h, d))


def plain(value: Any) -> dict[str, Any]:
    """The fields of a `Design` or of `Reads`, as JSON has them."""
    held = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: list(x) if isinstance(x, tuple) else x for name, x in held.items()}
