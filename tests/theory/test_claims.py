"""The ledger is tested by running it: the same objects that `oversmoothing prove` runs."""

import dataclasses
import json
import threading
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, strategies as st

import oversmoothing
from oversmoothing.simulations.against_theory.simulated_evidence import SIMULATED
from oversmoothing.theory.proofs import by, solver
from oversmoothing.theory.proofs.claim import (
    LEFT_OUT,
    OUR_READING,
    Claim,
    Finding,
    Instance,
    Kind,
    Outcome,
)
from oversmoothing.theory.proofs.coq import Formal
from oversmoothing.theory.proofs.evidence import Written
from oversmoothing.theory.proofs.ledger import Ledger, claims, in_want_of_coq, run_claim
from oversmoothing.theory.proofs.reals import ForAllReals, Mutation, Query, for_all
from oversmoothing.theory.proofs.report import details, totals
from oversmoothing.theory.proofs.run import Chunk, Coverage, fingerprint, pending, run_chunk
from oversmoothing.theory.proofs.search import Searched
from oversmoothing.theory.proofs.solver import solve
from oversmoothing.theory.support.errors import InputError
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.theory.test_workers import HARD

LEDGER = Ledger(claims(), extra=SIMULATED)
QUICK = by.Effort(examples=60, second_opinion=False)


@cache
def entry_of(name):
    """A claim after its evidence ran, and before it those that it rests on."""
    claim = LEDGER[name]
    cited = {other: entry_of(other).status for other in claim.cites}
    return run_claim(claim, QUICK, cited=cited)


@pytest.mark.parametrize("name", list(LEDGER))
def test_every_claim_has_the_status_on_record(name):
    entry = entry_of(name)
    failing = [
        (f.evidence.title, f.outcome.detail) for f in entry.findings if f.outcome.holds is False
    ]
    assert not failing
    if entry.as_recorded:
        return
    if name in in_want_of_coq([entry_of(each.name) for each in LEDGER.cited([LEDGER[name]])]):
        pytest.skip("rests on what only Coq proves, which is not installed")
    raise AssertionError(f"{entry.status}: {entry.standing.reasons}")


@pytest.mark.parametrize("name", list(LEDGER))
def test_every_claim_says_what_where_from_and_how(name):
    claim = LEDGER[name]
    assert claim.clauses and claim.latex and claim.source and claim.evidence
    if claim.on_record.refuted:
        ours = claim.wording.startswith(OUR_READING)
        assert claim.on_record is (by.Status.REFUTED_READING if ours else by.Status.REFUTED_WORDS)
        # A reading leaves out a condition of the paper, or the paper's were not at hand.
        assert not ours or claim.wording.startswith(LEFT_OUT) or "not at hand" in claim.wording
        assert claim.repaired_by, "a refuted statement points to the claim that holds"
        assert any(e.kind is Kind.COUNTEREXAMPLE for e in claim.evidence)
    if claim.repaired_by:
        for word in claim.repaired_by.replace(",", " ").split():
            if word[:1] in "TPN" and any(c.isdigit() for c in word) and "(" not in word:
                assert word in LEDGER, f"{claim.name} points to {word}"


def claim_with(*evidence) -> Claim:
    return Claim("X1", ("a statement",), "x", "ours", by.Status.DECIDED, tuple(evidence))


SQUARE = Query("squares", ("x", "y"), ("x < y", "0 <= x"), "x*x < y*y")
FALSE_SQUARE = Query("squares", ("x", "y"), ("x < y",), "x*x < y*y")
MUTATION = Mutation("x may be negative", FALSE_SQUARE)
PROVED = ForAllReals(SQUARE, (MUTATION,), {"x": Fraction(1), "y": Fraction(2)}, covers=(1,))


def test_a_true_query_is_proved_and_its_mutation_is_refuted_with_exact_numbers():
    entry = run_claim(claim_with(PROVED), by.Effort())
    assert entry.status is by.Status.DECIDED
    shown = entry.findings[0].outcome.data["mutations"][0]["counterexample"]
    values = {k: Fraction(v) for k, v in (part.split(" = ") for part in shown.split(", "))}
    assert FALSE_SQUARE.hypotheses_hold(values) and not FALSE_SQUARE.conclusion_holds(values)


