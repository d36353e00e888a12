"""The hypotheses that several claims share, each with one wording and one exact predicate.

A claim that has one of its own makes it as given.Hypothesis, or of a predicate by given.condition.

>>> from oversmoothing import given
>>> given.POSITIVE.words
'A is row-stochastic and entrywise positive (A+), as a softmax is'
"""

from collections.abc import Callable

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.numbers.exact import Matrix, identity, plus_identity, transposed
from oversmoothing.theory.proofs.checks import is_zero
from oversmoothing.theory.proofs.claim import Hypothesis as Hypothesis, Instance as Instance
from oversmoothing.theory.proofs.exact_spectrum import (
    diagonalisable,
    is_real,
    spectrum,
    stationary,
    within,
)
from oversmoothing.theory.proofs.instances import determinant, matrix, power
from oversmoothing.theory.verdict.by_fractions import ExactDominance, exact_dominance, jordan_size
from oversmoothing.theory.verdict.start import Content, start_content


def case(A: str = "3/4 1/4; 1/4 3/4", H: str = "1/2", X0: str | None = None) -> Instance:
    """An instance, in fractions: rows apart by semicolons."""
    return Instance(matrix(A), matrix(H), None if X0 is None else matrix(X0))


def of_state(A: Matrix, X0: Matrix, *_: object) -> tuple[Matrix, Matrix, Matrix]:
    """The instance of a law about A and a state, whatever H is."""
    return A, identity(1), X0


def of_attention(A: Matrix, *_: object) -> tuple[Matrix, Matrix]:
    """The instance of a law about A alone."""
    return A, identity(1)


def condition(
    words: str, *violated: Instance
) -> Callable[[Callable[[Instance], bool]], Hypothesis]:
    """The decorator that makes a hypothesis of its predicate, and of instances that violate it."""
    return lambda holds: Hypothesis(words, holds, violated)


# --------------------------------------------------------------------------------- attention


def is_stochastic(A: Matrix) -> bool:
    """Non-negative, with rows that sum to 1."""
    return all(sum(row) == 1 and min(row) >= 0 for row in A)


def is_positive(A: Matrix) -> bool:
    """Entrywise positive, with rows that sum to 1."""
    return is_stochastic(A) and all(min(row) > 0 for row in A)


def simple_one(instance: Instance) -> bool:
    """Whether the eigenvalue 1 of A is simple: det(I - B') != 0."""
    B = rational_quotient(instance.A)
    return not B or determinant(plus_identity(B, -1)) != 0


def _causal(instance: Instance) -> bool:
    return is_stochastic(instance.A) and all(
        (entry > 0) == (j <= i) for i, row in enumerate(instance.A) for j, entry in enumerate(row)
    )


# The identity, a sum that is not 1, a negative entry; a rotation and a Jordan block as H.
_ONES, _SUMS, _SIGNED = "1 0; 0 1", "1 1; 0 1", "2 -1; 0 1"
_TURN, _DEFECTIVE = "0 -1; 1 0", "0 1; 0 0"
_CIRCLE = "1/10 4/5 1/10; 1/10 1/10 4/5; 4/5 1/10 1/10"

ROW_STOCHASTIC = Hypothesis(
    "A is row-stochastic: A >= 0 and A 1 = 1",
    lambda case: is_stochastic(case.A),
    (case(_SUMS), case(_SIGNED)),
)
DOUBLY = Hypothesis(
    "A is doubly stochastic: A >= 0, A 1 = 1, 1^T A = 1^T",
    lambda case: is_stochastic(case.A) and is_stochastic(transposed(case.A)),
    (case("1/2 1/2; 1/4 3/4"), case("1 1; 0 1")),
)
POSITIVE = Hypothesis(
    "A is row-stochastic and entrywise positive (A+), as a softmax is",
    lambda case: is_positive(case.A),
    (case(_ONES), case("1/2 1/4; 1/2 1/2")),
)
SIMPLE_ONE = Hypothesis("the eigenvalue 1 of A is simple", simple_one, (case(_ONES),))
IRREDUCIBLE = Hypothesis(
    "A is row-stochastic and irreducible: 1 is simple and pi > 0",
    lambda case: is_stochastic(case.A) and simple_one(case) and min(stationary(case.A)) > 0,
    (case(_SUMS), case(_ONES), case("1 0; 1/2 1/2")),
)
CAUSAL_MASK = Hypothesis(
    "A is the softmax of causally masked logits", _causal, (case(), case("1 0 0; 1 0 0; 1 0 0"))
)
TWO_TOKENS = Hypothesis(
    "there are at least two tokens (n >= 2)", lambda case: len(case.A) >= 2, (case("1"),)
)
REAL_A = Hypothesis("the eigenvalues of A are real", lambda case: is_real(case.A), (case(_CIRCLE),))
EIGENBASIS_A = Hypothesis(
    "A is diagonalisable",
    lambda case: diagonalisable(case.A),
    (case("17/30 11/30 1/15; 1/6 11/30 7/15; 4/15 4/15 7/15"),),
)

# ------------------------------------------------------------------------ the value projection

