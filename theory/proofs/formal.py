"""`make formal`: the Coq files of theory/formal, built, and what each theorem rests on.

A theorem counts as checked where Coq's kernel accepts its file, the file admits nothing and
declares no axiom, and `Print Assumptions` names no axiom beyond ALLOWED: those with which Coq's
standard library builds the real numbers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oversmoothing.theory.support.errors import InputError

SOURCES = Path(__file__).resolve().parent.parent / "formal"
# What the reals of Coq's standard library, and Coquelicot's on top of them, are built with.
ALLOWED = frozenset(
    {
        "ClassicalDedekindReals.sig_forall_dec",
        "ClassicalDedekindReals.sig_not_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
SECONDS = 300  # for one file
# Claim: its theorems, as module.theorem.
THEOREMS = {
    "T1a": ("T1a_spectrum.spectrum_with_multiplicity",),
    "T1b": ("T1_blocks.consensus_invariant",),
    "T1c": (
        "T1_blocks.quotient",
        "T1_blocks.HFC_autonomous",
        "T1_blocks.no_consensus_no_HFC",
        "T1_blocks.char_poly_quotient",
    ),
    "T1d": ("T1_blocks.pi_mean_autonomous", "T1_blocks.pi_mean_power", "T1_blocks.coupling"),
    "T1e": ("T1f_floor.mean_against_pi_mean",),
    "T1f": ("T1f_floor.floor", "T1f_floor.delta_bound"),
    "T2b": (
        "T2_real.identity",
        "T2_real.one_value_smooths",
        "T2_real.one_value_ties",
        "T2_real.one_value_keeps",
        "T2_real.minus_one_is_safe",
        "T2_real.two_tokens_attention",
        "T2_real.below_minus_one_smooths",
    ),
    "T2c": (
        "T2_real.consensus_radius",
        "T2_real.quotient_radius",
        "T2_real.larger",
        "T2_real.equal",
        "T2_real.smaller",
        "T2_real.at_least",
    ),
    "T2d": (
        "T2_real.T2d",
        "T2_real.T2d_universal",
        "T2_real.T2d_some_positive",
        "T2_real.T2d_not_always",
    ),
    "T3b": ("T3c_disc.disc_of_a",),
    "T3c": ("T3c_disc.disc_sufficient", "T3c_disc.disc_necessary"),
    "T3d": ("Control.beats",),
    "T7b-certificate": ("T7b_certificate.certificate", "T7b_certificate.floor"),
    "T7c": ("T7c_smoothing.positive_smooths", "T7c_smoothing.mixed_floor"),
    "P-2401.04301v3-control-negative": ("Control.perron", "Control.control"),
    "P-2401.04301v1-control": ("Refutations.v1_control",),
    "P-2401.04301v1-psi": ("Refutations.v1_psi",),
    "P-2401.04301v1-no-residual-always": ("Refutations.v1_no_residual",),
    "P-2401.04301v1-thm2-any-weights": ("Refutations.v1_thm2_any_weights",),
    "P-2401.04301v1-thm2-difference": ("Refutations.v1_thm2_difference",),
    "P-2401.04301v1-thm3-every-state": ("Refutations.v1_thm3_every_state",),
    "P-2401.04301v3-clip-smoothing": ("Refutations.v3_clip_smoothing",),
    "P-2401.04301v3-clip-untied": ("Refutations.v3_clip_untied",),
    "P-2401.04301v3-control-every-state": ("Refutations.v3_control_every_state",),
    "P-2401.04301v3-control-some-positive": ("Refutations.v3_some_positive",),
    "P-2401.04301v3-input-strictest": ("Refutations.v3_input_strictest",),
    "N-2312.06182-every-layer": ("Refutations.N_every_layer",),
    "N-2312.06182-remedy-partial": ("Refutations.N_remedy_partial",),
    "N-2312.06182-residual-gap": ("Refutations.N_residual_gap",),
}
_NOT_A_PROOF = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Conjectures?|Parameters?|Unset\s+(Guard|Positivity|Universe)"
    r"\s+Checking|bypass_check)\b"
)


@dataclass(frozen=True)
class Checked:
    """A theorem that Coq's kernel accepts: its statement as Coq prints it, and its axioms."""

    theorem: str
    statement: str
    axioms: tuple[str, ...]


def coq_version() -> str | None:
    """The version of the installed Coq; None where there is none."""
    if shutil.which("coqc") is None:
        return None
    return subprocess.run(
        ["coqc", "--print-version"], capture_output=True, text=True, check=True
    ).stdout.split()[0]


