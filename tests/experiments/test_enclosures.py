"""Enclosures contain what exact arithmetic gives, by both routes, and say when they cannot."""

from dataclasses import replace
from fractions import Fraction

import flint
import numpy as np
import pytest
import torch

from oversmoothing import describe, open_model
from oversmoothing.experiments.enclosures import balls, enclosing, zonotope
from oversmoothing.experiments.enclosures.enclosing import (
    NEAR,
    STATED,
    both_routes,
    box_ratios,
    changes,
    enclosed,
    largest_box,
    largest_error,
    on_box,
    signed,
    streams,
)
from oversmoothing.experiments.enclosures.network import network_of
from oversmoothing.experiments.enclosures.other_route import (
    OTHERWISE,
    other_box_ratios,
    other_metrics,
    other_softmax,
    other_streams,
)
from oversmoothing.experiments.enclosures.proving import read_inputs, streams_of
from oversmoothing.experiments.enclosures.statement import exact_ends
from oversmoothing.experiments.enclosures.zonotope import Symbols, Zonotope, bilinear, squares
from oversmoothing.experiments.models.pictures import named_pictures
from oversmoothing.simulations import state_metrics
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from oversmoothing.theory.support.errors import RequirementError
from tests.support.drawn_networks import drawn_input, drawn_network
from tests.support.exact_forward import exact_metrics, exact_streams, mp
from tests.support.refusals import refuses
from tests.support.tables import fractions_of as fractions
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
    refuses("layer 2 gives another stream", enclosed, wrong, start, [X.numpy() for X in seen])
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
    block, *others = network.blocks
    moved = replace(block.heads[1], W_O=block.heads[1].W_O + np.eye(3, 4) * 2.0**-52)
    of_block = {"causal": True, "scaling": np.nextafter(1, 2), "b_O": None,
                "heads": (block.heads[0], moved)}  # fmt: skip
    changed = [
        replace(network, cls=False),
        replace(network, blocks=network.blocks[:1]),
        replace(network, patches=replace(network.patches, side=1)),
        *(replace(network, blocks=(replace(block, **{name: value}), *others))
          for name, value in of_block.items()),
    ]  # fmt: skip
    assert len({network.digest(), *(each.digest() for each in changed)}) == 1 + len(changed)


def test_the_first_block_of_a_trained_deit_is_enclosed_by_both_routes(real):
    model, single = (open_model(real("deit-tiny-patch16-224"), dtype=dtype) for dtype in STATED)
    (batch, start, seen), *_ = read_inputs(model, named_pictures("photographs", 1, None))
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


# --- what is proved of a box holds at every point of it: arithmetic, lines, passes and signs ---


ROUTES = {"tangents": box_ratios, "chords": other_box_ratios}


def drawn(rng, *shape, symbols=3) -> Zonotope:
    """A zonotope of wildly different sizes."""
    sizes = 10.0 ** rng.integers(-12, 3, (symbols, *shape))
    generators = rng.standard_normal((symbols, *shape)) * sizes
    return Zonotope(
        rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape), generators,
        np.abs(rng.standard_normal(shape)) * 10.0 ** rng.integers(-14, -1, shape),
        Symbols(symbols),
    )  # fmt: skip


def point(z: Zonotope, e: list[Fraction], t: np.ndarray | int) -> np.ndarray:
    """centre + sum e_s generators[s] + t rest, in fractions."""
    found = fractions(z.centre) + t * fractions(z.rest)
    for s, G in zip(e, z.generators, strict=False):
        found = found + s * fractions(G)
    return found


def holds(z: Zonotope, e: list[Fraction], values: np.ndarray) -> bool:
    """Whether z, at the same symbols, is within its rest of the values; none of its own symbols."""
    assert len(e) == z.symbols
    return bool((abs(point(z, e, 0) - values) <= fractions(z.rest)).all())


def ends(rng, *shape):
    """Corners and inner points of [-1, 1]."""
    choices = [Fraction(-1), Fraction(1), Fraction(1, 3), Fraction(0)]
    return np.array([choices[k] for k in rng.integers(0, 4, int(np.prod(shape)))]).reshape(shape)


