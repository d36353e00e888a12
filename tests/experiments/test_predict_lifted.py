"""P6 on lifted tokens is exact where the layers are linear in the lift, and finite where not."""

import numpy as np
import pytest
import torch

from oversmoothing.experiments.ladder import linear as module
from oversmoothing.experiments.ladder.linear import Lift, lifted_state, linear_state
from oversmoothing.experiments.ladder.recording import Recording, log_energies
from tests.experiments.test_predict_ladder import linear_recording

FEW = 12  # functions


def recorded(states: torch.Tensor) -> Recording:
    """states [layers + 1, m, n, d]."""
    logs = torch.stack([log_energies(X) for X in states], dim=1).numpy()
    return Recording(states[0].float(), logs, states.float())


def lifted_recording(prefix: int, images: int = 60, n: int = 7, d: int = 5, layers: int = 3):
    """States made of lifted tokens and, for a prefix, of their mean; the recording and the lift."""
    generator = torch.Generator().manual_seed(2)
    place = 2 * torch.randn(n, d, generator=generator)
    X = place + torch.randn(images, n, d, generator=generator)
    X[:, :prefix] = place[:prefix]
    lift = Lift(X, FEW, seed=3)
    z = lift(X)[:, prefix:]
    states = [X]
    for _ in range(layers):
        M, R = torch.randn(2, d + FEW, d, generator=generator)
        front = z.mean(1, keepdim=True) @ R
        tokens = z @ M + front
        B = torch.randn(n, d, generator=generator)
        states.append(B + torch.cat([front.expand(-1, prefix, -1), tokens], dim=1))
    return recorded(torch.stack(states)), lift


@pytest.fixture
def _unpenalised(monkeypatch):
    monkeypatch.setattr(module, "LIFTED_PENALTY", 1e-9)
    monkeypatch.setattr(module, "IMAGE_PENALTIES", (1e-6,))


@pytest.mark.usefixtures("_unpenalised")
@pytest.mark.parametrize("prefix", [0, 1, 2])
def test_p6_lifted_is_exact_where_the_layers_are_linear_in_the_lift(prefix):
    known, _ = lifted_recording(prefix)
    found = lifted_state(known, prefix, functions=FEW, seed=3)
    size = float(known.states.abs().max())
    # float32 states; the lifted features of five coordinates are ill conditioned.
    torch.testing.assert_close(
        torch.stack(found.states(known.start)), known.states[1:], atol=2e-3 * size, rtol=0
    )
    logs = found.logs(known.start).reshape(len(known), -1, 2)
    np.testing.assert_allclose(logs, known.logs, atol=1e-2)
    np.testing.assert_allclose(found.predict(known.start), known.change, atol=3e-2)
    # What is linear in the lift is not linear in the tokens.
    states = linear_state(known), found
    plain, own = (np.square(each.predict(known.start) - known.change).sum() for each in states)
    assert plain > 10 * own


@pytest.mark.usefixtures("_unpenalised")
def test_p6_lifted_holds_all_that_p6_does():
    known = linear_recording(images=60)
    logs = lifted_state(known, functions=FEW).logs(known.start).reshape(len(known), -1, 2)
    np.testing.assert_allclose(logs, known.logs, atol=1e-3)


def test_the_lift_is_centred_at_each_position_and_drawn_by_the_seed():
    known, lift = lifted_recording(1)
    assert lift(known.start).shape == (len(known), 7, 5 + FEW)
    assert float(lift(known.start).mean(0).abs().max()) < 1e-5
    again, other = Lift(known.start, FEW, seed=3), Lift(known.start, FEW, seed=4)
    assert torch.equal(again(known.start), lift(known.start))
    assert not torch.equal(other.G, lift.G)


def test_images_all_alike_are_predicted_by_their_means():
    """Nothing varies: every operator is zero, and P0' is what is left."""
    states = torch.randn(4, 1, 6, 3, generator=torch.Generator().manual_seed(1)).expand(4, 8, 6, 3)
    known = recorded(states)
    found = lifted_state(known, 1, functions=FEW)
    predicted = found.predict(known.start)
    np.testing.assert_allclose(predicted, known.change, atol=1e-4)


@pytest.mark.parametrize("prefix", [0, 1])
def test_the_cost_counts_every_product(prefix):
    known, _ = lifted_recording(prefix)
    found = lifted_state(known, prefix, functions=FEW)
    n, d, layers, size = 7, 5, 3, 5 + FEW
    lift, moved = n * d * FEW, layers * (n - prefix) * size * d
    image = layers * size * d * (1 + prefix)
    reading = (layers + 1) * 2 * n * d + 2 * (layers + 1) * layers
    assert found.cost() == lift + moved + image + reading
