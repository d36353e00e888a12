"""`oversmoothing check`: is a certificate true? Recomputed from its input alone, by another route.

Spectra are enclosed in ball arithmetic:
for small matrices as roots of exact characteristic polynomials of A itself (the eigenvalue 1
divided out), for larger ones and for softmax by Gershgorin discs after a similarity with LEFT
eigenvectors. Every stated interval must contain what is enclosed here. Ties are checked by the norm
of the difference, claims about one X_0 by its Krylov vectors, by powers of the operator and by its
coefficient in the dominant mode, from left eigenvectors. A digest that fits is not evidence.
"""

from collections.abc import Iterator
from math import inf, prod
from typing import Any

import flint

from oversmoothing.theory.checker import spectra
from oversmoothing.theory.checker.krylov import check_depth, minimal_polynomial, squared, systems
from oversmoothing.theory.checker.reading import (
    Bounds,
    Check,
    Claim,
    Given,
    Matrix,
    NotACertificate,
    contained,
    digest,
    parse,
    read_claim,
    read_input,
    show,
)
from oversmoothing.theory.checker.ties import Modes, Pair, Sides, check_tie, tied


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
    for rho_c, rho_q, margin in spectra.enclosures(given):
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
        inside = contained(ball, stated, at_least=-inf if name == "margin" else 0.0)
        if inside is False:
            return f"{name} is {show(ball)}, outside the stated interval", ""
        if inside is None:
            missing = missing or f"{name} could not be seen to lie in the stated interval"
    if verdict in ("UNDECIDED", "TRIVIAL"):
        return "", missing
    assert claim.margin is not None
    above, below = claim.margin.low > 0, claim.margin.high < 0
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


# Side of the largest operator whose powers are computed.
DEPTH_SIDE = 96


def check_x0(given: Given, claim: Claim) -> Check:
    """The coefficient of the dominant mode in X_0, the verdict for X_0, and the depth from which
    HFC/LFC <= eps.

    The modes that a start contains are the roots of its minimal polynomial under the operator:
    computed exactly from its Krylov vectors, without eigenvectors. Where the matrices are too large
    for that, or a softmax, a non-zero coefficient settles the verdict.
    """
    words = []
    for check in _checks_of_start(given, claim):
        if not check.accepted:
            return check
        words.append(check.words)
    return Check(True, "; ".join(words))


def _checks_of_start(given: Given, claim: Claim) -> Iterator[Check]:
    """Of one claim after the other, where it is made."""
    if claim.coefficient is not None:
        yield check_genericity(given, claim.coefficient, claim.verdict == "SMOOTHING")
    if claim.verdict_x0 is not None:
        yield _check_verdict_x0(given, claim)
    if claim.depth is None or claim.eps is None:
        return
    both = spectra.with_polynomials(given)
    if not given.rational:
        limit = "for A and H in fractions or binary64 only"
    elif (given.n - 1) * given.d > DEPTH_SIDE:
        limit = f"up to (n - 1) d = {DEPTH_SIDE} only"
    elif both is None:
        limit = f"up to n, d = {spectra.TIE_SIZE} only, and with no endless numbers"
    else:
        assert given.X0 is not None
        yield check_depth(*both, given.X0, claim.depth, claim.eps)
        return
    yield Check(False, f"a depth is confirmed {limit}", beyond=True)


def _check_verdict_x0(given: Given, claim: Claim) -> Check:
    stated, X = claim.verdict_x0, given.X0
    assert X is not None
    outcome = None
    if not any(map(any, X)):
        outcome = "UNDEFINED"
    elif claim.coefficient is not None:
        # The dominant mode stays for ever, so that the state never becomes 0.
        outcome = "TRIVIAL" if len(set(map(tuple, X))) == 1 else claim.verdict
    elif both := spectra.with_polynomials(given):
        outcome = verdict_of(*both, X)
    if outcome is None:
        return Check(False, "the modes of this X_0 could not be confirmed", beyond=True)
    if outcome != stated:
        return Check(False, f"for this X_0 the verdict is {outcome}, not {stated}")
    return Check(True, f"{outcome} for this X_0")


def verdict_of(A: Matrix, H: Matrix, X: Matrix) -> str | None:
    """The verdict over the modes that X_0 contains; None where it takes too long to tell."""
    value = spectra.exact(H)
    polynomials = [minimal_polynomial(T, value, start) for T, start in systems(A, X)]
    if polynomials[0] is None or polynomials[1] is None:
        return None
    on_c, on_q = (spectra.roots(polynomial, 160) for polynomial in polynomials)
    # Minimal polynomials: x^k stands for what is 0 after k layers.
    if all(root == 0 for root in on_c + on_q):
        return "UNDEFINED"
    if not on_q:
        return "TRIVIAL"
    if not on_c:
        return "NON_SMOOTHING"

    def order(*precisions: int) -> str | None:
        """Which of the largest roots is larger, where so many bits tell."""
        for bits in precisions:
            with flint.ctx.workprec(bits):
                tops = [
                    spectra.maximum([abs(x) for x in spectra.roots(p, bits)]) for p in polynomials
                ]
            if tops[0] > tops[1]:
                return "SMOOTHING"
            if tops[0] < tops[1]:
                return "NON_SMOOTHING"
        return None

    def chosen(sides: Sides, bits: int) -> Sides:
        """The modes that may be a largest root of the minimal polynomial of their side."""
        return _among(sides[0], polynomials[0], bits), _among(sides[1], polynomials[1], bits)

    outcome = order(160, 2560)
    if outcome is not None:
        return outcome
    tie = tied(Modes(A, H), chosen)
    if isinstance(tie, tuple):
        return "TIE"
    return order(40960) if tie is None else None


