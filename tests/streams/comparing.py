"""What is said of a drawn case, against what brute-force iteration does."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import inf, log
from typing import Any

from oversmoothing.theory.streams.stream_verdict import StreamVerdict, stream_verdict
from oversmoothing.theory.streams.streams import Streams, read_streams
from tests.oracle.compare import Finding, Report
from tests.oracle.judging import RIGHT, UNDECIDED, WRONG

from .drawing import Drawn, Rationals, draw
from .iterated import Growth, array, growth, identity, mixture

CLOSE = "too close to iterate"
# log_2 of the depths: at first, and where strict verdicts lie closer than that tells.
_FIRST, _DEEP = 10, 14
# The same for binary64 that was rounded: 53 bits an entry and layer.
_ROUNDED = 8
# In units of 1/L: Jordan blocks add (k - 1) log 2, and norms of quasi-periodic parts vary.
_ROOM = 10.0
_EPS = 1e-3


def run(count: int, seed: int, first: int = 0) -> Report:
    report = Report()
    for index in range(first, first + count):
        for finding in compare(draw(seed, index)):
            report.add(finding)
    return report


def compare(case: Drawn) -> Iterator[Finding]:
    """One case: its verdict, radii, streams and the depth at which they agree."""
    read = _read(case)
    # What binary64 says, exactly: the rows of A and of a stochastic R over their sums.
    true = replace(case, A=read.layer.rational_A, H=read.layer.rational_H, R=read.mixing.R,
                   p=read.mixing.p, q=read.mixing.q)  # fmt: skip
    squarings = _ROUNDED if case.numbers == "rounded" else _FIRST
    found = growth(true, squarings)
    said = stream_verdict(read, agree_to=_EPS)
    answers = {"verdict": said}
    if case.numbers != "fractions":
        answers["certified"] = stream_verdict(read, certified=True, agree_to=_EPS)
    for name, answer in answers.items():
        for part, outcome, words in _judged(answer, true, found, squarings):
            yield Finding(case, f"{name} {part}".replace("verdict verdict", "verdict"),
                          outcome, words, str(found))  # fmt: skip
    yield from _streams(case, true, said, found, squarings)


def _judged(
    answer: StreamVerdict, true: Drawn, found: Growth, squarings: int
) -> Iterator[tuple[str, str, str]]:
    room = _ROOM / 2**squarings
    words = f"{answer.verdict} {answer.rho_consensus} {answer.rho_quotient}"
    if answer.verdict == "UNDECIDED":
        yield "verdict", UNDECIDED, words
    elif answer.verdict == "TRIVIAL":
        yield "verdict", RIGHT if len(true.A) == 1 else WRONG, words
    elif answer.verdict == "TIE":
        same = found.quotient == found.consensus or abs(found.quotient - found.consensus) < 2 * room
        yield "verdict", RIGHT if same else WRONG, words
    else:
        yield "verdict", _strict(answer, true, found, squarings), words
    if answer.rho_consensus is not None and answer.verdict != "UNDECIDED":
        pairs = [(answer.rho_consensus, found.consensus)]
        if answer.rho_quotient is not None:
            pairs.append((answer.rho_quotient, found.quotient))
        right = all(_agrees(rho, rate, room) for rho, rate in pairs)
        yield "radii", RIGHT if right else WRONG, words


def _agrees(rho: float, rate: float, room: float) -> bool:
    """Whether a radius is what was measured; where one is 0 the other may be left by rounding."""
    if rate == -inf:
        return rho < 1e-6
    return rho > 0 and abs(log(rho) - rate) < room


def _strict(answer: StreamVerdict, true: Drawn, found: Growth, squarings: int) -> str:
    """SMOOTHING or NON_SMOOTHING, iterated further where that is what it takes."""
    sign = 1 if answer.verdict == "SMOOTHING" else -1
    for depth in (squarings, _DEEP):
        if depth > squarings:
            if true.numbers == "rounded":
                return CLOSE
            found = growth(true, depth)
        room = 2 * _ROOM / 2**depth
        if -inf in (found.consensus, found.quotient):
            return RIGHT if sign * (found.consensus > found.quotient) > 0 or (
                sign < 0 and found.quotient > found.consensus) else WRONG  # fmt: skip
        if sign * (found.consensus - found.quotient) > room:
            return RIGHT
        if sign * (found.consensus - found.quotient) < -room:
            return WRONG
    return CLOSE


def _streams(
    case: Drawn, true: Drawn, said: StreamVerdict, found: Growth, squarings: int
) -> Iterator[Finding]:
    room = _ROOM / 2**squarings
    if said.disagreement is not None:
        right = _agrees(said.disagreement, found.apart, room)
        yield Finding(case, "disagreement", RIGHT if right else WRONG, str(said.disagreement),
                      str(found.apart))  # fmt: skip
    if said.streams_become_one is not None:
        less = found.whole - found.apart
        outcome = RIGHT if (less > 2 * room) == said.streams_become_one else CLOSE
        if (said.streams_become_one and less < 0) or (
            not said.streams_become_one and less > 2 * room
        ):
            outcome = WRONG
        yield Finding(case, "become one", outcome, str(said.streams_become_one), str(less))
    if said.agree_from is not None and said.agree_from < 10_000:
        yield _agreed(case, true.R, said.agree_from)
    alone = len(said.dominant) == 1 and said.dominant[0].streams
    # A multiplier 0 leaves no state to compare with.
    lasting = alone and said.dominant[0].multiplier != 0
    if lasting and said.dominant[0].multiplier.imag == 0 and case.numbers != "rounded":
        yield from _mixed(case, true, said)


def _agreed(case: Drawn, R: Rationals, depth: int) -> Finding:
    """tau(R^L) by multiplying L times."""
    power = before = identity(len(R))
    for _ in range(depth):
        before, power = power, power @ array(R)
        if depth > 200:
            power = array([[Fraction(x).limit_denominator(2**200) for x in row] for row in power])
    right = _tau(power) <= _EPS and (depth == 0 or _tau(before) > _EPS)
    return Finding(case, "agree from", RIGHT if right else WRONG, str(depth),
                   f"{float(_tau(power)):.3g}")  # fmt: skip


def _tau(R: Any) -> Fraction:
    return max(abs(a - b).sum() for a in R for b in R) / Fraction(2)


def _mixed(case: Drawn, true: Drawn, said: StreamVerdict) -> Iterator[Finding]:
    """The mix of streams in the one dominant mode, at a depth where it is alone."""
    assert said.dominant[0].streams is not None
    at = [mixture(true, k) for k in (8, 9)]
    moved = max(abs(x - y) for x, y in zip(*at, strict=True))
    if moved > 1e-6:
        return
    w = [z.real for z in said.dominant[0].streams]
    # Streams are told up to a factor: by the stream that the iteration has the largest entry in.
    k = max(range(len(w)), key=lambda k: abs(at[1][k]))
    off = max(abs(x / w[k] - y / at[1][k]) for x, y in zip(w, at[1], strict=True)) if w[k] else inf
    yield Finding(case, "streams", RIGHT if off < 1e-4 else WRONG, str(w), str(at[1]))


def _read(case: Drawn) -> Streams:
    matrices = {"A": case.A, "H": case.H, "R": case.R}
    vectors = {"p": case.p, "q": case.q}
    claimed = None if case.mixing == "any" else case.mixing
    if case.numbers == "fractions":
        return read_streams(**matrices, **vectors, mixing=claimed, start=case.start)
    return read_streams(
        **{name: [[float(x) for x in row] for row in M] for name, M in matrices.items()},
        **{name: [float(x) for x in v] for name, v in vectors.items()},
        mixing=claimed,
        start=case.start,
    )
