"""`oversmoothing check`: is a certificate true? Recomputed from its input alone, by another route.

Spectra are enclosed in ball arithmetic:
for small matrices as roots of exact characteristic polynomials of A itself (the eigenvalue 1
divided out), for larger ones and for softmax by Gershgorin discs after a similarity with LEFT
eigenvectors. Ties are checked by a determinant bound on Kronecker products, claims about one X_0 by
its Krylov vectors, by powers of the operator and by its coefficient in the dominant mode. A digest
that fits is not evidence.
"""

from fractions import Fraction
from typing import Any

import flint

from oversmoothing.theory.checker.reading import (
    Check,
    Given,
    NotACertificate,
    digest,
    interval,
    parse,
    read_input,
)
from oversmoothing.theory.checker.spectra import precisions, radii, show, to_fmpq
from oversmoothing.theory.checker.start import check_x0
from oversmoothing.theory.checker.ties import check_tie


def check_certificate(text: str) -> Check:
    """Check the text of a certificate file.

    Raises `NotACertificate` where it is none. `accepted` is False for a claim that is false, that
    says more than can be confirmed, or whose digest does not fit.
    """
    body = parse(text)
    if digest(body) != body["digest"]:
        return Check(False, "the digest does not fit: the file was changed after it was made")
    claim = body["claim"]
    try:
        given = read_input(body["input"])
        stated_c, stated_q = interval(claim["rho_consensus"]), interval(claim["rho_quotient"])
        margin = interval(claim["margin"])
        verdict = str(claim["verdict"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"the claim or the input is malformed ({error})") from error
    found = _check_verdict(given, claim, verdict, (stated_c, stated_q), margin)
    if not found.accepted or not {"genericity", "verdict_x0", "depth", "eps"} & claim.keys():
        return found
    more = check_x0(given, claim)
    return Check(more.accepted, f"{found.words}; {more.words}" if more.accepted else more.words)


def _check_verdict(
    given: Given,
    claim: dict[str, Any],
    verdict: str,
    stated: tuple[tuple[Fraction, Fraction] | None, tuple[Fraction, Fraction] | None],
    margin: tuple[Fraction, Fraction] | None,
) -> Check:
    """The claim about generic X_0."""
    stated_c, stated_q = stated
    if given.n == 1:
        fits = verdict == "TRIVIAL" and stated_q is None
        return Check(fits, "n = 1: there is no quotient" if fits else "n = 1 must be TRIVIAL")
    if verdict == "UNDECIDED":
        return Check(True, "UNDECIDED claims nothing")
    for bits in precisions(given):
        enclosed = radii(given, bits)
        if enclosed is None:
            return Check(False, "the spectra could not be enclosed by the checker's own means")
        rho_c, rho_q = enclosed
        wrong = _contradiction(verdict, rho_c, rho_q, stated_c, stated_q, margin)
        if wrong is not None:
            return Check(False, wrong)
        if _confirms(verdict, rho_c, rho_q):
            return Check(True, f"{verdict}: rho_C = {show(rho_c)}, rho_Q = {show(rho_q)}")
        if verdict == "TIE":
            jordan = {"jordan_consensus", "jordan_quotient"} & claim.keys()
            if (rho_c - rho_q).is_zero() and not jordan:
                return Check(True, f"TIE by structure: both radii are {show(rho_c)} exactly")
            return check_tie(given, claim)
    return Check(False, f"{verdict} could not be confirmed: the radii are too close to tell")


def _contradiction(
    verdict: str,
    rho_c: Any,
    rho_q: Any,
    stated_c: tuple[Fraction, Fraction] | None,
    stated_q: tuple[Fraction, Fraction] | None,
    margin: tuple[Fraction, Fraction] | None,
) -> str | None:
    if verdict not in ("SMOOTHING", "NON_SMOOTHING", "TIE"):
        return f"'{verdict}' is no verdict for n > 1"
    if stated_c is None or stated_q is None or margin is None:
        return "a decided verdict must state both radii and the margin"
    true_margin = rho_c - rho_q
    for name, ball, stated in (
        ("rho_consensus", rho_c, stated_c),
        ("rho_quotient", rho_q, stated_q),
        ("margin", true_margin, margin),
    ):
        low, high = flint.arb(to_fmpq(stated[0])), flint.arb(to_fmpq(stated[1]))
        if low > ball or high < ball:
            return f"{name} is {show(ball)}, outside the stated interval"
    signs = {"SMOOTHING": margin[0] > 0, "NON_SMOOTHING": margin[1] < 0, "TIE": True}
    if not signs[verdict]:
        return f"the stated margin does not support {verdict}"
    if (verdict == "SMOOTHING" and rho_c < rho_q) or (verdict == "NON_SMOOTHING" and rho_c > rho_q):
        return f"{verdict} is false: rho_C = {show(rho_c)}, rho_Q = {show(rho_q)}"
    if verdict == "TIE" and (rho_c > rho_q or rho_c < rho_q):
        return f"no tie: rho_C = {show(rho_c)}, rho_Q = {show(rho_q)}"
    return None


def _confirms(verdict: str, rho_c: Any, rho_q: Any) -> bool:
    if verdict == "SMOOTHING":
        return bool(rho_c > rho_q)
    return verdict == "NON_SMOOTHING" and bool(rho_q > rho_c)
