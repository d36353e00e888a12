"""A certificate: the exact input, what is claimed of it, and by which method, in one JSON file.

Binary64 input is written as hexadecimal floats, fractions as "p/q": what is certified is what the
file says, to the last bit. The digest ties the parts together; it proves nothing, and
`theory.checker` recomputes the claim by other means.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from theory.case import Case
from theory.certificates.dominance import CertifiedDominance, Radius, certified_dominance
from theory.depth_bounds import certified_depth_in_balls
from theory.exact import EXACT_BITS, ExactDominance, at_precision, exact_dominance, jordan_size
from theory.modes import mode_content
from theory.perron import closed_classes
from theory.provenance import provenance
from theory.rational import exact_stationary

SCHEMA_VERSION = 1
KIND = "oversmoothing certificate"
# Up to this n and d, what float64 cannot separate is decided on the exact values of the input.
EXACT_FALLBACK_SIZE = 24
# Up to this n and d, claims about one X_0 are made.
MODES_SIZE = 8
_BITS = 160
DEFAULT_EPS = Fraction(1, 1000)


def certify(case: Case, eps: Fraction = DEFAULT_EPS) -> dict[str, Any]:
    """The certificate of a case, as a JSON object.

    With X_0 it also states the verdict over the modes that X_0 contains (T4e) and a depth L*(eps)
    with HFC/LFC <= eps at every L >= L* (T5d), where these can be certified.

    Fractions: decided exactly (ties and Jordan blocks too). Binary64: the fast path, then, up to
    EXACT_FALLBACK_SIZE, exact arithmetic on the binary values (rows of A divided by their sums),
    then UNDECIDED.
    """
    claim, method = _claim(case)
    if case.X0 is not None:
        claim |= _of_x0(case, claim["verdict"], eps)
    body = {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "input": _input(case),
        "claim": claim,
        "method": method,
        "provenance": provenance(),
    }
    return body | {"digest": digest(body)}


def digest(body: dict[str, Any]) -> str:
    """SHA-256 over input, claim and method in canonical form."""
    part = {key: body[key] for key in ("schema_version", "kind", "input", "claim", "method")}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _input(case: Case) -> dict[str, Any]:
    raw: dict[str, Any] = {"numbers": "fractions" if case.exact else "binary64"}
    if case.exact:
        raw["A"], raw["H"] = _texts(case.rational_A), _texts(case.rational_H)
        if case.rational_X0 is not None:
            raw["X0"] = _texts(case.rational_X0)
        return raw
    raw["A"], raw["H"] = _hex(case.given_A), _hex(case.H)
    if case.X0 is not None:
        raw["X0"] = _hex(case.X0)
    return raw


def _texts(matrix: list[list[Fraction]]) -> list[list[str]]:
    return [[str(entry) for entry in row] for row in matrix]


def _hex(matrix: np.ndarray[Any, Any]) -> list[list[str]]:
    return [[float(entry).hex() for entry in row] for row in matrix]


def _claim(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    if not case.exact:
        found = certified_dominance(case.given_A, case.H)
        if found.verdict != "UNDECIDED" or max(case.n, case.d) > EXACT_FALLBACK_SIZE:
            return _from_floats(found), {"name": found.method}
    exact = exact_dominance(case.rational_A, case.rational_H)
    method = {
        "name": "isolated roots of characteristic polynomials, gap bound for equality",
        "gap_bits": exact.bits_needed,
        "limit_bits": EXACT_BITS,
    }
    return _from_exact(exact, case), method


def _of_x0(case: Case, verdict: str, eps: Fraction) -> dict[str, Any]:
    """Claims about this X_0, for n and d up to MODES_SIZE (beyond: none)."""
    A, H, X0 = case.rational_A, case.rational_H, case.rational_X0
    if X0 is None or max(case.n, case.d) > MODES_SIZE:
        return {}
    if not any(map(any, X0)):
        return {"verdict_x0": "UNDEFINED"}
    classes = closed_classes(case.A)
    pi = exact_stationary(A, [list(map(int, members)) for members in classes])
    content = mode_content(A, H, X0, pi)
    if content.vanishes:
        return {"verdict_x0": "UNDEFINED"}
    if all(row == X0[0] for row in X0):
        return {"verdict_x0": "TRIVIAL"}
    names = {1: "SMOOTHING", -1: "NON_SMOOTHING", 0: "TIE", None: "UNDECIDED"}
    claim: dict[str, Any] = {"verdict_x0": names[content.comparison]}
    if verdict == "SMOOTHING" and len(classes) == 1:
        depth = certified_depth_in_balls(A, H, X0, eps)
        if depth is not None:
            claim |= {"eps": str(eps), "depth": depth.depth}
    return claim


def _interval(radius: Radius | None) -> list[str] | None:
    return None if radius is None else [radius.low.hex(), radius.high.hex()]


def _from_floats(found: CertifiedDominance) -> dict[str, Any]:
    margin = found.margin
    return {
        "verdict": found.verdict,
        "rho_consensus": _interval(found.consensus),
        "rho_quotient": _interval(found.quotient),
        "margin": None if margin is None else [margin[0].hex(), margin[1].hex()],
        "reason": found.reason,
    }


def _from_exact(found: ExactDominance, case: Case) -> dict[str, Any]:
    names = {1: "SMOOTHING", -1: "NON_SMOOTHING", 0: "TIE", None: "UNDECIDED"}
    verdict = "TRIVIAL" if case.n == 1 else names[found.comparison]
    consensus, quotient = _ball(found, True), _ball(found, False) if case.n > 1 else None
    claim: dict[str, Any] = {
        "verdict": verdict,
        "rho_consensus": _interval(consensus),
        "rho_quotient": _interval(quotient),
        "margin": None,
        "reason": f"decided on the exact input; equality needs {found.bits_needed} bits",
    }
    if quotient is not None:
        claim["margin"] = _margin(found)
        if verdict == "TIE":
            claim["margin"] = [(0.0).hex(), (0.0).hex()]
            claim["jordan_consensus"] = max(map(jordan_size, found.consensus))
            claim["jordan_quotient"] = max(map(jordan_size, found.quotient))
    if len(closed_classes(case.A)) > 1:
        claim["reason"] += "; the eigenvalue 1 of A repeats"
    return claim


def _margin(found: ExactDominance) -> list[str]:
    """Outward rounded bounds of rho_C - rho_Q, fine enough to show its sign where there is one."""
    bits = _BITS
    while True:
        with at_precision(bits):
            gap = found.radius(True, bits) - found.radius(False, bits)
            decided = bool(gap > 0) or bool(gap < 0) or found.comparison in (0, None)
            if decided or bits > EXACT_BITS:
                return [_outward(gap, -1).hex(), _outward(gap, 1).hex()]
        bits *= 4


def _outward(ball: flint.arb, side: int) -> float:
    """The lower (side -1) or upper end of a ball, one float further out."""
    end = ball.lower() if side < 0 else ball.upper()
    return float(np.nextafter(float(end), side * np.inf))


def _ball(found: ExactDominance, consensus: bool) -> Radius:
    """Outward rounded bounds of a radius."""
    ball = found.radius(consensus, _BITS)
    with at_precision(_BITS):
        return Radius(max(0.0, _outward(ball, -1)), _outward(ball, 1))