def test_false_neighbours_leave_out_replace_and_add_hypotheses():
    found = (
        for_all("squares", given="x < y; 0 <= x", then="x*x < y*y", at="x=1, y=2", covers=(1,))
        .unless("x may be negative", without="0 <= x")
        .unless("x <= y", without="x < y", given="x <= y", at="x=1, y=1")
        .unless("the other way", given="y < 9", then="x*x > y*y")
    )
    assert found.query == SQUARE and found.example == {"x": 1, "y": 2}
    assert [m.query.hypotheses for m in found.mutations] == [
        ("x < y",),
        ("x <= y", "0 <= x"),
        ("x < y", "0 <= x", "y < 9"),
    ]
    assert [m.witness for m in found.mutations] == [{}, {"x": 1, "y": 1}, {}]
    assert found.mutations[2].query.conclusion == "x*x > y*y"
    assert run_claim(claim_with(found), QUICK).status is by.Status.DECIDED
    refuses("no hypothesis", found.unless, "x", without="x < 7", error=ValueError)
    for witness in ("x=1", "x=1, y=2, z=3", "x=1, []=2"):
        with pytest.raises(ValueError, match=r'no witness \(x\): write it as "x=..., y=..."'):
            found.unless("x", without="x < y", at=witness)


@cases(
    "at, then, message",
    ("x=1/0", "x > 0", "gives no values"),
    ("x", "x > 0", "gives no values"),
    ("y=1", "x > 0", r"'x' is not a variable of the query \(y\)"),
    ("x=1", "x / 0 > 0", "'x / 0' is not in the language"),
    ("x=1", "max(x, 1) > 0", r"'max\(x, 1\)' is not in the language"),
    ("x=1", "x >", "'x >' is no formula"),
    ("x=1", "x ** x", "is not"),
    ("x=1", "y < 1", "is not"),
    ("x=1", "x < 0.5", "write integers"),
    ("x=1, abs=1", "abs > 0", "'abs' names no variable"),
    ("x=1, λ=1", "x > 0", "'λ' names no variable"),
    ("x=1, z Real)(assert (> x 1.0))(declare-const y=1", "x > 1", "names no variable"),
    ("x=1", "x and x > 0", "'x' is a number, where a formula stands"),
    ("x=1", "x", "'x' is a number, where a formula stands"),
    ("x=1", "(x < 1) + 1 > 0", "'x < 1' is a formula, where a number stands"),
    ("x=1", "Iff(x, x > 0)", "'x' is a number, where a formula stands"),
    ("x=1", "x == (x > 0)", "'x > 0' is a formula, where a number stands"),
    ("x=1", "(x < 1) < (x < 2)", "'x < 1' is a formula, where a number stands"),
)
def test_a_query_that_says_nothing_is_refused_where_it_is_written(at, then, message):
    refuses(message, by.for_all, "one", given="x > 0", then=then, at=at, error=ValueError)


def _is_two() -> object:
    """[1; general] 1 is 2."""
    return 1 == 2


@pytest.mark.parametrize(
    "evidence",
    [
        by.Symbolic("an equation", _is_two, (1,), by.GENERAL),
        by.Symbolic("equations", lambda: [[1 == 2]], (1,), by.GENERAL),
        by.written("a step", _is_two),
        by.Certified("no answers", lambda _: iter([5]), (1,)),
        by.Certified("nothing", lambda _: iter([True, None]), (1,)),
    ],
)
def test_what_is_no_residual_and_no_answer_proves_nothing(evidence):
    # False is 0 to Python: an equation that fails was a residual that vanishes.
    assert run_claim(claim_with(evidence), QUICK).status is by.Status.UNDECIDED


def test_small_powers_are_asked_of_both_solvers():
    asked = by.for_all("powers", then="x**0 == 1 and x**1 == x", at="x=2", covers=(1,))
    claim = claim_with(asked.unless("0 for 1", then="x**0 == 0", at="x=2"))
    assert run_claim(claim, QUICK).status is by.Status.DECIDED


def _require(condition: bool) -> None:
    assert condition


