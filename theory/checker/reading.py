"""A certificate file as fractions: nothing in it is believed."""

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Matrix = list[list[Fraction]]

# Up to this d the H of a head is written out.
DENSE_SIZE = 40


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


@dataclass(frozen=True)
class Given:
    """The input of a certificate: attention as A in fractions or as logits (None where masked),
    the value projection as H or as the factors (W_V, W_proj) of a head, and X_0 where given."""

    A: Matrix | None
    logits: list[list[Fraction | None]] | None
    H: Matrix
    factors: tuple[Matrix, Matrix] | None
    X0: Matrix | None

    @property
    def n(self) -> int:
        return len(self.A or self.logits or [])

    @property
    def d(self) -> int:
        return len(self.factors[0]) if self.factors else len(self.H)


def read_input(given: dict[str, Any]) -> Given:
    """Raises KeyError, TypeError or ValueError where the input is malformed."""
    kind = given["numbers"]
    if kind not in ("fractions", "binary64"):
        raise ValueError(f"numbers of kind {kind!r}")

    def entry(text: str) -> Fraction:
        return Fraction(text) if kind == "fractions" else Fraction(float.fromhex(text))

    def matrix(name: str) -> Matrix:
        rows = [[entry(x) for x in row] for row in given[name]]
        if not rows or not rows[0] or any(len(row) != len(rows[0]) for row in rows):
            raise ValueError(f"{name} is ragged or empty")
        return rows

    if ("A" in given) == ("logits" in given) or ("H" in given) == ("W_V" in given):
        raise ValueError("exactly one of A and logits, and of H and its factors, must be given")
    logits, factors, A = None, None, None
    if "A" in given:
        A = _attention(matrix("A"), kind)
    else:
        logits = [[None if x == "-inf" else entry(x) for x in row] for row in given["logits"]]
        if not all(len(row) == len(logits) and any(x is not None for x in row) for row in logits):
            raise ValueError("the logits are not square, or have a row that is all masked")
    if "H" in given:
        H = matrix("H")
    else:
        factors = matrix("W_V"), matrix("W_proj")
        if len(factors[0]) != len(factors[1][0]) or len(factors[1]) != len(factors[0][0]):
            raise ValueError("the factors of the head do not fit")
        # The dense H is exact too, and only made where it is small.
        H = _dense(*factors) if len(factors[0]) <= DENSE_SIZE else []
    if any(len(row) != len(H) for row in H):
        raise ValueError("H is not square")
    found = Given(A, logits, H, factors, matrix("X0") if "X0" in given else None)
    if found.n == 0 or found.d == 0:
        raise ValueError("there is nothing in the input")
    if found.X0 is not None and (len(found.X0), len(found.X0[0])) != (found.n, found.d):
        raise ValueError("X0 has the wrong shape")
    return found


def _attention(A: Matrix, kind: str) -> Matrix:
    if len(A) != len(A[0]):
        raise ValueError("A is not square")
    sums = [sum(row, Fraction(0)) for row in A]
    # n eps, twice: the sum itself is rounded where the case is made.
    slack = len(A) * Fraction(1, 2**51) if kind == "binary64" else Fraction(0)
    if any(x < 0 for row in A for x in row) or any(abs(total - 1) > slack for total in sums):
        raise ValueError("A is not row-stochastic")
    return [[x / total for x in row] for row, total in zip(A, sums, strict=True)]


def _dense(W_V: Matrix, W_proj: Matrix) -> Matrix:
    """(W_V W_proj)^T."""
    return [
        [sum((x * row[i] for x, row in zip(v, W_proj, strict=True)), Fraction(0)) for v in W_V]
        for i in range(len(W_V))
    ]


def interval(value: list[str] | None) -> tuple[Fraction, Fraction] | None:
    if value is None:
        return None
    low, high = (Fraction(float.fromhex(x)) for x in value)
    if low > high:
        raise ValueError("an interval with its ends exchanged")
    return low, high
