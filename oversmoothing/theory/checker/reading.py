"""A certificate file as fractions: nothing in it is believed, nothing in it is left over.

The schema is closed: unknown, missing and repeated keys are refused, every part of a claim has its
form and the parts it goes with, and each number has one way of being written. Length, depth and
digits are bounded before anything is made of them. A stated interval contains a number known in a
ball with all of the ball, or not.
"""

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

import flint

Matrix = list[list[Fraction]]

SCHEMA_VERSION = 2
KIND = "oversmoothing certificate"
# Up to this d the H of a head is written out.
DENSE_SIZE = 40
# Bounds on a file: characters, levels of nesting, digits of a number in a text and of a bare one
# (Python writes none of more than 4,300).
LENGTH, DEPTH, DIGITS, BARE_DIGITS = 2**26, 8, 20_000, 4000
SUM_BITS = 2**20
# A text without an end reaches to that of the file: every character is looked at once.
_BRACKET_OR_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{\]}]', re.DOTALL)
_RATIO = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:/([1-9][0-9]*))?")


class NotACertificate(Exception):
    """The file cannot be read as a certificate. The message says why."""


@dataclass(frozen=True)
class Check:
    """Whether every part of the claim was confirmed, and what was found.

    beyond: not accepted, but not found false either: more than this checker can confirm.
    """

    accepted: bool
    words: str
    beyond: bool = False


def parse(text: str) -> dict[str, Any]:
    """The object that the text of a file holds, its outer keys verified."""
    if len(text) > LENGTH:
        raise NotACertificate(f"it has more than {LENGTH} characters")
    if _too_deep(text):
        raise NotACertificate(f"it is nested more than {DEPTH} levels deep")
    try:
        body = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_number,
            parse_float=_no_number,
            parse_int=_integer,
        )
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotACertificate(f"not JSON ({error})") from error
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise NotACertificate(f'the file has no "kind": "{KIND}"')
    version = body.get("schema_version")
    if version == 1:
        raise NotACertificate(
            "schema_version 1: such files hold words, a method and a provenance, which nobody can "
            "confirm by computation; certify the case again"
        )
    if not isinstance(version, int) or version != SCHEMA_VERSION:
        raise NotACertificate(f"schema_version {shown(version)} is not known here")
    keys(body, {"schema_version", "kind", "input", "claim", "digest"}, set(), "the file")
    return body


def _too_deep(text: str) -> bool:
    """Whether brackets outside of strings nest too deeply, seen before anything is parsed."""
    depth = 0
    for token in _BRACKET_OR_TEXT.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > DEPTH:
                return True
        elif token[0] in "]}":
            depth -= 1
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise NotACertificate("a key is repeated: which of its values is meant?")
    return entries


def _no_number(text: str) -> Any:
    raise NotACertificate(f"{shown(text)}: a certificate writes such numbers as texts, exactly")


def _integer(text: str) -> int:
    if len(text) > BARE_DIGITS:
        raise NotACertificate(f"an integer of more than {BARE_DIGITS} digits")
    return int(text)


def shown(value: object) -> str:
    """Something from the file, in a message: no more than a few characters of it."""
    text = repr(value) if isinstance(value, str | int | None) else type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]}..."


def keys(value: Any, needed: Collection[str], optional: Collection[str], name: str) -> None:
    """Raise `NotACertificate` unless it is an object with the needed keys and no unknown one."""
    if not isinstance(value, dict):
        raise NotACertificate(f"{name} is no object")
    missing = sorted(set(needed) - value.keys())
    if missing:
        raise NotACertificate(f"{name} lacks {', '.join(missing)}")
    unknown = sorted(value.keys() - set(needed) - set(optional))
    if unknown:
        raise NotACertificate(f"{name} holds {shown(unknown[0])}, which nothing confirms")


def digest(body: dict[str, Any]) -> str:
    """SHA-256 over the canonical form of all that is claimed."""
    part = {key: body[key] for key in ("schema_version", "kind", "input", "claim")}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def ratio(text: Any) -> Fraction:
    """ "p/q" or "p" in lowest terms."""
    if not isinstance(text, str) or len(text) > DIGITS:
        raise NotACertificate(f"{shown(text)} is no fraction of at most {DIGITS} digits")
    match = _RATIO.fullmatch(text)
    if match is None:
        raise NotACertificate(f"{shown(text)} is no fraction")
    value = flint.fmpq(flint.fmpz(match[1]), flint.fmpz(match[2] or "1"))
    if str(value) != text:
        raise NotACertificate(f"{shown(text)} is not in lowest terms")
    return Fraction(int(value.p), int(value.q))


def binary(text: Any) -> float:
    """A finite binary64 number as Python's float.hex writes it."""
    try:
        value = float.fromhex(text) if isinstance(text, str) and len(text) < 32 else None
    except (ValueError, OverflowError):
        value = None
    # Anything else would be rounded, or infinite.
    if value is None or value.hex() != text or "x" not in text:
        raise NotACertificate(f"{shown(text)} is no binary64 number in hexadecimal")
    return value


