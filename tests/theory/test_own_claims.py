"""A user's own claims, by the command line: refuted, repaired, undecided, proved, and refused."""

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import oversmoothing
from oversmoothing.theory.proofs import by, hypotheses, instances as exact, strategies as draw
from oversmoothing.theory.proofs.evidence import read, show
from oversmoothing.theory.proofs.own import names_of
from oversmoothing.theory.proofs.run import Coverage
from tests.support.cases import cases
from tests.support.refusals import refuses

HEAD = "from oversmoothing import Claim, by, draw, exact, given\n"
LAW = """
def law(A, H, X0):
    {body}
"""
CLAIM = """
C = Claim(
    name="mine",
    clauses=({clauses},),
    hypotheses=({hypotheses}),
    evidence=({evidence},),
)
"""


def claim(
    body: str = "return True",
    hypotheses: str = "given.POSITIVE,",
    evidence: str = "by.law(law)",
    clauses: str = "'It is so.'",
    above: str = "",
) -> str:
    """The text of a file with one claim."""
    stated = CLAIM.format(clauses=clauses, hypotheses=hypotheses, evidence=evidence)
    return HEAD + above + LAW.format(body=body) + stated


@pytest.fixture
def prove(tmp_path, monkeypatch, capsys):
    """Write mine.py, run `oversmoothing prove mine.py ...` beside it: status, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(text: str | None, *words: str, examples: int = 40) -> tuple[int, str, str]:
        if text is not None:
            Path("mine.py").write_text(text)
        effort = ["--examples", str(examples)]
        status = oversmoothing.main(["prove", "mine.py", *effort, *words])
        said = capsys.readouterr()
        return status, " ".join(said.out.split()), " ".join(said.err.split())

    return run


# ------------------------------------------------------------------------------------ the example


def test_the_example_runs_as_it_is_written_one_claim_refuted_and_one_proved(prove, told):
    assert "oversmoothing prove mine.py" in told(0, "prove", "--init", "mine.py")
    status, out, _ = prove(None, examples=200)
    assert status == 1
    assert "one-layer: refuted" in out and "one-layer-repaired: written" in out
    assert "2 claims: 1 refuted, 1 proved in writing" in out
    status, out, _ = prove(None, "one-layer-repaired", "--seed", "7")
    assert status == 0 and "1 claim: written" in out and "one-layer: " not in out


def test_the_example_names_every_hypothesis_and_replaces_no_file(prove, told):
    oversmoothing.main(["prove", "--init", "mine.py"])
    text = Path("mine.py").read_text()
    assert all(f"given.{name} " in text for name in names_of("given"))
    assert all(f"draw.{name}" in text for name in ("cases", "attention", "with_spectrum"))
    Path("mine.py").write_text("x = 1\n")
    assert "is there already" in told(2, "prove", "--init", "mine.py")
    assert Path("mine.py").read_text() == "x = 1\n"
    assert oversmoothing.main(["prove", "--init", "mine.txt"]) == 2


# ------------------------------------------------------------------------------- what is found

SMALL = "return H[0][0] < 1", "given.POSITIVE, given.ONE_FEATURE"
QUERY = "by.for_all('q', given='h > 0', then='h*h > {}', at='h=1', covers=(1,))"
QUERY += ".unless('any h', without='h > 0')"
FLOATS = "return abs(sum(float(x) for x in A[0]) - 1) + {}"
AGAINST = "by.law(law, against=(2,)), by.law(lambda A, H, X0: True, against=(1,))"
UNDECIDED = "mine: undecided"
# A file, the exit status, and what is said of it.
TOLD = {
    "a false law, at the smallest instance": (
        claim(*SMALL),
        1,
        "mine: refuted",
        "counterexample: A = [[1]], H = [[1]], X_0 = [[0]]",
        "checked again at the numbers as printed: every hypothesis holds",
    ),
    "only the clauses that a law is against": (
        claim("return len(A) < 2", evidence=AGAINST, clauses="'One.', 'Two.'"),
        1,
        "(1) One. [undecided]",
        "(2) Two. [refuted]",
    ),
    "a query": (claim(evidence=QUERY.format(0)), 0, "mine: decided"),
    "a false query, by its model": (
        claim(evidence=QUERY.format(1)),
        1,
        "mine: refuted",
        "counterexample: h = ",
    ),
    "floats within the tolerance": (
        claim(FLOATS.format("0"), evidence="by.law(law, tolerance=1e-12)"),
        0,
        "law: not violated",
        "none violates it",
    ),
    "floats beyond the tolerance": (
        claim(FLOATS.format("1e-6"), evidence="by.law(law, tolerance=1e-12)"),
        1,
        "more than 1e-12",
    ),
    "a law that depends on more than its instance": (
        claim("return next(count) != 9", above="import itertools\ncount = itertools.count()\n"),
        1,
        UNDECIDED,
        "must depend on its instance alone",
    ),
    "a law that changes what it is given": (
        claim("X0[0][0] += 5; return X0[0][0] < 9"),
        1,
        "X_0 = [[4]]",
    ),
    "None": (claim("pass"), 1, UNDECIDED, "mine.py, line ", "returned None on every example"),
    "None on some": (claim("if len(A) > 1: return True"), 1, UNDECIDED, "returned None on"),
    "an array": (claim("import numpy; return numpy.ones(2)"), 1, UNDECIDED, "returned an array"),
    "a number": (claim("return 1"), 1, UNDECIDED, "mine.py, line ", "returned 1, of type int"),
    "an error": (
        claim("return 1 / X0[0][0] < 9"),
        1,
        UNDECIDED,
        "mine.py, line 4 (`return 1 / X0[0][0] < 9`): ZeroDivisionError",
    ),
    "a law of one argument": (
        claim().replace("law(A, H, X0)", "law(A)"),
        1,
        "mine.py, line 3: the law cannot take the 3 drawn",
    ),
    "draws of one matrix": (claim(evidence="by.law(law, draw.attention())"), 1, "cannot take"),
    "hypotheses that no drawn instance meets": (
        claim(hypotheses="given.POSITIVE, given.CAUSAL_MASK, given.TWO_TOKENS"),
        1,
        UNDECIDED,
        "no drawn example meets the hypotheses: nothing was searched",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_said_of_a_claim(prove, name):
    text, wanted, *sentences = TOLD[name]
    status, out, _ = prove(text)
    assert status == wanted and all(sentence in out for sentence in sentences), out
    assert "refuted" not in out or UNDECIDED not in sentences


def test_a_hypothesis_repairs_it_and_a_search_alone_proves_nothing(prove):
    text = claim(SMALL[0], f"{SMALL[1]}, given.HALF_OPEN")
    status, out, _ = prove(text)
    assert status == 0 and "mine: undecided" in out
    words = " ".join(out.split())
    assert re.search(
        r"no counterexample in \d+ instances \(\d+ more miss a hypothesis\) with n <= \d, "
        r"d <= 1, h from -\d\S* to -\d\S* \(\d+ values\), Re a from \S+ to \S+ \(\d+ values\), "
        r"no zero in A, entries of size at most \d and with denominators up to \d+: "
        r"a search, no proof",
        words,
    )


def test_a_search_says_its_box_in_words_and_in_json():
    """That of all instances that counted, those filtered out by a hypothesis not among them."""
    seen = []

    def law(A, H, X0):
        seen.append((A, H, X0))
        return True

    found = by.law(law, draw.cases()).search(40, 0, (hypotheses.ONE_FEATURE,))
    entries = [abs(x) for case in seen for M in case for row in M for x in row]
    n, below = max(len(A) for A, _, _ in seen), max(x.denominator for x in entries)
    size = f"{float(max(entries)):.4g} and with denominators up to {below}"
    values = {H[0][0] for _, H, _ in seen}
    h = f"h from {float(min(values)):.4g} to {float(max(values)):.4g} ({len(values)} values)"
    others = [a for A, _, _ in seen for a in np.sort(np.linalg.eigvals(np.array(A, float)))[:-1]]
    a = f"Re a from {np.real(others).min():.4g} to {np.real(others).max():.4g} ("
    box = found.data["box"]
    assert box.startswith(f"n <= {n}, d <= 1, {h}, {a}") and found.detail.endswith(f": {box}")
    assert box.endswith(f" values), no zero in A, entries of size at most {size}")
    assert found.data["filtered"] > 0 and found.data["examples"] == len(seen)


@given(case=draw.exact_cases())
def test_what_is_printed_reads_back_as_it_was(case):
    assert tuple(read(show(part)) for part in case) == case


def test_a_violation_counts_beside_instances_where_the_law_cannot_be_asked(prove):
    status, out, _ = prove(claim("return 1 / X0[0][0] < 0 or len(A) < 2"), examples=200)
    assert status == 1 and "mine: refuted" in out and "ZeroDivisionError" in out


def test_a_counterexample_of_one_token_says_how_to_ask_of_two_or_more(prove):
    status, out, _ = prove(claim("return len(A) > 1"))
    assert status == 1 and "This is one token" in out
    evidence = "by.law(law, draw.cases(A=draw.attention(2)))"
    assert evidence.split("law, ")[1].rstrip(")") in out
    status, out, _ = prove(claim("return False", evidence=evidence))
    assert status == 1 and "one token" not in out


def test_a_claim_may_rest_on_one_of_the_ledger_but_on_no_other(prove):
    status, out, _ = prove(claim(evidence="by.written('x', '[1] By T11.2 it is so.')"))
    assert status == 0 and "mine: written" in out and "T11.2: " not in out
    status, _, err = prove(claim(evidence="by.written('x', '[1] By T99 it is so.')"))
    assert status == 2 and "cites 'T99', which is no claim" in err


@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
def test_a_theorem_of_coq_beside_the_file_proves_its_clause(prove, tmp_path, monkeypatch):
    monkeypatch.setenv("OVERSMOOTHING_COQ_BUILT", str(tmp_path / "built"))
    text = claim(evidence="by.Formal('Mine.sums', (1,), beside=__file__)")
    Path("Mine.v").write_text("Theorem sums : 1 + 1 = 2.\nProof. reflexivity. Qed.\n")
    for said, other in (("to check: 1;", "before"), ("Coq checked 1 of 1 theorems", "to check")):
        status, out, err = prove(text)
        assert status == 0 and "mine: machine-checked" in out and "1 + 1 = 2" in out
        assert said in err and other not in err and "cited" not in err
    # Another text, for a process builds a file once.
    Path("Sorry.v").write_text("Theorem sums : 1 + 1 = 3.\nProof. Admitted.\n")
    status, out, _ = prove(text.replace("Mine.", "Sorry."))
    assert status == 1 and "'Admitted' is no proof" in out and "1 refused" in out


def test_what_the_file_prints_is_no_part_of_the_report(prove):
    text = claim("print('inside'); return True", above="print('outside')\n")
    status, out, err = prove(text, "--json")
    assert status == 0 and json.loads(out)[0]["name"] == "mine"
    assert "outside" in err and "inside" in err


def test_a_page_needs_no_formula_but_refuses_a_wrong_one(prove):
    assert prove(claim(), "--out", "page.html")[0] == 0
    assert "mine" in Path("page.html").read_text()
    text = claim().replace("clauses=", "latex=r'\\nothing{', clauses=")
    status, _, err = prove(text, "--out", "page.html")
    assert status == 2 and "the formula of mine" in err


def test_a_thorough_search_goes_on_only_with_the_same_file(prove):
    for examples, chunks in ((100_000, 50), (4_001, 3)):
        status, _, err = prove(claim(), "--thorough", "--minutes", "0", examples=examples)
        assert status == 0 and f"{chunks} chunks to do" in err
    Coverage(Path("thorough.json"), Path("mine.py")).save()
    Path("mine.py").write_text(claim("return len(A) > 0"))
    refuses("by other code", lambda: Coverage(Path("thorough.json"), Path("mine.py")))


# ------------------------------------------------------------------------------ what is refused

REFUSED = {
    "a syntax error": (claim("return ("), "mine.py, line 4 (`return (`) is no Python: '(' was"),
    "no claim": (HEAD, "defines no claim"),
    "an unknown hypothesis": (
        claim(hypotheses="given.POSITVE,"),
        "there is no given.POSITVE; given.POSITIVE perhaps; there are given.",
    ),
    "a hypothesis by its text": (claim(hypotheses="'POSITIVE',"), "there are given."),
    "an unknown strategy": (claim(evidence="by.law(law, draw.cased())"), "draw.cases perhaps"),
    "no tuple": (claim(hypotheses="given.POSITIVE"), "of one, with a comma"),
    "an unknown name": (HEAD.replace("by,", "bye,"), "there are Claim, by, draw, exact, given"),
    "a strategy without its brackets": (
        claim(evidence="by.law(law, draw.cases)"),
        "with its brackets",
    ),
    "a name of the ledger's": (claim().replace('"mine"', '"T2b"'), "are the ledger's"),
    "two claims of one name": (claim() + claim().replace("C =", "D ="), "two claims of the name"),
    "no evidence": (claim().replace("(by.law(law),)", "()"), "has no evidence"),
    "two laws of one title": (claim(evidence="by.law(law), by.law(law)"), "name one, title=..."),
    "no such clause": (claim(evidence="by.law(law, against=(3,))"), "there is no clause 3"),
    "an error of its own": ("\nx = [][0]\n", "mine.py, line 2 (`x = [][0]`): IndexError"),
    "an end of Python": ("raise SystemExit(0)\n", "mine.py, line 1 (`raise SystemExit(0)`)"),
    "a strategy that raises": (
        claim(evidence="by.law(law, draw.cases().map(lambda case: 1 / 0))"),
        "ZeroDivisionError",
    ),
    "numbers for a strategy": (
        claim(evidence="by.law(law, draw.cases(H=(2,)))"),
        "mine.py: no instance can be drawn from what a law was given",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(prove, kind):
    text, sentence = REFUSED[kind]
    status, out, err = prove(text)
    assert status == 2 and sentence in err, (out, err)
    assert "mine.py" in err and "Traceback" not in err and not out


def test_a_file_that_is_not_there_is_refused(prove):
    status, _, err = prove(None)
    assert status == 2 and "there is no file 'mine.py'" in err and "--init mine.py" in err


# --------------------------------------------------------------------- the ledger, by bare names


def test_a_bare_name_is_a_claim_of_the_ledger(told):
    listed = told(0, "prove", "T4c", "--list")
    assert told(0, "prove", "T4c", "--list") == listed and listed.startswith("T4c ")
    # A line for each claim, that fits the terminal.
    lines = told(0, "prove", "T2", "--list").splitlines()
    assert [line.split()[0] for line in lines] == ["T2a", "T2b", "T2c", "T2d", "T2d-ii", "T2e"]
    assert max(map(len, lines)) <= 100 and lines[1].endswith(" ...")
    alone = told(0, "prove", "T2a", "--kind", "for all reals")
    assert "1 claim: " in alone and alone.startswith("T2a: ")
    assert "no claim ''" in told(2, "prove", "")
    assert "no claim 'T99'. Chapter T9 has T9a, " in told(2, "prove", "T99")


def test_a_claim_of_the_file_is_chosen_by_its_name(prove):
    assert prove(claim(), "mine")[0] == 0
    status, _, err = prove(claim(), "T2b")
    assert status == 2 and "no claim 'T2b'; there are mine" in err


@cases(
    "low, high",
    ("-21/20", "0"),
    ("-1", "1"),
    ("0", "1/1000000"),
    ("1/3", "334/1000"),
    ("-40", "25/2"),
)
def test_an_interval_is_drawn_at_its_ends_near_them_and_all_through(low, high):
    """However short: in each of its quarters, and a five-hundredth of it from each end."""
    low, high = Fraction(low), Fraction(high)
    elements = [draw.fractions(low, high), draw.inside(low, high)]
    closed, opened = ({*getattr(e, "wrapped_strategy", e).elements} for e in elements)
    assert closed - opened == {low, high} and all(low < x < high for x in opened)
    places = [(x - low) / (high - low) for x in opened]
    assert min(places) < Fraction(1, 500) and max(places) > Fraction(499, 500)
    assert {int(4 * place) for place in places} == {*range(4)}
    for cut in (100, 30, 10):
        assert any(Fraction(1, 3 * cut) / 2 < place < Fraction(1, cut) for place in places)
    assert len(closed) < 12 * max(6, 46 * (high - low))


RARE = """
import oversmoothing
from fractions import Fraction
def law(A, H):
    return oversmoothing.verdict(A=A, H=H).verdict {}
