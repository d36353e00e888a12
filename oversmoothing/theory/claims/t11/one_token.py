"""T11.1: a single token has no differences: TRIVIAL, and UNDEFINED once the state is 0."""

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, given, verdict

_ONE = exact.matrix("1")


def _trivial() -> None:
    """[1, 2; instance] A row-stochastic 1 x 1 matrix is [1], and P = 1 - 1 = 0: HFC = 0, X_L = LFC
    = x_0 (I + W)^L. Executed: h = 1/2, x = 3 -> 9/2."""
    found = verdict(A=_ONE, H=exact.matrix("1/2"), X0=exact.matrix("3"), depth=[0, 1, 50])
    assert found.verdict == "TRIVIAL" and found.rate is None and found.rho_quotient is None
    assert exact.layer(_ONE, exact.matrix("1/2"), exact.matrix("3")) == exact.matrix("9/2")
    assert [ratio.value for ratio in found.hfc_lfc.values()] == [0, 0, 0]


def _undefined() -> None:
    """[2; instance] If X_L = 0 both norms vanish and the ratio has no value; h = -1 gives X_1 =
    0."""
    found = verdict(A=_ONE, H=exact.matrix("-1"), X0=exact.matrix("3"), depth=[0, 1, 50])
    assert (found.verdict, found.verdict_x0) == ("TRIVIAL", "UNDEFINED")
    assert [ratio.value for ratio in found.hfc_lfc.values()] == [0, None, None]


def _law(value: tuple[Matrix, object], entries: list[int], depth: int) -> None:
    H, _ = value
    X = exact.from_integers([entries[: len(H)]])
    hfc, lfc = exact.squared_norms(exact.layer(_ONE, H, X, depth))
    found = verdict(A=_ONE, H=H, X0=X, depth=[depth])
    assert hfc == 0
    assert found.verdict == ("TRIVIAL" if any(X[0]) else "UNDEFINED")
    assert found.hfc_lfc[depth].value == (0 if lfc else None)


CLAIM = Claim(
    name="T11.1",
    clauses=(
        "For n = 1, A = [1], HFC = 0 at every layer and the verdict is TRIVIAL, not SMOOTHING: "
        "there are no differences to lose.",
        "HFC/LFC is 0 while X_L != 0 and undefined (0/0) once X_L = 0, which happens iff (I + "
        "H)^L x_0^T = 0: with h = -1 after one layer.",
    ),
    latex=r"n=1:\quad A=(1),\quad \mathrm{HFC}_L = 0,\quad x_L^\top = (I+H)^L x_0^\top",
    source="ours",
    on_record=by.WRITTEN,
    hypotheses=(
        given.Hypothesis(
            "there is one token", lambda instance: len(instance.A) == 1, (given.case(),)
        ),
    ),
    evidence=(
        by.written("one row", _trivial, _undefined),
        by.searched(
            "verdict and ratio of one token, exactly",
            _law,
            draw.value_projections(3),
            draw.lists(st.integers(-3, 3), 3),
            st.integers(0, 4),
            at=lambda value, *_: (_ONE, value[0]),
        ),
    ),
)
