"""What a certificate may claim: every part has its place, its form and the parts it goes with."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from oversmoothing.theory.checker.containment import Bounds
from oversmoothing.theory.checker.reading import NotACertificate, binary, keys, ratio, shown

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
    radii = {
        name: _bounds(claim[name]) if name in claim else None
        for name in ("rho_consensus", "rho_quotient", "margin")
    }
    jordan = None
    if "jordan_consensus" in claim:
        if verdict != "TIE":
            raise NotACertificate("Jordan blocks are claimed at a tie only")
        jordan = _count(claim["jordan_consensus"]), _count(claim["jordan_quotient"])
    verdict_x0 = _word(claim["verdict_x0"], OUTCOMES_X0) if "verdict_x0" in claim else None
    eps = depth = None
    if "depth" in claim:
        eps, depth = ratio(claim["eps"]), _count(claim["depth"])
        if eps <= 0 or verdict_x0 != "SMOOTHING":
            raise NotACertificate("a depth goes with an eps above 0 and an X_0 that smooths")
    coefficient = _coefficient(claim["genericity"], verdict) if "genericity" in claim else None
    return Claim(
        verdict,
        jordan=jordan,
        coefficient=coefficient,
        verdict_x0=verdict_x0,
        eps=eps,
        depth=depth,
        **radii,
    )


def _word(value: Any, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise NotACertificate(f"{shown(value)} is none of {', '.join(known)}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise NotACertificate(f"{shown(value)} is no count")
    return value


def _bounds(value: Any) -> Bounds:
    """[low, high] in hexadecimal binary64; "-inf" or "inf" where there is no end on that side."""
    if not isinstance(value, list) or len(value) != 2:
        raise NotACertificate("an interval has two ends")
    low = -inf if value[0] == "-inf" else binary(value[0])
    high = inf if value[1] == "inf" else binary(value[1])
    if low > high:
        raise NotACertificate("an interval with its ends exchanged")
    return Bounds(None if low == -inf else Fraction(low), None if high == inf else Fraction(high))


def _coefficient(value: Any, verdict: str) -> Bounds:
    keys(value, {"mode", "coefficient"}, set(), "genericity")
    if verdict not in MODES or value["mode"] != MODES[verdict]:
        raise NotACertificate(f"mode {shown(value['mode'])} does not go with {verdict}")
    found = _bounds(value["coefficient"])
    if found.low is None or found.high is None or found.low <= 0 or found.high > 1:
        raise NotACertificate("a coefficient that is not 0 lies above 0 and up to 1")
    return found
