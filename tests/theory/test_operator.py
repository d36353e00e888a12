"""The operator of a layer and its eigenpairs: op x = multiplier x, and Jordan relations (T1a)."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.sparse.linalg import eigs, expm_multiply

import oversmoothing
from oversmoothing.theory.numbers.exact import from_flint
from oversmoothing.theory.spectra.chains import companion
from oversmoothing.theory.verdict.formulas import Outcome
from tests.support.refusals import refuses
from tests.support.tables import rational

SIZE = 3  # largest Jordan block that is drawn
EPS = float(np.finfo(np.float64).eps)


def blocks(rng: np.random.Generator, size: int) -> np.ndarray:
    """Jordan blocks of a few rational eigenvalues, 0 among them, and of sqrt 2 and of i."""
    made: list[np.ndarray] = []
    while (room := size - sum(map(len, made))) > 0:
        k = int(min(room, rng.integers(1, SIZE + 1)))
        if rng.integers(0, 4) == 0 and room >= 2:
            # Chained where there is room: roots of x^2 = c.
            value = np.array([[0, int(rng.choice([2, -1]))], [1, 0]], dtype=object)
            k = 1 + int(room >= 4 and rng.random() < 0.5)
        else:
            value = np.array([[Fraction(int(rng.integers(-2, 3)), int(rng.integers(1, 3)))]])
        next_one = np.kron(np.eye(k, k=1, dtype=int), np.eye(len(value), dtype=int))
        made.append(np.kron(np.eye(k, dtype=int), value) + next_one)
    return block_diag(*made)


def conjugated(rng: np.random.Generator, M: np.ndarray, ones: bool) -> list[list[Fraction]]:
    """S M S^-1 of a drawn S, whose first column may be ones."""
    S = flint.fmpq_mat(1, 1)
    while S.det() == 0:
        drawn = rng.integers(-2, 3, M.shape)
        drawn[:, :1] = np.where(ones, 1, drawn[:, :1])
        S = rational(drawn.tolist())
    return from_flint(S * rational(M.tolist()) * S.inv())


def drawn_layer(seed: int) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """An attention with drawn Jordan blocks beside its eigenvalue 1, and an H with others."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    raw = conjugated(rng, block_diag(1, blocks(rng, n - 1)), ones=True)
    # Mixed with 11^T/n the eigenvalues other than 1 shrink and the entries become positive.
    t = Fraction(1, 2 + int(n * max(abs(x) for row in raw for x in row)))
    A = [[t * x + (1 - t) / n for x in row] for row in raw]
    return A, conjugated(rng, blocks(rng, d), ones=False)


def state(vector) -> np.ndarray:
    """sum v u^T as its coefficients of the powers of the roots of A and of H, [q, p, n, d]."""
    tables = [[np.array(x.table).T for x in pair] for pair in vector]
    return sum(v[:, None, :, None] * u[:, None, :] for u, v in tables)


def check_relations(chains, A, H) -> int:
    """op x_(t+1) = (1 + h a) x_(t+1) + x_t exactly, over Q(h) and Q(a); returns the vectors."""
    # To multiply by the root of each: the companion matrix.
    of_h, of_a = (
        np.array(from_flint(companion(flint.fmpq_poly(f.polynomial) / f.polynomial[f.degree]))).T
        for f in (x.root.factor for x in chains[0][0][0])
    )
    for chain in chains:
        before = 0
        for vector in chain:
            X = state(vector)
            assert (X != 0).any()
            multiple = np.tensordot(of_h, np.tensordot(of_a, X, 1), (1, 1)).swapaxes(0, 1)
            assert (multiple + before == A @ X @ H.T).all()
            before = X
    return sum(map(len, chains))


def check_exact(seed: int) -> None:
    A, H = drawn_layer(seed)
    layer = oversmoothing.Layer(A=A, H=H)
    pairs = layer.eigenpairs()
    for pair in pairs:
        assert check_relations(pair.right, np.array(A), np.array(H)) == pair.multiplicity
        assert check_relations(pair.left, np.array(A).T, np.array(H).T) == pair.multiplicity
        assert max(map(len, pair.right)) == pair.index
    assert sum(pair.multiplicity for pair in pairs) == layer.n * layer.d
    # The vectors of rational pairs are independent.
    vectors = (vector for pair in pairs for chain in pair.right for vector in chain)
    known = (vector for vector in vectors if all(x.is_rational for pair in vector for x in pair))
    rows = [state(vector).ravel() for vector in known]
    assert not rows or rational(rows).rank() == len(rows)
    answer = layer.verdict()
    sides = {pair.consensus for pair in pairs.dominant}
    assert sides == {pair.consensus for pair in answer.dominant}
    for pair in pairs.dominant:
        top = max(answer.rho_consensus, answer.rho_quotient)
        assert abs(pair.multiplier) == pytest.approx(float(top), rel=4 * EPS)


FEW_AND_MANY = pytest.mark.parametrize("seeds", [range(24), range(1000, 1500)], ids=["24", "500"])


@FEW_AND_MANY
def test_exact_eigenpairs_and_jordan_chains_satisfy_their_relations(seeds: range) -> None:
    for seed in seeds:
        check_exact(seed)