"""


def asking(condition: str, evidence: str, more: str = "") -> str:
    """A file with a law of A and H that asks for their verdict."""
    text = claim("", SEVERAL, evidence, above=RARE.format(condition) + more)
    return text.replace(LAW.format(body=""), "")


SPECTRUM = "by.law(law, draw.cases(H=draw.with_spectrum(draw.inside({}, {}), 1, 1)))"
SEVERAL = "given.POSITIVE, given.TWO_TOKENS, given.REAL_H"


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_what_fails_only_near_the_end_of_an_interval_is_found(prove, seed):
    """T2b (4): h in [-21/20, -1) smooths, where a > 10/11; no other h in [-21/20, 0) does."""
    text = asking("!= 'SMOOTHING'", SPECTRUM.format("Fraction(-21, 20)", 0))
    status, out, _ = prove(text, "--seed", seed, examples=200)
    assert status == 1 and "mine: refuted" in out and "(here SMOOTHING, rho_C = 0.0" in out


def test_a_tie_is_said_to_be_one_and_what_is_none_is_preferred(prove):
    def found(low: int, high: int) -> str:
        text = asking("== 'SMOOTHING'", SPECTRUM.format(low, high))
        return prove(text.replace("inside", "fractions"))[1]

    both = found(-1, 3)
    halves, tie = "A = [[1/2, 1/2], [1/2, 1/2]], H = ", "[[0]] (here a TIE, rho_C = 1, rho_Q = 1)"
    assert f"counterexample: {halves}[[-1" in both and "(here NON_SMOOTHING, rho_C" in both
    assert f"a tie violates it too: {halves}{tie}" in both
    alone = found(0, 3)
    assert f"counterexample: {halves}{tie}" in alone and "violates it too" not in alone
    # A law may ask by functions of its file, which may name one another.
    more = "asked = law\ndef helper(A, H):\n    return law and asked(A, H)\n"
    more += "def law(A, H):\n    return all(helper(A, H) for _ in range(1))\n"
    text = asking("== 'SMOOTHING'", SPECTRUM.format(0, 3), more).replace("inside", "fractions")
    assert f"counterexample: {halves}{tie}" in prove(text)[1]
    # What asks for no verdict is told none.
    assert "(here" not in prove(claim("return len(A) < 2"))[1]


def test_the_tokens_of_a_counterexample_are_the_fewest(prove):
    text = claim("return len(A) < 2 or sum(H[i][i] for i in range(len(H))) > -2")
    for seed in ("0", "1", "2", "3"):
        out = prove(text, "--seed", seed, examples=200)[1]
        assert "counterexample: A = [[1/2, 1/2], [1/2, 1/2]], H" in out


def test_examples_are_drawn_afresh_and_a_small_space_is_drawn_once():
    """Not one in six of them, the others with parts of it copied."""
    seen = []
    by.searched("", lambda x: seen.append(x) or True, draw.fractions(0, 1, 400)).search(200, 0)
    assert len(seen) == 200 and len({*seen}) > 150
    found = by.searched("", lambda x: True, draw.fractions(0, 1, 4)).search(200, 0)
    assert found.data["examples"] == 7


def test_what_is_drawn_together_is_counted_and_shrinks_alone():
    """The second half of a search is drawn several instances at once."""
    numbers, late = st.integers(0, 199), []
    for seed in range(40):
        found = by.searched("", lambda x, y: x // 10 != 10 or y // 10 != 3, numbers, numbers)
        outcome = found.search(200, seed)
        tried = outcome.data["examples"]
        assert outcome.holds is (tried == 200)
        assert outcome.holds or outcome.counterexample.startswith("(100, 30)")
        late += [tried] * (100 < tried < 200)
    assert late


def test_a_search_of_small_values_ends_at_its_last_example():
    # Hypothesis draws what begins alike again, and must not be told that the last one ended there.
    for seed in range(40):
        search = by.searched("any", lambda *x: True, st.tuples(*[st.integers(0, 3)] * 3))
        assert search.search(20, seed).data["examples"] == 20


def test_of_many_that_miss_a_hypothesis_all_examples_are_tried():
    seen = []
    numbers = st.integers(0, 10**6)
    by.searched("", lambda x: assume(x % 5 == 0) and not seen.append(x), numbers).search(200, 0)
    assert len(seen) == 200 and len({*seen}) > 120


def test_settings_that_name_claims_say_how_these_stand(told):
    words = ["prove", "T2b", "--kind", "sharp"]
    out = told(0, *words)
    assert all(f"{name} is on record: machine-checked; not run here" in out for name in CITED)
    assert "not run here" not in told(0, "prove", "T1a", "T2a", *words[1:])


CITED = ("T1a", "T2a")


@pytest.mark.parametrize("denominator", [1, 6, 12])
def test_fractions_are_drawn_from_all_of_them_the_simplest_first(denominator):
    found = draw.fractions(-2, Fraction(3, 2), denominator)
    elements = list(getattr(found, "wrapped_strategy", found).elements)
    assert set(elements) == {
        Fraction(k, q) for q in range(1, denominator + 1) for k in range(-2 * q, 3 * q // 2 + 1)
    }
    assert elements == sorted(elements, key=lambda x: (x.denominator, abs(x), x < 0))


# ---------------------------------------------------------------------------- the book's chapter

CHAPTER = Path(__file__).resolve().parents[2] / "docs" / "guide" / "prove.md"


def test_the_chapter_refutes_repairs_and_proves(prove):
    _, found_there, text = CHAPTER.read_text("utf-8").partition("## A statement of your own\n")
    assert found_there
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)```", text, re.S)
    python = ["\n".join(x for x in cell.splitlines() if x[:1] != "!") for cell in cells]
    shared: dict[str, object] = {}
    for cell in (*python[:2], *python[3:]):
        exec(cell, shared)
    found = {}
    for name in ("mine", "repaired", "proved", "negative"):
        _, out, _ = prove(Path(f"{name}.py").read_text(), "--json", examples=100)
        found[name] = json.loads(out)[0]
    stated = [each["status"] for each in found.values()]
    assert stated == ["refuted", "undecided", "written", "refuted"]
    # The cell in which the counterexample is followed by hand.
    data = found["mine"]["evidence"][0]["data"]
    shared["printed"] = [json.dumps([{"evidence": [{"data": data}]}])]
    lines = [line for line in python[2].splitlines() if not line.startswith("printed")]
    exec("\n".join(lines), shared)
    assert exact.squared_ratio(shared["X1"]) < exact.squared_ratio(shared["X0"])


def test_a_law_of_two_is_refuted_without_a_state() -> None:
    """X_0, which it does not see, would shrink to 0, where no verdict is defined."""
    found = by.law(lambda A, H: H[0][0] > 0).search(200, 0)
    assert found.holds is False and found.counterexample is not None
    assert "X_0" not in found.counterexample and set(found.data["instance"]) == {"A", "H"}
