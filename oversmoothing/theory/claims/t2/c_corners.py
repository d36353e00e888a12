"""T2c: four corners of the rectangle [min h, max h] x [min a, 1] decide the verdict."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import Claim, by, draw, given, spectra


def _law(h_values: list[Fraction], a_values: list[Fraction]) -> None:
    q, p, a, z = min(h_values), max(h_values), min(a_values), max(a_values)
    consensus = max((1 + h) ** 2 for h in h_values)
    quotient = max((1 + h * b) ** 2 for h in h_values for b in a_values)
    assert consensus == max((1 + p) ** 2, (1 + q) ** 2)
    corner = max((1 + q * a) ** 2, (1 + p * a) ** 2)
    assert spectra.named(consensus, quotient) == spectra.named(consensus, corner)
    assert quotient == corner or quotient < consensus
    assert quotient == max((1 + h * b) ** 2 for h in (q, p) for b in (a, z))


CLAIM = Claim(
    name="T2c",
    clauses=(
        "Real spectra, q = min h_j, p = max h_j, a = min spec(A). rho_C = max(|1+p|, |1+q|).",
        "rho_Q compares with rho_C (larger, equal, smaller) exactly as max(|1+qa|, |1+pa|) does,",
        "and equals it wherever rho_Q >= rho_C.",
        "The rate needs the second largest eigenvalue too: rho_Q is the largest |1+hb| over h in"
        " {q, p} and b in {a_1, a_(n-1)}.",
    ),
    latex=r"\operatorname{sign}(\rho_Q-\rho_C)"
    r"=\operatorname{sign}\big(\max(|1+qa|,|1+pa|)-\max(|1+q|,|1+p|)\big)",
    source="ours",
    on_record=by.MACHINE,
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.REAL_H),
    evidence=(
        by.Formal("T2_real.consensus_radius", (1,)),
        by.Formal("T2_real.larger", (2,)),
        by.Formal("T2_real.equal", (2,)),
        by.Formal("T2_real.smaller", (2,)),
        by.Formal("T2_real.at_least", (3,)),
        by.Formal("T2_real.quotient_radius", (4,)),
        by.for_all(
            "Q7: on [q, p] x [a, z] the modulus |1 + hb| is at most its largest value at a corner",
            given=(
                "q <= h; h <= p; a <= b; b <= z; -M <= 1 + q*a <= M; -M <= 1 + p*a <= M",
                "-M <= 1 + q*z <= M; -M <= 1 + p*z <= M",
            ),
            then="-M <= 1 + h*b <= M",
            at="q=-1, p=0, h=-1/2, a=0, b=1/4, z=1/2, M=1",
            covers=(1, 4),
        )
        .unless(
            "without the second largest eigenvalue",
            without="-M <= 1 + q*z <= M; -M <= 1 + p*z <= M",
        )
        .unless("without max h", without="-M <= 1 + p*a <= M; -M <= 1 + p*z <= M"),
        by.for_all(
            "Q7b: where consensus is at most M and both corners at a are below M, every pair is",
            given=(
                "q <= h; h <= p; -1 < a; a < 1; a <= b; b < 1; -M <= 1 + q <= M",
                "-M <= 1 + p <= M; -M < 1 + q*a < M; -M < 1 + p*a < M",
            ),
            then="-M < 1 + h*b < M",
            at="q=-1, p=1, h=0, a=0, b=1/2, M=2",
            covers=(2, 3),
        )
        .unless("without the corner (p, a)", without="-M < 1 + p*a < M")
        .unless("for every eigenvalue of A in place of the smallest", without="a <= b"),
        by.written(
            "from corners to radii",
            "[1, 4] q, p, a and z are among the eigenvalues, so the largest corner is attained "
            "(Q7; for consensus a = b = z = 1).",
            "[2, 3] With M = rho_Q >= rho_C: were both corners at a below M, so were every pair "
            "(h, b), b < 1 (Q7b), although one attains M. So rho_Q >= rho_C gives rho_Q = "
            "max(|1+qa|, |1+pa|); and where that maximum is at least rho_C, so is rho_Q.",
        ),
        by.searched("all pairs in fractions", _law, draw.real_spectra(), draw.attention_spectra()),
    ),
)
