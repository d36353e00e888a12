"""Errors planted in copies of claims: each changes the status, or the committed text of the ledger.

A planted error is a function from a claim of the ledger to a wrong copy of it. Evidence that it
leaves alone counts as holding, so that only what was planted can be noticed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import sympy as sp
from hypothesis import assume, strategies as st

from oversmoothing.theory.claims.arxiv_2604_23681 import affine_rank, rank
from oversmoothing.theory.claims.lemmas import dobrushin, squared_diameter
from oversmoothing.theory.proofs import by, hypotheses as given
from oversmoothing.theory.proofs.claim import (
    Claim,
    Effort,
    Finding,
    Instance,
    Kind,
    Outcome,
    Scope,
    Status,
)
from oversmoothing.theory.proofs.coq import SOURCES, Formal, coq_version, statement
from oversmoothing.theory.proofs.evidence import (
    Certified,
    Counterexample,
    Measurement,
    Simulated,
    Step,
    Symbolic,
    Written,
)
from oversmoothing.theory.proofs.fingerprint import PATH, THEORY, digest, fingerprint, line
from oversmoothing.theory.proofs.items import source
from oversmoothing.theory.proofs.ledger import Ledger, claims, files, run_claim, standing
from oversmoothing.theory.proofs.reals import ForAllReals, Sharp
from oversmoothing.theory.proofs.search import Searched
from tests.support.refusals import refuses

LEDGER = claims()
QUICK = Effort(examples=40, second_opinion=False)
Change = Callable[[Claim], Claim]


def status_of(original: Claim, wrong: Claim, cited: dict[str, Status]) -> Status:
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


def swapped(kind: type[Any], change: Callable[[Any], Any], index: int = 0) -> Change:
    """The index-th evidence of this class, changed."""

    def apply(claim: Claim) -> Claim:
        places = [k for k, e in enumerate(claim.evidence) if isinstance(e, kind)]
        at = places[index]
        found = list(claim.evidence)
        found[at] = change(found[at])
        return dataclasses.replace(claim, evidence=tuple(found))

    return apply


def without(*kinds: type[Any]) -> Change:
    """The claim without its evidence of these classes."""
    return lambda claim: dataclasses.replace(
        claim, evidence=tuple(e for e in claim.evidence if not isinstance(e, kinds))
    )


def added(evidence: Any) -> Change:
    return lambda claim: dataclasses.replace(claim, evidence=(*claim.evidence, evidence))


def field(**values: Any) -> Callable[[Any], Any]:
    return lambda found: dataclasses.replace(found, **values)


def stepwise(change: Callable[[tuple[Step, ...]], tuple[Step, ...]], index: int = 0) -> Change:
    """The steps of the index-th written proof, changed."""
    return swapped(Written, lambda proof: field(steps=change(proof.steps))(proof), index)


def one_step(k: int, **values: Any) -> Change:
    """Step k (from 1) of the first written proof, changed."""
    return stepwise(
        lambda steps: (*steps[: k - 1], dataclasses.replace(steps[k - 1], **values), *steps[k:])
    )


def deleted_step(k: int) -> Change:
    return stepwise(lambda steps: (*steps[: k - 1], *steps[k:]))


def query(**values: Any) -> Change:
    """The first query, changed."""
    return swapped(ForAllReals, lambda e: field(query=field(**values)(e.query))(e))


def searched(**values: Any) -> Change:
    """The first search, changed."""
    return swapped(Searched, field(**values))


def certified(*instances: Any) -> Change:
    """The first certified evidence, which comes to this of its instances."""
    return swapped(Certified, field(certify=lambda effort: iter(instances)))


def residual(of: Callable[[], Any]) -> Change:
    return swapped(Symbolic, field(residual=of))


def neighbour(change: Callable[[Any], Any]) -> Change:
    """The false neighbours of the first query, which are this one made of it."""
    return swapped(ForAllReals, lambda e: field(mutations=(change(e),))(e))


def measured(*found: float) -> Change:
    return added(Simulated("x", lambda effort: [Measurement("r", 0.5, x, 1e-3) for x in found]))


def sharp(change: Callable[[Any], Callable[[Any], Any]]) -> Change:
    """What the first sharp line states, changed."""
    return swapped(Sharp, lambda e: field(stated=change(e.stated)(e.stated))(e))


def predicate(k: int, **values: Any) -> Change:
    def apply(claim: Claim) -> Claim:
        found = list(claim.hypotheses)
        found[k] = dataclasses.replace(found[k], **values)
        return dataclasses.replace(claim, hypotheses=tuple(found))

    return apply


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
SO, ONE_IS_ONE, ONE_IS_TWO = (
    Step(words, check)
    for words, check in (
        ("so it is", lambda: None),
        ("1 is 1", lambda: asserts(1 == 1)),
        ("1 is 2", lambda: asserts(1 == 2)),
    )
)
OUTSIDE = [[Fraction(2)]], [[Fraction(1)]]
ESCALATION, PSI = "N-2312.06182-escalation", "P-2401.04301v1-psi"
STATUS: dict[str, tuple[str, Change]] = {
    "a hypothesis whose predicate is True": ("T1c", predicate(0, holds=lambda case: True)),
    "the predicate of an own hypothesis is True": ("T5d", predicate(4, holds=lambda case: True)),
    "a hypothesis that no instance violates": ("T2a", predicate(1, violated=())),
    "an open interval closed in a predicate": ("T3d", predicate(2, holds=given.CLOSED.holds)),
    "a search whose law filters everything": ("T1b", searched(law=filtered)),
    "a search whose law asserts nothing": ("T1b", searched(law=silent)),
    "a search on instances outside the hypotheses": ("T1h", searched(at=lambda *_: OUTSIDE)),
    "a search that draws nothing": ("T1b", searched(draws=st.nothing())),
    "a law that a drawn example violates": ("T2b", searched(law=lambda A, a, h: asserts(h < 1))),
    "0 of 12 instances certified": ("T1g", certified(*[False] * 12)),
    "no instance to certify": ("T1g", certified()),
    "a certified instance that contradicts": ("T1g", certified(True, "A = 1")),
    "an empty list of residuals": (ESCALATION, residual(list)),
    "a residual of None": (ESCALATION, residual(lambda: None)),
    "a wrong sign in an identity": (ESCALATION, residual(lambda: sp.Symbol("x"))),
    "a step that checks nothing": ("T2e", one_step(1, check=lambda: None)),
    "a step that returns an empty list": ("T2e", one_step(1, check=list)),
    "a step that asserts over nothing": ("T2e", one_step(1, check=over_nothing)),
    "a step that returns a residual that is not 0": ("T1e", one_step(1, check=lambda: sp.S.One)),
    "a step that fails": ("T1e", one_step(1, check=lambda: asserts(False))),
    "a proof without steps": ("T1e", stepwise(lambda steps: ())),
    "the only step of a clause deleted": ("T14h", deleted_step(2)),
    "a step that covers its clause no more": ("T14f", one_step(3, covers=())),
    "all queries of a claim deleted": ("T8e-reversal", without(ForAllReals)),
    "all theorems and queries of T3b deleted": ("T3b", without(ForAllReals, Formal)),
    "all theorems and queries of T2d deleted": ("T2d", without(ForAllReals, Formal, Written)),
    "a query that covers its clause no more": (
        "T8e-reversal",
        swapped(ForAllReals, field(covers=()), 3),
    ),
    "a clause added that nothing covers": (
        "T1b",
        lambda claim: dataclasses.replace(claim, clauses=(*claim.clauses, "And more.")),
    ),
    "a wrong query": ("T1e", query(conclusion="u*s*c >= u*s*m")),
    "a hypothesis left out of a query": ("T1e", query(hypotheses=("0 < s", "0 < u"))),
    "a query whose hypotheses nothing satisfies": ("T1e", query(hypotheses=("s < s", "0 < u"))),
    "a query without false neighbours": ("T1e", swapped(ForAllReals, field(mutations=()))),
    "a false neighbour that is true": (
        "T1e",
        neighbour(lambda e: field(query=e.query)(e.mutations[0])),
    ),
    "a statement that is false at a point beside it": (
        "T2a",
        sharp(lambda stated: field(query=field(conclusion="-M < 1 + h*b < 0")(stated.query))),
    ),
    "a point at which the false neighbour holds": (
        "T2a",
        sharp(
            lambda stated: field(mutations=(field(witness=stated.example)(stated.mutations[0]),))
        ),
    ),
    "a witness that is none": (
        "T1e",
        neighbour(lambda e: field(witness=e.example)(e.mutations[0])),
    ),
    "a theorem that is not there": ("T2b", swapped(Formal, field(theorem="T2_real.nothing"))),
    "nothing measured": ("T11.2", measured()),
    "a rate measured differently": ("T11.2", measured(0.6)),
    "a measurement that is no number": ("T11.2", measured(float("nan"))),
    "odds of two rows of attention bounded too well": (
        "N-2103.03404-doubly-exponential",
        query(conclusion="2*(u - v)*(r + 1) <= r - 1"),
    ),
    "covariances of tokens bounded too well": (
        "N-2206.03126-gradients",
        searched(law=lambda A, X, v: asserts(squared_diameter(X) < 4)),
    ),
    "a run of growing tokens that loses an end": ("N-2305.05465-line", certified(True, "x = 2 -1")),
    "the factor of a scaled layer bounded from the wrong side": (
        "N-2502.05795-slows",
        query(conclusion="1 - h*(1-a)*s*g <= f"),
    ),
    "tokens normalised after all fall more slowly": (
        "N-2510.22026-layers",
        query(conclusion="0 < p and 2*p < q"),
    ),
    "a diameter that falls by the step alone": (
        "N-clustering2026-norms",
        searched(law=lambda A, X, eps: asserts(dobrushin(A) <= 1 - eps)),
    ),
    "LayerNorm said to keep the affine rank": (
        "N-2604.23681-linear-rank",
        searched(law=lambda X, *_: asserts(affine_rank(X) == rank(X))),
    ),
    "a counterexample that does not come out": (
        PSI,
        swapped(Counterexample, lambda e: field(steps=(*e.steps, ONE_IS_TWO))(e)),
    ),
    "a counterexample without an instance": (PSI, swapped(Counterexample, field(cases=()))),
    "a counterexample whose steps check nothing": (
        PSI,
        swapped(Counterexample, field(steps=(SO,))),
    ),
    "a refutation with a hypothesis that excludes nothing": (
        PSI,
        predicate(2, holds=lambda case: True),
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
    wrong = swapped(Formal, field(theorem="T2_real.nothing"))(claim)
    assert status_of(claim, wrong, {}) is Status.UNDECIDED


@pytest.mark.parametrize("status", [Status.REFUTED, Status.REFUTED_READING, Status.UNDECIDED])
def test_a_claim_that_rests_on_what_is_not_proved_is_undecided(status: Status) -> None:
    claim = LEDGER["T6b"]
    assert "T1e" in claim.cites
    assert status_of(claim, claim, {"T1e": status}) is Status.UNDECIDED


def test_a_claim_that_rests_on_what_did_not_run_is_undecided() -> None:
    claim = LEDGER["T6b"]
    held = [Finding(k, e, Outcome(True, ""), 0.0) for k, e in enumerate(claim.evidence)]
    found = standing(claim, held)
    assert found.status is Status.UNDECIDED and "T1e" in " ".join(found.reasons)


def test_a_claim_is_no_stronger_than_the_weakest_of_its_clauses() -> None:
    proof = Written("words", (by.step("[2] So it is."),))
    query = by.for_all("q", then="x == x", at="x=1", covers=(1,)).unless("no", then="x > x")
    claim = Claim("X", ("one", "two"), "x", "ours", Status.WRITTEN, (query, proof))
    found = run_claim(claim, QUICK).standing
    assert found.clauses == (Status.DECIDED, Status.WRITTEN) and found.status is Status.WRITTEN


@pytest.mark.parametrize(("words", "said"), [("By T6b.", "circle"), ("By T99.", "no claim")])
def test_a_circle_of_proofs_and_an_unknown_name_are_refused(words: str, said: str) -> None:
    circle = one_step(1, words=words)(LEDGER["T1e"])
    refuses(said, lambda: Ledger({**LEDGER, "T1e": circle}).cited([circle]))


def test_evidence_for_a_clause_that_is_not_there_is_refused() -> None:
    refuses("no clause 7", lambda: one_step(1, covers=(7,))(LEDGER["T1e"]), error=ValueError)


@pytest.mark.parametrize("scope", [Scope.SIZE, Scope.INSTANCE])
def test_a_residual_at_a_fixed_size_covers_no_clause(scope: Scope) -> None:
    with pytest.raises(ValueError, match="covers no clause"):
        Symbolic("n = 3", lambda: sp.Integer(0), (1,), scope)


# ------------------------------------------------ what changes the text of the ledger, the same

TEXT = {
    "a query narrowed": ("T1e", "given `0 < s;", "given `1 < s;"),
    "the crux of T4c passed over": ("T4c", "it is almost periodic", "it is continuous"),
    "another point beside a statement": ("T2a", "`h=2, a=-1, b=2, M=3`", "`h=3, a=-1, b=2, M=4`"),
    "a constant changed in a statement": ("T2d", "(i) all h in [-1, 0)", "(i) all h in [-2, 0)"),
    "a strict inequality made weak": ("T3b", "For |a| < 1:", "For |a| <= 1:"),
    "a hypothesis dropped": ("T2a", "POSITIVE, REAL_A, REAL_H", "REAL_A, REAL_H"),
    "a hypothesis exchanged": ("T2a", "hypotheses: POSITIVE", "hypotheses: ROW_STOCHASTIC"),
    "a clause cut short": ("T2a", ", strictly if a < b < 1 and h != 0", ""),
    "other numbers in a counterexample": ("P-2401.04301v1-psi", "H = [[-4]]", "H = [[-9]]"),
    "another reading": ("P-2401.04301v1-control", "(our reading)", "(their reading)"),
    "a condition kept": ("N-2206.10991-attention", "reading, without", "reading, with"),
    "an illustration said to verify": ("T2e", "illustrated: `gt14`", "verified: `gt14`"),
    "a citation dropped": ("T6b", "T1e: 1/(k + 1/t)", "1/(k + 1/t)"),
    "the words of a step changed": ("T6b", "no phase can cancel it", "this is clear"),
    "a false neighbour changed": ("T2d", "then `Iff(SMOOTHING, q < -2)`", "then `SMOOTHING`"),
    "another search": ("T2b", "- search: `matrix_law`", "- search: `law_a`"),
    "the setting dropped": ("T8c", "- setting: one head at consensus, LayerNorm", "- further: any"),
    "another claim said to hold instead": ("P-2401.04301v1-psi", "instead: T2b", "instead: T2d"),
    "another status on record": ("T1b", "status: machine-checked", "status: decided"),
    "a weaker theorem of Coq": ("T1b", "T1_blocks.consensus_invariant", "T1_blocks.quotient"),
}


@pytest.mark.parametrize("name", TEXT)
def test_a_planted_error_shows_in_the_text_of_the_ledger(name: str) -> None:
    claim, old, new = TEXT[name]
    section = source(files()[claim], claim)
    assert section.count(old) == 1
    assert line(claim, section.replace(old, new), "x = 1") != line(claim, section, "x = 1")


def test_the_line_of_a_claim_follows_its_code_and_not_the_breaks_of_its_text() -> None:
    section = source(files()["T2b"], "T2b")
    assert line("T2b", section, "x = 1") != line("T2b", section, "x = 2")
    assert line("T2b", section, "x = 1") == line("T2b", section.replace("\n\n", "\n\n\n"), "x = 1")


SOURCE = {
    "an assertion removed from a law": (
        "claims/t1.py",
        "    assert exact.layer(A, H, [X[0]] * len(A)) == [expected] * len(A)\n",
        "    pass\n",
    ),
    "a tolerance loosened": ("claims/t9.py", "ROUNDING = 1e-14", "ROUNDING = 1e-1"),
    "a strategy narrowed": ("claims/t2.py", "draw.fractions(-6, 3)", "draw.fractions(0, 3)"),
    "a shared predicate that asks less": (
        "proofs/hypotheses.py",
        "is_stochastic(A) and all(min(row) > 0 for row in A)",
        "is_stochastic(A)",
    ),
    "a hypothesis reworded": (
        "proofs/hypotheses.py",
        "A is row-stochastic: A >= 0 and A 1 = 1",
        "A is non-negative",
    ),
    "nothing counts as empty": ("proofs/search.py", "if tried == 0:", "if tried < 0:"),
}


@pytest.mark.parametrize("name", SOURCE)
def test_an_error_planted_in_code_changes_its_digest(name: str) -> None:
    path, old, new = SOURCE[name]
    text = (THEORY / path).read_text("utf-8")
    assert old in text
    assert digest(text.replace(old, new)) != digest(text)


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


def test_forty_errors_are_planted() -> None:
    assert len(STATUS) + len(TEXT) + len(SOURCE) >= 60
