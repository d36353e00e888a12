"""Errors planted in copies of claims: each changes the status, or the committed text of the ledger.

A planted error is a function from a claim of the ledger to a wrong copy of it. Evidence that it
leaves alone counts as holding, so that only what was planted can be noticed.
"""

import dataclasses
import re
import tokenize
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.arxiv_2604_23681 import affine_rank, rank
from oversmoothing.theory.claims.lemmas import dobrushin, squared_diameter
from oversmoothing.theory.proofs import by, hypotheses as given
from oversmoothing.theory.proofs.claim import Claim, Finding, Instance, Kind, Outcome
from oversmoothing.theory.proofs.coq import SOURCES, Formal, coq_version, statement
from oversmoothing.theory.proofs.evidence import Counterexample, Written
from oversmoothing.theory.proofs.fingerprint import PATH, THEORY, digest, fingerprint, line
from oversmoothing.theory.proofs.items import source
from oversmoothing.theory.proofs.ledger import Ledger, claims, files, run_claim, standing
from oversmoothing.theory.proofs.reals import ForAllReals
from tests.support.refusals import refuses

LEDGER = claims()
QUICK = by.Effort(examples=40, second_opinion=False)
Change = Callable[[Claim], Claim]


def status_of(original: Claim, wrong: Claim, cited: dict[str, by.Status]) -> by.Status:
    """The status of a copy whose unchanged evidence holds."""
    findings = []
    for k, evidence in enumerate(wrong.evidence):
        if any(evidence is one for one in original.evidence):
            outcome = Outcome(True, "as before", "x" * (evidence.kind is Kind.COUNTEREXAMPLE))
        else:
            (found,) = run_claim(dataclasses.replace(wrong, evidence=(evidence,)), QUICK).findings
            outcome = found.outcome
        findings.append(Finding(k, evidence, outcome, 0.0))
    standings = {name: LEDGER[name].on_record for name in wrong.cites if name in LEDGER}
    return standing(wrong, findings, standings | cited).status


# ---------------------------------------------------------------------------- how to plant


def put(part: Any, path: str, new: Any) -> Any:
    """A copy of a claim or of a part of it with `new` at the path: names of fields, places in
    tuples, and of evidence the first of a class."""
    name, _, rest = path.partition(".")
    if isinstance(part, tuple):
        k = int(name) if name.isdigit() else [type(one).__name__ for one in part].index(name)
        return (*part[:k], put(part[k], rest, new) if rest else new, *part[k + 1 :])
    return dataclasses.replace(part, **{name: put(getattr(part, name), rest, new) if rest else new})


def of(path: str, new: Any) -> Change:
    return lambda claim: put(
        claim, path if path.startswith("hypotheses") else f"evidence.{path}", new
    )


def without(*kinds: type[Any]) -> Change:
    """The claim without its evidence of these classes."""
    return lambda claim: put(
        claim, "evidence", tuple(e for e in claim.evidence if not isinstance(e, kinds))
    )


def added(evidence: Any) -> Change:
    return lambda claim: put(claim, "evidence", (*claim.evidence, evidence))


def certified(*instances: Any) -> Change:
    """The first certified evidence, which comes to this of its instances."""
    return of("Certified.certify", lambda effort: iter(instances))


def measured(*found: float) -> Change:
    return added(
        by.Simulated("x", lambda effort: [by.Measurement("r", 0.5, x, 1e-3) for x in found])
    )


def point(**values: Any) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in values.items()}


def asserts(condition: bool) -> None:
    assert condition


def over_nothing() -> None:
    for entry in ():
        assert entry == 0


def filtered(*drawn: object) -> None:
    assume(False)


def silent(*drawn: object) -> None:
    """A law that asserts nothing."""


# --------------------------------------------------- what changes the status, as (claim, error)

