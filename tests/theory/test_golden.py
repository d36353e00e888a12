"""Every golden case: exact where exact values are known, else to the digits on record."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.depth.ratios import exact_state, squared_norms
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.tables import floats

CASES = golden_cases()
DEEP = [1, 2, 5, 20, 40]
LIMITS = {"1/3": 1 / 3, "8*sqrt(2)/5": 8 * np.sqrt(2) / 5}
# Radii and rates that the record has no field for.
FIELDS = {
    "GT1": {"rate": 5 / 6},
    "GT8": {"rho_consensus": np.sqrt(17) / 2, "rho_quotient": 1.0},
    "GT10": {"rho_consensus": np.sqrt(1 / 2)},
    "GT18": {"rate": 0.0},
}


@pytest.mark.parametrize("name", CASES)
def test_a_golden_case_in_fractions_is_as_on_record(name):
    """Squares of HFC/LFC are the fractions; its forty digits those of a recomputation to sixty."""
    case = CASES[name]
    said, found = case.expected, verdict(A=case.A, H=case.H, X0=case.X0, depth=DEEP)
    assert (found.status, found.verdict) == ("exact", case.verdict)
    assert found.tends_to == said["tends_to"]
    assert found.limit_rank == said.get("limit_rank", found.limit_rank)
    if "limit" in said:
        assert found.limit == pytest.approx(LIMITS[said["limit"]], rel=1e-12)
    for field, value in FIELDS.get(name, {}).items():
        assert getattr(found, field) == pytest.approx(value, rel=1e-15)
    for depth, value in said["hfc_lfc_squared"].items():
        assert found.hfc_lfc[int(depth)].squared == Fraction(value)
    for depth, value in said["hfc_lfc"].items():
        hfc, lfc = squared_norms(exact_state(case.A, case.H, case.X0, [int(depth)])[int(depth)])
        with mpmath.workdps(60):
            squared = hfc / lfc
            again = mpmath.sqrt(mpmath.mpf(squared.numerator) / squared.denominator)
            recorded = mpmath.mpf(value)
            assert abs(again - recorded) <= mpmath.mpf(10) ** -39 * max(recorded, 1)
        assert found.hfc_lfc[int(depth)].value == pytest.approx(float(again), rel=1e-12, abs=0)


@pytest.mark.parametrize("name", CASES)
def test_floats_come_to_the_same_verdict_or_say_undecided(name):
    case = CASES[name]
    found = verdict(A=floats(case.A), H=floats(case.H), X0=floats(case.X0), depth=DEEP)
    assert found.verdict in (case.verdict, "UNDECIDED")
    for depth, value in case.expected["hfc_lfc"].items():
        # The case in binary64 is the rounded case: rates move by an ulp, powers by depth ulps.
        assert found.hfc_lfc[int(depth)].value == pytest.approx(float(value), rel=1e-13, abs=0)
