"""T2, T6b, T10: what the checker says of a verdict, of radii and of ties, and where it stops."""

from fractions import Fraction
from types import SimpleNamespace

import flint

from oversmoothing.theory.certificate import certify
from oversmoothing.theory.checker import reading, ties
from oversmoothing.theory.checker.check import compared
from oversmoothing.theory.checker.reading import Bounds, Claim, Given
from oversmoothing.theory.checker.spectra import TIE_SIZE
from oversmoothing.theory.checker.ties import check_tie, equal
from oversmoothing.theory.layer.layer import read_layer
from oversmoothing.theory.numbers.exact import to_flint
from tests.forgeries.forging import claiming, refused, stated
from tests.support.cases import cases
from tests.support.tables import identity, matrix

WIDE = (0, 9)
HALF = ["AA", "1/2", None]  # 3/2 against 5/4
LOST = ["AA", "-1/2", None]  # 1/2 against 3/4
EVEN = ["AA", "-4/3", None]  # 1/3 twice


def given(A, H, X0=None):
    return Given(matrix(A), None, matrix(H), None, None if X0 is None else matrix(X0))


def first_only(n):
    """Every token attends to the first: a = 0 but for one 1."""
    return [[int(j == 0) for j in range(n)] for _ in range(n)]


# --- radii and words ---


@cases(
    "case, claim, words",
    (HALF, ("SMOOTHING", WIDE, WIDE, (0.1, 1)), "SMOOTHING: rho_C = 1.50000000000000, rho_Q"),
    (LOST, ("NON_SMOOTHING", WIDE, WIDE, (-1, -0.1)), "rho_Q = 0.750000000000000"),
    (HALF, ("UNDECIDED", None, None, None), "UNDECIDED claims nothing of the verdict"),
    (HALF, ("UNDECIDED", (1.5, 1.5), (1, 2), (-1, 1)), "UNDECIDED claims nothing of the ver"),
    (HALF, ("SMOOTHING", (-9, "inf"), WIDE, (0.1, "inf")), "SMOOTHING: rho_C"),
    (["1", "1/2", None], ("TRIVIAL", (1, 2), None, None), "n = 1: there is no quotient: rho_C"),
    (["1", "1/2", None], ("TRIVIAL", None, None, None), "n = 1: there is no quotient"),
    (EVEN, ("TIE", WIDE, WIDE, (-1, 1)), "TIE: the squared radii are equal"),
    (["1 0; 0 1", "1/2", None], ("TIE", WIDE, WIDE, (-1, 1)), "TIE: "),
)
def test_T2_what_is_true_is_confirmed_with_each_radius(case, claim, words):
    found = stated(*case, *claim)
    assert found.accepted and words in found.words, found


@cases(
    "case, claim, words",
    (HALF, ("SMOOTHING", WIDE, WIDE, (-1, 2)), "the stated margin does not support SMOOTHING"),
    (HALF, ("SMOOTHING", WIDE, WIDE, (0, 2)), "does not support SMOOTHING"),
    (LOST, ("NON_SMOOTHING", WIDE, WIDE, (-2, 0)), "does not support NON_SMOOTHING"),
    (EVEN, ("TIE", WIDE, WIDE, (0.1, 1)), "does not support TIE"),
    (EVEN, ("TIE", WIDE, WIDE, (-1, -0.1)), "does not support TIE"),
    (HALF, ("SMOOTHING", WIDE, WIDE, (2, 3)), "margin is 0.25"),
    (LOST, ("SMOOTHING", WIDE, WIDE, (1, 2)), "margin is -0.25"),
    (HALF, ("SMOOTHING", (5, 6), WIDE, (0.1, 1)), "rho_consensus is 1.5"),
    (HALF, ("SMOOTHING", WIDE, (5, 6), (0.1, 1)), "rho_quotient is 1.25"),
    # A radius that is not stated excuses no other.
    (HALF, ("UNDECIDED", None, (5, 6), None), "rho_quotient is 1.25"),
    (HALF, ("TIE", WIDE, WIDE, (-2, 2)), "no tie: rho_C = 1.50000000000000, rho_Q = 1.2500000"),
    (LOST, ("TIE", WIDE, WIDE, (-2, 2)), "no tie"),
    (HALF, ("SMOOTHING", None, WIDE, (0.1, 1)), "must state both radii and the margin"),
    (HALF, ("SMOOTHING", WIDE, WIDE, None), "must state both radii and the margin"),
    (HALF, ("TRIVIAL", WIDE, None, None), "n = 1 and TRIVIAL go together"),
    (["1", "1/2", None], ("UNDECIDED", WIDE, None, None), "n = 1 and TRIVIAL go together"),
    (["1", "1/2", None], ("TRIVIAL", WIDE, WIDE, None), "n = 1: there is no quotient"),
    (["1", "1/2", None], ("TRIVIAL", WIDE, None, WIDE), "n = 1: there is no quotient"),
)
def test_T2_what_is_false_is_refused_and_said(case, claim, words):
    found = stated(*case, *claim)
    assert not found.accepted and not found.beyond and words in found.words, found


