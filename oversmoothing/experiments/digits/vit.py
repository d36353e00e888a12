"""The project's own Transformer: heads with values of their own, or the forms of arXiv 2401.04301.

Every head h has its own values, k = d / heads columns of W_V [d, d] and the same rows of W_O:

    X <- X + sum_h A_h N(X) W_V,h W_O,h,    then X <- X + FFN(N(X))

    ord        W_V, W_O free: an ordinary ViT, 2 d^2 parameters
    sym        W_V = Q, W_O = diag(psi) Q^T, Q of Theta = QR: d^2 + d parameters
    plus minus the same with psi^2 and -psi^2 (ViT+ and ViT-)
    clip+ clip-  the same with psi cut to [0, 1] and to [-1, 0] (third version)
    shared     one free H for all heads, on the mean of their attention; 'shared plus' and 'shared
               minus' the same with Q Lambda Q^T, 'shared band' and so on with H of a region of
               `experiments.forms`

Splitting one Q among the heads is our reading: putting the result of QR in the place of the two
matrices of ordinary code gives it, and H_h = Q_h Lambda_h Q_h^T is symmetric in every head. With
shared values the attention sublayer without LN is exactly vec(X') = (I + H (x) A) vec(X), also
with many heads, and what holds of one head holds. Arms of one seed share every draw but that of
their own W_V and W_O, and ||H||_F of every layer at the start is that of `ord`, but for an H of a
region, which starts within it. What cannot be equal: signed arms have d^2 - d fewer parameters a
layer than `ord` (`sym` is their matched control), and H of `plus` and `minus` starts with a trace.
"""

import zlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from oversmoothing.experiments.digits.data import Pixels, Reads, numbers, seen
from oversmoothing.experiments.digits.training_config import SHARED, WHOLE, Design
from oversmoothing.experiments.forms import form as forms
from oversmoothing.experiments.forms.regions import parameterisation, value_projection
from oversmoothing.experiments.models.describe import watched_model, with_own_heads
from oversmoothing.experiments.models.model import Heads, Model
from oversmoothing.theory.support.errors import InputError

# 2305.09828: W_V W_O = MIMETIC (Z - I), Z with entries of variance 1/d.
MIMETIC = 0.4
# Tokens beyond which the fused attention of torch is the faster one.
FUSED = 32
# The region of `experiments.forms` that eigenvalues of a form with theta and psi lie in.
REGION = {"plus": "plus", "minus": "minus", "clip+": "clip-plus", "clip-": "clip-minus"}
# Eigenvalues of a whole H start within that of 0, where its region lets them.
SCALE = 0.5


def generator(seed: int, purpose: str) -> torch.Generator:
    """An independent CPU generator for one purpose of one run."""
    state = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())]).generate_state(2)
    return torch.Generator().manual_seed(int(state[0]) << 31 | int(state[1]) >> 1)


def eigenvalues(form: str, psi: Tensor) -> Tensor:
    """Lambda [d] of a signed form."""
    if form in ("plus", "minus"):
        return psi.square() if form == "plus" else -psi.square()
    ends = {"clip+": (0, 1), "clip-": (-1, 0)}.get(form)
    return psi.clamp(*ends) if ends else psi


def _one(like: Tensor) -> Tensor:
    """The identity of `like`'s side, where that lies: a copy to a card would wait for it."""
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)