@pytest.mark.parametrize("seed", range(12))
def test_every_operation_holds_exactly_at_corners_and_inner_points(seed):
    """In fractions, at the same symbols: no rounding is left out."""
    rng = np.random.default_rng(seed)
    P, Q = drawn(rng, 2, 3), drawn(rng, 2, 3, symbols=5)
    W, b = rng.standard_normal((3, 4)) * 10.0 ** rng.integers(-3, 3, (3, 4)), rng.standard_normal(4)
    factor, shift = rng.standard_normal(3), rng.standard_normal((2, 3))
    results = [
        (P + Q, lambda p, q: p + q),
        (P - Q, lambda p, q: p - q),
        (Q - P, lambda p, q: q - p),
        (P.times(factor, shift), lambda p, q: p * fractions(factor) + fractions(shift)),
        (P.mapped(W, b), lambda p, q: p.dot(fractions(W)) + fractions(b)),
        (P.swapped(), lambda p, q: p.T),
        (bilinear(P, Q, lambda p, q: p @ q.swapaxes(-1, -2), 3), lambda p, q: p.dot(q.T)),
        (bilinear(Q, P, np.multiply, 1), lambda p, q: p * q),
        (squares(P, (-1,), 0.5), lambda p, q: (p * p).sum(-1, keepdims=True) / 2),
        (squares(Q, (-2, -1), 3.0), lambda p, q: 3 * (q * q).sum(keepdims=True)),
    ]
    for _ in range(8):
        e, t, u = list(ends(rng, 5)), ends(rng, 2, 3), ends(rng, 2, 3)
        p, q = point(P, e, t), point(Q, e, u)
        for z, f in results:
            assert holds(z, e[: z.symbols], f(p, q))
        for z, value in ((P, p), (Q, q)):
            low, high = z.interval()
            assert (fractions(low) <= value).all() and (value <= fractions(high)).all()


CURVES = {
    "GELU": (zonotope.GELU, lambda x: x * mp.ncdf(x), (-6, 6)),
    "GELU, other": (OTHERWISE["gelu"], lambda x: x * mp.ncdf(x), (-6, 6)),
    "1 / sqrt": (zonotope.ROOT_INVERSE, lambda x: 1 / mp.sqrt(x), (0.1, 9)),
    "ln": (zonotope.LOG, mp.log, (0.1, 9)),
    "exp": (zonotope.EXP, mp.exp, (-5, 2)),
    "1 / x": (zonotope.INVERSE, lambda x: 1 / x, (0.2, 9)),
}


@pytest.mark.parametrize("line", [Zonotope.tangent, Zonotope.chord])
@pytest.mark.parametrize("name", CURVES)
def test_lines_hold_on_the_whole_interval(name, line):
    f, exact, (low, high) = CURVES[name]
    rng = np.random.default_rng(0)
    for radius in (0.0, 1e-12, 1e-4, 0.05):
        centre = rng.uniform(low, high, 20)
        z = Symbols().box(centre, radius)
        found = line(z, f)
        for e in (-1.0, -0.7, 0.0, 0.4, 1.0):
            for k, c in enumerate(centre):
                x = mp.mpf(float(c)) + mp.mpf(e) * mp.mpf(radius)
                own = mp.mpf(float(found.centre[k]))
                if radius:
                    own += mp.mpf(e) * mp.mpf(float(found.generators[k, k]))
                assert abs(exact(x) - own) <= mp.mpf(float(found.rest[k]))
        # Of second order, and no more than the curve has.
        assert found.rest.max() <= 1e-13 + 2000 * radius**2


def test_a_line_over_the_edge_of_a_domain_is_refused():
    z = Symbols().box(np.array([0.1]), 0.2)
    for line in (Zonotope.tangent, Zonotope.chord):
        refuses("", line, z, zonotope.LOG, error=zonotope.LeftDomainError)


