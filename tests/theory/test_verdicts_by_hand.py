"""T1-T6, T11, T14: a case, fields of its verdict, and why, a row each: in fractions, in floats."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from oversmoothing.theory.certificate import certify
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.verdict import of_start
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.limits import Decided
from oversmoothing.theory.verdict.verdict import NEAR, heads_verdict, verdict
from tests.support.cases import cases
from tests.support.tables import floats, holds, identity, matrix, row, table

S, N, T, U = "SMOOTHING", "NON_SMOOTHING", "TIE", "UNDECIDED"
I2, TWO_AND_ONE = "1 0; 0 1", "3/4 1/4 0; 1/4 3/4 0; 0 0 1"
inf, sqrt = math.inf, math.sqrt
CONST = {"tends_to": "constant"}
ZERO = {"tends_to": "zero", "limit": 0.0, "limit_rank": 1}
NOTHING = {"tends_to": None, "limit": None}


def ring(*shares):
    """Tokens in a ring that pass on these shares of themselves."""
    n = len(shares)
    return [
        [1 - Fraction(x) if i == j else Fraction(x) * (j == (i + 1) % n) for j in range(n)]
        for i, x in enumerate(shares)
    ]


def near_tie(power, sign=1):
    return f"{Fraction(-4, 3) + sign * Fraction(1, 10**power)}"


CAUSAL = "1 0 0; 1/2 1/2 0; 1/3 1/3 1/3"
SHIFTED = [["11/20" if i == j else "3/20" for j in range(4)] for i in range(4)]

# --- generic X_0 ---


@table(
    row("T5a: the radii of each side, rate and margin", "AA", "1/2", verdict=S, rho_consensus=1.5,
        rho_quotient=1.25, rate=5 / 6, margin=0.25, **ZERO,
        says=("consensus dominates: |1 + h| = 1.5 (h = 0.5, a = 1)",
              "|1 + h a| = 1.25 (h = 0.5, a = 0.5)",
              "For generic X_0 HFC/LFC tends to 0, rank of the limit 1."), never="Jordan"),
    row("T5a: the quotient wins", "AA", "-1/2", verdict=N, tends_to="infinity", limit_rank=1,
        says=("|1 + h a| = 0.75 (h = -0.5, a = 0.5) exceeds |1 + h| = 0.5", "(h = -0.5, a = 1)",
              "For generic X_0 HFC/LFC tends to infinity, rank of the limit 1.")),
    row("the reason names the dominant pair among several", "1/8 7/8; 7/8 1/8", "1 0; 0 -4",
        verdict=N,
        says=("|1 + h a| = 4 (h = -4, a = -0.75)",
              "|1 + h| = 3, the largest at consensus (h = -4, a = 1)")),
    row("of each side", "AA", "1 0; 0 -4", verdict=S,
        says=("|1 + h| = 3 (h = -4, a = 1)", "|1 + h a| = 1.5 (h = 1, a = 0.5)")),
    row("a tie has equal radii and says which blocks meet", "AA", "-4/3", by="exact", verdict=T,
        margin=0.0, rate=1.0, rho_consensus=1 / 3, distance=0.0,
        says=("tie in modulus: |1 + h| = 0.333333",
              "Jordan blocks there have size 1 (consensus) and 1 (differences)", "go like L^0")),
    row("of two sides of 1 / sqrt 3 each", "AA", "-1 1; -1/3 -1", by="exact", verdict=T,
        margin=0.0, rho_consensus=1 / sqrt(3), rho_quotient=1 / sqrt(3)),
    row("T6b: blocks of 2 and 1", "FLAT", "0 1; 0 0", by="exact", verdict=T,
        says=("Jordan blocks there have size 2 (consensus) and 1 (differences)", "go like L^-1",
              "it smooths, but slowly")),
    row("T6b: the largest block of each side counts", "7/12 1/12 1/3; 1/12 7/12 1/3; 1/3 1/3 1/3",
        "-2 0 0; 0 0 1; 0 0 0", by="exact", verdict=T, rho_consensus=1.0,
        says="Jordan blocks there have size 2 (consensus) and 2 (differences)"),
    row("T6b: a = 0 three times", [["1/3"] * 3] * 3, "-2 0 0; 0 0 1; 0 0 0", by="exact", verdict=T,
        says="Jordan blocks there have size 2 (consensus)"),
    row("T6b: equal blocks tend to a constant", "AA", "-4/3 1; 0 -4/3", by="exact", verdict=T,
        **CONST),
    row("T6b: a defective A at its tie grows linearly",
        "13/24 7/24 1/6; 5/24 11/24 1/3; 1/4 1/4 1/2", "-8/5", by="exact", verdict=T,
        tends_to="infinity",
        says=("size 1 (consensus) and 2 (differences)", "go like L^1", "they outgrow it")),
    row("a near tie in floats shows both intervals and no limit", "AA", "-4/3", by="floats",
        verdict=U, status="numerical", rho_consensus=1 / 3, rho_quotient=1 / 3, **NOTHING,
        limit_rank=1, says=("0.333333333333 +- ", "fractions")),
    row("short binary numbers are decided exactly", "FLAT", "-2", verdict=T, status="exact"),
    row("T11.1: one token", "1", "1", verdict="TRIVIAL", rho_consensus=2.0, **ZERO, distance=None),
    row("T11.1: one token that dies", "1", "-1", rho_consensus=0.0, **NOTHING),
    row("T1: two closed classes", I2, "1", verdict=T,
        says=("tie in modulus", "occurs 2 times", "not the only fixed family")),
    row("T1: a reducible A ties where h > 0", "1 0 0; 0 1 0; 0.3 0.3 0.4", "0.5", verdict=T),
    row("T1: and is non-smoothing where h < 0", "1 0 0; 0 1 0; 0.3 0.3 0.4", "-0.5", verdict=N),
    row("T1h: a causal mask smooths", CAUSAL, "1/2", by="exact", verdict=S),
    row("T1h: and ties at -2 / (1 + min A_ii)", CAUSAL, "-3/2", by="exact", verdict=T),
    row("T3f: a real h and a complex a oscillate at rank 1",
        "1/10 3/5 3/10; 1/5 1/10 7/10; 7/10 1/5 1/10", "-9/10", by="exact", verdict=N,
        tends_to="oscillates", limit_rank=1),
    row("T3f: two complex ones keep rank 2", "C3", "1/5 -3/2; 3/2 1/5", by="exact", verdict=N,
        limit_rank=2),
    row("T4: a start of rank 1 with all coefficients keeps it", SHIFTED, "diag" + " -1/2" * 5,
        [[i * j for j in (1, 2, 3, 4, 5)] for i in (1, -3, 2, 5)], by="exact", limit_rank=1),
    row("T4: generic ones have rank 3", SHIFTED, "diag" + " -1/2" * 5, by="exact", limit_rank=3),
    row("T1: one closed class of two tokens", "1 0; 1/2 1/2", "1", never="occurs"),
    row("T11: where every state dies nothing is said", I2, "-1 0; 0 -1", by="exact", **NOTHING,
        limit_rank=None),
    row("T4c: rho_C = 0, the quotient keeps its mode", "AA", "-1", by="exact", limit_rank=1,
        rate=inf),
    row("T4: |1 + h a| falls short of |1 + h| by 3/2 (1 - a), however little",
        ring("1e-139", "1e-10", "1e-140"), "3/2", "1; 2; 3", by="exact", verdict=S, verdict_x0=S),
    row("T4: for both signs of h", ring("1e-139", "1e-10", "1e-140"), "-3/2", "1; 2; 3", by="exact",
        verdict=S, verdict_x0=S),
    row("T2: a distance there is only near a tie", "AA", "1/2", distance=None),
    row("T2: no distance where the norm of H is no float", "FLAT", "1.7e308 0; 1e308 -1.7e308",
        by="floats", verdict=S, distance=None),
    row("T2: of 48 features a decision is exact", "AA", f"diag {' '.join(map(str, range(1, 49)))}",
        by="exact", status="exact", verdict=S, rho_consensus=49.0),
    row("T2: of 49 it is rounded", "AA", f"diag {' '.join(map(str, range(1, 50)))}", by="exact",
        status="certified", verdict=S, rho_consensus=50.0),
    row("T2: h = -1 +- sqrt 2 / 10^100: 1 + h cancels", "1", "-1 2; 1e-200 -1", by="exact",
        rho_consensus=sqrt(2) * 1e-100),
    row("T2: beside others too", "AA", "-1 2; 1e-200 -1", by="exact",
        rho_consensus=sqrt(2) * 1e-100),
    row("T2: |1 + h a| is half of the one and twice the other",
        [[1, 0, 0], ["4/10", "1/2", "1/10"],
         [Fraction(1, 2) - Fraction(2, 10**121), "2e-121", "1/2"]],
        "-2 1; 2e-120 -2", by="exact", verdict=S, status="exact",
        rho_quotient=0.7 * sqrt(2) * 1e-60),
    # 1 + h a = 0 in fractions whose parts no binary number holds.
    *[row(f"T5a: a quotient that dies at once has radius and rate 0: {a} {h}",
          [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]], [[h]], "1; 2", by="exact",
          verdict=S, rho_quotient=0.0, rate=0.0, rho_consensus=float(abs(1 + h)), ratio={2: 0.0})
      for h, a in ((Fraction(h), Fraction(a)) for h, a in
                   (("-5/2", "2/5"), ("-2", "1/2"), ("-7/3", "3/7"), ("3/2", "-2/3")))],
)  # fmt: skip
def test_T2_a_verdict_for_generic_X_0(A, H, X0, by, said):
    holds(A, H, X0, by, said)


def known_badly(h):
    """3/10 and 1/10, of nearly equal eigenvectors, and h."""
    return f"200.3 -200 0; 200.2 -199.9 0; 0 0 {h}"


# --- one X_0 ---

CC = "-1/2 -1; 1/16 -1/2"  # turns features, and 1 + h a is largest at a = 1/5
DOUBLE = "3/4 1/8 1/8; 1/4 5/8 1/8; 1/4 1/8 5/8"
THIRD = [[Fraction(1, 3) * (i == j) + Fraction(2, 9) for j in range(3)] for i in range(3)]
HALVES = [[Fraction(1, 2) * (i == j) + Fraction(1, 6) for j in range(3)] for i in range(3)]
GOLDEN2 = "0 1 0 0; 1 1 0 0; 0 0 0 1; 0 0 1 1"
PAIRS = "1/2 1/2 0 0; 1/2 1/2 0 0; 0 0 1/2 1/2; 0 0 1/2 1/2"
X3 = "1 2; 3 5; -2 1"
NILPOTENT = "-1 1; 0 -1"


@table(
    row("T4e: only the modes it contains count", "AA", "1/2 0; 0 -3/4", "2 0; 1 0", verdict=S,
        verdict_x0=S, tends_to="zero", has_x0=True),
    row("T4e: the other feature", "AA", "1/2 0; 0 -3/4", "0 2; 0 1", verdict=S, verdict_x0=N,
        tends_to="infinity", has_x0=True),
    row("T4e: not a difference that consensus outgrows", "AA", "diag -9/10 -3/2", "0 1; 0 2",
        verdict=N, verdict_x0=S, **ZERO),
    row("T4e: the difference alone", "AA", "1/2", "1; -1", verdict=S, verdict_x0=N,
        tends_to="infinity", limit=inf, ratio={1: inf}),
    row("T11.4: h = -1 with doubly stochastic A", "AA", "-1", "3; 1", verdict=N,
        tends_to="infinity", ratio={1: inf, 100: inf}),
    row("T11.4: h = -1 with another A", "A3", "-1", "1; 2; 4", by="exact",
        squared={3: Fraction(1819399, 423200)}),
    # It lacks a = 1/2, which would outgrow it by 1.25 a layer; its mean is what pi - 1/n leaves.
    row("T11.8: a start free of the dominant mode stays so", "A3", "1", "-1; -1; 7", by="exact",
        ratio={L: 8 * sqrt(2) / 5 for L in (1, 40, 3000)}),
    row("T4e: h = -1 is a tie for most", "AA", "0 0; 0 -1", "1 1; 2 -1", by="exact", verdict=T,
        verdict_x0=T),
    row("T4e: and smooths a start without it", "AA", "0 0; 0 -1", "1 1; 1 -1", by="exact",
        verdict=T, verdict_x0=S),
    row("T4e: a tie of this start", "AA", "-4/3", "1; 2", by="exact", verdict_x0=T, **CONST),
    row("T4e: a Jordan block 1e-310 from a tie: beyond the floats its peak is", "AA",
        [[near_tie(310), 1], [0, near_tie(310)]], "1 2; 3 5", by="exact", verdict_x0=N,
        tends_to="infinity"),
    row("T11: at consensus it stays there", "AA", "1", "2; 2", verdict=S, verdict_x0="TRIVIAL",
        says=("consensus dominates", "at consensus already", "For this X_0"),
        ratio={0: 0.0, 2: 0.0}),
    row("T11: one column equal is not all", "AA", "1 0; 0 1", "1 2; 1 3", verdict_x0=S),
    row("T11: consensus that shrinks is not 0", "AA", f"{Fraction(1, 10**100) - 1}", "1; 1",
        by="exact", verdict_x0="TRIVIAL", never="exactly 0"),
    row("T11.7: zero is checked first", "AA", "1", "0; 0", verdict="UNDEFINED",
        verdict_x0="UNDEFINED", tends_to=None, rho_consensus=2.0, ratio={1: None},
        says="X_0 = 0: every metric is 0/0 at every depth."),
    row("T11.7: also where rounding leaves the others open", "AA", "-4/3", "0; 0", by="floats",
        verdict="UNDEFINED", status="certified"),
    row("T11.7: a part of it", "AA", "1", "0; 1", verdict_x0=S),
    row("T11.1: one token with a start", "1", "1", "1", verdict="TRIVIAL", **ZERO,
        says="one token only"),
    row("T11.1: that dies", "1", "-1", "3", verdict="TRIVIAL", verdict_x0="UNDEFINED",
        tends_to=None, ratio={1: None}),
    row("T11.6: it becomes exactly 0", "AA", "-2", "1; -1", verdict=S, verdict_x0="UNDEFINED",
        tends_to=None, says="becomes exactly 0", ratio={0: inf, 1: None, 5: None}),
    row("T11.6: by 1 + h a = 0 with a = 2/5", "7/10 3/10; 3/10 7/10", "-5/2", "1; -1", by="exact",
        verdict_x0="UNDEFINED", says="becomes exactly 0", ratio={1: None}),
    row("T14: classes whose modes all die are no tie", I2, "-1 0; 0 1/2", "1 0; 2 0", by="floats",
        verdict_x0="UNDEFINED", tends_to=None),
    row("T14: nor are 20 classes, by discs", identity(20), "-1", [[i] for i in range(20)],
        by="floats", verdict=T, verdict_x0=U),
    *[row(f"T11.1: a nilpotent 1 + h ends consensus, whatever A is: {name}", A, H, X0, by="floats",
          verdict_x0=word, **({"tends_to": None} if H == NILPOTENT else ZERO))
      for X0 in ("1 1/2; 1 1/2", "0.3 0.1; 0.3 0.1")
      for H, word in ((NILPOTENT, "UNDEFINED"), ("-1 1; 0 -1/2", "TRIVIAL"))
      for name, A in (("dense", "0.7 0.3; 0.2 0.8"), ("saturated", "1 0; 1e-20 1"), ("alone", I2))],
    *[row(f"T4e: a share of 10^-{k} is there", "AA", "-1/2", f"1; {1 + Fraction(1, 10**k)}",
          by="exact" if k > 11 else "both", verdict_x0=N, tends_to="infinity") for k in (10, 11,
          100, 300)],
    *[row(f"T4e: a mean of 10^-{k} is one", "AA", "1/2", f"1; {Fraction(1, 10**k) - 1}",
          by="exact" if k > 11 else "both", verdict_x0=S, tends_to="zero") for k in (10, 11, 100,
          300)],
    *[row(f"T2: h = {h} is told from 0", "AA", h, "1; 2", by="exact", verdict=word, verdict_x0=word)
      for h, word in (("1e-13", S), ("1e-300", S), ("-1e-300", N))],
    row("T1d: an entry below every binary64 joins its classes", ring("1e-400", "2e-400"), "1/2",
        "1; 2", by="exact", verdict=S, verdict_x0=S, tends_to="zero"),
    row("T4: eigenvalues that agree to thousands of digits are not compared",
        ring("1e-3999", "1e-3000", "1e-4000", "1e-3100", "2e-3000"), "-3/2", "1; 2; 3; 4; 6",
        by="exact", verdict=U, status="exact", verdict_x0=U, rho_consensus=None, rho_quotient=None,
        has_x0=True, says="agree to more digits"),
    # --- limits
    row("T4d: a limit that depends on X_0", "TURNED", "-4 0; 0 -1", by="exact", tends_to="constant",
        limit=None, verdict_x0=None, has_x0=False, says="a constant that depends on X_0"),
    row("T4d: is known with X_0", "TURNED", "-4 0; 0 -1", "2 1; 1 3", verdict=T, verdict_x0=T,
        limit=1 / 3, limit_rank=1,
        says="For this X_0 HFC/LFC tends to 0.333333, rank of the limit 1."),
    *[row(f"T5a: that of one real mode does not: {X0}", "A3", "-1/2", X0, limit=8 * sqrt(2) / 5,
          limit_rank=1, **CONST)
      for X0 in ("1; 2; 4", "1; 0; 0")],
    row("T5a: a complex h turns features and keeps the ratio", "A3", CC, X3, by="exact",
        limit=8 * sqrt(2) / 5, limit_rank=1, **CONST),
    row("T5a: a repeated a with a complex h oscillates at rank 2", DOUBLE, "-1/2 -1; 1/4 -1/2", X3,
        by="exact", tends_to="oscillates", limit=None, limit_rank=2),
    row("T3f: a complex a turns tokens", "C3", "-9/10 0; 0 -3/10", X3, by="exact",
        tends_to="infinity", limit_rank=1),
    row("T3f: both complex keep rank 2", "C3", "1/5 -3/2; 3/2 1/5", X3, by="exact",
        tends_to="infinity", limit_rank=2),
    row("T4c: a second direction however small", THIRD, "-1/2 0; 0 -1/2", "1 1e-8; -1 0; 0 -1e-8",
        by="exact", limit_rank=2),
    row("T4c: or none", THIRD, "-1/2 0; 0 -1/2", "1 1e-8; -1 -1e-8; 0 0", by="exact", limit_rank=1),
    row("T4c: mu = +-1 by turns: the larger rank", "FLAT", "0 0; 0 -2", "2 2; 0 0", by="exact",
        limit_rank=2),
    row("T4c: the golden ratio, one root of two", HALVES, "0 1; 1 1", "1 2; 3 5; 4 4", by="exact",
        limit_rank=1),
    row("T4c: twice", HALVES, GOLDEN2, "1 2 0 1; -1 0 3 1; 0 -2 -3 -2", by="exact", limit_rank=2),
    row("T4c: twice alike", HALVES, GOLDEN2, "1 2 1 2; -1 0 -1 0; 0 -2 0 -2", by="exact",
        limit_rank=1),
    row("T6b: a tie decided by Jordan blocks", "FLAT", "0 1; 0 0", "1 2; 3 5", by="exact",
        verdict_x0=T, tends_to="zero"),
    row("T4: a constant beyond binary64 has no digits", "FLAT", "0",
        f"1; {Fraction(1, 10**400) - 1}", by="exact", limit=None, **CONST,
        says="tends to a constant", never="inf"),
    row("T4: short floats are fractions where a limit is open", "FLAT", "-1 -5/4; 0 -1",
        "2 -1; -2 0", by="floats", verdict=N, tends_to="infinity", limit_rank=1),
    row("T5a: features at right angles keep the ratio by the gap bound alone", "A3", "2 0; 0 -15",
        "-4 -1; 11 -1; 1 7", by="exact", limit=sqrt(478 / 89), **CONST),
    row("T5a: in one feature mu = 2 and -2 add up", "A3", "2 0; 17 -15", "-4 -5; 11 10; 1 8",
        by="exact", tends_to="oscillates", limit=None),
    *[row(f"T4c: where all conjugates lead the rank is that of rational numbers: {why}", A, H, X0,
          by="exact", limit_rank=rank)
      for why, A, H, X0, rank in (
          ("2 at even depths, 1 at odd ones", "FLAT", "0 0; 0 -2", "2 0; 0 -2", 2),
          ("1 at all depths", "FLAT", "0 0; 0 -2", "2 2; 2 2", 1),
          ("mu = +- sqrt 2, two rows that are dependent", I2, "-1 2; 1 -1", "1 2; 2 4", 1),
          ("or not", I2, "-1 2; 1 -1", "1 2; 2 3", 2),
          ("mu = 1 +- i, multiples of one token", I2, "0 -1; 1 0", "1 2; 3 6", 1),
          ("or not", I2, "0 -1; 1 0", "1 2; 3 5", 2),
          ("mu = 1 in a block of 2", [["1/3"] * 3] * 3, "0 1 0; 0 0 0; 0 0 -1/2",
           "1 2 3; 5 7 -4; 2 0 1", 1))],
    # --- several closed classes
    row("T14: of 1 + 1/2 the means fall, 0 over the tokens and not in each class",
        "0.3 0.7 0 0; 0.7 0.3 0 0; 0 0 0.3 0.7; 0 0 0.7 0.3", "diag 1/2 -1/10",
        "1 1; 0 2; -1 3; 0 5", verdict_x0=T, tends_to="infinity", limit_rank=1),
    *[row(f"T14: a token that attends to itself alone keeps its share, n = {n}", identity(n), "1/2",
          [[int(i == n - 1)] for i in range(n)], verdict_x0=T, limit=sqrt(n - 1), limit_rank=1,
          **CONST)
      for n in (2, 3, 9)],
    row("T14: a class of its own ties with itself", TWO_AND_ONE, "-1/2", "0; 0; 1", verdict_x0=T,
        limit=sqrt(2), **CONST),
    row("T14: classes with equal means smooth", PAIRS, "1/2", "1; 3; 0; 4", by="exact",
        verdict_x0=S, tends_to="zero"),
    row("T14: means 2 and 3: 1/2 from 5/2", PAIRS, "1/2", "1; 3; 0; 6", verdict_x0=T, limit=1 / 5,
        **CONST),
    row("T14: a transient token ends between its classes: 0, 4, 3", "1 0 0; 0 1 0; 1/8 3/8 1/2",
        "1/2", "0; 4; 100", verdict_x0=T, limit=sqrt(26) / 7, **CONST),
    *[row(f"T5a: ends of 1, 3 and 1.8 at any size of the mean: {size}", "1 0 0; 0 1 0; 0.3 0.2 0.5",
          "0.7", [[size], [3 * size], [size]], by="floats", verdict_x0=T,
          limit=float(np.std([1, 3, 1.8]) / np.mean([1, 3, 1.8])), **CONST)
      for size in (Fraction(1), Fraction(1e-180), Fraction(1e150))],
    # Mean -8/3; the squares of the differences sum to 38/3.
    row("T14: h = 0 keeps what a defective A would turn", "1 0 0; 0.7 0.3 0; 0.35 0.35 0.3", "0",
        "0; -5; -3", limit=sqrt(38 / 64), **CONST),
    row("T14: a mean of half a share of 1e-300", I2, "0.7", "1e-300; 0", by="floats", verdict_x0=T,
        limit=1.0, **CONST),
)  # fmt: skip
def test_T4e_a_verdict_for_one_X_0(A, H, X0, by, said):
    holds(A, H, X0, by, said)


TURNING = "0.05 0.7 0.2 0.05; 0.1 0.05 0.6 0.25; 0.3 0.05 0.05 0.6; 0.65 0.3 0 0.05"
# h = -0.3 is known to 1e-9. Of the pairs that follow |1 + h a| is larger by 2e-10 with the real a,
# and by 6e-11 with a complex one: rank 2 without the first of them.
HIDING = """-200.3 200 0 0 0 0; -200.2 199.9 0 0 0 0; 0 0 -0.299701068335 0.042120238305 0 0;
    0 0 -0.042120238305 -0.299701068335 0 0; 0 0 0 0 -0.197401058227 0.113969554105;
    0 0 0 0 -0.113969554105 -0.197401058227"""


@table(
    row("pi is not known to more digits than A is", "0.8 0.1 0.1; 0.3 0.6 0.1; 0.5 0.2 0.3", "0.5",
        "9; -26; 0", verdict=S, verdict_x0=U, **NOTHING),
    row("X_0 below the normal floats is known to half a unit", "0.53 0.47; 0.94 0.06", "0.5",
        "5e-324; -1.5e-323", verdict=S, verdict_x0=U, **NOTHING),
    row("|1 + 0| = 1 on both sides by structure", "AA", "diag 0 -0.5 1", "2 1 0; 1 1 0", verdict=S,
        verdict_x0=T, **CONST),
    row("1 - 4/3 against 1 - 2/3, no binary numbers", "AA", "diag -4/3 -1/2 1", "2 0 0; 1 0 0",
        verdict=S, verdict_x0=U, tends_to=None),
    row("1 - 11/5, whose rounding is more than that of 1 + 2/5 a", "AA", "diag -11/5 2/5",
        "2 2; 2 -2", verdict=S, verdict_x0=U, tends_to=None),
    row("classes that differ for one h of two, |1 + h| alike", I2, "diag 3/10 -23/10", "1 1; 2 1",
        verdict=T, verdict_x0=U),
    *[row(f"T3f: h = 3 conj(a): 1 + h a = 19/10 may turn or not, from {X0}",
          "0.1 0.8 0.1; 0.2 0.1 0.7; 0.6 0.3 0.1", "0 -9/10; 3 -21/10", X0, verdict=N,
          tends_to=None, limit_rank=2) for X0 in (None, X3)],
    row("classes that seem to agree", identity(3), "-2.5 1 -2; -6 0.5 6; -6 -1.25 0.1",
        "6 -8 0; 6 -8 2e-300; 6 -8 8e-300", verdict_x0=U),
    row("classes of short numbers", identity(3), "-2.5 1 -2; -6 0.5 6; -6 -1.25 0",
        "6 -8 0; 6 -8 2e-300; 6 -8 8e-300", verdict_x0=T),
    row("T11.8: a mean that may be 0 in a Jordan block", "AA", "0.3 1; 0 0.3", "1 2; -1 -2",
        verdict=S, verdict_x0=U, tends_to=None,
        says=("consensus dominates", "too ill-conditioned to say which modes this X_0 contains")),
    row("a Jordan block is no obstacle where all agree", "AA", "0.3 1; 0 0.3", "1 2; 3 5",
        verdict_x0=S, **ZERO),
    row("nor at consensus", "AA", "0.3 1; 0 0.3", "1 2; 1 2", verdict_x0="TRIVIAL",
        never="too ill-conditioned"),
    row("T4a asks for no eigenbasis", "AA", "0.3 1; 0 0.3", verdict=S, **ZERO),
    row("two pairs of tokens and a Jordan block: open, of rank 1",
        "0.7 0.3 0 0; 0.4 0.6 0 0; 0 0 0.6 0.4; 0 0 0.1 0.9", "0.3 1; 0 0.3", "1 0; 2 0; 3 0; 4 0",
        verdict_x0=U, limit_rank=1, tends_to=None),
    row("a block that the cell decides", "1 0 0; 0.7 0.3 0; 0.2 0.2 0.6", "-0.9 1; 0 -0.9",
        "1 1; -1 -1; 0 0", verdict_x0=N, **CONST),
    *[row(f"h = {h}: a little apart decides at the scale {size}", "AA",
          [[h, 0], [0, Fraction(-1, 2)]], [[2 * size, 0], [size, 0]], verdict_x0=word)
      for size in map(Fraction, (1e-4, 1, 1e4))
      for h, word in ((Fraction(1e-6), S), (Fraction(-1e-6), N), (Fraction(1e-14), S),
      (Fraction(-1e-300), N))],
    *[row(f"1 + 999 against 1 + 1998/2 within a unit: {off}", "AA",
          [[999, 0], [0, Fraction(1998 * (1 + off))]], "2 2; 2 -2", verdict_x0=U if off else T)
      for off in (0.0, 1.2e-16, -1.2e-16)],
    row("T4e: what leads a feature that is 0 hides no other", TURNING, HIDING,
        "1 2 0 0 3 1; 2 -1 0 0 1 5; -3 1 0 0 2 2; 1 1 0 0 -4 7", verdict_x0=N, tends_to=None,
        limit_rank=None),
    # h = 0.3, or a little below 0, is known to 1e-9.
    *[row(f"T14: classes tie where no difference may be larger by {off}",
          "1/4 3/4 0 0; 3/4 1/4 0 0; 0 0 1/4 3/4; 0 0 3/4 1/4", known_badly(-0.6 - 2 * off),
          verdict=word) for off, word in ((-1e-6, T), (1e-10, U), (1e-6, N))],
    *[row(f"T2d: -h is below what is positive, or may be above: {off}", "0 1; 1 0",
          known_badly(-0.3 - off), verdict=word) for off, word in ((-1e-6, S), (1e-10, U))],
    row("T2d: h may be 0", "AA", "-100.0999999 99.9999999; -100.0999998999 99.9999998999",
        verdict=U),
    row("T1: a token that is nearly alone is no class", "1 0 0; 1e-20 1 0; 0 0 1", "-1/2",
        verdict=N, limit=sqrt(2)),
    row("T1: nor are two such tokens doubly stochastic", "1 0 0; 1e-20 1 0; 1e-20 0 1", "-1/2",
        "0; 1; 2", verdict_x0=N, tends_to=None, limit_rank=1),
    row("T2b: one h of a block exceeds no other", "1 0; 1e-20 1", "1/2 1; 0 1/2", "1 0; 5 1",
        verdict=S, verdict_x0=U),
    row("T6b: zeros of H in a Jordan block", "0.7 0.3; 0.4 0.6", "0 1; 0 0", verdict=T,
        limit_rank=None),
    row("T1f: columns that sum to 0 keep no mean of 0 where H is nilpotent: 3 in fractions",
        "9/10 1/10; 3/10 7/10", "0 1/3; 0 0", "1 2; -1 -2", verdict_x0=T, tends_to=None),
    # The second feature lacks the first a: with a < a' and h a = h' a' of these the rank is 2.
    row("T4c: equal a, h and h'", "1 0 0; 2/3 1/3 0; 1/3 1/3 1/3", "diag -2/5 -2/5",
        "0 0; 1 0; 2 3", verdict_x0=N, limit_rank=None),
    row("T11.1: 1 + h = 1e-8 of three, by discs that touch", "1",
        "-2 0 -1; -1e-8 -0.99999999 -1e-8; 1 0 0", tends_to=None),
    row("thousands of units apart decide", "AA", [[999, 0], [0, Fraction(1998 * (1 - 3e-13))]],
        "2 2; 2 -2", verdict_x0=S),
)  # fmt: skip
def test_T4e_in_floats_what_rounding_can_change_is_open(A, H, X0, by, said):
    holds(A, H, X0, "floats", said)


@cases("n, d, looked", (8, 3, True), (6, 4, True), (5, 5, False), (8, 4, False))
def test_T14_tokens_of_short_floats_are_looked_at_up_to_24_entries(n, d, looked):
    A = [[1.0] + [0.0] * (n - 1) for _ in range(n)]
    X0 = [[float(i + j) for j in range(d)] for i in range(n)]
    found = verdict(A=A, H=(0.5 * np.eye(d)).tolist(), X0=X0)
    assert (found.token_growth is not None) == looked


@pytest.mark.parametrize("power", [20, 40, 60, 100])
def test_T2_real_eigenvalues_as_close_as_can_be_are_no_complex_pair(power):
    """h = 2 +- 10^-(power/2) and -2, a = -1: rho_C = 3 + 10^-(power/2) against |1 + 2| = 3."""
    for sign, expected in ((1, S), (-1, N)):
        # h = -2 +- ...: the difference, with a = -1, is what is larger.
        A, H = [[0, 1], [1, 0]], [[2 * sign, 1, 0], [f"1e-{power}", 2 * sign, 0], [0, 0, -2 * sign]]
        found = verdict(A=A, H=H, X0=[[1, 2, 3], [3, 5, -4]])
        assert (found.verdict, found.verdict_x0) == (expected, expected)
        assert check_certificate(json.dumps(certify(Layer.of(A, H)))).accepted


@pytest.mark.parametrize(("h", "expected"), [(0.5, S), (-0.5, N)])
def test_T2d_saturated_attention_is_decided_by_the_sign_of_h(h, expected):
    """A diagonal that rounds to 1 is no second eigenvalue 1."""
    assert verdict(logits=[[0.0, -np.inf], [0.0, 50.0]], H=[[h]]).verdict == expected
    for small in (1e-20, 1e-300):
        assert verdict(A=[[1.0, 0.0], [small, 1.0]], H=[[h]]).verdict == expected


# --- the nearest other verdict ---


def test_T2_near_a_tie_is_within_a_thousandth_of_the_larger_radius():
    """h = -4/3 + t: 1/3 - t against 1/3 + t/2, apart by 3 t/2."""

    def at(t):
        return verdict(A=matrix("AA"), H=[[Fraction(-4, 3) + t]])

    for share, near in ((Fraction(999, 1000), True), (Fraction(1001, 1000), False)):
        # 3 t/2 = share NEAR (1/3 + t/2)
        t = share * Fraction(NEAR) / (3 * (Fraction(3, 2) - share * Fraction(NEAR) / 2))
        assert at(t).verdict == N and (at(t).distance is not None) == near
    # Between a thousandth of the smaller and of the larger radius.
    assert at(Fraction(NEAR) * Fraction(2, 9) * (1 - Fraction(NEAR) / 12)).distance is not None


def test_T2b_the_distance_to_a_tie_is_that_of_the_worst_change_of_A_and_H():
    """h = -4/3 + t, a = 1/2: rho_C - rho_Q = -t/2 for small t, and moves by dh/2 and by 4/3 da;
    dA moves a by ||dA|| at most, in the direction (1, -1; -1, 1)/2."""
    t = 1e-5
    found = verdict(A=matrix("AA"), H=matrix(near_tie(5)))
    h, size_a = 4 / 3 - t, sqrt(2 * (0.75**2 + 0.25**2))
    assert found.verdict == N
    assert found.distance == pytest.approx(1.5 * t / (1.5 * h + h * size_a), rel=1e-6)
    assert f"A relative change of {found.distance:.2g} in A and H" in found.reason
    assert found.to_json_object()["distance"] == found.distance
    undecided = verdict(A=floats("AA"), H=[[-4 / 3]])
    assert undecided.distance is not None and undecided.distance < 1e-15


# --- where sizes end ---


@cases(
    "H, X0, expected, tends_to, words",
    # By discs, as far as rounding does not decide.
    ("1/2", "1; 2", S, "zero", ""), ("-1/2", "1; 2", N, None, ""), ("1/2", "3; -4", S, "zero", ""),
    ("-4/3", "1; 2", U, None, "too many modes"),
    ("1/2 0; 0 1/2", "1 2; 2 5", U, None, "too many modes"),
    # One mode is few enough.
    ("1/2", "3; -3", N, "infinity", ""), ("1/2", "2; 2", "TRIVIAL", "zero", "at consensus already"),
)  # fmt: skip
def test_T4e_a_start_with_more_modes_than_are_told_apart(
    monkeypatch, H, X0, expected, tends_to, words
):
    # Enough for one mode and no more, and no projectors.
    for name in ("QUICK_WORK", "LARGEST_WORK"):
        monkeypatch.setattr(of_start.resolvent, name, 12)
    monkeypatch.setattr(of_start, "by_projectors", lambda *_: Decided(Outcome.UNDECIDED))
    found = verdict(A=matrix("AA"), H=matrix(H), X0=matrix(X0))
    assert (found.verdict_x0, found.tends_to) == (expected, tends_to)
    assert words in found.reason


@cases(
    "H, expected", ("0.5", "TRIVIAL"), ("-1", U), ("-1 0; 0 0.5", "TRIVIAL"), ("-1 1; 0 -1", U),
    ("-2 0; 0 -2", "TRIVIAL"),
)  # fmt: skip
def test_T11_1_a_start_of_too_many_modes_at_consensus_lasts_unless_it_is_0_after_d_layers(
    monkeypatch, H, expected
):
    monkeypatch.setattr(of_start, "start_content", lambda *_, **__: None)
    monkeypatch.setattr(of_start.resolvent, "LARGEST_WORK", -1)
    for read in (floats, matrix):
        A, X0 = read("7/10 3/10; 2/5 3/5"), read([[2] * len(read(H))] * 2)
        assert verdict(A=A, H=read(H), X0=X0).verdict_x0 == expected
    W = np.array(floats(H)).T / 2
    A = floats("7/10 3/10; 2/5 3/5")
    assert heads_verdict(A=[A, A], W=[W, W], X0=floats(X0)).verdict_x0 == expected
