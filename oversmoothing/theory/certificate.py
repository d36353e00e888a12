"""A certificate: the exact input and what is claimed of it, in one JSON file.

Binary64 input is written as hexadecimal floats, fractions as "p/q": what is certified is what the
file says, to the last bit. It holds no words, and nothing that its reader would have to believe:
`theory.checker` recomputes each claim by other means, and what it does not confirm is not written.

Does this X_0 contain the dominant mode? For the dominant pair (a, h) with left eigenvectors w^T A =
a w^T and z^T H = h z^T (w = pi for consensus) the coefficient is |w^T X_0 z| / (||w|| ||z||
||X_0||_F), a number in [0, 1]; a complex pair and its conjugate have the same. w^T X_L z = (1 + h
a)^L w^T X_0 z, so where it is not 0 the verdict for generic X_0 is the verdict for this one:
SMOOTHING leaves ||c_L|| >= const rho_C^L over HFC = O(poly rho_Q^L), NON_SMOOTHING the other way
about.
"""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from itertools import repeat
from typing import Any

import flint

from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import NotACertificate
from oversmoothing.theory.depth.bounds import certified_depth_in_balls, first_depth
from oversmoothing.theory.layer.attention import stationary_balls
from oversmoothing.theory.layer.layer import EXACT_SIZE, Entries, Layer
from oversmoothing.theory.numbers.exact import fraction_text, to_flint
from oversmoothing.theory.numbers.rounding import at_precision, norm
from oversmoothing.theory.spectra.blocks import BITS, BallSpectrum
from oversmoothing.theory.spectra.layer_discs import Interval
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import to_json
from oversmoothing.theory.verdict import stages
from oversmoothing.theory.verdict.by_fractions import jordan_size
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.start import start_content


def genericity(case: Layer, start: Entries, verdict: Outcome) -> tuple[dict[str, Any] | None, str]:
    """Whether X_0 contains the dominant mode, and how much of it, and why.

    The claim is {"mode", "coefficient": bounds} where the coefficient is not 0, else None.
    """
    mode = {Outcome.SMOOTHING: "consensus", Outcome.NON_SMOOTHING: "quotient"}.get(verdict)
    if mode is None:
        return None, f"{verdict}: no single mode dominates"
    if stages.ball_side(case) > stages.BALL_SIZE:
        return None, f"matrices beyond side {stages.BALL_SIZE} are not enclosed in balls"
    reason = "no eigenvectors were proved independent"
    sides = repeat(None) if mode == "consensus" else stages.attention_spectra(case)
    for attention, value in zip(sides, stages.value_spectra(case), strict=False):
        with at_precision(BITS):
            pair = dominant(attention, value)
            if isinstance(pair, str):
                reason = pair
                continue
            ball = _coefficient(case, start, attention, value, pair)
        low, high = stages.outward(ball)
        # Below the smallest binary64 number a bound above 0 cannot be written.
        if low > 0:
            reason = f"|w^T X_0 z| / (||w|| ||z|| ||X_0||) = {ball.str(6)} of the dominant mode"
            return {"mode": mode, "coefficient": [low.hex(), min(1.0, high).hex()]}, reason
        reason = "the coefficient of the dominant mode is 0, or too small to tell from it"
    return None, reason


def dominant(attention: BallSpectrum | None, value: BallSpectrum) -> tuple[int, int] | str:
    """(i, j) of the largest |1 + h_j a_i|, or of |1 + h_j| without attention (then i = 0).

    Unique up to complex conjugation, and both eigenvalues isolated; or why there is no such pair.
    """
    a_boxes = [flint.acb(1)] if attention is None else attention.boxes
    moduli = {
        (i, j): abs(1 + h * a) for i, a in enumerate(a_boxes) for j, h in enumerate(value.boxes)
    }
    first = max(moduli, key=lambda pair: float(moduli[pair].mid()))
    tops = {pair for pair, modulus in moduli.items() if not modulus < moduli[first]}
    i, j = first
    if not (value.alone[j] and (attention is None or attention.alone[i])):
        return "the dominant eigenvalue is repeated, or too close to another to isolate"
    if tops != {first, (_conjugate(a_boxes, i), _conjugate(value.boxes, j))}:
        return "several modes share the largest modulus, or are too close to tell"
    return first


