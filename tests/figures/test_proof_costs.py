"""What proofs cost: real timings, their ratios, and verdicts that the spectra bear out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversmoothing.paper_figures import proof_costs
from oversmoothing.paper_figures.costs import proofs as bench
from oversmoothing.paper_figures.figure_base import Context, make_figure
from oversmoothing.theory.support.errors import RequirementError


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """By the figure's own code, at two small sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "SIZES", {"n": (6, 12), "d": (4, 8)})
        return proof_costs.data(Context(Path(), seed=3, progress=False))


def test_every_answer_is_timed_at_every_size(table: pd.DataFrame) -> None:
    sizes = table[["variable", "n", "d"]].drop_duplicates()
    assert len(sizes) == 4 and len(table) == 4 * len(bench.YARDSTICK)
    assert (table["seconds"] > 0).all()
    for _, part in table.groupby(["variable", "n", "d"]):
        seconds = part.set_index("what")["seconds"]
        for row in part.itertuples():
            of = bench.YARDSTICK[row.what]
            assert row.ratio == pytest.approx(row.seconds / seconds[of], rel=1e-12)


def test_certificates_and_floats_say_what_the_spectra_do(table: pd.DataFrame) -> None:
    decided = table[table["verdict"] != ""]
    assert set(decided["what"]) == {"verdict", "certify"}
    for row in decided.itertuples():
        A, H = bench.layer(row.n, row.d, 3)
        a, h = np.linalg.eigvals(A), np.linalg.eigvals(H)
        a = np.delete(a, np.argmin(np.abs(a - 1)))
        consensus, rest = np.abs(1 + h).max(), np.abs(1 + np.outer(h, a)).max()
        # Far beyond what rounding moves at these sizes.
        assert abs(consensus / rest - 1) > 1e-6
        assert row.verdict == ("SMOOTHING" if consensus > rest else "NON_SMOOTHING")


def test_proofs_cost_more_than_floats_and_the_caption_says_how_much(
    table: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = table.assign(ratio=[2.0 + k for k in range(len(table))])
    monkeypatch.setattr(proof_costs, "data", lambda context: known)
    files = make_figure(proof_costs, Context(tmp_path), tmp_path)
    words = files.txt.read_text("utf-8")
    assert "certify in n: 3 at 6, 8 at 12" in words
    assert "4 of 4 certificates prove the verdict that floats gave" in words
    wrong = known.assign(verdict=known["verdict"].mask(known["what"] == "certify", "UNDECIDED"))
    assert "0 of 4 certificates" in proof_costs.caption(wrong)
    seconds, ratios = proof_costs.draw(known).axes[::2]
    assert len(seconds.lines) == 5 and len(ratios.lines) == 3
    assert {axis.get_yscale() for axis in (seconds, ratios)} == {"log"}


def test_a_certificate_that_would_be_false_is_no_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradicted(case: object) -> object:
        raise RequirementError("the checker contradicts what was to be certified")

    monkeypatch.setattr(bench, "make_certificate", contradicted)
    with pytest.raises(RequirementError, match="contradicts"):
        bench.of_size("n", 4, 0)