NEVER = Instance([[Fraction(1)]], [[Fraction(0)]])
TRUE = by.for_all("q", then="x == x", at="x=1").query
SO, ONE_IS_ONE, ONE_IS_TWO = (
    by.Step(words, check)
    for words, check in (
        ("so it is", lambda: None),
        ("1 is 1", lambda: asserts(1 == 1)),
        ("1 is 2", lambda: asserts(1 == 2)),
    )
)
OUTSIDE = [[Fraction(2)]], [[Fraction(1)]]
ESCALATION, PSI = "N-2312.06182-escalation", "P-2401.04301v1-psi"
ATTENTION = "N-2206.10991-attention"
STATUS: dict[str, tuple[str, Change]] = {
    "a hypothesis whose predicate is True": ("T1c", of("hypotheses.0.holds", lambda case: True)),
    "the predicate of an own hypothesis is True": (
        "T5d",
        of("hypotheses.4.holds", lambda case: True),
    ),
    "a hypothesis that no instance violates": ("T2a", of("hypotheses.1.violated", ())),
    "an open interval closed in a predicate": ("T3d", of("hypotheses.2.holds", given.CLOSED.holds)),
    "a search whose law filters everything": ("T1b", of("Searched.law", filtered)),
    "a search whose law asserts nothing": ("T1b", of("Searched.law", silent)),
    "a search on instances outside the hypotheses": ("T1h", of("Searched.at", lambda *_: OUTSIDE)),
    "a search that draws nothing": ("T1b", of("Searched.draws", st.nothing())),
    "a law that a drawn example violates": (
        "T2b",
        of("Searched.law", lambda A, a, h: asserts(h < 1)),
    ),
    "0 of 12 instances certified": ("T1g", certified(*[False] * 12)),
    "no instance to certify": ("T1g", certified()),
    "a certified instance that contradicts": ("T1g", certified(True, "A = 1")),
    "an empty list of residuals": (ESCALATION, of("Symbolic.residual", list)),
    "a residual of None": (ESCALATION, of("Symbolic.residual", lambda: None)),
    "a wrong sign in an identity": (ESCALATION, of("Symbolic.residual", lambda: sp.Symbol("x"))),
    "a step that checks nothing": ("T2e", of("Written.steps.0.check", lambda: None)),
    "a step that returns an empty list": ("T2e", of("Written.steps.0.check", list)),
    "a step that asserts over nothing": ("T2e", of("Written.steps.0.check", over_nothing)),
    "a step that returns a residual that is not 0": (
        "T1e",
        of("Written.steps.0.check", lambda: sp.S.One),
    ),
    "a step that fails": ("T1e", of("Written.steps.0.check", lambda: asserts(False))),
    "a proof without steps": ("T1e", of("Written.steps", ())),
    "another step for the only one of a clause": ("T14h", of("Written.steps.1", by.Step("x"))),
    "a step that covers its clause no more": ("T14f", of("Written.steps.2.covers", ())),
    "all queries of a claim deleted": ("T8e-reversal", without(ForAllReals)),
    "all theorems and queries of T3b deleted": ("T3b", without(ForAllReals, Formal)),
    "all theorems and queries of T2d deleted": ("T2d", without(ForAllReals, Formal, Written)),
    "a query that covers its clause no more": ("T8e-reversal", of("3.covers", ())),
    "a clause added that nothing covers": (
        "T1b",
        lambda claim: put(claim, "clauses", (*claim.clauses, "And more.")),
    ),
    "a wrong query": ("T1e", of("ForAllReals.query.conclusion", "u*s*c >= u*s*m")),
    "a hypothesis left out of a query": (
        "T1e",
        of("ForAllReals.query.hypotheses", ("0 < s", "0 < u")),
    ),
    "a query whose hypotheses nothing satisfies": (
        "T1e",
        of("ForAllReals.query.hypotheses", ("s < s", "0 < u")),
    ),
    "a query without false neighbours": ("T1e", of("ForAllReals.mutations", ())),
    "a false neighbour that is true": ("T1e", of("ForAllReals.mutations.0.query", TRUE)),
    "a statement that is false at a point beside it": (
        "T2a",
        of("Sharp.stated.query.conclusion", "-M < 1 + h*b < 0"),
    ),
    "a point at which the false neighbour holds": (
        "T2a",
        of("Sharp.stated.mutations.0.witness", point(h=-1, a=0, b="1/2", M=1)),
    ),
    "a witness that is none": (
        "T1e",
        of("ForAllReals.mutations.0.witness", point(s=2, u=1, m=1, c=1, k="1/2")),
    ),
    "a theorem that is not there": ("T2b", of("Formal.theorem", "T2_real.nothing")),
    "nothing measured": ("T11.2", measured()),
    "a rate measured differently": ("T11.2", measured(0.6)),
    "a measurement that is no number": ("T11.2", measured(float("nan"))),
    "odds of two rows of attention bounded too well": (
        "N-2103.03404-doubly-exponential",
        of("ForAllReals.query.conclusion", "2*(u - v)*(r + 1) <= r - 1"),
    ),
    "covariances of tokens bounded too well": (
        "N-2206.03126-gradients",
        of("Searched.law", lambda A, X, v: asserts(squared_diameter(X) < 4)),
    ),
    "a run of growing tokens that loses an end": ("N-2305.05465-line", certified(True, "x = 2 -1")),
    "the factor of a scaled layer bounded from the wrong side": (
        "N-2502.05795-slows",
        of("ForAllReals.query.conclusion", "1 - h*(1-a)*s*g <= f"),
    ),
    "tokens normalised after all fall more slowly": (
        "N-2510.22026-layers",
        of("ForAllReals.query.conclusion", "0 < p and 2*p < q"),
    ),
    "a diameter that falls by the step alone": (
        "N-clustering2026-norms",
        of("Searched.law", lambda A, X, eps: asserts(dobrushin(A) <= 1 - eps)),
    ),
    "LayerNorm said to keep the affine rank": (
        "N-2604.23681-linear-rank",
        of("Searched.law", lambda X, *_: asserts(affine_rank(X) == rank(X))),
    ),
    "a counterexample that does not come out": (PSI, of("Counterexample.steps.0", ONE_IS_TWO)),
    "a counterexample without an instance": (PSI, of("Counterexample.cases", ())),
    "a counterexample whose steps check nothing": (PSI, of("Counterexample.steps", (SO,))),
    "a refutation with a hypothesis that excludes nothing": (
        PSI,
        of("hypotheses.2.holds", lambda case: True),
    ),
    "a counterexample to a claim that is on record as proved": (
        "T2a",
        added(Counterexample("no", (NEVER,), (ONE_IS_ONE,))),
    ),
}


