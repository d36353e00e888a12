"""The remedies by name, and at which setting each is put beside the others."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from oversmoothing.experiments.remedies.on_attention import (
    GFSA,
    AttnScale,
    CentredAttention,
    LaplacianHead,
    OutlierRemoval,
    ShapedAttention,
)
from oversmoothing.experiments.remedies.on_output import (
    BandOfH,
    FeatScale,
    LayerScale,
    NeuTRENO,
    ValueResidual,
    ViTMinus,
)
from oversmoothing.experiments.remedies.on_stream import (
    ContraNorm,
    DeepNorm,
    DeEscalation,
    DoublyStochasticConnections,
    HyperConnections,
    LambdaSkip,
    LNScaling,
    ResidualScaling,
)
from oversmoothing.experiments.remedies.remedy import Plain, Remedy
from oversmoothing.theory.support.errors import InputError

REMEDIES: dict[str, Callable[..., Remedy]] = {
    "attnscale": AttnScale,
    "featscale": FeatScale,
    "gfsa": GFSA,
    "outlier-removal": OutlierRemoval,
    "centred-attention": CentredAttention,
    "shaped-attention": ShapedAttention,
    "laplacian-head": LaplacianHead,
    "contranorm": ContraNorm,
    "de-escalation": DeEscalation,
    "neutreno": NeuTRENO,
    "value-residual": ValueResidual,
    "layerscale": LayerScale,
    "residual-scaling": ResidualScaling,
    "lambda-skip": LambdaSkip,
    "deepnorm": DeepNorm,
    "ln-scaling": LNScaling,
    "hyper-connections": HyperConnections,
    "hyper-connections-ds": DoublyStochasticConnections,
    "vit-minus": ViTMinus,
    "band": BandOfH,
}
# The setting of the table: a start at which a remedy is the plain layer would show nothing.
SETTINGS: dict[str, dict[str, Any]] = {
    "attnscale": {"omega": 0.5},
    "featscale": {"s": 0.0, "t": 0.5},
    "gfsa": {"w_0": 0.2, "w_1": 1.0, "w_K": -0.3},
    "shaped-attention": {"alpha": 1.0, "beta": 0.5, "gamma": 0.5},
    "contranorm": {"s": 0.5},
    "hyper-connections": {"jitter": 0.2},
    "hyper-connections-ds": {"jitter": 0.2},
}
_WIDTH = ("featscale", "layerscale")
# What a remedy that brings norms of its own is held against: the same norms without it.
_AGAINST: dict[str, Callable[[], Remedy]] = {"ln-scaling": partial(LNScaling, 1)}


def remedy(name: str, **options: Any) -> Remedy:
    """The remedy of that name around a layer of its own; its class says what each option is.

    Raises `InputError` for a name or an option that there is not.
    """
    if name not in REMEDIES:
        raise InputError(f"no remedy '{name}': choose one of {', '.join(REMEDIES)}")
    try:
        return REMEDIES[name](**options)
    except TypeError as error:
        said = str(error).split("__init__() ")[-1]
        raise InputError(f"the remedy '{name}': {said}") from error


def in_table(name: str, width: int) -> Remedy:
    """The remedy at the setting of the table, in float64, for tokens of `width` features."""
    own = {"width": width} if name in _WIDTH else {}
    return remedy(name, **own, **SETTINGS.get(name, {})).double()


def without(name: str) -> Remedy:
    """What the remedy is held against: the plain layer, or the same norms without the remedy."""
    if name == "deepnorm":
        plain = DeepNorm(1)
        plain.alpha = 1.0
        return plain
    return _AGAINST.get(name, Plain)().to(torch.float64)
