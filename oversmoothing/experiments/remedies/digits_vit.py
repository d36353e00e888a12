"""The digits ViT with a remedy in every layer, to be trained beside the ordinary one.

The attention sublayer has all of a remedy's places. What acts on the stream (`read`, `normed`,
`join`) is about the FFN's sublayer too, with weights of its own; `finish` comes once, behind the
layer. DeepNorm stands in a Post-LN layer, everything else wherever the configuration puts norms.
vit-minus and band are variants of the configuration, since H itself is of that form.
"""

import torch
from torch import Tensor, nn

from oversmoothing.experiments.digits.training_config import TrainConfig
from oversmoothing.experiments.digits.vit import LayerTrace, ViT, ViTLayer
from oversmoothing.experiments.remedies.by_name import REMEDIES, remedy
from oversmoothing.experiments.remedies.on_output import FormOfH
from oversmoothing.experiments.remedies.on_stream import DeepNorm, HyperConnections
from oversmoothing.experiments.remedies.remedy import Plain, Remedy
from oversmoothing.theory.support.errors import InputError

# The variant of `TrainConfig` that is the remedy.
VARIANT_OF = {"vit-minus": "vit-", "band": "vit-band"}
_ON_STREAM = ("read", "normed", "join")
# Where a remedy that starts at the plain layer would learn its way from, and the others' setting.
_START = {"neutreno": {"lam": 0.6}, "lambda-skip": {"lam": 1.0}, "contranorm": {"s": 0.1}}


def of_layer(name: str, config: TrainConfig, number: int) -> Remedy:
    """The remedy as layer `number` (from 1) starts with it. Raises `InputError` for no remedy."""
    own = {
        "attnscale": {"heads": config.heads},
        "featscale": {"width": config.width},
        "layerscale": {"width": config.width},
        "residual-scaling": {"depth": config.depth},
        "deepnorm": {"depth": config.depth},
        "ln-scaling": {"number": number},
    }
    return remedy(name, **own.get(name, {}), **_START.get(name, {}))


class RemediedLayer(ViTLayer):
    """A layer of the digits ViT with the places of a remedy."""

    remedy: Remedy
    remedy_of_ffn: Remedy

    def __init__(self, config: TrainConfig, name: str, number: int) -> None:
        super().__init__(config, number, None)
        self.remedy = of_layer(name, config, number)
        changed = any(getattr(REMEDIES[name], at) is not getattr(Remedy, at) for at in _ON_STREAM)
        self.remedy_of_ffn = of_layer(name, config, number) if changed else Plain()

    def values(self, x: Tensor) -> Tensor:
        """What the first layer's values are: normed tokens times H^T, [b, n, d]."""
        y = self._entered(self.remedy, self.norm_attention, x)
        values: Tensor = y @ self.value_projection().mT
        return values

    def run(self, x: Tensor, first: Tensor, record: list[LayerTrace] | None) -> Tensor:
        """The stream behind the layer; first: the values of the first layer."""
        remedy = self.remedy
        y = self._entered(remedy, self.norm_attention, x)
        heads = self.attention(y)
        V = remedy.values(y @ self.value_projection().mT, first)
        out = remedy.output(remedy.attention(heads).mean(1) @ V, V, first)
        middle = self._joined(remedy, self.norm_attention, x, self._kept(out))
        y = self._entered(self.remedy_of_ffn, self.norm_ffn, middle)
        after = self._joined(self.remedy_of_ffn, self.norm_ffn, middle, self._kept(self.ffn(y)))
        after = remedy.finish(after)
        if record is not None:
            tokens = (_tokens(remedy, each).detach() for each in (x, middle, after))
            record.append(LayerTrace(heads.detach(), *tokens))
        return after

    def _entered(self, remedy: Remedy, norm: nn.Module, x: Tensor) -> Tensor:
        z = remedy.read(x)
        return remedy.normed(norm(z) if self.placement == "pre" else z)

    def _joined(self, remedy: Remedy, norm: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        z = remedy.join(x, y)
        return z if self.placement == "pre" else norm(z)


class RemediedViT(ViT):
    """The digits ViT under a remedy; what is drawn is what the ordinary ViT of that seed has."""

    def __init__(self, config: TrainConfig, name: str, generator: torch.Generator) -> None:
        if name not in REMEDIES:
            raise InputError(f"no remedy '{name}': choose one of {', '.join(REMEDIES)}")
        if issubclass(REMEDIES[name], FormOfH):  # type: ignore[arg-type]
            raise InputError(
                f"the remedy '{name}' is the form of H itself: train the variant "
                f"'{VARIANT_OF[name]}' instead"
            )
        if config.tied:
            raise InputError("weights tied over layers have no remedy of each layer's own: untie")
        if name == "deepnorm" and config.placement != "post":
            raise InputError("DeepNorm is a Post-LN layer: set placement to 'post'")
        super().__init__(config, generator)
        layers = nn.ModuleList()
        for number, plain in enumerate(self.stack(), 1):
            layer = RemediedLayer(config, name, number)
            layer.load_state_dict(plain.state_dict(), strict=False)
            layers.append(layer)
        self.layers = layers
        self._start_small()

    @torch.no_grad()
    def _start_small(self) -> None:
        """DeepNorm's beta: once in each weight of the FFN, twice in H, which is W_V W_proj."""
        for layer in self.stack():
            if isinstance(layer, RemediedLayer) and isinstance(layer.remedy, DeepNorm):
                beta = layer.remedy.beta
                layer.value_projection.start_at(beta**2 * layer.value_projection().double())
                for part in (layer.ffn[0], layer.ffn[2]):
                    assert isinstance(part, nn.Linear)
                    part.weight.mul_(beta)

    def forward(self, pixels: Tensor, record: list[LayerTrace] | None = None) -> Tensor:
        """Class scores [b, classes] of pixels [b, s, s], as those of the ViT."""
        x = self.tokens(pixels)
        layers = [each for each in self.stack() if isinstance(each, RemediedLayer)]
        if isinstance(streams := layers[0].remedy, HyperConnections):
            x = streams.spread(x)
        first = layers[0].values(x)
        for layer in layers:
            x = layer.run(x, first, record)
        scores: Tensor = self.classifier(self.norm(_tokens(layers[0].remedy, x)[:, 0]))
        return scores


def _tokens(remedy: Remedy, x: Tensor) -> Tensor:
    return remedy.gather(x) if isinstance(remedy, HyperConnections) else x
