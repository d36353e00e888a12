"""T2a: between two eigenvalues of A nothing dominates; the ends of the interval do."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from oversmoothing.theory.claims.t2.queries import altered, proved
from oversmoothing.theory.claims.t2.spectra_kit import POSITIVE, REAL_A, REAL_H
from oversmoothing.theory.proofs import strategies as draw
from oversmoothing.theory.proofs.claim import Claim, Status
from oversmoothing.theory.proofs.evidence import Searched
from oversmoothing.theory.proofs.query import Query

# |x| <= M as -M <= x <= M: bilinear, which both solvers like better than squares.
_ENDS = Query(
    "Q2: |1 + hb| <= max(|1 + ha|, |1 + h|) for a <= b <= 1",
    ("h", "a", "b", "M"),
    ("a <= b", "b <= 1", "-M <= 1 + h*a <= M", "-M <= 1 + h <= M"),
    "-M <= 1 + h*b <= M",
)
_STRICT = Query(
    "Q2s: |1 + hb| < max(|1 + ha|, |1 + h|) for a < b < 1, h != 0",
    ("h", "a", "b", "M"),
    ("a < b", "b < 1", "h != 0", "-M <= 1 + h*a <= M", "-M <= 1 + h <= M"),
    "-M < 1 + h*b < M",
)


def _law(drawn: tuple[Fraction, list[Fraction]]) -> None:
    h, ends = drawn
    a, b = sorted(ends)
    inside, bound = (1 + h * b) ** 2, max((1 + h * a) ** 2, (1 + h) ** 2)
    assert inside <= bound
    assert inside < bound or a == b or h == 0


CLAIM = Claim(
    name="T2a",
    statement="For real h and a <= b <= 1: |1+hb| <= max(|1+ha|, |1+h|), strictly if a < b < 1 and "
    "h != 0. So for real spectra only the smallest eigenvalue of A and 1 can dominate.",
    latex=r"a \le b \le 1 \implies |1+hb| \le \max(|1+ha|,\ |1+h|)",
    source="ours, sharpening the dominance statement of arXiv 2401.04301",
    on_record=Status.PROVED,
    hypotheses=(POSITIVE, REAL_A, REAL_H),
    evidence=(
        proved(
            _ENDS,
            {"h": "-1", "a": "0", "b": "1/2", "M": "1"},
            altered(
                _ENDS,
                "b beyond 1",
                hypotheses=tuple(t for t in _ENDS.hypotheses if t != "b <= 1"),
            ),
        ),
        proved(
            _STRICT,
            {"h": "-1", "a": "0", "b": "1/2", "M": "1"},
            altered(
                _STRICT,
                "h = 0 admitted",
                hypotheses=tuple(t for t in _STRICT.hypotheses if t != "h != 0"),
            ),
            altered(
                _STRICT,
                "a = b admitted",
                hypotheses=("a <= b", *_STRICT.hypotheses[1:]),
            ),
        ),
        Searched(
            "in fractions",
            st.tuples(draw.fractions(-4, 3), draw.attention_spectra(2, 2)),
            _law,
        ),
    ),
)