@pytest.mark.parametrize("size", [0.0, 1e-6, 0.1, 0.3])
def test_softmax_holds_on_the_whole_box_by_both_routes(size):
    rng = np.random.default_rng(0)
    z = Symbols().box(3 * rng.standard_normal((4, 4)) + 40, size)
    routes = (z.softmax(causal=False), other_softmax(z, causal=False))
    for _ in range(60):
        e = rng.choice([-1.0, 1.0, 0.3], z.symbols)
        with flint.ctx.workprec(120):
            x = z.centre.astype(object) * flint.arb(1)
            for s, G in zip(e, z.generators, strict=True):
                x = x + float(s) * flint.arb(1) * G.astype(object)
            for row, values in enumerate(x):
                powers = [(v - values[0]).exp() for v in values]
                whole = sum(powers, flint.arb(0))
                for k, power in enumerate(powers):
                    first = routes[0]
                    own = flint.arb(float(first.centre[row, k]))
                    for s, g in zip(e, first.generators[:, row, k], strict=True):
                        own += float(s) * flint.arb(float(g))
                    assert abs(power / whole - own) <= float(first.rest[row, k])
                    low, high = (x[row, k] for x in routes[1].interval())
                    assert float(low) <= power / whole <= float(high)


def small():
    network = drawn_network(5, activation="gelu", depth=2)
    return network, drawn_input(network, 5)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("eps", [1e-9, 2e-3])
def test_inputs_of_a_box_are_within_what_is_proved_of_it(route, eps):
    """Corners and inner points of the box, of the project's own ViT and a drawn network."""
    own = open_model(tiny_model(), dtype=torch.float64)
    pixels = random_pixels(1).double().numpy()
    found = list(ROUTES[route](network_of(own), pixels, eps))
    generator = torch.Generator().manual_seed(0)
    moves = torch.randn(200, 8, 8, generator=generator, dtype=torch.float64)
    moves[:100] = moves[:100].sign()
    streams: list = []
    with torch.no_grad():
        own.module(torch.from_numpy(pixels) + eps * moves.clamp(-1, 1), streams)
    seen = torch.stack([log_hfc_lfc_ratio(X) for X in streams])
    rounding = 1e-13
    for z, values in zip(found, seen, strict=True):
        low, high = z.interval()
        assert low[0, 0] - rounding <= values.min() and values.max() <= high[0, 0] + rounding
    for k, step in enumerate(torch.diff(seen, dim=0)):
        low, high = changes(ROUTES[route], network_of(own), pixels, eps, 2)[k]
        assert low - rounding <= step.min() and step.max() <= high + rounding
        # What is proved is not much wider than what was seen at its corners.
        assert high - low < 6 * float(step.max() - step.min()) + 1e-11


def test_the_largest_box_keeps_its_sign_and_a_larger_one_is_not_proved():
    network, pixels = small()
    eps, found = largest_box(network, pixels, 2)
    assert signed(found) and on_box(network, pixels, eps)[2] == found
    assert 2 not in on_box(network, pixels, NEAR * eps)


def test_the_claim_holds_what_both_routes_found():
    network, pixels = small()
    hull = both_routes(network, pixels, 1e-4, 2)
    for route in ROUTES.values():
        for (low, high), own in zip(hull, changes(route, network, pixels, 1e-4, 2), strict=True):
            assert low <= own[0] and own[1] <= high


def test_a_sign_that_nothing_proves_is_said(monkeypatch):
    network, pixels = small()
    monkeypatch.setattr(enclosing, "both_routes", lambda *_: [(-1.0, 1.0)] * 2)
    refuses("too small to have a sign", largest_box, network, pixels, 2)
    assert on_box(network, pixels, 1e-3) == {}


def test_other_networks_and_layers_are_refused():
    network, pixels = small()
    refuses("layers 1 to 2, not 3", largest_box, network, pixels, 3)
    for form in ({"placement": "post"}, {"kind": "rms"}, {"activation": "relu"}, {"causal": True}):
        other = drawn_network(0, **form)
        refuses("boxes are enclosed of", on_box, other, drawn_input(other, 0), 1e-3)


def test_a_box_that_takes_too_much_memory_is_refused(monkeypatch):
    network, pixels = small()
    monkeypatch.setattr(enclosing, "MOST_BYTES", 1000)
    refuses("over 2 layers needs 0 GiB, .* an earlier layer or", on_box, network, pixels, 1e-3)
    # Nothing is earlier than the first.
    refuses("over a layer needs .* 0: choose a smaller model", on_box, network, pixels, 1e-3, [1])
