"""Remedies against oversmoothing as small modules around any layer, with what each does to the
spectrum: `oversmoothing.remedies`.

    remedy = oversmoothing.remedies.AttnScale(omega=0.5)
    remedy.layer(X, A, W)                    # X' = X + A' X W
    remedy.attention(A)                      # for an attention layer of one's own
    oversmoothing.remedies.DeEscalation().around(branch)(X)
    oversmoothing.remedies.remedies_table()  # prediction, measurement, cost

>>> import torch, oversmoothing
>>> remedy = oversmoothing.remedies.AttnScale(omega=0.5)
>>> remedy
AttnScale(omega=0.5, heads=1)
>>> remedy.attention(torch.tensor([[0.75, 0.25], [0.25, 0.75]])).tolist()
[[0.875, 0.125], [0.125, 0.875]]
"""

from oversmoothing.experiments.remedies.by_name import REMEDIES, remedy
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
from oversmoothing.experiments.remedies.shift import remedies_table

__all__ = [
    "GFSA",
    "AttnScale",
    "BandOfH",
    "CentredAttention",
    "ContraNorm",
    "DeEscalation",
    "DeepNorm",
    "DoublyStochasticConnections",
    "FeatScale",
    "HyperConnections",
    "LNScaling",
    "LambdaSkip",
    "LaplacianHead",
    "LayerScale",
    "NeuTRENO",
    "OutlierRemoval",
    "Plain",
    "REMEDIES",
    "Remedy",
    "ResidualScaling",
    "ShapedAttention",
    "ValueResidual",
    "ViTMinus",
    "remedies_table",
    "remedy",
]
