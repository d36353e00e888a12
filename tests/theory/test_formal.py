"""What Coq's kernel is said to have checked, it has; an error planted in a file is refused."""

import os
import re
import shutil
from pathlib import Path

import pytest

from oversmoothing.theory.proofs import coq
from oversmoothing.theory.proofs.claim import Effort
from oversmoothing.theory.proofs.coq import ALLOWED, SOURCES, Formal, check, on_record, statement
from oversmoothing.theory.proofs.ledger import theorems
from tests.support.cases import cases
from tests.support.processes import python
from tests.support.refusals import refuses

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")


def test_make_formal_asks_for_the_theorems_of_the_claims():
    """Under `python -m` too, where the module is another than the one that claims import."""
    code = (
        "import runpy, sys; sys.modules['apart'] = type(sys)('apart'); found = runpy.run_module("
        "'oversmoothing.theory.proofs.ledger', run_name='apart'); "
        "print(sum(map(len, found['theorems']().values())))"
    )
    done = python("-c", code)
    assert int(done.stdout) == sum(map(len, theorems().values())) >= 53


def test_without_coq_a_theorem_is_absent_and_holds_nothing(monkeypatch):
    monkeypatch.setenv("PATH", "")
    found = Formal("T2_real.T2d", (1,)).run(Effort())
    assert found.holds is None and found.absent


@needs_coq
@pytest.mark.parametrize("library", ["mathcomp", "mathcomp.algebra", "Coquelicot"])
def test_without_a_library_of_coq_a_theorem_is_absent(tmp_path, library):
    text = f"From {library} Require Import no_such_file.\nTheorem t : True.\nProof. exact I. Qed.\n"
    (tmp_path / "Own.v").write_text(text)
    found = Formal("Own.t", (1,), beside=str(tmp_path / "claim.py")).run(Effort())
    assert found.holds is None and found.absent
    assert found.detail == f"absent: Coq is without {library}.no_such_file"


@pytest.mark.parametrize(("script", "limited"), [("sleep 2", False), ("while :; do :; done", True)])
def test_a_limit_counts_the_time_of_the_processor(tmp_path, monkeypatch, script, limited):
    """By a coqc that waits and one that computes: a busy machine fails no proof."""
    own = tmp_path / "coqc"
    own.write_text(f'#!/bin/sh\n[ "$1" = --print-version ] && echo 9 9 && exit\n{script}\nexit 3\n')
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(coq, "SECONDS", 1)
    (tmp_path / "Own.v").write_text(SECTION)
    said = Formal("Own.t", (1,), beside=str(tmp_path / "claim.py")).run(Effort()).detail
    assert ("more than 1 s of the processor" in said) is limited, said


SECTION = """From Coq Require Import Reals Lra.
Open Scope R_scope.
Section Contradiction.
Variable x : R.
Hypotheses (below : x < 0) (above : 0 < x).
Theorem t : 1 = 2.
Proof. lra. Qed.
Theorem apart : 0 = 0.
Proof. reflexivity. Qed.
End Contradiction.
"""


@needs_coq
def test_hypotheses_of_a_section_that_nothing_meets_prove_nothing(tmp_path):
    """They stand in the closed type; a theorem whose hypotheses contradict has no instance."""
    (tmp_path / "Own.v").write_text(SECTION)
    beside = str(tmp_path / "claim.py")
    outcome = Formal("Own.t", (1,), beside=beside).run(Effort())
    assert outcome.holds is None and "(below, above)" in outcome.detail
    assert outcome.data["coq"] == "forall x : R, x < 0 -> 0 < x -> 1 = 2"
    assert "Definition t_instance := @t ..." in outcome.detail
    # What a theorem does not use is no part of it.
    assert Formal("Own.apart", (1,), beside=beside).run(Effort()).holds is True