def test_a_search_shrinks_what_it_finds():
    outcome = Searched("law", st.integers(0, 10**6), lambda x: _require(x < 5000)).run(by.Effort())
    assert outcome.counterexample is not None and outcome.counterexample.startswith("5000")


values = st.fractions(min_value=-4, max_value=4, max_denominator=6)


LOGIC = "Implies(x*x - 2*y < 1/2 or not (x >= y), Iff(-x**3 <= y, x != y and -1/2 < y < 3))"


@given(values, values)
def test_a_query_means_the_same_to_the_solver_and_in_fractions(x, y):
    query = Query("q", ("x", "y"), (), LOGIC)
    at = {"x": x, "y": y}
    expected = (not (x * x - 2 * y < Fraction(1, 2) or not x >= y)) or (
        (-(x**3) <= y) == (x != y and Fraction(-1, 2) < y < 3)
    )
    assert query.conclusion_holds(at) == expected


def test_the_solver_evaluates_as_the_fractions_do():
    for x, y in (("1/3", "-1"), ("2", "1"), ("-1/2", "1/4"), ("1", "1")):
        pinned = Query("q", ("x", "y"), (f"x == {x}", f"y == {y}"), LOGIC)
        holds = pinned.conclusion_holds({"x": Fraction(x), "y": Fraction(y)})
        for name in ("z3", "cvc5"):
            assert (solve(pinned.to_smtlib(), name).result == "unsat") == holds


def test_a_solver_is_stopped_at_its_limit_and_that_is_no_proof():
    at = dict(zip("xyuv", map(Fraction, ("-1/2", 0, 0, 0)), strict=True))
    entry = run_claim(claim_with(ForAllReals(HARD, (), at, (1,))), by.Effort(solver_limit=1.0))
    assert entry.status is by.Status.UNDECIDED and entry.seconds < 10


def test_a_query_is_answered_whatever_was_asked_before_it():
    asked = SQUARE.to_smtlib(), FALSE_SQUARE.to_smtlib()

    def answers():
        told = [solve(text, name) for text in asked for name in ("z3", "cvc5")]
        return [(each.result, each.model) for each in told]

    first = answers()
    assert [result for result, _ in first] == ["unsat", "unsat", "sat", "sat"]
    process = solver._running[0]
    # The same process answers, and nothing of one query is left in the next.
    assert answers() == first and solver._running[0] is process
    assert solve(HARD.to_smtlib(), "cvc5", limit=0.5).result == "timeout"
    assert process.poll() is not None and answers() == first
    refuses("z3 failed: Z3Exception", solve, "(assert (< x 1))", "z3", error=RuntimeError)
    assert answers() == first
    # One that is killed meanwhile, before it is asked and while it is.
    solver._running[0].kill()
    solver._running[0].wait()
    assert answers() == first
    threading.Timer(1.0, solver._running[0].kill).start()
    with pytest.raises(RuntimeError, match="cvc5 failed: it ended"):
        solve(HARD.to_smtlib(), "cvc5", limit=30.0)
    assert answers() == first


def test_evidence_from_outside_is_only_for_known_claims_and_under_a_title_of_its_own():
    simulated = by.Simulated("x", lambda effort: [])
    assert Ledger(claims(), extra={"T2b": (simulated,)})["T2b"].evidence[-1] is simulated
    refuses("no claim 'T99'", lambda: Ledger(claims(), extra={"T99": (simulated,)}))
    with pytest.raises(InputError, match="two pieces of evidence of one title"):
        Ledger(claims(), extra={"T2b": (simulated, simulated)})["T2b"]


def test_an_infinite_tolerance_shows_nothing():
    for tolerance, holds in ((0.5, True), (0.1, False), (float("inf"), None)):
        rows = [by.Measurement("r", 0.5, 0.8, tolerance)]
        assert by.Simulated("x", lambda effort, rows=rows: rows).run(by.Effort()).holds is holds


def test_claims_are_selected_by_name_and_by_part():
    assert [claim.name for claim in LEDGER.select(["t2b"])] == ["T2b"]
    assert all(claim.name.startswith("T1") for claim in LEDGER.select(["T1"]))
    assert "T11.1" not in [claim.name for claim in LEDGER.select(["T1"])]
    refuses("no claim 'T77'", LEDGER.select, ["T77"])


