"""A vision transformer for small images whose value-projection product is one H a layer.

It is called a shared-value ViT: every head mixes the same values, and none has values of its own.
A Pre-LN layer on the residual stream X [n, d] (rows = tokens, the first is CLS):

    X <- X + A LN(X) H^T,    A = mean over heads of softmax(LN(X) W_Q W_K^T LN(X)^T / sqrt(k))
    X <- X + FFN(LN(X))

and a Post-LN layer X <- LN(X + A X H^T), X <- LN(X + FFN(X)). Either way one more norm stands in
front of the classifier. H is free or of any form of `experiments.forms`, its own in
each layer or tied.

Taking the mean over heads, with one H for all of them, is our reading: arXiv 2401.04301 replaces
W_V W_proj by one H and does not say how heads are combined. It makes the attention sublayer
without LN exactly vec(X') = (I + H (x) A) vec(X), also with many heads: A is row-stochastic, and
what holds of one head holds. No bias on queries, keys or H.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.utils import parametrize

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.forms.form import ValueProjection
from oversmoothing.experiments.forms.regions import MeasuredInterval, value_projection
from oversmoothing.experiments.models.describe import watched_model, with_own_heads
from oversmoothing.experiments.models.inputs import HALF, WHITE, Images
from oversmoothing.experiments.models.model import Heads, Model
from oversmoothing.experiments.models.pictures import scaled, upright_rgb
from oversmoothing.simulations.spectra.head_values import (
    LayerDominance,
    layer_dominance,
    mean_attention,
)
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array

# Large position embeddings let the first layers tell tokens apart from the start.
POSITION_STD = 0.5
WEIGHT_STD = 0.02
# How often a tied H whose attention moves with it is measured before s = 1 is taken.
MEASURED_AGAIN = 8


@dataclass(frozen=True)
class LayerTrace:
    """What one layer did to a batch of b images; all detached, in the model's dtype.

    `attention` [b, heads, n, n], row-stochastic; the residual stream [b, n, d] before the layer,
    after its attention sublayer and after its FFN sublayer.
    """

    attention: Tensor
    before: Tensor
    after_attention: Tensor
    after_ffn: Tensor


def _linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear map with its weights not drawn yet: nn.Linear alone would use the global state."""
    return nn.Linear(inputs, outputs, bias, device="meta").to_empty(device="cpu")


class SignedGain(nn.Module):
    """A gain of one sign, sign exp(g): a parametrisation of LayerNorm's weight."""

    def __init__(self, sign: int) -> None:
        super().__init__()
        self.sign = sign

    def forward(self, g: Tensor) -> Tensor:
        return self.sign * g.exp()

    def right_inverse(self, gain: Tensor) -> Tensor:
        return gain.abs().log()


def _norm(config: TrainConfig) -> nn.LayerNorm:
    """A norm within a layer, its gains as the configuration wants them; all start at +1 or -1."""
    norm = nn.LayerNorm(config.width)
    if config.gains == "fixed":
        norm.weight.requires_grad_(False)
    elif config.gains != "free":
        sign = SignedGain(1 if config.gains == "positive" else -1)
        parametrize.register_parametrization(norm, "weight", sign)
    return norm