class HeadedAttention(nn.Module):
    """sum_h A_h y W_V,h W_O,h of normed tokens y [b, n, d]; tied: with the H of that layer."""

    seen: Tensor | None
    tied: "HeadedAttention | None"
    # A whole H of a form of `experiments.forms`.
    projection: forms.ValueProjection | None
    # Whether torch's fused attention may be used, where it is the faster one.
    fused = True

    def __init__(
        self, design: Design, reads: Reads, number: int, seed: int, tied: "HeadedAttention | None"
    ) -> None:
        super().__init__()
        form, self.heads, self.causal = design.form_of(number), design.heads, reads.causal
        # shared: one H on the mean of the heads' attention.
        self.shared, self.form = form in SHARED, form.removeprefix("shared ")
        self.laplacian = design.laplacian
        # Held but not registered: its parameters belong to the layer that owns them, once.
        object.__setattr__(self, "tied", tied)
        self.projection = None
        self.query_key = nn.Parameter(
            design.std
            * drawn(seed, f"layer {number}, query and key", design.width, 2 * design.width)
        )
        if tied is None:
            self._draw_values(design, number, seed)
        self.register_buffer("seen", seen(design.mask, reads), persistent=False)
        # Its output is the sublayer's: a place for hooks.
        self.out = nn.Identity()

    def _draw_values(self, design: Design, number: int, seed: int) -> None:
        d, std = design.width, design.std

        def draw(purpose: str, *shape: int) -> Tensor:
            return drawn(seed, f"layer {number}, {purpose}", *shape)

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
        elif self.form == "shared":
            self.W_H = nn.Parameter(W_V @ W_O)
        elif self.form in WHOLE:
            band = {"p": design.band_p, "q": design.band_q} if self.form == "band" else {}
            self.projection = value_projection(self.form, d, **band)
            self.projection.initialise(SCALE, generator(seed, f"layer {number}, {self.form}"))
        else:
            self.theta = nn.Parameter(std * draw("theta", d, d))
            signs = draw("psi", d)
            if self.form != "sym":
                signs = signs.abs() * (-1 if self.form in ("minus", "clip-") else 1)
            size = signs * norm / torch.linalg.vector_norm(signs)
            squared = self.form in ("plus", "minus")
            self.psi = nn.Parameter(size.abs().sqrt() if squared else size)

    @property
    def owner(self) -> "HeadedAttention":
        """The one whose H this is."""
        return self.tied or self

    def maps(self) -> tuple[Tensor, Tensor]:
        """(W_V, W_O), [d, d] each, heads side by side and below each other; shared: (H^T, 1)."""
        own = self.owner
        if own.form == "ord":
            return own.W_V, own.W_O
        if own.form == "shared":
            return own.W_H, _one(own.W_H)
        if own.projection is not None:
            H = own.projection()
            return H.mT, _one(H)
        Q = forms.orthogonal_factor(own.theta)
        W_O = eigenvalues(own.form, own.psi)[:, None] * Q.mT
        return (Q @ W_O, _one(Q)) if own.shared else (Q, W_O)

    def total(self) -> Tensor:
        """W_V W_O = H^T [d, d], the sum over heads."""
        W_V, W_O = self.maps()
        return W_V @ W_O

    @torch.no_grad()
    def in_float64(self) -> Tensor:
        """H [d, d] formed in float64 from the parameters, so that the eigenvalues of a signed H
        are its own to float64 rounding; symmetric exactly where it is so."""
        own = self.owner
        if own.projection is not None:
            return own.projection.in_float64()
        if own.form in ("ord", "shared"):
            W_V, W_O = (each.double() for each in own.maps())
            return (W_V @ W_O).mT
        return forms.symmetric(forms.orthogonal_factor(own.theta.double()),
                         eigenvalues(own.form, own.psi.double()))  # fmt: skip

    @torch.no_grad()
    def inside(self) -> forms.Inside:
        """Whether H lies in the region of its form."""
        own = self.owner
        if own.projection is not None:
            return own.projection.inside()
        return parameterisation(REGION.get(own.form, "free")).inside(own.total().mT)

    def forward(self, y: Tensor) -> Tensor:
        b, n, d = y.shape
        q, key = self.queries_and_keys(y)
        W_V, W_O = self.maps()
        added: Tensor
        if self.shared:
            added = self.out(self.attention(q, key).mean(1) @ (y @ W_V))
            return added
        values = (y @ W_V).view(b, n, self.heads, d // self.heads).transpose(1, 2)
        if self.fused and n > FUSED and not self.laplacian:
            mixed = functional.scaled_dot_product_attention(
                q, key, values, attn_mask=self.seen, is_causal=self.causal and self.seen is None
            )
        else:
            mixed = self.attention(q, key) @ values
        added = self.out(mixed.transpose(1, 2).reshape(b, n, d) @ W_O)
        return added

    def queries_and_keys(self, y: Tensor) -> Tensor:
        """Of normed tokens y [b, n, d]: [2, b, heads, n, d / heads]."""
        b, n, d = y.shape
        both = (y @ self.query_key).view(b, n, 2, self.heads, d // self.heads)
        return both.permute(2, 0, 3, 1, 4)

    def attention(self, q: Tensor, key: Tensor) -> Tensor:
        """A [b, heads, n, n] of queries and keys, of Laplacian heads, the first ones, I - A."""
        n = q.shape[-2]
        logits = q @ key.mT * q.shape[-1] ** -0.5
        if self.seen is not None:
            logits = logits.masked_fill(~self.seen[:n, :n], -torch.inf)
        elif self.causal:
            later = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
            logits = logits.masked_fill(later, -torch.inf)
        A: Tensor = logits.softmax(-1)
        if self.laplacian:
            rest = _one(A) - A[:, : self.laplacian]
            A = torch.cat([rest, A[:, self.laplacian :]], 1)
        return A


class SignedGain(nn.Module):
    """A gain of one sign, sign exp(g): a parametrisation of LayerNorm's weight."""

    def __init__(self, sign: int) -> None:
        super().__init__()
        self.sign = sign

    def forward(self, g: Tensor) -> Tensor:
        return self.sign * g.exp()

    def right_inverse(self, gain: Tensor) -> Tensor:
        return gain.abs().log()


def _norm(design: Design) -> nn.LayerNorm:
    """A norm in front of a sublayer, its gains as the design wants them; all start at +1 or -1."""
    norm = nn.LayerNorm(design.width)
    if design.gains == "fixed":
        norm.weight.requires_grad_(False)
    elif design.gains != "free":
        sign = SignedGain(1 if design.gains == "positive" else -1)
        parametrize.register_parametrization(norm, "weight", sign)
    return norm


class Block(nn.Module):
    """One layer on the stream x [b, n, d]; tied: to the H of that layer."""

    def __init__(
        self, design: Design, reads: Reads, number: int, seed: int, tied: HeadedAttention | None
    ) -> None:
        super().__init__()
        d, wide = design.width, design.ratio * design.width
        self.post, self.removal = design.placement == "post", design.removal
        behind = design.placement in ("sandwich", "peri")
        # Grows linearly with depth, as in the recipe of DeiT.
        self.drop = design.drop_path * (number - 1) / max(1, design.depth - 1)
        self.norm_attention, self.norm_ffn = _norm(design), _norm(design)
        self.behind_attention = nn.LayerNorm(d) if behind else None
        self.behind_ffn = nn.LayerNorm(d) if behind else None
        self.attention = HeadedAttention(design, reads, number, seed, tied)
        self.ffn = nn.Sequential(
            linear(d, wide, design.std, seed, f"layer {number}, first of FFN"),
            nn.GELU(),
            linear(wide, d, design.std, seed, f"layer {number}, second of FFN"),
        )

    def heads_of(self, x: Tensor) -> Tensor:
        """Its attention on the stream x in front of it, [b, heads, n, n]."""
        y = x if self.post else self.norm_attention(x)
        return self.attention.attention(*self.attention.queries_and_keys(y))

    def forward(self, x: Tensor) -> Tensor:
        if self.post:
            x = self.norm_attention(x + self._kept(self.attention(x)))
            x = self.norm_ffn(x + self._kept(self.ffn(x)))
        else:
            x = x + self._kept(self.attention(self.norm_attention(x)), self.behind_attention)
            x = x + self._kept(self.ffn(self.norm_ffn(x)), self.behind_ffn)
        return x - x.mean(1, keepdim=True) if self.removal else x

    def _kept(self, branch: Tensor, behind: nn.LayerNorm | None = None) -> Tensor:
        """Stochastic depth: while training, the branch of an image is left out at random."""
        if behind is not None:
            branch = behind(branch)
        if not self.training or self.drop == 0:
            return branch
        keep = torch.rand(len(branch), 1, 1, device=branch.device) >= self.drop
        return branch * keep / (1 - self.drop)


def drawn(seed: int, purpose: str, *shape: int) -> Tensor:
    """Independent normal numbers from a generator of their own."""
    return torch.randn(shape, generator=generator(seed, purpose))


def linear(inputs: int, outputs: int, std: float, seed: int, purpose: str) -> nn.Linear:
    """Weights of that deviation from a generator of their own, bias 0."""
    made = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        made.weight.copy_(std * drawn(seed, purpose, *made.weight.shape))
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

        if pixels:
            self.patches = linear(reads.inputs, d, reads.inputs**-0.5, seed, "patches")
            self.cls = nn.Parameter(torch.zeros(d))
        else:
            self.letters = nn.Parameter(0.1 * drawn(seed, "letters", reads.inputs, d))
        positions = reads.tokens + pixels
        std = 0.3 if pixels else 0.1
        self.position = nn.Parameter(std * drawn(seed, "positions", positions, d))
        peri = design.placement == "peri"
        self.norm_embedding: nn.Module = nn.LayerNorm(d) if peri else nn.Identity()
        self.layers = nn.ModuleList()
        owners: dict[str, HeadedAttention] = {}
        for number in range(1, design.depth + 1):
            form = design.form_of(number)
            block = Block(design, reads, number, seed, owners.get(form))
            if design.tied:
                owners[form] = block.attention.owner
            self.layers.append(block)
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
        """Scores [b, outputs] of pixels [b, c, s, s], greys [b, s, s] too, or [b, n, outputs] of
        characters [b, n].

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

    def value_projections(self) -> Tensor:
        """H of every layer, tied or not, formed in float64, [depth, d, d] on the CPU."""
        return torch.stack([each.attention.in_float64() for each in self.blocks()]).cpu()

    def decayed(self) -> tuple[list[Tensor], list[Tensor]]:
        """(parameters whose weight is decayed, the others): psi as W_V is; Theta, whose length Q
        does not see, norms, biases, positions and the CLS token are not, nor a whole H of a region,
        of which decay would only move the place in it."""
        kept = ("theta", "position", "cls", "bias")
        groups: tuple[list[Tensor], list[Tensor]] = [], []
        for name, parameter in self.named_parameters():
            last = name.rpartition(".")[2]
            weight = last not in kept and (parameter.ndim > 1 or last == "psi")
            groups["projection" in name or not weight].append(parameter)
        return groups

    def described(self, name: str | None) -> Model:
        """How the theory sees it (`models.model.DescribesItself`).

        Raises `InputError` for Laplacian heads, whose rows do not sum to 1, and for removal of the
        mean, which no layer of the described form has."""
        if self.design.laplacian or self.design.removal:
            raise InputError(
                "Laplacian heads and removal of the mean are not described as layers X + A N(X) H^T"
            )
        reads, pictured = self.reads, self.reads.kind == "pixels"
        prepare: Any = partial(numbers, reads)
        if pictured:
            prepare = Pixels(reads.side, reads.mean, reads.deviation)
        read = watched_model(
            self, cls=pictured, modality="vision" if pictured else "text", prepare=prepare,
            name=name or f"{'ViT' if pictured else 'decoder'}, {self.design.form}",
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
            # Of a mean of heads with one H each has W_V = H^T / heads, W_O = 1 and r = d.
            H = attention.in_float64()
            return Heads(W_Q, W_K, (H.mT / h).expand(h, d, d), _one(H).expand(h, d, d))
        return Heads(W_Q, W_K, W_V.view(d, h, d // h).transpose(0, 1), W_O.view(h, d // h, d))
