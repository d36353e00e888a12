"""The remedies by name, and at which setting each is put beside the others."""

from collections.abc import Callable
from typing import Any

from oversmoothing.experiments.remedies import on_branch, on_stream
from oversmoothing.experiments.remedies.remedy import Plain, Remedy
from oversmoothing.theory.support.errors import InputError

REMEDIES: dict[str, Callable[..., Remedy]] = {
    "attnscale": on_branch.AttnScale,
    "featscale": on_branch.FeatScale,
    "gfsa": on_branch.GFSA,
    "outlier-removal": on_branch.OutlierRemoval,
    "centred-attention": on_branch.CentredAttention,
    "shaped-attention": on_branch.ShapedAttention,
    "laplacian-head": on_branch.LaplacianHead,
    "contranorm": on_stream.ContraNorm,
    "de-escalation": on_stream.DeEscalation,
    "neutreno": on_branch.NeuTRENO,
    "value-residual": on_branch.ValueResidual,
    "layerscale": on_branch.LayerScale,
    "residual-scaling": on_stream.ResidualScaling,
    "lambda-skip": on_stream.LambdaSkip,
    "deepnorm": on_stream.DeepNorm,
    "ln-scaling": on_stream.LNScaling,
    "hyper-connections": on_stream.HyperConnections,
    "hyper-connections-ds": on_stream.DoublyStochasticConnections,
    "vit-minus": on_branch.ViTMinus,
    "band": on_branch.BandOfH,
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
    if name == "ln-scaling":
        return on_stream.LNScaling(1)
    if name == "deepnorm":
        plain = on_stream.DeepNorm(1)
        plain.alpha = 1.0
        return plain
    return Plain()
