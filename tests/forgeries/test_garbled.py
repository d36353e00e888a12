"""Certificates garbled at random: accepted or refused in a sentence, never a crash, never slow."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import NotACertificate
from tests.forgeries.bases import CASES, honest
from tests.forgeries.forging import copied, sealed

LEAVES: list[Any] = [
    None, True, 0, -1, 10**18, 10**3000, 1.5, "", "0", "-1", "1/3", "-7/2", "1" + "0" * 300,
    "1/1" + "0" * 300, "0x1.8000000000000p+0", "-0x1.0000000000000p+0", "0x0.0p+0", "-0x0.0p+0",
    "0x1.fffffffffffffp+1023", "0x0.0000000000001p-1022", "inf", "-inf", "nan", [], {}, [["1"]],
    "SMOOTHING", "TIE", "consensus",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    if not isinstance(value, dict | list):
        return []
    found = []
    for key in value.keys() if isinstance(value, dict) else range(len(value)):
        found += [(*path, key), *places(value[key], (*path, key))]
    return found


def garbled(body: dict[str, Any], r: random.Random) -> str:
    """Some leaves exchanged, with a digest that fits; or some characters, without."""
    text = json.dumps(body)
    if r.random() < 0.25:
        characters = list(text)
        for _ in range(r.randint(1, 4)):
            characters[r.randrange(len(text))] = r.choice(["", '"', "{", "[", "0", "9", "-", "e"])
        return "".join(characters)
    copy = copied(body)
    for _ in range(r.randint(1, 3)):
        *path, key = r.choice(places(copy))
        place = copy
        for step in path:
            place = place[step]
        place[key] = r.choice(LEAVES)
    whole = {"schema_version", "kind", "input", "claim"} <= copy.keys()
    return sealed(copy) if whole else json.dumps(copy)


@pytest.mark.parametrize("name", CASES)
def test_a_garbled_certificate_is_no_crash(name: str) -> None:
    body, r, accepted = honest(name).body, random.Random(name), 0
    for _ in range(40):
        text = garbled(body, r)
        began = time.perf_counter()
        try:
            accepted += check_certificate(text).accepted
        except NotACertificate as error:
            assert 0 < len(str(error)) < 300
        assert time.perf_counter() - began < 20
    # Some change nothing that is claimed: another entry above a diagonal, a wider interval.
    assert accepted < 20
