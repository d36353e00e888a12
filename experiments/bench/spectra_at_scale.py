"""Spectra at scale: verdicts of 14,400 attention matrices against numpy's eigenvalues of them.

12 layers x 12 heads x 100 images of 197 tokens, each matrix against its own head of rank 64 in
d = 768 (ViT-B/16). The logits of layer l have standard deviation 1/2, 1, 2 or 4 in turn. The
default is a stratified tenth, 10 images of each of the 144 heads; OVERSMOOTHING_BENCH_FULL=1 runs
all. Both sides alternate head by head in one process. `numpy.linalg.eigvals` in float64 runs on
all matrices with one BLAS thread, and on one image of each head with its default threads, which
are slower at this size, many times so on a busy machine.
"""

import os
import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from oversmoothing.experiments.bench.benchmark import Row, measurement
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.simulations.generators.value_projection import LowRank
from oversmoothing.simulations.spectra import (
    HeadValues,
    SpectralVerdicts,
    head_values,
    spectral_verdicts,
)
from oversmoothing.theory.verdict.dominance import dominance
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of

LAYERS, HEADS, IMAGES = 12, 12, 100
TOKENS, WIDTH, RANK = 197, 768, 64
LOGIT_STD = (0.5, 1.0, 2.0, 4.0)
FULL = "OVERSMOOTHING_BENCH_FULL"

Case = tuple[HeadValues, NDArray[np.float32]]


def cases(images: int, layers: int = LAYERS, heads: int = HEADS) -> Iterator[Case]:
    """(head, attention [images, n, n] float32) for each of the layers x heads, from seed 0."""
    rng = np.random.default_rng(0)
    for layer in range(layers):
        temperature = 1 / LOGIT_STD[layer % len(LOGIT_STD)]
        for _ in range(heads):
            head = head_values(*LowRank(rank=RANK).factors(WIDTH, rng=rng))
            kind = Softmax(temperature=float(temperature), dim=RANK)
            A = kind.draw(TOKENS, rng=rng, batch=(images,))
            yield head, A.astype(np.float32)


def plain_verdict(values: NDArray[np.complexfloating], head: HeadValues) -> Outcome:
    """The verdict from all eigenvalues of A [n] and all pairs; the eigenvalue next to 1 is 1."""
    rest = np.delete(values, np.argmin(np.abs(values - 1)))
    margin = dominance(rest, head.spectrum.values).margin
    return outcome_of(margin, margin)


@measurement(
    "spectra/verdicts",
    "14,400 (or a tenth) attention spectra and verdicts against numpy.linalg.eigvals",
    pinned=False,
)
def spectra() -> list[Row]:
    """The rows; about half a minute on two idle cores, four minutes for all 14,400."""
    images = IMAGES if os.environ.get(FULL) else IMAGES // 10
    naive, single, ours, equal, found = _alternating(images)
    pairs = sum(each.verdict.size for each in found)
    fallback = sum(each.fallback * each.verdict.size for each in found) / pairs
    names, counts = np.unique(np.concatenate([each.verdict for each in found]), return_counts=True)
    note = (
        f"{pairs} matrices of 197 tokens, {LAYERS * HEADS} heads of rank {RANK}, logit std "
        f"{', '.join(map(str, LOGIT_STD))}; LAPACK needed for {100 * fallback:.1f} %; "
        + ", ".join(f"{count} {name}" for name, count in zip(names, counts, strict=True))
    )
    one, two, share = _processes()
    return [
        Row("spectra/eigvals (default threads) over verdicts", naive / ours,
            {"numpy.linalg.eigvals": naive, "verdicts": ours},
            f"eigvals: {images} times the seconds for one image of each head", at_least=5.0),
        Row("spectra/eigvals (one thread) over verdicts", single / ours,
            {"numpy.linalg.eigvals": single, "verdicts": ours}, note, at_least=5.0),
        Row("spectra/share of equal verdicts", equal / pairs,
            note="every verdict against all pairs of numpy's eigenvalues", at_least=1.0),
        Row("spectra/one process over two", one / two, {"one": one, "two": two},
            f"{share} of these matrices, the workers started before"),
    ]  # fmt: skip


def _alternating(images: int) -> tuple[float, float, float, int, list[SpectralVerdicts]]:
    """Seconds of numpy (default threads, one thread) and of ours, equal verdicts, and ours."""
    naive = single = ours = 0.0
    equal = 0
    found = []
    for number, (head, A) in enumerate(cases(images)):
        double = A.astype(np.float64)
        double /= double.sum(axis=-1, keepdims=True)
        index = np.zeros(len(A), dtype=np.intp)
        if number == 0:
            np.linalg.eigvals(double[:1])
            spectral_verdicts(A[:2], [head], index[:2])
        start = time.perf_counter()
        np.linalg.eigvals(double[:1])
        naive += images * (time.perf_counter() - start)
        with threadpool_limits(limits=1):
            start = time.perf_counter()
            values = np.linalg.eigvals(double)
            single += time.perf_counter() - start
        start = time.perf_counter()
        answer = spectral_verdicts(A, [head], index)
        ours += time.perf_counter() - start
        plain = [plain_verdict(each, head) for each in values]
        equal += int((answer.verdict == np.array(plain)).sum())
        found.append(answer)
    return naive, single, ours, equal, found


def _processes() -> tuple[float, float, int]:
    """Median seconds of one and of two processes on 768 of the matrices, interleaved."""
    parts = list(cases(16, layers=4))
    heads = [head for head, _ in parts]
    A = np.concatenate([each for _, each in parts])
    index = np.repeat(np.arange(len(heads)), 16)
    times: dict[int, list[float]] = {1: [], 2: []}
    spectral_verdicts(A, heads, index, processes=2)
    for _ in range(3):
        for processes, found in times.items():
            start = time.perf_counter()
            spectral_verdicts(A, heads, index, processes=processes)
            found.append(time.perf_counter() - start)
    return median(times[1]), median(times[2]), len(A)
