"""A certificate: the exact input and what is claimed of it, in one JSON file.

Binary64 input is written as hexadecimal floats, fractions as "p/q": what is certified is what the
file says, to the last bit. It holds no words, and nothing that its reader would have to believe:
`theory.checker` recomputes each claim by other means, and what it does not confirm is not written.
"""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from oversmoothing.theory.certificates.certified_radii import CertifiedDominance
from oversmoothing.theory.certificates.genericity import genericity
from oversmoothing.theory.certificates.stages import decide
from oversmoothing.theory.certificates.start_claims import claims_of_start
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import NotACertificate
from oversmoothing.theory.layer.case import Case
from oversmoothing.theory.layer.entries import Entries
from oversmoothing.theory.numbers.rational import fraction_text
from oversmoothing.theory.spectra.radii import Interval
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import to_json
from oversmoothing.theory.verdict.exact_comparison import ExactDominance, jordan_size
from oversmoothing.theory.verdict.outcome import Outcome

SCHEMA_VERSION = 2
KIND = "oversmoothing certificate"
DEFAULT_EPS = Fraction(1, 1000)


@dataclass(frozen=True)
class Certificate:
    """A certificate that the checker has accepted.

    body: the file, as a JSON object. reason, method: how the verdict was reached; checked: what the
    checker found. left_out: what could not be claimed and why; unconfirmed: what could, but the
    checker could not confirm it, a sentence each. None of these words is part of the file.
    """

    body: dict[str, Any]
    reason: str
    method: str
    checked: str
    left_out: tuple[str, ...]
    unconfirmed: tuple[str, ...]


def certify(case: Case, eps: Fraction = DEFAULT_EPS) -> dict[str, Any]:
    """The certificate of a case, as a JSON object: the body of `make_certificate`."""
    return make_certificate(case, eps).body


def make_certificate(case: Case, eps: Fraction = DEFAULT_EPS) -> Certificate:
    """The certificate of a case, accepted by the checker.

    Its verdict comes from the first of `stages.decide` that reaches one. With X_0 it also encloses
    the coefficient of the dominant mode in X_0 (`genericity`) and states the verdict for this X_0
    (T4e) and a depth L*(eps) with HFC/LFC <= eps at every L >= L* (T5d), where these can be
    certified. What the checker cannot confirm is left out. Raises `InputError` where the file could
    not be read back, `RequirementError` where the checker finds a claim to be false.
    """
    found, exact = decide(case)
    left_out: list[str] = []
    parts = [_verdict(found)]
    if exact is not None and found.verdict is Outcome.TIE:
        parts.append(_jordan(exact))
    if case.X0 is not None:
        if case.n > 1 and not case.starts_at_zero:
            content = genericity(case, found.verdict)
            if content.claim is None:
                left_out.append(f"genericity: {content.reason}")
            else:
                parts.append({"genericity": content.claim})
        parts += claims_of_start(case, found.verdict, "genericity" in parts[-1], eps)
    body, checked, dropped = _confirmed(_input(case), parts)
    return Certificate(body, found.reason, found.method, checked, tuple(left_out), tuple(dropped))


def _confirmed(
    given: dict[str, Any], parts: list[dict[str, Any]]
) -> tuple[dict[str, Any], str, list[str]]:
    """(the file of all parts that the checker accepts, its words, why the others are left out)."""
    whole = _file(given, {key: value for part in parts for key, value in part.items()})
    accepted, words = _checked(whole)
    if accepted:
        return whole, words, []
    claim: dict[str, Any] = {"verdict": str(Outcome.UNDECIDED)}
    body = _file(given, claim)
    accepted, words = _checked(body)
    assert accepted, words
    dropped = []
    for part in parts:
        if not _stands(part, claim):
            dropped.append(f"{' and '.join(part)}: it stands on what is not confirmed")
            continue
        further = _file(given, {**claim, **part})
        accepted, answer = _checked(further)
        if accepted:
            claim, body, words = further["claim"], further, answer
        else:
            dropped.append(f"{' and '.join(part)}: {answer}")
    return body, words, dropped


def _stands(part: dict[str, Any], claim: dict[str, Any]) -> bool:
    """Whether a claim holds what this part of one may only stand with."""
    if part.keys() & {"genericity", "jordan_consensus"}:
        return bool(claim["verdict"] != Outcome.UNDECIDED)
    return "depth" not in part or claim.get("verdict_x0") == Outcome.SMOOTHING


def _checked(body: dict[str, Any]) -> tuple[bool, str]:
    """Whether the checker accepts the text of this file, and its words."""
    try:
        found = check_certificate(to_json(body))
    except NotACertificate as error:
        raise InputError(f"no certificate of this case can be written: {error}") from error
    if not (found.accepted or found.beyond):
        raise RequirementError(
            f"the checker contradicts what was to be certified ({found.words}): nothing is written"
        )
    return found.accepted, found.words


def _file(given: dict[str, Any], claim: dict[str, Any]) -> dict[str, Any]:
    body = {"schema_version": SCHEMA_VERSION, "kind": KIND, "input": given, "claim": claim}
    return body | {"digest": digest(body)}


def digest(body: dict[str, Any]) -> str:
    """SHA-256 over input and claim in canonical form."""
    part = {key: body[key] for key in ("schema_version", "kind", "input", "claim")}
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


def _verdict(found: CertifiedDominance) -> dict[str, Any]:
    claim: dict[str, Any] = {"verdict": str(found.verdict)}
    for name, bounds in (
        ("rho_consensus", found.consensus),
        ("rho_quotient", found.quotient),
        ("margin", found.margin),
    ):
        if bounds is not None:
            claim[name] = interval_texts(bounds)
    return claim


def interval_texts(bounds: Interval | tuple[float, float]) -> list[str]:
    """Both ends in hexadecimal; "-inf" or "inf" where there is none within binary64."""
    ends = (bounds.low, bounds.high) if isinstance(bounds, Interval) else bounds
    return [float(x).hex() for x in ends]


def _jordan(found: ExactDominance) -> dict[str, Any]:
    """The largest Jordan blocks at a tie, which decide it (T6b)."""
    return {
        "jordan_consensus": max(map(jordan_size, found.consensus)),
        "jordan_quotient": max(map(jordan_size, found.quotient)),
    }
