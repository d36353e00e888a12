"""T4, T5a, T14: what all cases that round to the same floats share, and what the exact case does.

The table says what is decided of a cell: verdict, what HFC/LFC tends to, the limit and the rank;
None is left open. The exact case of the decimals, by its resolvent in integers, must agree.
"""

from types import SimpleNamespace as Some

import flint
import numpy as np
import pytest

from oversmoothing.theory.layer.attention import cyclic_groups
from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.numbers.rounding import at_precision
from oversmoothing.theory.verdict.by_cells import (
    LARGEST_SIDE,
    CellModes,
    decided_in_cell,
    departures,
    modes_of,
)
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.limits import UNKNOWN, limits_of
from oversmoothing.theory.verdict.verdict import verdict
from tests.support.cases import cases
from tests.support.tables import floats, matrix


def named(text):
    """Matrices by name, a line each; what is longer goes on in an indented one."""
    return dict(line.split(": ", 1) for line in text.replace("\n   ", "").strip().splitlines())


A = named("""
two: 0.7 0.3; 0.4 0.6
alike: 1/3 1/3 1/3; 1/3 1/3 1/3; 1/3 1/3 1/3
three alone: 1 0 0; 0 1 0; 0 0 1
two groups: 0 0.3 0 0.7; 0.6 0 0.4 0; 0 0.9 0 0.1; 0.2 0 0.8 0
causal, twice 3/10: 1 0 0; 0.7 0.3 0; 0.7 0 0.3
circulant: 0.1 0.8 0.1; 0.1 0.1 0.8; 0.8 0.1 0.1
two pairs: 0.7 0.3 0 0; 0.4 0.6 0 0; 0 0 0.6 0.4; 0 0 0.1 0.9
cycle: 0 1 0; 0 0 1; 1 0 0
causal, 0 twice: 1 0 0; 1 0 0; 0.3 0.7 0
causal, 0 thrice: 1 0 0 0; 1 0 0 0; 0.3 0.7 0 0; 0.5 0.5 0 0
a swap and one alone: 0 1 0; 1 0 0; 0 0 1
one leaves: 0.2 0.5 0.3; 0 1 0; 0 0 1
two alone: 1 0; 0 1
causal, defective: 1 0 0 0; 0.7 0.3 0 0; 0.2 0.5 0.3 0; 0.1 0.1 0.5 0.3
a swap and one that follows: 0 1 0; 1 0 0; 0.3 0.3 0.4
two swaps: 0 1 0 0; 1 0 0 0; 0 0 0 1; 0 0 1 0
turning, and one alone: 0.1 0.8 0.1 0; 0.2 0.1 0.7 0; 0.6 0.3 0.1 0; 0 0 0 1
turning: 0.1 0.8 0.1; 0.2 0.1 0.7; 0.6 0.3 0.1
three that turn and leave: 0.1 0.6 0.1 0.2; 0.2 0.1 0.6 0.1; 0.5 0.3 0.1 0.1; 0 0 0 1
halves: 0.5 0.5; 0.5 0.5
a cycle and one alone: 0 1 0 0; 0 0 1 0; 1 0 0 0; 0 0 0 1
causal: 1 0 0; 0.7 0.3 0; 0.2 0.2 0.6
a swap beside a circulant: 0 1 0 0 0; 1 0 0 0 0; 0 0 0.1 0.8 0.1; 0 0 0.1 0.1 0.8; 0 0 0.8 0.1 0.1
groups of 1 and 2, and a cycle: 0 0.3 0.7 0 0 0; 1 0 0 0 0 0; 1 0 0 0 0 0; 0 0 0 0 1 0;
    0 0 0 0 0 1; 0 0 0 1 0 0
nearly alone: 1 0; 1e-20 1
all to the first: 1 0; 1 0
causal two: 1 0; 0.7 0.3
dyadic: 0.75 0.25; 0.25 0.75
fourteenths: 1 0; 13/14 1/14
nearly decoupled: 1 2e-100; 1e-100 1
saturated: 1 0; 2e-17 1
swapping: 0.4 0.6; 0.6 0.4
causal, twice a half: 1 0 0; 0.5 0.5 0; 0.25 0.25 0.5
three nearly alike: 0.799998 0.100003 0.099999; 0.100001 0.799998 0.100001;
    0.100002 0.099997 0.800001
four nearly alike: 0.700002 0.100001 0.099998 0.099999; 0.100001 0.700001 0.099999 0.099999;
    0.099999 0.100001 0.699997 0.100003; 0.100002 0.099997 0.1 0.700001
""")
H = named("""
d0: 0.3 0; 0 0
-1: -1
J3: -0.6 1 0.2; 0 -0.6 1; 0 0 -0.6
dd: -0.6 0; 0 -0.6
J: 0.3 1; 0 0.3
CC: -0.5 -1 0 0; 0.06 -0.5 0 0; 0 0 -0.5 -1; 0 0 0.06 -0.5
Cs: -0.5 -1; 0.06 -0.5
CR: -0.6 -0.9 0; 0.9 -0.6 0; 0 0 -0.3
-.5: -0.5
J-t: -0.6 0; 0.7 -0.6
JJ: -0.6 1 0; 0 -0.6 0; 0 0 -0.6
0: 0
CRs: -0.6 -0.9 0.2; 0.3 -0.6 0.5; 0.1 0 0.4
T: 0.3 0.2; 0 -0.6
d-1: -1 0; 0 -0.6
d-13: -1.3 0; 0 -0.7
C-: -0.6 -0.9; 0.9 -0.6
C: 0.3 -0.7; 0.7 0.3
-1.1: -1.1
S-: 0.1 -0.7; 0.7 -1.3
d0-: -0.6 0; 0 0
-.3: -0.3
-.6c: -0.6 0.4; -0.2 -0.5
-3: -3
CRd: -0.6 -0.2 0; 0.5 -0.6 0; 0 0 -0.6
J-9: -0.9 1; 0 -0.9
third of a turn: -0.25 -0.4330127018922193; 0.4330127018922193 -0.25
quarter: 0 -1; 1 0
-2: -2
-.6: -0.6
-1.2: -1.2
.5: 0.5
fifteenths: -28/15
mixing: -0.5 -0.75; 1.5 1
down and up: -1 0; 0 -3
""")
SAID = """
two | d0 | 1 1; -1 -1 | SMOOTHING zero 0.0 1
alike | -1 | 2; 3; 4 | NON_SMOOTHING None None 1
three alone | -1 | 2.11; 2.11; 2.19 | UNDECIDED None None None
two groups | J3 | 0.98 2 0.38; 0.98 2 0.38; -2.89 -2.78 -1.13;
    0.23 0.71 1.09 | NON_SMOOTHING infinity inf 1
causal, twice 3/10 | -1 | 0.61; 0.61; 1 | NON_SMOOTHING None None 1
circulant | dd | 0 0; 2.3 -1.13; 1.16 2.09 | NON_SMOOTHING None None None
two pairs | J | 1 0; 2 0; 3 0; 4 0 | UNDECIDED None None 1
cycle | CC | 0 1.12 1.01 -2.85; 0 -2.83 -1.64 -0.15;
    0 2.7 -2.95 -2.17 | NON_SMOOTHING infinity inf None
circulant | Cs | 1.5 1.5; 1.5 1.5; 2.5 2.5 | NON_SMOOTHING None None 2
causal, 0 twice | CR | 0.71 -1.9 -1.69; -2.46 2.42 -1.02;
    -0.92 -2.27 1.82 | NON_SMOOTHING None None None
causal, 0 twice | -.5 | 0; -0.54; 2.78 | NON_SMOOTHING constant 1.41421356 1
cycle | J-t | 0 -2.22; 0 2.82; 0 2.05 | NON_SMOOTHING infinity inf 1
causal, 0 thrice | -.5 | 1; 2; 5; 3 | NON_SMOOTHING None None 1
causal, twice 3/10 | JJ | -0.7 2 0; 1.3 -2.4 0; 2.82 0.94 0 | NON_SMOOTHING None None None
circulant | J3 | -1.86 -0.37 -2.87; -1.86 -0.37 -2.87; -1.76 -1.29 0.25 | NON_SMOOTHING None None 1
a swap and one alone | 0 | 1; 2; 3 | TIE constant 0.40824829 1
three alone | CRs | 0.45 2.14 -0.3; -0.17 1.99 1.05; 0.15 0.38 1.83 | TIE constant 1.20445917 1
one leaves | T | - | TIE constant None 1
cycle | d-1 | 0.83 0; -1.37 0; -1.41 0 | NON_SMOOTHING infinity inf 1
causal, twice 3/10 | d-13 | 1 1; -1 -1; 0 0 | NON_SMOOTHING None None 1
three alone | CR | 1.21 1.83 2.71; 1.21 1.83 2.71; 0.01 -0.13 1.08 | TIE None None 2
one leaves | C- | 1.31 0; 0.14 0; 1 0 | TIE None None None
two alone | Cs | -2.41 1.99; -2.22 0.36 | TIE oscillates None 2
three alone | C | -2.94 1.59; -2.49 1.9; -2.79 0.17 | TIE None None 2
three alone | CR | 1 1 1; -1 -1 -1; 0 0 0 | TIE None None None
causal, defective | d-13 | 0 -2.43; 0 -0.83; 0 -1.27; 0 -2.11 | NON_SMOOTHING constant 1.73205081 1
a swap and one that follows | -1.1 | 1; 2; 3 | NON_SMOOTHING None None 1
two swaps | S- | 1 1; -1 -1; 0 0; 0 0 | NON_SMOOTHING None None None
turning, and one alone | d0- | 0 -0.64; 0 -1.34; 0 0.37; 0 1.51 | TIE constant 42.9869748 1
turning | -.3 | 0; 1.78; -2.17 | NON_SMOOTHING oscillates None 1
two alone | -.6c | 1 0; 2 0 | TIE None None None
three that turn and leave | -3 | 0; 1.39; -2.2; -0.11 | NON_SMOOTHING oscillates None 1
two swaps | J | -1.28 2.33; 0.66 1.26; -2.17 1.99; -1.28 0.71 | TIE None None 1
turning, and one alone | -.3 | 1.5; 1.5; 1.5; 2.5 | UNDECIDED None None 1
halves | CRd | 2 2 2; 2 2 3 | NON_SMOOTHING None None 1
a cycle and one alone | S- | - | NON_SMOOTHING infinity inf None
causal | J-9 | 1 1; -1 -1; 0 0 | NON_SMOOTHING constant 6.164414 1
nearly alone | J | - | SMOOTHING zero 0.0 1
nearly alone | J-9 | - | NON_SMOOTHING constant 1.0 1
two alone | d-1 | - | TIE constant None 1
# A difference of a few units in the last place is there for certain.
two | -.6 | 1; 1.0000000000000009 | NON_SMOOTHING constant 7.0 1
# Each mean is 0 by the zeros of A, or only in this matrix.
groups of 1 and 2, and a cycle | third of a turn | - | NON_SMOOTHING infinity inf 2
a swap beside a circulant | third of a turn | - | NON_SMOOTHING None None 2
# Of nearly equal eigenvalues the finest blocks leave open what coarser ones decide.
three nearly alike | -1.2 | -2; 2; 0 | SMOOTHING zero 0.0 1
four nearly alike | -.5 | - | NON_SMOOTHING constant None 1
# 1 - a of the smaller a of a block may be as large as 3 a - 1 of the larger: rank 2.
causal, twice a half | down and up | 0 0; 1 2; 3 -1 | NON_SMOOTHING None None None
# Equal moduli that no structure shows.
a swap and one alone | quarter | - | UNDECIDED None None None
all to the first | -2 | 1; 2 | UNDECIDED None None 1
# A token's own mode, absent by zeros alone; h = 0 alone: nothing moves.
causal two | -.6 | 0; 1 | NON_SMOOTHING constant 1.0 1
causal two | -.6 | 1; 5 | NON_SMOOTHING constant 1.0 1
causal two | 0 | 1; 3 | TIE constant 0.5 1
# A Jordan block of H that leads, and one of A; attention that keeps nearly everything.
dyadic | J | 1 2; 3 5 | SMOOTHING zero 0.0 1
causal, defective | -.6 | 1; 2; 5; 3 | NON_SMOOTHING constant 1.73205081 1
nearly alone | .5 | 1; 2 | SMOOTHING zero 0.0 1
nearly alone | -.5 | 1; 2 | NON_SMOOTHING constant 1.0 1
two groups | -.3 | 1; 2; 5; 3 | NON_SMOOTHING infinity inf 1
# 1 + h and -(1 + h a) to the last digit; a mean that is 0 or is not; a state that may die.
fourteenths | fifteenths | 7; 2 | UNDECIDED None None 1
dyadic | J | 1 2; -1 -2 | UNDECIDED None None 1
two alone | -1 | 1; 2 | UNDECIDED None None None
nearly alone | -1 | -1; -5 | UNDECIDED None None 1
nearly decoupled | -1 | -7; 4 | UNDECIDED None None 1
# X_0 holds one mode alone, and 1 + h a may be 0 in a case that rounds to it.
saturated | -1 | 0; -9 | UNDECIDED None None None
# Consensus may be missing from a sum that cancels; what leads then is of rank 1 as well.
swapping | mixing | 0.1 3.3; -0.1 -3.3 | UNDECIDED None None 1
"""