@pytest.mark.parametrize("name", STATUS)
def test_a_planted_error_changes_the_status(name: str) -> None:
    of, change = STATUS[name]
    claim = LEDGER[of]
    assert status_of(claim, claim, {}) is claim.on_record, "the claim itself"
    assert status_of(claim, change(claim), {}) is not claim.on_record


@pytest.mark.skipif(coq_version() is None, reason="Coq is not installed")
def test_a_refutation_whose_theorem_coq_refuses_is_undecided() -> None:
    claim = LEDGER[PSI]
    wrong = of("Formal.theorem", "T2_real.nothing")(claim)
    assert status_of(claim, wrong, {}) is by.Status.UNDECIDED


@pytest.mark.parametrize(
    "status", [by.Status.REFUTED, by.Status.REFUTED_READING, by.Status.UNDECIDED]
)
def test_a_claim_that_rests_on_what_is_not_proved_is_undecided(status: by.Status) -> None:
    claim = LEDGER["T6b"]
    assert "T1e" in claim.cites
    assert status_of(claim, claim, {"T1e": status}) is by.Status.UNDECIDED


def test_a_claim_that_rests_on_what_did_not_run_is_undecided() -> None:
    claim = LEDGER["T6b"]
    held = [Finding(k, e, Outcome(True, ""), 0.0) for k, e in enumerate(claim.evidence)]
    found = standing(claim, held)
    assert found.status is by.Status.UNDECIDED and "T1e" in " ".join(found.reasons)


