"""Certificates at the ends of what can be written, made and checked: every one was refused once."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import flint
import numpy as np
import pytest

import oversmoothing
from oversmoothing.theory import certificate
from oversmoothing.theory.certificate import make_certificate
from oversmoothing.theory.checker import spectra
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.verdict.by_fractions import exact_dominance
from tests.support.tables import matrix

AA = matrix("AA")


def certified(A, H, X0=None):
    """The claim of an honest certificate, accepted whole and within seconds."""
    began = time.perf_counter()
    found = make_certificate(*read_layer(A, H, X0))
    assert found.unconfirmed == () and check_certificate(json.dumps(found.body)).accepted
    assert time.perf_counter() - began < 20
    return found.body["claim"]


def bounds(texts):
    return [float(x) if "x" not in x else float.fromhex(x) for x in texts]


def test_T14_an_attention_of_several_classes_is_certified_with_its_start():
    for X0 in ([[0], [1]], [[1], [-1]]):
        claim = certified([[1, 0], [0, 1]], [["1/2"]], X0)
        assert claim["verdict"] == claim["verdict_x0"] == "TIE"


def test_a_start_at_which_a_token_is_absorbed():
    claim = certified([["1/3", "2/3"], [0, 1]], [[4]], [["-8/5"], ["-9/2"]])
    assert claim["verdict_x0"] == "SMOOTHING" and claim["genericity"]["mode"] == "consensus"


@pytest.mark.parametrize(
    ("h", "depth"), [("1e-3", 11627), ("1e-4", 116192), ("1e-10", 116182859815), ("1e-30", None)]
)
def test_T5d_depths_at_slow_rates(h, depth):
    found = certified(AA, [[h]], [[1], [2]])["depth"]
    assert depth in (None, found) and (depth or found > 10**31)


def test_T5d_a_depth_where_consensus_is_largest_in_a_later_mode():
    """h = 7/3 e-9 outgrows 2e-9, of which X_0 has far more: either may bound the depth."""
    claim = certified(AA, [["7/3000000000", 0], [0, "1/500000000"]], [["1/1000", 5], ["1/1000", 7]])
    assert claim["depth"] > 10**9


def test_a_jordan_block_in_an_H_of_21():
    H = [
        [Fraction(2) * (i == j and i < 4) + Fraction(i == j and i >= 4, 2 + i) for j in range(21)]
        for i in range(21)
    ]
    for i in range(3):
        H[i][i + 1] = Fraction(1)
    claim = certified([[Fraction(1, 21)] * 21] * 21, H)
    low, high = bounds(claim["rho_consensus"])
    assert claim["verdict"] == "SMOOTHING" and 3 - 1e-15 < low < 3 < high < 3 + 1e-15


def test_T6b_ties_of_larger_matrices():
    """a = -1/2 and h = -4 tie at 3, beside seven features that the bits must not grow with."""
    H = matrix("diag -4 " + " ".join(f"-1/{9 * (5 + i)}" for i in range(7)))
    for i in range(7):
        H[i][i + 1] = Fraction(i + 2, 3)
    A = [["1/4", "3/4"], ["3/4", "1/4"]]
    claim = certified(A, H, [[Fraction(i + j * j + 1) for j in range(8)] for i in range(2)])
    assert claim["verdict"] == "TIE" and claim["jordan_consensus"] == 1
    # |1 + h| with h = sqrt 12 is matched by the second 1 of A, whatever its own conjugates.
    claim = certified([[1, 0], [0, 1]], [[0, 12], [1, 0]], [[1, 2], [3, 5]])
    assert claim["verdict"] == claim["verdict_x0"] == "TIE"


def test_a_diagonal_that_is_zero_but_for_1e_21():
    small = Fraction(1, 10**21)
    A = [[1, 0, 0], [1, 0, 0], ["1/2", Fraction(1, 2) - small, small]]
    claim = certified(A, [[2]], [[1], [2], [3]])
    assert claim["verdict_x0"] == "SMOOTHING" and claim["depth"] > 0


@pytest.mark.parametrize("power", [38, 39, 400])
def test_a_radius_close_to_0_is_enclosed(power):
    h = Fraction(-1) + Fraction(1, 10**power)
    claim = certified(AA, [[h]], [[1], [2]])
    low, high = bounds(claim["rho_consensus"])
    assert 0 <= low <= float(1 + h) <= high <= 1.0000001 * float(1 + h) + 1e-300
    ball = exact_dominance(Layer.of(AA, [[h]]).rational_A, [[h]]).radius(True)
    assert ball.overlaps(flint.arb(flint.fmpq(1, 10**power))) and ball.rel_accuracy_bits() > 50


@pytest.mark.parametrize(
    "H",
    [
        [["1e308", "1e308"], ["1e308", "1e308"]],
        [[1.7e308, 1.7e308], [1.7e308, 1.7e308]],
        [[-1.7e308, 0.0], [0.0, 3.0]],
    ],
)
def test_radii_beyond_binary64_have_an_open_end(H):
    claim = certified(AA, H, [[1, 2], [3, 5]])
    assert claim["verdict"] == "SMOOTHING"
    assert bounds(claim["rho_consensus"])[0] > 1e308


def test_numbers_too_long_for_a_file_are_said(tmp_path, capsys):
    for h in ("1e400", "1e999999999"):
        path = tmp_path / "case.json"
        path.write_text(json.dumps({"A": [["1"]], "H": [[h]]}))
        assert oversmoothing.main(["certify", str(path)]) == 2
        assert "range of binary64" in (said := capsys.readouterr().err) or "digits" in said
    long = Fraction(1, 10**25_000)
    with pytest.raises(InputError, match="no certificate of this case can be written"):
        make_certificate(Layer.of(AA, [[long]]))


def test_a_claim_that_the_checker_finds_false_is_an_error_and_nothing_is_written(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(
        certificate, "claims_of_start", lambda *arguments: ([{"verdict_x0": "TIE"}], "")
    )
    with pytest.raises(RequirementError, match="the checker contradicts"):
        make_certificate(*read_layer(AA, [["1/2"]], [[1], [2]]))
    path = tmp_path / "certificate.json"
    assert oversmoothing.main(["certify", "--example", "GT1", "--out", str(path)]) == 1
    assert not path.exists() and "contradicts" in capsys.readouterr().err


def test_a_certificate_of_schema_version_1_is_refused_with_the_reason(tmp_path, capsys):
    body = make_certificate(Layer.of(AA, [["1/2"]])).body | {"schema_version": 1}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(body))
    assert oversmoothing.main(["check", str(path)]) == 2
    assert "certify the case again" in capsys.readouterr().err


def test_a_head_wider_than_its_features_has_no_zeros_of_its_core():
    """W_V W_proj = -I / 2 for d = 41, r = 42: rho_C is 1/2, and not the 1 of a zero."""
    W_V = np.eye(41, 42)
    body = make_certificate(Layer.of([[0.75, 0.25], [0.25, 0.75]], factors=(W_V, -0.5 * W_V.T)))
    low, high = bounds(body.body["claim"]["rho_consensus"])
    assert body.body["claim"]["verdict"] == "NON_SMOOTHING" and low <= 0.5 <= high < 0.51
    assert body.unconfirmed == ()


def test_spectra_too_large_for_the_checker_are_left_out(monkeypatch):
    monkeypatch.setattr(spectra, "DISC_SIZE", 24)
    A = np.random.default_rng(0).dirichlet(np.ones(60), size=60)
    found = make_certificate(Layer.of(A / A.sum(axis=1, keepdims=True), [[0.5]]))
    assert found.body["claim"] == {"verdict": "UNDECIDED"} and len(found.unconfirmed) == 1
    assert "could not be enclosed by the checker" in found.unconfirmed[0]
