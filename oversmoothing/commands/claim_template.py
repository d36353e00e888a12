"""Claims of your own, put to the test by `oversmoothing prove FILE.py`.

A claim is a statement in clauses, hypotheses by name, and evidence. The clauses are words, which
the program does not read: what they assume must stand among the hypotheses, or be drawn. A law says
of one instance whether the statement holds there: drawn instances that meet every hypothesis attack
it, and what violates it is shrunk to numbers that can be followed by hand. A search refutes; it
never proves.
What proves a clause covers it: a query for all reals (by.for_all), a written proof (by.written), a
theorem of Coq in theorem.v beside this file (by.Formal("theorem.name", (1,), beside=__file__)).

A law about the limit of many layers asks for the verdict (`import oversmoothing`) and takes no X0:

    def stays_apart(A, H):
        return oversmoothing.verdict(A=A, H=H).verdict != "SMOOTHING"
"""

from oversmoothing import Claim, by, draw, exact, given


def never_grows(A, H, X0):
    """HFC/LFC after one layer against before."""
    # Nested lists of fractions: A [n, n], H [d, d], X0 [n, d].
    high, low = exact.squared_norms(X0)  # ||HFC||^2 and ||LFC||^2
    high_next, low_next = exact.squared_norms(exact.layer(A, H, X0))
    return high_next * low <= high * low_next  # exactly; in floats: by.law(..., tolerance=1e-9)


# A hypothesis of your own: its words, instances that violate it, and the predicate.
@given.condition("h > 0", given.case(H="0"), given.case(H="-1"))
def positive(case):
    """Whether H = (h) has h > 0; `case` has A, H and X0."""
    return case.H[0][0] > 0


@given.condition("the columns of A sum to 1, too", given.case("1/2 1/2; 1/3 2/3"))
def doubly_stochastic(case):
    """Whether A is doubly stochastic, its rows given."""
    return all(sum(column) == 1 for column in zip(*case.A, strict=True))


one_value = draw.with_spectrum(draw.fractions(0, 3), 1, 1)  # H with one eigenvalue in [0, 3]

FALSE = Claim(
    name="one-layer",
    clauses=("For one feature and h > 0 no layer makes HFC/LFC grow.",),
    hypotheses=(given.POSITIVE, given.ONE_FEATURE, positive, given.BOTH_PARTS),
    evidence=(by.law(never_grows, draw.cases(H=one_value)),),
)

TRUE = Claim(
    name="one-layer-repaired",
    clauses=(
        "For one feature, h > 0 and a doubly stochastic A no layer makes HFC/LFC grow.",
        "For h > 0 and a in [-1, 1], |1 + h a| <= |1 + h|.",
    ),
    hypotheses=(given.POSITIVE, given.ONE_FEATURE, positive, doubly_stochastic, given.BOTH_PARTS),
    evidence=(
        by.law(never_grows, draw.cases(A=draw.walsh_attention(), H=one_value), against=(1,)),
        by.written(
            "by the triangle inequality",
            "[1] A keeps the mean, so a layer multiplies LFC by 1 + h.",
            "[1] ||A Y|| <= ||Y||, as A is a mean of permutations (Birkhoff), so HFC grows by a "
            "factor of 1 + h at most.",
        ),
        by.for_all(
            "one eigenvalue of A",
            given="-1 <= a; a <= 1; h > 0",
            then="(1+h*a)**2 <= (1+h)**2",
            at="h=1, a=1/2",
            covers=(2,),
        ).unless("any h", without="h > 0", at="h=-1, a=1/2"),  # a false neighbour must fail
    ),
)
