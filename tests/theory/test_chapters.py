"""A chapter is read strictly: whatever is not in its language is an error with file and line."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from oversmoothing.theory.proofs import hypotheses as given
from oversmoothing.theory.proofs.chapter import claims_of
from oversmoothing.theory.proofs.claim import Claim, Effort, Kind, Status
from oversmoothing.theory.proofs.evidence import Counterexample
from oversmoothing.theory.proofs.instances import matrix
from oversmoothing.theory.proofs.items import names, sections
from oversmoothing.theory.proofs.ledger import claims, files, run_claim
from oversmoothing.theory.support.errors import InputError

TEXT = r"""# X: a chapter

## X1: squares of small numbers

- status: written
- hypotheses: POSITIVE, OWN
- source: ours, with \<brackets\>
- wording: our reading
- further: Nothing is known of cubes; this
  goes on for two lines.

$$x^2 < x$$

1. For 0 < x < 1 the square of x is less than x,
   and so on.
   - query: the square is smaller
     - given `0 < x; x < 1`, then `square < x`, at `x=1/2`, where `square := x*x`
     - unless 1 is admitted: without `x < 1`, given `x <= 1`, at `x=1`
2. A second clause.
   - coq [1, 2]: T2_real.identity
   - sharp: the square is smaller
     - given `0 < x; x < 1`, then `x*x < x`, at `x=1/2`
     - unless 0 is admitted: without `0 < x`, at `x=0`

- search: `small`: in integers

Proof: by hand

1. [1, 2] In words, by T1e.
2. [2] And executed.
   - verified: `checked`
"""
CODE = """from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import given, search


@search(st.integers(0, 9))
def small(x):
    assert x < 10


def checked():
    return 0


TIE = OWN = given.condition("it is so", given.case())(lambda instance: False)
"""


def read(folder: Path, text: str, code: str) -> tuple[dict[str, Claim], dict[str, Any]]:
    """The claims of the chapter x.md with the names of its x.py."""
    (folder / "x.md").write_text(text)
    (folder / "x.py").write_text(code)
    names: dict[str, Any] = {"__file__": str(folder / "x.py")}
    exec(compile(code, names["__file__"], "exec"), names)
    return claims_of(folder / "x.py", names), names


def claim(folder: Path, text: str = TEXT) -> Claim:
    return read(folder, text, CODE)[0]["X1"]


def test_a_claim_is_what_its_chapter_says(tmp_path):
    claims, names = read(tmp_path, TEXT, CODE)
    found = claims["X1"]
    assert found.clauses == (
        "For 0 < x < 1 the square of x is less than x, and so on.",
        "A second clause.",
    )
    assert (found.latex, found.source) == ("x^2 < x", "ours, with <brackets>")
    assert (found.on_record, found.wording) == (Status.WRITTEN, "our reading")
    assert found.further == "Nothing is known of cubes; this goes on for two lines."
    assert found.hypotheses == (given.POSITIVE, names["OWN"])
    kinds = [(each.kind, each.covers) for each in found.evidence]
    assert kinds == [
        (Kind.REALS, (1,)),
        (Kind.FORMAL, (1, 2)),
        (Kind.SHARP, ()),
        (Kind.SEARCHED, ()),
        (Kind.WRITTEN, (1, 2)),
    ]
    assert found.cites == ("T1e",)
    entry = run_claim(found, Effort(examples=9, second_opinion=False), frozenset(kinds_run()))
    assert [finding.outcome.holds for finding in entry.findings] == [True] * 4


def kinds_run() -> set[Kind]:
    return {Kind.REALS, Kind.SHARP, Kind.SEARCHED, Kind.WRITTEN}


@pytest.mark.parametrize(("most", "holds"), [(10, True), (9, False)])
def test_a_step_is_executed_where_a_search_draws(tmp_path, most, holds):
    code = CODE.replace("x < 10", f"x < {most}").replace("def checked", "def _checked")
    claims, _ = read(tmp_path, TEXT.replace("verified: `checked`", "illustrated: `small`"), code)
    (proof,) = run_claim(claims["X1"], Effort(), frozenset({Kind.WRITTEN})).findings
    assert proof.outcome.holds is holds


@pytest.mark.parametrize(("equation", "holds"), [("4/6 == 2/3", True), ("-1/3 == -0.3", False)])
def test_a_step_may_be_equations(tmp_path, equation, holds):
    code = CODE.replace("def checked", "def _checked")
    lines = f"`1 == 1`\n   - verified: `{equation}`"
    claims, _ = read(tmp_path, TEXT.replace("`checked`", lines), code)
    (proof,) = run_claim(claims["X1"], Effort(), frozenset({Kind.WRITTEN})).findings
    assert proof.outcome.holds is holds
    assert holds or "not so: -1/3 == -0.3" in proof.outcome.detail


SHARP = """   - sharp: the square is smaller
     - given `0 < x; x < 1`, then `x*x < x`, at `x=1/2`
     - unless 0 is admitted: without `0 < x`, at `x=0`
