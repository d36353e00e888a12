"""The forms of H: regions through training, guarantees (T2, T3, T7b) and gradients."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.nn.utils import parametrize

from oversmoothing import lasting_bound, parameterisation, value_projection
from oversmoothing.experiments.forms.form import ValueProjection, cholesky_factor, orthogonal_factor
from oversmoothing.experiments.forms.lasting_bound import dobrushin
from oversmoothing.experiments.forms.regions import FORMS, MeasuredInterval
from oversmoothing.theory.spectra.layer_discs import attention_spectrum, eigenvalues
from oversmoothing.theory.verdict.formulas import dominance
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import softmax_attention

seeds = st.integers(0, 2**32 - 1)
widths = st.integers(1, 24)


def made(
    form: str, width: int, scale: float, seed: int, dtype: torch.dtype = torch.float32
) -> ValueProjection:
    module = value_projection(form, width)
    module.initialise(scale, torch.Generator().manual_seed(seed))
    return module.to(dtype=dtype)


def gaussian(seed: int, d: int) -> torch.Tensor:
    return torch.randn(d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def steps(module, goal, optimizer, rate, number, check=lambda: None):
    """Steps of an optimizer from H towards the goal."""
    moves = optimizer(module.parameters(), lr=rate)
    for _ in range(number):
        moves.zero_grad()
        (module() - goal).square().sum().backward()
        moves.step()
        check()


@given(seed=seeds, d=widths, form=st.sampled_from(["plus", "minus"]))
@settings(max_examples=40, deadline=None)
def test_signed_forms_are_symmetric_with_the_declared_spectrum(seed, d, form):
    module = made(form, d, 1.0, seed, torch.float64)
    H = module().detach()
    assert torch.equal(H, H.T)
    sign = 1 if form == "plus" else -1
    declared = (sign * module.psi.detach().square()).sort().values
    torch.testing.assert_close(torch.linalg.eigvalsh(H), declared, rtol=0, atol=1e-12)
    assert (sign * declared > 0).all()


@given(seed=seeds, d=widths)
@settings(max_examples=40, deadline=None)
def test_q_undoes_every_positive_triangular_factor(seed, d):
    """Q(O T) = O for orthogonal O and T upper triangular with a positive diagonal: LAPACK's own Q
    carries signs."""
    q = orthogonal_factor(gaussian(seed, d)) * gaussian(seed ^ 2, d)[0].sign()
    torch.testing.assert_close(q.T @ q, torch.eye(d, dtype=torch.float64), rtol=0, atol=1e-12)
    triangle = gaussian(seed ^ 1, d).triu(1) / d + torch.eye(d, dtype=torch.float64)
    torch.testing.assert_close(orthogonal_factor(q @ triangle), q, rtol=0, atol=1e-9)
    # What a card takes in its place: eps cond(triangle)^2.
    torch.testing.assert_close(cholesky_factor(q @ triangle), q, rtol=0, atol=1e-7)


@given(seed=seeds, scale=st.floats(0.01, 2.0), form=st.sampled_from(["free", "plus", "minus"]))
@settings(max_examples=30, deadline=None)
def test_training_starts_with_the_spectrum_within_the_scale(seed, scale, form):
    H = made(form, 64, scale, seed)().detach().double()
    radius = float(torch.linalg.eigvals(H).abs().max())
    # A real eigenvalue of a Gaussian 64 x 64 matrix beyond r times the circle has a density of the
    # order of exp(-32 (r^2 - 1 - 2 log r)): 2e-9 at 1.6.
    assert radius <= (1.6 if form == "free" else 1.0 + 1e-5) * scale
    assert radius > 0.5 * scale


REGIONS = [form for form in FORMS if form != "free"]
# Those whose guarantee speaks of not smoothing, and which never leave it.
SHARP = ["clip-minus", "sigmoid-minus", "disc", "interval", "band"]


@given(seed=seeds, d=widths, form=st.sampled_from(REGIONS), rate=st.sampled_from([0.01, 1.0, 1e3]))
@settings(max_examples=60, deadline=None)
def test_the_spectrum_stays_in_the_region_whatever_the_steps(seed, d, form, rate):
    """AdamW towards a random matrix, with learning rates far too large among them."""
    module = made(form, d, 0.5, seed, torch.float64)
    assert module.inside()

    def check():
        found = module.inside()
        # V of a clipped form may become singular, and then nobody knows the spectrum of H.
        assert found or (found.status == "cannot tell" and form.startswith(("clip", "sigmoid")))

    steps(module, 3 * gaussian(seed ^ 3, d), torch.optim.AdamW, rate, 8, check)


@given(seed=seeds, d=widths, form=st.sampled_from(["disc", "interval", "band", "minus", "plus"]))
@settings(max_examples=30, deadline=None)
def test_the_spectrum_is_told_to_rounding_in_single_precision(seed, d, form):
    module = made(form, d, 0.5, seed)
    assert module().dtype == torch.float32
    assert module.inside()
    assert module.inside().tolerance <= 8 * d * 2**-23 * 3


@pytest.mark.parametrize("form", REGIONS)
def test_a_matrix_outside_the_region_is_told_to_be_outside(form):
    """Each region's ends, passed by a thousandth: inside before, outside after."""
    map_ = parameterisation(form)
    low, high = (-1.0, 0.0) if map_.interval is None else map_.interval
    for end, way in ((low, -1), (high, 1)):
        if math.isfinite(end):
            identity = torch.eye(4, dtype=torch.float64)
            assert map_.inside((end - way * 1e-3) * identity)
            beyond = map_.inside((end + way * 1e-3) * identity)
            assert beyond.status == "outside"
            # The disc measures ||K|| = ||2H + I||, twice as far.
            assert beyond.excess == pytest.approx(2e-3 if form == "disc" else 1e-3)
    turning = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    assert map_.inside(turning).status == "outside"
    assert map_.inside(turning * torch.nan).status == "cannot tell"


