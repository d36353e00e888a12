"""Spectra at scale on the attention of a trained DeiT-Ti (real inputs): speed, fallback, agreement.

Images of the CIFAR-100 test set, enlarged to 224 x 224; 12 layers x 3 heads each, n = 197. The
conditioning met is that of the eigenvectors of A, which decides how far eigenvalues can be trusted.
`OVERSMOOTHING_BENCH_FULL=1` takes 100 images in the place of 10.
"""

import os
import time

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from oversmoothing.experiments.bench.benchmark import Row, measurement
from oversmoothing.experiments.bench.spectra_at_scale import FULL, plain_verdict
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.pictures import cifar100, real_inputs
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.simulations.spectra import HeadValues, head_values, spectral_verdicts
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.outcome import Outcome

MODEL = "deit-tiny-patch16-224"


def own_heads(model: Model) -> list[HeadValues]:
    """Every head of every layer, layer by layer."""
    return [
        head_values(*(each.numpy() for each in layer.heads.value_projection(head)))
        for layer in model.layers
        for head in range(layer.heads.number)
    ]


@measurement(
    "spectra/DeiT-Ti",
    "verdicts on the attention of a trained model against numpy.linalg.eigvals",
    data=True,
    pinned=False,
)
def spectra() -> list[Row]:
    """The rows; under a minute on two idle cores, five for 100 images."""
    folder = real_inputs()
    if folder is None:
        raise InputError("real inputs are needed: set OVERSMOOTHING_DATA to their folder")
    count = 100 if os.environ.get(FULL) else 10
    model = open_model(folder / MODEL, dtype=torch.float64)
    heads = own_heads(model)
    naive = single = ours = 0.0
    equal = close = total = 0
    methods, verdicts, conditions = [], [], []
    pictures = cifar100(folder, "test", range(count))
    for batch in stream(model, pictures, batch_size=10):
        maps = [trace.attention for trace in batch.traces if trace.attention is not None]
        A = torch.stack(maps, dim=1).float().flatten(0, 2).numpy()
        index = np.tile(np.arange(len(heads)), len(batch.keep))
        double = A.astype(np.float64)
        double /= double.sum(axis=-1, keepdims=True)
        start = time.perf_counter()
        np.linalg.eigvals(double[:18])
        naive += len(A) / 18 * (time.perf_counter() - start)
        with threadpool_limits(limits=1):
            start = time.perf_counter()
            values = np.linalg.eigvals(double)
            single += time.perf_counter() - start
            conditions += [_condition(each) for each in double[:: max(1, count // 10)]]
        start = time.perf_counter()
        found = spectral_verdicts(A, heads, index)
        ours += time.perf_counter() - start
        plain = np.array(
            [plain_verdict(each, heads[k]) for each, k in zip(values, index, strict=True)]
        )
        equal += int((found.verdict == plain).sum())
        close += int(((found.verdict != plain) & (found.verdict == Outcome.UNDECIDED)).sum())
        total += len(A)
        methods.append(found.method)
        verdicts.append(found.verdict)
    names, counts = np.unique(np.concatenate(verdicts), return_counts=True)
    said = ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
    quantiles = np.quantile(conditions, [0.5, 0.9, 1])
    spread = "cond(V_A) median {:.1e}, 90 % {:.1e}, worst {:.1e}".format(*quantiles)
    by = np.concatenate(methods)
    steps = ", ".join(
        f"{100 * float((by == step).mean()):.1f} % {step}"
        for step in ("powers", "ritz", "lapack", "condition")
    )
    return [
        Row("spectra/DeiT-Ti: eigvals (default threads) over verdicts", naive / ours,
            {"numpy.linalg.eigvals": naive, "verdicts": ours}, "eigvals: 18 matrices of each 360"),
        Row("spectra/DeiT-Ti: eigvals (one thread) over verdicts", single / ours,
            {"numpy.linalg.eigvals": single, "verdicts": ours}, f"{total} matrices: {said}"),
        Row("spectra/DeiT-Ti: share that needed LAPACK",
            float(np.isin(by, ("lapack", "condition")).mean()), note=steps),
        Row("spectra/DeiT-Ti: share of decided verdicts equal to all pairs",
            equal / (total - close), note=f"{close} UNDECIDED; {spread}", at_least=1.0),
    ]  # fmt: skip


def _condition(A: NDArray[np.float64]) -> float:
    return float(np.linalg.cond(np.linalg.eig(A).eigenvectors))