def check_floats(seed: int) -> None:
    A, H = (np.array([[float(x) for x in row] for row in M]) for M in drawn_layer(seed))
    A /= A.sum(axis=1, keepdims=True)
    op = oversmoothing.operator(A=A, H=H)
    # Beyond what is checked by as many digits as there are.
    longer = [M.astype(np.longdouble) for M in (H, op.layer.A)]
    dense = np.eye(len(A) * len(H), dtype=np.longdouble) + np.kron(*longer)
    size = float(np.sqrt((dense**2).sum()))
    pairs = op.eigenpairs()
    assert len(pairs) == len(dense) and not pairs.exact
    for pair in pairs:
        for side, M in ((pair.right, dense), (pair.left, dense.T)):
            ((((u, v),),),) = side
            x = np.kron(*(each.astype(np.clongdouble) for each in (u, v)))
            off = M @ x - pair.multiplier * x
            error = np.sqrt((abs(off) ** 2).sum() / (abs(x) ** 2).sum())
            assert error <= pair.residual <= 1e-12 * (1 + size)
        assert np.allclose(pair.state().ravel(order="F"), np.kron(*pair.right[0][0][0]))
    answer = oversmoothing.Layer(A=A, H=H).verdict()
    found = {pair.consensus for pair in pairs.dominant}
    # What rounding does not part is in the pairs' list as a whole.
    assert {pair.consensus for pair in answer.dominant} <= found
    assert len(found) == 2 or answer.verdict is not Outcome.TIE
    for space in pairs.subspaces:
        basis = np.kron(space.U, space.V)
        small = np.eye(basis.shape[1]) + np.kron(space.T_h, space.T_a)
        off = (dense @ basis - basis @ small).astype(np.complex128)
        assert np.linalg.norm(off) <= 1e-12 * size
    exact = oversmoothing.Layer(**dict(zip("AH", drawn_layer(seed), strict=True)))
    index = max(pair.index for pair in exact.eigenpairs())
    assert bool(pairs.subspaces) or index == 1
    # A block of k turns rounding into its k-th root.
    tops = [max(abs(pair.multiplier) for pair in each.dominant) for each in (pairs, answer)]
    assert tops[0] == pytest.approx(tops[1], rel=32 * EPS ** (1 / index))


@FEW_AND_MANY
def test_eigenpairs_in_floats_keep_their_residuals(seeds: range) -> None:
    for seed in seeds:
        check_floats(seed)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("factored", [False, True])
def test_the_operator_is_its_matrix_on_stacked_columns(heads: int, factored: bool) -> None:
    rng = np.random.default_rng(heads)
    n, d, r = 4, 3, 2
    A = rng.dirichlet(np.ones(n), (heads, n))
    V, P = rng.standard_normal((heads, d, r)), rng.standard_normal((heads, r, d))
    W = [(v, p) if factored else v @ p for v, p in zip(V, P, strict=True)]
    op = oversmoothing.operator(heads=list(zip(A, W, strict=True)))
    A /= A.sum(axis=-1, keepdims=True)
    dense = np.eye(n * d) + sum(np.kron((v @ p).T, a) for a, v, p in zip(A, V, P, strict=True))
    np.testing.assert_allclose(op.matrix(), dense, atol=1e-14)
    np.testing.assert_allclose(op.T.matmat(np.eye(n * d)), dense.T, atol=1e-14)
    assert op.matmat(np.zeros((n * d, 0))).shape == (n * d, 0)
    x = rng.standard_normal(n * d) + 1j * rng.standard_normal(n * d)
    np.testing.assert_allclose(op @ x, dense @ x, atol=1e-13)
    np.testing.assert_allclose(op.rmatvec(x), dense.T @ x, atol=1e-13)
    assert op.trace() == pytest.approx(np.trace(dense))
    found = np.sort(abs(eigs(op, k=2, v0=np.ones(n * d))[0]))
    np.testing.assert_allclose(found, np.sort(abs(np.linalg.eigvals(dense)))[-2:], rtol=1e-9)
    moved = expm_multiply(op, x.real, traceA=op.trace())
    np.testing.assert_allclose(moved, expm(dense) @ x.real, rtol=1e-10)
    on_device = op.torch("cpu")
    X = x.real.reshape(n, d, order="F")
    np.testing.assert_allclose(on_device(X).numpy().ravel(order="F"), dense @ x.real, atol=1e-13)
    np.testing.assert_allclose((on_device.T @ x.real).numpy(), dense.T @ x.real, atol=1e-13)
    if heads > 1:
        refuses("no Kronecker product", op.eigenpairs)


def test_a_product_of_400_tokens_and_200_features_never_builds_the_matrix() -> None:
    rng = np.random.default_rng(0)
    n, d = 400, 200
    A, W = rng.dirichlet(np.ones(n), n), rng.standard_normal((d, d))
    op = oversmoothing.operator(A=A, W=W)
    X = rng.standard_normal((n, d))
    expected = X + (A / A.sum(axis=1, keepdims=True)) @ X @ W
    np.testing.assert_allclose((op @ X.ravel(order="F")).reshape(n, d, order="F"), expected)
    refuses("80,000 rows", op.matrix)


@pytest.mark.parametrize("power", [-1070, -500, 500, 1020])
def test_an_H_of_any_size_has_the_eigenpairs_of_one_near_1(power: int) -> None:
    A, H = [[0.75, 0.25], [0.25, 0.75]], np.array([[-1.0, 1.0, 0], [0, -1, 0], [0, 0, 2]])
    near, far = (oversmoothing.operator(A=A, H=H * x).eigenpairs() for x in (1.0, 2.0**power))
    assert [pair.h for pair in far] == [pair.h * 2.0**power for pair in near]
    for s, t in zip(far.subspaces, near.subspaces, strict=True):
        assert s.U.shape == t.U.shape and np.array_equal(s.T_h, t.T_h * 2.0**power)
    refuses("beyond the range", oversmoothing.operator(A=A, H=np.full((2, 2), 1.7e308)).eigenpairs)


def test_a_zero_beside_an_eigenvalue_of_no_condition_warns_of_nothing() -> None:
    A, H = np.full((6, 6), 1 / 6), np.zeros((1, 1))
    with np.errstate(invalid="raise"):
        assert len(oversmoothing.operator(A=A, H=H).eigenpairs().dominant) == 6