def row(line):
    """(A, H, X0) as text, and (verdict, what it tends to, the limit, the rank)."""
    *case, said = (part.strip() for part in line.split("|"))
    X0 = None if case[2] == "-" else case[2]
    outcome, *rest = said.split()
    tends_to, limit, rank = (None if x == "None" else x for x in rest)
    return *case[:2], X0, outcome, tends_to, limit and float(limit), rank and int(rank)


ROWS = [row(line) for line in SAID.replace("\n   ", "").strip().splitlines() if line[0] != "#"]
FIELDS = ("a", "h", "X0", "outcome", "tends_to", "limit", "rank")


def near(limit):
    return None if limit is None else pytest.approx(limit, rel=1e-8)


@pytest.mark.parametrize(FIELDS, ROWS)
def test_a_cell_has_the_verdict_and_the_limits_that_all_of_it_shares(
    a, h, X0, outcome, tends_to, limit, rank
):
    found = decided_in_cell(
        *read_layer(floats(A[a]), floats(H[h]), None if X0 is None else floats(X0))
    )
    limits = found.limits
    assert (found.outcome, limits.tends_to, limits.limit_rank) == (outcome, tends_to, rank)
    assert limits.limit == near(limit)
    # Whatever decides it, the verdict on these floats contradicts none of it.
    said = verdict(A=floats(A[a]), H=floats(H[h]), X0=None if X0 is None else floats(X0))
    assert outcome in ("UNDECIDED", said.verdict if X0 is None else said.verdict_x0)
    assert tends_to in (None, said.tends_to) and rank in (None, said.limit_rank)


