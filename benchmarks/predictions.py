"""What the theory predicts against what is measured: rates, depths, thresholds of steering.

Rates and depths are predicted from the two spectra in float64 and measured on X_L at 1200 digits
between two depths, since float64 sees nothing beyond 1e-16 (T4c, T5).
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.benchmark import Row, measurement
from benchmarks.steering import steer as thresholds
from oversmoothing.theory.depth import recurrence as measured
from oversmoothing.theory.depth.bounds import certified_depth_in_balls, rank_rate
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.numbers.exact import Matrix, exact_stationary, normalised_rows, to_float
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, eigenvalues
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import dominance

_EPS = Fraction(1, 1000)
# Slopes between two depths differ from the rate by O(1/L) where phases interfere.
SLOPE_TOLERANCE = 5e-3


@dataclass(frozen=True)
class RateRow:
    """One quantity of one case, predicted and measured.

    kind: "equal" (they should agree; slopes only to about 1/L where a Jordan block or phases
    interfere) or "bound" (measured must not exceed predicted).
    """

    case: str
    quantity: str
    predicted: float
    measured: float
    kind: str = "equal"

    @property
    def relative_error(self) -> float:
        """|measured/predicted - 1|."""
        return abs(self.measured / self.predicted - 1) if self.predicted else abs(self.measured)

    @property
    def holds(self) -> bool:
        """A bound is not exceeded; equal quantities agree to SLOPE_TOLERANCE."""
        if self.kind == "bound":
            return self.measured <= self.predicted * (1 + 1e-12)
        return self.relative_error <= SLOPE_TOLERANCE


_Case = tuple[str, Matrix, Matrix, Matrix]  # a name, A, H and X_0


def rate_rows(seed: int = 0) -> list[RateRow]:
    """The whole table: random cases from `seed`, a near-tie and a non-normal pair. About 2 s."""
    rows: list[RateRow] = []
    for case, depths in _cases(seed):
        rows += (
            _slopes(*case, depths) + _effective_rank(*case) + _depth(*case) + _transient(*case[:3])
        )
    return rows


def _cases(seed: int) -> list[tuple[_Case, tuple[int, int]]]:
    cases = []
    depths = 400, 1200
    for k, (n, d, shift) in enumerate(((4, 3, "3/2"), (3, 2, "1/2"), (5, 4, "2"), (3, 3, "1"))):
        A, H, X0 = measured.random_case(100 * seed + k, n, d, Fraction(shift))
        cases.append(((f"random {k}, n = {n}, d = {d}", A, H, X0), depths))
    A, _, X0 = measured.random_case(100 * seed + 10, 4, 3, Fraction(0))
    near = [[Fraction(0)] * 3 for _ in range(3)]
    for j, value in enumerate(("1", "99/100", "1/2")):
        near[j][j] = Fraction(value)
    cases.append((("near-tie of two h", A, near, X0), (1000, 2000)))
    steep = [
        [Fraction(1 if i == j else 20 if j == i + 1 else 0) for j in range(3)] for i in range(3)
    ]
    for j, value in enumerate(("1", "4/5", "3/5")):
        steep[j][j] = Fraction(value)
    cases.append((("non-normal H", _slow(4), steep, X0), depths))
    return cases


def _slow(n: int) -> Matrix:
    """A non-normal A that mixes slowly: each token attends to itself and to the one before it."""
    return normalised_rows(
        [[Fraction(60 if i == j else 37 if j == i - 1 else 1) for j in range(n)] for i in range(n)]
    )


def _slopes(name: str, A: Matrix, H: Matrix, X0: Matrix, depths: tuple[int, int]) -> list[RateRow]:
    a, h = attention_spectrum(to_float(A)), eigenvalues(to_float(H))

    def slope(measure: measured.Measure) -> float:
        return measured.slope(measure, A, H, X0, depths)

    where = f"layers {depths[0]} to {depths[1]}"
    return [
        RateRow(
            name,
            f"r of HFC/LFC, {where}",
            dominance(np.array(a), np.array(h)).rate,
            slope(measured.hfc_lfc),
        ),
        RateRow(
            name,
            f"r_sigma of sigma_2/sigma_1, {where}",
            rank_rate(a, h),
            slope(measured.sigma_ratio),
        ),
        RateRow(
            name,
            f"sqrt of the rate of max 1 - |cos|, {where}",
            rank_rate(a, h),
            float(np.sqrt(slope(measured.worst_angle_gap))),
        ),
    ]


def _effective_rank(name: str, A: Matrix, H: Matrix, X0: Matrix) -> list[RateRow]:
    """At the first depth (of powers of 2) where sigma_2/sigma_1 < 1e-4: float64 still holds it."""
    depths = [2**k for k in range(13)]
    for depth, X in measured.states(A, H, X0, depths).items():
        sigma = measured.singular_values(X)
        with at_precision(measured.BITS):
            ratios = [float((s / sigma[0]).mid()) for s in sigma[1:]]
        if ratios and ratios[0] < 1e-4:
            excess = float(measured.effective_rank_excess(X).mid())
            # S + E, and E^2/2 more, with S = sum s_i and E = sum s_i log(1/s_i) (T5c).
            s = np.array([x for x in ratios if x > 0])
            E = float(-(s * np.log(s)).sum())
            sums = {1: s.sum() + E, 2: s.sum() + E + E * E / 2}
            return [
                RateRow(name, f"erank - 1 to order {k}, layer {depth}", float(total), excess)
                for k, total in sums.items()
            ]
    return []


def _depth(case: str, A: Matrix, H: Matrix, X0: Matrix) -> list[RateRow]:
    """Certified depth against the actual one."""
    bound = certified_depth_in_balls(A, H, X0, _EPS)
    if bound is None:
        return []
    pi = exact_stationary(A, [list(range(len(A)))])
    ratios = ball_ratios(A, H, X0, pi, range(bound.depth + 1))
    above = [L for L, r in ratios.items() if r.value is None or r.value > _EPS]
    actual = max(above, default=-1) + 1
    name = "depth to HFC/LFC <= 1/1000: certified, actual"
    return [RateRow(case, name, float(bound.depth), float(actual), "bound")]


def _transient(case: str, A: Matrix, H: Matrix) -> list[RateRow]:
    """max over 400 layers of ||T^L||/rho_Q^L, against kappa(V_H) kappa(V_B)."""
    layer = to_float(A), to_float(H)
    vectors = (np.linalg.eig(M)[1] for M in (quotient(layer[0]), layer[1]))
    bound = float(np.prod([np.linalg.cond(V) for V in vectors]))
    name = "transient max ||T^L||/rho_Q^L over 400 layers, at most the kappas"
    return [RateRow(case, name, bound, transient_growth(*layer, 400), "bound")]


def transient_growth(A: Array, H: Array, depth: int) -> float:
    """max over L <= depth of ||T^L||_2 / rho_Q^L, T = I + H (x) B: 1 where T is normal (T5d).

    At most kappa(V_H) kappa(V_B).
    """
    B = quotient(A)
    T = np.eye(len(B) * len(H)) + np.kron(H, B)
    rho = float(np.abs(np.linalg.eigvals(T)).max())
    power, largest = np.eye(len(T)), 1.0
    for _ in range(depth):
        power = power @ T / rho
        largest = max(largest, float(np.linalg.norm(power, 2)))
    return largest


# Of the thresholds, that must be right.
REQUIRED = 0.95


@measurement("rates", "rates and depths, measured over predicted (T4c, T5)")
def rates() -> list[Row]:
    rows = []
    for each in rate_rows():
        name = f"rates/{each.case}: {each.quantity}"
        note = f"predicted {each.predicted:.6g}, measured {each.measured:.6g}"
        if each.kind == "bound":
            rows.append(Row(name, each.measured / each.predicted, note=note, at_most=1 + 1e-12))
        else:
            ratio, most = 1 + each.relative_error, 1 + SLOPE_TOLERANCE
            rows.append(Row(name, ratio, note=f"{note}: 1 + relative error", at_most=most))
    return rows


@measurement("steer", "share of drawn layers whose threshold of steering is predicted rightly")
def steer() -> list[Row]:
    result = thresholds()
    said = result.words().splitlines()
    share = float(result.table["right"].mean())
    first = Row("steer/share right", share, note=said[0], at_least=REQUIRED)
    return [first, *(Row("steer/wrong", float("nan"), note=each) for each in said[1:])]
