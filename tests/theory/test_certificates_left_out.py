"""A certificate holds what its checker confirms, and nothing that stands on the rest."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from oversmoothing.theory import certificate
from oversmoothing.theory.certificate import interval_texts, make_certificate
from oversmoothing.theory.checker.reading import Check
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.layer.layer import read_layer

AVERAGE = [["3/4", "1/4"], ["1/4", "3/4"]]


def certified(monkeypatch, beyond: str, H, X0=(("1",), ("2",))):
    """The certificate where the checker cannot confirm any file that claims `beyond`."""

    def check(text: str) -> Check:
        claimed = beyond in json.loads(text)["claim"]
        return Check(not claimed, "out of reach" if claimed else "confirmed", beyond=claimed)

    monkeypatch.setattr(certificate, "check_certificate", check)
    return make_certificate(*read_layer(AVERAGE, H, X0))


def test_all_is_written_where_all_is_confirmed(monkeypatch):
    found = certified(monkeypatch, "nothing", [["1/2"]])
    claim = found.body["claim"]
    assert found.unconfirmed == () and found.checked == "confirmed"
    assert claim["verdict"] == "SMOOTHING" and claim["verdict_x0"] == "SMOOTHING"
    assert {"rho_consensus", "genericity", "eps", "depth"} <= claim.keys()


def test_without_the_verdict_nothing_is_said_of_its_mode(monkeypatch):
    found = certified(monkeypatch, "rho_consensus", [["1/2"]])
    claim = found.body["claim"]
    assert claim["verdict"] == "UNDECIDED" and not {"rho_consensus", "genericity"} & claim.keys()
    assert claim["verdict_x0"] == "SMOOTHING" and "depth" in claim
    assert found.unconfirmed[0].endswith("out of reach")
    assert found.unconfirmed[1] == "genericity: it stands on what is not confirmed"
    assert len(found.unconfirmed) == 2


def test_without_the_verdict_for_X_0_no_depth_is_claimed(monkeypatch):
    found = certified(monkeypatch, "verdict_x0", [["1/2"]])
    claim = found.body["claim"]
    assert claim["verdict"] == "SMOOTHING" and "genericity" in claim
    assert not {"verdict_x0", "depth", "eps"} & claim.keys()
    assert [line.split(": ")[1] for line in found.unconfirmed] == [
        "out of reach",
        "it stands on what is not confirmed",
    ]


def test_T6b_blocks_stand_with_the_tie_that_they_decide(monkeypatch):
    found = certified(monkeypatch, "margin", [["0"]])
    assert found.body["claim"]["verdict"] == "UNDECIDED"
    assert "jordan_consensus" not in found.body["claim"]
    whole = certified(monkeypatch, "nothing", [["0"]])
    assert whole.body["claim"]["jordan_consensus"] == 1


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((-float("inf"), float("inf")), ["-inf", "inf"]),
        ((0.0, 1.5), ["0x0.0p+0", "0x1.8000000000000p+0"]),
    ],
)
def test_ends_beyond_binary64_are_infinities(ends, texts):
    assert interval_texts(ends) == texts


@pytest.mark.parametrize("seed", range(4))
def test_T5d_a_certified_depth_is_the_first_one_also_where_mixing_is_slow(seed):
    rng = np.random.default_rng(300 + seed)
    A = 0.98 * np.eye(3) + 0.02 * rng.dirichlet(np.ones(3), size=3)
    H, X0 = 0.2 * rng.standard_normal((2, 2)) + 0.3 * np.eye(2), rng.standard_normal((3, 2))
    case, start = read_layer(A / A.sum(axis=1, keepdims=True), H, X0)
    found = make_certificate(case, start)
    depth = found.body["claim"]["depth"]
    state = case.rational_A, case.rational_H, start.fractions
    ratios = ball_ratios(*state, case.rational_pi, range(depth - 1, depth + 50))
    assert depth > 900 and found.unconfirmed == ()
    assert ratios[depth - 1].value > 1e-3 >= max(ratios[L].value for L in range(depth, depth + 50))


@pytest.mark.parametrize(("n", "d", "reason"), [(12, 8, ""), (14, 8, "up to (n - 1) d = 96 only")])
def test_T5d_a_depth_is_certified_or_it_is_said_why_not(n, d, reason):
    rng = np.random.default_rng(1)
    A, X0 = rng.dirichlet(np.ones(n), size=n), rng.standard_normal((n, d))
    A /= A.sum(axis=1, keepdims=True)
    H = 0.2 * rng.standard_normal((d, d)) + 0.8 * np.eye(d)
    found = make_certificate(*read_layer(A, H, X0))
    assert found.body["claim"]["verdict_x0"] == "SMOOTHING"
    assert ("depth" in found.body["claim"]) == (not reason)
    assert reason in " ".join(found.left_out) and bool(found.left_out) == bool(reason)


def test_a_depth_that_the_checker_cannot_confirm_names_the_limit_that_is_met():
    # Uniform causal attention of 50 tokens: eigenvalues 1 / i, none repeated.
    n = 50
    A = [[Fraction(int(j <= i), i + 1) for j in range(n)] for i in range(n)]
    case, start = read_layer(A=A, H=[["1/2"]], X0=[[i % 5 + 1] for i in range(n)])
    found = make_certificate(case, start)
    assert "depth" not in found.body["claim"] and found.body["claim"]["verdict_x0"] == "SMOOTHING"
    assert all("a depth is confirmed up to n, d = 48 only" in line for line in found.unconfirmed)
    assert found.unconfirmed