@given(seed=seeds, d=widths, form=st.sampled_from(REGIONS))
@settings(max_examples=60, deadline=None)
def test_a_point_of_the_region_is_its_own_nearest(seed, d, form):
    """forward(right_inverse(H)) = H for a symmetric H well inside; and it goes for any start."""
    module = made(form, d, 0.4, seed, torch.float64)
    H = symmetric_inside(module, seed)
    module.start_at(H)
    torch.testing.assert_close(module().detach(), H, rtol=0, atol=1e-10)
    module.start_at(3 * gaussian(seed, d))
    assert module.inside()


def symmetric_inside(module: ValueProjection, seed: int) -> torch.Tensor:
    d = module.free()[0].shape[-1]
    low, high = module.form.interval or (-1.0, 0.0)
    low, high = max(low, -2.0), min(high, 2.0)
    share = torch.rand(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    h = low + (high - low) * (0.1 + 0.8 * share)
    q = orthogonal_factor(gaussian(seed ^ 5, d))
    return (q * h) @ q.T


@given(seed=seeds, d=widths)
@settings(max_examples=30, deadline=None)
def test_the_disc_reaches_every_contraction_and_nothing_else(seed, d):
    """K -> H -> core -> H: matrices that are not symmetric too; and T3c's norm for any core."""
    module = made("disc", d, 0.5, seed, torch.float64)
    K = gaussian(seed, d)
    K *= 0.9 / torch.linalg.matrix_norm(K, 2)
    H = (K - torch.eye(d, dtype=torch.float64)) / 2
    module.start_at(H)
    torch.testing.assert_close(module().detach(), H, rtol=0, atol=1e-10)
    with torch.no_grad():
        module.core.copy_(1e8 * gaussian(seed ^ 1, d))
    K = torch.eye(d, dtype=torch.float64) + 2 * module().detach()
    assert torch.linalg.matrix_norm(K, 2) <= 1 - 1e-3 + 1e-13 * d


@given(seed=seeds, d=widths)
@settings(max_examples=30, deadline=None)
def test_the_start_in_a_symmetric_region_is_the_nearest_point(seed, d):
    """No matrix of the region drawn at random is closer in the Frobenius norm."""
    H = gaussian(seed, d)
    module = made("band", d, 0.5, seed, torch.float64)
    module.start_at(H)
    # The start keeps 5 % of the width from the ends: compared with matrices that do too.
    own = torch.linalg.matrix_norm(module().detach() - H)
    for other in range(20):
        q = orthogonal_factor(gaussian(seed ^ other, d))
        share = torch.rand(d, generator=torch.Generator().manual_seed(other), dtype=torch.float64)
        drawn = (q * -(0.525 + 0.45 * share)) @ q.T
        assert own <= torch.linalg.matrix_norm(drawn - H) + 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_gradients_are_those_of_the_formula_and_no_parameter_has_none(form, d):
    module = made(form, d, 0.5, d, torch.float64)
    assert torch.autograd.gradcheck(module.form, module.free())
    (module() * gaussian(1, d)).sum().backward()
    # A matrix of side 1 has one orthogonal factor.
    assert all((p.grad != 0).any() for name, p in module.named_parameters() if d > 1)


def test_clipping_kills_gradients_outside_and_the_sigmoid_does_not():
    """v3's clip: of eigenvalues drawn outside, none moves; the smooth form brings all back."""
    for form in ("clip-minus", "sigmoid-minus"):
        module = made(form, 6, 0.5, 0, torch.float64)
        with torch.no_grad():
            module.psi.fill_(0.7)  # clip: outside [-1, 0]
        steps(module, -0.5 * torch.eye(6, dtype=torch.float64), torch.optim.SGD, 1.0, 50)
        moved = (module.psi.detach() - 0.7).abs()
        assert (moved == 0).all() if form == "clip-minus" else (moved > 0.5).all()
        assert form != "clip-minus" or not module.psi.grad.any()


@given(seed=seeds, d=widths, n=st.integers(2, 9), form=st.sampled_from(["plus", "minus", *SHARP]))
@settings(max_examples=100, deadline=None)
def test_a_form_stays_on_its_side_under_every_attention(seed, d, n, form):
    """Tied weights, complex spectra of A included (T2d, T3, T3c, T3d): of 'plus' (all h > 0)
    consensus dominates, of the others (of 'minus' up to psi^2 = 1) never; of the clip a TIE
    remains."""
    A = softmax_attention(seed, n)
    module = made(form, d, {"plus": 3.0, "minus": 1.0}.get(form, 0.9), seed, torch.float64)
    if isinstance(module.form, MeasuredInterval):
        assert module.form.refresh(A) > 1
        with torch.no_grad():
            module.psi.fill_(20.0)  # the far end
    h = eigenvalues(module().detach().numpy())
    margin = dominance(attention_spectrum(A), h).margin
    assert margin > 0 if form == "plus" else margin < 0
    if form == "minus":  # psi^2 = 3 is beyond the safe interval, and is not clipped
        with torch.no_grad():
            module.psi.fill_(3**0.5)
        h = eigenvalues(module().detach().numpy())
        result = dominance(attention_spectrum(np.full((n, n), 1 / n)), h)
        assert result.rho_consensus == pytest.approx(2.0) and result.margin > 0.9


def test_the_interval_is_a_guarantee_for_the_attention_measured_only():
    """h = -1.95 is safe under uniform attention, s = 2, and smooths where a_1 = 1/2, s = 4/3."""
    module = made("interval", 3, 0.5, 0, torch.float64)
    assert isinstance(module.form, MeasuredInterval)
    uniform, other = np.full((4, 4), 0.25), np.array([[0.75, 0.25], [0.25, 0.75]])
    assert module.form.refresh(uniform) == pytest.approx(2)
    module.start_at(-3 * torch.eye(3, dtype=torch.float64))
    assert module.inside()
    h = eigenvalues(module().detach().numpy())
    assert dominance(attention_spectrum(uniform), h).margin < 0
    assert dominance(attention_spectrum(other), h).margin > 0
    # Measured on both, the smaller interval counts, and H moves into it.
    assert module.form.refresh(uniform, other) == pytest.approx(4 / 3)
    h = eigenvalues(module().detach().numpy())
    assert dominance(attention_spectrum(other), h).margin < 0
    refuses("at least two tokens", lambda: module.form.refresh(np.ones((1, 1))))


AA = np.array([[0.75, 0.25], [0.25, 0.75]])


def rotating(values: tuple[float, float], depth: int) -> list[np.ndarray]:
    """W_l = R^l diag(values) R^-l, R = [[4/5, -3/5], [3/5, 4/5]] (T7b)."""
    angles = np.arctan2(0.6, 0.8) * np.arange(depth)
    turned = [np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]]) for t in angles]
    return [R @ np.diag(values) @ R.T for R in turned]


