"""Why: regions of eigenvalues, asymmetry, mixing of attention and the tilt of the tokens."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from oversmoothing import inspect
from oversmoothing.experiments.inspection.heads_and_why import (
    REGIONS,
    ValueModes,
    dobrushin,
    regions,
    value_projection,
)
from oversmoothing.experiments.inspection.spectra import alignment, principal, tilt
from oversmoothing.experiments.models.model import Heads
from oversmoothing.simulations.spectra.head_values import asymmetry_at_random
from tests.support.cases import cases
from tests.support.made_models import draw
from tests.support.tiny_transformers import tiny, tokens


def heads_of(H: Tensor, heads: int = 1) -> Heads:
    """Heads whose H_h sum to H: W_V = H^T / heads, W_O = 1 (r = d)."""
    d = len(H)
    same = torch.eye(d, dtype=H.dtype).expand(heads, d, d)
    return Heads(same, same, (H.T / heads).expand(heads, d, d), same)


@cases(
    "h, region",
    (0, "zero"),
    (-0.5, "universal_disc"),
    (-1, "universal_disc"),
    (-0.5 + 0.5j, "universal_disc"),
    (1e-300, "positive"),
    (0.1 + 3j, "positive"),
    (-1.0001, "other"),
    (-0.5 + 0.51j, "other"),
    (1j, "other"),
)
def test_every_eigenvalue_lies_in_one_region(h, region):
    share = regions(np.array([h], dtype=np.complex128))
    assert share == {name: float(name == region) for name in REGIONS}


def test_heads_of_low_rank_have_exact_zeros():
    weights = Heads(draw(3, 8, 2), draw(3, 8, 2), draw(3, 8, 2), draw(3, 2, 8, seed=1))
    why = ValueModes.of(weights).why
    assert why["head_h_zero"] == (8 - 2) / 8
    assert sum(why[f"head_h_{name}"] for name in REGIONS) == pytest.approx(1)
    expected = sum(draw(3, 8, 2)[k] @ draw(3, 2, 8, seed=1)[k] for k in range(3))
    np.testing.assert_allclose(value_projection(weights), expected.T, atol=1e-13)


def test_eigenvalues_that_are_0_for_want_of_rank_are_0_and_not_what_rounding_makes_of_them():
    """Four heads share two W_V (grouped queries): the rank of H is 4 of 12."""
    d, r, groups = 12, 2, 2
    W_V = draw(groups, d, r).repeat_interleave(2, dim=0)
    W_O = draw(2 * groups, r, d)
    no = torch.zeros(2 * groups, d, r, dtype=torch.float64)
    modes = ValueModes.of(Heads(no, no, W_V, W_O))
    V = torch.cat(list(W_V[::2]), dim=1)
    out = torch.cat([W_O[0] + W_O[1], W_O[2] + W_O[3]])
    core = torch.linalg.eigvals(out @ V).numpy()
    assert modes.why["h_zero"] == (d - groups * r) / d and (modes.h == 0).sum() == d - groups * r
    assert modes.why["h_universal_disc"] == pytest.approx(sum(abs(core + 0.5) <= 0.5) / d)
    np.testing.assert_allclose(
        np.sort_complex(modes.h[modes.h != 0]), np.sort_complex(core), rtol=1e-9
    )
    Q = torch.linalg.qr(draw(d, d, seed=2))[0]
    turned = ValueModes.of(Heads(no, no, Q @ W_V, W_O @ Q.mT)).why["condition_V_H"]
    assert modes.why["condition_V_H"] == pytest.approx(turned)


def test_zeros_for_want_of_rank_never_lose_at_consensus():
    """T3b at h = 0: |1 + h| = |1 + h a|. Grouped queries: 16 of 32 eigenvalues of H are 0."""
    module, ids = tiny("llama", "eager"), tokens((9,))
    table = inspect(module, ids, budget="all").table
    for number, A in enumerate(module(**ids, output_attentions=True).attentions, 1):
        a = A[0].mean(0).diagonal()[1:].detach().double().numpy()  # causal: its eigenvalues (T1h)
        attention = module.model.layers[number - 1].self_attn
        V, out = (each.weight.detach().double() for each in (attention.v_proj, attention.o_proj))
        H = out @ V.view(2, 8, 32).repeat_interleave(2, 0).flatten(0, 1)
        h = np.linalg.eigvals(H.numpy())
        h = h[abs(h) > 1e-9]
        loses = (np.abs(1 + h[:, None] * a) > np.abs(1 + h[:, None])).any(1)
        assert len(h) == 16 and table["outside_share"][number] == 1 - loses.sum() / 32


def test_a_head_wider_than_the_model_has_as_many_eigenvalues_as_the_model():
    """W_V W_O [d, d] for r > d: the core W_O W_V has r - d zeros that are none of H."""
    W_V, W_O = draw(1, 4, 7), draw(1, 7, 4, seed=1)
    modes = ValueModes.of(Heads(W_V, W_V, W_V, W_O))
    h = np.linalg.eigvals((W_V[0] @ W_O[0]).numpy())
    np.testing.assert_allclose(np.sort_complex(modes.own[0]), np.sort_complex(h), rtol=1e-9)
    assert {modes.why[f"head_h_{name}"] for name in REGIONS} <= {0.0, 0.25, 0.5, 0.75, 1.0}


def test_symmetric_is_0_skew_is_infinite_and_both_are_normal():
    M = draw(6, 6)
    symmetric, skew = (ValueModes.of(heads_of(M + s * M.T)).why for s in (1, -1))
    assert symmetric["asymmetry"] == 0
    assert skew["asymmetry"] == math.inf
    for why in (symmetric, skew):
        assert why["departure_from_normality"] < 1e-7  # the root of a rounding
        assert why["condition_V_H"] == pytest.approx(1, abs=1e-9)
    nilpotent = ValueModes.of(
        heads_of(torch.tensor([[0.0, 2.0], [0.0, 0.0]], dtype=torch.float64))
    ).why
    assert nilpotent["departure_from_normality"] == 1
    assert nilpotent["condition_V_H"] > 1e15


@pytest.mark.parametrize("d", [2, 12, 64])
def test_independent_entries_are_as_asymmetric_as_is_computed_of_them(d):
    """Root mean squares over draws of H, and of products of two drawn factors."""
    for factor in (lambda seed: draw(d, d, seed=seed),
                   lambda seed: draw(d, 4, seed=seed) @ draw(4, d, seed=1000 + seed)):  # fmt: skip
        drawn = [factor(seed) for seed in range(400)]
        skew, even = (sum(float((H + s * H.T).square().sum()) for H in drawn) for s in (-1, 1))
        # Each sum of 400 squares keeps some 3 % in the smallest case, the ratio of two at most 10.
        assert (skew / even) ** 0.5 == pytest.approx(asymmetry_at_random(d), rel=0.1)
    one = ValueModes.of(heads_of(draw(d, d))).why["asymmetry"]
    H = draw(d, d).numpy()
    assert one == pytest.approx(np.linalg.norm(H - H.T) / np.linalg.norm(H + H.T))


def test_a_zero_projection_is_a_legal_case():
    why = ValueModes.of(heads_of(torch.zeros(3, 3, dtype=torch.float64))).why
    assert why["h_zero"] == 1 and why["asymmetry"] == 0 and why["h_abs_max"] == 0


def test_the_dobrushin_coefficient_bounds_the_subdominant_modulus():
    assert float(dobrushin(torch.eye(4))) == 1
    assert float(dobrushin(torch.full((5, 5), 0.2))) == 0
    assert float(dobrushin(torch.ones(1, 1))) == 0
    A = draw(50, 6, 6).softmax(-1)
    second = np.sort(np.abs(np.linalg.eigvals(A.numpy())), axis=1)[:, -2]
    assert (dobrushin(A).numpy() >= second - 1e-12).all()


def test_the_two_orders_differ_where_the_largest_eigenvalue_is_negative():
    H = torch.diag(torch.tensor([-0.9, 0.5, 0.1], dtype=torch.float64))
    by_modulus, by_residual = (
        principal(ValueModes.of(heads_of(H)), each) for each in ("modulus", "residual")
    )
    assert by_modulus.value == -0.9 and abs(by_modulus.basis[0, 0]) == 1
    assert by_residual.value == 0.5 and abs(by_residual.basis[1, 0]) == 1


def test_a_complex_pair_spans_an_invariant_plane():
    H = torch.zeros(3, 3, dtype=torch.float64)
    H[:2, :2] = torch.tensor([[0.1, -4.0], [1.0, 0.1]])
    found = principal(ValueModes.of(heads_of(H)), "residual")
    assert found.basis.shape == (3, 2)
    np.testing.assert_allclose(np.abs(found.basis[2]), 0, atol=1e-12)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(2), atol=1e-12)


def test_tokens_of_a_residual_power_method_tilt_to_the_residual_direction():
    """X <- X + X W turns every row toward the eigenvector of H with the largest |1 + h|."""
    M = draw(8, 8)
    H = M @ torch.diag(torch.linspace(-0.9, 0.6, 8, dtype=torch.float64)) @ torch.linalg.inv(M)
    heads, X = heads_of(H), draw(2, 40, 8, seed=3)
    Y = X
    for _ in range(60):
        Y = Y + Y @ H.T
    generator = torch.Generator().manual_seed(0)
    residual, modulus = (principal(ValueModes.of(heads), each) for each in ("residual", "modulus"))
    gain, random = tilt(X, Y, residual, generator)
    assert alignment(Y, torch.from_numpy(residual.basis)).numpy() == pytest.approx(1, abs=1e-4)
    assert (gain > 0.4).all() and (random.abs() < 0.2).all()
    by_modulus, _ = tilt(X, Y, modulus, generator)
    assert (by_modulus < gain).all()


def test_padding_is_left_out_of_the_tilt():
    heads, X, Y = heads_of(draw(4, 4)), draw(1, 5, 4, seed=1), draw(1, 5, 4, seed=2)
    keep = torch.tensor([[True, True, True, False, False]])
    found = principal(ValueModes.of(heads), "modulus")
    cut = tilt(X[:, :3], Y[:, :3], found, torch.Generator().manual_seed(0))
    padded = tilt(X, Y, found, torch.Generator().manual_seed(0), keep)
    torch.testing.assert_close(cut, padded)
