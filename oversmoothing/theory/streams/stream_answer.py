"""The answer on several streams: verdict, radii, modes, what the streams do, and which H are safe.

A band of H never smooths under a given mixing, whatever the attention (T13d). Where the active
eigenvalues are 1 + kappa h a (`Mixing.one_stream`), with iota the largest modulus of an idle one,
every h with |kappa h + 1/2| <= 1/2, h != 0 (T3c, real: -1 <= kappa h < 0) is beaten
by some mode for every positive A, so that HFC/LFC of generic streams does not tend to 0; and the
tokens' differences win strictly, for every positive A, iff moreover max_j |1 + kappa h_j| >= iota.
"""

from dataclasses import dataclass
from typing import Any

from oversmoothing.theory.numbers.rounding import largest
from oversmoothing.theory.streams.streams import Mixing
from oversmoothing.theory.support.files import json_number, json_value
from oversmoothing.theory.verdict.answer import in_lines, number, radii, rate_of
from oversmoothing.theory.verdict.formulas import Outcome

_BITS = 128


@dataclass(frozen=True)
class SafeBand:
    """Ends of intervals of real h, 0 itself left out. gain: kappa; idle: iota.

    never_smoothing: all eigenvalues of H there: HFC/LFC does not tend to 0, whatever A > 0.
    strict: one of them here, too: differences between tokens win for every A > 0; None where there
    is no such h (iota >= 1). For kappa < 0 both lie right of 0.
    """

    gain: float
    idle: float
    never_smoothing: tuple[float, float]
    strict: tuple[float, float] | None

    def __str__(self) -> str:
        words = f"Where all eigenvalues h of H lie in {self._shown(self.never_smoothing)} no A > 0 "
        words += "smooths"
        if self.strict is None:
            return (
                f"{words}; but idle streams keep up with every such mode (largest idle modulus "
                f"{self.idle:.6g}), so the tokens' differences win for every A > 0 nowhere there."
            )
        return (
            f"{words}; the tokens' differences win for every A > 0 iff one of them lies in "
            f"{self._shown(self.strict)}."
        )

    def _shown(self, ends: tuple[float, float]) -> str:
        return f"[{ends[0]:.6g}, 0)" if self.gain > 0 else f"(0, {ends[1]:.6g}]"


def safe_band(mixing: Mixing) -> SafeBand | None:
    """The band of h; None where R, p and q are not those of one stream (no band is known there).

    None too where the gain is less than any float.
    """
    kappa = mixing.one_stream
    if kappa is None:
        return None
    iota = float(largest(abs(x.ball(_BITS)) for x in mixing.idle_values).mid())
    gain = float(kappa)
    if gain == 0:
        return None  # its ends are beyond the range of floats
    strict = _ordered(-(1 - iota) / gain) if iota < 1 else None
    return SafeBand(gain, iota, _ordered(-1 / gain), strict)


def _ordered(end: float) -> tuple[float, float]:
    """The interval between 0 and the end."""
    return min(end, 0.0), max(end, 0.0)


SCHEMA_VERSION = 1


@dataclass(frozen=True)
class StreamMode:
    """A mode of largest modulus.

    side: "consensus", "quotient" or, for an eigenvalue that every family has, "idle". multiplier:
    mu. h, a: its pair, mu an eigenvalue of R + h a p q^T (None for idle ones). streams [s]: what
    each stream has of it, the largest 1 (None for idle ones, and where the streams are those that
    equal ones reach).
    """

    side: str
    multiplier: complex
    h: complex | None
    a: complex | None
    streams: tuple[complex, ...] | None