"""
# What is changed, to what, and what is said of it; the line where a number is clear from the text.
WRONG = {
    "an unknown field": ("- wording: our", "- wordings: our", "line 8: 'wordings: our reading' is"),
    "a field twice": ("- wording: our", "- source: our", "line 8: a second 'source'"),
    "no status": ("- status: written\n", "", "line 3: without status"),
    "a status that is none": ("status: written", "status: proven", "line 3: X1: 'proven'"),
    "an unknown hypothesis": ("POSITIVE, OWN", "POSITIVE, OWNS", "no hypothesis OWNS"),
    "a hypothesis that hides a shared one": ("OWN", "TIE", "line 3: TIE is a shared hypothesis"),
    "a line in between": ("Proof: by", "So:\n\nProof: by", "'So:' goes on with nothing"),
    "a line indented otherwise": ("\n   and so on", "\n  and so on", "line 15: 'and so on.' goes"),
    "a line that Markdown reads as an item": (
        "\n   and so",
        "\n   - and so",
        "line 15: 'and so on.' is none of",
    ),
    "a line that begins with a sign": ("\n   and so on", "\n   + so on", "'+ so on.' goes on"),
    "a clause out of order": ("2. A second", "3. A second", "line 19: 3. where 2. is next"),
    "a clause that nothing covers": ("coq [1, 2]", "coq [1]", None),
    "evidence for no clause": ("coq [1, 2]", "coq [1, 7]", "no clause 7"),
    "unknown evidence": ("- coq [1", "- proof [1", "line 20: 'proof [1, 2]: T2_real.identity' is"),
    "a missing theorem": ("T2_real.identity", "T2_real.nothing", "line 20: .* has no theorem"),
    "a query without its words": ("then `square < x`", "so `square < x`", "line 17: 'given"),
    "an abbreviation of nothing": ("`square := x*x`", "`SQUARES`", "line 16: X1: 'SQUARES' is nei"),
    "a neighbour without its change": ("1 is admitted: without", "without", "line 18: no false"),
    "a neighbour of no hypothesis": (
        "without `x < 1`",
        "without `x < 2`",
        "line 18: X1: .* no hyp",
    ),
    "a point without all variables": ("at `x=1`", "at `y=1`", "line 18: X1: 'y=1' is no witness"),
    "a sharp line without a point": (", at `x=0`", "", "line 21: X1: .* has no point"),
    "a search that is not there": ("`small`:", "`large`:", "line 25: .* has no such 'large'"),
    "a search that is none": ("search: `small`", "search: `checked`", "line 25: `checked`: in int"),
    "a line beneath a search": ("in integers", "in integers\n  - box: n = 1", "line 26: 'box: n"),
    "a search that no line names": (
        "- search: `small`: in integers\n",
        "",
        "no line of x.md names 'small'",
    ),
    "a search without a title": ("`small`: in integers", "`small`", "line 25: it needs a name and"),
    "an equation that is none": ("`checked`", "`1 == (`", "line 31: `1 == (` is no equation"),
    "two scopes": ("`checked`", "`1 == 1`\n   - illustrated: `2 == 2`", "line 32: 'illustrated"),
    "a text without its step": ("`checked`", "`check`", "line 31: `check` is not one func"),
    "a step without its text": ("   - verified: `checked`\n", "", "x.py, line 11: .* 'checked'"),
    "an unknown scope": ("- verified:", "- proved:", "line 31: 'proved: `checked`' is none of"),
    "a proof without steps": (TEXT[TEXT.index("1. [1, 2] In") :], "", "a proof without steps"),
    "no formula": ("$$x^2 < x$$", "", "a clause stands after the formula"),
    "two formulas": ("$$x^2 < x$$", "$$x$$\n\n$$x$$", "line 14: a second formula"),
    "a counterexample to what is proved": ("Proof: by", "Counterexample: by", "counterexample to"),
    "two pieces of one title": (SHARP, SHARP + SHARP, "two pieces of evidence are 'sharp: the"),
    "words before any claim": ("# X: a chapter", "# X: a chapter\n\nWords.", "line 3: 'Words.'"),
    "a claim twice": (TEXT, TEXT + TEXT.removeprefix("# X: a chapter\n"), "for the second time"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_chapter_is_said_with_its_line(name, tmp_path):
    old, new, said = WRONG[name]
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if said is None:
        text = text.replace("[1, 2] In", "[1] In").replace("[2] And", "And")
        said = "line 19: no evidence covers clause 2"
    with pytest.raises(InputError) as refused:
        claim(tmp_path, text)
    assert str(refused.value).startswith(("x.md, line ", "x.py, line "))
    assert all(part in str(refused.value) for part in said.split(" .* ")), refused.value


REFUTED = """## X2: squares shrink

