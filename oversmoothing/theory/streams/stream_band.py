"""Which H never smooth, whatever the attention, under a given mixing (T13d).

Where the active eigenvalues are 1 + kappa h a (`Mixing.one_stream`), with iota the largest modulus
of an idle one: every h with |kappa h + 1/2| <= 1/2, h != 0 (T3c, real: -1 <= kappa h < 0) is beaten
by some mode for every positive A, so that HFC/LFC of generic streams does not tend to 0; and the
tokens' differences win strictly, for every positive A, iff moreover max_j |1 + kappa h_j| >= iota.
"""

from __future__ import annotations

from dataclasses import dataclass

from oversmoothing.theory.numbers.rounding import largest
from oversmoothing.theory.streams.mixing import Mixing

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
        words = f"where all eigenvalues h of H lie in {self._shown(self.never_smoothing)} no A > 0 "
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