class ViTLayer(nn.Module):
    """One layer: attention sublayer, then FFN sublayer; tied: the H of an earlier layer."""

    value_projection: ValueProjection

    def __init__(self, config: TrainConfig, number: int, tied: ValueProjection | None) -> None:
        super().__init__()
        d, form = config.width, config.form_of_layer(number)
        self.heads = config.heads
        # Grows linearly with depth, as in the recipe of DeiT.
        self.drop = config.drop_path * (number - 1) / max(1, config.depth - 1)
        self.placement = config.placement
        self.norm_attention = _norm(config)
        self.query_key = _linear(d, 2 * d, bias=False)
        if tied is None:
            self.value_projection = value_projection(form, d, **config.form_options(form))
        else:
            # Held but not registered: its parameters belong to the layer that owns them, once.
            object.__setattr__(self, "value_projection", tied)
        self.norm_ffn = _norm(config)
        self.ffn = nn.Sequential(
            _linear(d, config.ffn_ratio * d), nn.GELU(), _linear(config.ffn_ratio * d, d)
        )

    def attention(self, y: Tensor) -> Tensor:
        """Attention of every head, [b, n, d] -> [b, heads, n, n]; each row sums to 1."""
        b, n, d = y.shape
        q, k = self.query_key(y).view(b, n, 2, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        logits: Tensor = q @ k.mT * (d // self.heads) ** -0.5
        return logits.softmax(-1)

    def _kept(self, branch: Tensor) -> Tensor:
        """Stochastic depth: while training, the branch of an image is left out at random."""
        if not self.training or self.drop == 0:
            return branch
        keep = torch.rand(len(branch), 1, 1, device=branch.device) >= self.drop
        return branch * keep / (1 - self.drop)

    def forward(self, x: Tensor, record: list[LayerTrace] | None = None) -> Tensor:
        y = self.norm_attention(x) if self.placement == "pre" else x
        heads = self.attention(y)
        middle: Tensor = x + self._kept(heads.mean(1) @ (y @ self.value_projection().mT))
        if self.placement == "pre":
            after: Tensor = middle + self._kept(self.ffn(self.norm_ffn(middle)))
        else:
            middle = self.norm_attention(middle)
            after = self.norm_ffn(middle + self._kept(self.ffn(middle)))
        if record is not None:
            record.append(LayerTrace(heads.detach(), x.detach(), middle.detach(), after.detach()))
        return after


@dataclass(frozen=True)
class GreyImages(Images):
    """What the project's own ViT reads: greys of its exact size, [m, size, size] float32; bright is
    ink (255 -> 1, 0 -> -1), as on the digits' own black ground. Nothing is resized."""

    def usual(self, count: int | None) -> Tensor:
        """The digits' validation images: what is read where no pictures are named."""
        return digits().validation.pixels[:count]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.size, self.size

    def pixels(self, image: Image.Image) -> Tensor:
        upright = upright_rgb(image)
        if upright.size != self.shape:
            name = image.info.get("file", "an image")
            raise InputError(
                f"'{name}' is {upright.width} x {upright.height} pixels, "
                f"the model reads {self.size} x {self.size}: resize or crop it first"
            )
        return scaled(np.asarray(upright.convert("L"), dtype=np.float64) / WHITE)


class ViT(nn.Module):
    """The whole model; every parameter is drawn from `generator`, never from global state."""

    # cos(H_start, H_end) by layer, of a model that a run is read from (`training.cos_start`).
    cos_start: list[float] | None = None

    def __init__(self, config: TrainConfig, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        d = config.width
        self.patches = _linear(config.sizes.channels * config.patch**2, d)
        self.cls = nn.Parameter(torch.zeros(d))
        tokens = 1 + (config.sizes.size // config.patch) ** 2
        self.position = nn.Parameter(torch.empty(tokens, d))
        self.layers = nn.ModuleList()
        owners: dict[str, ValueProjection] = {}
        for number in range(1, config.depth + 1):
            form = config.form_of_layer(number)
            layer = ViTLayer(config, number, owners.get(form))
            if config.tied:
                owners[form] = layer.value_projection
            self.layers.append(layer)
        self.norm = nn.LayerNorm(d)
        self.classifier = _linear(d, config.sizes.classes)
        self._initialise(generator)

    @torch.no_grad()
    def _initialise(self, generator: torch.Generator) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                draw = torch.randn(module.weight.shape, generator=generator)
                # Variance-preserving; the classifier starts near zero.
                std = WEIGHT_STD if module is self.classifier else module.in_features**-0.5
                module.weight.copy_(draw * std)
                if module.bias is not None:
                    module.bias.zero_()
        self.position.copy_(torch.randn(self.position.shape, generator=generator) * POSITION_STD)
        for projection in self.projections():
            projection.initialise(self.config.value_scale, generator)

    def stack(self) -> Iterator[ViTLayer]:
        """The layers, first to last."""
        for layer in self.layers:
            assert isinstance(layer, ViTLayer)
            yield layer

    def projections(self) -> list[ValueProjection]:
        """The different modules of H, first to last: one a layer, or fewer where H is tied."""
        return list(
            {id(each.value_projection): each.value_projection for each in self.stack()}.values()
        )

    def tokens(self, pixels: Tensor) -> Tensor:
        """Pixels [b, s, s] or [b, c, s, s] -> the residual stream in front of the first layer
        [b, n, d]; a patch is read channel by channel."""
        p, c = self.config.patch, self.config.sizes.channels
        b, side = len(pixels), self.config.sizes.size // p
        planes = pixels.reshape(b, c, side, p, side, p).permute(0, 2, 4, 1, 3, 5)
        cut = planes.reshape(b, side * side, c * p * p)
        x = torch.cat([self.cls.expand(b, 1, -1), self.patches(cut)], dim=1)
        embedded: Tensor = x + self.position
        return embedded

    def forward(self, pixels: Tensor, record: list[LayerTrace] | None = None) -> Tensor:
        """Class scores [b, classes] of pixels [b, s, s], or [b, c, s, s].

        With a list in `record`, one `LayerTrace` a layer is appended to it; the scores are the
        same to the bit.
        """
        x = self.tokens(pixels)
        for layer in self.layers:
            x = layer(x, record)
        scores: Tensor = self.classifier(self.norm(x[:, 0]))
        return scores

    @torch.no_grad()
    def value_projections(self) -> Tensor:
        """H of every layer, tied or not, [depth, d, d] in float64 on the CPU.

        The parameters are upcast first and H is formed from them in float64, so that the
        eigenvalues of a signed H are its +-psi^2 to float64 rounding.
        """
        return torch.stack([each.value_projection.in_float64() for each in self.stack()]).cpu()

    def described(self, name: str | None) -> Model:
        """How the theory sees it (`models.model.DescribesItself`)."""
        size, grey = self.config.sizes.size, self.config.sizes.channels == 1
        read = watched_model(
            self, cls=True, modality="vision", name=name or "shared-value ViT",
            # Greys for the digits; colours in [-1, 1], resized, for CIFAR.
            prepare=GreyImages(size) if grey else Images(size, HALF, HALF),
        )  # fmt: skip
        return with_own_heads(read, self._heads, self.cos_start)

    def _heads(self, number: int) -> Heads:
        """Heads share one H and are averaged, so that each head of the sum has W_V = H^T / heads,
        W_O = 1 and r = d. H is float64, as its spectrum is taken."""
        d, heads = self.config.width, self.config.heads
        weight, H = list(self.stack())[number].query_key.weight, self.value_projections()[number]
        both = weight.detach().T.reshape(d, 2, heads, d // heads)
        W_Q, W_K = (both[:, i].transpose(0, 1).contiguous() for i in (0, 1))
        W_V = (H.mT / heads).expand(heads, d, d).to(weight.device)
        W_O = torch.eye(d, dtype=H.dtype, device=weight.device).expand(heads, d, d)
        return Heads(W_Q, W_K, W_V, W_O)


@torch.no_grad()
def dominance_by_layer(model: ViT, pixels: Tensor) -> list[LayerDominance]:
    """Reading E2 of every layer on images on the model's device."""
    record: list[LayerTrace] = []
    model(pixels, record)
    return [
        layer_dominance(trace.attention.cpu().numpy(), H.numpy())
        for trace, H in zip(record, model.value_projections(), strict=True)
    ]


def refresh_intervals(model: ViT, pixels: Tensor) -> None:
    """Set every measured interval (-s, 0) to the smallest s of its layers over these images.

    H moves with s, and the attention of later layers with H: layers are taken in turn, each behind
    those already set. Where H is tied, s sinks until the attention that it makes allows it, or to 1
    (safe under every attention).
    """
    for projection in model.projections():
        if isinstance(projection.form, MeasuredInterval):
            for _ in range(MEASURED_AGAIN):
                held = projection.form.refresh(*_attention(model, projection, pixels))
                if projection.form.measured(*_attention(model, projection, pixels)) >= held:
                    break
            else:
                projection.form.set_interval(1.0)


@torch.no_grad()
def _attention(model: ViT, projection: ValueProjection, pixels: Tensor) -> list[Array]:
    """Attention [n, n] of every image in every layer that has this H, mean over heads."""
    record: list[LayerTrace] = []
    model(pixels, record)
    return [
        A
        for trace, layer in zip(record, model.stack(), strict=True)
        if layer.value_projection is projection
        for A in mean_attention(trace.attention.cpu().numpy())
    ]