@needs_coq
def test_an_instance_has_all_that_is_assumed(tmp_path):
    """One that leaves a hypothesis open shows nothing, nor one of another theorem."""
    text = SECTION.replace("x < 0)", "x < 1)").replace("1 = 2", "x * x < 1")
    text = text.replace("Proof. lra. Qed.", "Proof. nra. Qed.")
    half = "Lemma half : 1 / 2 < 1.\nProof. lra. Qed.\nLemma pos : 0 < 1 / 2.\nProof. lra. Qed.\n"
    for number, (instance, holds) in enumerate(
        (
            ("Definition t_instance := @t (1 / 2) half pos.", True),
            ("Definition t_instance := @t (1 / 2) half.", None),
            ("Definition t_instance := half.", None),
            ("Definition other_instance := @t (1 / 2) half pos.", None),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "Own.v").write_text(text + half + instance + "\n")
        outcome = Formal("Own.t", (1,), beside=str(folder / "claim.py")).run(Effort())
        assert outcome.holds is holds, outcome.detail


def test_the_closed_type_of_every_theorem_is_on_record():
    """With what its sections assume, which its own words do not show."""
    named = {theorem for names in theorems().values() for theorem in names}
    assert set(on_record()) == named
    # It stands in its file, of which no Coq is asked.
    assert all(theorem.split(".")[1] in statement(theorem) for theorem in named)
    assert all(set(one.axioms) <= ALLOWED for one in on_record().values())
    assert "\n0 < eps ->\n" in on_record()["Control.control"].type
    assert "0 < eps" not in statement("Control.control")
    # T7b asks what it asks of attention along the trajectory, not of every state.
    certificate = on_record()["T7b_certificate.certificate"].type
    assert "forall l : nat, tau_le (R:=R) (A l (state (R:=R) A h l x)) t" in certificate


def test_every_file_is_named_in_its_readme_and_proves_something():
    readme = (SOURCES / "README.md").read_text()
    proved = {theorem.split(".")[0] for names in theorems().values() for theorem in names}
    files = {path.stem for path in SOURCES.glob("*.v")}
    # TwoTokens.v has the values at which the others' hypotheses hold.
    assert files == proved | {"TwoTokens"}
    assert all(f"`{name}.v`" in readme for name in files)


@needs_coq
def test_T2_holds_by_Coq_for_lists_of_any_length():
    found = check(("T2_real.T2d",))
    assert "rho_Q" in found[0].type
    assert set(found[0].axioms) <= ALLOWED


@needs_coq
@cases(
    "old, new, said",
    ("0 < x -> (0 < x * y <-> 0 < y)", "0 <= x -> (0 < x * y <-> 0 < y)", "not accepted"),
    ("Proof. ring. Qed.", "Proof. Admitted.", "is no proof"),
    ("Open Scope R_scope.", "Open Scope R_scope.\nAxiom f : False.", "is no proof"),
    ("q < Rmin (-2 / (1 + a)) (-2 - a * p)", "q < Rmin (-2 / (1 + a)) (-2 + a * p)", "not acc"),
    ("Theorem identity", "Theorem entity", "no such theorem"),
)
def test_a_planted_error_is_refused(tmp_path, old, new, said):
    text = (SOURCES / "T2_real.v").read_text()
    assert old in text
    (tmp_path / "T2_real.v").write_text(text.replace(old, new))
    refuses(said, check, ("T2_real.identity",), tmp_path)


@needs_coq
def test_what_was_accepted_is_asked_anew_where_less_counts_as_a_proof(tmp_path, monkeypatch):
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "T2_real.v").write_text((SOURCES / "T2_real.v").read_text())
    assert check(("T2_real.identity",), tmp_path / "before")
    monkeypatch.setattr(coq, "_NOT_A_PROOF", re.compile(r"\bring\b"))
    refuses("'ring' is no proof", check, ("T2_real.identity",), tmp_path / "after")


def asked_apart(sources: Path, shared: Path, builds: Path) -> str:
    """What a process of its own says of Own.t; `builds` gets a line a call of coqc."""
    coqc = builds.parent / "bin" / "coqc"
    coqc.parent.mkdir(exist_ok=True)
    coqc.write_text(f'#!/bin/sh\necho "$@" >> {builds}\nexec {shutil.which("coqc")} "$@"\n')
    coqc.chmod(0o755)
    # Else the session's, for all tests.
    forget = "import os; del os.environ['OVERSMOOTHING_COQ_BUILT']; "
    code = (forget if shared.name == "cache" else "") + (
        "from oversmoothing.theory.proofs.coq import Formal; from "
        "oversmoothing.theory.proofs.claim import Effort; "
        f"print(Formal('Own.t', (1,), beside={str(sources / 'claim.py')!r}).run(Effort()).detail)"
    )
    named = "XDG_CACHE_HOME" if shared.name == "cache" else "OVERSMOOTHING_COQ_BUILT"
    paths = {"PATH": f"{coqc.parent}:{os.environ['PATH']}", named: str(shared)}
    return python("-c", code, env=paths, check=True).stdout


@needs_coq
@pytest.mark.parametrize("place", ["shared", "cache"])
def test_processes_of_a_user_build_a_file_once_and_a_changed_one_anew(tmp_path, place):
    """In the folder that is named, or in the user's cache; either is made where it is not there."""
    shared, builds, own = tmp_path / place, tmp_path / "builds", tmp_path / "Own.v"
    own.write_text("Theorem t : True.\nProof. exact I. Qed.\n")
    said = [asked_apart(tmp_path, shared, builds) for _ in range(2)]
    assert said == ["Coq's kernel accepts it; axioms: none\n"] * 2
    assert builds.read_text().count("Own.v\n") == builds.read_text().count("Ask.v\n") == 1
    own.write_text("Theorem t : False.\nProof. exact I. Qed.\n")
    assert "not accepted" in asked_apart(tmp_path, shared, builds)
    assert builds.read_text().count("Own.v\n") == 2


@needs_coq
def test_a_folder_that_others_can_write_to_is_not_believed(tmp_path):
    shared, builds = tmp_path / "shared", tmp_path / "builds"
    shared.mkdir()
    shared.chmod(0o770)
    (tmp_path / "Own.v").write_text("Theorem t : True.\nProof. exact I. Qed.\n")
    assert "accepts" in asked_apart(tmp_path, shared, builds)
    assert not list(shared.iterdir())
