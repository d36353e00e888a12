"""On the attention of a trained model: the fast steps, LAPACK and the readings agree."""

import numpy as np
import pytest
import torch

from benchmarks.spectra_at_scale import fallback, plain_verdict
from benchmarks.trained_spectra import MODEL, own_heads
from oversmoothing import open_model, readings_of
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.pictures import cifar100, real_inputs
from oversmoothing.simulations.spectra.head_values import spectral_verdicts

FOLDER = real_inputs()
pytestmark = pytest.mark.skipif(FOLDER is None, reason="real inputs: set OVERSMOOTHING_DATA")


def test_every_verdict_on_a_trained_model_is_that_of_all_pairs():
    assert FOLDER is not None
    model = open_model(FOLDER / MODEL, dtype=torch.float64)
    heads = own_heads(model)
    traces = extract(model, list(cifar100(FOLDER, "test", [0]))).traces
    A = torch.cat([trace.attention[0] for trace in traces]).numpy()
    found = spectral_verdicts(A.astype(np.float32), heads, np.arange(len(heads)))
    values = np.linalg.eigvals(A / A.sum(axis=-1, keepdims=True))
    for verdict, each, head in zip(found.verdict, values, heads, strict=True):
        assert verdict in (plain_verdict(each, head), "UNDECIDED")
    assert set(found.verdict) >= {"SMOOTHING", "NON_SMOOTHING"}
    assert 0 < fallback(found) < 0.9


def test_a_head_of_a_trained_model_can_tie_by_its_zeros_in_E1():
    """Some heads exceed modulus 1 nowhere; the mean over heads with the whole H never ties."""
    assert FOLDER is not None
    table = readings_of(
        {"DeiT-Ti": FOLDER / MODEL}, list(cifar100(FOLDER, "test", [0])), ["E1", "E2"]
    )
    tie = table[table["class"] == "tie"].set_index("reading")["count"]
    assert tie["E1"] > 0 and tie["E2"] == 0