def test_a_claim_is_no_stronger_than_the_weakest_of_its_clauses() -> None:
    proof = Written("words", (by.step("[2] So it is."),))
    query = by.for_all("q", then="x == x", at="x=1", covers=(1,)).unless("no", then="x > x")
    claim = Claim("X", ("one", "two"), "x", "ours", by.Status.WRITTEN, (query, proof))
    found = run_claim(claim, QUICK).standing
    assert (
        found.clauses == (by.Status.DECIDED, by.Status.WRITTEN)
        and found.status is by.Status.WRITTEN
    )


@pytest.mark.parametrize(("words", "said"), [("By T6b.", "circle"), ("By T99.", "no claim")])
def test_a_circle_of_proofs_and_an_unknown_name_are_refused(words: str, said: str) -> None:
    circle = of("Written.steps.0.words", words)(LEDGER["T1e"])
    refuses(said, lambda: Ledger({**LEDGER, "T1e": circle}).cited([circle]))


def test_evidence_for_a_clause_that_is_not_there_is_refused() -> None:
    refuses(
        "no clause 7", lambda: of("Written.steps.0.covers", (7,))(LEDGER["T1e"]), error=ValueError
    )


@pytest.mark.parametrize("scope", [by.Scope.SIZE, by.Scope.INSTANCE])
def test_a_residual_at_a_fixed_size_covers_no_clause(scope: by.Scope) -> None:
    with pytest.raises(ValueError, match="covers no clause"):
        by.Symbolic("n = 3", lambda: sp.Integer(0), (1,), scope)


# ------------------------------------------------ what changes the text of the ledger, the same


@pytest.mark.parametrize("name", ["T1b", "T2a", "T2e", "T6b", "T8c", PSI, ATTENTION])
def test_every_word_of_a_claim_shows_in_its_line(name: str) -> None:
    """Of statements and points beside them, proofs and citations, searches, settings, wording."""
    section = source(files()[name], name)
    whole = line(name, section, "x = 1")
    for word in re.finditer(r"\S+", section):
        with suppress(ValueError):  # without its status it has no line
            other = section[: word.start()] + "é" * len(word[0]) + section[word.end() :]
            assert line(name, other, "x = 1") != whole, word


def test_the_line_of_a_claim_follows_its_code_and_not_the_breaks_of_its_text() -> None:
    section = source(files()["T2b"], "T2b")
    assert line("T2b", section, "x = 1") != line("T2b", section, "x = 2")
    assert line("T2b", section, "x = 1") == line("T2b", section.replace("\n\n", "\n\n\n"), "x = 1")


def test_every_word_of_code_shows_in_its_digest() -> None:
    """Assertions, tolerances, strategies, predicates and what they are said to be."""
    rows = (THEORY / "claims/arxiv_2407_11876.py").read_text("utf-8").splitlines(keepends=True)
    whole = digest("".join(rows))
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
    for token in tokenize.generate_tokens(iter(rows).__next__):
        (row, first), (last, end) = token.start, token.end
        if token.type in kinds and row == last:
            other = rows[row - 1][:first] + "é" * (end - first) + rows[row - 1][end:]
            with suppress(tokenize.TokenError, SyntaxError):
                assert digest("".join([*rows[: row - 1], other, *rows[row:]])) != whole, token


def test_comments_and_layout_do_not_change_a_digest() -> None:
    text = "def f(x):\n    return x + 1  # why\n"
    assert digest(text) == digest("def f(x):\n    # because\n    return  x + 1\n")
    assert digest(text) != digest(text.replace("1", "2"))


def test_a_theorem_weakened_in_its_file_shows(tmp_path: Any) -> None:
    text = (SOURCES / "Control.v").read_text()
    assert "-1 <= h -> h < 0" in text
    (tmp_path / "Control.v").write_text(text.replace("-1 <= h -> h < 0", "-1 < h -> h < 0"))
    assert statement("Control.beats", tmp_path) != statement("Control.beats")


def test_the_ledger_is_the_one_on_record() -> None:
    found, kept = fingerprint(), PATH.read_text("utf-8")
    new = sorted(set(found.splitlines()) - set(kept.splitlines()))
    assert found == kept, f"not on record (see theory/proofs/fingerprint.py): {new[:10]}"
