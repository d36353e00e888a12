"""T2b: for a single real h, consensus loses exactly on (-2/(1+a), 0)."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp
from hypothesis import strategies as st

from theory.claims import strategies as draw
from theory.claims.claim import Claim, Hypothesis, Instance, Status
from theory.claims.evidence import ForAllReals, Mutation, Searched, Symbolic
from theory.claims.query import Query
from theory.dominance import real_verdict, threshold

_DOMAIN = ("-1 < a", "a < 1")
_WIN = Query(
    "consensus loses strictly iff -2/(1+a) < h < 0",
    ("h", "a"),
    _DOMAIN,
    "Iff((1+h)**2 < (1+h*a)**2, h < 0 and h*(1+a) > -2)",
)
_TIE = Query(
    "tie iff h = 0 or h = -2/(1+a)",
    ("h", "a"),
    _DOMAIN,
    "Iff((1+h)**2 == (1+h*a)**2, h == 0 or h*(1+a) == -2)",
)
_SAFE = Query(
    "h in [-1, 0) loses at consensus for every a in (-1, 1)",
    ("h", "a"),
    (*_DOMAIN, "-1 <= h", "h < 0"),
    "(1+h)**2 < (1+h*a)**2",
)


def _residual() -> sp.Expr:
    h, a = sp.symbols("h a", real=True)
    return (1 + h) ** 2 - (1 + h * a) ** 2 - h * (1 - a) * (2 + h * (1 + a))


def _law(drawn: tuple[Fraction, list[Fraction]]) -> None:
    h, (a,) = drawn
    expected = "NON_SMOOTHING" if threshold(a) < h < 0 else "SMOOTHING"
    expected = "TIE" if h in (0, threshold(a)) else expected
    first, second = (1 + h) ** 2, (1 + h * a) ** 2
    by_squares = "TIE" if first == second else "SMOOTHING" if first > second else "NON_SMOOTHING"
    assert real_verdict(h, h, a) == expected == by_squares


def _single_real(instance: Instance) -> bool:
    return len(instance.H) == 1


def _two_tokens(instance: Instance) -> bool:
    return len(instance.A) == 2


CLAIM = Claim(
    name="T2b",
    statement="For a single real h and a in (-1, 1): (1+h)^2 - (1+ha)^2 = h (1-a) (2 + h(1+a)), so "
    "consensus loses strictly iff -2/(1+a) < h < 0, ties iff h = 0 or h = -2/(1+a), and wins "
    "otherwise. h = -1 is safe for every A.",
    latex=r"|1+h| < |1+ha| \iff -\tfrac{2}{1+a} < h < 0",
    source="ours, repairing the control statement of arXiv 2401.04301 v3",
    on_record=Status.PROVED,
    hypotheses=(
        Hypothesis("H has one eigenvalue (d = 1)", _single_real),
        Hypothesis("A has one eigenvalue besides 1 (n = 2)", _two_tokens),
    ),
    evidence=(
        Symbolic("the identity", _residual, complete=False),
        ForAllReals(
            _WIN,
            (
                Mutation(
                    "the interval reaches to -2 for every a",
                    Query(
                        "mutated",
                        _WIN.variables,
                        _DOMAIN,
                        "Iff((1+h)**2 < (1+h*a)**2, h < 0 and h > -2)",
                    ),
                ),
            ),
            {"h": "-1", "a": "1/2"},
        ),
        ForAllReals(
            _TIE,
            (
                Mutation(
                    "only h = 0 ties",
                    Query(
                        "mutated", _TIE.variables, _DOMAIN, "Iff((1+h)**2 == (1+h*a)**2, h == 0)"
                    ),
                    {"h": "-4/3", "a": "1/2"},
                ),
            ),
            {"h": "0", "a": "0"},
        ),
        ForAllReals(
            _SAFE,
            (
                Mutation(
                    "[-1, 0] closed",
                    Query(
                        "mutated",
                        _SAFE.variables,
                        (*_DOMAIN, "-1 <= h", "h <= 0"),
                        _SAFE.conclusion,
                    ),
                ),
                Mutation(
                    "[-3/2, 0)",
                    Query(
                        "mutated",
                        _SAFE.variables,
                        (*_DOMAIN, "-3/2 <= h", "h < 0"),
                        _SAFE.conclusion,
                    ),
                ),
            ),
            {"h": "-1/2", "a": "0"},
            complete=False,
        ),
        Searched(
            "closed form against squares",
            st.tuples(draw.fractions(-6, 3), draw.attention_spectra(1, 1)),
            _law,
        ),
    ),
)
