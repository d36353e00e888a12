"""Nothing false is accepted, however its digest fits; everything that `certify` writes is."""

import json
import random
import time
from typing import Any

import pytest

from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import NotACertificate
from tests.forgeries.bases import CASES, honest
from tests.forgeries.claims import depths, files, inputs, words
from tests.forgeries.forging import copied, refused, sealed
from tests.forgeries.honest import refusals
from tests.forgeries.kinds import forms, intervals

KINDS = dict((*forms(), *intervals(), *words(), *depths(), *inputs(), *files()))


@pytest.mark.parametrize("name", CASES)
def test_no_forgery_of_a_certificate_is_accepted(name: str) -> None:
    body = honest(name).body
    assert check_certificate(json.dumps(body)).accepted
    accepted = [
        kind
        for kind, forgery in KINDS.items()
        if (text := forgery(body)) is not None and not refused(text)
    ]
    assert not accepted, accepted


def test_there_are_at_least_200_kinds_and_each_is_made_of_some_certificate() -> None:
    bodies = [honest(name).body for name in CASES]
    idle = [
        kind for kind, forgery in KINDS.items() if all(forgery(body) is None for body in bodies)
    ]
    assert not idle and len(KINDS) >= 200, (idle, len(KINDS))


def test_every_stage_and_every_part_of_a_claim_is_forged() -> None:
    found = [honest(name) for name in CASES]
    assert {each.method.split(" ")[0].rstrip(":") for each in found} == {
        "exact",
        "float64",
        "balls",
    }
    assert {key for each in found for key in each.body["claim"]} == {
        "verdict", "rho_consensus", "rho_quotient", "margin", "jordan_consensus",
        "jordan_quotient", "genericity", "verdict_x0", "eps", "depth",
    }  # fmt: skip
    assert {key for each in found for key in each.body["input"]} == {
        "numbers", "A", "logits", "H", "W_V", "W_proj", "X0",
    }  # fmt: skip
    assert not any(each.unconfirmed for each in found)


def test_what_is_certified_of_drawn_cases_is_accepted_whole() -> None:
    assert refusals(range(60)) == []


# --- garbled at random: accepted or refused in a sentence, never a crash, never slow ---


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
