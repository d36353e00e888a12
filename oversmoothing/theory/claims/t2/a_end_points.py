"""T2a: between two eigenvalues of A nothing dominates; the ends of the interval do."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, by, draw, given


def _law(h: Fraction, ends: list[Fraction]) -> None:
    a, b = sorted(ends)
    inside, bound = (1 + h * b) ** 2, max((1 + h * a) ** 2, (1 + h) ** 2)
    assert inside <= bound
    assert inside < bound or a == b or h == 0


CLAIM = Claim(
    name="T2a",
    clauses=(
        "For real h and a <= b <= 1: |1+hb| <= max(|1+ha|, |1+h|), strictly if a < b < 1 and h "
        "!= 0. So for real spectra only the smallest eigenvalue of A and 1 can dominate.",
    ),
    latex=r"a \le b \le 1 \implies |1+hb| \le \max(|1+ha|,\ |1+h|)",
    source="ours, sharpening the dominance statement of arXiv 2401.04301",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.REAL_A, given.REAL_H),
    evidence=(
        by.Formal("T3b_disc.end_points", (1,)),
        # |x| <= M as -M <= x <= M: bilinear, which both solvers like better than squares.
        by.for_all(
            "Q2: |1 + hb| <= max(|1 + ha|, |1 + h|) for a <= b <= 1",
            given="a <= b; b <= 1; -M <= 1 + h*a <= M; -M <= 1 + h <= M",
            then="-M <= 1 + h*b <= M",
            at="h=-1, a=0, b=1/2, M=1",
            covers=(1,),
        ).unless("b beyond 1", without="b <= 1"),
        by.for_all(
            "Q2s: |1 + hb| < max(|1 + ha|, |1 + h|) for a < b < 1, h != 0",
            given="a < b; b < 1; h != 0; -M <= 1 + h*a <= M; -M <= 1 + h <= M",
            then="-M < 1 + h*b < M",
            at="h=-1, a=0, b=1/2, M=1",
            covers=(1,),
        )
        .unless("h = 0 admitted", without="h != 0")
        .unless("a = b admitted", without="a < b", given="a <= b"),
        by.searched(
            "in fractions",
            _law,
            draw.fractions(-4, 3),
            draw.attention_spectra(2, 2),
            at=lambda h, ends: given.two_tokens(min(ends), h),
        ),
    ),
)
