"""Remedies: each one's defining identity, its gradient, and its spectrum (T1, T13a)."""

import json
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn

from oversmoothing import remedies
from oversmoothing.experiments.remedies import shift
from oversmoothing.experiments.remedies.remedy import norm_derivative, norm_of
from oversmoothing.experiments.remedies.shift import REMEDIES, in_table, remedy
from tests.support.refusals import refuses

N, D = 5, 4
# A few products of sides N, D on numbers of about 1.
CLOSE = {"rtol": 0, "atol": 1e-13}


def layer(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """X, A, W and the values of another layer."""
    draw = torch.Generator().manual_seed(seed)
    X, first = torch.randn(2, N, D, generator=draw, dtype=torch.float64)
    A = torch.randn(N, N, generator=draw, dtype=torch.float64).softmax(-1)
    return X, A, torch.randn(D, D, generator=draw, dtype=torch.float64), first


J = torch.full((N, N), 1 / N, dtype=torch.float64)
P = torch.eye(N, dtype=torch.float64) - J
ONE = torch.eye(N, dtype=torch.float64)
# Remedy -> X' written down with matrices, from its paper's formula (or our reading of it).
IDENTITIES = {
    remedies.AttnScale(0.5): lambda X, A, W, first: X + (J + 1.5 * (A - J)) @ X @ W,
    remedies.FeatScale(D, 0.25, 0.5): lambda X, A, W, first: (
        X + 1.25 * J @ A @ X @ W + 1.5 * P @ A @ X @ W
    ),
    remedies.GFSA(0.5, 0.75, 0.25, K=4): lambda X, A, W, first: (
        X + (0.5 * ONE + 0.75 * A + 0.25 * (A + 3 * (A @ A - A))) @ X @ W
    ),
    remedies.OutlierRemoval(): lambda X, A, W, first: X + (A - J) @ X @ W,
    remedies.CentredAttention(): lambda X, A, W, first: X + P @ A @ X @ W,
    remedies.ShapedAttention(0.5, 0.75, 0.25): lambda X, A, W, first: (
        X + (0.5 * ONE + 0.75 * A - 0.25 * J) @ X @ W
    ),
    remedies.LaplacianHead(): lambda X, A, W, first: X + (ONE - A) @ X @ W,
    remedies.DeEscalation(0.75): lambda X, A, W, first: (ONE - 0.75 * J) @ (X + A @ X @ W),
    remedies.NeuTRENO(0.5): lambda X, A, W, first: X + A @ X @ W + 0.5 * (first - X @ W),
    remedies.ValueResidual(0.25, 0.75): lambda X, A, W, first: (
        X + A @ (0.25 * first + 0.75 * X @ W)
    ),
    remedies.LayerScale(D, 0.25): lambda X, A, W, first: X + 0.25 * A @ X @ W,
    remedies.ResidualScaling(16): lambda X, A, W, first: X + A @ X @ W / 4,
    remedies.LambdaSkip(1.5): lambda X, A, W, first: 1.5 * X + A @ X @ W,
    remedies.DeepNorm(8): lambda X, A, W, first: norm_of(2 * X + A @ X @ W),
    remedies.LNScaling(4): lambda X, A, W, first: X + A @ norm_of(X) @ W / 2,
    remedies.ContraNorm(0.25, 2.0): lambda X, A, W, first: (
        (Y := X + A @ X @ W) - 0.25 * (Y @ Y.T / 2).softmax(-1) @ Y
    ),
    # Where nothing is said, these begin as the plain layer.
    remedies.FeatScale(D): lambda X, A, W, first: X + A @ X @ W,
    remedies.GFSA(): lambda X, A, W, first: X + A @ X @ W,
}


@pytest.mark.parametrize("module", IDENTITIES, ids=lambda module: module.title)
def test_a_remedy_is_the_formula_that_defines_it(module):
    X, A, W, first = layer()
    found = module.double().layer(X, A, W, first)
    torch.testing.assert_close(found, IDENTITIES[module](X, A, W, first), **CLOSE)


def test_every_remedy_has_an_identity_here():
    own = {type(each) for each in IDENTITIES}
    streams = {remedies.HyperConnections, remedies.DoublyStochasticConnections}
    assert own | streams | {remedies.ViTMinus, remedies.BandOfH} == set(REMEDIES.values())
    assert len(REMEDIES) == 20


def test_heads_of_attnscale_have_an_omega_each():
    A = torch.stack([layer(seed)[1] for seed in range(3)])
    module = remedies.AttnScale(heads=3).double()
    omega = torch.tensor([0.0, 0.5, -1.0]).view(3, 1, 1)
    with torch.no_grad():
        module.omega.copy_(omega)
    torch.testing.assert_close(module.attention(A[None])[0], J + (1 + omega) * (A - J), **CLOSE)


@pytest.mark.parametrize("name", ["hyper-connections", "hyper-connections-ds"])
def test_hyper_connections_are_written_out_stream_by_stream(name):
    X, A, W, _ = layer(2)
    module = remedy(name, streams=3, jitter=0.3).double()
    R, p, q = module.mixed().detach(), module.p.detach(), module.q.detach()
    streams = torch.stack([X, 2 * X, X - 1])
    Y = A @ sum(q[k] * streams[k] for k in range(3)) @ W
    wanted = [sum(R[k, m] * streams[m] for m in range(3)) + p[k] * Y for k in range(3)]
    torch.testing.assert_close(module.layer(streams, A, W).detach(), torch.stack(wanted), **CLOSE)
    # Equal streams at the start are the plain layer.
    module = remedy(name).double()
    found = module.layer(module.spread(X), A, W)
    torch.testing.assert_close(module.gather(found), X + A @ X @ W, **CLOSE)


def test_a_doubly_stochastic_mixing_is_that_of_the_weights_of_now():
    module = remedy("hyper-connections-ds", streams=3, jitter=1.0).double()
    with torch.no_grad():
        first = module.mixed()
        assert module.mixed() is first and (first > 0).all()
        for side in (0, 1):
            ones = torch.ones(3, dtype=first.dtype)
            torch.testing.assert_close(first.sum(side), ones, rtol=0, atol=1e-12)
        module.weight.data[0, 1] += 1.0
        second = module.mixed()
        assert module.float().mixed().dtype == torch.float32
    module.double()
    assert not torch.allclose(first, second)
    assert torch.allclose(second, module.mixed().detach(), rtol=1e-6)
    assert module.mixed().requires_grad


def test_doubly_stochastic_streams_with_p_1_follow_one_stream_and_the_rest_of_r():
    """T13b: the modes are those of H scaled by q^T 1, and the eigenvalues of R without its 1."""
    _, _, W, _ = layer(4)
    module = remedy("hyper-connections-ds", streams=3, jitter=0.3).double()
    with torch.no_grad():
        module.p.fill_(1.0)
    found = torch.linalg.eigvals(module.mode(0.5, 0.0, W.mT, torch.ones(D)))
    h = torch.linalg.eigvals(W) * module.q.sum().detach()
    r = torch.linalg.eigvals(module.mixed().detach())
    rest = r[(r - 1).abs().argsort()[1:]]
    wanted = torch.cat([1 + 0.5 * h, rest.repeat_interleave(D)])
    far = (found[:, None] - wanted[None, :]).abs().detach().numpy()
    # R's eigenvalues stand d times: eps^(1/2).
    assert far[linear_sum_assignment(far)].max() < 1e-7


@pytest.mark.parametrize("name", ["vit-minus", "band"])
def test_a_form_of_h_puts_the_product_into_its_region(name):
    _, _, W, _ = layer(5)
    module = in_table(name, D)
    H = module.product(W).mT
    low, high = module.form.interval
    h = torch.linalg.eigvalsh(H)
    torch.testing.assert_close(H, H.T, **CLOSE)
    assert (h > low).all() and (h < high).all()
    batched = module.product(torch.stack([W, 2 * W]))
    torch.testing.assert_close(batched[0], module.product(W), **CLOSE)


# Of a form of H the gradient is that of its free tensors (tests of the forms).
@pytest.mark.parametrize("name", [name for name in REMEDIES if name not in ("vit-minus", "band")])
def test_the_gradient_is_that_of_finite_differences(name):
    X, A, W, first = layer(6)
    module = in_table(name, D)
    module.forward = module.layer
    if hasattr(module, "spread"):
        X = torch.stack([X, 0.5 * X + 1, X * X, -X])
    values = {name: each.detach() for name, each in module.named_parameters()}

    def run(*inputs):
        own = dict(zip(values, inputs[4:], strict=True))
        return torch.func.functional_call(module, own, inputs[:4])

    given = [X, A, W, first, *values.values()]
    assert torch.autograd.gradcheck(run, [each.clone().requires_grad_() for each in given])


def test_the_derivative_of_the_norm_is_that_of_autograd():
    x = layer(7)[0][0]
    found = torch.func.jacrev(norm_of)(x)
    torch.testing.assert_close(norm_derivative(x), found, rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def layers():
    return shift.drawn(25, seed=1)


@pytest.mark.parametrize("name", REMEDIES)
def test_the_predicted_radii_are_those_of_the_module(name, layers):
    for module in (in_table(name, shift.WIDTH), shift.without(name)):
        found = shift.measured(module, layers)
        own = shift.predicted(module, layers)
        torch.testing.assert_close(own, found, rtol=shift.MOST, atol=1e-10)


def test_one_layer_by_hand():
    """a = 1/2, H = -1: rho_C = 0, rho_Q = 1/2; AttnScale(1) makes a = 1, so that rho_Q = 0; outlier
    removal makes rho_C = 1."""
    A = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    W, x = torch.tensor([[-1.0]], dtype=torch.float64), torch.tensor([2.0], dtype=torch.float64)
    wanted = {
        remedies.Plain(): (0, Fraction(1, 2)),
        remedies.AttnScale(1.0): (0, 0),
        remedies.OutlierRemoval(): (1, Fraction(1, 2)),
        remedies.NeuTRENO(0.5): (Fraction(1, 2), 1),
        remedies.DeEscalation(1.0): (0, Fraction(1, 2)),
        remedies.LaplacianHead(): (1, Fraction(1, 2)),
        remedies.LambdaSkip(2.0): (1, Fraction(3, 2)),
    }
    for module, radii in wanted.items():
        found = shift.blocks(module.double(), A, W, x)
        assert found == pytest.approx([float(each) for each in radii], abs=1e-14), module.title


def test_the_shift_of_the_radii_is_the_mean_of_its_logarithm():
    """rho_C by 1/4 and 4: no shift on average; rho_Q by 1/2 and 2 e^2: e. A mean of 0 is -inf."""
    before = torch.tensor([[2.0, 1.0], [1.0, 1.0]])
    after = torch.tensor([[0.5, 0.5], [4.0, 2 * np.exp(2.0)]])
    assert shift.log_shift(before, after) == (pytest.approx(0, abs=1e-6), pytest.approx(1.0))
    assert shift.log_shift(before, torch.zeros(2, 2)) == (-np.inf, -np.inf)


@pytest.mark.parametrize("name", ["attnscale", "outlier-removal", "neutreno", "hyper-connections"])
def test_deep_runs_smooth_as_the_radii_say(name):
    layers = shift.drawn(12, seed=2)
    module = in_table(name, shift.WIDTH)
    slopes = shift.observed(module, layers)
    right, clear = shift.verdicts_agree(module, shift.predicted(module, layers), slopes)
    assert right == clear > 6
    # The check can fail: with the two radii changed over, runs are not as predicted.
    wrong, _ = shift.verdicts_agree(module, shift.predicted(module, layers).flip(1), slopes)
    assert wrong < clear


def test_a_mean_of_exactly_0_is_no_smoothing():
    """Two opposite tokens without their mean: HFC/LFC is infinite in every layer, and no NaN."""
    A = torch.tensor([[[0.75, 0.25], [0.25, 0.75]]], dtype=torch.float64)
    H = torch.tensor([[[0.5]]], dtype=torch.float64)
    X0 = torch.tensor([[[1.0], [-1.0]]], dtype=torch.float64)
    two = shift.Drawn(A, H, X0[:, 0], X0, torch.tensor([[0.5 + 0j]], dtype=torch.complex128))
    module = remedies.DeEscalation(1.0).double()
    slopes = shift.observed(module, two, depth=20)
    assert torch.equal(slopes, torch.full((1,), torch.inf, dtype=torch.float64))
    assert shift.verdicts_agree(module, shift.predicted(module, two), slopes) == (1, 1)


def test_rates_that_depend_on_the_size_of_the_state_are_not_observed(layers):
    for name in ("contranorm", "deepnorm", "ln-scaling"):
        assert shift.observed(in_table(name, shift.WIDTH), layers, depth=2) is None


def test_a_remedy_that_tells_equal_tokens_apart_is_noticed():
    class Odd(remedies.Plain):
        def finish(self, X):
            return X * torch.arange(1.0, 1 + X.shape[-2], dtype=X.dtype)[:, None]

    _, A, W, _ = layer(8)
    given, said = torch.ones(D, dtype=torch.float64), "equal tokens become different"
    refuses(said, shift.blocks, Odd(), A, W, given, error=AssertionError)


def test_around_any_branch():
    X = layer(9)[0]
    branch = nn.Linear(D, D).double()
    found = remedies.DeEscalation(1.0).around(branch)(X)
    torch.testing.assert_close(found, P @ (X + branch(X)), **CLOSE)
    scaled = remedies.LayerScale(D, 0.5).double().around(branch)
    assert {name.split(".")[0] for name, _ in scaled.named_parameters()} == {"remedy", "branch"}
    streams = remedies.HyperConnections(2).double()
    assert streams.around(branch)(streams.spread(X)).shape == (2, N, D)
    behind = remedies.DeepNorm(8).around(branch)(X)
    torch.testing.assert_close(behind, norm_of(2 * X + branch(X)), **CLOSE)
    for name in ("attnscale", "neutreno", "value-residual", "band"):
        refuses("acts within the attention sublayer", in_table(name, D).around, branch)


def test_bad_input_is_a_sentence():
    for options, message in (
        ({"name": "cure"}, "no remedy 'cure': choose one of attnscale"),
        ({"name": "attnscale", "strength": 2}, "strength"),
        ({"name": "contranorm", "temperature": 0.0}, "temperature is 0.0"),
        ({"name": "residual-scaling", "depth": 0}, "depth is 0"),
        ({"name": "ln-scaling", "number": 1.5}, "give a whole number"),
        ({"name": "hyper-connections", "streams": 0}, "streams is 0"),
        ({"name": "hyper-connections", "mixing": "some"}, "mixing is 'some'"),
    ):
        refuses(message, remedy, **options)
    refuses("no remedy 'cure'", lambda: shift.remedies_table(["cure"], draws=1))
    refuses("drawn layers is 0", lambda: shift.remedies_table(["attnscale"], draws=0))


def test_the_cost_is_a_ratio_and_the_sublayer_the_real_one():
    assert 0.1 < shift.cost_ratio("outlier-removal", rounds=8) < 30
    table = shift.remedies_table(["attnscale", "featscale"], draws=1, cost=False)
    assert table["parameters"].tolist() == [1, 256]
    X, _, _, _ = layer(10)
    weights = torch.randn(4, D, D, generator=torch.Generator().manual_seed(0)).double()
    A = (X @ weights[0] @ (X @ weights[1]).T / 2).softmax(-1)
    plain = X + A @ X @ weights[2] @ weights[3]
    torch.testing.assert_close(shift.sublayer(remedies.Plain(), X, weights), plain, **CLOSE)


def test_the_command_prints_writes_and_lists(tmp_path, told):
    path = tmp_path / "remedies.csv"
    few = ["remedies", "outlier-removal", "deepnorm", "hyper-connections", "--draws", "4"]
    printed = told(0, *few, "--out", path)
    assert "In all 4 layers the measured spectrum moves as claimed: outlier removal" in printed
    assert "These claim nothing about tokens: hyper-connections." in printed
    assert path.read_text().startswith("name,remedy,paper,our_reading,claim")
    rows = json.loads(told(0, *few, "--json"))
    assert rows[0]["as_claimed"] == 4 and rows[2]["as_claimed"] is None
    assert all(row["error"] < shift.MOST for row in rows)
    assert "our reading" in told(0, "remedies", "--list")


def test_a_wrong_prediction_leaves_with_status_1(monkeypatch, told):
    monkeypatch.setattr(remedies.OutlierRemoval, "mode", remedies.Plain.mode)
    told(1, "remedies", "outlier-removal", "--draws", "3")


def test_the_words_sort_the_remedies_by_how_often_they_do_as_claimed():
    table = shift.remedies_table(["attnscale", "value-residual"], draws=20, cost=False)
    assert np.isnan(table["cost"].astype(float)).all()
    table.loc[1, ["as_claimed", "as_claimed_low"]] = [9, 0.2]
    said = "in more than half the measured spectrum moves as claimed: value residual (9)"
    assert f"Not clearly {said}" in shift.sentences(table)[1].says
