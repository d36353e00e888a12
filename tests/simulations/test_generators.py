"""What the generators promise: spectra, symmetries, row sums, and the same matrix from a seed."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jaxtyping import TypeCheckError

from oversmoothing import evolve
from oversmoothing.simulations.generators import attention, value_projection as value
from oversmoothing.simulations.generators.attention import ATTENTION, DoublyStochastic, Softmax
from oversmoothing.simulations.generators.options import choose
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION, Goe, LowRank
from oversmoothing.theory.layer.attention import closed_classes, stationary_distribution
from oversmoothing.theory.layer.layer import check_attention
from oversmoothing.theory.proofs.strategies import SEEDS
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.shapes import only_where_checked

EPS = 2.0**-52


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def options(name: str) -> dict:
    return {"blocks": 1} if name == "nearly_reducible" else {}


@pytest.mark.parametrize("name", list(ATTENTION))
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 9), temperature=st.floats(0.3, 10.0))
def test_rows_sum_to_one_and_the_seed_decides(name, seed, n, temperature):
    make = choose("attention", ATTENTION, name, {"temperature": temperature, **options(name)})
    A = make.draw(n, rng=rng(seed), batch=(2,))
    assert A.shape == (2, n, n) and A.dtype == np.float64
    check_attention(A)
    again = make.draw(n, rng=rng(seed), batch=(2,))
    assert (again == A).all()


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(1, 12))
def test_symmetric_psd_logits_have_a_spectrum_in_0_1(seed, n):
    """D^1/2 A D^-1/2 is symmetric (T1g), so a deviation measures the conditioning sqrt(max/min)."""
    A = attention.SymmetricPsd().draw(n, rng=rng(seed))
    pi = stationary_distribution(A)
    S = np.sqrt(pi)[:, None] * A / np.sqrt(pi)
    allowed = 64 * n * EPS * np.sqrt(pi.max() / pi.min())
    assert np.abs(S - S.T).max() <= allowed
    a = np.linalg.eigvalsh((S + S.T) / 2)
    assert a.min() >= -n * allowed and a.max() <= 1 + n * allowed


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_symmetric_indefinite_logits_have_a_real_spectrum_with_both_signs(seed):
    a = np.linalg.eigvals(attention.SymmetricIndefinite(temperature=0.5).draw(24, rng=rng(seed)))
    assert np.abs(a.imag).max() < 1e-9 and a.real.min() < 0 < np.sort(a.real)[-2]


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 8))
def test_causal_attention_is_lower_triangular(seed, n):
    A = attention.Causal().draw(n, rng=rng(seed))
    assert (np.triu(A, 1) == 0).all() and (np.diag(A) > 0).all() and A[0, 0] == 1.0


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(2, 14), st.integers(1, 5))
def test_a_mask_decides_the_closed_classes_and_how_soon_tokens_meet(seed, n, k):
    """T1: one class for each component of the graph, and 1 an eigenvalue once for each."""
    local, strided = (
        attention.Local(reach=k).draw(n, rng=rng(seed)),
        attention.Strided(stride=k).draw(n, rng=rng(seed)),
    )
    axial = attention.Axial().draw(n, rng=rng(seed))
    for A, classes in ((local, 1), (strided, min(n, k)), (axial, 1)):
        assert len(closed_classes(A)) == classes
        assert (np.abs(np.linalg.eigvals(A) - 1) < 1e-8).sum() == classes
    place = np.arange(n)
    apart = np.abs(place[:, None] - place)
    assert ((local > 0) == (apart <= k)).all() and ((strided > 0) == (apart % k == 0)).all()
    assert (axial @ axial > 0).all()
    # After m layers the token at one end has heard of m reach others, and of no more.
    heard = np.linalg.matrix_power(local, 2)[0] > 0
    assert (heard == (place <= 2 * k)).all()


def test_the_gap_of_local_attention_closes_with_the_square_of_its_length():
    """Without logits to speak of: a random walk on a path, whose gap is near c (reach/n)^2."""
    gaps = []
    for n in (16, 32, 64):
        a = np.linalg.eigvals(attention.Local(reach=1, temperature=1e6).draw(n, rng=rng(0)))
        gaps.append(1 - np.sort(a.real)[-2])
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.15)
    assert gaps[1] / gaps[2] == pytest.approx(4, rel=0.08)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(1, 20))
def test_doubly_stochastic_columns_sum_to_one(seed, n):
    A = DoublyStochastic().draw(n, rng=rng(seed))
    assert np.abs(A.sum(axis=-2) - 1).max() <= n * EPS


@pytest.mark.parametrize("n", [2, 3])
def test_T1f_few_tokens_of_doubly_stochastic_attention_count_as_such(n):
    """Four of ten had columns off by 4 eps: HFC/LFC stopped at 1e16."""
    for seed in range(12):
        A = DoublyStochastic().draw(n, rng=rng(seed))
        run = evolve(X0=np.eye(n), A=A, H=-0.5 * np.eye(n), depth=[3000])
        assert run.metrics()["log_hfc_lfc"].item() > 100


@pytest.mark.parametrize("temperature, n", [(0.1, 32), (0.04, 8), (0.04, 32), (0.02, 8)])
def test_sharp_attention_is_balanced_too(temperature, n):
    """Sinkhorn alone: refused after 100,000 rounds, seconds to minutes, columns 1e-5 from 1."""
    A = DoublyStochastic(temperature=temperature).draw(n, rng=rng(0))
    K = Softmax(temperature=temperature).draw(n, rng=rng(0))
    assert np.abs(A.sum(axis=-2) - 1).max() <= n * EPS
    scaled = np.log(A[:8, :8] / K[:8, :8])
    assert np.abs(scaled - scaled[0] - scaled[:, :1] + scaled[0, 0]).max() < 1e-9


@pytest.mark.parametrize("K", [[[1, 0, 0], [1, 0, 0], [1, 1, 1]], [[1, 0], [1, 0]]])
def test_sinkhorn_says_so_where_it_does_not_converge(K):
    """No doubly stochastic matrix has these zeros."""
    refuses("raise the temperature", lambda: attention.sinkhorn(np.array(K, dtype=float)))


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(2, 9), st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_nearly_reducible_attention_has_an_eigenvalue_near_one(seed, n, coupling):
    A = attention.NearlyReducible(coupling=coupling).draw(n, rng=rng(seed))
    a = np.sort(np.abs(np.linalg.eigvals(A)))
    assert a[-2] >= 1 - 4 * coupling


def test_low_temperature_is_sharp_and_masked_logits_are_0():
    sharp = Softmax(temperature=0.01).draw(16, rng=rng(0))
    flat = Softmax(temperature=100.0).draw(16, rng=rng(0))
    assert np.median(sharp.max(-1)) > 0.9 and flat.max(-1).max() < 0.1
    A = attention.row_softmax(np.array([[0.0, -np.inf], [1.0, 1.0]]))
    assert A.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    for bad in (-np.inf, np.nan, np.inf):
        refuses("", attention.row_softmax, np.array([[bad, bad], [0.0, 0.0]]))


@cases(
    "name, bad",
    ("softmax", {"temperature": 0.0}),
    ("softmax", {"temperature": np.nan}),
    ("softmax", {"temperature": -1.0}),
    ("softmax", {"dim": 0}),
    ("nearly_reducible", {"coupling": 0.0}),
    ("nearly_reducible", {"blocks": 9}),
    ("spectrum", {"eigenvalues": [1.0]}),
    ("spectrum", {"eigenvalues": [1j, 1.0, 1.0]}),
    ("spectrum", {"eigenvalues": [1j, -1j, np.nan]}),
    ("spectrum", {"eigenvalues": [1.0, 2.0, 3.0], "basis": "standard"}),
    ("low_rank", {"rank": 4}),
    ("low_rank", {"scale": -1.0}),
    ("defective", {"size": 1}),
)
def test_bad_options_are_refused(name, bad):
    kind = ("attention", ATTENTION) if name in ATTENTION else ("value", VALUE_PROJECTION)
    refuses("", lambda: choose(*kind, name, bad).draw(3, rng=rng(0)))
    refuses("", value.real_form, [-1j])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-3, 3), max_size=3),
    st.lists(st.tuples(st.floats(-3, 3), st.floats(0.1, 3)), max_size=2),
    st.sampled_from(["orthogonal", "general"]),
    SEEDS,
)
def test_the_chosen_spectrum_is_the_spectrum(real, pairs, basis, seed):
    chosen = [complex(h) for h in real]
    for x, y in pairs:
        chosen = [complex(x, -y), *chosen, complex(x, y)]
    if not chosen:
        return
    d = len(chosen)
    H = value.chosen_spectrum(d, rng=rng(seed), eigenvalues=chosen, basis=basis)
    # The characteristic polynomial: clusters of eigenvalues make matching ill-conditioned.
    for z in (4.0, -4.5, 4.2j):
        expected = np.prod([z - h for h in chosen])
        assert np.linalg.det(z * np.eye(d) - H) == pytest.approx(expected, rel=1e4 * d * d * EPS)
    if basis == "orthogonal":
        assert np.abs(H @ H.T - H.T @ H).max() <= 1e3 * d * d * EPS


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 8), SEEDS)
def test_random_bases(d, seed):
    Q = value.random_orthogonal(d, rng=rng(seed))
    assert np.abs(Q @ Q.T - np.eye(d)).max() <= 16 * d * EPS
    wanted = 4.0 if d > 1 else 1.0
    assert np.linalg.cond(value.random_basis(d, rng=rng(seed))) == pytest.approx(wanted, rel=1e-12)


def test_gaussian_ensembles_have_their_radii():
    for kind, radius, off in (
        (Goe(scale=0.5), 1.0, 0.05), (value.Ginibre(scale=0.5), 0.5, 0.06),
        (LowRank(rank=75, scale=2.0), 2.0 * 0.5, 0.15),
    ):  # fmt: skip
        h = np.linalg.eigvals(kind.draw(300, rng=rng(0)))
        # Of GOE the larger end.
        largest = h.real.max() if isinstance(kind, Goe) else np.abs(h).max()
        assert largest == pytest.approx(radius, abs=off)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), SEEDS)
def test_low_rank_heads(d, seed):
    rank = 1 + seed % d
    W_V, W_proj = LowRank(rank=rank).factors(d, rng=rng(seed))
    H = LowRank(rank=rank).draw(d, rng=rng(seed))
    assert (H == (W_V @ W_proj).T).all() and np.linalg.matrix_rank(H) == rank


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), SEEDS, st.sampled_from(["orthogonal", "general"]))
def test_one_jordan_block(d, seed, basis):
    size = 2 + seed % (d - 1)
    N = value.Defective(eigenvalue=-0.5, size=size, basis=basis).draw(
        d, rng=rng(seed)
    ) + 0.5 * np.eye(d)
    powers = [np.linalg.norm(np.linalg.matrix_power(N, k)) for k in (size - 1, size)]
    assert powers[0] > 0.05 and powers[1] <= 1e4 * d * EPS


@only_where_checked
def test_a_matrix_that_is_not_square_is_no_attention():
    refuses("row_softmax", lambda: attention.row_softmax(np.zeros((2, 3))), error=TypeCheckError)
