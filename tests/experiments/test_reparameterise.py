"""H = Q diag(+-psi^2) Q^T: exactly symmetric, the declared spectrum, and the verdicts of T2, T3."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing.experiments.digits.reparameterise import (
    FORMS,
    SignedProjection,
    orthogonal_factor,
    value_projection,
)
from oversmoothing.theory.spectra.spectrum import attention_spectrum, value_projection_spectrum
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.dominance import dominance, safe_interval
from tests.support.tiny_models import softmax_attention

seeds = st.integers(0, 2**32 - 1)
widths = st.integers(1, 24)


def made(form: str, width: int, scale: float, seed: int, **how: torch.dtype) -> torch.nn.Module:
    module = value_projection(form, width)
    module.initialise(scale, torch.Generator().manual_seed(seed))
    return module.to(**how)


def signed(form: str, width: int, scale: float, seed: int) -> SignedProjection:
    module = made(form, width, scale, seed, dtype=torch.float64)
    assert isinstance(module, SignedProjection)
    return module


def gaussian(seed: int, d: int) -> torch.Tensor:
    return torch.randn(d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(seed=seeds, d=widths, form=st.sampled_from(["plus", "minus"]))
@settings(max_examples=40, deadline=None)
def test_signed_forms_are_symmetric_with_the_declared_spectrum(
    seed: int, d: int, form: str
) -> None:
    module = signed(form, d, 1.0, seed)
    H = module().detach()
    assert torch.equal(H, H.T)
    declared = module.eigenvalues().detach().sort().values
    torch.testing.assert_close(torch.linalg.eigvalsh(H), declared, rtol=0, atol=1e-12)
    sign = 1 if form == "plus" else -1
    assert (sign * declared > 0).all()


@given(seed=seeds, d=widths)
@settings(max_examples=40, deadline=None)
def test_q_undoes_every_positive_triangular_factor(seed: int, d: int) -> None:
    """Q(O T) = O for orthogonal O and T upper triangular with a positive diagonal."""
    q = orthogonal_factor(gaussian(seed, d))
    torch.testing.assert_close(q.T @ q, torch.eye(d, dtype=torch.float64), rtol=0, atol=1e-12)
    triangle = gaussian(seed ^ 1, d).triu(1) / d + torch.eye(d, dtype=torch.float64)
    torch.testing.assert_close(orthogonal_factor(q @ triangle), q, rtol=0, atol=1e-9)


def test_q_moves_smoothly_along_a_path() -> None:
    """A turning matrix: LAPACK's own Q flips a column when the corner entry changes its sign."""
    triangle = gaussian(0, 3).triu(1) + torch.eye(3, dtype=torch.float64)
    path = []
    for angle in torch.linspace(0, 2 * torch.pi, 401, dtype=torch.float64):
        turn = torch.eye(3, dtype=torch.float64)
        turn[0, 0] = turn[1, 1] = angle.cos()
        turn[1, 0], turn[0, 1] = angle.sin(), -angle.sin()
        path.append(orthogonal_factor(turn @ triangle))
    jumps = [float((b - a).abs().max()) for a, b in pairwise(path)]
    assert max(jumps) < 0.02


@given(seed=seeds, d=widths, n=st.integers(2, 9))
@settings(max_examples=60, deadline=None)
def test_plus_smooths_under_every_attention(seed: int, d: int, n: int) -> None:
    """All h_j > 0: consensus dominates, complex attention spectra included (T3)."""
    h = value_projection_spectrum(signed("plus", d, 3.0, seed)().detach().numpy()).values
    assert dominance(attention_spectrum(softmax_attention(seed, n)).values, h).margin > 0


@given(seed=seeds, d=widths, n=st.integers(2, 9))
@settings(max_examples=60, deadline=None)
def test_minus_with_psi_squared_up_to_one_never_smooths(seed: int, d: int, n: int) -> None:
    """All h_j in [-1, 0): a non-consensus mode dominates under every attention (T3d)."""
    h = value_projection_spectrum(signed("minus", d, 1.0, seed)().detach().numpy()).values
    assert dominance(attention_spectrum(softmax_attention(seed, n)).values, h).margin < 0


def test_minus_beyond_the_safe_interval_smooths_and_is_not_clipped() -> None:
    """psi^2 = 3 under uniform attention, whose safe interval is (-2, 0): ViT- is no guarantee."""
    module = signed("minus", 3, 1.0, 0)
    with torch.no_grad():
        module.psi.fill_(3**0.5)
    a = attention_spectrum(np.full((4, 4), 0.25)).values
    assert safe_interval(a) == pytest.approx(2.0)
    result = dominance(a, value_projection_spectrum(module().detach().numpy()).values)
    assert result.rho_consensus == pytest.approx(2.0)
    assert result.margin > 0.9


@given(seed=seeds, scale=st.floats(0.01, 2.0), form=st.sampled_from(sorted(FORMS)))
@settings(max_examples=30, deadline=None)
def test_training_starts_with_the_spectrum_within_the_scale(
    seed: int, scale: float, form: str
) -> None:
    H = made(form, 64, scale, seed)().detach().double()
    radius = float(torch.linalg.eigvals(H).abs().max())
    # Finite Gaussian matrices overshoot the circle of the circular law a little.
    assert radius <= (1.35 if form == "free" else 1.0 + 1e-5) * scale
    assert radius > 0.5 * scale


@pytest.mark.parametrize("form", FORMS)
def test_every_parameter_receives_a_gradient(form: str) -> None:
    module = made(form, 8, 0.5, 0)
    weight = torch.randn(8, 8, generator=torch.Generator().manual_seed(1))
    (module() * weight).sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all() and (parameter.grad != 0).any(), name


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InputError, match="choose one of free, plus, minus"):
        value_projection("clipped", 4)
