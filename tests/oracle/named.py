"""Cases that programs got wrong, by hand; what is true of them the oracle computes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from .draw import Case, Matrix, draw, in_binary64
from .matrices import identity
from .softmax import draw_logits


def _case(name: str, A: list, H: list, X0: list, binary64: bool = False) -> Case:
    matrices = [[[Fraction(x) for x in row] for row in M] for M in (A, H, X0)]
    case = Case(name, *matrices, kind=("named", "named", "named"))
    return replace(in_binary64(case), evolved=_DEEP) if binary64 else case


def _uniform(n: int, a: Fraction) -> Matrix:
    """a I + (1 - a) 11^T / n."""
    return [[a * (i == j) + (1 - a) / n for j in range(n)] for i in range(n)]


def _scalar(x: Fraction, d: int) -> Matrix:
    return [[x if i == j else Fraction(0) for j in range(d)] for i in range(d)]


_TWO = [["3/4", "1/4"], ["1/4", "3/4"]]
_HALF = Fraction(1, 2)
_SMALL = Fraction(1, 10**20)
_TINY = Fraction(1, 10**400)
_CAUSAL = [
    [1, 0, 0, 0],
    ["1/2", "1/2", 0, 0],
    ["1/4", "1/4", "1/2", 0],
    ["1/4", "1/8", "1/8", "1/2"],
]
_LOST = [[1, 0, 0], ["1/2", "1/2", 0], ["1/4", "1/2", "1/4"]]

_DEEP = 3, 30, 400, 20_000

SOON = [
    _case("two classes, binary64", identity(2), [[_HALF]], [[0], [1]], True),
    _case("two classes", identity(2), [[_HALF]], [[0], [1]]),
    _case("nine classes", identity(9), [[_HALF]], [[int(k == 8)] for k in range(9)]),
    _case(
        "a class of one token",
        [["3/4", "1/4", 0], ["1/4", "3/4", 0], [0, 0, 1]],
        [[-_HALF]],
        [[0], [0], [1]],
        True,
    ),
    _case("nearly at consensus", _TWO, [[-_HALF]], [[1], [1 + 1e-11]], True),
    _case("nearly without consensus", _TWO, [[_HALF]], [[1], [-1 + 1e-11]], True),
    _case(
        "nearly without consensus, nine tokens",
        _uniform(9, _HALF),
        [[_HALF]],
        [[k - 4 + Fraction(1, 10**12)] for k in range(9)],
    ),
    _case("1e-100 off consensus", _TWO, [[-_HALF]], [[1], [1 + Fraction(1, 10**100)]]),
    _case("h = -1 + 1e-100", _TWO, [[-1 + Fraction(1, 10**100)]], [[1], [1]]),
    _case("h = -1 + 1e-38", _TWO, [[-1 + Fraction(1, 10**38)]], [[1], [2]]),
    _case("h = -1 + 1e-39", _TWO, [[-1 + Fraction(1, 10**39)]], [[1], [2]]),
    _case("h = 1e-13", _TWO, [[Fraction(1, 10**13)]], [[1], [2]]),
    *(
        _case(f"saturated, h = {h}, fractions", [[1, 0], [_SMALL, 1 - _SMALL]], [[h]], [[1], [2]])
        for h in (_HALF, -_HALF)
    ),
    _case("defective", _CAUSAL, [["1/4"]], [[1], [3], [-2], [5]], True),
    _case("a token without the dominant mode", _LOST, [[-_HALF]], [[1], [3], [2]], True),
    _case(
        "rank two by 1e-8",
        _uniform(3, Fraction(1, 3)),
        _scalar(-_HALF, 2),
        [[1, Fraction(1, 10**8)], [-1, 0], [0, -Fraction(1, 10**8)]],
    ),
    _case("gone after one layer", identity(2), [[-1]], [[1], [2]]),
    _case("one token, h = -1", [[1]], [[-1]], [[3]]),
    _case("one token, h = -1, binary64", [[1]], [[-1]], [[3]], True),
    _case("h = -2, a = 0, binary64", [[_HALF, _HALF], [_HALF, _HALF]], [[-2]], [[1], [2]], True),
    _case("zero mean", _TWO, [[_HALF]], [[1], [-1]]),
    _case("zero mean, binary64", _TWO, [[_HALF]], [[1], [-1]], True),
    _case("h = 1e400", _TWO, [[10**400]], [[1], [2]]),
    _case(
        "all but one row alike",
        [[1, 0, 0], [1, 0, 0], [_HALF, _HALF - _SMALL / 10, _SMALL / 10]],
        [[2]],
        [[1], [2], [3]],
    ),
    _case("X_0 of fractions", [["1/3", "2/3"], [0, 1]], [[4]], [["-8/5"], ["-9/2"]]),
    # Drawn ones that were wrong, or without an answer.
    *(draw(20261122, index) for index in (641, 4093, 5411, 12537, 17379, 19490)),
    *(draw(20261123, index) for index in (3524, 4146, 6512, 8073, 8914, 14181)),
    draw(20261124, 5847),
    *(draw(20261125, index) for index in (923, 982)),
    draw(20261127, 16494),
    draw(20261128, 5177),
    *(draw(20261129, index) for index in (17664, 17877)),
    draw_logits(777, 1440),
    draw_logits(20261127, 380),
    draw_logits(20261127, 18260),
    *(draw_logits(20261122, index) for index in (420, 1740, 5280, 5600, 7800)),
]
# Those that take seconds.
LATER = [
    _case("h = 1e-300", _TWO, [[Fraction(1, 10**300)]], [[1], [2]]),
    _case("h = 1e-13, binary64", _TWO, [[1e-13]], [[1], [2]], True),
    *(
        _case(f"saturated, h = {h}", [[1, 0], [1e-20, 1]], [[h]], [[1], [2]], True)
        for h in (_HALF, -_HALF)
    ),
    _case(
        "all but decoupled", [[1 - _TINY, _TINY], [2 * _TINY, 1 - 2 * _TINY]], [[_HALF]], [[1], [2]]
    ),
    # In floats two radii of which structure alone says that they differ are no tie.
    _case(
        "generic X_0, h = -1e-40, binary64",
        [["4/7", "3/7"], ["3/7", "4/7"]],
        [[-1e-40]],
        [[1], [2]],
        True,
    ),
    draw(20261122, 536),
    draw(20261123, 6457),
    draw(20261130, 19515),
    draw_logits(20261124, 18220),
]
NAMED = [*SOON, *LATER]