# What is no decimal means another matrix.
OTHERS = {"alike", "third of a turn", "fourteenths", "nearly alone", "nearly decoupled",
          "saturated"}  # fmt: skip


@pytest.mark.parametrize(FIELDS, [row for row in ROWS if not OTHERS & {row[0], row[1]}])
def test_the_case_in_fractions_agrees_with_its_cell(a, h, X0, outcome, tends_to, limit, rank):
    exact = matrix(A[a])
    for line in exact:
        line[line.index(max(line))] += 1 - sum(line)
    found = verdict(A=exact, H=matrix(H[h]), X0=None if X0 is None else matrix(X0))
    assert outcome in (found.verdict if X0 is None else found.verdict_x0, "UNDECIDED")
    assert tends_to in (found.tends_to, None) and rank in (found.limit_rank, None)
    assert limit is None or found.limit == near(limit)


@pytest.mark.parametrize(("n", "outcome"), [(1, "UNDECIDED"), (64, "SMOOTHING"), (65, "UNDECIDED")])
def test_cells_are_looked_at_from_2_to_64_tokens(n, outcome):
    assert LARGEST_SIDE == 64
    layer = read_layer([[1 / n] * n] * n, [[0.3]], [[float(i)] for i in range(n)])
    assert decided_in_cell(*layer).outcome == outcome
    if n == 64:
        # What is known is not asked for, and more pairs than 1024 are not looked at.
        assert decided_in_cell(*layer, known=True).outcome == "UNDECIDED"
        larger = read_layer(layer[0].A, 0.3 * np.eye(17))
        assert decided_in_cell(*larger).outcome == "UNDECIDED"


