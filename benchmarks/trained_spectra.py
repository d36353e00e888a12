"""Spectra at scale on the attention of a trained DeiT-Ti (real inputs): speed, fallback, agreement.

Images of the CIFAR-100 test set, enlarged to 224 x 224; 12 layers x 3 heads each, n = 197. The
conditioning met is that of the eigenvectors of A, which decides how far eigenvalues can be trusted.
`OVERSMOOTHING_BENCH_FULL=1` takes 100 images in the place of 10.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.benchmark import FULL, Row, measurement
from benchmarks.spectra_at_scale import Batch, HeadsLayer, beside_eigvals, compared, fallback, said
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.pictures import cifar100, real_inputs
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.simulations.spectra.head_values import HeadValues, head_values
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.formulas import Outcome

MODEL = "deit-tiny-patch16-224"


def _opened() -> tuple[Model, Path]:
    folder = real_inputs()
    if folder is None:
        raise InputError("real inputs are needed: set OVERSMOOTHING_DATA to their folder")
    return open_model(folder / MODEL, dtype=torch.float64), folder


def own_heads(model: Model) -> list[HeadValues]:
    """Every head of every layer, layer by layer."""
    return [
        head_values(W_V.numpy(), W_O.numpy())
        for layer in model.layers
        for W_V, W_O in zip(layer.heads.W_V, layer.heads.W_O, strict=True)
    ]


@measurement(
    "spectra/DeiT-Ti",
    "verdicts on the attention of a trained model against numpy.linalg.eigvals",
    data=True,
    pinned=False,
)
def spectra() -> list[Row]:
    """The rows; under a minute on two idle cores, five for 100 images."""
    count = 100 if os.environ.get(FULL) else 10
    model, folder = _opened()
    heads = own_heads(model)
    conditions: list[float] = []

    def batches() -> Iterator[Batch]:
        pictures = cifar100(folder, "test", range(count))
        for batch in stream(model, pictures, batch_size=10):
            maps = [trace.attention for trace in batch.traces if trace.attention is not None]
            A = torch.stack(maps, dim=1).float().flatten(0, 2).numpy()
            some = A[:: max(1, count // 10)].astype(np.float64)
            with threadpool_limits(limits=1):
                vectors = np.linalg.eig(some / some.sum(axis=-1, keepdims=True)).eigenvectors
                conditions.extend(np.linalg.cond(vectors))
            yield A, heads, np.tile(np.arange(len(heads)), len(batch.keep))

    both = compared(batches(), 18)
    verdict = both.answers.verdict
    differ = verdict != both.plain
    close = int((differ & (verdict == Outcome.UNDECIDED)).sum())
    spread = "cond(V_A) median {:.1e}, 90 % {:.1e}, worst {:.1e}".format(
        *np.quantile(conditions, [0.5, 0.9, 1])
    )
    name = "spectra/DeiT-Ti: "
    return [
        *both.rows(name, "18 matrices of each 360", ""),
        Row(f"{name}share that needed LAPACK", fallback(both.answers), note=said(both.answers)),
        Row(f"{name}share of decided verdicts equal to all pairs",
            float((~differ).sum() / (differ.size - close)), note=f"{close} UNDECIDED; {spread}",
            at_least=1.0),
    ]  # fmt: skip


@measurement("heads/DeiT-Ti", "the verdict on all heads of a trained layer together", data=True)
def heads_of_layers() -> list[Row]:
    model, folder = _opened()
    (batch,) = stream(model, cifar100(folder, "test", range(2)), batch_size=2)
    layers: list[HeadsLayer] = []
    for layer, trace in zip(model.layers, batch.traces, strict=True):
        V, P = (W.numpy() for W in (layer.heads.W_V, layer.heads.W_O))
        if trace.attention is not None:
            layers += [(A / A.sum(-1, keepdims=True), (V, P)) for A in trace.attention.numpy()]
    return beside_eigvals("DeiT-Ti", median, layers, 15.0)