def test_the_clip_fails_and_the_band_holds_where_weights_rotate_from_layer_to_layer():
    """T7b: each H is in the clip's region [-1, 0], each alone is no smoothing, the product is."""
    start = [[1.0, 2.0], [3.0, 5.0]]
    clipped, band = parameterisation("clip-minus"), parameterisation("band", p=0.6)
    smooths = rotating((-1.0, -0.05), 300)
    assert all(clipped.inside(torch.from_numpy(W.T)) for W in smooths)
    h = eigenvalues(smooths[7].T)
    assert dominance(attention_spectrum(AA), h).margin < 0  # one layer, tied
    run = lasting_bound([AA] * 300, smooths, start)
    rate = (run.table["hfc_lfc"].iloc[-1] / run.table["hfc_lfc"].iloc[100]) ** (1 / 200)
    assert rate == pytest.approx(0.9187, abs=2e-3)
    assert run.void_at == 1 and run.floor < 1e-80
    assert "the guarantee is void at layer 1: with tau = 0.5" in str(run)
    # tau(AA) = 1/2 < p/q = 3/5: the band's floor stands for the same rotation.
    held = rotating((-1.0, -0.6), 300)
    assert all(band.inside(torch.from_numpy(W.T)) for W in held)
    assert not any(band.inside(torch.from_numpy(W.T)) for W in smooths)
    run = lasting_bound([AA] * 300, held, start)
    assert run.void_at is None
    u_0 = float(run.table["u"].iloc[0])
    closed = min(1 / u_0, (0.6 - 0.5) / 1) / math.sqrt(2 * 2)
    assert run.floor >= closed * (1 - 1e-12)
    assert (run.table["hfc_lfc"] >= run.floor).all()
    assert "a floor stays at any depth" in str(run)
    # tau = p/q: void, to the digit.
    assert lasting_bound([AA], rotating((-1.0, -0.5), 1), start).void_at == 1
    # The scale of the tokens does not matter, down to numbers whose squares are 0.
    small = lasting_bound([AA] * 3, held[:3], np.array(start) * 2.0**-700).table
    assert small.equals(lasting_bound([AA] * 3, held[:3], start).table)
    # Differences that attention may take whole: nothing is known.
    assert lasting_bound([np.eye(2)], [-np.eye(2)], start).floor == 0.0


