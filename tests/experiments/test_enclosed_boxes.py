"""What is proved of a box holds at every point of it: arithmetic, lines, passes and signs."""

from fractions import Fraction

import flint
import numpy as np
import pytest
import torch

from oversmoothing import open_model
from oversmoothing.experiments.enclosures import enclosing, zonotope
from oversmoothing.experiments.enclosures.enclosing import (
    NEAR,
    both_routes,
    box_ratios,
    changes,
    largest_box,
    on_box,
    signed,
)
from oversmoothing.experiments.enclosures.network import network_of
from oversmoothing.experiments.enclosures.other_route import (
    OTHERWISE,
    other_box_ratios,
    other_softmax,
)
from oversmoothing.experiments.enclosures.zonotope import Symbols, Zonotope, bilinear, squares
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from tests.support.drawn_networks import drawn_input, drawn_network
from tests.support.exact_forward import mp
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model

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


def fractions(values: np.ndarray) -> np.ndarray:
    return np.vectorize(Fraction, otypes=[object])(values)


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


def test_own_turns_the_rest_into_symbols_of_its_own():
    P = drawn(np.random.default_rng(0), 2, 3)
    z = P.own()
    assert P.of.number == z.symbols == 9 and not z.rest.any()
    np.testing.assert_array_equal(z.generators[3:].sum(0), P.rest)
    np.testing.assert_array_equal(z.generators[:3], P.generators)
    assert P.own().generators[3:9].sum() == 0 and P.of.number == 15


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