def check(theorems: tuple[str, ...], sources: Path = SOURCES) -> list[Checked]:
    """Build what these theorems (module.theorem) need of the .v files in `sources`.

    Raises `InputError` where there is no Coq, where a file is not accepted, admits something or
    declares an axiom, where a theorem is not there, or rests on an axiom that is not allowed.
    """
    if coq_version() is None:
        raise InputError("coqc is not on the PATH: install Coq, see theory/formal/README.md")
    with tempfile.TemporaryDirectory() as name:
        built = Path(name)
        for module in _in_order({theorem.split(".")[0] for theorem in theorems}, sources):
            _build(module, sources, built)
        return _asked(theorems, built)


def _in_order(modules: set[str], sources: Path) -> Iterator[str]:
    """These modules and what they import of ours, imported ones first."""
    done: set[str] = set()

    def visit(module: str) -> Iterator[str]:
        if module in done:
            return
        done.add(module)
        path = sources / f"{module}.v"
        if not path.is_file():
            raise InputError(f"{sources} has no {module}.v")
        for line in re.findall(r"^Require Import ([\w ]+)\.", path.read_text(), re.M):
            for needed in line.split():
                if (sources / f"{needed}.v").is_file():
                    yield from visit(needed)
        yield module

    for module in sorted(modules):
        yield from visit(module)


def _build(module: str, sources: Path, built: Path) -> None:
    text = (sources / f"{module}.v").read_text()
    bare = _without_comments(text)
    if found := _NOT_A_PROOF.search(bare):
        line = bare[: found.start()].count("\n") + 1
        raise InputError(f"{module}.v, line {line}: '{found[0]}' is no proof")
    (built / f"{module}.v").write_text(text)
    _coq(["-w", "none", f"{module}.v"], built, f"{module}.v is not accepted")


def _without_comments(text: str) -> str:
    """Coq's comments nest; their line breaks stay."""
    kept, depth, place = [], 0, 0
    while place < len(text):
        if text.startswith("(*", place):
            depth, place = depth + 1, place + 2
        elif depth and text.startswith("*)", place):
            depth, place = depth - 1, place + 2
        else:
            kept.append(text[place] if not depth or text[place] == "\n" else "")
            place += 1
    return "".join(kept)


def _coq(arguments: list[str], folder: Path, problem: str) -> str:
    try:
        done = subprocess.run(
            ["coqc", *arguments], cwd=folder, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{problem}: more than {SECONDS} s") from None
    if done.returncode:
        raise InputError(f"{problem}: {' '.join((done.stderr or done.stdout).split())[:500]}")
    return done.stdout


def _asked(theorems: tuple[str, ...], built: Path) -> list[Checked]:
    """Of each theorem, its statement and its axioms, asked of Coq in one run."""
    asked = [f"Require {module}." for module in sorted({name.split(".")[0] for name in theorems})]
    for number, theorem in enumerate(theorems):
        asked.append(f'Redirect "statement{number}" Check {theorem}.')
        asked.append(f'Redirect "axioms{number}" Print Assumptions {theorem}.')
    (built / "Ask.v").write_text("\n".join(asked) + "\n")
    _coq(["-w", "none", "Ask.v"], built, "there is no such theorem")
    found = []
    for number, theorem in enumerate(theorems):
        statement = (built / f"statement{number}.out").read_text().strip()
        said = (built / f"axioms{number}.out").read_text()
        names = tuple(re.findall(r"^([\w.']+)\s*(?=:|$)", said.partition("Axioms:")[2], re.M))
        if not names and "Closed under the global context" not in said:
            raise InputError(f"{theorem}: Coq says neither axioms nor that there are none: {said}")
        if beyond := sorted(set(names) - ALLOWED):
            raise InputError(f"{theorem} rests on {', '.join(beyond)}, which is not allowed")
        found.append(Checked(theorem, statement, names))
    return found


def main() -> int:
    """Check every theorem of the table and print it. Exit status 1: one is not accepted."""
    wanted = tuple(theorem for theorems in THEOREMS.values() for theorem in theorems)
    try:
        found = {one.theorem: one for one in check(wanted)}
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    for claim, theorems in THEOREMS.items():
        for theorem in theorems:
            axioms = ", ".join(found[theorem].axioms) or "none"
            print(f"{claim}  {theorem}  axioms: {axioms}")
    print(f"{len(wanted)} theorems checked by Coq {coq_version()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
