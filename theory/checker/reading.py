"""A certificate file as fractions: nothing in it is believed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


class NotACertificate(Exception):
    """The file cannot be read as a certificate. The message says why."""


@dataclass(frozen=True)
class Check:
    """Whether every part of the claim was confirmed, and what was found."""

    accepted: bool
    words: str


def parse(text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NotACertificate(f"not JSON ({error})") from error
    if not isinstance(body, dict) or body.get("kind") != "oversmoothing certificate":
        raise NotACertificate('the file has no "kind": "oversmoothing certificate"')
    if body.get("schema_version") != 1:
        raise NotACertificate(f"schema_version {body.get('schema_version')} is not known here")
    missing = {"input", "claim", "method", "digest"} - body.keys()
    if missing:
        raise NotACertificate(f"parts are missing: {sorted(missing)}")
    return body


def digest(body: dict[str, Any]) -> str:
    part = {key: body[key] for key in ("schema_version", "kind", "input", "claim", "method")}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def matrices(given: dict[str, Any]) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    kind = given["numbers"]
    if kind not in ("fractions", "binary64"):
        raise ValueError(f"numbers of kind {kind!r}")

    def entry(text: str) -> Fraction:
        return Fraction(text) if kind == "fractions" else Fraction(float.fromhex(text))

    A = [[entry(x) for x in row] for row in given["A"]]
    H = [[entry(x) for x in row] for row in given["H"]]
    for name, M in (("A", A), ("H", H)):
        if not M or any(len(row) != len(M) for row in M):
            raise ValueError(f"{name} is not square")
    if any(x < 0 for row in A for x in row) or any(sum(row, Fraction(0)) <= 0 for row in A):
        raise ValueError("A is not row-stochastic")
    if kind == "fractions":
        if any(sum(row) != 1 for row in A):
            raise ValueError("A is not row-stochastic")
        return A, H
    slack = len(A) * Fraction(1, 2**52)
    if any(abs(sum(row, Fraction(0)) - 1) > slack for row in A):
        raise ValueError("A is not row-stochastic within n eps")
    return [[x / total for x in row] for row in A for total in [sum(row)]], H


def interval(value: list[str] | None) -> tuple[Fraction, Fraction] | None:
    if value is None:
        return None
    low, high = (Fraction(float.fromhex(x)) for x in value)
    if low > high:
        raise ValueError("an interval with its ends exchanged")
    return low, high
