"""The report in a real browser: what it says, and that all can read it without a network."""

import re
from html import unescape

import pandas as pd
import pytest

from oversmoothing.paper_figures import FIGURES, page
from oversmoothing.paper_figures.figure_base import number, sign, unchecked
from oversmoothing.paper_figures.page import OPENING, ledger
from oversmoothing.simulations.drawing.picture import FigureFiles, new_figure, write_figure
from oversmoothing.simulations.drawing.web_page import typeset
from oversmoothing.theory.proofs.claim import Status
from oversmoothing.theory.proofs.ledger import claims
from tests.support.browser import DESKTOP, LOADED, every_screen, opened
from tests.support.cases import cases

COMPARED = (
    number("Table 1, one column", 98.92, 97.5, 0.1, "other data"),
    unchecked("Table 1, another", "70.27 %", "no weights"),
    unchecked("Table 1, a third", "57.82 %", "another model", "57.9 %"),
)
CHECKS = (
    page.Check("a", "every psi^2 <= 1", "15 of 15 cases", True),
    page.Check("b", "rho_C > rho_Q", "2 of 3", False),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The report of a run whose figures are small: what is tested is the page."""
    folder = tmp_path_factory.mktemp("report")
    drawn, variants = {}, ["vit+", "vit+", "vit-", "vit-"]
    table = pd.DataFrame({"variant": variants, "data": ["digits"] * 3 + ["CIFAR-100"],
                          "change": [-1.2, -1.2, 0.2, 5.0]})  # fmt: skip
    (folder / "figures").mkdir()
    for name in FIGURES:
        caption = f"the caption of {name}: ||HFC|| <= 1\nsecond <line>"
        stem = folder / "figures" / name
        compared = COMPARED if name == "table_1" else ()
        files = FigureFiles(*write_figure(new_figure()[0], table, caption, stem, name))
        drawn[name] = page.Drawn(files, 2.6, compared)
    (folder / "inspect").mkdir()
    (folder / "inspect" / "report.html").write_text("<!doctype html><title>x</title>")
    return page.write_page(folder, drawn, CHECKS, 3, "The reduced preset: one seed.")


def test_the_ledger_of_the_report_is_the_ledger():
    rows, stated = ledger(), claims()
    assert [row["name"] for row in rows] == list(stated)
    for row in rows:
        claim = stated[row["name"]]
        assert row["status"] == str(claim.on_record) and len(row["clauses"]) == len(claim.clauses)
        assert sum(len(titles) for titles in row["evidence"].values()) == len(claim.evidence)
        assert row["formula"].startswith("<math")
        # What stands alone is a whole sentence.
        assert row["said"].endswith((".", ")")) and row["said"].startswith(claim.clauses[0])
    # What opens the report is proved.
    assert all(stated[name].on_record and stated[name].on_record.proved for name in OPENING)


def test_every_link_of_the_page_leads_to_a_file_or_a_place_in_it(path):
    text = path.read_text("utf-8")
    places = set(re.findall(r' id="([^"]+)"', text))
    links = re.findall(r'href="([^"]+)"', text)
    assert len(links) > 30 and "inspect/report.html" in links and "explorer.html" in links
    for link in links:
        if link.startswith("https://arxiv.org/abs/"):
            continue
        assert link[1:] in places if link.startswith("#") else (path.parent / link).is_file(), link
    # What is loaded lies in the page; a paper is a link.
    assert not re.findall(r'src="(?:https?:)?//', text)
    assert set(re.findall(r'href="(https?://[^/"]+)', text)) == {"https://arxiv.org"}


def test_the_answer_comes_first_and_nothing_is_said_in_latex(chromium, path):
    with opened(chromium, path) as work:
        hero = work.page.locator(".hero")
        first = hero.inner_text()
        assert "It depends on the eigenvalues of two matrices" in first
        assert "What this run says of 3 results" in first
        assert "1 of 2 checks of this run hold" in first
        score = work.page.locator(".score li").all_inner_texts()
        assert [" ".join(x.split()) for x in score] == ["1 differs", "2 cannot be checked"]
        assert "0.30 (ViT+), 1.22 (ViT−)" in first  # exp of the changes of this run
        assert work.page.evaluate(
            "() => Array.from(document.querySelectorAll('.two .formula'))"
            ".every((box) => box.scrollWidth <= box.clientWidth)"
        )
        # The first picture is seen without scrolling.
        box = work.page.locator(".hero img").bounding_box()
        assert box is not None and box["y"] + box["height"] < DESKTOP[1]
        work.page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        assert work.page.locator("details:not([open])").count() == 0
        shown = work.page.locator("body").inner_text()
        assert "\\" not in shown and "||" not in shown and "<=" not in shown
        assert "the caption of costs: ‖HFC‖ ≤ 1" in shown and "second <line>" in shown
        assert "2 more cannot be checked here" in shown and "98.92" in shown
        assert "The reduced preset: one seed." in shown
        assert "FAILS" in shown and "every ψ2 ≤ 1" in shown and "took 3 s of" in shown
        assert work.page.locator("math").count() == len(claims()) + len(OPENING)


def test_rows_of_a_table_share_an_axis_with_its_zero(path):
    """Intervals -1 to 0 and 0 to 3 about 2 on an axis of 134 units from 8."""
    rows = [
        sign("Table 2, a", "less", (-0.5, -1.0, 0.0), False, "x"),
        sign("Table 2, b", "more", (2.0, 1.0, 3.0), True, "x"),
        sign("Table 2, c", "more", (2.0, float("nan"), float("nan")), True, "x"),
    ]
    (group,) = page.results({"title": "t", "comparisons": rows})
    assert group["title"] == "Table 2" and [x.what for x, _ in group["decided"]] == ["b"]
    drawn = {x.what: bar for x, bar in group["decided"] + group["open"]}
    zero, unit = 8 + 134 / 4, 134 / 4
    assert f"M{zero:.1f} 0V14" in drawn["a"] and f"M{zero:.1f} 0V14" in drawn["b"]
    assert f"M{zero + unit:.1f} 7H{zero + 3 * unit:.1f}" in drawn["b"] and drawn["c"] == ""
    assert f'cx="{zero - unit / 2:.1f}"' in drawn["a"]


@every_screen
def test_all_can_read_it_and_it_asks_for_nothing(chromium, path, screen):
    with opened(chromium, path, **screen) as work:
        assert work.page.evaluate(LOADED) == [True] * len(FIGURES)
        work.readable()


def test_filters_and_links_find_claims(chromium, path):
    stated = claims()
    with opened(chromium, path, "#claim-T4c") as work:
        web = work.page

        def shown():
            visible = web.locator(".claim:not([hidden])").count()
            assert web.locator("#shown").inner_text() == f"{visible} of {len(stated)} shown"
            return visible

        assert web.locator("#claim-T4c details").get_attribute("open") is not None
        assert 0 < shown() < len(stated) / 4
        web.locator("#all").click()
        assert shown() == len(stated)
        web.locator("#by-status").select_option("refuted (our reading)")
        refuted = [c for c in stated.values() if c.on_record is Status.REFUTED_READING]
        assert shown() == len(refuted) > 0
        own = sum(c.on_record is Status.REFUTED_WORDS for c in stated.values())
        said = f"{own + len(refuted)} refuted ({own} in the paper's own words, {len(refuted)} of"
        assert said in web.locator(".hero").inner_text()
        assert web.get_by_text(refuted[0].wording).count() == 1
        web.locator("#by-source").select_option("this project")
        assert shown() == sum(claim.name.startswith("T") for claim in refuted)
        web.locator("#by-source").select_option("Dovonon et al. 2024")
        assert shown() == sum("2401.04301" in claim.name for claim in refuted) > 0
        web.locator("#by-source").select_option("")
        web.locator("#by-status").select_option("")
        web.locator("#by-kind").select_option("formal")
        formal = [c for c in stated.values() if any(str(e.kind) == "formal" for e in c.evidence)]
        assert shown() == len(formal)
        web.locator("#by-words").fill("universal no-such-word")
        assert shown() == 0
        # A link to a claim that is filtered away shows it.
        web.evaluate("() => { location.hash = '#claim-T2b'; }")
        web.wait_for_function("() => !document.getElementById('claim-T2b').hidden")


def test_no_formula_of_a_claim_is_shown_raw():
    """No _, ^, <=, || or -> stands outside names of the program, and no (x) became a product."""
    raw = re.compile(r"\^|(?<![A-Za-z])\w_\w|<=|>=|\|\||->|\S⊗|⊗\S")
    found = {}
    for claim in claims().values():
        titles = [piece.title for piece in claim.evidence if str(piece.kind) != "formal"]
        hypotheses = [hypothesis.words for hypothesis in claim.hypotheses]
        for text in (*claim.clauses, claim.source, claim.wording, *hypotheses, *titles):
            shown = unescape(
                re.sub("<[^>]+>", "", re.sub(r"<(sub|sup)>.*?</\1>", "", typeset(text)))
            )
            if raw.search(shown):
                found[claim.name] = text
    assert not found


@cases(
    "text, html",
    ("||HFC||/||LFC|| <= 1/sqrt(n-1)", "‖HFC‖/‖LFC‖ ≤ 1/√(n−1)"),
    ("|1+ha| >= 1 - |h||a|", "|1+ha| ≥ 1 − |h| |a|"),
    (
        "lambda_j^H lambda_i^A, rho_Q^2",
        "λ<sub>j</sub><sup>H</sup> λ<sub>i</sub><sup>A</sup>, ρ<sub>Q</sub><sup>2</sup>",
    ),
    ("sigma_{k+1} -> r_sigma", "σ<sub>k+1</sub> → r<sub>σ</sub>"),
    ("D^-1/2, E^2/2", "D<sup>-1/2</sup>, E<sup>2</sup>/2"),
    ("H (x) A with h = 1 +- 2i != 0", "H ⊗ A with h = 1 ± 2i ≠ 0"),
    ("`--a_1 -1` <= a_1", "<code>--a_1 -1</code> ≤ a<sub>1</sub>"),
    ("A N(x) W, not a product", "A N(x) W, not a product"),
    (
        "sum_h A_(l,h) X_(l-1) -> Pi_0, max_j |l_-|",
        "∑<sub>h</sub> A<sub>l,h</sub> X<sub>l−1</sub> → Π<sub>0</sub>, max<sub>j</sub> "
        "|l<sub>-</sub>|",
    ),
    (
        "e^(E/(1+S)), w^((p-1)/2), X*^T",
        "e<sup>(E/(1+S))</sup>, w<sup>((p−1)/2)</sup>, X*<sup>T</sup>",
    ),
    ("v_t -> v^, v^^T", "v<sub>t</sub> → v\u0302, v\u0302<sup>T</sup>"),
    ("T1_blocks.pi_mean_power, verdict_x0", "T1_blocks.pi_mean_power, verdict_x0"),
    ("rank-1, T7b-rotation, log_hfc_lfc, 1e-13", "rank-1, T7b-rotation, log_hfc_lfc, 1e-13"),
    ("-2/(1 + a_1) < h < 0 & <b>", "−2/(1 + a<sub>1</sub>) &lt; h &lt; 0 &amp; &lt;b&gt;"),
)
def test_plain_formulas_are_set_and_words_left_alone(text, html):
    assert typeset(text) == html
