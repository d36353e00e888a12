"""Kinds of forgery: words, counts, depths and inputs that are others."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.forgeries.forging import claiming
from tests.forgeries.kinds import (
    MATRICES,
    WORDS,
    Body,
    Change,
    Forgery,
    Kinds,
    changed,
    changes,
    edited,
    to,
    where,
    without,
)

# ------------------------------------------------------------------------------ words and counts

OTHER_WORDS: dict[str, Change] = {
    "in small letters": str.lower, "with a space": lambda word: word + " ",
    "in part": lambda word: word[:2], "with a word after it": lambda word: word + " exactly",
}  # fmt: skip
SIZES: dict[str, Change] = {
    "one more": lambda size: size + 1, "one less": lambda size: size - 1, "is 7": to(7),
    "negative": lambda size: -size, "a float": float, "a text": str,
}  # fmt: skip


def words() -> Kinds:
    for field in ("verdict", "verdict_x0"):
        for word in WORDS:
            # UNDECIDED is no lie about a verdict, so it is given radii that are none.
            lie = changed(("claim", field), to(word))
            if (field, word) == ("verdict", "UNDECIDED"):
                lie = with_claims(verdict=word, rho_consensus=[(-3.0).hex(), (-2.0).hex()])
            decided = where(lambda body: body["claim"]["verdict"] != "UNDECIDED", lie)
            yield f"claim.{field} is {word}", decided
        yield from changes(("claim", field), OTHER_WORDS)
    for mode in ("consensus", "quotient", "both", "Consensus"):
        yield f"genericity.mode is {mode}", changed(("claim", "genericity", "mode"), to(mode))
        content = {"mode": mode, "coefficient": [(0.001).hex(), (0.002).hex()]}
        lifted = where(lacks("genericity"), with_claims(genericity=content))
        yield f"a claim of genericity for {mode} where there is none", lifted
    for field in ("jordan_consensus", "jordan_quotient"):
        yield from changes(("claim", field), SIZES)
        yield f"claim.{field} is endless", endless(field)
        yield f"claim.{field} alone", without("claim", field)
    for name, tie, size in (("where there is no tie", False, 1), ("5 and 5 at a tie", True, 5)):
        blocks = with_claims(jordan_consensus=size, jordan_quotient=size)
        applies = where(lambda body, tie=tie: (body["claim"]["verdict"] == "TIE") is tie, blocks)
        yield f"Jordan blocks {name}", applies


def endless(field: str) -> Forgery:
    number = changed(("claim", field), to(777_777_777))
    return lambda body: (text := number(body)) and text.replace("777777777", "7" * 5000)


def with_claims(**claims: Any) -> Forgery:
    return lambda body: claiming(body, **claims)


def lacks(part: str) -> Callable[[Body], bool]:
    return lambda body: part not in body["claim"]


# ----------------------------------------------------------------------------------------- depths


DEPTHS: dict[str, Change] = {
    "0": to(0), "a tenth": lambda depth: depth // 10, "half": lambda depth: depth // 2,
    "negative": lambda depth: -depth, "a float": float, "a text": str,
    "a power of ten as a float": to(1e18), "a truth value": to(True),
    "in a list": lambda depth: [depth],
}  # fmt: skip
TEXTS_OF_EPS = (
    "1/1000000000", "0", "-1/1000", "0.001", "1e-3", "2/2000", "1/0", "1/-1000", "+1/1000",
    " 1/1000", "1/1000 ", "1_0/1000", "nan", "inf", "", "1/1000/1", "\u0661/1000",
    "1" * 20_001, "1e-999999999999",
)  # fmt: skip


def depths() -> Kinds:
    yield from changes(("claim", "depth"), DEPTHS)
    yield from changes(("claim", "eps"), {f"is {eps[:12]!r}": to(eps) for eps in TEXTS_OF_EPS})
    yield "claim.depth is endless", endless("depth")
    for field in ("eps", "depth"):
        yield f"claim.{field} alone", without("claim", field)
    far = {"eps": "1/1000", "depth": 10**6}
    yield "a depth where there is none", where(lacks("depth"), with_claims(**far))
    smoothing = with_claims(**far, verdict_x0="SMOOTHING")
    other = where(
        lambda body: body["claim"].get("verdict_x0", "SMOOTHING") != "SMOOTHING", smoothing
    )
    yield "a depth and SMOOTHING where there is none", other


# ----------------------------------------------------------------------------------------- inputs

ENTRIES: dict[str, Any] = {
    "a number": 1, "a float": 0.5, "null": None, "true": True, "a list": ["1"], "empty": "",
    "a decimal": "0.5", "a power of ten": "1e-3", "an endless power": "1e999999999999",
    "spaced": " 1/2", "signed": "+1/2", "thrice divided": "1/2/3", "underscored": "1_0",
    "nan": "nan", "inf": "inf", "Infinity": "Infinity", "divided by zero": "1/0",
    "not in lowest terms": "2/4", "of a leading zero": "01", "of minus zero": "-0",
    "other digits": "\u0661", "endless": "1" * 20_001, "hexadecimal beyond": "0x1p5000",
    "hexadecimal endless": "0x1." + "0" * 5000 + "p+0", "hexadecimal in capitals": "0X1.8P+0",
    "hexadecimal shortened": "0x1p+0", "hexadecimal rounded": "0x1.00000000000001p+0",
}  # fmt: skip


SHAPES: dict[str, Change] = {
    "without a row": lambda rows: rows[:-1],
    "without a column": lambda rows: [row[:-1] for row in rows],
    "ragged": lambda rows: [rows[0] + rows[0][:1], *rows[1:]] if len(rows) > 1 else [[]],
    "with a row more": lambda rows: [*rows, rows[0]],
    "of depth three": lambda rows: [rows],
    "flat": lambda rows: rows[0],
    "with an object for a row": lambda rows: [{"0": rows[0]}, *rows[1:]],
    "with a text for a row": lambda rows: ["11", *rows[1:]],
}
# Where a claim stands on what is changed: the claim, the matrix and the change.
STANDING = {
    "another H": ("rho_consensus", "H", lambda rows: shifted(rows)),
    "another factor": ("genericity", "W_V", lambda rows: scaled(rows)),
    "X0 of zeros": ("genericity", "X0", lambda rows: zeros(rows)),
    "X0 at consensus": ("depth", "X0", lambda rows: [rows[0]] * len(rows)),
}


def inputs() -> Kinds:
    for matrix in MATRICES:
        for name, entry in ENTRIES.items():
            yield f"an entry of {matrix} {name}", with_entry(matrix, entry)
        yield from changes(("input", matrix), SHAPES)
        yield f"{matrix} left out", without("input", matrix)
    yield (
        "numbers of another kind",
        changed(
            ("input", "numbers"), lambda kind: {"fractions": "binary64"}.get(kind, "fractions")
        ),
    )
    yield "A with a negative entry", other_attention([["3/2", "-1/2"], ["1/4", "3/4"]])
    yield "A with rows that sum to more", other_attention([["3/4", "1/2"], ["1/4", "3/4"]])
    yield "another A", other_attention([["1/8", "7/8"], ["3/8", "5/8"]])
    yield "the identity for A", other_attention([["1", "0"], ["0", "1"]])
    for matrix in ("A", "H", "X0"):
        yield f"{matrix} masked", with_entry(matrix, "-inf")
    masked = changed(("input", "logits"), lambda rows: [["-inf"] * len(rows), *rows[1:]])
    yield "logits masked whole", masked
    for first, second in (("A", "logits"), ("H", "W_V")):
        both = edited(("input", first), lambda at, key, other=second: at.update({other: at[key]}))
        yield f"{first} and {second}", both
    for name, (claimed, matrix, change) in STANDING.items():
        other = changed(("input", matrix), change)
        yield name, where(lambda body, claimed=claimed: claimed in body["claim"], other)


def with_entry(matrix: str, entry: Any) -> Forgery:
    return changed(("input", matrix), lambda rows: [[entry, *rows[0][1:]], *rows[1:]])


def other_attention(rows: Any) -> Forgery:
    """For a case of two tokens in fractions whose A says something else."""
    return where(
        lambda body: (
            body["input"]["numbers"] == "fractions"
            and len(body["input"].get("A", ())) == 2
            and body["claim"]["verdict"] != "TIE"
        ),
        changed(("input", "A"), lambda old: rows),
    )


def scaled(rows: list[list[str]]) -> list[list[str]]:
    """Eleven times the matrix."""
    if "x" in rows[0][0]:
        return [[(11 * float.fromhex(x)).hex() for x in row] for row in rows]
    return [[str(11 * Fraction(x)) for x in row] for row in rows]


def shifted(rows: list[list[str]]) -> list[list[str]]:
    """11 H + 3 I: other radii."""
    found = scaled(rows)
    for i, row in enumerate(found):
        binary = "x" in row[i]
        row[i] = (float.fromhex(row[i]) + 3).hex() if binary else str(Fraction(row[i]) + 3)
    return found


def zeros(rows: list[list[str]]) -> list[list[str]]:
    zero = "0x0.0p+0" if "x" in rows[0][0] else "0"
    return [[zero] * len(row) for row in rows]


# ------------------------------------------------------------------------------------- the file

OTHER_FILES: dict[str, Any] = {
    "cut short": lambda text: text[:-2],
    "empty": lambda text: "",
    "with an end": lambda text: text + " x",
    "twice": lambda text: text + text,
    "in a list": lambda text: f"[{text}]",
    "with a mark before it": lambda text: "\ufeff" + text,
    "in single quotes": lambda text: text.replace('"', "'"),
    "with NaN": lambda text: text.replace("2,", "NaN,", 1),
    "with Infinity": lambda text: text.replace("2,", "Infinity,", 1),
    "with a comment": lambda text: "// true\n" + text,
    "of schema version 1": lambda text: text.replace('"schema_version": 2', '"schema_version": 1'),
    "of schema version 3": lambda text: text.replace('"schema_version": 2', '"schema_version": 3'),
    "of schema version 2.0": lambda text: text.replace('version": 2', 'version": 2.0'),
    'of schema version "2"': lambda text: text.replace('version": 2', 'version": "2"'),
    "of an endless schema version": lambda text: text.replace('": 2', '": ' + "2" * 30_000),
    "of another kind": lambda text: text.replace("oversmoothing certificate", "certificate"),
    "nested without end": lambda text: "[" * 10**5 + text,
    "nested in claims": lambda text: text.replace('"claim": {', '"claim": {"a":' * 500 + "{"),
    "with a text without end": lambda text: text.replace("}", '"', 1),
    "with another digest": lambda text: text[:-4] + ("00" if text[-4:-2] != "00" else "11") + '"}',
    "with its digest in capitals": lambda text: text[:-66] + text[-66:-2].upper() + '"}',
    "without its digest": lambda text: json.dumps(
        {k: v for k, v in json.loads(text).items() if k != "digest"}
    ),
    "with a digest of nothing": lambda text: json.dumps(json.loads(text) | {"digest": ""}),
    "with null for a digest": lambda text: json.dumps(json.loads(text) | {"digest": None}),
    "with two digests": lambda text: text[:-1] + ', "digest": ""}',
}


def files() -> Kinds:
    for name, change in OTHER_FILES.items():
        yield f"a file {name}", lambda body, change=change: change(json.dumps(body))
