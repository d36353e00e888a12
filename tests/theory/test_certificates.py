"""Certificates: containment is never wrong, and a false claim is refused by computation.

As FLINT tests its enclosures: the spectrum is chosen exactly, conjugated, and must be contained.
Success and UNDECIDED are both legal; a wrong certificate never is.
"""

from __future__ import annotations

import ast
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import oversmoothing
from oversmoothing.theory import checker
from oversmoothing.theory.certificate import certify
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import NotACertificate
from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.layer.cell import softmax_within
from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.discs import Discs, Failure, components, enclose
from oversmoothing.theory.spectra.layer_discs import head_discs, value_discs
from oversmoothing.theory.verdict.formulas import real_verdict, threshold
from oversmoothing.theory.verdict.stages import consensus_radius, quotient_radius
from oversmoothing.theory.verdict.verdict import verdict
from tests.forgeries.forging import claiming
from tests.support.tables import matrix


def test_a_defective_matrix_is_a_failure_or_a_joint_component():
    found = enclose(np.array([[1.0, 1.0], [0.0, 1.0]]))
    assert isinstance(found, Failure) or len(set(found.component)) == 1
    assert isinstance(enclose(np.array([[np.nan]])), Failure)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_a_head_has_its_zeros_exactly_and_its_core_in_discs(d, r, seed):
    rng = np.random.default_rng(seed)
    W_V, W_proj = rng.standard_normal((d, r)), rng.standard_normal((r, d))
    found = head_discs(W_V, W_proj)
    if isinstance(found, Failure):
        return
    zeros = (found.centres == 0) & (found.radii == 0)
    assert np.count_nonzero(zeros) >= d - r
    dense = value_discs(W_V @ W_proj)
    if isinstance(dense, Discs):
        first, second = consensus_radius(found), consensus_radius(dense)
        assert first.low <= second.high + 1e-12 and second.low <= first.high + 1e-12


@given(own.two_token_attention(), st.integers(2, 16), st.sampled_from([-1, 1]))
@settings(max_examples=300)
def test_near_ties_never_certify_wrongly(attention, k, side):
    A, a = attention
    h = threshold(a) + side * Fraction(1, 10**k)
    floats = to_float(A), [[float(h)]]
    body = certify(Layer.of(floats[0].tolist(), floats[1]))
    exact = Layer.of(floats[0].tolist(), floats[1])
    true_a = exact.rational_A[0][0] + exact.rational_A[1][1] - 1
    true_h = exact.rational_H[0][0]
    assert body["claim"]["verdict"] == real_verdict(true_h, true_h, true_a)
    assert check_certificate(json.dumps(body)).accepted


@pytest.mark.parametrize("name", list(golden_cases()))
def test_golden_cases_certify_and_check(name):
    case = golden_cases()[name]
    body = certify(*read_layer(case.A, case.H, case.X0))
    assert body["claim"]["verdict"] == case.verdict
    found = check_certificate(json.dumps(body))
    assert found.accepted, found.words


SMOOTHING = certify(Layer.of(matrix("AA"), [["1/2"]]))


def test_a_changed_file_is_refused_by_its_digest():
    body = json.loads(json.dumps(SMOOTHING))
    body["input"]["H"] = [["1/3"]]
    found = check_certificate(json.dumps(body))
    assert not found.accepted and "digest" in found.words


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"kind": "oversmoothing certificate"}'])
def test_what_is_no_certificate_is_named(text):
    with pytest.raises(NotACertificate):
        check_certificate(text)


def test_the_checker_imports_nothing_that_makes_certificates():
    for path in Path(checker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names]
                for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
                    own = str(name).startswith("oversmoothing.theory.checker")
                    assert own or not str(name).startswith("oversmoothing"), path


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0.1, 300))
def test_the_softmax_enclosure_contains_the_softmax(n, seed, scale):
    from mpmath import mp, mpf

    logits = scale * np.random.default_rng(seed).standard_normal((n, n))
    A, error = softmax_within(logits)
    with mp.workdps(60):
        for i in range(n):
            weights = [mp.exp(mpf(float(x))) for x in logits[i]]
            for j in range(n):
                truth = weights[j] / sum(weights)
                assert abs(truth - mpf(float(A[i, j]))) <= mpf(float(error[i, j]))


def test_certify_and_check_from_the_command_line(tmp_path, capsys):
    path = tmp_path / "cert.json"
    assert oversmoothing.main(["certify", "--example", "GT12", "--out", str(path)]) == 0
    assert oversmoothing.main(["check", str(path)]) == 0
    assert "accepted: TIE" in capsys.readouterr().out
    path.write_text(claiming(SMOOTHING, verdict="NON_SMOOTHING"))
    assert oversmoothing.main(["check", str(path)]) == 1
    assert "REFUSED" in capsys.readouterr().out
    path.write_text("{")
    assert oversmoothing.main(["check", str(path)]) == 2


def test_exact_discs_are_points():
    def exact_discs(*values):
        centres, radii = np.array(values, complex), np.zeros(len(values))
        return Discs(centres, radii, components(centres, radii))

    found = exact_discs(0.0, 0.0, 0.5)
    assert (found.radii == 0).all() and len(set(found.component)) == 2
    radius = quotient_radius(found, exact_discs(0.0))
    assert radius.low == radius.high == radius.shown == 1.0
    assert 1.5 <= quotient_radius(found, exact_discs(1.0)).high < 1.5 + 1e-14


@given(own.exact_cases(max_n=3, max_d=2))
@settings(max_examples=40)
def test_claims_about_X0_are_confirmed_by_krylov_vectors_and_powers(case):
    A, H, X0 = case
    assume(len(A) > 1)
    body = certify(*read_layer(A, H, X0), Fraction(1, 10))
    found = check_certificate(json.dumps(body))
    if not found.accepted:
        # What the checker cannot reach it refuses; it never refuses by contradicting the truth.
        assert "could not" in found.words or "bits" in found.words or "no power" in found.words
    if "depth" in body["claim"]:
        ratios = verdict(A=A, H=H, X0=X0, depth=range(body["claim"]["depth"], 40)).hfc_lfc
        assert all(r.value is None or r.value <= 0.1 for r in ratios.values())
