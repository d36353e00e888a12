"""The file of an enclosure: which network, which input, and an interval for every metric.

It holds no words and nothing to be believed: `statement_check` recomputes every interval. The input
stands in it to the last bit; of the network its digest.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from oversmoothing.experiments.enclosures.ball_arrays import Ball
from oversmoothing.experiments.enclosures.enclosing import Enclosed
from oversmoothing.experiments.enclosures.network import Network
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import parse_json
from oversmoothing.theory.support.sizes import Array

SCHEMA_VERSION = 1
KIND = "oversmoothing enclosure"
BOX = "oversmoothing enclosure of a box"
# What is claimed of a layer on a box.
CHANGE = "change_log_hfc_lfc"
FORMATS = {"binary32": "<f4", "binary64": "<f8"}
# Significant digits of an end.
DIGITS = 25
# A claim is wider than what it was read off by its radius, or this much of itself: room for the
# checker, whose own balls must lie within it.
ROOM = Fraction(1, 2**64)
_END = re.compile(r"-?(0|[1-9]\.[0-9]{24}e(0|-?[1-9][0-9]{0,4}))")
# Entries of an input and layers that are read: far beyond any model, far below any memory.
_ENTRIES, _LAYERS = 2**24, 2**12

Interval = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Statement:
    """A file as read: claims by layer and name. eps: of a box, whose centre `given` is; else 0."""

    kind: str
    network: str
    source: str
    given: Array
    claims: dict[int, dict[str, Interval]]
    eps: Fraction = Fraction(0)


def statement(network: Network, given: Array, found: Enclosed) -> dict[str, Any]:
    """The file, as a JSON object, of what was enclosed."""
    claims = {
        str(number): {name: ends_of(ball) for name, ball in layer.items()}
        for number, layer in enumerate(found.layers)
    }
    return sealed(KIND, network, _input(network, given), claims)


def box_statement(
    network: Network, given: Array, eps: float, claims: dict[int, tuple[float, float]]
) -> dict[str, Any]:
    """The file of a box: by layer, from 1, an interval for the change of ln HFC/LFC over it."""
    written = {
        str(number): {CHANGE: [decimal(Fraction(low), ROUND_FLOOR),
                               decimal(Fraction(high), ROUND_CEILING)]}
        for number, (low, high) in claims.items()
    }  # fmt: skip
    return sealed(BOX, network, {**_input(network, given), "eps": eps.hex()}, written)


def sealed(kind: str, network: Network, given: Any, claims: Any) -> dict[str, Any]:
    body = {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "network": network.digest(),
        "input": given,
        "claims": claims,
    }
    return {**body, "digest": digest(body)}


def digest(body: dict[str, Any]) -> str:
    """SHA-256 of the other parts in canonical form."""
    part = {key: value for key, value in body.items() if key != "digest"}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _input(network: Network, given: Array) -> dict[str, Any]:
    single = bool((given.astype(np.float32) == given).all())
    name = "binary32" if single else "binary64"
    return {
        "source": "stream" if network.patches is None else "pixels",
        "shape": list(given.shape),
        "numbers": name,
        "values": base64.b64encode(given.astype(FORMATS[name]).tobytes()).decode(),
    }


def ends_of(ball: Ball) -> list[str]:
    """Decimal ends of a ball and its room, outward."""
    low, high = exact_ends(ball)
    room = max((high - low) / 2, ROOM * max(abs(low), abs(high)))
    return [decimal(low - room, ROUND_FLOOR), decimal(high + room, ROUND_CEILING)]


def exact_ends(ball: Ball) -> Interval:
    """Both ends of a finite ball, as the numbers that they are."""
    middle, radius = (
        Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
        for mantissa, exponent in (ball.mid().man_exp(), ball.rad().man_exp())
    )
    return middle - radius, middle + radius


def decimal(value: Fraction, rounding: str) -> str:
    """The number to `DIGITS` digits, rounded to that side: d.ddde-n."""
    context = Context(prec=DIGITS, rounding=rounding, Emin=-99999, Emax=99999)
    found = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    if found == 0:
        return "0"
    sign, digits, _ = found.as_tuple()
    text = "".join(map(str, digits)).ljust(DIGITS, "0")
    return f"{'-' if sign else ''}{text[0]}.{text[1:]}e{found.adjusted()}"


def read_statement(text: str, name: str) -> Statement:
    """The file of that text, every part in the one form that it is written in.

    Raises `InputError`, calling the file `name`, for anything else.
    """
    body = _object(parse_json(text, name), name, ("schema_version", "kind", "network", "input",
                                                  "claims", "digest"))  # fmt: skip
    _expect(type(body["schema_version"]) is int and body["schema_version"] == SCHEMA_VERSION,
            name, f"its schema_version is not {SCHEMA_VERSION}")  # fmt: skip
    _expect(body["kind"] in (KIND, BOX), name, f"its kind is neither '{KIND}' nor '{BOX}'")
    _expect(body["digest"] == digest(body), name, "its digest is not that of its parts")
    _expect(isinstance(body["network"], str), name, "its network is no digest")
    box = body["kind"] == BOX
    extra = ("eps",) if box else ()
    given = _object(body["input"], name, ("source", "shape", "numbers", "values", *extra))
    _expect(given["source"] in ("pixels", "stream"), name, "its source is unknown")
    eps = _eps(given["eps"], name) if box else Fraction(0)
    claims = _claims(body["claims"], name)
    return Statement(body["kind"], body["network"], given["source"], _values(given, name), claims,
                     eps)  # fmt: skip


def _expect(right: bool, name: str, words: str) -> None:
    if not right:
        raise InputError(f"{name} is no enclosure: {words}")


def _object(value: Any, name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    _expect(isinstance(value, dict) and set(value) == set(keys), name,
            f"it needs exactly the parts {', '.join(keys)}")  # fmt: skip
    found: dict[str, Any] = value
    return found


def _values(given: dict[str, Any], name: str) -> Array:
    shape, words = given["shape"], "its input is not of its shape"
    _expect(isinstance(shape, list) and 2 <= len(shape) <= 3, name, words)
    _expect(all(type(x) is int and 0 < x <= _ENTRIES for x in shape), name, words)
    _expect(prod(shape) <= _ENTRIES, name, words)
    known = isinstance(given["numbers"], str) and given["numbers"] in FORMATS
    _expect(known and isinstance(given["values"], str), name, "its numbers are unknown")
    kind = FORMATS[given["numbers"]]
    try:
        data = base64.b64decode(given["values"].encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        data = b""
    _expect(len(data) == prod(shape) * int(kind[-1]), name, words)
    _expect(base64.b64encode(data).decode() == given["values"], name, words)
    values: Array = np.frombuffer(data, kind).astype(np.float64).reshape(shape)
    _expect(bool(np.isfinite(values).all()), name, "its input is not finite")
    return values


def _eps(value: Any, name: str) -> Fraction:
    try:
        found = float.fromhex(value) if isinstance(value, str) else np.nan
    except (ValueError, OverflowError):
        found = np.nan
    right = 0 < found < np.inf and found.hex() == value
    _expect(bool(right), name, "its eps is no positive binary64 number in hexadecimal")
    return Fraction(found)


def _claims(value: Any, name: str) -> dict[int, dict[str, Interval]]:
    _expect(isinstance(value, dict) and 0 < len(value) <= _LAYERS, name, "it claims nothing")
    found: dict[int, dict[str, Interval]] = {}
    for key, layer in value.items():
        _expect(re.fullmatch(r"0|[1-9][0-9]{0,3}", key) is not None, name, "a layer is no number")
        _expect(isinstance(layer, dict) and len(layer) > 0, name, f"layer {key} claims nothing")
        found[int(key)] = {each: _interval(ends, name) for each, ends in layer.items()}
    return found


def _interval(ends: Any, name: str) -> Interval:
    right = isinstance(ends, list) and len(ends) == 2
    right = right and all(isinstance(x, str) and _END.fullmatch(x) for x in ends)
    _expect(right, name, "an interval is not two decimal ends")
    low, high = (Fraction(x) for x in ends)
    _expect(low <= high, name, "an interval has its ends exchanged")
    return low, high
