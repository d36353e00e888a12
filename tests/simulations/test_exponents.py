"""Lyapunov exponents of changing layers are the slopes that a run through them has (T7a)."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import oversmoothing
from oversmoothing import FromState, PerLayer
from oversmoothing.experiments.models.sources import named_inputs, named_model
from oversmoothing.experiments.repeated.blocks import cycled_layers
from oversmoothing.simulations.against_theory import exponents
from oversmoothing.simulations.against_theory.exponents import ENSEMBLES, ensemble, exponent_run
from oversmoothing.simulations.engine.errors import split_states
from tests.support.refusals import refuses

X0 = np.random.default_rng(5).standard_normal((4, 3))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_slope_is_the_difference_of_exponents_of_the_same_layers(name):
    """Up to what two norms differ by at most: some e^3 over the layers of the run."""
    run = exponent_run(name, *ensemble(name, 4, 3, 2, 0.5, 0), X0, 400)
    assert run.gamma_quotient < run.gamma_consensus
    assert 1 <= run.error * 360 / (3 + np.log(12) / 2) < 2
    assert run.agrees and run.off < 3 / 360
    assert 0 < run.gap_error < 0.1


def test_a_slope_that_its_layers_do_not_explain_is_noticed(monkeypatch, tmp_path, told):
    """At 200 layers the bound is wide, and a rate off by 1/20 a layer is beyond it."""
    run = exponent_run("iid", *ensemble("iid", 4, 3, 2, 0.5, 0), X0, 200)
    assert not replace(run, measured=run.measured + 0.05).agrees
    right = exponents.exponent_run
    off = lambda *given: replace(right(*given), hfc=right(*given).hfc - 0.05)  # noqa: E731
    monkeypatch.setattr(exponents, "exponent_run", off)
    words = ["simulate", "--exponents", "--ensemble", "iid", "--depth=200", f"--out={tmp_path}"]
    said = " ".join(told(1, *words).split())
    assert "0 of 1 runs grow" in said and "Run more layers (--depth)" in said


@pytest.mark.parametrize("n, d, scale, seed", [(4, 1, 2.0, 468), (6, 1, 0.5, 35), (3, 2, 0.1, 909)])
def test_what_takes_hfc_beyond_lfc_and_slow_starts_are_no_disagreement(n, d, scale, seed):
    """Differences that gain on consensus for some layers lift LFC with them (T1f): HFC/LFC does
    not rise so far, and ends lower; and two starts that 20 layers leave apart show in the error."""
    start = np.random.default_rng([seed, 5]).standard_normal((n, d))
    run = exponent_run("switching", *ensemble("switching", n, d, 1, scale, seed), start, 200)
    gap = run.gamma_quotient - run.gamma_consensus
    assert run.agrees and max(abs(run.measured - min(gap, 0)), run.off) > 4 / 180


def test_exponents_of_repeated_layers_are_those_of_their_product():
    """gamma_C is log rho of the product over one period, per layer."""
    rng = np.random.default_rng(1)
    A = [rng.dirichlet(np.ones(4), size=(1, 4)) for _ in range(3)]
    W = [0.4 * rng.standard_normal((1, 3, 3)) for _ in range(3)]
    repeated = (PerLayer(lambda k: A[k % 3]), PerLayer(lambda k: W[k % 3]))
    run = exponent_run("repeated", *repeated, X0, 3000)
    product = np.eye(3)
    for step in W:
        product = (np.eye(3) + step[0].T) @ product
    rho = np.abs(np.linalg.eigvals(product)).max()
    assert run.gamma_consensus == pytest.approx(np.log(rho) / 3, abs=1e-3)
    assert run.off < 2e-3
    # Blocks of one layer each: log(5/6) and log(3/2) in turn, 20 values, and their standard error.
    turns = PerLayer(lambda k: np.array([[[(-1) ** k / 2]]]))
    even = PerLayer(lambda k: np.array([[[0.75, 0.25], [0.25, 0.75]]]))
    error = exponents.lyapunov_exponents(attention=even, weights=turns, layers=20).gap_error
    assert error == pytest.approx(np.log(1.8) / 2 / np.sqrt(19))


def test_attention_along_a_run_is_the_softmax_of_its_states():
    rng = np.random.default_rng(2)
    given = FromState(*rng.standard_normal((2, 2, 3, 3)), causal=True)
    run = oversmoothing.evolve_heads(
        X0=X0, attention=given, weights=0.1 * rng.standard_normal((2, 3, 3)), depth=[0, 3]
    )
    states = split_states(run.kept, slice(None))
    for place in (0, 1):
        X = run.state(place).dense().numpy()
        logits = X @ given.W_Q @ given.W_K.swapaxes(1, 2) @ X.T / np.sqrt(3)
        kept = np.where(np.tri(4, dtype=bool), np.exp(logits), 0.0)
        expected = kept / kept.sum(-1, keepdims=True)
        seen = exponents.attention_at(states, place, given)
        np.testing.assert_allclose(seen, expected, atol=1e-12)


def test_the_command_writes_a_table_and_says_what_differs(tmp_path, told):
    words = ["simulate", "--exponents", "--ensemble", "iid", "--depth=200", f"--out={tmp_path}"]
    # So few layers are no slope to 1e-3, which is not asked of them.
    said = " ".join(told(0, *words).split())
    assert "1 of 1 runs grow as predicted: over " in said
    assert " allowed." in said and "Run more" not in said
    assert "one token has no differences" in told(2, *words, "--n", "1")
    assert list(pd.read_csv(tmp_path / "exponents.csv")["name"]) == ["iid"]
    assert "multiple of 200" in told(2, *words[:4], "--depth", "300")
    refuses("none of iid", ensemble, "other", 4, 3, 2, 0.5, 0, error=oversmoothing.InputError)


def test_a_model_whose_layers_are_repeated_has_the_exponents_of_their_product(tmp_path):
    """The digits model before training: gamma_C is log rho of the product over its layers, a layer,
    and the run through 400 layers has the slopes."""
    model = named_model("vit-random", tmp_path)
    inputs = named_inputs(model, images=None, text=None, count=1, data_dir=None, quiet=True)
    attention, weights, start = cycled_layers(model, inputs)
    period, d = model.depth, start.shape[1]
    product = np.eye(d)
    for layer in range(period):
        W_V, W_O = weights.at(layer, 1)
        product = (np.eye(d) + np.einsum("hdr,hre->ed", W_V, W_O)) @ product
    rho = np.abs(np.linalg.eigvals(product)).max()
    run = exponent_run("repeated", attention, weights, start, 400)
    assert run.gamma_consensus == pytest.approx(np.log(rho) / period, abs=1e-2)
    assert run.off < 1e-2
