"""How far two answers to one case may be apart: each number by its field, all else not at all.

A tolerance is what another LAPACK, thread or order of summation can change: from the precision that
a number is computed in and the condition of what it is computed of, or from the errors that the
answers themselves claim. `python -m tests.corpora.take --tolerances` prints which field has which.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

INFINITE = {"inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Tolerance:
    """|a - b| <= relative max(|a|, |b|, |scale|) + absolute + times (the errors claimed).

    scale: a field beside this one. claimed: fields beside it with the answers' own bounds of their
    error; where one is infinite no digit is compared. factor: of the size of an error, by which it
    may be off; sizes below `absolute` are equal.
    """

    why: str
    relative: float = 0.0
    absolute: float = 0.0
    scale: str = ""
    claimed: tuple[str, ...] = ()
    times: float = 1.0
    factor: float = 0.0


EQUAL = Tolerance("equal")
EXACT = Tolerance(
    "from balls of more digits than binary64 has, rounded once or twice", 1e-12, 1e-15
)
EXACT_MARGIN = Tolerance(
    "the exact difference, rounded once: relative to itself, however small", 1e-12
)
RATIO = Tolerance("exact or in balls, from the numbers given, rounded once or twice", 1e-12, 1e-300)
LOG = Tolerance("logarithms of those", 1e-12, 1e-12)
DOUBLE = Tolerance(
    "binary64, sides up to 5: rounding moves a double eigenvalue by sqrt(eps) = 1.5e-8; with "
    "larger Jordan blocks a case is UNDECIDED or decided in fractions",
    1e-7, 1e-9,
)  # fmt: skip
DOUBLE_MARGIN = Tolerance("the same of a difference of radii", 1e-7, 1e-9, scale="rho_consensus")
DISTANCE = Tolerance(
    "a relative change to first order; a few eps where rounding decides", 1e-6, 1e-15
)
SHOWS = Tolerance("a quotient of modes: conditions to 1e3 of 1e-12", 1e-9)
SIMPLE = Tolerance("binary64, simple eigenvalues of sides to 8, conditions to 1e5", 1e-10, 1e-10)
CLAIMED_MARGIN = Tolerance("the error of the margin that both claim", 1e-12, 1e-14,
                           claimed=("margin_error",), times=2.0)  # fmt: skip
SIZE = Tolerance(
    "the size of an error: within a factor of 1000, or below 1e-9", 0.0, 1e-9, factor=1e3
)
LAYERS = Tolerance("300 layers in binary64, each with a relative error of some 10 eps", 1e-9, 1e-9)
DIGITS = Tolerance("1200 digits, shown in binary64", 1e-12, 1e-300)
PREDICTED = Tolerance("from simple eigenvalues in binary64, conditions to 1e3", 1e-11, 1e-12)
HFC = Tolerance("the error of HFC/LFC that both answers claim", 1e-13, 1e-13,
                claimed=("error",), times=2.0)  # fmt: skip
COSINE = Tolerance("the error of the tokens that both answers claim", 1e-13, 1e-13,
                   claimed=("cosine_error",), times=2.0)  # fmt: skip
SPREAD = Tolerance(
    "the errors of HFC, mean and tokens that both claim: 1 - cos and sigma_2 / sigma_1 are known "
    "relative to HFC",
    1e-11, 1e-11, claimed=("error", "hfc_error", "cosine_error"), times=4.0,
)  # fmt: skip
NETWORK = Tolerance(
    "binary64, but ranks by a Gram matrix (sqrt(eps) = 1.5e-8) and the library's rotations in "
    "binary32 (6e-8), times 13 in intervals of two inputs",
    2e-6, 2e-6,
)  # fmt: skip
SINGLE = Tolerance("binary32 through 2 layers, then conditions to 1e4: 1e4 eps", 1e-3, 1e-3)
RESIDUE = Tolerance("what rounding leaves of 0, in binary32 at most", 0.0, 1e-4)
ENDS = Tolerance("ends of intervals in outward rounding: of widths to 1e-3 over a box", 1e-7, 1e-7)
DEFECTIVE = Tolerance("a Jordan block of three in binary64: cbrt(eps) = 6e-6", 1e-4, 1e-4)
CERTIFIED = Tolerance("ends of intervals that prove a radius, rounded outwards", 1e-9, 1e-9)
SEARCHED = Tolerance("the end of a bisection", 1e-2)
TRAINED = Tolerance(
    "binary32 through an epoch of training: 1e5 eps, and an image or two", 2e-2, 2e-2
)
COUNT = Tolerance("an image or two of 360", 0.0, 3.0)
TIMED = Tolerance("seconds over seconds: not compared", absolute=math.inf)

# By field name; "" is every other number that is not whole.
_EXACT = {"": EXACT, "margin": EXACT_MARGIN, "hfc_lfc": RATIO, "log_hfc_lfc": LOG,
          "distance": DISTANCE, "shows_from": SHOWS}  # fmt: skip
_FLOATS = {"": DOUBLE, "margin": DOUBLE_MARGIN, "hfc_lfc": RATIO, "log_hfc_lfc": LOG,
           "distance": DISTANCE}  # fmt: skip
_RUN = {
    "log_hfc_lfc": HFC, "cos_mean": COSINE, "cos_min": COSINE, "cos_abs_mean": COSINE,
    "cos_abs_min": COSINE, "effective_rank": SPREAD, "sigma2_sigma1": SPREAD,
    "log_one_minus_cos_min": SPREAD, "log_effective_rank_excess": SPREAD,
    "log_sigma2_sigma1": SPREAD, "error": SIZE, "hfc_error": SIZE, "cosine_error": SIZE,
}  # fmt: skip
_INSPECT = {"": NETWORK, "av_error": RESIDUE, "account_error": RESIDUE}
_ON_SINGLE = _INSPECT | {"": SINGLE}
_COMMANDS = {"": LAYERS, "cost": TIMED, "error": RESIDUE, "largest_error_of_log_hfc_lfc": SIZE,
             "largest_radius": SIZE}  # fmt: skip
_TRAIN = {"": TRAINED, "test_correct": COUNT}
BY_FIELD: dict[str, dict[str, Tolerance]] = {
    "verdicts, exact": _EXACT,
    "verdicts, floats": _FLOATS,
    "near_ties": _EXACT,
    "certificates": {"": CERTIFIED},
    "bounds": {},
    "rates": {"measured": DIGITS, "predicted": PREDICTED},
    "streams, exact": {"": SIMPLE},
    "streams, floats": {"": DOUBLE, "margin": DOUBLE_MARGIN},
    "evolve": _RUN,
    "sweep": {"": LAYERS, "margin": CLAIMED_MARGIN, "margin_error": SIZE},
    "inspect": _INSPECT,
    "inspect, binary32": _ON_SINGLE,
    "enclose": {"": ENDS, "eps": SEARCHED},
    "commands": _COMMANDS,
    "commands, a model in binary32": _ON_SINGLE,
    "commands, train": _TRAIN,
    "commands, simulate defective": {"": DEFECTIVE},
}
_OF_A_MODEL = ("inspect", "stability", "loop", "flips", "tilt", "readings", "certify-model",
               "exponents of a model")  # fmt: skip


def tolerances_of(corpus: str, case: str, answer: Any) -> dict[str, Tolerance]:
    """By field name, for this case."""
    name = corpus
    if corpus in ("verdicts", "streams"):
        name += ", exact" if answer.get("status") == "exact" else ", floats"
    elif corpus == "inspect" and case.endswith("binary32"):
        name += ", binary32"
    elif corpus == "commands" and case in _OF_A_MODEL:
        name += ", a model in binary32"
    elif corpus == "commands" and f"commands, {case}" in BY_FIELD:
        name += f", {case}"
    return BY_FIELD[name]


def described(corpus: str) -> Iterator[str]:
    """A line a field."""
    for name, fields in BY_FIELD.items():
        if name.split(",")[0] == corpus:
            for field, t in fields.items():
                size = f"a factor of {t.factor:g}" if t.factor else f"{t.relative:g} of it"
                yield f"{name}: {field or 'every other number'}: {size} + {t.absolute:g} ({t.why})"


@dataclass(frozen=True)
class Move:
    """One value of one case that differs. field: its place without numbers; mended: known wrong."""

    case: str
    field: str
    old: Any
    new: Any
    where: str = ""
    mended: bool = False


def moves(
    corpus: str, case: str, old: Any, new: Any, known_wrong: dict[str, Any] | None = None
) -> Iterator[Move]:
    """What differs by more than its tolerance. A field that bears a mark is mended where it becomes
    what the mark says is right, or anything else where the mark does not know."""
    table = tolerances_of(corpus, case, old)
    for path, a, b, beside in _pairs(old, new, (), ({}, {})):
        if within(table, path, a, b, *beside):
            continue
        field = ".".join(name for name in path if not name.lstrip("-").isdigit())
        mark = (known_wrong or {}).get(field)
        mended = mark is not None and (
            "right" not in mark or within(table, path, mark["right"], b, *beside)
        )
        yield Move(case, field, a, b, ".".join(path), mended)


ABSENT = "(absent)"
Beside = tuple[dict[str, Any], dict[str, Any]]


def _pairs(
    old: Any, new: Any, path: tuple[str, ...], beside: Beside
) -> Iterator[tuple[tuple[str, ...], Any, Any, Beside]]:
    """The values of both, each with the objects that they stand in."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            yield from _pairs(old.get(key, ABSENT), new.get(key, ABSENT), (*path, key), (old, new))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for k, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from _pairs(a, b, (*path, str(k)), beside)
    else:
        yield path, old, new, beside