def _conjugate(boxes: list[flint.acb], i: int) -> int:
    """The index of the conjugate of an isolated eigenvalue, -1 where several boxes may hold it."""
    mirrored = boxes[i].conjugate()
    indices = [k for k, box in enumerate(boxes) if box.overlaps(mirrored)]
    return indices[0] if len(indices) == 1 else -1


def _coefficient(
    case: Layer,
    start: Entries,
    attention: BallSpectrum | None,
    value: BallSpectrum,
    pair: tuple[int, int],
) -> flint.arb:
    i, j = pair
    z = flint.acb_mat(len(value.boxes), 1, value.left_vector(j))
    if len(value.boxes) < case.d:
        # z = W_V u for u^T (W_proj W_V)^T = h u^T.
        z = flint.acb_mat(to_flint(case.rational_factors[0])) * z
    if attention is None:
        w = [flint.acb(x) for x in stationary_balls(stages.attention_balls(case), case.classes)]
    else:
        # In y_k = x_k - x_n, k < n: v^T y = w^T x with w = (v, -sum v).
        v = attention.left_vector(i)
        w = [*v, -sum(v, flint.acb(0))]
    X0 = flint.acb_mat(to_flint(start.fractions))
    content = abs((flint.acb_mat(1, case.n, w) * X0 * z)[0, 0])
    return content / (norm(w) * norm(z.entries()) * norm(X0.entries()))


# Up to this (n - 1) d a depth is claimed: its checker takes seconds.
DEPTH_SIDE = 96


def claims_of_start(
    case: Layer, start: Entries, verdict: Outcome, generic: bool, eps: Fraction
) -> tuple[list[dict[str, Any]], str]:
    """Claims about X_0, each of which stands on those before it, and why there is no depth.

    generic: whether X_0 contains the dominant mode, so that it has the verdict of generic X_0.
    """
    X0 = start.fractions
    outcome = Outcome.UNDEFINED if start.is_zero else None
    if outcome is None and case.logits is None and max(case.n, case.d) <= EXACT_SIZE:
        content = start_content(case.rational_A, case.rational_H, X0, begins=False)
        outcome = None if content is None else content.outcome
    if outcome is None and generic:
        outcome = Outcome.TRIVIAL if all(row == X0[0] for row in X0) else verdict
    if outcome is None:
        return [], "the verdict for this X_0: its modes are not told apart"
    claims: list[dict[str, Any]] = [{"verdict_x0": str(outcome)}]
    if not (verdict is outcome is Outcome.SMOOTHING):
        return claims, ""
    if case.logits is not None:
        return claims, "depth: of a softmax none is certified"
    if (case.n - 1) * case.d > DEPTH_SIDE:
        return claims, f"depth: one is certified up to (n - 1) d = {DEPTH_SIDE} only"
    layer = case.rational_A, case.rational_H, X0, eps
    depth = certified_depth_in_balls(*layer)
    if depth is None:
        return claims, "depth: eigenvalues repeat, or the modes of this X_0 are not told apart"
    # The second is the least one; where the checker takes too long for it, the first stands.
    for least in dict.fromkeys((depth.depth, first_depth(*layer, depth.depth))):
        claims.append({"eps": fraction_text(eps), "depth": least})
    return claims, ""


SCHEMA_VERSION = 2
KIND = "oversmoothing certificate"
DEFAULT_EPS = Fraction(1, 1000)


@dataclass(frozen=True)
class Certificate:
    """A certificate that the checker has accepted.

    body: the file, as a JSON object. reason, method: how the verdict was reached; checked: what the
    checker found. left_out: what could not be claimed and why; unconfirmed: what could, but the
    checker could not confirm it, a sentence each. vanishes: whether every state becomes exactly 0,
    None where rounding hides it. None of these words is part of the file.
    """

    body: dict[str, Any]
    reason: str
    method: str
    checked: str
    left_out: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    vanishes: bool | None = False


