"""Sweeps: what a configuration means, what a point is, and its outcome against the theory."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from oversmoothing import InputError, evolve, metrics, verdict
from oversmoothing.simulations.generators.attention import Asymmetric
from oversmoothing.simulations.sweep import points as outcomes
from oversmoothing.simulations.sweep.config import (
    ATTENTION_KINDS,
    MAX_POINTS,
    PARAMETERS,
    VALUE_KINDS,
    Config,
    example,
    examples,
    make_config,
    parse,
)
from oversmoothing.simulations.sweep.points import (
    Points,
    columns,
    cosine_extremes,
    dense,
    draw,
    effective_rank,
    entropy_of,
    iterate,
    outcome,
)
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.numbers.rounding import ScaledState
from oversmoothing.theory.spectra.heads import stacked
from oversmoothing.theory.spectra.heads_radius import Radius
from tests.support.cases import cases

ALL = ("ratio", "cosine", "rank", "limits")


def config(fixed: dict[str, Any], axes: dict[str, Any], *measures: str) -> Config:
    return make_config({"fixed": fixed, "axes": axes, "measures": list(measures or ("ratio",))})


def point(**given: Any) -> dict[str, Any]:
    return Points(config(given, {}))[0]


@cases(
    "text, said",
    ("[axes]\ntemprature = [1.0]", "did you mean temperature"),
    ("[fixed]\nn = 4\n[axis]\n", "unknown key 'axis'"),
    ("[axes]\nn = []", "axis n is empty"),
    ("[axes]\nn = [4, 8.0]", "must be an integer"),
    ("[axes]\nn = [4, true]", "must be an integer"),
    ("[axes]\ntemperature = ['a']", "must be a number"),
    ("[axes]\ntemperature = [0.0]", "> 0"),
    ("[axes]\ntemperature = [nan]", "must be a number"),
    ("[axes]\ntemperature = 2.0", "[fixed]"),
    ("[fixed]\nvalue = 'interval'\n[axes]\nlow = [0.0, -0.0]", "twice"),
    ("[fixed]\nn = 4\n[axes]\nn = [4]", "both in"),
    ("[fixed]\nattention = 'soft'", "must be one of softmax"),
    ("[axes]\nradius = [1.0]", "no point uses it"),
    ("measures = ['ration']", "did you mean ratio"),
    ("measures = 'ratio'", "list of names"),
    ("[axes]\nn = {from = 1, to = 4}", "lacks steps"),
    ("[axes]\nn = {from = 1, to = 4, step = 4}", "did you mean steps"),
    ("[axes]\nn = {from = 1, to = 4, steps = 1}", "does not fit"),
    ("[axes]\nn = {from = 1, to = 4, steps = 2.0}", "integer from 1"),
    ("[axes]\nseed = {from = 0, to = 4, steps = 3, scale = 'log'}", "both ends > 0"),
    ("[axes]\nseed = {from = 0, to = 4, steps = 3, scale = 'ln'}", "linear or log"),
    ("[axes]\nbasis = {from = 0, to = 4, steps = 3}", "list of names"),
    ("axes = 3", "must be a table"),
    ("title = 3", "title"),
    ("", "names no parameter"),
    ("n = ", "not TOML"),
)
def test_a_wrong_configuration_is_refused_with_its_place(text, said):
    with pytest.raises(InputError) as refused:
        parse(text, "sweep.toml")
    assert said in str(refused.value) and "sweep.toml" in str(refused.value)


def test_too_many_points_are_counted_before_any_is_made():
    with pytest.raises(InputError, match=r"2000 n x 2000 seed = 4,000,000 points"):
        config({}, {k: {"from": 1, "to": 2000, "steps": 2000} for k in ("n", "seed")})
    most = {k: {"from": 1, "to": m, "steps": m} for k, m in (("n", 1000), ("seed", 2000))}
    assert config({}, most).size == MAX_POINTS


def test_ranges_keep_their_ends_and_integers_are_distinct():
    log = {"steps": 5, "scale": "log"}
    ranges = {"temperature": {"from": 0.1, "to": 10.0, **log}, "n": {"from": 8, "to": 128, **log},
              "depth": {"from": 2, "to": 4, "steps": 9}}  # fmt: skip
    axes = config({}, ranges).axes
    assert axes["temperature"][0] == 0.1 and axes["temperature"][-1] == 10.0
    assert axes["temperature"][2] == pytest.approx(1.0)
    assert axes["n"] == (8, 16, 32, 64, 128) and axes["depth"] == (2, 3, 4)


def test_the_digest_names_the_table_and_nothing_else():
    same = parse("title='x'\nmeasures=['ratio']\n[axes]\nseed=[0,1]\n[fixed]\nn=4", "")
    every = [
        config({"n": 4}, {"seed": [0, 1]}),
        config({"n": 5}, {"seed": [0, 1]}),
        config({"n": 4}, {"seed": [1, 0]}),
        config({"n": 4}, {"seed": [0, 1]}, "ratio", "rank"),
    ]
    assert every[0].digest == same.digest and len({each.digest for each in every}) == 4


@pytest.mark.parametrize("name", examples())
def test_every_example_is_valid_and_its_first_point_computes(name):
    chosen = example(name)
    assert chosen.title
    assert outcome(Points(chosen)[0], chosen.measures)["status"] in ("certified", "estimated")


@st.composite
def configurations(draw: st.DrawFn) -> Config:
    kinds = (ATTENTION_KINDS, "asymmetric"), (VALUE_KINDS, "disc")
    attention, value = (
        draw(st.lists(st.sampled_from([k for k in all_ if k != one]), unique=True))
        for all_, one in kinds
    )
    axes = {"attention": ["asymmetric", *attention], "value": [*value, "disc"]}
    for name, entries, most in (("seed", st.integers(0, 9), 3), ("asymmetry", st.floats(0, 1), 2),
                                ("radius", st.floats(0, 2), 3)):  # fmt: skip
        axes[name] = draw(st.lists(entries, min_size=1, max_size=most, unique=True))
    return config({}, {name: axes[name] for name in draw(st.permutations(list(axes)))})


@given(configurations())
def test_points_are_the_product_without_repetitions(chosen):
    points = [frozenset(p.items()) for p in Points(chosen)]
    assert len(points) == len(set(points))
    expected = set()
    for values in product(*chosen.axes.values()):
        whole = chosen.fixed | dict(zip(chosen.axes, values, strict=True))
        kinds = str(whole["attention"]), str(whole["value"])
        expected.add(frozenset((k, v) for k, v in whole.items() if PARAMETERS[k].used_by(*kinds)))
    assert set(points) == expected


def test_a_seed_belongs_to_the_point_alone():
    here, there = config({}, {"seed": [3, 4]}), config({}, {"n": [7, 32], "seed": [4, 9]})
    (same,) = [p for p in Points(there) if p in list(Points(here))]
    assert same["seed"] == 4 and same["n"] == 32
    twin = next(p for p in Points(here) if p == same)
    assert entropy_of(same) == entropy_of(twin)
    np.testing.assert_array_equal(draw(same)[0].A, draw(twin)[0].A)
    # Fixed for good: another value here would make every stored sweep another one.
    assert hex(entropy_of({"n": 2, "seed": 0}))[2:14] == "235540cc98cf"
    seeds = {entropy_of(p) for p in Points(config({}, {"seed": list(range(50))}))}
    assert len(seeds) == 50


@pytest.mark.parametrize("n, d", [(1, 1), (2, 1), (5, 3)])
@pytest.mark.parametrize("value", VALUE_KINDS)
def test_every_kind_draws_a_legal_case_of_every_size(value, n, d):
    for attention in ATTENTION_KINDS:
        for heads in (1, 2):
            given = {"attention": attention, "value": value, "n": n, "d": d, "heads": heads}
            found = outcome(point(**given, depth=20), ALL)
            refused = {
                "blocks must": attention == "nearly_reducible" and n == 1,
                "Jordan block": value == "defective" and d == 1,
            }
            if any(refused.values()):
                assert found["status"] == "error"
                assert any(why in found["note"] for why, is_so in refused.items() if is_so)
                continue
            known = {"estimated"} if heads > 1 else {"certified", "numerical"}
            assert found["status"] in known, found["note"]
            assert found["status"] != "numerical" or found["verdict"] == "UNDECIDED"
            layer, _ = draw(point(**given))
            A = layer.given["A"].floats
            assert stacked(A).shape == (heads, n, n) and stacked(layer.H).shape == (heads, d, d)
            assert np.abs(A.sum(-1) - 1).max() <= n * 2.3e-16
            assert (found["verdict"] == "TRIVIAL") == (n == 1)


def test_asymmetry_runs_from_a_symmetric_to_an_antisymmetric_product():
    def logits(t):
        A = Asymmetric(asymmetry=t, dim=64).draw(6, rng=np.random.default_rng(1))
        L = np.log(A)
        # log A = logits - row constant; its doubly centred part is that of the logits.
        return np.asarray(L - L.mean(0) - L.mean(1)[:, None] + L.mean())

    S, K = logits(0.0), logits(1.0)
    assert np.abs(S - S.T).max() < 1e-13 and np.abs(K + K.T).max() < 1e-13
    mixed = logits(0.36)
    np.testing.assert_allclose(mixed, 0.8 * S + 0.6 * K, atol=1e-13)


def test_chosen_spectra_are_the_eigenvalues_of_h():
    h = np.linalg.eigvals(draw(point(value="interval", low=-0.7, high=0.2, d=7))[0].H)
    assert np.abs(h.imag).max() < 1e-13 and h.real.min() > -0.7 and h.real.max() < 0.2
    h = np.linalg.eigvals(draw(point(value="disc", centre=-0.5, radius=0.5, d=7))[0].H)
    assert np.abs(h + 0.5).max() <= 0.5 and np.abs(h.imag).max() > 0.01
    h = np.linalg.eigvals(draw(point(value="plus_minus", scale=2.0, positive=0.25, d=8))[0].H)
    np.testing.assert_allclose(np.sort(h.real), [-2.0] * 6 + [2.0] * 2, atol=1e-13)


@cases(
    "attention, value",
    *((a, "ginibre") for a in ATTENTION_KINDS),
    *(("softmax", v) for v in VALUE_KINDS),
)
def test_a_point_has_the_verdict_that_the_front_door_gives(attention, value):
    p = point(attention=attention, value=value, n=5, d=4, depth=10)
    found, (layer, _) = outcome(p, ("ratio",)), draw(p)
    A, weights = layer.given["A"].floats, layer.factors or layer.H.T
    expected = verdict(A=A, W=weights)
    assert found["verdict"] == expected.verdict
    # The front door divides the rows by their sums once more: a few ulp of A.
    _, V = np.linalg.eig(quotient(A))
    bound = 1e-14 * np.linalg.cond(V) if value != "defective" else 1e-6
    assert found["rho_consensus"] == expected.rho_consensus
    assert found["rho_quotient"] == pytest.approx(expected.rho_quotient, rel=bound)


@pytest.mark.parametrize("seed", range(4))
def test_slopes_are_the_predicted_rate_and_states_those_of_evolve(seed):
    p = point(value="interval", low=-0.4, high=0.9, n=6, d=4, depth=600, seed=seed)
    found, (layer, X0) = outcome(p, ALL), draw(p)
    assert found["verdict"] == "SMOOTHING" and found["tends_to"] == "zero"
    # Two depths: what is left is the change of an O(1) factor, over 300 layers.
    assert found["slope"] == pytest.approx(found["predicted_log_rate"], abs=5 / 300)
    table = evolve(X0=X0, A=layer.A, H=layer.H, depth=600, device="cpu").metrics()
    for name in ("log_hfc_lfc", "cos_mean", "cos_min", "effective_rank"):
        assert found[name] == pytest.approx(float(table[name].iloc[-1]), rel=1e-9)


@given(st.integers(2, 7), st.integers(1, 5), st.integers(0, 10**6), st.sampled_from([-40, 0, 40]))
def test_metrics_in_numpy_are_those_in_torch(n, d, seed, scale):
    X = np.random.default_rng(seed).standard_normal((n, d)) * 2.0**scale
    expected = {k: float(v) for k, v in metrics(torch.as_tensor(X)).items()}
    mean, low = cosine_extremes(X)
    assert mean == pytest.approx(expected["cos_mean"], abs=1e-13)
    assert low == pytest.approx(expected["cos_min"], abs=1e-13)
    assert effective_rank(X) == pytest.approx(expected["effective_rank"], rel=1e-12)
    centre = X.mean(axis=0)
    state = ScaledState(0, X - centre, centre, 0.0, 0.0)
    # A part that is what larger ones leave loses their digits.
    ratio = expected["hfc_lfc"]
    allowed = 2.0**-52 * 8 * n * d * (1 + ratio + 1 / ratio)
    assert state.log_hfc_lfc == pytest.approx(expected["log_hfc_lfc"], abs=allowed)
    whole, size = dense(state), np.abs(X).max()
    whole *= 2.0 ** np.rint(np.log2(size / np.abs(whole).max()))
    assert whole == pytest.approx(X, rel=1e-12, abs=1e-12 * size)


@pytest.mark.parametrize("heads", [1, 2])
def test_a_cosine_of_a_lost_token_is_not_said(heads):
    """Causal tokens grow at their own rates: the first is 1e-70 of the last, and its direction in a
    sum of differences and mean that of roundings."""
    given = {"attention": "causal", "n": 7, "d": 4, "heads": heads}
    (_, X), lost = draw(point(**given)), outcome(point(**given, value="interval"), ALL)
    assert math.isnan(lost["cos_mean"]) and math.isnan(lost["cos_min"])
    assert math.isfinite(lost["log_hfc_lfc"]) and lost["verdict"] is not None
    # Differences and mean may cancel to exactly 0: the first token is 1e-24 of the last here.
    lost = outcome(point(attention="causal", value="interval", n=3, d=2, depth=60, seed=4), ALL)
    assert math.isnan(lost["cos_mean"]) and math.isnan(lost["cos_min"])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for size, said in ((1e-5, True), (1e-7, False), (0.0, True)):
        sizes = np.array([size, *[1.0] * 6])[:, None]
        state = ScaledState(1, sizes * X, np.zeros(4), 0, 0)
        columns, _ = outcomes.measured(state, state, ("cosine",))
        assert all(np.isfinite(x) == said for x in columns.values())


@cases(
    "given",
    {"heads": 3},
    {"heads": 2, "attention": "causal"},
    {"heads": 2, "attention": "doubly_stochastic", "value": "interval"},
    {"value": "defective"},
    {"heads": 2, "scale": 40.0},
)
def test_many_layers_at_once_are_as_many_one_by_one(given, monkeypatch):
    layer, X0 = draw(point(n=6, d=4, seed=3, **given))
    A, H, depths = stacked(layer.given["A"].floats), stacked(layer.H), [0, 1, 37, 1000]
    leaps = iterate(A, H, X0, depths)
    monkeypatch.setattr(outcomes, "SQUARED", 0)
    for one, other in zip(leaps, iterate(A, H, X0, depths), strict=True):
        assert one.log_hfc_lfc == pytest.approx(other.log_hfc_lfc, rel=1e-11, abs=1e-11)
        X, Y = dense(one)[0], dense(other)
        assert Y * (np.abs(X).max() / np.abs(Y).max()) == pytest.approx(X, abs=1e-10)


@pytest.mark.parametrize("value", ["interval", "low_rank"])
def test_heads_are_independent_and_together_as_large_as_one(value):
    given = {"low": 0.4, "high": 0.8} if value == "interval" else {}
    layer, _ = draw(point(value=value, heads=4, n=3, d=150, **given))
    assert len({A.tobytes() for A in layer.A}) == len({H.tobytes() for H in layer.H}) == 4
    one, _ = draw(point(value=value, n=3, d=150, **given))
    sizes = [np.linalg.norm(H) for H in layer.H]
    np.testing.assert_allclose(sizes, np.linalg.norm(one.H) / 4, rtol=0.3)


def test_several_heads_beyond_the_dense_operator_are_decided_too(monkeypatch):
    p = point(heads=2, n=20, d=10, depth=4)
    dense = outcome(p, ("ratio",))
    monkeypatch.setattr(outcomes, "OPERATOR_LIMIT", 100)
    found = outcome(p, ("ratio",))
    assert found["verdict"] == dense["verdict"] == "SMOOTHING" and found["status"] == "estimated"
    assert found["rho_quotient"] == pytest.approx(dense["rho_quotient"], rel=0.05)
    assert found["margin_error"] < found["margin"] and found["log_hfc_lfc"] is not None
    unknown = Radius(None, math.inf, "arnoldi", "it did not converge")
    monkeypatch.setattr(outcomes, "quotient_radius", lambda *_, **__: unknown)
    found = outcome(p, ("ratio",))
    assert found["verdict"] == "UNDECIDED" and "not converge" in found["note"]
    assert found["rho_quotient"] is None and found["log_hfc_lfc"] is not None


def test_a_margin_within_its_error_is_no_verdict():
    # h = 0 alone: both radii are 1, and only rounding tells them apart.
    found = outcome(point(value="interval", low=-0.0, high=0.0, basis="general"), ("ratio",))
    assert found["verdict"] in ("TIE", "UNDECIDED") and found["margin"] == 0
    found = outcome(point(value="defective", eigenvalue=-2.0, size=3, d=3, n=4), ("ratio",))
    assert abs(found["margin"]) > found["margin_error"] or found["verdict"] == "UNDECIDED"


def test_an_error_at_a_point_is_its_outcome():
    for bad, said in [
        (point(value="interval", low=1.0, high=0.0), "low = 1.0 exceeds"),
        (point(value="low_rank", rank=20, d=16), "rank"),
        (point(value="ginibre", scale=1e200, heads=2, n=3, d=2), "FloatingPointError"),
    ]:
        found = outcome(bad, ALL)
        assert found["status"] == "error" and said in found["note"]
        assert list(found) == list(columns(ALL)) and found["verdict"] is None
