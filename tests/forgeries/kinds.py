"""Kinds of forgery: each takes an honest certificate and gives the text of a false one.

A kind gives None where it does not apply. What it gives is false, or no certificate: an interval
beside the truth, a word that is another, a part that nothing confirms. The digest is computed anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from tests.forgeries.forging import copied, sealed

Body = dict[str, Any]
Forgery = Callable[[Body], str | None]
PLACES: dict[str, tuple[str, ...]] = {
    "file": (),
    "input": ("input",),
    "claim": ("claim",),
    "genericity": ("claim", "genericity"),
}
FIELDS = {
    "file": ("schema_version", "kind", "input", "claim"),
    "input": ("numbers", "A", "logits", "H", "W_V", "W_proj", "X0"),
    "claim": (
        "verdict", "rho_consensus", "rho_quotient", "margin", "jordan_consensus",
        "jordan_quotient", "genericity", "verdict_x0", "eps", "depth",
    ),
    "genericity": ("mode", "coefficient"),
}  # fmt: skip
WRONG_TYPES = {
    "null": None, "a truth value": True, "a float": 0.5, "an empty text": "", "an empty list": [],
    "an empty object": {}, "a list of itself": None, "an object of itself": None,
}  # fmt: skip
WORDS = ("SMOOTHING", "NON_SMOOTHING", "TIE", "TRIVIAL", "UNDECIDED", "UNDEFINED")
MATRICES = ("A", "logits", "H", "W_V", "W_proj", "X0")
INTERVALS = (
    ("claim", "rho_consensus"), ("claim", "rho_quotient"), ("claim", "margin"),
    ("claim", "genericity", "coefficient"),
)  # fmt: skip


def at(body: Body, path: tuple[str, ...]) -> Any:
    """What lies there, None where nothing does."""
    for key in path:
        if not isinstance(body, dict) or key not in body:
            return None
        body = body[key]
    return body


def replaced(body: Body, path: tuple[str, ...], value: Any) -> str:
    """The certificate with another value there."""
    copy = copied(body)
    at(copy, path[:-1])[path[-1]] = value
    return sealed(copy)


# ------------------------------------------------------------------------------- form of the file


def forms() -> Iterator[tuple[str, Forgery]]:
    for place, fields in FIELDS.items():
        for field in fields:
            path = (*PLACES[place], field)
            for name, value in WRONG_TYPES.items():
                yield f"{place}.{field} is {name}", of_another_type(path, name, value)
            yield f"{place}.{field} under another name", renamed(path)
            yield f"{place}.{field} in capitals", in_capitals(path)
            yield f"{place}.{field} twice", repeated(field)
        for extra, value in (
            ("reason", "it is so"), ("method", {"name": "exact"}), ("comment", ""),
            ("status", "NON_ZERO"), ("provenance", {"python": "3"}), ("", None), ("A ", []),
        ):  # fmt: skip
            yield f"{place} with a further part {extra!r}", with_a_part(PLACES[place], extra, value)


def of_another_type(path: tuple[str, ...], name: str, value: Any) -> Forgery:
    def forgery(body: Body) -> str | None:
        found = at(body, path)
        if found is None:
            return None
        of_itself = {"a list of itself": [found], "an object of itself": {path[-1]: found}}
        return replaced(body, path, of_itself.get(name, value))

    return forgery


def renamed(path: tuple[str, ...]) -> Forgery:
    def forgery(body: Body) -> str | None:
        copy, found = copied(body), at(body, path)
        if found is None:
            return None
        del at(copy, path[:-1])[path[-1]]
        at(copy, path[:-1])[path[-1] + "_"] = found
        return resealed(body, copy)

    return forgery


def in_capitals(path: tuple[str, ...]) -> Forgery:
    def forgery(body: Body) -> str | None:
        copy, found = copied(body), at(body, path)
        if found is None:
            return None
        del at(copy, path[:-1])[path[-1]]
        at(copy, path[:-1])[path[-1].swapcase()] = found
        return resealed(body, copy)

    return forgery


def resealed(body: Body, copy: Body) -> str:
    """With a digest that fits where one can be computed."""
    whole = {"schema_version", "kind", "input", "claim"} <= copy.keys()
    return sealed(copy) if whole else json.dumps(copy | {"digest": body["digest"]})


def repeated(field: str) -> Forgery:
    """The same key once more with the same value: which of two is meant is nobody's choice."""

    def forgery(body: Body) -> str | None:
        text = json.dumps(body)
        start = text.find(f'"{field}": ')
        if start < 0:
            return None
        _, end = json.JSONDecoder().raw_decode(text, start + len(field) + 4)
        return f"{text[:end]}, {text[start:end]}{text[end:]}"

    return forgery


