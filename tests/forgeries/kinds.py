"""Kinds of forgery: each takes an honest certificate and gives the text of a false one.

A kind gives None where it does not apply. What it gives is false, or no certificate: an interval
beside the truth, a word that is another, a part that nothing confirms. The digest is computed anew.
"""

import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tests.forgeries.forging import copied, sealed

Body = dict[str, Any]
Forgery = Callable[[Body], str | None]
Kinds = Iterator[tuple[str, Forgery]]
Change = Callable[[Any], Any]
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
WRONG_TYPES: dict[str, Callable[[str, Any], Any]] = {
    "null": lambda key, x: None, "a truth value": lambda key, x: True,
    "a float": lambda key, x: 0.5, "an empty text": lambda key, x: "",
    "an empty list": lambda key, x: [], "an empty object": lambda key, x: {},
    "a list of itself": lambda key, x: [x], "an object of itself": lambda key, x: {key: x},
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


def edited(path: tuple[str, ...], edit: Callable[[Body, str], Any]) -> Forgery:
    """Edited in the object that holds the key, where something lies at the path and changes."""

    def forgery(body: Body) -> str | None:
        if at(body, path) is None:
            return None
        copy = copied(body)
        edit(at(copy, path[:-1]), path[-1])
        if json.dumps(copy) == json.dumps(body):
            return None
        # With a digest that fits where one can be computed.
        whole = {"schema_version", "kind", "input", "claim"} <= copy.keys()
        return sealed(copy) if whole else json.dumps(copy | {"digest": body["digest"]})

    return forgery


def changed(path: tuple[str, ...], change: Change) -> Forgery:
    """With something else in the place of what lies there."""
    return edited(path, lambda place, key: place.update({key: change(place[key])}))


def changes(path: tuple[str, ...], table: dict[str, Change]) -> Kinds:
    """A kind for each change of what lies there."""
    for name, change in table.items():
        yield f"{'.'.join(path)} {name}", changed(path, change)


def to(value: Any) -> Change:
    return lambda old: value


def without(*path: str) -> Forgery:
    """Without what lies there."""
    return edited(path, lambda place, key: place.pop(key))


def where(applies: Callable[[Body], bool], forgery: Forgery) -> Forgery:
    """Of some certificates alone."""
    return lambda body: forgery(body) if applies(body) else None


# ------------------------------------------------------------------------------- form of the file


def renamed(path: tuple[str, ...], rename: Callable[[str], str]) -> Forgery:
    return edited(path, lambda place, key: place.update({rename(key): place.pop(key)}))


def forms() -> Kinds:
    for place, fields in FIELDS.items():
        for field in fields:
            path = (*PLACES[place], field)
            for name, of in WRONG_TYPES.items():
                other = edited(path, lambda at, key, of=of: at.update({key: of(key, at[key])}))
                yield f"{place}.{field} is {name}", other
            yield f"{place}.{field} under another name", renamed(path, lambda key: key + "_")
            yield f"{place}.{field} in capitals", renamed(path, str.swapcase)
            yield f"{place}.{field} twice", repeated(field)
        for extra, value in (
            ("reason", "it is so"), ("method", {"name": "exact"}), ("comment", ""),
            ("status", "NON_ZERO"), ("provenance", {"python": "3"}), ("", None), ("A ", []),
        ):  # fmt: skip
            further = with_a_part(PLACES[place], extra, value)
            yield f"{place} with a further part {extra!r}", further


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
        copy = copied(body)
        if (place := at(copy, path)) is None:
            return None
        place[key] = value
        return sealed(copy)

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


def spelled(ends: list[str], side: str) -> Any:
    return ends if {"inf", "-inf"} & {*ends} else SPELLED[side](*ends)


def intervals() -> Kinds:
    for path in INTERVALS:
        for names, change in ((ends_beside(1.0, 2.0), beside), (SPELLED, spelled)):
            yield from changes(path, {name: partial(change, side=name) for name in names})


def beside(ends: list[str], side: str) -> list[str]:
    """An interval that holds nothing of this one, or the same where there is none there."""
    low, high = map(float.fromhex, ends)
    other = ends_beside(low, high)[side]
    if any(map(math.isnan, other)) or not (other[0] > high or other[1] < low):
        return ends
    return [x.hex() if math.isfinite(x) else str(x) for x in other]
