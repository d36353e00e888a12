"""The file of an enclosure: which network, which input, and an interval for every metric.

It holds no words and nothing to be believed: the checker recomputes every interval, by another
order of operations at another precision. A claim is confirmed when the checker's own ball lies
within it; refused when the two have nothing in common, and where more bits would be needed than a
claim of its kind takes. The input stands in it to the last bit; of the network its digest.
"""

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

from oversmoothing.experiments.enclosures import enclosing
from oversmoothing.experiments.enclosures.balls import Ball, Balls
from oversmoothing.experiments.enclosures.network import Network
from oversmoothing.experiments.enclosures.other_route import (
    other_box_ratios,
    other_metrics,
    other_streams,
)
from oversmoothing.simulations.state_metrics import NAMES
from oversmoothing.theory.numbers.rounding import at_precision
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
# Bits beyond those of `enclosing`, and how often they are doubled at most.
MORE, DOUBLED = 96, 2


@dataclass(frozen=True)
class Statement:
    """A file as read: claims by layer and name. eps: of a box, whose centre `given` is; else 0."""

    kind: str
    network: str
    source: str
    given: Array
    claims: dict[int, dict[str, Interval]]
    eps: Fraction = Fraction(0)


def input_statement(
    network: Network, given: Array, enclosure: enclosing.Enclosed
) -> dict[str, Any]:
    """The file, as a JSON object, of what was enclosed."""
    claims = {
        str(number): {name: ends_of(ball) for name, ball in layer.items()}
        for number, layer in enumerate(enclosure.layers)
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
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{quotient:.{DIGITS - 1}e}".replace("e+", "e") if quotient else "0"


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
    claims, values = _claims(body["claims"], name), _values(given, name)
    return Statement(body["kind"], body["network"], given["source"], values, claims, eps)


def _expect(right: bool, name: str, words: str) -> None:
    if not right:
        raise InputError(f"{name} is no enclosure: {words}")


def _object(value: Any, name: str, keys: tuple[str, ...]) -> Any:
    _expect(isinstance(value, dict) and set(value) == set(keys), name,
            f"it needs exactly the parts {', '.join(keys)}")  # fmt: skip
    return value


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
        eps = float.fromhex(value) if isinstance(value, str) else np.nan
    except (ValueError, OverflowError):
        eps = np.nan
    right = 0 < eps < np.inf and eps.hex() == value
    _expect(bool(right), name, "its eps is no positive binary64 number in hexadecimal")
    return Fraction(eps)


def _claims(value: Any, name: str) -> dict[int, dict[str, Interval]]:
    _expect(isinstance(value, dict) and 0 < len(value) <= _LAYERS, name, "it claims nothing")
    claims: dict[int, dict[str, Interval]] = {}
    for key, layer in value.items():
        _expect(re.fullmatch(r"0|[1-9][0-9]{0,3}", key) is not None, name, "a layer is no number")
        _expect(isinstance(layer, dict) and len(layer) > 0, name, f"layer {key} claims nothing")
        claims[int(key)] = {}
        for each, ends in layer.items():
            right = isinstance(ends, list) and len(ends) == 2
            right = right and all(isinstance(x, str) and _END.fullmatch(x) for x in ends)
            _expect(right, name, "an interval is not two decimal ends")
            low, high = (Fraction(x) for x in ends)
            _expect(low <= high, name, "an interval has its ends exchanged")
            claims[int(key)][each] = low, high
    return claims


@dataclass(frozen=True)
class Judgement:
    """accepted, and why or why not, in a sentence."""

    accepted: bool
    words: str


def check_statement(network: Network, read: Statement) -> Judgement:
    """Whether every claim of the file holds of this network."""
    if fault := misfit(network, read):
        return Judgement(False, fault)
    if read.kind == BOX:
        return _check_box(network, read)
    wanted, layers = set(enclosing.names_of(network, NAMES)), set(range(len(network.blocks) + 1))
    if set(read.claims) != layers or any(set(x) != wanted for x in read.claims.values()):
        return Judgement(False, "it does not claim every metric of every layer")
    least = enclosing.first_bits(network) + MORE
    for bits in (least << k for k in range(DOUBLED + 1)):
        with at_precision(bits):
            false, undecided = _against(network, read)
        if false:
            return Judgement(False, f"false: {false} is elsewhere")
        if not undecided:
            break
    else:
        narrow = f"{undecided} is narrower than {bits} bits can confirm"
        return Judgement(False, f"not confirmed: {narrow}")
    number = sum(map(len, read.claims.values()))
    return Judgement(
        True,
        f"{number} intervals of {len(read.claims)} streams, each around what was computed anew "
        f"with {bits} bits in another order",
    )


def _check_box(network: Network, read: Statement) -> Judgement:
    last = max(read.claims)
    if min(read.claims) < 1 or last > len(network.blocks):
        return Judgement(False, f"the network has the layers 1 to {len(network.blocks)}")
    try:
        enclosing.refuse_unboxable(network, read.given.size, last)
    except InputError as error:
        return Judgement(False, str(error))
    if any(set(claim) != {CHANGE} for claim in read.claims.values()):
        return Judgement(False, "of a box the change of ln HFC/LFC is claimed, and nothing else")
    eps = float(read.eps)
    proved = dict(enumerate(enclosing.changes(other_box_ratios, network, read.given, eps, last), 1))
    for number, claim in sorted(read.claims.items()):
        low, high = claim[CHANGE]
        if number not in proved:
            return Judgement(False, f"not confirmed: the box is too large for layer {number}")
        own = proved[number]
        if own[1] < low or high < own[0]:
            return Judgement(False, f"false: the change over layer {number} is elsewhere")
        if not (low <= Fraction(own[0]) and Fraction(own[1]) <= high):
            return Judgement(False, f"not confirmed: over layer {number} from {own[0]} to {own[1]}")
    words = "; ".join(said(number, claim[CHANGE]) for number, claim in sorted(read.claims.items()))
    return Judgement(True, f"for every input within {eps:.6g} in every pixel {words}")


def said(number: int, ends: tuple[Fraction, Fraction] | tuple[float, float]) -> str:
    """What an interval for the change of ln HFC/LFC over a layer says."""
    low, high = map(float, ends)
    if low > 0 or high < 0:
        least, most = sorted((abs(low), abs(high)))
        word = "rises" if low > 0 else "falls"
        return f"HFC/LFC {word} over layer {number} (ln by {least:.4g} to {most:.4g})"
    return f"ln HFC/LFC changes by {low:.4g} to {high:.4g} over layer {number}"


def misfit(network: Network, read: Statement) -> str | None:
    """Why the file speaks of no input of this network, None where it does."""
    if read.network != network.digest():
        return "it speaks of another network: the digest of the weights differs"
    patches = network.patches
    if read.source != ("stream" if patches is None else "pixels"):
        return "its input is not what the network starts from"
    shape = read.given.shape
    if patches is None:
        fits = len(shape) == 2 and shape[1] == network.width
        fits = fits and 2 + network.cls <= shape[0] <= enclosing.MOST_TOKENS
    else:
        tokens = len(patches.positions) - len(patches.first)
        fits = len(shape) == 3 and shape[1] == shape[2] and shape[1] % patches.side == 0
        fits = fits and (shape[1] // patches.side) ** 2 == tokens
        fits = fits and shape[0] * patches.side**2 == len(patches.W)
    return None if fits else f"its input has the shape {shape}, which the network does not read"


def _against(network: Network, read: Statement) -> tuple[str | None, str | None]:
    """(the first claim that is false, the first that this precision does not decide)."""
    undecided = None
    for number, X in enumerate(other_streams(network, read.given, Balls.exact)):
        for name, ball in enclosing.metrics_of(network, X.entries, other_metrics).items():
            said = compared(ball, read.claims[number][name])
            if said is False:
                return f"{name} of layer {number}", None
            if said is None:
                undecided = undecided or f"{name} of layer {number}"
        if undecided:
            break
    return None, undecided


def compared(ball: Ball, claim: Interval) -> bool | None:
    """True: the ball lies within the claim. False: they share nothing. None: neither."""
    if not ball.is_finite():
        return None
    low, high = exact_ends(ball)
    if claim[0] <= low and high <= claim[1]:
        return True
    return False if high < claim[0] or claim[1] < low else None
