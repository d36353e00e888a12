"""Why: regions of eigenvalues, asymmetry, mixing, the tilt of tokens; the account of a layer."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from oversmoothing import inspect
from oversmoothing.experiments.inspection.heads_and_why import (
    REGIONS,
    ValueModes,
    dobrushin,
    regions,
    value_projection,
)
from oversmoothing.experiments.inspection.observe import PARTS, SUBLAYERS, bare, layer_account
from oversmoothing.experiments.inspection.spectra import alignment, principal, tilt
from oversmoothing.experiments.models.model import Heads, Layer, Norm, Placement, Trace
from oversmoothing.simulations.spectra.head_values import asymmetry_at_random
from oversmoothing.simulations.state_metrics import stream_log_ratio as log_ratio
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
    zero = ValueModes.of(heads_of(torch.zeros(3, 3, dtype=torch.float64))).why
    assert zero["h_zero"] == 1 and zero["asymmetry"] == 0 and zero["h_abs_max"] == 0


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


def test_the_dobrushin_coefficient_bounds_the_subdominant_modulus():
    assert float(dobrushin(torch.eye(4))) == 1
    assert float(dobrushin(torch.full((5, 5), 0.2))) == 0
    assert float(dobrushin(torch.ones(1, 1))) == 0
    A = draw(50, 6, 6).softmax(-1)
    second = np.sort(np.abs(np.linalg.eigvals(A.numpy())), axis=1)[:, -2]
    assert (dobrushin(A).numpy() >= second - 1e-12).all()


@cases(
    "H, order, value, span",
    # The two orders differ where the largest eigenvalue is negative; a complex pair has a plane.
    (torch.diag(torch.tensor([-0.9, 0.5, 0.1])), "modulus", -0.9, [0]),
    (torch.diag(torch.tensor([-0.9, 0.5, 0.1])), "residual", 0.5, [1]),
    (torch.tensor([[0.1, -4, 0], [1, 0.1, 0], [0, 0, 0]]), "residual", None, [0, 1]),
)
def test_the_principal_direction_is_that_of_its_order_and_invariant(H, order, value, span):
    found = principal(ValueModes.of(heads_of(H.double())), order)
    assert value is None or found.value == pytest.approx(value)
    assert found.basis.shape == (3, len(span))
    np.testing.assert_allclose(np.delete(found.basis, span, 0), 0, atol=1e-12)
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(len(span)), atol=1e-12)


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


# --- the account of a layer: its parts sum to the measured change ---


B, N, D, H, R = 3, 7, 6, 2, 3


def heads(seed: int = 1) -> Heads:
    weights = [draw(H, D, R, seed=seed + k) for k in range(3)]
    return Heads(
        *weights, draw(H, R, D, seed=seed + 3), b_V=draw(H, R, seed=9), b_O=draw(D, seed=8)
    )


def layer_and_trace(
    placement: Placement, kind: str = "layer", *, plain: bool = False, seed: int = 0
) -> tuple[Layer, Trace]:
    """A layer with the FFN x -> tanh(x F), and what it does to a random stream."""
    gain = torch.ones(D, dtype=torch.float64) if plain else draw(D, seed=5)
    shift = None if plain or kind == "rms" else draw(D, seed=6)
    norm = Norm(kind, gain, shift, 1e-6)
    F = draw(D, D, seed=7)
    own = heads()
    layer = Layer(
        lambda: own, own.number, own.width, norm, norm, placement, lambda x: torch.tanh(x @ F),
        nn.Identity(), nn.Identity(),
    )  # fmt: skip
    X = draw(B, N, D, seed=seed) + 1
    if plain:  # every token has the same mean and the same scale
        X = X - X.mean(-1, keepdim=True)
        X = X / X.square().mean(-1, keepdim=True).sqrt()
    A = draw(B, H, N, N, seed=3).softmax(-1)
    assert layer.ffn is not None
    if placement == "pre":
        middle = X + layer.heads.attended(A, norm(X))
        after = middle + layer.ffn(norm(middle))
    else:
        middle = norm(X + layer.heads.attended(A, X))
        after = norm(middle + layer.ffn(middle))
    return layer, Trace(A, X, middle, after)


def of(parts: dict[str, Tensor], sublayer: str) -> Tensor:
    """The change over one sublayer."""
    return sum((parts[f"{sublayer}_{part}"] for part in PARTS), torch.zeros(()))


def error(parts: dict[str, Tensor], trace: Trace) -> Tensor:
    """|sum of the parts - measured change|."""
    change = log_ratio(trace.after_ffn) - log_ratio(trace.before)
    return (of(parts, "attention") + of(parts, "ffn") - change).abs()


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("kind", ["layer", "rms", "none"])
@pytest.mark.parametrize("verify", [True, False])
def test_the_parts_sum_to_the_measured_change(placement, kind, verify):
    layer, trace = layer_and_trace(placement, kind)
    parts = layer_account(layer, trace, log_ratio, verify=verify)
    start, middle, end = map(log_ratio, (trace.before, trace.after_attention, trace.after_ffn))
    assert float(error(parts, trace).max()) < 1e-12
    torch.testing.assert_close(of(parts, "attention") + of(parts, "ffn"), end - start)
    torch.testing.assert_close(of(parts, "attention"), middle - start)


def test_a_model_that_was_misread_does_not_close():
    layer, trace = layer_and_trace("pre")
    wrong = Trace(trace.attention, trace.before, trace.after_attention, 1.01 * trace.after_ffn + 1)
    assert float(error(layer_account(layer, wrong, log_ratio), wrong).min()) > 1e-3


def test_without_norms_or_with_tokens_of_one_scale_and_unit_gains_the_body_is_the_whole_change():
    bare_norm, even = (
        layer_account(*layer_and_trace("pre", **how), log_ratio)
        for how in ({"kind": "none"}, {"plain": True})
    )
    for part in ("scales", "gains"):
        assert not any(bare_norm[f"{sublayer}_{part}"].any() for sublayer in SUBLAYERS)
        assert float(even[f"attention_{part}"].abs().max()) < 1e-5  # eps of the norm


def test_the_bare_norm_has_the_mean_square_of_the_scaled_one():
    norm, X = Norm("layer", draw(D), draw(D, seed=1), 0.0), draw(B, N, D) + 2
    size = bare(norm, X).square().sum((1, 2))
    torch.testing.assert_close(size, torch.full((B,), float(N * D), dtype=torch.float64))
    torch.testing.assert_close(norm.scaled(X) * norm.gain + norm.shift, norm(X))


def test_the_body_of_attention_is_the_paper_s_layer_up_to_one_scale():
    """X + A X W with W scaled by 1/s, s the common scale, when rows have mean 0 (T8e)."""
    layer, trace = layer_and_trace("pre", plain=True)
    bare_heads = replace(layer.heads, b_V=None, b_O=None)
    layer = replace(layer, read=lambda: bare_heads, ffn=None)
    X = trace.before
    assert trace.attention is not None
    s = math.sqrt(1 + 1e-6)  # rows have mean square 1
    after = X + bare_heads.attended(trace.attention, X / s)
    found = layer_account(layer, Trace(trace.attention, X, after, after), log_ratio)
    torch.testing.assert_close(found["attention_body"], log_ratio(after) - log_ratio(X))
    assert not of(found, "ffn").any()