def said(verdict, c, q, gap, low=-1, high=1):
    claim = Claim(
        verdict, *[Bounds(Fraction(0), Fraction(9))] * 2, Bounds(Fraction(low), Fraction(high))
    )
    return compared(claim, c, q, gap)


def test_T2_balls_that_are_wide_confirm_what_holds_of_all_of_them():
    one, two, doubt, zero = flint.arb(1), flint.arb(2), flint.arb(0, 100), flint.arb(0, 0.25)
    # The order of the radii is certain, the margin is not.
    for verdict, ends, pair in (
        ("SMOOTHING", (1, 2), (one, two)),
        ("NON_SMOOTHING", (-2, -1), (two, one)),
    ):
        assert "is false" in said(verdict, *pair, doubt, *ends)[0]
        assert "too close to tell" in said(verdict, one, one, doubt, *ends)[1]
    # A radius is never negative, a margin may be.
    claim = Claim("UNDECIDED", Bounds(Fraction(0), Fraction(9)))
    assert compared(claim, zero, zero, None) == ("", "")
    assert "margin could not be seen" in said("UNDECIDED", one, one, zero, 0, 1)[1]
    narrow = Claim("UNDECIDED", Bounds(Fraction(2), Fraction(9)))
    assert "rho_consensus could not be seen" in compared(narrow, flint.arb(2, 0.5), one, None)[1]
    assert "rho_consensus is" in compared(narrow, flint.arb(1, 0.5), one, None)[0]


# --- ties ---


@cases(
    "A, H, words",
    ("AA", "-4/3", "squared radii are equal"),
    # |1 + h| = 1 = |1 + 0 h| for h = -2 and for 1 + h = (3 +- 4 i)/5.
    ("FLAT", "-2 0; 0 -1/3", "squared radii are equal"),
    ("FLAT", "-2/5 -4/5; 4/5 -2/5", "squared radii are equal"),
    ("AA", "1/2", "the squared radii differ"),
    ("AA", "-1/2", "the squared radii differ"),
    ("AA", str(Fraction(-4, 3) + Fraction(1, 10**9)), "the squared radii differ"),
    ("FLAT", "0 2; 1 0", "the squared radii differ"),
    ("AA", "diag " + "-4/3 " * 6, "squared radii are equal"),
    ("AA", f"diag {Fraction(1, 7**40) - 2} -2 -2", "the squared radii differ"),
    (first_only(TIE_SIZE), "-2 0; 0 -2", "squared radii are equal"),
)
def test_T2b_a_tie_is_confirmed_and_what_is_none_refused_however_close(A, H, words):
    found = check_tie(given(A, H), None)
    assert found.accepted == ("equal" in words) and not found.beyond and words in found.words


@cases(
    "A, H, blocks",
    ("7/12 1/12 1/3; 1/12 7/12 1/3; 1/3 1/3 1/3", "-2 0 0; 0 0 1; 0 0 0", (2, 2)),
    ("AA", "-4/3 1; 0 -4/3", (2, 2)),
    ("FLAT", "0 1; 0 0", (2, 1)),
    ("AA", "-4/3", (1, 1)),
    ("AA", "-4/3 0; 0 -4/3", (1, 1)),
    # A has a Jordan block of 1/2: with the block of -4/3 that makes 2 + 2 - 1.
    ("2/3 2/9 1/9; 1/6 23/36 7/36; 1/6 5/36 25/36", "-4/3 1; 0 -4/3", (2, 3)),
)
def test_T6b_the_blocks_at_a_tie_are_recomputed(A, H, blocks):
    A, H = matrix(A), matrix(H)
    assert largest_blocks(A, H) == blocks
    right = check_tie(given(A, H), blocks)
    assert right.accepted and f"largest Jordan blocks {blocks[0]} and {blocks[1]}" in right.words
    body = certify(*read_layer(A, H))
    for other in ((blocks[0] + 1, blocks[1]), (blocks[0], blocks[1] + 1), (0, 0)):
        wrong = check_tie(given(A, H), other)
        assert not wrong.accepted and "largest Jordan blocks" in wrong.words
        assert refused(claiming(body, jordan_consensus=other[0], jordan_quotient=other[1]))


def largest_blocks(A, H):
    """From the minimal polynomials of both operators themselves."""
    B = [[x - y for x, y in zip(row[1:], A[0][1:], strict=True)] for row in A[1:]]
    k, d = len(B), len(H)
    consensus = [[x + (i == j) for j, x in enumerate(row)] for i, row in enumerate(H)]
    quotient = [
        [H[p][q] * B[i][j] + (p == q and i == j) for q in range(d) for j in range(k)]
        for p in range(d)
        for i in range(k)
    ]
    found = []
    for M in (consensus, quotient):
        roots = to_flint(M).minpoly().numer().complex_roots()
        top = max(float(abs(root).mid()) for root, _ in roots)
        found.append(max(m for root, m in roots if float(abs(root).mid()) > top - 1e-9))
    return tuple(found)