def within(
    table: dict[str, Tolerance],
    path: tuple[str, ...],
    old: Any,
    new: Any,
    old_beside: dict[str, Any],
    new_beside: dict[str, Any],
) -> bool:
    """Whether one value is the other, up to the tolerance of its field."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    name = next((part for part in reversed(path) if not part.lstrip("-").isdigit()), "")
    tolerance = table.get(name, table.get("", EQUAL))
    a, b = number(old), number(new)
    if a is None or b is None:
        return bool(old == new)
    if tolerance.factor:
        low, high = sorted(map(abs, (a, b)))
        return high <= max(tolerance.absolute, low * tolerance.factor) or low >= 1
    if a == b:
        return True
    if name not in table and isinstance(old, int) and isinstance(new, int):
        return False
    allowed = tolerance.absolute
    for field in tolerance.claimed:
        errors = (number(x.get(field)) for x in (old_beside, new_beside))
        allowed += tolerance.times * sum(math.inf if x is None else x for x in errors)
    if math.isinf(a) or math.isinf(b) or math.isinf(allowed):
        return math.isinf(allowed)
    scale = abs(number(old_beside.get(tolerance.scale)) or 0.0)
    return abs(a - b) <= allowed + tolerance.relative * max(abs(a), abs(b), scale)


def number(value: Any) -> float | None:
    """A JSON number, a hexadecimal or decimal one in a string; None for anything else."""
    if isinstance(value, str):
        if value in INFINITE:
            return INFINITE[value]
        try:
            return float.fromhex(value) if "0x" in value else _decimal(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) else None


def _decimal(text: str) -> float | None:
    """What an enclosure writes, -1.234e5; names, fractions and digests are none."""
    return float(text) if "." in text and "e" in text else None
