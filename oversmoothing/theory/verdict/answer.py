"""The verdict as an object: value, status, radii, limits, and why; one room for its sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from oversmoothing.theory.numbers.exact import Number, fraction_text
from oversmoothing.theory.spectra.layer_discs import (
    ALL_DIGITS,
    FEWEST_DIGITS,
    Spectrum,
    largest_modulus,
)
from oversmoothing.theory.support.files import json_number, json_value
from oversmoothing.theory.support.sizes import Complex
from oversmoothing.theory.verdict.formulas import Outcome

if TYPE_CHECKING:
    from oversmoothing.theory.depth.onset import Onset
    from oversmoothing.theory.depth.ratios import Ratio
    from oversmoothing.theory.verdict.cosines import CosineLimit, TokenLimits
    from oversmoothing.theory.verdict.leading import TokenGrowth
    from oversmoothing.theory.verdict.limits import Limits

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Pair:
    """An eigenvalue h of H and one a of A, with the multiplier 1 + h a, in complex128.

    consensus: a = 1, the mode in which all tokens are equal.
    """

    h: complex
    a: complex
    multiplier: complex
    consensus: bool


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer for one (A, H), and for one X_0 where it was given.

    verdict: for generic X_0 (outside a null set), SMOOTHING, NON_SMOOTHING, TIE (equal moduli, even
    where Jordan blocks then decide), TRIVIAL (n = 1), UNDEFINED (X_0 = 0) or UNDECIDED.
    status: "exact" (fractions), "certified" (proved for every layer that rounds to these floats),
    "estimated" (Arnoldi's method) or "numerical" (rounding decides). about: "cell", all that rounds
    to the input, or "point", the numbers themselves. What tends_to says of an A whose columns sum
    to 1 within rounding is about the doubly stochastic ones of its cell.
    rho_consensus, rho_quotient: the two radii; rate = rho_Q / rho_C per layer; margin = rho_C -
    rho_Q. In an exact answer they, and the distance, are a `Number`: a float with its bounds, and
    the fraction where it is one; about the point the radii are where float64 leaves it open.
    tends_to, limit, limit_rank: what HFC/LFC and the rank of X_L do, for X_0 where given, else for
    generic X_0; None where unknown or where the value depends on X_0.
    verdict_x0: the verdict over the modes X_0 contains (T4e).
    shows_from: the layer from which X_0 shows what its dominant modes decide: 0 where these are at
    least as large as the rest of X_L at every layer; else the first layer from which HFC/LFC falls
    in every layer (where it tends to 0; rises, to infinity), if there is one; else the first from
    which they are as large; beyond binary64 a `Number`. Each of 512 layers is looked at, of farther
    ones some (`theory.depth.onset`). None where rounding leaves it open.
    distance: to first order, the relative change of A and H that reaches another verdict; for ties,
    near-ties and what is undecided, else None.
    token_growth: for each token i its (rate, power), x_i(L) growing like L^power rate^L (T14e).
    cosine_limits: for each pair (i, j), i < j, what the cosine of x_i and x_j tends to (T14g, h);
    cos_min, cos_mean: over all pairs. None where X_0 is not given or it is not decided.
    attention, value: the spectra in float64 (without one copy of the eigenvalue 1 of A).
    digits: how many of both radii, and so of the rate, hold. vague: too few to say; `reason` has
    bounds, and margin is as good as ever. margin_error: how far rounding may have moved the margin,
    which is None where that hides it. pairs: what `dominant` gives, where fractions know it.

    >>> import oversmoothing
    >>> answer = oversmoothing.verdict(A=[["3/4", "1/4"], ["1/4", "3/4"]], H=[["-1/2"]])
    >>> answer
    Verdict(verdict='NON_SMOOTHING', status='exact', rho_consensus=0.5, rho_quotient=0.75)
    >>> answer.margin.text(), answer.tends_to
    ('-1/4', 'infinity')
    """

    verdict: Outcome
    status: str
    rho_consensus: float | None
    rho_quotient: float | None
    reason: str
    tends_to: str | None = None
    limit: float | None = None
    limit_rank: int | None = None
    verdict_x0: Outcome | None = None
    hfc_lfc: dict[int, Ratio] = field(default_factory=dict)
    has_x0: bool = False
    attention: Spectrum | None = None
    value: Spectrum | None = None
    shows_from: float | None = None
    distance: float | None = None
    token_growth: tuple[TokenGrowth | None, ...] | None = None
    cosine_limits: dict[tuple[int, int], CosineLimit | None] | None = None
    cos_min: CosineLimit | None = None
    cos_mean: CosineLimit | None = None
    digits: int = ALL_DIGITS
    point: bool = False
    pairs: tuple[Pair, ...] = ()
    margin_error: float = 0.0

    @property
    def vague(self) -> bool:
        """Whether rounding leaves too few digits of one radius to say them."""
        return self.digits < FEWEST_DIGITS

    @property
    def about(self) -> str:
        """The numbers themselves ("point"), or all that rounds to them ("cell")."""
        return "point" if self.point or self.status == "exact" else "cell"

    @property
    def rate(self) -> float | None:
        """r = rho_Q / rho_C (T5a), inf where rho_C alone is 0; None where both are."""
        c, q = self.rho_consensus, self.rho_quotient
        if c is None or q is None:
            return None
        zero = [x.exact == 0 if isinstance(x, Number) else not x for x in (c, q)]
        if zero[0]:
            return None if zero[1] else float("inf")
        if isinstance(c, Number) and isinstance(q, Number):
            return Number.of(Fraction(1)) if q is c else q.over(c)
        return q / c

    @property
    def margin(self) -> float | None:
        """rho_C - rho_Q."""
        c, q = self.rho_consensus, self.rho_quotient
        if isinstance(c, Number) and isinstance(q, Number):
            return Number.of(Fraction(0)) if q is c else c.minus(q)
        if c is None or q is None:
            return None
        proved = self.verdict in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING)
        return None if proved and abs(c - q) <= self.margin_error else c - q

    @property
    def dominant(self) -> tuple[Pair, ...]:
        """The pair of eigenvalues of largest |1 + h a|: of consensus, of another mode, or both.

        Both where the two tie or are not told apart; none where the spectra are not known.
        """
        if self.pairs or self.attention is None or self.value is None or self.rho_consensus is None:
            return self.pairs
        c, q = self.rho_consensus, -1.0 if self.rho_quotient is None else self.rho_quotient
        sign = 0 if self.verdict is Outcome.UNDECIDED and q >= 0 else (c > q) - (c < q)
        # Floats may agree where the radii do not.
        sign = {Outcome.SMOOTHING: 1, Outcome.NON_SMOOTHING: -1}.get(self.verdict, sign)
        sides = (np.array([1.0 + 0j]), True), (self.attention.values, False)
        return tuple(_largest(a, self.value, x) for a, x in sides[sign < 0 : 1 + (sign <= 0)])

    def _rate_in_words(self) -> str:
        """The rate in ten digits, or as many as hold; by its distance from 1 where none shows."""
        if self.rate is None:
            return "0/0, which is no number,"
        words, c, margin = f"{self.rate:.{min(10, self.digits)}g}", self.rho_consensus, self.margin
        if margin is None or c is None:
            return "1 within rounding"
        if words != "1" or self.verdict is Outcome.UNDECIDED:
            return words
        if isinstance(c, Number) and isinstance(margin, Number):
            apart = margin.size().over(c)
            return f"1 {'-' if margin.high > 0 else '+'} {apart:.3g}" if apart.high else "1"
        return f"1 {'-' if margin > 0 else '+'} {abs(margin) / c:{self._form}}" if margin else "1"

    @property
    def _form(self) -> str:
        """Three digits, or as many as rounding leaves of the margin."""
        hold = abs(self.margin or 0) / self.margin_error if self.margin_error else 1e3
        return f".{1 + (hold >= 1e2) + (hold >= 1e3)}g"

    def __str__(self) -> str:
        """The answer in sentences: the verdict, the radii, why, and HFC/LFC at the depths asked."""
        numbers = ""
        if self.vague:
            # What rounding decides has no margin either.
            if self.margin is not None and self.verdict is not Outcome.UNDECIDED:
                numbers = f"margin rho_C - rho_Q = {self.margin:{self._form}}"
        elif self.rho_consensus is not None and self.rho_quotient is not None:
            same = self.verdict_x0 in (None, self.verdict)
            of_what = rate_of(self.verdict, self.tends_to) if same else ""
            hidden = "hidden by it" + _SHOWN * (not self.point)
            margin = hidden if self.margin is None else f"{self.margin:{self._form}}"
            numbers = (
                f"{radii(self.rho_consensus, self.rho_quotient, self.digits)}: rate rho_Q/rho_C = "
                f"{self._rate_in_words()} a layer{of_what}, margin {margin}"
            )
        more = [f"after {L:,} layer{'s' * (L != 1)}: {x}" for L, x in self.hfc_lfc.items()]
        start = "" if self.verdict_x0 is None else f"for this X_0: {self.verdict_x0}"
        if Outcome.TIE is (self.verdict_x0 or self.verdict) and self.tends_to:
            start += f"{': ' if start else 'from almost every X_0 '}HFC/LFC {_TENDS[self.tends_to]}"
        said = in_lines(self.verdict, self.status, [start, numbers], self.reason, more)
        return said if self.rate is not None else vanishing(said, not self.margin_error)

    def __repr__(self) -> str:
        return (
            f"Verdict(verdict='{self.verdict}', status='{self.status}', "
            f"rho_consensus={self.rho_consensus}, rho_quotient={self.rho_quotient})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the sentences."""
        from html import escape

        _, first, *others = (escape(line) for line in str(self).splitlines())
        return f"<p><b>{first}</b><br>{'<br>'.join(others)}</p>"

    def to_json_object(self) -> dict[str, Any]:
        """The fields of `oversmoothing verdict --json`: unknown is null, infinite "inf"/"-inf"."""
        result: dict[str, Any] = {"schema_version": SCHEMA_VERSION} | self._in_json(
            "verdict", "status", "about", "rho_consensus", "rho_quotient", "rate", "margin",
            "reason", "tends_to", "limit", "limit_rank", "distance", "dominant",
        )  # fmt: skip
        known = "rho_consensus rho_quotient rate margin limit distance shows_from"
        values = {f"{name}_exact": getattr(self, name) for name in known.split()}
        result |= {name: x.text() for name, x in values.items() if isinstance(x, Number)}
        if self.has_x0:
            result |= self._in_json("verdict_x0", "shows_from")
            squared = {str(k): r.squared for k, r in self.hfc_lfc.items() if r.squared is not None}
            result["hfc_lfc_squared"] = {k: fraction_text(x) for k, x in squared.items()}
            result["hfc_lfc"] = {str(k): json_number(r.value) for k, r in self.hfc_lfc.items()}
            result["log_hfc_lfc"] = {str(k): json_number(r.log) for k, r in self.hfc_lfc.items()}
            result |= self._in_json("token_growth")
            result["cosine_limits"] = self.cosine_limits and [
                {"tokens": list(pair)} | (json_value(limit) or {"tends_to": None, "values": []})
                for pair, limit in self.cosine_limits.items()
            ]
            result |= self._in_json("cos_min", "cos_mean")
        return result

    def _in_json(self, *names: str) -> dict[str, Any]:
        return {name: json_value(getattr(self, name)) for name in names}


# Does it smooth? And how that is known.
_ANSWERS = {
    Outcome.SMOOTHING: "yes, from almost every X_0 the differences between tokens vanish beside "
    "their mean",
    Outcome.NON_SMOOTHING: "no, from almost every X_0 the differences between tokens do not vanish "
    "beside their mean",
    Outcome.TIE: "equal tokens and differences grow by the same factor, so it does not decide",
    Outcome.TRIVIAL: "there is nothing to smooth, for the tokens do not differ",
    Outcome.UNDEFINED: "there is no answer, for all tokens are 0",
    Outcome.UNDECIDED: "it is not known",
}
_GONE = "equal tokens and differences both become exactly 0, from every X_0"
_PERHAPS_GONE = (
    "equal tokens and differences grow by the same factor, 0 perhaps (then each state "
    "becomes exactly 0; else this does not decide)"
)
_TENDS = {"zero": "tends to 0", "infinity": "tends to infinity", "oscillates": "oscillates",
          "constant": "tends to a constant"}  # fmt: skip
_SHOWN = ": exact_binary=True (--exact-binary) shows that of these very numbers up to n, d = 256"
_KNOWN = {
    "exact": " [proved: exact arithmetic]",
    "certified": " [proved: certified by intervals]",
    "estimated": " [not proved: estimated eigenvalues]",
    "numerical": " [not proved: numerical, rounding could change it]",
}


def vanishing(said: str, surely: bool) -> str:
    """The lines of a tie at radius 0, or at one that rounding does not tell from 0."""
    return said.replace(_ANSWERS[Outcome.TIE], _GONE if surely else _PERHAPS_GONE)


def in_lines(
    verdict: Outcome, status: str, numbers: Sequence[str], why: str, more: Sequence[str]
) -> str:
    """The answer and how it is known, then the numbers, the reasons, and what else there is."""
    known = "" if verdict is Outcome.UNDECIDED else _KNOWN[status]
    reasons = re.split(r"(?<=\.) (?=[A-Z])", why)
    lines = [f"{verdict}: {_ANSWERS[verdict]}{known}", *filter(None, numbers), *reasons, *more]
    return "\n".join(["Does it smooth?", *(f"  {line}" for line in lines)])


def radii(rho_c: float, rho_q: float, digits: int = ALL_DIGITS) -> str:
    """By what a layer multiplies the two kinds of states, in six digits if so many hold."""
    form = f".{min(6, digits)}g"
    return (
        "a layer multiplies equal tokens (consensus) and differences between tokens by "
        f"rho_C = {rho_c:{form}}, rho_Q = {rho_q:{form}}"
    )


def rate_of(verdict: Outcome, tends_to: str | None = None) -> str:
    """What the rate is a rate of (T5a); what HFC/LFC tends to, if known, `limit_words` says."""
    itself = {
        None: "; HFC/LFC itself may level off",
        "constant": "; HFC/LFC itself levels off",
        "oscillates": "; HFC/LFC itself oscillates",
    }.get(tends_to, "")
    return {
        Outcome.SMOOTHING: " (HFC/LFC falls by this factor in the long run)",
        Outcome.NON_SMOOTHING: f" (differences outgrow consensus by it{itself})",
    }.get(verdict, "")


def _largest(attention: Complex, value: Spectrum, consensus: bool) -> Pair:
    _, i, j = largest_modulus(attention, value.values)
    h, a = complex(value.values[j]), complex(attention[i])
    return Pair(h, a, 1 + h * a, consensus)


ONE_TOKEN = "one token only (n = 1): HFC is 0 at every depth, there is nothing to smooth."
CLOSE_EIGENVALUES = (
    "eigenvalues agree to more digits than this tool parts: rho_C and rho_Q are not compared."
)
ZERO_STATE = "X_0 = 0: every metric is 0/0 at every depth."
AT_CONSENSUS = " This X_0 is at consensus already (PX_0 = 0) and stays there."
WRITE_EXACTLY = (
    'Write the entries as fractions ("-4/3") for an exact decision; for a head of rank r < d pass '
    "W=(W_V, W_proj)."
)
VANISHES = " From this X_0 the state becomes exactly 0."
ILL_CONDITIONED = " The eigenvectors are too ill-conditioned to say which modes this X_0 contains."
NOT_SHOWN = (
    " Whether this X_0 contains the modes that decide is not shown in floats: write the entries as "
    "fractions."
)
SETTLED_AS_GIVEN = (
    " What is said of this X_0 is about these very numbers, not about all that rounds to them."
)
START_AS_GIVEN = (
    " What is said of this X_0 is about its binary numbers alone: write all entries as fractions "
    '("1/3") if those are meant.'
)
TOO_MANY_MODES = " This X_0 has too many modes to say exactly which of them it contains."


def left_out_for_cost(seconds: float) -> str:
    """What a start with many modes is not asked, and how to ask for it."""
    return (
        " Left out for its cost: from which layer on this X_0 shows that, and what is not told of "
        f"HFC/LFC and tokens. thorough=True (--thorough) computes it, in about {_time(seconds)}."
    )


# Seconds of a verdict in floats over n^3 + d^3, without an X_0 and with one: one core of 2024.
_OF_SPECTRA, _OF_START = 2e-9, 7e-9
# Larger layers say before they are decided what that takes.
LARGE = 512


def announced(n: int, d: int, has_x0: bool) -> str:
    """What a verdict on a layer in floats takes, and leaves out; empty for layers up to LARGE."""
    if max(n, d) <= LARGE:
        return ""
    seconds = (_OF_START if has_x0 else _OF_SPECTRA) * (float(n) ** 3 + float(d) ** 3)
    tokens = ", and what single tokens do" if has_x0 else ""
    return (
        f"n = {n} and d = {d} take about {_time(seconds)}. Left out at this size: exact arithmetic "
        "on fractions (done up to n, d = 48), balls where discs leave the verdict open (up to 64; "
        f"--exact-binary: up to 256){tokens}."
    )


def _time(seconds: float) -> str:
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {name}"
    return f"{max(1.0, seconds):.2g} seconds"


# Fewer layers than this before the verdict shows are not worth a sentence.
_SOON = 10


def shown(begins: Onset | None) -> str:
    """The sentence on the finite horizon: how long this X_0 hides what decides (T4e)."""
    if begins is None or begins.layer < _SOON:
        return ""
    from oversmoothing.theory.depth.onset import FALLS, OUTWEIGHS, RISES

    how = {
        FALLS: "HFC/LFC falls in every layer only from about layer",
        RISES: "HFC/LFC rises in every layer only from about layer",
        OUTWEIGHS: "they outweigh the others only from about layer",
    }[begins.how]
    return f" The dominant modes do not lead this X_0 from the start: {how} {begins.layer:.3g} on."


def near(distance: float) -> str:
    """The sentence on the nearest other verdict."""
    return (
        f" A relative change of {distance:.2g} in A and H is enough, to first order, to reach the "
        "boundary to another verdict."
    )


def number(z: complex) -> str:
    """An eigenvalue in six digits, without an imaginary part where rounding made it."""
    if abs(z.imag) <= 1e-15 * max(1.0, abs(z)):
        return f"{z.real:.6g}"
    return f"{z.real:.6g}{z.imag:+.6g}i"


def compared(name: Outcome, rho_c: str, rho_q: str, consensus: str, quotient: str) -> str:
    """What is said of two radii, each as it is known or "", and the modes they belong to."""
    rho_c, rho_q = (f" = {x}" if x else "" for x in (rho_c, rho_q))
    if name is Outcome.SMOOTHING:
        return (
            f"consensus dominates: |1 + h|{rho_c} ({consensus}) exceeds every other mode, "
            f"the largest being |1 + h a|{rho_q} ({quotient})."
        )
    if name is Outcome.NON_SMOOTHING:
        return (
            f"consensus does not dominate: |1 + h a|{rho_q} ({quotient}) exceeds "
            f"|1 + h|{rho_c}, the largest at consensus ({consensus})."
        )
    return (
        f"tie in modulus: |1 + h|{rho_c} at consensus ({consensus}) equals the largest "
        f"|1 + h a| of the other modes ({quotient})."
    )


def repeated_one(classes: int, heads: int = 1) -> str:
    """What follows where the eigenvalue 1 of A occurs more than once."""
    # A head alone may part the tokens further than all together.
    which = "A occurs" if heads == 1 else "every A_h occurs at least"
    return (
        f" The eigenvalue 1 of {which} {classes} times ({classes} groups of tokens that attend "
        "only within): consensus is not the only fixed family."
    )


def limit_words(behaviour: Limits, for_x0: bool) -> str:
    """What HFC/LFC and the rank of X_L do, in a sentence."""
    start = "this X_0" if for_x0 else "generic X_0"
    rank = "" if behaviour.limit_rank is None else f", rank of the limit {behaviour.limit_rank}"
    if behaviour.tends_to is None:
        return ""
    if behaviour.tends_to == "constant":
        value = "a constant" if for_x0 else "a constant that depends on X_0"
        if behaviour.limit is not None:
            value = f"{behaviour.limit:.6g}"
        return f" For {start} HFC/LFC tends to {value}{rank}."
    said = _TENDS[behaviour.tends_to]
    if behaviour.reached:
        value = "0" if behaviour.tends_to == "zero" else "infinite"
        when = "at every depth" if behaviour.reached == "every" else "from some depth on"
        said = f"is {value} {when}"
    return f" For {start} HFC/LFC {said}{rank}."


def token_words(tokens: TokenLimits) -> str:
    """The sentences on single tokens and their cosines, of what is decided (T14e-T14h)."""
    growths, cosines = tokens.token_growth, tokens.cosine_limits
    if growths is None or not cosines:
        return ""
    words = ""
    known = [growth for growth in growths if growth is not None]
    gone = [i for i, growth in enumerate(growths) if growth and not growth.rate]
    if len(set(known)) > 1 and len(known) == len(growths):
        each = ", ".join(map(_order, known[:_FEW])) + (", ..." if len(known) > _FEW else "")
        words = f" Its tokens do not all grow alike: like {each}."
    if gone and len(gone) < len(growths):
        words += f" Token {gone[0]} is exactly 0 from some depth on."
    no_limit = sum(x is not None and x.tends_to == "oscillates" for x in cosines.values())
    if no_limit:
        words += f" The cosines of {no_limit} of {len(cosines)} pairs of tokens oscillate."
    return words + _cosine("smallest", tokens.cos_min) + _cosine("mean", tokens.cos_mean)


# So many tokens, or limits by residue, are named one by one.
_FEW = 6


def _order(growth: TokenGrowth) -> str:
    power = {0: "", 1: "L "}.get(growth.power, f"L^{growth.power} ")
    return f"{power}{growth.rate:.6g}^L" if growth.rate else "0"


def _cosine(name: str, limit: CosineLimit | None) -> str:
    if limit is None or not limit.values:
        return ""
    shown = ["none" if v is None else f"{v:.6g}" for v in limit.values]
    if limit.tends_to == "constant":
        return f" The {name} cosine between tokens tends to {shown[0]}."
    listed = ", ".join(shown[:_FEW]) + (", ..." if len(shown) > _FEW else "")
    return f" The {name} cosine tends to {listed} by the residue of L modulo {len(shown)}."