def test_a_tie_of_logits_or_of_large_matrices_is_beyond_the_checker():
    body = certify(*read_layer(logits=[[0.0, 1.0], [1.0, 0.0]], H=[[0.5]]))
    for case, words in (
        (reading.read_input(body["input"]), "in fractions or binary64 only"),
        (given(first_only(TIE_SIZE + 1), "-2"), f"up to n, d = {TIE_SIZE} only"),
        (given("FLAT", identity(TIE_SIZE + 1)), f"up to n, d = {TIE_SIZE} only"),
    ):
        found = check_tie(case, (1, 1))
        assert not found.accepted and found.beyond and words in found.words


# --- how many bits a tie takes ---


def pair(modulus, number=0):
    """A mode of consensus, h = -2 - number, whose modulus is known in that ball."""
    poly = ties.Polynomial(flint.fmpz_poly([2 + number, 1]), 1)
    h = ties.Root(poly, number, 0, 0, flint.acb(-2 - number))
    return ties.Pair(h, None, flint.acb(modulus), modulus)


def test_T6b_equality_asks_for_squares_closer_than_the_bound():
    bits = int(ties.equality_bits(pair(flint.arb(1)), pair(flint.arb(1), 1)) + 1)
    with flint.ctx.workprec(400):
        unit = flint.arb(2) ** -bits
        for first, second, found in (
            ((0, 0), (0, 0), True),
            ((0, 0.12), (0, 0.12), True),
            # The squares differ by twice as much as the moduli.
            ((0.3, 0.3), (0, 0.3), None),
            ((1, 0.1), (0, 0.1), False),
            ((0, 0), (4, 0), False),
        ):
            one, other = (flint.arb(1 + x * unit, r * unit) for x, r in (first, second))
            assert equal(pair(one), pair(other, 1), 400) is found
    # The same root needs no bits.
    wide = flint.arb(1, 0.25)
    assert equal(pair(wide), pair(wide, 1), 400) is None and equal(pair(wide), pair(wide), 400)


SIDES = ["c1", "c2"], ["q1", "q2"]
# Bits that the proof takes for each pair, of consensus and of the quotient in this order.
NEEDED = {("c1", "q1"): 7000.5, ("c1", "q2"): 9000.0, ("c2", "q1"): 100.0, ("c2", "q2"): 8000.0}
FIRST = [320, 1280, 5120]


def proof(monkeypatch, answers, needed=NEEDED):
    """What `tied` says, and the bits it spent, where `equal` says so of each pair at these bits."""
    asked = []
    monkeypatch.setattr(ties, "equal", lambda c, q, bits: answers(bits)[c, q])
    monkeypatch.setattr(ties, "equality_bits", lambda c, q: needed[c, q])

    def pairs(bits, of=None):
        if of is not None:
            asked.append(bits)
        return of or {320: SIDES}[bits]

    modes = SimpleNamespace(pairs=pairs)
    return ties.tied(modes, lambda sides, bits: sides), asked


def every(answer):
    return dict.fromkeys(NEEDED, answer)


@cases(
    "answers, needed, found, asked",
    # What shows at few bits takes no more; the hardest pair says how many the proof takes.
    *[(lambda b, k=k: every(True if b >= k else None), NEEDED, SIDES, FIRST[: i + 1])
      for i, k in enumerate(FIRST)],
    *[(lambda b, k=k: every(False if b >= k else None), NEEDED, None, FIRST[: i + 1])
      for i, k in enumerate(FIRST)],
    (lambda b: every(True if b > 5120 else None), NEEDED, SIDES, [*FIRST, 9512]),
    (lambda b: every(False if b > 5120 else None), NEEDED, None, [*FIRST, 9512]),
    (lambda b: every(None), NEEDED, 9000.0, [*FIRST, 9512]),
    # Pairs that are equal beside others are no tie, whichever are the largest.
    (lambda b: every(True) | {("c2", "q1"): False}, NEEDED, 9000.0, [*FIRST, 9512]),
    (lambda b: every(True) | {("c2", "q1"): None}, NEEDED, 9000.0, [*FIRST, 9512]),
    (lambda b: every(None), every(10.0), 10.0, [*FIRST, 5120]),
    # More bits than are spent are said and not tried.
    (lambda b: every(None), every(2.0**20), 2.0**20, [*FIRST, 2**20 + 512]),
    (lambda b: every(None), every(2.0**20 + 1), 2.0**20 + 1, FIRST),
)  # fmt: skip
def test_T2_a_proof_takes_the_bits_of_its_hardest_pair(monkeypatch, answers, needed, found, asked):
    assert ties.TIE_BITS == 2**20
    assert proof(monkeypatch, answers, needed) == (found, asked)


def test_T2_a_tie_beyond_the_bits_that_are_spent_is_beyond_the_checker(monkeypatch):
    """|1 + h| for h = -2 and 1 for a = 0: a handful of bits would tell them apart."""
    monkeypatch.setattr(ties, "TIE_BITS", 0)
    monkeypatch.setattr(ties, "equal", lambda first, second, bits: None)
    for jordan in (None, (1, 1)):
        found = check_tie(given("FLAT", "-2 0; 0 -1/3"), jordan)
        assert not found.accepted and found.beyond
        assert "the tie would take 5 bits to confirm, more than are spent" in found.words
