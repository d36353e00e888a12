"""Forged certificates: parts exchanged, the digest computed anew."""

import json
from typing import Any

from oversmoothing.theory.certificate import digest
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import KIND, SCHEMA_VERSION, Check, NotACertificate
from tests.support.tables import matrix


def copied(body: dict[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing."""
    found: dict[str, Any] = json.loads(json.dumps(body))
    return found


def sealed(body: dict[str, Any]) -> str:
    """The text of a certificate with a digest that fits."""
    return json.dumps(body | {"digest": digest(body)})


def forged(body: dict[str, Any], path: list[Any], value: Any) -> str:
    """The certificate with one entry replaced and a fresh digest."""
    copy = copied(body)
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return sealed(copy)


def claiming(body: dict[str, Any], **claim: Any) -> str:
    """The certificate with other claims."""
    return sealed(copied(body) | {"claim": body["claim"] | claim})


def refused(text: str) -> bool:
    """Whether the checker refuses it, as false, as more than it confirms, or as no certificate."""
    try:
        return not check_certificate(text).accepted
    except NotACertificate:
        return True


def stated(A: Any, H: Any, X0: Any, verdict: str, c: Any, q: Any, gap: Any, **more: Any) -> Check:
    """What is found of a claim about a case in fractions; radii and their gap as (low, high)."""

    def ends(pair: Any) -> list[str]:
        return [x if isinstance(x, str) else float(x).hex() for x in pair]

    given = {"A": A, "H": H} | ({} if X0 is None else {"X0": X0})
    texts = {name: [[str(x) for x in row] for row in matrix(M)] for name, M in given.items()}
    bounds = {"rho_consensus": c, "rho_quotient": q, "margin": gap}
    claim = {"verdict": verdict} | {k: ends(x) for k, x in bounds.items() if x is not None} | more
    if "genericity" in more:
        mode, *pair = more["genericity"]
        claim["genericity"] = {"mode": mode, "coefficient": ends(pair)}
    head = {"schema_version": SCHEMA_VERSION, "kind": KIND}
    return check_certificate(
        sealed(head | {"input": {"numbers": "fractions"} | texts, "claim": claim})
    )