@dataclass(frozen=True)
class StreamVerdict:
    """The answer for A, H and a mixing, for a generic start (see `Streams.start`).

    verdict, status, rho_consensus, rho_quotient: as for one stream, of the n tokens with all
    streams; a radius is None where rounding leaves no digit of it. dominant: the modes of largest
    modulus. disagreement: the rate at which differences between streams grow; streams_become_one:
    whether it is less than the largest of all, so that the streams agree ever better beside their
    size; None where it is not decided. agree_from: the layer from which streams differ by at most
    `agree_to` of their first difference, for every branch (T13b); None where no certificate holds.
    band: which h never smooth here, if known.
    """

    verdict: Outcome
    status: str
    rho_consensus: float | None
    rho_quotient: float | None
    reason: str
    dominant: tuple[StreamMode, ...] = ()
    disagreement: float | None = None
    streams_become_one: bool | None = None
    agree_to: float = 1e-6
    agree_from: int | None = None
    band: SafeBand | None = None

    @property
    def rate(self) -> float | None:
        """rho_Q / rho_C, inf where rho_C = 0."""
        if self.rho_consensus is None or self.rho_quotient is None:
            return None
        return self.rho_quotient / self.rho_consensus if self.rho_consensus else float("inf")

    def __str__(self) -> str:
        numbers = ""
        if self.rho_consensus is not None and self.rho_quotient is not None:
            numbers = (
                f"{radii(self.rho_consensus, self.rho_quotient)}: "
                f"rate rho_Q/rho_C = {self.rate:.6g} a layer{rate_of(self.verdict)}"
            )
        return in_lines(self.verdict, self.status, [numbers], self.reason, self.stream_words())

    def stream_words(self) -> list[str]:
        """Whether the streams become one, from where on, and which h are safe."""
        lines = []
        if self.disagreement is not None:
            does = {
                True: "less than the state: the streams become one",
                False: "as fast as the state: the streams stay apart",
                None: "perhaps as fast as the state: whether they become one is not known",
            }[self.streams_become_one]
            lines.append(
                f"Differences between streams grow by {self.disagreement:.6g} a layer, {does}."
            )
        if self.agree_from is not None:
            lines.append(
                f"From layer {self.agree_from} on the streams differ by at most {self.agree_to:g} "
                "of their initial difference, whatever A, H and the branch."
            )
        if self.band is not None:
            lines.append(str(self.band))
        return lines

    def to_json_object(self) -> dict[str, Any]:
        """The fields of `oversmoothing verdict --json`, by `json_value`, and the rate."""
        fields = {name: json_value(x) for name, x in vars(self).items()}
        first = ("verdict", "status", "rho_consensus", "rho_quotient")
        numbers = {name: fields[name] for name in first} | {"rate": json_number(self.rate)}
        return {"schema_version": SCHEMA_VERSION} | numbers | fields


def reason_of(outcome: Outcome, rho_c: str, rho_q: str, modes: list[StreamMode]) -> str:
    """What was compared, and the mode that decides."""
    if outcome is Outcome.TRIVIAL:
        return "one token only (n = 1): HFC is 0 at every depth, there is nothing to smooth."
    if outcome is Outcome.UNDECIDED:
        return (
            f"the radii agree to over 1024 bits (rho_C = {rho_c}, rho_Q = {rho_q}), and "
            "their equality takes polynomials of a degree that is not factored here."
        )
    if outcome is Outcome.TIE:
        idle = any(mode.side == "idle" for mode in modes) or not modes
        why = "an idle eigenvalue, in every family, is at least all others" if idle else "equal"
        return f"tie in modulus at {rho_c}: {why}."
    side = "consensus dominates" if outcome is Outcome.SMOOTHING else "consensus does not dominate"
    words = f"{side}: rho_C = {rho_c}, rho_Q = {rho_q}"
    if modes:
        mode = modes[0]
        if mode.h is not None and mode.a is not None:
            words += (
                f"; the largest multiplier {number(mode.multiplier)} belongs to h = "
                f"{number(mode.h)}, a = {number(mode.a)}"
            )
        if mode.streams is not None:
            words += f" with the streams in the ratio {' : '.join(number(x) for x in mode.streams)}"
    return f"{words}."