def _among(pairs: list[Pair], polynomial: Any, bits: int) -> list[Pair]:
    """Those whose multiplier may be a largest root of the polynomial."""
    with flint.ctx.workprec(bits):
        zeros = spectra.roots(polynomial, bits)
        top = spectra.maximum([abs(root) for root in zeros])
        tops = [root for root in zeros if not abs(root) < top]
    return [pair for pair in pairs if any(pair.multiplier.overlaps(root) for root in tops)]


def check_genericity(given: Given, stated: Bounds, consensus: bool) -> Check:
    """|w^T X_0 z| / (||w|| ||z|| ||X_0||) is not 0 and lies in the stated interval."""
    missing = "the coefficient of the dominant mode could not be confirmed"
    # More bits for contents close to 0, where they are quick.
    more = (640, 2560) if max(given.n, given.d) <= spectra.POLYNOMIAL_SIZE else ()
    for bits in (160, 288, *more):
        ball = coefficient(given, consensus, bits)
        if ball is None or not ball > 0:
            continue
        # By the inequality of Cauchy and Schwarz it is at most 1.
        inside = contained(ball, stated, 0.0, 1.0)
        if inside is False:
            return Check(False, f"the coefficient is {show(ball)}, outside the stated interval")
        if inside:
            return Check(True, f"X_0 contains the dominant mode with coefficient {show(ball)}")
    return Check(False, missing, beyond=True)


def coefficient(given: Given, consensus: bool, bits: int) -> Any:
    """The coefficient in a ball, None where the dominant pair could not be singled out."""
    value, lift, _ = spectra.value_discs(given, bits)
    attention = None if consensus else spectra.attention_discs(given, bits)
    if value is None or (attention is None and not consensus):
        return None
    with flint.ctx.workprec(bits):
        pair = dominant(attention, value)
        if pair is None:
            return None
        z = spectra.left_eigenvector(value, pair[1]).transpose()
        if lift is not None:
            z = lift * z
        if attention is None:
            w = _stationary(given, bits)
        else:
            # The differences z_i = x_1 - x_(i+1): v^T z = w^T x with w = (sum v, -v).
            v = spectra.left_eigenvector(attention, pair[0]).entries()
            w = [sum(v, flint.acb(0)), *(-x for x in v)]
        if w is None:
            return None
        X0 = flint.acb_mat(spectra.exact(given.X0 or []))
        size = abs((flint.acb_mat([w]) * X0 * z)[0, 0])
        lengths = (squared(x).sqrt() for x in (w, z.entries(), X0.entries()))
        return size / prod(lengths, start=flint.arb(1))


def dominant(attention: spectra.Discs | None, value: spectra.Discs) -> tuple[int, int] | None:
    """The pair of largest |1 + h a| (a = 1 without attention), alone but for its conjugate."""
    a_boxes, a_single = [flint.acb(1)], [True]
    if attention is not None:
        a_boxes, a_single = attention.boxes, attention.single
    h_boxes, h_single = value.boxes, value.single
    pairs = [(abs(1 + a * h), i, j) for i, a in enumerate(a_boxes) for j, h in enumerate(h_boxes)]
    # Balls are compared where they are disjoint, as one that wins is from all others.
    best, i, j = max(pairs)
    if not (a_single[i] and h_single[j]):
        return None
    mirror = _mirror(a_boxes, a_single, i), _mirror(h_boxes, h_single, j)
    rivals = {(k, m) for modulus, k, m in pairs if not modulus < best}
    return (i, j) if rivals <= {(i, j), mirror} else None


def _mirror(boxes: list[Any], single: list[bool], i: int) -> int | None:
    """The box of the conjugate of the eigenvalue in box i, None unless it is alone there."""
    indices = [k for k, box in enumerate(boxes) if box.overlaps(boxes[i].conjugate())]
    return indices[0] if len(indices) == 1 and single[indices[0]] else None


def _stationary(given: Given, bits: int) -> list[Any] | None:
    """pi in balls: the first equation of pi^T (A - I) = 0 replaced by sum pi = 1."""
    n, A = given.n, spectra.attention_balls(given, bits).tolist()
    system = [[flint.arb(1)] * n]
    system += [[A[j][i] - int(i == j) for j in range(n)] for i in range(1, n)]
    try:
        pi = flint.arb_mat(system).solve(flint.arb_mat(n, 1, [1] + [0] * (n - 1)))
    except ZeroDivisionError:
        return None
    return [flint.acb(x) for x in pi.entries()]