@given(seed=seeds, n=st.integers(2, 6), d=st.integers(1, 5), heads=st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_no_state_exceeds_the_lasting_bound(seed, n, d, heads):
    """Any heads, any products, attention that changes by layer: u <= u_bound, floor <= HFC/LFC."""
    rng = np.random.default_rng(seed)
    width = d * heads
    attention = [(1 - 0.2) / n + 0.2 * rng.dirichlet(np.ones(n), (heads, n)) for _ in range(12)]
    products = []
    for _ in range(12):
        Q = np.linalg.qr(rng.standard_normal((width, width)))[0]
        H = parameterisation("band", p=0.7)
        h = H(*(each.double() for each in H.draw(width, 1.0, torch.Generator().manual_seed(seed))))
        parts = [Q[:, k * d : (k + 1) * d] for k in range(heads)]
        products.append([P @ P.T @ h.numpy().T for P in parts])
    run = lasting_bound(attention, products, rng.standard_normal((n, width)))
    table = run.table[np.isfinite(run.table["u_bound"])]
    assert (table["u"] <= table["u_bound"] * (1 + 1e-9)).all()
    assert (table["hfc_lfc"] >= table["floor"] * (1 - 1e-9)).all()
    if math.sqrt(heads) * run.table["tau"].max() < 0.7 * (1 - 1e-9):
        assert run.void_at is None


def test_the_bound_is_attained():
    """T7b, sharp: n = 2, W = -diag(q, p), X_0 = [[1, 1], [-1, 1]]: u_0 = 1/2 to u_1 exactly."""
    run = lasting_bound([AA], [np.diag([-1.0, -0.6])], [[1.0, 1.0], [-1.0, 1.0]])
    # m = (0, 1) -> (0, 2/5); the difference (2, 0) -> (1, 0); bound (2/5 u_0 + 1) / (1/2).
    assert run.table["u"].tolist() == pytest.approx([0.5, 0.4])
    assert run.table["u_bound"].tolist() == pytest.approx([0.5, 2.4])
    assert run.table["tau"].tolist() == [0.0, 0.5]


def test_dobrushin_is_half_the_largest_distance_of_rows():
    given_ = AA, np.eye(3), np.full((3, 3), 1 / 3), [[1.0]]
    assert [dobrushin(A) for A in given_] == [0.5, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_for_which_weights_it_promises(form):
    given_ = parameterisation(form).guarantee
    wanted = {"free": "none", "minus": "none", "band": "untied"}.get(form, "tied")
    assert given_.weights == wanted and given_.source.startswith(("T2", "T3", "T7b"))
    words = {"none": "no guarantee", "tied": "one H in every layer", "untied": "may differ"}
    assert words[wanted] in str(given_)


@pytest.mark.parametrize("form", FORMS)
def test_a_linear_layer_takes_the_form_as_a_parametrisation(form):
    """The weight is the region's point near it, trains within, and is left behind as numbers."""
    layer = nn.Linear(5, 5, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(gaussian(4, 5))
    parametrize.register_parametrization(layer, "weight", parameterisation(form))
    map_ = layer.parametrizations.weight[0]
    condition = map_.condition(*layer.parametrizations.weight.parameters())
    assert map_.inside(layer.weight, condition)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        layer(gaussian(5, 5)).square().sum().backward()
        optimizer.step()
    H = layer.weight.detach().clone()
    assert map_.inside(H, map_.condition(*layer.parametrizations.weight.parameters()))
    parametrize.remove_parametrizations(layer, "weight")
    assert torch.equal(layer.weight, H)


@pytest.mark.parametrize("form", ["minus", "disc", "interval", "band", "clip-minus"])
def test_mixed_precision_does_not_leave_the_region(form):
    """Under autocast products are in bfloat16: not those that make H."""
    module = made(form, 8, 0.5, 0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        H = module()
    assert H.dtype == torch.float32
    assert torch.equal(H, module())
    # Parameters in half precision: H is formed in float32, then rounded, which `inside` counts.
    half = made(form, 8, 0.5, 0).bfloat16()
    assert half().dtype == torch.bfloat16
    assert half.inside().tolerance > module.inside().tolerance


@cases(
    "call, message",
    (lambda: parameterisation("clipped"), "choose one of free, plus, minus"),
    (lambda: parameterisation(3), "choose one of free"),
    (lambda: parameterisation("band", p=0.0), "0 < p < q <= 1"),
    (lambda: parameterisation("band", q=1.5), "0 < p < q <= 1"),
    (lambda: parameterisation("band", p=math.nan), "0 < p < q <= 1"),
    (lambda: parameterisation("disc", p=0.5), "no option 'p': it takes none"),
    (lambda: parameterisation("band", s=0.5), "no option 's': it takes p, q"),
    (lambda: value_projection("band", 3).start_at(torch.eye(2)), "width of H"),
    (lambda: value_projection("band", 3).start_at(torch.ones(2, 3)), "square"),
    (lambda: value_projection("band", 3).start_at(torch.full((3, 3), torch.nan)), "NaN"),
    (lambda: value_projection("band", 0), "at least 1"),
    (lambda: lasting_bound([AA], [], [[1.0], [2.0]]), "give one each"),
    (lambda: lasting_bound([AA], [np.eye(3)], [[1.0], [2.0]]), "do not go with X0"),
    (lambda: lasting_bound([AA], [np.eye(1)], [[2.0], [2.0]]), "all equal"),
)
def test_what_is_no_form_and_no_matrix_of_the_width_or_layer_is_refused(call, message):
    refuses(message, call)