@dataclass(frozen=True)
class Given:
    """The input of a certificate: attention as A in fractions or as logits (None where masked),
    the value projection as H or as the factors (W_V, W_proj) of a head, and X_0 where given."""

    A: Matrix | None
    logits: list[list[Fraction | None]] | None
    H: Matrix
    factors: tuple[Matrix, Matrix] | None
    X0: Matrix | None

    @property
    def n(self) -> int:
        return len(self.A or self.logits or [])

    @property
    def d(self) -> int:
        return len(self.factors[0]) if self.factors else len(self.H)

    @property
    def rational(self) -> bool:
        """Whether A and H are there in fractions."""
        return self.A is not None and bool(self.H)


def read_input(given: Any) -> Given:
    """Raises `NotACertificate` where the input is malformed."""
    keys(given, {"numbers"}, {"A", "logits", "H", "W_V", "W_proj", "X0"}, "the input")
    kind = given["numbers"]
    if kind not in ("fractions", "binary64"):
        raise NotACertificate(f"numbers of kind {shown(kind)}")
    if ("A" in given) == ("logits" in given) or ("H" in given) == ("W_V" in given):
        raise NotACertificate(
            "exactly one of A and logits, and of H and its factors, must be given"
        )
    if ("W_V" in given) != ("W_proj" in given):
        raise NotACertificate("a head has two factors, W_V and W_proj")
    exact = kind == "fractions"

    def entry(text: Any) -> Fraction:
        return ratio(text) if exact else Fraction(binary(text))

    def matrix(name: str) -> Matrix:
        return [[entry(x) for x in row] for row in _rows(given, name)]

    A, logits, factors = None, None, None
    if "A" in given:
        A = _attention(matrix("A"), exact)
    else:
        logits = [
            [None if x == "-inf" else entry(x) for x in row] for row in _rows(given, "logits")
        ]
        if not all(len(row) == len(logits) and any(x is not None for x in row) for row in logits):
            raise NotACertificate("the logits are not square, or have a row that is all masked")
    if "H" in given:
        H = matrix("H")
        if len(H) != len(H[0]):
            raise NotACertificate("H is not square")
    else:
        factors = matrix("W_V"), matrix("W_proj")
        if len(factors[0]) != len(factors[1][0]) or len(factors[1]) != len(factors[0][0]):
            raise NotACertificate("the factors of the head do not fit")
        # The dense H is exact too, and only made where it is small, or no larger than its core.
        small = len(factors[0]) <= max(DENSE_SIZE, len(factors[0][0]))
        H = _dense(*factors) if small else []
    case = Given(A, logits, H, factors, matrix("X0") if "X0" in given else None)
    if case.X0 is not None and (len(case.X0), len(case.X0[0])) != (case.n, case.d):
        raise NotACertificate("X0 has the wrong shape")
    return case


def _rows(given: dict[str, Any], name: str) -> list[list[Any]]:
    rows = given[name]
    if (
        not isinstance(rows, list)
        or not rows
        or not all(isinstance(row, list) and row and len(row) == len(rows[0]) for row in rows)
    ):
        raise NotACertificate(f"{name} is ragged, empty or no matrix")
    return rows


def _attention(A: Matrix, exact: bool) -> Matrix:
    if len(A) != len(A[0]):
        raise NotACertificate("A is not square")
    sums = [_sum(row) for row in A]
    # n eps, twice: the sum itself is rounded where the case is made.
    slack = Fraction(0) if exact else len(A) * Fraction(1, 2**51)
    if any(x < 0 for row in A for x in row) or any(abs(total - 1) > slack for total in sums):
        raise NotACertificate("A is not row-stochastic")
    return [[x / total for x in row] for row, total in zip(A, sums, strict=True)]


def _sum(row: list[Fraction]) -> Fraction:
    total = flint.fmpq(0)
    for x in row:
        total += flint.fmpq(x.numerator, x.denominator)
        if total.q.bit_length() > SUM_BITS:
            raise NotACertificate("the numbers of a row of A have no common denominator in reach")
    return Fraction(int(total.p), int(total.q))


def _dense(W_V: Matrix, W_proj: Matrix) -> Matrix:
    """(W_V W_proj)^T."""
    return [
        [sum((x * row[i] for x, row in zip(v, W_proj, strict=True)), Fraction(0)) for v in W_V]
        for i in range(len(W_V))
    ]


@dataclass(frozen=True)
class Bounds:
    """A closed interval, -inf and inf where it has no end on that side."""

    low: Fraction | float
    high: Fraction | float


