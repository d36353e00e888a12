"""`oversmoothing check`: is a certificate true? Recomputed from its input alone, by another route.

Spectra are enclosed in ball arithmetic:
for small matrices as roots of exact characteristic polynomials of A itself (the eigenvalue 1
divided out), for larger ones and for softmax by Gershgorin discs after a similarity with LEFT
eigenvectors. Every stated interval must contain what is enclosed here. Ties are checked by the norm
of the difference, claims about one X_0 by its Krylov vectors, by powers of the operator and by its
coefficient in the dominant mode. A digest that fits is not evidence.
"""

from fractions import Fraction
from typing import Any

from oversmoothing.theory.checker.reading import (
    Check,
    Claim,
    Given,
    NotACertificate,
    contained,
    digest,
    parse,
    read_claim,
    read_input,
    show,
)
from oversmoothing.theory.checker.spectra import enclosures
from oversmoothing.theory.checker.start import check_x0
from oversmoothing.theory.checker.ties import check_tie


def check_certificate(text: str) -> Check:
    """Check the text of a certificate file.

    Raises `NotACertificate` where it is none. `accepted` is False for a claim that is false, that
    says more than can be confirmed, or whose digest does not fit.
    """
    body = parse(text)
    given, claim = read_input(body["input"]), read_claim(body["claim"])
    if digest(body) != body["digest"]:
        return Check(False, "the digest does not fit: the file was changed after it was made")
    about_x0 = (claim.coefficient, claim.verdict_x0, claim.depth) != (None, None, None)
    if about_x0 and given.X0 is None:
        raise NotACertificate("a claim about X_0 needs X0")
    check = _check_verdict(given, claim)
    if not (check.accepted and about_x0):
        return check
    more = check_x0(given, claim)
    return Check(True, f"{check.words}; {more.words}") if more.accepted else more


def _check_verdict(given: Given, claim: Claim) -> Check:
    """The claim about generic X_0."""
    if (given.n == 1) != (claim.verdict == "TRIVIAL"):
        return Check(False, "n = 1 and TRIVIAL go together")
    if given.n == 1 and (claim.rho_quotient is not None or claim.margin is not None):
        return Check(False, "n = 1: there is no quotient")
    stated = (claim.rho_consensus, claim.rho_quotient, claim.margin)
    if claim.verdict in ("SMOOTHING", "NON_SMOOTHING", "TIE") and None in stated:
        return Check(False, "a decided verdict must state both radii and the margin")
    if stated == (None, None, None):
        return _confirmed(claim.verdict, None, None)
    missing = "the spectra could not be enclosed by the checker's own means"
    for rho_c, rho_q, margin in enclosures(given):
        wrong, missing = compared(claim, rho_c, rho_q, margin)
        if wrong:
            return Check(False, wrong)
        if not missing:
            check = _confirmed(claim.verdict, rho_c, rho_q)
            if claim.verdict != "TIE":
                return check
            return check_tie(given, claim.jordan, check if margin.is_zero() else None)
    return Check(False, missing, beyond=True)


def _confirmed(verdict: str, rho_c: Any, rho_q: Any) -> Check:
    radii = [
        f"{name} = {show(x)}" for name, x in (("rho_C", rho_c), ("rho_Q", rho_q)) if x is not None
    ]
    words = {
        "TRIVIAL": "n = 1: there is no quotient",
        "UNDECIDED": "UNDECIDED claims nothing of the verdict",
    }.get(verdict, verdict)
    return Check(True, f"{words}: {', '.join(radii)}" if radii else words)


def compared(claim: Claim, rho_c: Any, rho_q: Any, margin: Any) -> tuple[str, str]:
    """(what is false, what is not confirmed yet) about the radii in these balls, "" for nothing."""
    verdict, missing = claim.verdict, ""
    for name, ball, stated in (
        ("rho_consensus", rho_c, claim.rho_consensus),
        ("rho_quotient", rho_q, claim.rho_quotient),
        ("margin", margin, None if verdict == "TIE" else claim.margin),
    ):
        if stated is None:
            continue
        inside = contained(ball, stated, at_least=None if name == "margin" else Fraction(0))
        if inside is False:
            return f"{name} is {show(ball)}, outside the stated interval", ""
        if inside is None:
            missing = missing or f"{name} could not be seen to lie in the stated interval"
    if verdict in ("UNDECIDED", "TRIVIAL"):
        return "", missing
    assert claim.margin is not None
    low, high = claim.margin.low, claim.margin.high
    above, below = low is not None and low > 0, high is not None and high < 0
    if {"SMOOTHING": not above, "NON_SMOOTHING": not below, "TIE": above or below}[verdict]:
        return f"the stated margin does not support {verdict}", ""
    if verdict == "TIE":
        apart = rho_c > rho_q or rho_c < rho_q
        return (f"no tie: rho_C = {show(rho_c)}, rho_Q = {show(rho_q)}" if apart else ""), missing
    larger, smaller = (rho_c, rho_q) if verdict == "SMOOTHING" else (rho_q, rho_c)
    if larger < smaller:
        return f"{verdict} is false: rho_C = {show(rho_c)}, rho_Q = {show(rho_q)}", ""
    if not larger > smaller:
        missing = f"{verdict} could not be confirmed: the radii are too close to tell"
    return "", missing
