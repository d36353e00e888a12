"""Verdicts at scale: what a fast step decides, the whole spectrum agrees with, near a tie too."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from oversmoothing import verdict
from oversmoothing.simulations.generators.attention import (
    Causal,
    DoublyStochastic,
    Softmax,
    SymmetricPsd,
)
from oversmoothing.simulations.generators.value_projection import LowRank
from oversmoothing.simulations.spectra import head_values as at_scale
from oversmoothing.simulations.spectra.head_values import (
    Powers,
    dense_values,
    head_values,
    spectral_verdicts,
)
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, eigenvalues
from oversmoothing.theory.verdict.formulas import dominance
from tests.support.kronecker import leaning
from tests.support.refusals import refuses

seeds = st.integers(0, 2**32 - 1)
KINDS = (Softmax, SymmetricPsd, DoublyStochastic)


def batch(seed: int, m: int, n: int) -> np.ndarray:
    """m softmax attentions over a wide range of temperatures, [m, n, n]."""
    rng, temperatures = np.random.default_rng(seed), np.geomspace(0.1, 3, m)
    return np.stack([Softmax(temperature=t, dim=8).draw(n, rng=rng) for t in temperatures])


def gaussian_factors(seed: int, d: int, r: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    return LowRank(rank=r, scale=scale).factors(d, rng=np.random.default_rng(seed))


def plain(A: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """(rho_C, rho_Q) over all pairs, by LAPACK and nothing else."""
    found = dominance(np.linalg.eigvals(quotient(A / A.sum(-1, keepdims=True))), values)
    return found.rho_consensus, found.rho_quotient


@given(seed=seeds, n=st.integers(2, 40), r=st.integers(1, 6), scale=st.floats(0.05, 20))
@settings(max_examples=40, deadline=None)
def test_every_verdict_and_bound_is_that_of_the_whole_spectrum(seed, n, r, scale):
    A, d = batch(seed, 6, n), r + seed % 3
    factors = [gaussian_factors(seed + k, d, r, scale) for k in range(2)]
    heads = [head_values(*each) for each in factors]
    found = spectral_verdicts(A, heads, np.tile([0, 1], (6, 1)))
    for i in range(6):
        for k in range(2):
            W_V, W_proj = factors[k]
            values = np.append(np.zeros(d - r), eigenvalues(W_proj @ W_V))
            rho_c, rho_q = plain(A[i], values)
            slack = 1e-6 * (1 + rho_q)
            assert found.rho_consensus[i, k] == pytest.approx(rho_c, rel=1e-7)
            assert found.quotient_low[i, k] - slack <= rho_q <= found.quotient_high[i, k] + slack
            name = found.verdict[i, k]
            if name == "SMOOTHING":
                assert rho_c >= rho_q  # an a next to 1 is 1 in floats
            elif name == "NON_SMOOTHING":
                assert rho_c <= rho_q
            else:
                assert rho_c == pytest.approx(rho_q, rel=1e-5)


@given(seed=seeds, n=st.integers(3, 30), r=st.integers(1, 5), gap=st.integers(4, 13))
@settings(max_examples=12, deadline=None)
def test_a_head_moved_next_to_the_tie_is_never_decided_wrongly(seed, n, r, gap):
    """H is scaled until rho_C = rho_Q, then by 1 +- 10^-gap: the hardest cases there are."""
    A = Softmax(temperature=0.3, dim=8).draw(n, rng=np.random.default_rng(seed))
    a = np.linalg.eigvals(quotient(A))
    W_V, W_O = gaussian_factors(seed, r + 2, r, 1.0)
    core = np.linalg.eigvals(W_O @ W_V)

    def margin(s):
        moduli = np.abs(1 + s * core)
        return float(max(moduli.max(), 1) - max(np.abs(1 + s * np.outer(a, core)).max(), 1))

    grid = np.geomspace(1e-2, 1e2, 200)
    signs = np.array([np.sign(margin(s)) for s in grid])
    change = np.flatnonzero(signs[1:] * signs[:-1] < 0)
    if not len(change):
        return
    low, high = grid[change[0]], grid[change[0] + 1]
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if margin(middle) * margin(low) > 0 else (low, middle)
    for side in (-1, 0, 1):
        s = low * (1 + side * 10.0**-gap)
        for dtype in (np.float64, np.float32):
            single = A.astype(dtype)
            exact = single.astype(np.float64)
            exact /= exact.sum(-1, keepdims=True)
            name = spectral_verdicts(single[None], [head_values(s * W_V, W_O)], np.array([0]))
            # The oracle is not sure either where its own error estimate exceeds the margin.
            oracle = verdict(A=exact, W=(s * W_V, W_O)).verdict
            if oracle != "UNDECIDED":
                assert name.verdict[0] in (oracle, "UNDECIDED")


@pytest.mark.parametrize("generator", KINDS)
def test_steps_and_lapack_agree_on_matrices_of_every_kind(generator, monkeypatch):
    rng = np.random.default_rng(3)
    A = np.stack([generator(temperature=t).draw(24, rng=rng) for t in (0.2, 0.5, 1, 2)])
    heads = [head_values(*gaussian_factors(k, 12, 4, 2.0)) for k in range(8)]
    pairs = np.tile(np.arange(8), (4, 1))
    fast = spectral_verdicts(A, heads, pairs)
    monkeypatch.setattr(at_scale, "_powers", lambda A, low, size: np.full(low.shape, np.inf))
    slow = spectral_verdicts(A, heads, pairs)
    np.testing.assert_array_equal(fast.verdict, slow.verdict)
    assert (fast.method == "powers").any() and not (slow.method == "powers").any()


def test_exact_zeros_of_a_head_tie_and_those_of_a_whole_H_do_not():
    """h in (-1, 0) with a PSD kernel: nothing exceeds 1, and only structure knows the 1 (T2b)."""
    A = SymmetricPsd(dim=8).draw(6, rng=np.random.default_rng(0))[None]
    W_V = np.eye(4)[:, :2]
    found = spectral_verdicts(A, [head_values(W_V, -0.5 * W_V.T)], np.array([0]))
    assert found.verdict[0] == "TIE" and found.dominant[0] == "tie"
    assert found.rho_consensus[0] == found.quotient_low[0] == found.quotient_high[0] == 1
    whole = spectral_verdicts(A, [dense_values(-0.5 * np.eye(4))], np.array([0]))
    assert whole.verdict[0] == "NON_SMOOTHING" and whole.dominant[0] == "smallest"


def test_causal_reducible_uniform_and_one_token_attention():
    rng = np.random.default_rng(1)
    heads = [dense_values(0.5 * np.eye(2)), dense_values(-0.5 * np.eye(2))]
    causal = Causal().draw(7, rng=rng)[None].repeat(2, 0)
    found = spectral_verdicts(causal, heads, np.array([0, 1]))
    assert found.verdict.tolist() == ["SMOOTHING", "NON_SMOOTHING"]
    apart = np.zeros((1, 6, 6))
    apart[0, :3, :3] = apart[0, 3:, 3:] = 1 / 3
    both = spectral_verdicts(apart.repeat(2, 0), heads, np.array([0, 1]))
    # 1 repeats: never SMOOTHING (T1a), and h = 1/2 ties exactly by the pattern.
    assert both.verdict.tolist() == ["TIE", "NON_SMOOTHING"]
    alone = spectral_verdicts(np.ones((2, 1, 1)), heads, np.array([0, 1]))
    assert alone.verdict.tolist() == ["TRIVIAL", "TRIVIAL"]
    # All of C is rounding, or exactly 0.
    for n in (4, 9):
        uniform = spectral_verdicts(np.full((2, n, n), 1 / n), heads, np.array([0, 1]))
        assert uniform.verdict.tolist() == ["SMOOTHING", "NON_SMOOTHING"]
        assert uniform.method[0] == "powers"
    none = spectral_verdicts(np.ones((0, 3, 3)), heads, np.zeros(0, dtype=int))
    assert none.verdict.shape == (0,)


def test_the_class_of_a_dominant_eigenvalue():
    """A rotates three tokens fast and swaps two groups slowly: the complex pair wins (T3a)."""
    turn = np.array([[0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.9, 0.05, 0.05]])
    swap = np.array([[0.25, 0.75], [0.75, 0.25]])
    A = np.kron(swap, np.full((3, 3), 1 / 3)) / 2 + np.kron(np.full((2, 2), 0.5), turn) / 2
    heads = [dense_values(h * np.eye(2)) for h in (-0.9, 0.9)]
    found = spectral_verdicts(A[None].repeat(2, 0), heads, np.array([0, 1]))
    assert found.dominant.tolist() == ["other", "consensus"]


def powers_norm(A: np.ndarray) -> np.ndarray:
    return np.linalg.norm(A - A.mean(axis=1, keepdims=True), axis=(1, 2))


@given(seed=seeds, n=st.integers(2, 40), single=st.booleans())
@settings(max_examples=30, deadline=None)
def test_gelfand_bounds_the_radius_and_falls_to_it(seed, n, single):
    A = batch(seed, 5, n)
    radius = np.array([np.abs(attention_spectrum(each)).max() for each in A])
    powers = Powers.of_attention(A.astype(np.float32 if single else np.float64))
    for _ in range(7):
        assert (powers.bound() >= radius * (1 - 1e-9) - 1e-12).all()
        powers = powers.squared()
    if not single:
        # (sqrt(n) times the eigenvector condition)^(1/128), and a floor that rounding leaves; in
        # float32 that floor may lie far above the radius of a sharp, very non-normal A.
        assert (powers.bound() <= 1.5 * radius + 1e-2 * powers_norm(A) + 1e-4).all()


def test_a_defective_quotient_is_not_trusted_beyond_its_condition():
    """A nearly reducible chain whose quotient has a Jordan block: values move by eps^(1/m)."""
    n = 12
    A = 0.5 * np.eye(n) + 0.5 * np.eye(n, k=1)
    A[-1] = 1 / n
    tight = A[None] * (1 - 1e-9) + 1e-9 / n
    a = attention_spectrum(tight[0])
    rho = np.abs(1 - 0.9 * a).max()
    found = spectral_verdicts(tight, [dense_values(np.array([[-0.9]]))], np.array([0]))
    assert found.quotient_low[0] <= rho + 1e-3 and found.verdict[0] == "NON_SMOOTHING"


@pytest.mark.parametrize("step", [1, -1])
def test_T1h_false_values_of_a_causal_quotient_decide_nothing(step):
    """a = 1/2 and 1/20 beside the 1: rho_C = 1.02 is more than 1.01, for h = 1/50 and -3/50."""
    A = leaning(64)[::step, ::step]
    values, error = at_scale.quotient_values(A)
    np.testing.assert_array_equal(values, np.sort(np.diag(leaning(64))[1:]))
    assert error < (1e-12 if step == 1 else 1e-5)
    h = np.diag([0.02, -0.06])
    head = head_values(np.eye(3)[:, :2], h @ np.eye(3)[:2])
    (found,) = spectral_verdicts(A[None], [head], np.array([0]))
    assert found.verdict == "SMOOTHING" and found.dominant == "consensus"
    assert found.quotient_low <= 1.01 * (1 + 1e-12)


def test_false_values_of_nearly_causal_attention_are_not_trusted():
    A = leaning(64) + 1e-30 * np.triu(np.ones((64, 64)), 1)
    assert at_scale.quotient_values(A)[1] > 0.1
    head = head_values(np.eye(3)[:, :2], np.diag([0.02, -0.06]) @ np.eye(3)[:2])
    (found,) = spectral_verdicts(A[None], [head], np.array([0]))
    assert found.verdict == "UNDECIDED" and found.method == "discs"


def test_what_is_not_attention_or_does_not_fit_is_refused():
    head = head_values(np.eye(3)[:, :1], np.eye(3)[:1])
    A = np.full((2, 4, 4), 0.25)
    refuses("not row-stochastic", lambda: spectral_verdicts(2 * A, [head], np.zeros(2, dtype=int)))
    refuses("NaN", lambda: spectral_verdicts(A * np.nan, [head], np.zeros(2, dtype=int)))
    refuses("head_of must lie", lambda: spectral_verdicts(A, [head], np.ones(2, dtype=int)))
    refuses(r"give \[m\]", lambda: spectral_verdicts(A, [head], np.zeros(3, dtype=int)))
    refuses("float32", lambda: spectral_verdicts(A.astype(int), [head], np.zeros(2, dtype=int)))
    refuses("a head needs", lambda: head_values(np.eye(3), np.eye(2)))
    refuses("finite", lambda: head_values(np.full((3, 1), np.nan), np.ones((1, 3))))
