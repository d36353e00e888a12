"""What the theory answers: verdicts, certificates, depth bounds, rates, several streams."""

import hashlib
import json
import random
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import oversmoothing
from benchmarks.predictions import rate_rows
from oversmoothing.theory.support.files import json_number
from tests.corpora.asking import inside, printed, printed_json
from tests.corpora.cases import Rows, case
from tests.streams.drawing import draw as draw_streams

Entries = Iterator[tuple[str, Any]]
VERDICTS, CERTIFICATES, NEAR_TIES, BOUNDS, STREAMS = 2000, 160, 60, 60, 150
EXAMPLES = ["GT1", "GT3", "GT5", "GT10", "GT12", "GT17"]
# Every fifth verdict is certified too. Exact ratios are long: of those a digest is kept.
LONG = 40
DEPTHS = [1, 2, 7, 50]


def verdicts() -> Entries:
    """`verdict(...).to_json_object()` of drawn cases, without the reason."""
    for seed in range(VERDICTS):
        yield str(seed), verdict_of(case(seed), certified=seed % 5 == 0)


def verdict_of(given: dict[str, Any], certified: bool = False) -> dict[str, Any]:
    depth = DEPTHS if "X0" in given else []
    found = oversmoothing.verdict(**given, depth=depth, exact_binary=certified)
    return without_words(found.to_json_object())


def without_words(answer: dict[str, Any]) -> dict[str, Any]:
    """The values of a verdict; an exact ratio of many characters as its digest.

    From floats `shows_from` is left out: it looks at modes that may be there or not, and what is
    0 up to rounding another processor rounds otherwise.
    """
    left_out = {"reason"} if answer["status"] == "exact" else {"reason", "shows_from"}
    kept = {key: value for key, value in answer.items() if key not in left_out}
    for mode in kept.get("dominant") or ():
        if mode["h"] == [0, 0]:  # every a has this multiplier: LAPACK's order tells which is named
            mode["a"] = None
    for depth, text in kept.get("hfc_lfc_squared", {}).items():
        if len(text) > LONG:
            kept["hfc_lfc_squared"][depth] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return kept


def near_ties() -> Entries:
    """Verdicts in fractions where rho_C and rho_Q differ by 1e-3 to 1e-40 of themselves, or not."""
    for seed in range(NEAR_TIES):
        yield str(seed), verdict_of(near_tie(seed))


def near_tie(seed: int) -> dict[str, list[list[str]]]:
    """Two tokens, a in spec(A), and an h or a pair of them at the boundary, then moved off it.

    The boundary: h = -2/(1+a); or -1 +- i/m for a = (m^2-1)/(m^2+1) (T2d). Of H with two rows the
    basis is changed by an integer matrix of determinant 1.
    """
    r = random.Random(f"near tie {seed}")
    off = r.choice([0, 1, 1, -1, -1]) * Fraction(1, 10 ** r.choice([3, 8, 12, 15, 16, 20, 30, 40]))
    m, pair = r.randint(2, 6), r.random() < 0.5
    a = Fraction(m * m - 1, m * m + 1) if pair else Fraction(r.randint(-3, 7), 8)
    stay = r.randint(1, 7) * (1 - a) / 8
    A = [[1 - stay, stay], [1 - a - stay, a + stay]]
    if min(map(min, A)) < 0:
        A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    if pair:
        H = _turned([[-1 + off, Fraction(-1, m)], [Fraction(1, m), -1 + off]], r.randint(-2, 2))
    elif r.random() < 0.5:
        H = [[-2 / (1 + a) + off]]
    else:
        low = Fraction(-r.randint(0, 4), 4)
        H = _turned([[-2 / (1 + a) + off, Fraction(0)], [Fraction(0), low]], r.randint(-2, 2))
    found = {"A": A, "H": H}
    if r.random() < 0.6:
        found["X0"] = [[Fraction(r.randint(-4, 4)) for _ in H] for _ in A]
    return {name: [[str(x) for x in row] for row in rows] for name, rows in found.items()}


def _turned(H: Rows, k: int) -> Rows:
    """S H S^-1 with S = [[1, k], [0, 1]]."""
    (p, q), (r, s) = H
    return [[p + k * r, q + k * s - k * (p + k * r)], [r, s - k * r]]


def certificates() -> Entries:
    """What `certify` claims of drawn cases and of golden ones."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        for seed in [*range(CERTIFICATES), *EXAMPLES]:
            yield str(seed), certified_claim(seed, "1/1000")


def certified_claim(seed: int | str, eps: str) -> dict[str, Any]:
    words = ["--example", str(seed)]
    if not isinstance(seed, str):
        Path("case.json").write_text(json.dumps(case(seed)))
        words = ["case.json"]
    code = 0 if printed("certify", *words, "--eps", eps, "--out", "written.json") else 1
    return {"code": code, "claim": json.loads(Path("written.json").read_text())["claim"]}


def bounds() -> Entries:
    """The depth from which HFC/LFC stays below eps, as `certify` bounds it."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        chosen = (seed for seed in range(CERTIFICATES, VERDICTS) if "X0" in case(seed))
        for k, seed in zip(range(BOUNDS), chosen, strict=False):
            eps = ["1/2", "1/10", "1e-6", "1e-30"][k % 4]
            claim = certified_claim(seed, eps)["claim"]
            kept = ("verdict", "verdict_x0", "eps", "depth", "status")
            yield f"{seed}, eps {eps}", {name: claim[name] for name in kept if name in claim}


def rates() -> Entries:
    """Rates and depths, predicted and measured."""
    for each in rate_rows():
        numbers = {name: json_number(getattr(each, name)) for name in ("predicted", "measured")}
        yield f"{each.case}: {each.quantity}", {**numbers, "kind": each.kind}


def streams() -> Entries:
    """What `streams` says of drawn cases, every third certified."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        for k in range(STREAMS):
            drawn = draw_streams(32, k)
            written = str if drawn.numbers == "fractions" else float
            matrices = {"A": drawn.A, "H": drawn.H, "R": drawn.R}
            given: dict[str, Any] = {
                name: [[written(x) for x in row] for row in rows] for name, rows in matrices.items()
            }
            given |= {name: [written(x) for x in getattr(drawn, name)] for name in ("p", "q")}
            Path("case.json").write_text(json.dumps(given | {"start": drawn.start}))
            answer = printed_json("verdict", "case.json", *["--certified"] * (k % 3 == 0))
            yield f"{drawn.name} {drawn.mixing} {drawn.numbers}", answer
