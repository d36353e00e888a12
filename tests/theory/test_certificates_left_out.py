"""A certificate holds what its checker confirms, and nothing that stands on the rest."""

from __future__ import annotations

import json

import pytest

from oversmoothing.theory import certificate
from oversmoothing.theory.certificate import interval_texts, make_certificate
from oversmoothing.theory.checker.reading import Check
from oversmoothing.theory.layer.layer import read_layer

AVERAGE = [["3/4", "1/4"], ["1/4", "3/4"]]


def certified(monkeypatch, beyond: str, H, X0=(("1",), ("2",))):
    """The certificate where the checker cannot confirm any file that claims `beyond`."""

    def check(text: str) -> Check:
        claimed = beyond in json.loads(text)["claim"]
        return Check(not claimed, "out of reach" if claimed else "confirmed", beyond=claimed)

    monkeypatch.setattr(certificate, "check_certificate", check)
    return make_certificate(*read_layer(AVERAGE, H, X0))


def test_all_is_written_where_all_is_confirmed(monkeypatch):
    found = certified(monkeypatch, "nothing", [["1/2"]])
    claim = found.body["claim"]
    assert found.unconfirmed == () and found.checked == "confirmed"
    assert claim["verdict"] == "SMOOTHING" and claim["verdict_x0"] == "SMOOTHING"
    assert {"rho_consensus", "genericity", "eps", "depth"} <= claim.keys()


def test_without_the_verdict_nothing_is_said_of_its_mode(monkeypatch):
    found = certified(monkeypatch, "rho_consensus", [["1/2"]])
    claim = found.body["claim"]
    assert claim["verdict"] == "UNDECIDED" and not {"rho_consensus", "genericity"} & claim.keys()
    assert claim["verdict_x0"] == "SMOOTHING" and "depth" in claim
    assert found.unconfirmed[0].endswith("out of reach")
    assert found.unconfirmed[1] == "genericity: it stands on what is not confirmed"
    assert len(found.unconfirmed) == 2


def test_without_the_verdict_for_X_0_no_depth_is_claimed(monkeypatch):
    found = certified(monkeypatch, "verdict_x0", [["1/2"]])
    claim = found.body["claim"]
    assert claim["verdict"] == "SMOOTHING" and "genericity" in claim
    assert not {"verdict_x0", "depth", "eps"} & claim.keys()
    assert [line.split(": ")[1] for line in found.unconfirmed] == [
        "out of reach",
        "it stands on what is not confirmed",
    ]


def test_T6b_blocks_stand_with_the_tie_that_they_decide(monkeypatch):
    found = certified(monkeypatch, "margin", [["0"]])
    assert found.body["claim"]["verdict"] == "UNDECIDED"
    assert "jordan_consensus" not in found.body["claim"]
    whole = certified(monkeypatch, "nothing", [["0"]])
    assert whole.body["claim"]["jordan_consensus"] == 1


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        ((-float("inf"), float("inf")), ["-inf", "inf"]),
        ((0.0, 1.5), ["0x0.0p+0", "0x1.8000000000000p+0"]),
    ],
)
def test_ends_beyond_binary64_are_infinities(ends, texts):
    assert interval_texts(ends) == texts
