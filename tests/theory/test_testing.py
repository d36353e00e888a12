"""`oversmoothing.testing`: claims of a user's own in a user's own tests."""

from fractions import Fraction

import pytest

import oversmoothing
from oversmoothing.testing import Claim, Refuted, by, check, draw, exact
from tests.support.processes import python
from tests.support.refusals import refuses

FILE = """
from oversmoothing.testing import Claim, by, draw, exact, given


def never_falls(A, H, X0):
    high, low = exact.squared_norms(X0)
    high_next, low_next = exact.squared_norms(exact.layer(A, H, X0))
    return high_next * low >= high * low_next


negative = draw.with_spectrum(draw.fractions(-1, 0), 1, {most})


@given.condition("A is symmetric", given.case("1/2 1/2; 1/3 2/3"))
def symmetric(case):
    return case.A == exact.transposed(case.A)


CLAIM = Claim(
    name="never-falls",
    clauses=("With h in [-1, 0) no layer makes HFC/LFC fall.",),
    hypotheses=(given.POSITIVE, given.HALF_OPEN, given.BOTH_PARTS{more}),
    evidence=(by.law(never_falls, draw.cases({attention}H=negative)),),
)
"""
FALSE = FILE.format(most=2, more="", attention="")
TRUE = FILE.format(
    most=1, more=", symmetric, given.ONE_FEATURE", attention="A=draw.walsh_attention(), "
)


def claim_of(text: str) -> Claim:
    names: dict = {}
    exec(text, names)
    return names["CLAIM"]


def test_a_false_claim_is_refuted_with_matrices_that_can_be_typed() -> None:
    with pytest.raises(Refuted, match="never-falls is refuted: With h in") as caught:
        check(claim_of(FALSE))
    words = str(caught.value).splitlines()
    typed = {name: eval(value) for name, value in (w.split(" = ", 1) for w in words[-3:])}
    assert typed == caught.value.instance and set(typed) == {"A", "H", "X0"}
    # As it stands it is a case, and the ratio falls there.
    assert oversmoothing.verdict(**typed).status == "exact"
    A, H, X0 = ([[Fraction(x) for x in row] for row in typed[k]] for k in ("A", "H", "X0"))
    assert exact.squared_ratio(exact.layer(A, H, X0)) < exact.squared_ratio(X0)


def test_a_true_claim_passes_and_a_search_is_no_proof() -> None:
    assert check(claim_of(TRUE), examples=50) == "undecided"


def test_a_claim_that_could_not_be_asked_fails_too() -> None:
    def silent(A, H, X0):
        return None

    claim = Claim(name="silent", clauses=("Nothing.",), evidence=(by.law(silent, draw.cases()),))
    refuses("could not be asked", check, claim, examples=5, error=Refuted)


def test_the_plugin_makes_a_test_of_a_claim_and_prints_its_counterexample(tmp_path) -> None:
    (tmp_path / "test_true.py").write_text(TRUE)
    (tmp_path / "test_false.py").write_text(FALSE)
    words = [
        "-p",
        "oversmoothing.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--claim-examples",
        "50",
    ]
    # Alone, and once: installed, pytest finds the plugin by itself.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = python("-m", "pytest", *words, tmp_path, cwd=tmp_path, env=alone)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout
    assert "claims: 50 examples, seed 0" in done.stdout
    assert "never-falls is refuted: With h in [-1, 0)" in done.stdout
    assert "\nA = [[" in done.stdout and "\nX0 = [[" in done.stdout
    assert "Traceback" not in done.stdout and "def never_falls" not in done.stdout
