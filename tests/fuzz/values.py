"""What a hand or a program may put in the place of a number, a name or a path."""

import copy
import json
import random
from typing import Any

# JSON values beside sane numbers; a text beginning with "=" stands for itself, unquoted.
ODD: list[Any] = [
    "1e400", "1e-400", "1e5000", "1e-5000", "1e9999999999", "1e-9999999999", "-1e400", "1/0",
    "0/0", "nan", "inf", "-inf", "Infinity", "0x1p5000", "0x1p-1", "", " ", "1_000", "--1", "1/2/3",
    "1.5/2", "3/-4", "\u0661", "\ud800", "9" * 4001, "9" * 5000, "1/" + "7" * 5000,
    "0." + "3" * 900,
    "1e300", "1e-300", "1e3999", "1/3", "-7/2", "2", None, True, False, [], {}, [[]], [1], {"a": 1},
    0, 1, -1, 2, 10**17, 2**63, 2**64, -(2**63), 10**400, 10**3000, 0.0, -0.0, 5e-324, 1e-320,
    1e-300, 1e-16, 0.1, 0.5, 1.0000000000000002, -2.0, 1e16, 1e155, -1e155, 1e300, 1.7e308,
    -1.7e308,
    "=NaN", "=Infinity", "=-Infinity", "=1e400", "=-1e999999999", "=1e-999999999", "=" + "9" * 4400,
    "=0.1e-5000", "=00", "=+1", "='1'", "=" + "[" * 99 + "]" * 99, "=" + "[" * 10**5,
    "=" + '{"a":' * 10**4,
]  # fmt: skip
INTEGERS = [
    "-1", "0", "1", "2", "3", "7", "-0", "+2", "1e3", "2.0", "x", "", " 3", "0x10", "\u0663", "1_0",
    "10000000000000000", "9223372036854775807", "9223372036854775808", "18446744073709551616",
    "1" + "0" * 30, "-1" + "0" * 30, "9" * 5000,
]  # fmt: skip
REALS = [
    "1", "0.5", "0.01", "0", "-0.0", "-1", "2", "30", "1e-300", "1e300", "5e-324", "1.7e308", "nan",
    "inf", "-inf", "1e400", "1e-5000", "x", "", "1,5", "1e50", "1e-50", "1e-9",
]  # fmt: skip
PATHS = [
    ".", "", "absent", "x" * 300, "d/" * 2100, "/dev/null", "/dev/full", "/dev/zero",
    "/proc/nowhere",
    "/proc/self/mem", "pipe", "loop", "link", "file", "file/below", "empty", "\udcff\udcfe",
    "-", "~",
    "bytes", "folder",
]  # fmt: skip
WORDS = ["GT1", "GT4", "gt12", "GT99", "", "cpu", "auto", "cuda", "cuda:99", "cuda:9" + "9" * 30,
         "meta", "privateuseone", "cpu:7", "mps", "\u00e9", "-0.5,0.1+1j,0.1-1j", "1e400",
         "1e-5000",
         "1e9999999999", "1/1000", "1/0", "9" * 5000, "nan", "local", "tcp://localhost:1", "::",
         "x" * 300, "\udcff"]  # fmt: skip


def json_text(value: Any) -> str:
    """JSON, but that texts beginning with "=" stand as they are."""
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)}: {json_text(each)}" for key, each in value.items())
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, str) and value.startswith("="):
        return value[1:]
    # Python prints no integer of over 4,300 digits.
    return json.dumps(value)


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every node below the value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[tuple[Any, Any]] = []
    for key, each in list(inner):
        found.append((value, key))
        if isinstance(each, dict | list):
            found += places(each)
    return found


def odd(rng: random.Random) -> Any:
    """One of ODD, a copy: a later slip may write into it."""
    return copy.deepcopy(rng.choice(ODD))


def mutated(value: Any, rng: random.Random) -> str:
    """The text of the value with up to three slips: in its nodes, in its keys, in its bytes."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        nodes = places(value)
        if not nodes:
            break
        container, key = rng.choice(nodes)
        slip = rng.randrange(6)
        if slip == 0:
            del container[key]
        elif slip == 1 and isinstance(container, dict):
            container[rng.choice(["A", "H", "X0", "logits", "W_V", "n", "comment", "\u00e9"])] = (
                odd(rng)
            )
        elif slip == 2 and isinstance(container, list):
            container.insert(key, container[key])
        else:
            container[key] = odd(rng)
    text = json_text(value)
    slip = rng.randrange(24)
    if slip == 0:
        text = text[: rng.randrange(len(text) + 1)]
    elif slip == 1:
        text = text.replace("{", '{"A": [["1"]], ', 1)
    elif slip == 2:
        place = rng.randrange(len(text) + 1)
        text = (
            text[:place]
            + rng.choice(["\ufeff", "\0", ",", "}", "]", '"', "\u2028", "\udcff"])
            + text[place:]
        )
    elif slip == 3:
        text = "\ufeff" + text
    return text


def matrix(rng: random.Random, rows: int, columns: int, kind: str) -> list[list[Any]]:
    """Small numbers: in fractions as texts, or in binary64."""

    def entry() -> Any:
        p, q = rng.randrange(-4, 5), rng.randrange(1, 5)
        return f"{p}/{q}" if kind == "fractions" else p / q

    return [[entry() for _ in range(columns)] for _ in range(rows)]


def attention(rng: random.Random, n: int, kind: str) -> list[list[Any]]:
    """Rows that sum to 1, with zeros."""
    rows = []
    for i in range(n):
        parts = [rng.choice([0, 0, 1, 1, 2, 5]) for _ in range(n)]
        parts[i] += not any(parts)
        total = sum(parts)
        rows.append([f"{p}/{total}" if kind == "fractions" else p / total for p in parts])
    return rows


def case(rng: random.Random) -> dict[str, Any]:
    """A legal CASE, small."""
    n, d, kind = rng.randint(1, 5), rng.randint(1, 4), rng.choice(["fractions", "binary64"])
    found: dict[str, Any] = {}
    if rng.random() < 0.2:
        found["logits"] = matrix(rng, n, n, kind)
    else:
        found["A"] = attention(rng, n, kind)
    if rng.random() < 0.2:
        r = rng.randint(1, d)
        found |= {"W_V": matrix(rng, d, r, kind), "W_proj": matrix(rng, r, d, kind)}
    else:
        found["H"] = matrix(rng, d, d, kind)
    if rng.random() < 0.7:
        found["X0"] = matrix(rng, n, d, kind)
    return found