REAL_H = Hypothesis("the eigenvalues of H are real", lambda case: is_real(case.H), (case(H=_TURN),))
EIGENBASIS_H = Hypothesis(
    "H is diagonalisable", lambda case: diagonalisable(case.H), (case(H=_DEFECTIVE),)
)
ONE_VALUE = Hypothesis(
    "H has a single eigenvalue h", lambda case: len(spectrum(case.H)) == 1, (case(H="0 0; 0 1"),)
)
ONE_FEATURE = Hypothesis(
    "one feature (d = 1)", lambda case: len(case.H) == 1, (case(H="1 0; 0 1"),)
)
CLOSED = Hypothesis(
    "every eigenvalue of H is real and in [-1, 0]",
    lambda case: within(case.H, lambda h: -1 <= h <= 0),
    (case(H="1/9"), case(H="-10/9"), case(H="-1/2 -1/9; 1/9 -1/2")),
)
HALF_OPEN = Hypothesis(
    "every eigenvalue of H is real and in [-1, 0)",
    lambda case: within(case.H, lambda h: -1 <= h < 0),
    (case(H="0"), case(H="-10/9"), case(H="-1/2 -1/9; 1/9 -1/2")),
)
NOT_NILPOTENT = Hypothesis(
    "H is not nilpotent",
    lambda case: not is_zero(power(case.H, len(case.H))),
    (case(H=_DEFECTIVE), case(H="0")),
)

# ---------------------------------------------------------------------------------- the state


def consensus(X: Matrix) -> bool:
    """All tokens equal: HFC = 0."""
    return all(row == X[0] for row in X)


def has_low(X: Matrix) -> bool:
    """LFC != 0."""
    return any(sum(column) != 0 for column in zip(*X, strict=True))


def content(A: Matrix, H: Matrix, X0: Matrix) -> Content:
    """The modes that X_0 contains, without the layer from which on they show."""
    modes = start_content(A, H, X0, begins=False)
    assert modes is not None, "an instance of a claim is small"
    return modes


def contains_both_radii(A: Matrix, H: Matrix, X0: Matrix) -> bool:
    """Whether X_0 has a component at rho_C and at rho_Q."""
    if not any(map(any, X0)):
        return False
    dominance, present = exact_dominance(A, H), content(A, H, X0)
    wanted = float(dominance.radius(True).mid()), float(dominance.radius(False).mid())
    return all(
        x is not None and abs(x - y) <= 1e-9 * (1 + y)
        for x, y in zip(present.radii, wanted, strict=True)
    )


NOT_FLAT = Hypothesis(
    "X_0 is given and not all of its rows are equal",
    lambda case: case.X0 is not None and not consensus(case.X0),
    (case(X0="2; 2"), case()),
)
BOTH_PARTS = Hypothesis(
    "X_0 has a high and a low frequency part (HFC, LFC != 0)",
    lambda case: case.X0 is not None and not consensus(case.X0) and has_low(case.X0),
    (case(X0="2; 2"), case(X0="1; -1")),
)
GENERIC = Hypothesis(
    "X_0 outside a null set: it contains modes at rho_C and at rho_Q",
    # No X_0: meant for almost all.
    lambda case: (
        case.X0 is None or len(case.A) == 1 or contains_both_radii(case.A, case.H, case.X0)
    ),
    (case(X0="2; 2"), case(X0="1; -1")),
)

# --------------------------------------------------------------------------- the dominant modes


def single_pair(dominance: ExactDominance) -> bool:
    """One dominant pair (a, h), each simple (and then real)."""
    modes = dominance.dominant()
    if len(modes) != 1:
        return False
    attention = modes[0].attention
    many = 1 if attention is None else attention.factor.multiplicity
    return many * modes[0].value.factor.multiplicity == 1


def _comparison(words: str, sign: int) -> Hypothesis:
    others = {1: case(H="1/2"), -1: case(H="-1/2"), 0: case(H="0")}
    return Hypothesis(
        words,
        lambda case: exact_dominance(case.A, case.H).comparison == sign,
        tuple(other for compared, other in others.items() if compared != sign),
    )


SEMISIMPLE = Hypothesis(
    "the dominant eigenvalues are semisimple",
    lambda case: all(jordan_size(m) == 1 for m in exact_dominance(case.A, case.H).dominant()),
    (case(H="1 1; 0 1"),),
)
NOT_ALL_ZERO = Hypothesis(
    "rho > 0: some multiplier 1 + h a is not 0",
    lambda case: any(
        float(exact_dominance(case.A, case.H).radius(side).mid()) > 0 for side in (True, False)
    ),
    (case("1 0; 0 1", "-1"),),
)
ONE_REAL_PAIR = Hypothesis(
    "one simple dominant pair (then real)",
    lambda case: single_pair(exact_dominance(case.A, case.H)),
    (case(H="-1/2 0; 0 -1/2"),),
)
SMOOTHING = _comparison("SMOOTHING: rho_C > rho_Q", 1)
NON_SMOOTHING = _comparison("NON_SMOOTHING: rho_C < rho_Q", -1)
TIE = _comparison("TIE", 0)