def test_hypotheses_are_predicates_on_an_instance():
    half = Fraction(1, 2)
    instance = Instance([[half, half], [half, half]], [[half, half], [half, half]])
    assert LEDGER["T2b"].unmet(instance) == ["H has a single eigenvalue h"]


def test_thorough_chunks_resume_and_give_the_same_record(tmp_path):
    chosen = [LEDGER["T2b"]]
    path = tmp_path / "thorough.json"
    first = Coverage(path)
    todo = pending(chosen, 4000, first)
    assert len({chunk.seed for chunk in todo}) == len(todo) == 2
    small = [dataclasses.replace(chunk, examples=30) for chunk in todo]
    first.add(small[0], run_chunk(small[0], LEDGER))
    resumed = Coverage(path)
    assert set(resumed.chunks) == {small[0].key}
    resumed.add(small[1], run_chunk(small[1], LEDGER))
    unbroken = Coverage(tmp_path / "other.json")
    for chunk in small:
        unbroken.add(chunk, run_chunk(chunk, LEDGER))

    def without_time(coverage):
        return {
            key: {k: v for k, v in value.items() if k != "seconds"}
            for key, value in coverage.chunks.items()
        }

    assert without_time(resumed) == without_time(unbroken)
    counted = sum(row["examples"] for row in resumed.totals())
    assert counted == sum(c["examples"] for c in resumed.chunks.values()) > 0


def test_a_record_of_other_code_is_neither_counted_nor_lost(tmp_path, monkeypatch):
    from oversmoothing.theory.proofs import run

    path = tmp_path / "thorough.json"
    Coverage(path).add(Chunk("T2b", "law", 0), {"examples": 5, "seconds": 0.1, "violation": None})
    before = path.read_bytes()
    assert list(Coverage(path).chunks) == ["T2b|law|0|2000"]
    monkeypatch.setattr(run, "fingerprint", lambda: "0" * 64)
    refuses("by other code", Coverage, path)
    assert path.read_bytes() == before


def test_the_fingerprint_follows_every_module_of_the_theory(tmp_path, monkeypatch):
    from oversmoothing.theory.proofs import run

    (tmp_path / "proofs").mkdir()
    for name in ("proofs/run.py", "law.py"):
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(run, "__file__", str(tmp_path / "proofs" / "run.py"))
    found = [run.fingerprint.__wrapped__()]
    (tmp_path / "law.py").write_text("x = 2\n")
    found.append(run.fingerprint.__wrapped__())
    (tmp_path / "law.py").rename(tmp_path / "laws.py")
    found.append(run.fingerprint.__wrapped__())
    assert len(set(found)) == 3


def test_a_violation_found_in_a_chunk_is_kept():
    planted = dataclasses.replace(
        LEDGER["T2b"], evidence=(Searched("law", st.integers(0, 9), lambda x: _require(x < 9)),)
    )
    found = run_chunk(Chunk("T2b", "law", 0, 500), {"T2b": planted})
    assert found["violation"] is not None and found["violation"].startswith("9")


def test_prove_prints_json_and_writes_a_page(tmp_path, told):
    page = tmp_path / "ledger.html"
    options = ["--json", "--out", str(page), "--examples", "50", "--jobs", "1"]
    found = json.loads(told(0, "prove", "T1e", *options))
    assert [set(claim) >= {"name", "statement", "status", "evidence", "seconds"} for claim in found]
    assert {each["name"]: each["status"] for each in found}["T1e"] in ("written", "undecided")
    text = page.read_text("utf-8")
    assert "T1e" in text and "declare-const" in text and "<math" in text


def test_the_report_of_a_claim_says_how_each_clause_stands_and_why_it_is_undecided():
    claim = dataclasses.replace(claim_with(PROVED), clauses=("a statement", "And more."))
    text = details(run_claim(claim, QUICK))
    assert text.startswith("X1: undecided") and "covers clause 2" in text
    assert "[decided]" in text and "[undecided]" in text