def certify(
    case: Layer, start: Entries | None = None, eps: Fraction = DEFAULT_EPS
) -> dict[str, Any]:
    """The certificate of a layer, as a JSON object: the body of `make_certificate`."""
    return make_certificate(case, start, eps).body


def make_certificate(
    case: Layer, start: Entries | None = None, eps: Fraction = DEFAULT_EPS
) -> Certificate:
    """The certificate of a layer, accepted by the checker.

    Its verdict comes from the first of `stages.decide` that reaches one. With X_0 it also encloses
    the coefficient of the dominant mode in X_0 (`genericity`) and states the verdict for this X_0
    (T4e) and a depth L*(eps) with HFC/LFC <= eps at every L >= L* (T5d), where these can be
    certified. What the checker cannot confirm is left out. Raises `InputError` where the file could
    not be read back, `RequirementError` where the checker finds a claim to be false.
    """
    answer, exact = stages.decide(case)
    left_out: list[str] = []
    bounds = {
        "rho_consensus": answer.consensus, "rho_quotient": answer.quotient, "margin": answer.margin
    }  # fmt: skip
    texts = {name: interval_texts(x) for name, x in bounds.items() if x is not None}
    parts: list[dict[str, Any]] = [{"verdict": str(answer.verdict), **texts}]
    if exact is not None and answer.verdict is Outcome.TIE:
        # The largest Jordan blocks at a tie, which decide it (T6b).
        sides = {"jordan_consensus": exact.consensus, "jordan_quotient": exact.quotient}
        parts.append({name: max(map(jordan_size, modes)) for name, modes in sides.items()})
    if start is not None:
        if case.n > 1 and not start.is_zero:
            content, reason = genericity(case, start, answer.verdict)
            if content is None:
                left_out.append(f"genericity: {reason}")
            else:
                parts.append({"genericity": content})
        generic = "genericity" in parts[-1]
        claims, missing = claims_of_start(case, start, answer.verdict, generic, eps)
        parts, left_out = parts + claims, left_out + [missing] * bool(missing)
    matrices = case.given if start is None else {**case.given, "X0": start}
    given = {"numbers": case.numbers} | {name: _texts(x) for name, x in matrices.items()}
    body, checked, dropped = _confirmed(given, parts)
    vanishes = None if answer.consensus is not None and not answer.consensus.low else False
    if answer.radii is not None:
        vanishes = answer.radii[0].exact == 0 == answer.radii[1].exact
    unsaid = tuple(left_out), tuple(dropped)
    return Certificate(body, answer.reason, answer.method, checked, *unsaid, vanishes)


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
        check = check_certificate(to_json(body))
    except NotACertificate as error:
        raise InputError(f"no certificate of this case can be written: {error}") from error
    if not (check.accepted or check.beyond):
        raise RequirementError(
            f"the checker contradicts what was to be certified ({check.words}): nothing is written"
        )
    return check.accepted, check.words


def _file(given: dict[str, Any], claim: dict[str, Any]) -> dict[str, Any]:
    body = {"schema_version": SCHEMA_VERSION, "kind": KIND, "input": given, "claim": claim}
    return body | {"digest": digest(body)}


def digest(body: dict[str, Any]) -> str:
    """SHA-256 over input and claim in canonical form."""
    part = {key: body[key] for key in ("schema_version", "kind", "input", "claim")}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _texts(entries: Entries) -> list[list[str]]:
    if entries.written is None:
        return [[x.hex() for x in row] for row in entries.floats.tolist()]
    return [["-inf" if x is None else fraction_text(x) for x in row] for row in entries.written]


def interval_texts(bounds: Interval | tuple[stages.End, stages.End]) -> list[str]:
    """Both ends, floats in hexadecimal; "-inf" or "inf" where there is none within binary64."""
    ends = (bounds.low, bounds.high) if isinstance(bounds, Interval) else bounds
    return [fraction_text(x) if isinstance(x, Fraction) else float(x).hex() for x in ends]
