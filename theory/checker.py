"""`oversmoothing check`: is a certificate true? Recomputed from its input alone, by another route.

This file shares no code with what makes certificates. Spectra are enclosed in ball arithmetic: for
small matrices as roots of exact characteristic polynomials of A itself (the eigenvalue 1 divided
out), for larger ones by Gershgorin discs after a similarity with LEFT eigenvectors, in balls. Ties
are checked by a determinant bound on Kronecker products. A digest that fits is not evidence.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, log2
from typing import Any

import flint
import numpy as np

# Characteristic polynomials up to this size; balls beyond.
POLYNOMIAL_SIZE = 40
# Side of the largest operator whose minimal polynomial is computed.
JORDAN_SIDE = 100
# Longest power of the quotient block tried, and layers checked one by one, for a certified depth.
LONGEST_PERIOD = 512
LONGEST_CHECK = 20000
# Bits spent on the proof of a tie.
TIE_BITS = 2**19


class NotACertificate(Exception):
    """The file cannot be read as a certificate. The message says why."""


@dataclass(frozen=True)
class Check:
    """Whether every part of the claim was confirmed, and what was found."""

    accepted: bool
    words: str


def check_certificate(text: str) -> Check:
    """Check the text of a certificate file.

    Raises `NotACertificate` where it is none. `accepted` is False for a claim that is false, that
    says more than can be confirmed, or whose digest does not fit.
    """
    body = _parse(text)
    if _digest(body) != body["digest"]:
        return Check(False, "the digest does not fit: the file was changed after it was made")
    claim, given = body["claim"], body["input"]
    try:
        A, H = _matrices(given)
        stated_c, stated_q = _interval(claim["rho_consensus"]), _interval(claim["rho_quotient"])
        margin = _interval(claim["margin"])
        verdict = str(claim["verdict"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"the claim or the input is malformed ({error})") from error
    found = _check_verdict(A, H, claim, verdict, (stated_c, stated_q), margin)
    if not found.accepted or not {"verdict_x0", "depth", "eps"} & claim.keys():
        return found
    more = _check_x0(A, H, given, claim)
    return Check(more.accepted, f"{found.words}; {more.words}" if more.accepted else more.words)


def _check_verdict(
    A: list[list[Fraction]],
    H: list[list[Fraction]],
    claim: dict[str, Any],
    verdict: str,
    stated: tuple[tuple[Fraction, Fraction] | None, tuple[Fraction, Fraction] | None],
    margin: tuple[Fraction, Fraction] | None,
) -> Check:
    """The claim about generic X_0."""
    stated_c, stated_q = stated
    if len(A) == 1:
        fits = verdict == "TRIVIAL" and stated_q is None
        return Check(fits, "n = 1: there is no quotient" if fits else "n = 1 must be TRIVIAL")
    if verdict == "UNDECIDED":
        return Check(True, "UNDECIDED claims nothing")
    for bits in (160, 640, 2560):
        enclosed = _radii(A, H, bits)
        if enclosed is None:
            return Check(False, "the spectra could not be enclosed by the checker's own means")
        rho_c, rho_q = enclosed
        wrong = _contradiction(verdict, rho_c, rho_q, stated_c, stated_q, margin)
        if wrong is not None:
            return Check(False, wrong)
        if _confirms(verdict, rho_c, rho_q):
            return Check(True, f"{verdict}: rho_C = {_show(rho_c)}, rho_Q = {_show(rho_q)}")
        if verdict == "TIE":
            return _check_tie(A, H, claim)
    return Check(False, f"{verdict} could not be confirmed: the radii are too close to tell")


# ------------------------------------------------------------------------------------- reading


def _parse(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotACertificate(f"not JSON ({error})") from error
    if not isinstance(body, dict) or body.get("kind") != "oversmoothing certificate":
        raise NotACertificate('the file has no "kind": "oversmoothing certificate"')
    if body.get("schema_version") != 1:
        raise NotACertificate(f"schema_version {body.get('schema_version')} is not known here")
    missing = {"input", "claim", "method", "digest"} - body.keys()
    if missing:
        raise NotACertificate(f"parts are missing: {sorted(missing)}")
    return body


def _digest(body: dict[str, Any]) -> str:
    part = {key: body[key] for key in ("schema_version", "kind", "input", "claim", "method")}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _matrices(given: dict[str, Any]) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    kind = given["numbers"]
    if kind not in ("fractions", "binary64"):
        raise ValueError(f"numbers of kind {kind!r}")

    def entry(text: str) -> Fraction:
        return Fraction(text) if kind == "fractions" else Fraction(float.fromhex(text))

    A = [[entry(x) for x in row] for row in given["A"]]
    H = [[entry(x) for x in row] for row in given["H"]]
    for name, M in (("A", A), ("H", H)):
        if not M or any(len(row) != len(M) for row in M):
            raise ValueError(f"{name} is not square")
    if any(x < 0 for row in A for x in row) or any(sum(row, Fraction(0)) <= 0 for row in A):
        raise ValueError("A is not row-stochastic")
    if kind == "fractions":
        if any(sum(row) != 1 for row in A):
            raise ValueError("A is not row-stochastic")
        return A, H
    slack = len(A) * Fraction(1, 2**52)
    if any(abs(sum(row, Fraction(0)) - 1) > slack for row in A):
        raise ValueError("A is not row-stochastic within n eps")
    return [[x / total for x in row] for row in A for total in [sum(row)]], H


def _interval(value: list[str] | None) -> tuple[Fraction, Fraction] | None:
    if value is None:
        return None
    low, high = (Fraction(float.fromhex(x)) for x in value)
    if low > high:
        raise ValueError("an interval with its ends exchanged")
    return low, high


# ------------------------------------------------------------------------------------- spectra


def _fmpq(x: Fraction) -> flint.fmpq:
    return flint.fmpq(x.numerator, x.denominator)


def _exact(M: list[list[Fraction]]) -> flint.fmpq_mat:
    return flint.fmpq_mat([[_fmpq(x) for x in row] for row in M])


def _eigenvalues(M: list[list[Fraction]], stochastic: bool, bits: int) -> list[Any] | None:
    """Balls that contain the spectrum (for stochastic M without one copy of 1), one each."""
    if len(M) <= POLYNOMIAL_SIZE:
        polynomial = _exact(M).charpoly()
        if stochastic:
            polynomial, rest = divmod(polynomial, flint.fmpq_poly([-1, 1]))
            if not rest.is_zero():
                return None
        with flint.ctx.workprec(bits):
            roots: list[Any] = polynomial.numer().complex_roots()
            return [root for root, multiplicity in roots for _ in range(multiplicity)]
    return _by_left_eigenvectors(M, stochastic, bits)


def _by_left_eigenvectors(M: list[list[Fraction]], stochastic: bool, bits: int) -> list[Any] | None:
    """Gershgorin discs of U M U^-1 in balls, U approximate left eigenvectors.

    For a stochastic M the consensus is removed first: with z_i = x_1 - x_(i+1), the first token as
    reference, the matrix is A_(i+1)(j+1) - A_1(j+1).
    """
    if stochastic:
        first = M[0]
        M = [[x - y for x, y in zip(row[1:], first[1:], strict=True)] for row in M[1:]]
    k = len(M)
    floating = np.array([[float(x) for x in row] for row in M])
    with flint.ctx.workprec(min(bits, 256)):
        _, left = np.linalg.eig(floating.T)
        U = flint.acb_mat([[complex(x) for x in column] for column in left.T])
        exact = flint.acb_mat(_exact(M))
        try:
            # (U M) U^-1, from the transposed system U^T X = (U M)^T.
            similar = U.transpose().solve((U * exact).transpose()).transpose()
        except ZeroDivisionError:
            return None
        table = similar.tolist()
        balls = []
        for i in range(k):
            radius = sum((abs(table[i][j]).upper() for j in range(k) if j != i), flint.arb(0))
            balls.append((table[i][i], radius.upper()))
        return _merged(balls)


def _merged(balls: list[tuple[Any, Any]]) -> list[Any]:
    """Discs as balls; discs that meet are replaced by one box around their union, once each."""
    boxes = []
    for centre, radius in balls:
        spread = flint.arb(0, radius)
        boxes.append(flint.acb(centre.real + spread, centre.imag + spread))
    group = list(range(len(boxes)))
    floats = np.array([complex(b.mid()) for b in boxes])
    widths = np.array([float(b.real.rad()) + float(b.imag.rad()) for b in boxes])
    for i in range(len(boxes)):
        near = np.flatnonzero(np.abs(floats - floats[i]) <= 2 * (widths + widths[i]) + 1e-300)
        for j in near:
            if j != i and boxes[i].overlaps(boxes[int(j)]):
                old, new = group[int(j)], group[i]
                group = [new if g == old else g for g in group]
    result = []
    for i in range(len(boxes)):
        members = [boxes[j] for j in range(len(boxes)) if group[j] == group[i]]
        box = members[0]
        for other in members[1:]:
            box = flint.acb(box.real.union(other.real), box.imag.union(other.imag))
        result.append(box)
    return result


def _radii(A: list[list[Fraction]], H: list[list[Fraction]], bits: int) -> tuple[Any, Any] | None:
    """Balls around rho_C and rho_Q."""
    a, h = _eigenvalues(A, True, bits), _eigenvalues(H, False, bits)
    if a is None or h is None:
        return None
    with flint.ctx.workprec(bits):
        return _maximum([abs(1 + x) for x in h]), _maximum([abs(1 + x * y) for x in h for y in a])


def _maximum(values: list[Any]) -> Any:
    """A ball around the largest of several real numbers, each known by a ball."""
    low = max((x.lower() for x in values), key=float)
    high = max((x.upper() for x in values), key=float)
    for x in values:
        low, high = low.max(x.lower()), high.max(x.upper())
    return low.union(high)


# -------------------------------------------------------------------------------------- claims


def _below(x: Fraction, ball: Any) -> bool:
    """Whether x <= the number in the ball is NOT refuted."""
    return not bool(flint.arb(_fmpq(x)) > ball)


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
        low, high = flint.arb(_fmpq(stated[0])), flint.arb(_fmpq(stated[1]))
        if low > ball or high < ball:
            return f"{name} is {_show(ball)}, outside the stated interval"
    signs = {"SMOOTHING": margin[0] > 0, "NON_SMOOTHING": margin[1] < 0, "TIE": True}
    if not signs[verdict]:
        return f"the stated margin does not support {verdict}"
    if (verdict == "SMOOTHING" and rho_c < rho_q) or (verdict == "NON_SMOOTHING" and rho_c > rho_q):
        return f"{verdict} is false: rho_C = {_show(rho_c)}, rho_Q = {_show(rho_q)}"
    if verdict == "TIE" and (rho_c > rho_q or rho_c < rho_q):
        return f"no tie: rho_C = {_show(rho_c)}, rho_Q = {_show(rho_q)}"
    return None


def _confirms(verdict: str, rho_c: Any, rho_q: Any) -> bool:
    if verdict == "SMOOTHING":
        return bool(rho_c > rho_q)
    return verdict == "NON_SMOOTHING" and bool(rho_q > rho_c)


def _check_tie(A: list[list[Fraction]], H: list[list[Fraction]], claim: dict[str, Any]) -> Check:
    """rho_C^2 - rho_Q^2 is an eigenvalue of a rational Kronecker matrix K.

    C = I + H and M = I + H (x) A: rho_C^2 and rho_Q^2 are eigenvalues of C (x) C and M (x) M, so
    their difference is one of K = (C (x) C) (x) I - I (x) (M (x) M), of side N = d^2 (n d)^2. With
    q the common denominator squared, the product of the non-zero eigenvalues of q K is a non-zero
    integer, so a non-zero difference is at least 1 / (q (q S)^(N-1)), S a bound on the eigenvalues.
    """
    n, d = len(A), len(H)
    needed = _tie_bits(A, H)
    if needed > TIE_BITS:
        return Check(False, f"the tie would take {needed:.0f} bits to confirm, more than are spent")
    enclosed = _radii(A, H, int(needed) + 256)
    if enclosed is None:
        return Check(False, "the spectra could not be enclosed by the checker's own means")
    with flint.ctx.workprec(int(needed) + 256):
        gap = enclosed[0] * enclosed[0] - enclosed[1] * enclosed[1]
        small = bool(abs(gap).upper() < flint.arb(2) ** (-int(needed)))
    if not (gap.contains(0) and small):
        return Check(False, "no tie: the squared radii differ")
    stated = (claim.get("jordan_consensus"), claim.get("jordan_quotient"))
    words = f"TIE: the squared radii agree to {needed:.0f} bits, hence are equal"
    if stated == (None, None):
        return Check(True, words)
    if n * d > JORDAN_SIDE:
        return Check(
            False, f"Jordan blocks of a {n * d} x {n * d} operator are beyond this checker"
        )
    found = _jordan_sizes(A, H)
    if found != stated:
        return Check(False, f"the largest Jordan blocks at the tie are {found}, not {stated}")
    return Check(True, f"{words}; largest Jordan blocks {found[0]} and {found[1]}")


def _tie_bits(A: list[list[Fraction]], H: list[list[Fraction]]) -> float:
    """Bits at which two different squared moduli of modes must have separated (_check_tie)."""
    n, d = len(A), len(H)
    side = d * d * (n * d) ** 2
    size = 1 + max(sum((abs(x) for x in row), Fraction(0)) for row in H)
    q = lcm(*(x.denominator for row in H for x in row)) ** 2
    q *= lcm(*(x.denominator for row in A for x in row)) ** 2
    return log2(q) + (side - 1) * (log2(q) + float(2 * _log2(size) + 1)) + 8


def _jordan_sizes(A: list[list[Fraction]], H: list[list[Fraction]]) -> tuple[int, int]:
    """Largest Jordan blocks of I + H and of I + H (x) B at their largest modulus.

    The largest block of an eigenvalue is its multiplicity in the minimal polynomial.
    """
    first = A[0]
    B = [[x - y for x, y in zip(row[1:], first[1:], strict=True)] for row in A[1:]]
    k, d = len(B), len(H)
    consensus = [[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)]
    quotient = [
        [H[p][q] * B[i][j] + (p == q and i == j) for q in range(d) for j in range(k)]
        for p in range(d)
        for i in range(k)
    ]
    return _largest_block(consensus), _largest_block(quotient)


def _largest_block(M: list[list[Fraction]]) -> int:
    """The largest multiplicity in the minimal polynomial among the roots of largest modulus.

    Roots whose moduli 1024 bits do not tell apart count as equal; a wrong count there can only
    make the checker refuse.
    """
    with flint.ctx.workprec(1024):
        roots: list[Any] = _exact(M).minpoly().numer().complex_roots()
        top = _maximum([abs(root) for root, _ in roots])
        return max(int(count) for root, count in roots if abs(root).overlaps(top))


# ----------------------------------------------------------------------------------- about X_0


def _check_x0(
    A: list[list[Fraction]], H: list[list[Fraction]], given: dict[str, Any], claim: dict[str, Any]
) -> Check:
    """The verdict over the modes of X_0, and the depth from which HFC/LFC <= eps.

    The modes that a start contains are the roots of its minimal polynomial under the operator:
    computed exactly from its Krylov vectors, without eigenvectors.
    """
    try:
        kind = given["numbers"]
        X = [
            [Fraction(x) if kind == "fractions" else Fraction(float.fromhex(x)) for x in row]
            for row in given["X0"]
        ]
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"X0 is malformed ({error})") from error
    if len(X) != len(A) or any(len(row) != len(H) for row in X):
        raise NotACertificate("X0 has the wrong shape")
    found = _verdict_of(A, H, X)
    if found is None or found != claim.get("verdict_x0"):
        return Check(False, f"for this X_0 the verdict is {found}, not {claim.get('verdict_x0')}")
    if "depth" not in claim:
        return Check(True, f"{found} for this X_0")
    try:
        depth, eps = int(claim["depth"]), Fraction(str(claim["eps"]))
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise NotACertificate(f"depth or eps is malformed ({error})") from error
    if depth < 0 or eps <= 0 or found not in ("SMOOTHING", "TRIVIAL"):
        return Check(False, "a certified depth needs a smoothing X_0, depth >= 0 and eps > 0")
    return _check_depth(A, H, X, depth, eps)


def _stationary(A: list[list[Fraction]]) -> list[Fraction] | None:
    """pi with pi^T A = pi^T and sum 1, None where it is not unique."""
    n = len(A)
    system = [[A[j][i] - (i == j) for j in range(n)] for i in range(n - 1)] + [[Fraction(1)] * n]
    right = flint.fmpq_mat(n, 1, [0] * (n - 1) + [1])
    try:
        solution = _exact(system).solve(right)
    except ZeroDivisionError:
        return None
    return [Fraction(int(x.p), int(x.q)) for x in solution.entries()]


def _operators(
    A: list[list[Fraction]], H: list[list[Fraction]], X: list[list[Fraction]]
) -> tuple[Any, Any, Any, Any] | None:
    """(I + H, c_0, I + B (x) H on row-major differences to the first token, y_0), exact."""
    pi = _stationary(A)
    if pi is None:
        return None
    n, d = len(A), len(H)
    consensus = _exact([[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)])
    c = [sum((p * row[j] for p, row in zip(pi, X, strict=True)), Fraction(0)) for j in range(d)]
    B = [[A[i][j] - A[0][j] for j in range(1, n)] for i in range(1, n)]
    block = [
        [B[i][j] * H[p][q] + (i == j and p == q) for j in range(n - 1) for q in range(d)]
        for i in range(n - 1)
        for p in range(d)
    ]
    y = [X[i][p] - X[0][p] for i in range(1, n) for p in range(d)]
    return consensus, _column(c), _exact(block) if block else None, _column(y)


def _column(values: list[Fraction]) -> Any:
    return flint.fmpq_mat(len(values), 1, [_fmpq(x) for x in values])


def _moduli_of_start(operator: Any, start: Any, bits: int) -> list[Any]:
    """|root| of the minimal polynomial of a vector under an operator (none for the zero vector)."""
    vectors = [start]
    rank = 0
    while True:
        table = flint.fmpq_mat([[v.entries()[i] for v in vectors] for i in range(start.nrows())])
        if table.rank() == rank:
            break
        rank += 1
        vectors.append(operator * vectors[-1])
    if rank == 0:
        return []
    # v_rank = sum of x_k v_k, from the normal equations of the independent columns.
    left = flint.fmpq_mat([[v.entries()[i] for v in vectors[:-1]] for i in range(start.nrows())])
    x = (left.transpose() * left).solve(left.transpose() * vectors[-1]).entries()
    polynomial = flint.fmpq_poly([-entry for entry in x] + [1])
    with flint.ctx.workprec(bits):
        roots: list[Any] = polynomial.numer().complex_roots()
        return [abs(root) for root, _ in roots]


def _verdict_of(
    A: list[list[Fraction]], H: list[list[Fraction]], X: list[list[Fraction]]
) -> str | None:
    """The verdict over the modes that X_0 contains; None where balls of 2560 bits cannot tell."""
    if not any(map(any, X)):
        return "UNDEFINED"
    parts = _operators(A, H, X)
    if parts is None:
        return None
    consensus, c, block, y = parts
    needed = _tie_bits(A, H)
    tie_bits = int(needed) + 256 if needed <= TIE_BITS else 2560
    for bits in (160, 2560, tie_bits):
        on_c = _moduli_of_start(consensus, c, bits)
        on_q = [] if block is None else _moduli_of_start(block, y, bits)
        with flint.ctx.workprec(bits):
            alive = [m for m in (*on_c, *on_q) if not m.contains(0)]
            if not alive:
                return "UNDEFINED"
            if not on_q:
                return "TRIVIAL"
            if not on_c:
                return "NON_SMOOTHING"
            top_c, top_q = _maximum(on_c), _maximum(on_q)
            if top_c > top_q:
                return "SMOOTHING"
            if top_c < top_q:
                return "NON_SMOOTHING"
    # The moduli agree to the bits at which two of them that differ would have shown it.
    return "TIE" if tie_bits > needed else None


def _check_depth(
    A: list[list[Fraction]],
    H: list[list[Fraction]],
    X: list[list[Fraction]],
    depth: int,
    eps: Fraction,
) -> Check:
    """HFC/LFC <= eps at every L >= depth, by powers of the operator in place of eigenvectors.

    |z^T c_L| = |1 + h|^L |z^T c_0| for a left eigenvector z = e^T g(H), g = charpoly / (x - h);
    ||y_L|| <= ||T^p||^q ||T^r|| ||y_0|| for L = p q + r. From some depth on that proves the bound
    for good; the layers before are checked one by one.
    """
    parts, pi = _operators(A, H, X), _stationary(A)
    if parts is None or pi is None:
        return Check(False, "the stationary distribution of A is not unique")
    _, c, block, y = parts
    n = len(A)
    if block is None or not any(y.entries()):
        return Check(True, f"HFC = 0 at every depth, so HFC/LFC <= {eps} from {depth} on")
    bits = 512
    with flint.ctx.workprec(bits):
        growth, weight = _consensus_growth(H, c)
        if growth is None:
            return Check(False, "no left eigenvector of H was found that X_0 contains")
        start = _norm(flint.arb_mat(y).entries())
        k = (n * sum(_ball((p - Fraction(1, n)) ** 2) for p in pi)).sqrt()
        bound = _ball(eps)
        norms = [flint.arb(1)]
        power = flint.arb_mat(block)
        period = None
        for p in range(1, LONGEST_PERIOD + 1):
            norms.append(_norm(power.entries()))
            if norms[p] < growth**p:
                period = p
                break
            power = power * flint.arb_mat(block)
        if period is None:
            return Check(
                False, "no power of the quotient block is seen to be smaller than consensus"
            )
        # t_L = ||HFC|| / (sqrt n ||c||) <= C s^(L // period), s < 1; T1e: t (1 + k eps) <= eps.
        s = norms[period] / growth**period
        early = [norms[r] / growth**r for r in range(period)]
        largest = early[0]
        for value in early[1:]:
            largest = largest.max(value)
        constant = largest * start / (flint.arb(n).sqrt() * weight)
        target = bound / (1 + k * bound)
        last = depth
        while not constant * s ** (last // period) <= target:
            last += period
            if last > depth + LONGEST_CHECK:
                return Check(False, "the depth could not be confirmed within the layers checked")
        wrong = _first_above(A, H, X, depth, last, eps)
    if wrong is not None:
        return Check(False, f"HFC/LFC exceeds {eps} at layer {wrong}, after the stated {depth}")
    return Check(True, f"HFC/LFC <= {eps} at every depth from {depth} on")


def _ball(x: Fraction) -> Any:
    return flint.arb(_fmpq(x))


def _norm(entries: list[Any]) -> Any:
    """Frobenius norm, which bounds the 2-norm of a matrix."""
    return sum((x * x for x in entries), flint.arb(0)).sqrt()


def _consensus_growth(H: list[list[Fraction]], c: Any) -> tuple[Any, Any]:
    """(|1 + h|, |z^T c_0| / ||z||) for the largest |1 + h| whose left eigenvector sees c_0."""
    d = len(H)
    matrix = flint.acb_mat(_exact(H))
    identity = flint.acb_mat(d, d, [int(i == j) for i in range(d) for j in range(d)])
    roots: list[Any] = _exact(H).charpoly().numer().complex_roots()
    best: tuple[Any, Any] = (None, None)
    for k, (h, multiplicity) in enumerate(roots):
        if multiplicity > 1:
            continue
        g = identity
        for j, (other, count) in enumerate(roots):
            for _ in range(count if j != k else 0):
                g = g * (matrix - identity * other)
        for i in range(d):
            z = [g[i, j] for j in range(d)]
            content = abs(
                sum((x * flint.acb(v) for x, v in zip(z, c.entries(), strict=True)), flint.acb(0))
            )
            length = sum((x.real * x.real + x.imag * x.imag for x in z), flint.arb(0)).sqrt()
            if content > 0 and length > 0:
                modulus = abs(1 + h)
                if best[0] is None or modulus.lower() > best[0].lower():
                    best = (modulus, content / length)
                break
    return best


def _first_above(
    A: list[list[Fraction]],
    H: list[list[Fraction]],
    X: list[list[Fraction]],
    first: int,
    last: int,
    eps: Fraction,
) -> int | None:
    """The first layer in [first, last) where HFC/LFC <= eps is not seen, in balls, decoupled."""
    parts, pi = _operators(A, H, X), _stationary(A)
    assert parts is not None and pi is not None
    n, d = len(A), len(H)
    consensus, block = flint.arb_mat(parts[0]), flint.arb_mat(parts[2])
    c, y = flint.arb_mat(parts[1]), flint.arb_mat(parts[3])
    for layer in range(last):
        if layer >= first:
            hfc_squared, lfc_squared = flint.arb(0), flint.arb(0)
            for p in range(d):
                tokens = [flint.arb(0)] + [y[(i - 1) * d + p, 0] for i in range(1, n)]
                mean = sum(tokens, flint.arb(0)) / n
                centred = [x - mean for x in tokens]
                shift = sum(
                    (_ball(Fraction(1, n) - q) * x for q, x in zip(pi, centred, strict=True)),
                    flint.arb(0),
                )
                hfc_squared += sum((x * x for x in centred), flint.arb(0))
                lfc_squared += n * (c[p, 0] + shift) * (c[p, 0] + shift)
            if not hfc_squared <= _ball(eps) ** 2 * lfc_squared:
                return layer
        c, y = consensus * c, block * y
    return None


def _log2(x: Fraction) -> float:
    return log2(x.numerator) - log2(x.denominator)


def _show(ball: Any) -> str:
    return str(ball.str(15, radius=False))
