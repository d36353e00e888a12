"""Nothing false is accepted, however its digest fits; everything that `certify` writes is."""

from __future__ import annotations

import json

import pytest

from oversmoothing.theory.checker.check import check_certificate
from tests.forgeries.bases import CASES, honest
from tests.forgeries.claims import depths, files, inputs, words
from tests.forgeries.forging import refused
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
