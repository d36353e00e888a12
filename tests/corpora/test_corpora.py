"""The project answers as recorded: numbers within their tolerance, the rest equal, words aside.

Where an answer was meant to change, `python -m tests.corpora.take` says what moved and records it.
"""

from typing import Any

import pytest

from tests.corpora.comparing import BY_FIELD, moves
from tests.corpora.take import CORPORA, Recorded, asked, kept, moved, summary
from tests.support.cases import cases

# Of the corpora that take seconds, so many cases are asked in `make test`.
FIRST = {"verdicts": 20, "certificates": 10, "evolve": 20, "commands": 5}


@cases(
    "name, first",
    *(pytest.param(name, None, id=name) for name in CORPORA),
    *(pytest.param(name, first, id=f"{name}, the first") for name, first in FIRST.items()),
)
def test_answers_are_as_recorded(name: str, first: int | None) -> None:
    new = asked(name, first)
    found = [move for move in moved(name, kept(name)[:first], new) if not move.mended]
    assert not found, "\n".join(summary(name, found, len(new)))


@cases(
    "corpus, old, new",
    ("sweep", {"slope": 1.0}, {"slope": 1.0 + 1e-8}),
    ("sweep", {"margin": 0.5, "margin_error": 1e-9}, {"margin": 0.6, "margin_error": 1e-9}),
    ("sweep", {"verdict": "SMOOTHING"}, {"verdict": "TIE"}),
    ("sweep", {"heads": 1}, {"heads": 2}),
    ("sweep", {"a": [1, 2]}, {"a": [1, 2, 3]}),
    ("sweep", {"a": None}, {"a": 0.0}),
    ("sweep", {"a": True}, {"a": 1}),
    ("sweep", {"a": "inf"}, {"a": 1e300}),
    ("sweep", {"a": 1}, {"a": 1, "b": None}),
    ("certificates", {"a": "0x1.0p0"}, {"a": "0x1.00001p0"}),
    ("enclose", {"a": "1.0e0"}, {"a": "1.0001e0"}),
    ("near_ties", {"margin": 4.8e-21}, {"margin": -4.8e-21}),
    ("evolve", {"cos_min": 1.0, "cosine_error": 1e-9}, {"cos_min": 1.1, "cosine_error": 1e-9}),
    ("evolve", {"error": 1e-13}, {"error": 1e-3}),
)
def test_a_difference_is_seen(corpus: str, old: Any, new: Any) -> None:
    assert list(moves(corpus, "a case", old, new))


def test_cases_that_are_gone_or_new_are_seen() -> None:
    old = [Recorded("a", {"x": 1}, {}), Recorded("b", {"x": 1}, {})]
    found = list(moved("sweep", old, [("a", {"x": 1}), ("c", {"x": 1})]))
    assert {move.case for move in found} == {"b", "c"}


def test_what_is_known_to_be_wrong_may_stay_or_be_mended_and_nothing_else() -> None:
    mark = {"margin": {"known_wrong": "rounded twice", "right": 4.8e-21}}
    for value, said in ((0.0, []), (4.8e-21, [True]), (1e-20, [False])):
        found = moves("near_ties", "a case", {"margin": 0.0}, {"margin": value}, mark)
        assert [move.mended for move in found] == said


def test_every_tolerance_belongs_to_a_corpus_and_says_why() -> None:
    assert {name.split(",")[0] for name in BY_FIELD} == set(CORPORA)
    assert all(tolerance.why for table in BY_FIELD.values() for tolerance in table.values())