def with_a_part(path: tuple[str, ...], key: str, value: Any) -> Forgery:
    def forgery(body: Body) -> str | None:
        return replaced(body, (*path, key), value) if at(body, path) is not None else None

    return forgery


# ------------------------------------------------------------------------------------- intervals


def ends_beside(low: float, high: float) -> dict[str, tuple[float, float]]:
    """Intervals that do not hold what this one holds."""
    up, down = math.nextafter(high, math.inf), math.nextafter(low, -math.inf)
    width = max(high - low, 1e-9, 1e-9 * abs(high)) if math.isfinite(high) else abs(low)
    return {
        "above": (high + width, high + 2 * width),
        "far above": (high + 1e3 * width + 1, 2 * (high + 1e3 * width) + 2),
        "below": (low - 2 * width, low - width),
        "far below": (low - 1e3 * width - 2, low - 1e3 * width - 1),
        "with its low end an ulp past the high one": (up, high + width),
        "with its high end an ulp short of the low one": (low - width, down),
        "of one point beside it": (up, up),
        "with the other sign": (-high - width, -low - width) if low > 0 else (-low, up - low),
        "past it without an end": (high + width, math.inf),
        "before it without an end": (-math.inf, low - width),
    }  # fmt: skip


SPELLED = {
    "with its ends exchanged": lambda low, high: ["0x1.8000000000000p+9", "-0x1.8000000000000p+9"],
    "in decimals": lambda low, high: [str(float.fromhex(low)), str(float.fromhex(high))],
    "in JSON numbers": lambda low, high: [float.fromhex(low), float.fromhex(high)],
    "in capitals": lambda low, high: [low.upper(), high.upper()],
    "with spaces": lambda low, high: [f" {low}", high],
    "without 0x": lambda low, high: [low.replace("0x", ""), high.replace("0x", "")],
    "in other hexadecimals": lambda low, high: [low.replace("p", "0p"), high],
    "of one end": lambda low, high: [low],
    "of three ends": lambda low, high: [low, high, high],
    "of an infinite low end": lambda low, high: ["inf", "inf"],
    "of a high end -inf": lambda low, high: ["-inf", "-inf"],
    "of Infinity": lambda low, high: [low, "Infinity"],
    "of nan": lambda low, high: ["nan", "nan"],
    "of an exponent beyond": lambda low, high: [low, "0x1.0000000000000p+5000"],
    "of an exponent without end": lambda low, high: [low, "0x1.0000000000000p+" + "9" * 5000],
    "of a subnormal that is rounded": lambda low, high: ["-0x1.8p-1075", high],
    "of fractions": lambda low, high: ["0", "1000000"],
    "as a text": lambda low, high: low,
    "as an object": lambda low, high: {"low": low, "high": high},
    "of nested ends": lambda low, high: [[low], [high]],
    "of truth values": lambda low, high: [False, True],
}  # fmt: skip


def intervals() -> Iterator[tuple[str, Forgery]]:
    for path in INTERVALS:
        name = ".".join(path)
        for side in ends_beside(1.0, 2.0):
            yield f"{name} {side}", beside(path, side)
        for spelling, spell in SPELLED.items():
            yield f"{name} {spelling}", spelled(path, spell)


def beside(path: tuple[str, ...], side: str) -> Forgery:
    def forgery(body: Body) -> str | None:
        found = at(body, path)
        if found is None:
            return None
        low, high = map(float.fromhex, found)
        ends = ends_beside(low, high)[side]
        if any(map(math.isnan, ends)) or not (ends[0] > high or ends[1] < low):
            return None
        texts = [x.hex() if math.isfinite(x) else str(x) for x in ends]
        return replaced(body, path, texts)

    return forgery


def spelled(path: tuple[str, ...], spell: Any) -> Forgery:
    def forgery(body: Body) -> str | None:
        found = at(body, path)
        if found is None or not {"inf", "-inf"}.isdisjoint(found):
            return None
        return replaced(body, path, spell(*found))

    return forgery