def contained(
    ball: Any, stated: Bounds, at_least: Fraction | float = -inf, at_most: Fraction | float = inf
) -> bool | None:
    """Whether every number of the ball is in the interval: None where some are and some are not.

    at_least, at_most: the number is known to lie between these.
    """
    if not ball.is_finite():
        return None
    ends = (fraction_of(end) for end in (ball.lower(), ball.upper()))
    low, high = (min(max(end, at_least), at_most) for end in ends)
    if high < stated.low or low > stated.high:
        return False
    return True if stated.low <= low and high <= stated.high else None


def fraction_of(end: Any) -> Fraction:
    """An end of a ball, a ball without a radius, exactly."""
    mantissa, exponent = end.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def to_fmpq(x: Fraction) -> flint.fmpq:
    """The same number as FLINT's."""
    return flint.fmpq(x.numerator, x.denominator)


def show(ball: Any) -> str:
    """A ball in a message, without its radius."""
    return str(ball.str(15, radius=False))


OUTCOMES = ("SMOOTHING", "NON_SMOOTHING", "TIE", "TRIVIAL", "UNDECIDED")
OUTCOMES_X0 = ("SMOOTHING", "NON_SMOOTHING", "TIE", "TRIVIAL", "UNDEFINED")
MODES = {"SMOOTHING": "consensus", "NON_SMOOTHING": "quotient"}
_OPTIONAL = (
    "rho_consensus", "rho_quotient", "margin", "jordan_consensus", "jordan_quotient",
    "genericity", "verdict_x0", "eps", "depth",
)  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """The parts of a claim, None where there is none.

    verdict: for generic X_0. rho_consensus, rho_quotient, margin: bounds of rho_C, rho_Q and
    rho_C - rho_Q. jordan: the largest Jordan blocks at a tie. coefficient: that of the dominant
    mode in X_0, which is not 0. verdict_x0: for this X_0. depth, eps: HFC/LFC <= eps from there on.
    """

    verdict: str
    rho_consensus: Bounds | None = None
    rho_quotient: Bounds | None = None
    margin: Bounds | None = None
    jordan: tuple[int, int] | None = None
    coefficient: Bounds | None = None
    verdict_x0: str | None = None
    eps: Fraction | None = None
    depth: int | None = None


def read_claim(claim: Any) -> Claim:
    """Raises `NotACertificate` where a part is malformed, unknown or stands where none may."""
    keys(claim, {"verdict"}, _OPTIONAL, "the claim")
    verdict = _word(claim["verdict"], OUTCOMES)
    for first, second in (("jordan_consensus", "jordan_quotient"), ("eps", "depth")):
        if (first in claim) != (second in claim):
            raise NotACertificate(f"{first} and {second} go together")
    names = ("rho_consensus", "rho_quotient", "margin")
    parts: dict[str, Any] = {name: _bounds(claim[name]) for name in names if name in claim}
    if "jordan_consensus" in claim:
        if verdict != "TIE":
            raise NotACertificate("Jordan blocks are claimed at a tie only")
        parts["jordan"] = _count(claim["jordan_consensus"]), _count(claim["jordan_quotient"])
    if "verdict_x0" in claim:
        parts["verdict_x0"] = _word(claim["verdict_x0"], OUTCOMES_X0)
    if "depth" in claim:
        parts["eps"], parts["depth"] = ratio(claim["eps"]), _count(claim["depth"])
        if parts["eps"] <= 0 or parts.get("verdict_x0") != "SMOOTHING":
            raise NotACertificate("a depth goes with an eps above 0 and an X_0 that smooths")
    if "genericity" in claim:
        parts["coefficient"] = _coefficient(claim["genericity"], verdict)
    return Claim(verdict, **parts)


def _word(value: Any, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise NotACertificate(f"{shown(value)} is none of {', '.join(known)}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise NotACertificate(f"{shown(value)} is no count")
    return value


def _bounds(value: Any) -> Bounds:
    """[low, high] in hexadecimal binary64, or fractions where they are below it; "-inf" or "inf"
    where there is no end on that side."""
    if not isinstance(value, list) or len(value) != 2:
        raise NotACertificate("an interval has two ends")
    low = -inf if value[0] == "-inf" else _end(value[0])
    high = inf if value[1] == "inf" else _end(value[1])
    if low > high:
        raise NotACertificate("an interval with its ends exchanged")
    return Bounds(low, high)


def _end(text: Any) -> Fraction:
    return ratio(text) if isinstance(text, str) and "/" in text else Fraction(binary(text))


def _coefficient(value: Any, verdict: str) -> Bounds:
    keys(value, {"mode", "coefficient"}, set(), "genericity")
    if verdict not in MODES or value["mode"] != MODES[verdict]:
        raise NotACertificate(f"mode {shown(value['mode'])} does not go with {verdict}")
    bounds = _bounds(value["coefficient"])
    if bounds.low <= 0 or bounds.high > 1:
        raise NotACertificate("a coefficient that is not 0 lies above 0 and up to 1")
    return bounds
