"""Enclosures contain what exact arithmetic gives, by both routes, and say when they cannot."""

from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
import torch

from oversmoothing import InputError, describe, open_model
from oversmoothing.experiments.enclosures import balls, enclosing
from oversmoothing.experiments.enclosures.enclosing import STATED, enclosed, largest_error, streams
from oversmoothing.experiments.enclosures.network import network_of
from oversmoothing.experiments.enclosures.other_route import other_metrics, other_streams
from oversmoothing.experiments.enclosures.proving import read_inputs, streams_of
from oversmoothing.experiments.enclosures.statement import exact_ends
from oversmoothing.experiments.models.pictures import named_pictures, real_inputs
from oversmoothing.simulations import state_metrics
from oversmoothing.theory.support.errors import RequirementError
from tests.support.drawn_networks import drawn_input, drawn_network
from tests.support.exact_forward import exact_metrics, exact_streams, mp
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import pixels, tiny, tokens

BITS = 200
FORMS = {
    "ViT": {},
    "ViT without biases": {"biases": False},
    "Post-LN": {"placement": "post", "patches": False},
    "parallel": {"placement": "parallel", "patches": False},
    "causal, GELU by tanh": {"causal": True, "activation": "gelu_tanh", "patches": False},
    "gated SiLU, RMSNorm": {"activation": "silu", "gated": True, "kind": "rms", "causal": True},
    "ReLU": {"activation": "relu"},
    "quick GELU": {"activation": "quick_gelu"},
    "norms behind": {"behind": "rms"},
    "attention alone": {"ffn": False},
    "Post-LN, attention alone": {"ffn": False, "placement": "post"},
}


def exact(x) -> Fraction:
    """A number of mpmath as the fraction that it is."""
    sign, mantissa, exponent, _ = x._mpf_
    return Fraction((-1) ** sign * int(mantissa)) * Fraction(2) ** exponent


def contains(ball, x, slack=Fraction(1, 10**70)) -> bool:
    """Whether the ball holds a number that mpmath knows to 80 digits."""
    low, high = exact_ends(ball)
    room = slack * (1 + abs(exact(x)))
    return low - room <= exact(x) <= high + room


@pytest.mark.parametrize("form", FORMS)
def test_both_routes_contain_every_stream_and_metric_of_80_digits(form):
    network = drawn_network(len(form), **FORMS[form])
    given = drawn_input(network, 3)
    with flint.ctx.workprec(BITS):
        ways = zip(
            streams(network, given, balls.Balls.exact),
            other_streams(network, given, balls.Balls.exact),
            exact_streams(network, given),
            strict=True,
        )
        for one, other, truth in ways:
            X, Z = one.entries, other.entries
            expected = exact_metrics(truth)
            for Y in (X, Z):
                assert all(map(contains, Y.ravel(), truth.ravel()))
                # Narrow, too: an infinite ball contains everything.
                assert max(float(x.rad()) for x in Y.ravel()) < 1e-40
            for found, width in ((balls.ball_metrics(X), 1e-10), (other_metrics(Z), 1e-20)):
                assert list(found) == list(state_metrics.NAMES)
                for name, ball in found.items():
                    assert contains(ball, expected[name]), name
                    assert float(ball.rad()) < width, name


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (6, 4), (5, 5)])
@pytest.mark.parametrize("spectrum", ["spread", "equal", "deficient", "nearly equal"])
def test_singular_values_contain_a_chosen_spectrum(shape, spectrum):
    """X = (I - 2 u u^T / |u|^2) D (I - 2 v v^T / |v|^2) has the diagonal of D, exactly."""
    rng = np.random.default_rng(sum(shape))
    n, d = shape
    k = min(shape)
    sigma = {
        "spread": [10.0**-i for i in range(k)],
        "equal": [2.0] * k,
        "deficient": [3.0] + [0.0] * (k - 1),
        "nearly equal": [1 + i * 2.0**-40 for i in range(k)][::-1],
    }[spectrum]
    with flint.ctx.workprec(BITS):
        D = np.array([[sigma[i] if i == j else 0 for j in range(d)] for i in range(n)], float)
        turned = balls.product(_reflection(rng, n), balls.exact(D))
        X = balls.product(turned, _reflection(rng, d))
        assert all(
            s.contains(flint.arb(x)) for s, x in zip(balls.singular_values(X), sigma, strict=True)
        )
        assert max(float(s.rad()) for s in balls.singular_values(X)) < 1e-12
        p = [mp.mpf(x) / sum(map(mp.mpf, sigma)) for x in sigma if x]
        rank = mp.exp(-sum(x * mp.log(x) for x in p))
        for found in (balls.ball_metrics(X), other_metrics(X)):
            if n > 1:
                assert contains(found["effective_rank"], rank)
                assert contains(found["sigma2_sigma1"], mp.mpf(sigma[1]) / mp.mpf(sigma[0]))


def _reflection(rng, size):
    v = balls.exact(rng.integers(1, 9, size).astype(float))
    return np.eye(size) - 2 * np.outer(v, v) / (v * v).sum()


