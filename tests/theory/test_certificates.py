"""Certificates made and checked: golden cases, drawn ones with a start, the command line."""

from __future__ import annotations

import ast
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given, settings

import oversmoothing
from oversmoothing.theory import checker
from oversmoothing.theory.certificate import certify
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.layer.layer import Layer, read_layer
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.verdict.verdict import verdict
from tests.forgeries.forging import claiming
from tests.support.tables import matrix


@pytest.mark.parametrize("name", list(golden_cases()))
def test_golden_cases_certify_and_check(name):
    case = golden_cases()[name]
    body = certify(*read_layer(case.A, case.H, case.X0))
    assert body["claim"]["verdict"] == case.verdict
    found = check_certificate(json.dumps(body))
    assert found.accepted, found.words


SMOOTHING = certify(Layer.of(matrix("AA"), [["1/2"]]))


def test_the_checker_imports_nothing_that_makes_certificates():
    for path in Path(checker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names]
                for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
                    own = str(name).startswith("oversmoothing.theory.checker")
                    assert own or not str(name).startswith("oversmoothing"), path


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