- status: refuted (our reading)
- source: ours
- wording: our reading

$$x^2 < x$$

1. Squares shrink.

Counterexample: h = 3/2

- at: A = [[1/2, 1/2], [1/4, 3/4]], H = [[3/2]], X_0 = [[2], [-1]]

1. 9/4 > 3/2.
   - illustrated: `larger`
"""


LARGER = "def larger({}):\n    assert 9 / 4 > 3 / 2\n"
CASE = REFUTED[REFUTED.index("- at") : REFUTED.index("\n1. 9/4")]
# What the step takes, what is changed in the Markdown, and what is said of it.
NO_CASE = {
    "the numbers": ("A, H, X0", "", "", ""),
    "no other numbers": ("H, X1", "", "", "line 16: `larger` takes X1, and no case has it"),
    "no case": ("", "- at: A =", "- at: B =", "line 13: a case is A ="),
    "a case that no step takes": ("", "", "", "line 13: no step takes the numbers of this case"),
    "two cases": ("H_1, X0_2", CASE, CASE + CASE, ""),
    "the second of two cases": ("H_1", CASE, CASE + CASE, "line 14: no step takes the numbers"),
}


@pytest.mark.parametrize("name", NO_CASE)
def test_the_steps_of_a_counterexample_take_the_numbers_of_its_line(tmp_path, name):
    takes, old, new, said = NO_CASE[name]
    with pytest.raises(InputError, match=said) if said else nullcontext():
        claims, _ = read(tmp_path, REFUTED.replace(old, new), LARGER.format(takes))
        (evidence,) = claims["X2"].evidence
        case = given.Instance(matrix("1/2 1/2; 1/4 3/4"), matrix("3/2"), matrix("2; -1"))
        assert isinstance(evidence, Counterexample) and case in evidence.cases
        assert evidence.numbers == "A = [[1/2, 1/2], [1/4, 3/4]], H = [[3/2]], X_0 = [[2], [-1]]"
        assert evidence.run(Effort()).holds


CHAPTERS = sorted({path for path in files().values() if path.suffix == ".md"})


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: str(path.stem))
def test_the_book_shows_the_words_of_the_claims(path):
    """As Markdown reads the file: no sign of a text is lost as markup."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
    shown = {_words(token) for token in markdown.parse(path.read_text("utf-8")) if token.children}
    for section in sections(path):
        for item in [*section.clauses, *(step for proof in section.proofs for step in proof.steps)]:
            assert item.text in shown, item.text
    for name in names(path):
        assert set(claims()[name].clauses) <= shown


def _words(token: Any) -> str:
    texts = {"softbreak": " "}
    return "".join(
        texts.get(part.type, part.content if part.type in ("text", "code_inline") else "<markup>")
        for part in token.children
    )