@pytest.mark.parametrize("family", ["vit", "deit", "gpt2", "bert"])
def test_models_of_the_library_are_enclosed_and_their_floats_are_within_the_stated_error(family):
    wide, single = (describe(tiny(family).to(dtype)) for dtype in STATED)
    given = pixels(1) if family in ("vit", "deit") else tokens((7,))
    (_, start, seen), *_ = read_inputs(wide, given)
    network = network_of(wide)
    assert (network.patches is not None) == (family in ("vit", "deit"))
    found = enclosed(network, start, [X.numpy() for X in seen])
    assert largest_error(found.layers, seen) <= STATED[torch.float64]
    assert largest_error(found.layers, streams_of(single, given)) <= STATED[torch.float32]
    assert all(enclosing.small(x) for layer in found.layers for x in layer.values())


def test_padding_is_no_part_of_the_stream_that_is_enclosed():
    model = describe(tiny("bert").double())
    (_, start, seen), *_ = read_inputs(model, tokens((4, 7)))
    assert start.shape == (4, 24) and all(X.shape == (4, 24) for X in seen)


def test_a_float_metric_beyond_the_stated_error_is_seen():
    model = open_model(tiny_model(), dtype=torch.float64)
    (_, start, seen), *_ = read_inputs(model, random_pixels(1))
    found = enclosed(network_of(model), start)
    seen[1][0, 0] += 1e-6
    assert largest_error(found.layers, seen) > STATED[torch.float64]


def test_a_network_that_is_not_the_models_is_refused_with_its_layer():
    model = open_model(tiny_model(), dtype=torch.float64)
    network = network_of(model)
    (_, start, seen), *_ = read_inputs(model, random_pixels(1))
    block = network.blocks[1]
    other = replace(block, ffn=replace(block.ffn, activation="gelu_tanh"))
    wrong = replace(network, blocks=(network.blocks[0], other))
    with pytest.raises(InputError, match="layer 2 gives another stream"):
        enclosed(wrong, start, [X.numpy() for X in seen])
    assert wrong.digest() != network.digest()


def test_rotary_positions_and_float32_are_refused():
    for model, said in (
        (describe(tiny("llama").double()), "more than q k"),
        (open_model(tiny_model(), dtype=torch.float32), "open it in float64"),
    ):
        refuses(said, network_of, model)


def test_bits_are_doubled_until_the_intervals_are_narrow(monkeypatch):
    network = drawn_network(0)
    given = drawn_input(network, 0)
    usual = enclosed(network, given)
    monkeypatch.setattr(enclosing, "first_bits", lambda network: 12)
    found = enclosed(network, given)
    assert found.bits > 24
    for one, other in zip(usual.layers, found.layers, strict=True):
        assert all(one[name].overlaps(other[name]) for name in one)


def test_what_no_precision_tells_is_said(monkeypatch):
    network = drawn_network(0, patches=False, biases=False)
    given = drawn_input(network, 0)
    given[1] = 0.0  # a token without a direction
    monkeypatch.setattr(enclosing, "MOST", 400)
    refuses("400 bits do not tell", enclosed, network, given, error=RequirementError)


def test_the_digest_tells_every_number_of_a_network():
    network = drawn_network(0)
    block = network.blocks[0]
    changed = [
        replace(network, cls=False),
        replace(network, blocks=network.blocks[:1]),
        replace(network, patches=replace(network.patches, side=1)),
        replace(network, blocks=(replace(block, causal=True), *network.blocks[1:])),
        replace(network, blocks=(replace(block, scaling=np.nextafter(1, 2)), *network.blocks[1:])),
        replace(network, blocks=(replace(block, b_O=None), *network.blocks[1:])),
    ]
    head = block.heads[1]
    moved = replace(head, W_O=head.W_O + np.eye(3, 4) * 2.0**-52)
    heads = (block.heads[0], moved)
    changed.append(replace(network, blocks=(replace(block, heads=heads), *network.blocks[1:])))
    assert len({network.digest(), *(each.digest() for each in changed)}) == 1 + len(changed)


DEIT = "deit-tiny-patch16-224"


@pytest.mark.skipif(
    real_inputs() is None or not (real_inputs() / DEIT).is_dir(), reason="needs real inputs"
)
def test_the_first_block_of_a_trained_deit_is_enclosed_by_both_routes():
    model = open_model(real_inputs() / DEIT, dtype=torch.float64)
    single = open_model(real_inputs() / DEIT, dtype=torch.float32)
    picture = named_pictures("photographs", 1, None)
    (batch, start, seen), *_ = read_inputs(model, picture)
    network = network_of(model)
    network = replace(network, blocks=network.blocks[:1])
    found = enclosed(network, start, [X.numpy() for X in seen])
    floats = {torch.float64: seen, torch.float32: streams_of(single, batch)}
    for dtype, both in floats.items():
        assert largest_error(found.layers, both[:2]) <= STATED[dtype]
    with flint.ctx.workprec(found.bits + 96):
        again = other_streams(network, start, balls.Balls.exact)
        for X, layer in zip(again, found.layers, strict=True):
            other = other_metrics(X.entries)
            assert all(layer[name].contains(ball) for name, ball in other.items())
