"""A certificate: the exact input, what is claimed of it, and by which method, in one JSON file.

Binary64 input is written as hexadecimal floats, fractions as "p/q": what is certified is what the
file says, to the last bit. The digest ties the parts together; it proves nothing, and
`theory.checker` recomputes the claim by other means.
"""

import hashlib
import json
from fractions import Fraction
from typing import Any

import numpy as np

from oversmoothing.theory.certificates.certified_radii import CertifiedDominance
from oversmoothing.theory.certificates.genericity import NON_ZERO, genericity
from oversmoothing.theory.certificates.stages import decide
from oversmoothing.theory.depth.bounds_in_balls import certified_depth_in_balls
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.entries import Entries
from oversmoothing.theory.numbers.rational import Matrix, fraction_text
from oversmoothing.theory.spectra.radii import Interval
from oversmoothing.theory.support.provenance import provenance
from oversmoothing.theory.verdict.exact_comparison import EXACT_BITS, ExactDominance, jordan_size
from oversmoothing.theory.verdict.modes import mode_content
from oversmoothing.theory.verdict.outcome import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.start_limits import MODES_SIZE

SCHEMA_VERSION = 1
KIND = "oversmoothing certificate"
DEFAULT_EPS = Fraction(1, 1000)


def certify(case: Case, eps: Fraction = DEFAULT_EPS) -> dict[str, Any]:
    """The certificate of a case, as a JSON object.

    Its verdict comes from the first of `stages.decide` that reaches one. With X_0 it also encloses
    the coefficient of the dominant mode in X_0 (`genericity`) and states the verdict for this X_0
    (T4e) and a depth L*(eps) with HFC/LFC <= eps at every L >= L* (T5d), where these can be
    certified.
    """
    found, exact = decide(case)
    claim = _claim(found)
    method: dict[str, Any] = {"name": found.method}
    if exact is not None:
        method |= {"gap_bits": exact.bits_needed, "limit_bits": EXACT_BITS}
        if found.verdict is Outcome.TIE:
            claim |= _jordan(exact)
    if case.X0 is not None:
        claim |= _of_x0(case, found.verdict, eps)
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
    return {"numbers": case.numbers} | {
        name: _texts(entries) for name, entries in case.given.items()
    }


def _texts(entries: Entries) -> list[list[str]]:
    if entries.written is None:
        rows: list[list[float]] = entries.floats.tolist()
        return [["-inf" if x == -np.inf else x.hex() for x in row] for row in rows]
    return [["-inf" if x is None else fraction_text(x) for x in row] for row in entries.written]


def _interval(bounds: Interval | tuple[float, float] | None) -> list[str] | None:
    if isinstance(bounds, Interval):
        bounds = bounds.low, bounds.high
    return None if bounds is None else [bounds[0].hex(), bounds[1].hex()]


def _claim(found: CertifiedDominance) -> dict[str, Any]:
    return {
        "verdict": found.verdict,
        "rho_consensus": _interval(found.consensus),
        "rho_quotient": _interval(found.quotient),
        "margin": _interval(found.margin),
        "reason": found.reason,
    }


def _jordan(found: ExactDominance) -> dict[str, int]:
    """The largest Jordan blocks at a tie, which decide it (T6b)."""
    return {
        "jordan_consensus": max(map(jordan_size, found.consensus)),
        "jordan_quotient": max(map(jordan_size, found.quotient)),
    }


def _of_x0(case: Case, verdict: Outcome, eps: Fraction) -> dict[str, Any]:
    """Claims about this X_0: what it contains of the dominant mode, its verdict, and a depth."""
    X0 = case.rational_X0
    assert X0 is not None
    if case.starts_at_zero:
        return {"verdict_x0": Outcome.UNDEFINED}
    claim: dict[str, Any] = {}
    if case.n > 1:
        claim["genericity"] = genericity(case, verdict)
    if case.logits is None and max(case.n, case.d) <= MODES_SIZE:
        return claim | _of_small_x0(case, X0, verdict, eps)
    if case.n > 1 and claim["genericity"]["status"] == NON_ZERO:
        flat = all(row == X0[0] for row in X0)
        claim["verdict_x0"] = Outcome.TRIVIAL if flat else verdict
    return claim


def _of_small_x0(case: Case, X0: Matrix, verdict: Outcome, eps: Fraction) -> dict[str, Any]:
    A, H = case.rational_A, case.rational_H
    content = mode_content(A, H, X0, case.rational_pi)
    if content.vanishes:
        return {"verdict_x0": Outcome.UNDEFINED}
    if all(row == X0[0] for row in X0):
        return {"verdict_x0": Outcome.TRIVIAL}
    claim: dict[str, Any] = {"verdict_x0": outcome_of_sign(content.comparison)}
    if verdict is Outcome.SMOOTHING and len(case.classes) == 1:
        depth = certified_depth_in_balls(A, H, X0, eps)
        if depth is not None:
            claim |= {"eps": str(eps), "depth": depth.depth}
    return claim
