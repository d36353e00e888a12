"""LaTeX becomes MathML that browsers set without a script."""

from xml.etree import ElementTree

import pytest

from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.proofs.mathml import mathml
from tests.support.refusals import refuses


@pytest.mark.parametrize("name", list(claims()))
def test_every_formula_of_the_ledger_becomes_mathml(name):
    formula = mathml(claims()[name].latex, display=True)
    root = ElementTree.fromstring(formula)
    assert root.tag.endswith("}math") and root.get("display") == "block"
    assert "\\" not in formula
    assert {e.get("mathvariant") for e in root.iter()} <= {None, "normal"}


def test_letters_of_other_alphabets_are_unicode():
    assert "ℝ" in mathml(r"\mathbb R")
    assert "\U0001d7cf" in mathml(r"\mathbf 1")


@pytest.mark.parametrize("latex", [r"\leK", r"a \unheardof b", r"a & b"])
def test_what_is_not_understood_is_refused(latex):
    refuses("no MathML", mathml, latex, error=ValueError)


def test_limits_stand_below_in_a_display():
    assert "munder" in mathml(r"\lim_{L\to\infty} x_L", display=True)
    assert "munder" not in mathml(r"\lim_{L\to\infty} x_L")
