"""LayerNorm weights of both signs: Sylvester's count, and what centring does to it."""

from hypothesis import strategies as st

from oversmoothing.theory.proofs.kit import Claim, Matrix, by, draw, exact, spectra


def _negative(M: Matrix) -> int:
    """How many eigenvalues are real and negative, with multiplicity."""
    return sum(
        value.factor.multiplicity
        for value in spectra.spectrum(M)
        if value.is_real and not value.is_zero and value.ball(256).real < 0
    )


@st.composite
def _weights(pick: st.DrawFn) -> tuple[Matrix, list[int]]:
    """W = S S^T positive definite, gamma without zeros."""
    d = pick(st.integers(1, 4))
    S, _ = pick(draw.unimodular(d))
    gamma = pick(draw.lists(st.integers(-5, 5).filter(bool), d))
    return exact.product(S, exact.transposed(S)), gamma


def _law(W: Matrix, gamma: list[int]) -> None:
    weighted = exact.product(exact.diagonal(gamma), W)
    assert spectra.is_real(weighted)
    assert _negative(weighted) == sum(g < 0 for g in gamma)


def _centred(W: Matrix, gamma: str) -> Matrix:
    """W diag(gamma) C, C = I - 11^T/3."""
    C = exact.plus(exact.identity(3), exact.uniform(3), -1)
    return exact.product(W, exact.diagonal(gamma), C)


def _not_real() -> None:
    """[2; general] W = [[4, 2, 2], [2, 3, 0], [2, 0, 2]], gamma = (1, -1, 1): two eigenvalues of W
    diag(gamma) C are not real."""
    W = exact.matrix("4 2 2; 2 3 0; 2 0 2")
    assert _positive_definite(W)
    assert not spectra.is_real(_centred(W, "1 -1 1"))


def _sign_lost() -> None:
    """[2; general] W = [[2, 1, 3], [1, 6, 4], [3, 4, 6]], gamma = (3, 2, 1) > 0: one eigenvalue of
    W diag(gamma) C is negative."""
    W = exact.matrix("2 1 3; 1 6 4; 3 4 6")
    assert _positive_definite(W)
    assert _negative(_centred(W, "3 2 1")) == 1


def _positive_definite(W: Matrix) -> bool:
    return exact.transposed(W) == W and all(
        exact.determinant([row[:k] for row in W[:k]]) > 0 for k in range(1, len(W) + 1)
    )


CLAIM = Claim(
    name="P-2401.04301v3-layernorm-mixed",
    clauses=(
        "Let some weights of the norm be negative, none 0, and W symmetric positive definite. "
        "Without centring (RMSNorm without its direction term, frozen A, one scale) H_eff = W^T "
        "diag(gamma) has a real spectrum with exactly as many negative eigenvalues as gamma has "
        "negative entries.",
        "With LayerNorm's centring, W^T diag(gamma) C, neither survives: eigenvalues may be "
        "complex, and one may be negative though gamma > 0.",
    ),
    latex=r"W\succ 0:\quad \#\{h_j<0\}=\#\{k:\gamma_k<0\}\quad\text{for } W\operatorname{diag}"
    r"(\gamma),\ \text{not for } W\operatorname{diag}(\gamma)C",
    source="ours, for the LayerNorm findings of arXiv 2401.04301 v3; Sylvester's law of inertia",
    on_record=by.WRITTEN,
    setting="W = W_V W_proj symmetric positive definite",
    evidence=(
        by.written(
            "inertia",
            "[1] W diag(gamma) is similar to S = W^(1/2) diag(gamma) W^(1/2), which is symmetric: "
            "a real spectrum. S is congruent to diag(gamma): by Sylvester as many negative "
            "eigenvalues as gamma has negative entries.",
            _not_real,
            _sign_lost,
        ),
        by.searched("positive definite W in integers, gamma of any signs", _law, _weights()),
    ),
    further="W that is not symmetric has no such count: diag(gamma) W can have any spectrum.",
)
