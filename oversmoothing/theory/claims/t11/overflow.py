"""T11.5: naive iteration overflows after about a thousand layers; the ratio never does."""

import math
from fractions import Fraction

import flint
import numpy as np

from oversmoothing.theory.numbers.balls import at_precision
from oversmoothing.theory.proofs.kit import AA, Claim, by, exact, given, verdict
from oversmoothing.theory.support.arrays import Array

_DEPTH = 10**6
# log(1/3) + 10^6 log(3/4) = -287683.171064069595549, rounded once.
_PREDICTED = -287683.1710640696


def naive_layers(A: Array, h: float, x: Array, depth: int) -> list[Array]:
    """The states x + h A x at layers 0 ... depth, with nothing split off."""
    states = [x]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(depth):
            states.append(states[-1] + h * (A @ states[-1]))
    return states


def scaled_row(h: float, truth: float) -> by.Measurement:
    """log |y_L/(2 c_L)| after 20000 layers y' = y + h y/2, c' = c + h c from (1, 3/2).

    Powers of two are split off at each layer.

    For two tokens and a symmetric A with a = 1/2: HFC = |y|/sqrt 2 with y = x_1 - x_2, and
    LFC = sqrt 2 |c|. One rounding a layer in y, none in c, then those of the logarithm.
    """
    depth, exponent, y, c = 20000, 0, 1.0, 1.5
    for _ in range(depth):
        y, shift_y = math.frexp(y + h * 0.5 * y)
        c, shift_c = math.frexp(c + h * c)
        exponent += shift_y - shift_c
    found = math.log(abs(y / (2 * c))) + exponent * math.log(2)
    tolerance = depth * 2.0**-53 + abs(truth) * 2.0**-52
    return by.Measurement(f"log HFC/LFC at L = {depth}", truth, found, tolerance)


def _closed_form() -> None:
    """[2; instance] A = [[3, 1], [1, 3]]/4 is symmetric: HFC_L = (3/2)^L HFC_0, LFC_L = 2^L LFC_0,
    and HFC_0/LFC_0 = 1/3."""
    X = exact.layer(AA, exact.matrix("1"), exact.matrix("1; 2"), 9)
    hfc, lfc = exact.squared_norms(X)
    assert hfc / lfc == Fraction(1, 9) * Fraction(3, 4) ** 18
    with at_precision(192):
        log = flint.arb(flint.fmpq(3, 4)).log() * _DEPTH - flint.arb(3).log()
        assert float(log.mid()) == _PREDICTED


def _naive() -> None:
    """[1, 2; instance] The largest binary64 number has the logarithm 709.8, so that |mu|^L passes
    it after that over log|mu| layers. The state itself leaves the range at layer 1024."""
    # x ~ 3/2 2^L: finite at layer 1023, infinite from 1024 on, and then inf - inf.
    states = naive_layers(np.array([[0.75, 0.25], [0.25, 0.75]]), 1.0, np.array([1.0, 2.0]), 1200)
    finite = [bool(np.isfinite(x).all()) for x in states]
    assert finite.index(False) == 1024 and not any(finite[1024:])


def _deep() -> None:
    """[2, 3; instance] (Y, c) are linear, so each can be divided by a power of two at every layer,
    exactly; the two exponents differ in the end by log2 of the ratio. At 10^6 layers the theory
    returns every digit of the logarithm."""
    found = verdict(A=AA, H=exact.matrix("1"), X0=exact.matrix("1; 2"), depth=[_DEPTH])
    assert found.verdict == "SMOOTHING"
    assert found.hfc_lfc[_DEPTH].log == _PREDICTED
    assert found.hfc_lfc[_DEPTH].value == 0.0  # beyond a float, and said so by the logarithm


@given.condition("the diagonal of H is positive", given.case(H="-1"))
def _grows(instance: given.Instance) -> bool:
    return all(row[j] > 0 for j, row in enumerate(instance.H))


CLAIM = Claim(
    name="T11.5",
    clauses=(
        "Where |mu| > 1, X_L overflows binary64 after about 710/log|mu| layers, though HFC/LFC "
        "is harmless:",
        "h = 1, a = 1/2, X_0 = (1, 2) is infinite from layer 1024 on, while log(HFC/LFC) = L "
        "log(3/4) - log 3, -287683.1710640695955 at L = 10^6.",
        "So Y and c are iterated with powers of two split off, or propagated in balls, and the "
        "logarithm of the ratio is returned.",
    ),
    latex=r"h=1,\ a=\tfrac12,\ X_0=(1,2):\quad \log\frac{\|\mathrm{HFC}_L\|}{\|\mathrm{LFC}_L\|} = "
    r"L\log\tfrac34 - \log 3",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(_grows,),
    evidence=(
        by.written("two scales", _closed_form, _naive, _deep),
        by.Simulated(
            "scaled iteration in float64: powers of two split off at every layer",
            lambda effort: [scaled_row(1.0, -20000 * math.log(4 / 3) - math.log(3))],
        ),
    ),
)
