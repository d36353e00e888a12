"""The examples of the explorer, one for a theorem: a state of the page and its exact answer.

A verdict that stands beside an example is decided in fractions when the page is written, by the
same code as `oversmoothing verdict`; what the page computes itself is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from oversmoothing.theory.claims.golden import golden_case
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.verdict.verdict import verdict

# The angle of the 3-4-5 triangle, in degrees: cosine 4/5 (T7b).
TURN_3_4_5 = 36.86989764584402


@dataclass(frozen=True)
class Preset:
    """One example. golden: the golden case it shows, whose X_0 it starts from; state: what differs
    from a state of averaging attention, in the words of the link."""

    key: str
    title: str
    says: str
    h: Sequence[str]
    state: dict[str, Any] = field(default_factory=dict)
    golden: str | None = None

    @property
    def link(self) -> str:
        words = {
            "n": 2,
            "h": ",".join(self.h),
            "attention": "averaging",
            "heads": 1,
            "skew": 0,
            "turn": 0,
            "depth": 40,
            "seed": 1,
        } | self.state
        if self.golden:
            case = golden_case(self.golden)
            words |= {"n": len(case.A), "X": _rows(case.X0)}
            if words["attention"] == "given":
                words["A"] = _rows(case.A)
        return "#" + "&".join(f"{name}={words[name]}" for name in _ORDER if name in words)

    def exact(self) -> dict[str, str] | None:
        if self.golden is None:
            return None
        case = golden_case(self.golden)
        answer = verdict(A=case.A, H=case.H, X0=case.X0)
        return {"verdict": str(answer.verdict), "reason": str(answer.reason)}


# The order in which the page writes a link.
_ORDER = [
    "n",
    "h",
    "attention",
    "temperature",
    "share",
    "causal",
    "chain",
    "heads",
    "skew",
    "turn",
    "depth",
    "seed",
    "A",
    "X",
]


def _rows(matrix: Matrix) -> str:
    return ";".join(",".join(_number(x) for x in row) for row in matrix)


def _number(x: Fraction) -> str:
    """As JavaScript writes the nearest float."""
    value = float(x)
    return str(int(value)) if value.is_integer() else repr(value)


PRESETS = (
    Preset(
        "start",
        "Softmax attention, 32 tokens, 8 features",
        "Five points of the spectrum of H, three of them pairs. Drag point 2, at 0.5, to the "
        "left: once a mode of the others outgrows its 1 + h, the verdict flips.",
        ("-0.5", "0.5", "-0.6+0.4i", "-1.1+0.5i", "-0.3+0.9i"),
        {"n": 32, "attention": "softmax", "temperature": 1, "skew": 0.2, "depth": 60},
    ),
    Preset(
        "positive",
        "A positive eigenvalue: it smooths (T2)",
        "h = 1/2 and a = 1/2: consensus grows by 3/2 a layer, the difference of the tokens by 5/4.",
        ("0.5",),
        {"share": 0.5},
        "GT1",
    ),
    Preset(
        "safe-interval",
        "All of [-1, 0): it never smooths (T3d)",
        "h = -1/2 lies in the interval whose every point loses at consensus, whatever the "
        "attention. Change the share: the green circle stays inside every disc.",
        ("-0.5",),
        {"share": 0.5},
        "GT2",
    ),
    Preset(
        "negative-smooths",
        "Negative and yet it smooths (T2b)",
        "h = -3/2 is negative, but beyond the end -2/(1 + a) = -4/3 of the disc: consensus "
        "wins. Drag it to the right across the edge.",
        ("-1.5",),
        {"share": 0.5},
        "GT4",
    ),
    Preset(
        "tie",
        "On the edge: a tie (T2b)",
        "h = -4/3 lies on the edge of the disc: both modes keep pace and HFC/LFC tends to a "
        "constant. In float64 such a point can only be called too close.",
        ("-1.3333333333333333",),
        {"share": 0.5},
        "GT3",
    ),
    Preset(
        "positive-sharpens",
        "A positive eigenvalue, and it does not smooth (T2d)",
        "h = 1 is there, and so is h = -4 with tokens that look away from themselves (a = "
        "-3/4): |1 + 3| = 4 beats |1 - 4| = 3.",
        ("1", "-4"),
        {"share": -0.75},
        "GT5",
    ),
    Preset(
        "real-part",
        "Real part in [-1, 0], and yet it smooths (T3)",
        "h = -1/2 ± 2i: the real part says nothing, the disc decides.",
        ("-0.5+2i",),
        {"share": 0},
        "GT8",
    ),
    Preset(
        "universal-edge",
        "On the circle that loses for every attention (T3c)",
        "h = -1/2 ± i/2 lies on |h + 1/2| = 1/2. Change the attention as you like.",
        ("-0.5+0.5i",),
        {"share": 0},
        "GT10",
    ),
    Preset(
        "finite-limit",
        "It does not smooth, and HFC/LFC has a finite limit (T1f)",
        "The attention is not doubly stochastic, so the winning mode has a mean of its own: "
        "HFC/LFC tends to 8√2/5 = 2.263 and does not grow on.",
        ("-0.5",),
        {"attention": "given", "n": 3, "depth": 80},
        "GT11",
    ),
    Preset(
        "defective-zero",
        "The defective zero (T2e, T6)",
        "All eigenvalues of H are 0, which lies in [-1, 0], and HFC/LFC still tends to 0, like "
        "one over the depth: the two zeros are one Jordan block. Untick 'Chain equal ones' and "
        "it stops.",
        ("0", "0"),
        {"share": 0, "chain": 1, "depth": 200},
        "GT12",
    ),
    Preset(
        "special-start",
        "A start that is not generic (T2e)",
        "Eigenvalues 0 and -1, H diagonal. From this start, alone, HFC/LFC halves at every "
        "layer; for almost every other start it tends to a constant.",
        ("0", "-1"),
        {"share": 0.5},
        "GT14",
    ),
    Preset(
        "tie-aligns",
        "A tie, and all tokens align (T4d)",
        "HFC/LFC tends to 1/3, not to 0, yet every cosine tends to 1: the angle does not tell.",
        ("-4", "-1"),
        {"share": -0.5},
        "GT19",
    ),
    Preset(
        "rank-three",
        "No rank collapse (T4c)",
        "One eigenvalue -1/2, five times, against a = 0.4, three times: the rank that is left "
        "is 3.",
        ("-0.5",) * 5,
        {"share": 0.4},
        "GT16",
    ),
    Preset(
        "rank-without-smoothing",
        "Rank collapses and nothing smooths (T4b)",
        "One real mode wins with tokens of both signs: cosines tend to ±1, the effective rank "
        "to 1, and HFC/LFC does not fall.",
        ("-0.3", "-0.7", "-0.9"),
        {"n": 8, "attention": "psd", "temperature": 1, "depth": 80},
    ),
    Preset(
        "rotating-tokens",
        "Attention with a complex spectrum (T3f)",
        "Each token looks at the next: the eigenvalues of A lie on a circle, and complex pairs "
        "of A and of H together keep the rank at two.",
        ("-0.5+0.4i", "-0.2+0.1i"),
        {"n": 8, "attention": "circle", "share": 0.8, "depth": 80},
    ),
    Preset(
        "product-smooths",
        "Every layer sharpens, the product smooths (T7b)",
        "H = diag(-1, -1/20) in the first layer: alone and repeated it does not smooth. But the"
        " weights turn by the angle of the 3-4-5 triangle from layer to layer, and HFC/LFC "
        "falls by .9187 a layer. Set the turn to 0 and it rises.",
        ("-1", "-0.05"),
        {"share": 0.5, "turn": TURN_3_4_5, "X": "1,2;3,5", "depth": 60},
    ),
    Preset(
        "causal",
        "A causal mask (T1h)",
        "Token i sees the tokens up to i: the eigenvalues of A are its diagonal, and the mean "
        "that counts is the first token.",
        ("0.4", "-0.6"),
        {"n": 8, "attention": "softmax", "temperature": 1, "causal": 1, "depth": 80},
    ),
    Preset(
        "heads",
        "Four heads, one of them decides",
        "Each head owns one eigenvalue. Head 1 has the only positive one: drag it below 0 and "
        "the verdict flips, though three heads never changed.",
        ("0.3", "-0.4", "-0.5", "-0.6"),
        {"n": 12, "attention": "softmax", "temperature": 1, "heads": 4, "depth": 60},
    ),
)