def test_the_report_of_a_proof_tells_what_verifies_from_what_illustrates():
    steps = (
        by.step("[1] So it is."),
        by.Step("x", lambda: 0, by.Scope.GENERAL),
        by.Step("y", lambda: 0),
    )
    text = details(run_claim(claim_with(Written("proof", steps)), QUICK))
    assert "1 verified, 1 illustrated at instances, 1 in words" in text
    assert "x [verified]" in text and "y [illustrated: instance]" in text


@cases(
    "text, said",
    ("So it is.", r"for which clauses is the step 'So it is\.'\?"),
    ("[x] So it is.", "what does the check of the step '.x. So it is.' cover"),
    ("[1; general] So it is.", "what does the check of the step '.1; general. So it is.' cover"),
)
def test_a_step_that_does_not_say_what_it_is_for_is_refused(text, said):
    refuses(said, by.step, text, error=ValueError)


def test_prove_counts_refutations_by_whose_words_they_refute(told):
    names = ["P-2401.04301v1-psi", "P-2401.04301v1-control", "N-2206.10991-attention"]
    asked = ["prove", *names, "--kind", "counterexample", "--jobs", "1"]
    out = " ".join(told(0, *asked).split())
    assert "3 claims: 3 refuted (1 in the paper's own words, 2 of our reading)" in out
    assert all(f"wording: {LEDGER[name].wording}" in out for name in names)
    found = {each["name"]: each["wording"] for each in json.loads(told(0, *asked, "--json"))}
    assert found == {name: LEDGER[name].wording for name in names}


def test_totals_count_what_each_solver_and_coq_say():
    answers = (("unsat", "unsat"), ("unsat", "timeout"), ("sat", "unsat"))
    found = [(PROVED, Outcome(True, "", data={"z3": {"result": x}, "cvc5": {"result": y}}))
             for x, y in answers]  # fmt: skip
    coq = Outcome(True, ""), Outcome(False, ""), Outcome(None, ""), Outcome(None, "", absent=True)
    found += [(Formal("T2_real.T2d", (1,)), outcome) for outcome in coq]
    findings = [Finding(0, evidence, outcome, 0.0) for evidence, outcome in found]
    said = totals([dataclasses.replace(run_claim(claim_with(), QUICK), findings=findings)])
    assert "3 queries for all reals: z3 unsat on 2, cvc5 agrees on 1; 0 mutated" in said
    assert "1 theorem checked by Coq, 1 not checked: Coq is missing, 2 refused" in said


def test_a_claim_says_in_set_words_whose_they_are():
    with pytest.raises(ValueError, match=r"X: the wording begins .* 'our reading', not 'theirs'"):
        Claim("X", ("One.",), wording="theirs")


def test_prove_fails_when_a_claim_is_not_what_it_is_on_record_for(monkeypatch, capsys):
    misfiled = dataclasses.replace(LEDGER["T14a"], on_record=by.Status.REFUTED)
    monkeypatch.setattr(Ledger, "select", lambda self, names: [misfiled])
    assert oversmoothing.main(["prove", "--jobs", "1", "--examples", "20"]) == 1
    assert "T14a is written; its recorded status is refuted" in capsys.readouterr().err


@cases(
    "key, change",
    ("T2b|a search|0|2000", {"violation": 1}),
    ("T2b|a search|0|2000", {"examples": "many"}),
    ("T2b|a search|0|2000", {"examples": True}),
    ("T2b|a search|0|2000", {"examples": -1}),
    ("T2b|a search|0|2000", {"seconds": None}),
    ("T2b|a search|0|2000", {"seconds": 10**400}),
    ("T2b", {}),
)
def test_a_record_of_chunks_that_are_none_is_refused(tmp_path, key, change):
    chunk = {"examples": 1, "seconds": 0.5, "violation": None, "detail": ""} | change
    record = {"schema_version": 2, "code": fingerprint(), "chunks": {key: chunk}}
    for text in (json.dumps(record), '{"schema_version": 1'):
        (tmp_path / "thorough.json").write_text(text)
        refuses("not a record of searched chunks", Coverage, tmp_path / "thorough.json")
    chunk.pop("violation")
    (tmp_path / "thorough.json").write_text(json.dumps(record))
    refuses("is no finished chunk", Coverage, tmp_path / "thorough.json")
