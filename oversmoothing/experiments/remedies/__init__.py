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

from oversmoothing.experiments.remedies.on_branch import (
    GFSA as GFSA,
    AttnScale as AttnScale,
    BandOfH as BandOfH,
    CentredAttention as CentredAttention,
    FeatScale as FeatScale,
    LaplacianHead as LaplacianHead,
    LayerScale as LayerScale,
    NeuTRENO as NeuTRENO,
    OutlierRemoval as OutlierRemoval,
    ShapedAttention as ShapedAttention,
    ValueResidual as ValueResidual,
    ViTMinus as ViTMinus,
)
from oversmoothing.experiments.remedies.on_stream import (
    ContraNorm as ContraNorm,
    DeepNorm as DeepNorm,
    DeEscalation as DeEscalation,
    DoublyStochasticConnections as DoublyStochasticConnections,
    HyperConnections as HyperConnections,
    LambdaSkip as LambdaSkip,
    LNScaling as LNScaling,
    ResidualScaling as ResidualScaling,
)
from oversmoothing.experiments.remedies.remedy import Plain as Plain, Remedy as Remedy
from oversmoothing.experiments.remedies.shift import (
    REMEDIES as REMEDIES,
    remedies_table as remedies_table,
    remedy as remedy,
)
