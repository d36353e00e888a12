"""T2: the checker takes two radii for equal after as many bits as the proof takes, and no fewer."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from oversmoothing.theory.checker import ties
from oversmoothing.theory.checker.reading import Given
from oversmoothing.theory.checker.spectra import TIE_SIZE
from oversmoothing.theory.checker.ties import TIE_BITS, check_tie, tied

SIDES = ["c1", "c2"], ["q1", "q2"]
# Bits that the proof takes for each pair, of consensus and of the quotient in this order.
NEEDED = {("c1", "q1"): 7000.5, ("c1", "q2"): 9000.0, ("c2", "q1"): 100.0, ("c2", "q2"): 8000.0}


def proof(monkeypatch, answers, needed=NEEDED):
    """What `tied` says, and the bits it spent, where `equal` says so of each pair at these bits."""
    asked = []

    def refined(sides, bits):
        asked.append(bits)
        return sides

    monkeypatch.setattr(ties, "equal", lambda c, q, bits: answers(bits)[c, q])
    monkeypatch.setattr(ties, "equality_bits", lambda c, q: needed[c, q])
    modes = SimpleNamespace(pairs={320: SIDES}.get, refined=refined)
    return tied(modes, lambda sides, bits: sides), asked


def every(answer):
    return dict.fromkeys(NEEDED, answer)


FIRST = [320, 1280, 5120]


@pytest.mark.parametrize(("answer", "found"), [(True, SIDES), (False, None)])
@pytest.mark.parametrize("known", FIRST)
def test_T2_what_shows_at_few_bits_takes_no_more(monkeypatch, known, answer, found):
    said, asked = proof(monkeypatch, lambda bits: every(answer if bits >= known else None))
    assert said == found and asked == [bits for bits in FIRST if bits <= known]


@pytest.mark.parametrize(("answer", "found"), [(True, SIDES), (False, None), (None, 9000.0)])
def test_T2_the_hardest_pair_says_how_many_bits_the_proof_takes(monkeypatch, answer, found):
    said, asked = proof(monkeypatch, lambda bits: every(answer if bits > 5120 else None))
    assert said == found and asked == [*FIRST, 9512]


def test_T2_pairs_that_are_equal_beside_others_are_no_tie(monkeypatch):
    """Whichever are the largest: some would be, others would not."""
    for other in (False, None):
        mixed = every(True) | {("c2", "q1"): other}
        said, asked = proof(monkeypatch, lambda bits, mixed=mixed: mixed)
        assert said == 9000.0 and asked == [*FIRST, 9512]


def test_T2_a_proof_of_few_bits_goes_on_where_the_first_tries_ended(monkeypatch):
    few = dict.fromkeys(NEEDED, 10.0)
    said, asked = proof(monkeypatch, lambda bits: every(None), few)
    assert said == 10.0 and asked == [*FIRST, 5120]


def test_T2_more_bits_than_are_spent_are_said_and_not_tried(monkeypatch):
    assert TIE_BITS == 2**20
    for needed, spent in ((2.0**20, [2**20 + 512]), (2.0**20 + 1, [])):
        many = NEEDED | {("c1", "q1"): needed}
        said, asked = proof(monkeypatch, lambda bits: every(None), many)
        assert said == needed and asked == FIRST + spent


def test_a_tie_that_is_not_proved_is_refused(monkeypatch):
    given = Given([[Fraction(1, 2)] * 2] * 2, None, [[Fraction(-2)]], None, None)
    monkeypatch.setattr(ties, "tied", lambda *_: 1234567.4)
    for jordan in (None, (1, 1)):
        found = check_tie(given, jordan)
        assert not found.accepted and found.beyond
        assert found.words == "the tie would take 1234567 bits to confirm, more than are spent"


def test_a_tie_of_matrices_beyond_the_size_is_refused():
    large = [[Fraction(int(j == 0)) for j in range(TIE_SIZE + 1)] for _ in range(TIE_SIZE + 1)]
    small = [[Fraction(1, 2)] * 2] * 2
    for A, H in ((large, [[Fraction(-2)]]), (small, large)):
        found = check_tie(Given(A, None, H, None, None), None)
        assert not found.accepted and found.beyond
        assert found.words.startswith(f"a tie is confirmed up to n, d = {TIE_SIZE} only")