def test_heads_and_logits_have_a_cell_too():
    layer = read_layer(floats("AA"), None, [[1.0], [2.0]], factors=([[0.5]], [[0.5]]))
    assert decided_in_cell(*layer).outcome == "SMOOTHING"
    given = {"logits": [[0.0, -np.inf], [0.0, 50.0]], "H": [[-0.5, 1.0], [0.0, -0.5]]}
    found = verdict(**given, X0=[[1.0, 2.0], [3.0, 5.0]])
    assert (found.verdict, found.verdict_x0, found.limit_rank) == (*["NON_SMOOTHING"] * 2, 1)


@cases(
    "pattern, groups",
    ("0 1; 1 0", [[0], [1]]), ("CYCLE", [[0], [1], [2]]), ("1 1; 1 0", [[0, 1]]), ("1", [[0]]),
    ("0 1 0 1; 1 0 1 0; 0 1 0 1; 1 0 1 0", [[0, 2], [1, 3]]),
)  # fmt: skip
def test_cyclic_groups_of_a_class(pattern, groups):
    entries = np.array(floats(pattern)) > 0
    assert cyclic_groups(entries, list(range(len(entries)))) == groups


def test_T6_1_minus_a_and_small_eigenvalues_keep_their_digits():
    def cell(A):
        return read_layer(A, [[0.5]])[0]

    near = cell([[1.0, 0.0], [1e-20, 1.0]])
    E = departures(near)
    assert E[0][0] == 0 and E[1][1].real.rel_accuracy_bits() > 45
    assert abs(float(E[1][1].real.mid()) - 1e-20) < 1e-30
    with at_precision(192):
        small = next(modes_of(cell([[1.0, 0.0], [1.0, 1e-20]]), None)).A.blocks
        assert [x.consensus for x in small] == [True, False]
        assert (1 - small[1].value).real.rel_accuracy_bits() > 45
        found = next(modes_of(near, None))
        one, other = (block.value for block in found.A.blocks)
        assert one == 0 and other.real.rel_accuracy_bits() > 45
        # The multiplier is taken the way that keeps these digits: 1 + h - h s.
        (mode,) = [x for x in found.all_modes() if not x.attention.consensus]
        assert abs(float((1.5 - mode.multiplier).real.mid()) - 0.5e-20) < 1e-30


def test_T4e_where_nothing_leads_nothing_is_said():
    nothing = Some(leading=lambda: iter([[]]), lasts=lambda: False, shape=(2, 1))
    assert limits_of(nothing, Outcome.UNDECIDED) == UNKNOWN


@pytest.mark.parametrize("seed", range(40))
def test_T4e_whatever_leads_is_among_modes_that_are_said_to_lead(seed):
    """Moduli anywhere in their intervals, of modes that may be missing unless they are sure."""
    rng = np.random.default_rng(seed)
    modes = [
        Some(low=low, high=low + wide, sure=sure < 1, multiplier=flint.acb(1))
        for low, wide, sure in rng.integers([1, 0, 0], [5, 3, 3], (5, 3)).tolist()
    ]
    for mode in modes:
        mode.exceeds = lambda other, low=mode.low: low > other.high
    said = list(CellModes.leading(Some(all_modes=lambda: modes)))
    for _ in range(50):
        there = [mode for mode in modes if mode.sure or rng.random() < 0.5]
        sizes = [rng.integers(mode.low, mode.high + 1) for mode in there]
        leads = [mode for mode, x in zip(there, sizes, strict=True) if x == max(sizes)]
        assert any(all(mode in top for mode in leads) for top in said)
