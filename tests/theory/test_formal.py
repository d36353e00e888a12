"""What Coq's kernel is said to have checked, it has; an error planted in a file is refused."""

import shutil
from pathlib import Path

import pytest

from oversmoothing.theory.proofs.formal import ALLOWED, SOURCES, THEOREMS, check
from oversmoothing.theory.proofs.ledger import claims
from oversmoothing.theory.support.errors import InputError

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")


def test_every_theorem_belongs_to_a_claim_of_the_ledger() -> None:
    assert set(THEOREMS) <= set(claims())


def test_every_file_is_named_in_its_readme_and_proves_something() -> None:
    readme = (SOURCES / "README.md").read_text()
    proved = {theorem.split(".")[0] for names in THEOREMS.values() for theorem in names}
    files = {path.stem for path in SOURCES.glob("*.v")}
    assert files == proved
    assert all(f"`{name}.v`" in readme for name in files)


@needs_coq
def test_T2_holds_by_Coq_for_lists_of_any_length() -> None:
    found = check(("T2_real.T2d",))
    assert "rho_Q" in found[0].statement
    assert set(found[0].axioms) <= ALLOWED


@needs_coq
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0 < x -> (0 < x * y <-> 0 < y)", "0 <= x -> (0 < x * y <-> 0 < y)", "not accepted"),
        ("Proof. ring. Qed.", "Proof. Admitted.", "is no proof"),
        ("Open Scope R_scope.", "Open Scope R_scope.\nAxiom f : False.", "is no proof"),
        ("q < Rmin (-2 / (1 + a)) (-2 - a * p)", "q < Rmin (-2 / (1 + a)) (-2 + a * p)", "not acc"),
        ("Theorem identity", "Theorem entity", "no such theorem"),
    ],
)
def test_a_planted_error_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (SOURCES / "T2_real.v").read_text()
    assert old in text
    (tmp_path / "T2_real.v").write_text(text.replace(old, new))
    with pytest.raises(InputError, match=said):
        check(("T2_real.identity",), tmp_path)
