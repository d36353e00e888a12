"""The sign of a norm's gain flipped in real layers: T8d to the last bit, T8e by definition."""

import json

import numpy as np
import pytest
import torch

from oversmoothing import InputError, open_model
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.repeated import flips
from oversmoothing.experiments.repeated.flips import FROZEN, GAP, MEANS, NONE, flipped, sign_flips
from oversmoothing.theory.spectra.layer_discs import radii
from tests.support.families_of_today import inputs as inputs_of_today, today
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import pixels, tiny


def shifted(placement: str):
    """The project's ViT with shifts at its norms, in float64."""
    module = tiny_model(placement=placement)
    with torch.no_grad():
        for layer in module.blocks():
            layer.norm_attention.bias.normal_(generator=torch.Generator().manual_seed(1))
    return open_model(module, dtype=torch.float64)


@pytest.fixture(scope="module")
def pre():
    return sign_flips(shifted("pre"), random_pixels(6).double())


def test_pre_norm_without_query_and_key_biases_has_the_frozen_attention_exactly(pre):
    """T8d: (gamma, beta) -> -(gamma, beta) leaves A as it is, so that the frozen prediction is the
    effect; gamma alone changes A, and it is not."""
    for target in ("attention", "layer"):
        effect = pre.effects["gain and shift", target]
        predicted = pre.predictions["gain and shift", target, FROZEN]
        np.testing.assert_allclose(predicted, effect, atol=1e-9)
        gain = pre.effects["gain", target] - pre.predictions["gain", target, FROZEN]
        assert np.abs(gain).max() > 1e-4


def test_post_norm_sublayer_feels_nothing_of_gain_and_shift_to_the_last_bit():
    found = sign_flips(shifted("post"), random_pixels(4).double())
    assert np.abs(found.effects["gain and shift", "attention"]).max() == 0.0
    assert np.abs(found.effects["gain", "attention"]).max() > 1e-3
    assert found.gaps is None and "T8d" in found.words()
    assert set(name for _, _, name in found.predictions) == {NONE}
    assert found.picture.files["png"]


def test_the_flip_is_that_of_the_weights_and_is_taken_back(pre):
    """By the norm's output or by its parameters: the same stream."""
    model = shifted("pre")
    norm = model.layers[0].norm_attention
    X = torch.randn(1, 5, 16, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():
        before = norm.module(X)
        with flipped(norm, "gain"):
            by_output = norm.module(X)
        assert torch.equal(norm.module(X), before)
        norm.module.weight.neg_()
        torch.testing.assert_close(norm.module(X), by_output)


def test_the_gap_is_that_of_h_eff_and_of_its_negative(pre):
    """T8e on the definition: W^T diag(gamma) C / s, the mean attention, both signs."""
    model = shifted("pre")
    trace = extract(model, random_pixels(6).double(), dtype=torch.float64).traces[0]
    X, layer = trace.before[0].numpy(), model.layers[0]
    d = X.shape[1]
    C = np.eye(d) - 1 / d
    gamma = layer.norm_attention.gain.double().numpy()
    s = np.sqrt(((X @ C) ** 2).mean() + layer.norm_attention.eps)
    H = layer.heads.total().numpy().T @ np.diag(gamma) @ C / s
    A = trace.attention[0].numpy().mean(0)
    a = np.linalg.eigvals(A[:-1, :-1] - A[-1:, :-1])
    for k, sign in enumerate((1, -1)):
        consensus, quotient = radii(a, np.linalg.eigvals(sign * H))
        assert pre.gaps[0, 0, k] == pytest.approx(np.log(quotient / consensus), abs=1e-6)


def test_a_tie_of_h_eff_is_a_verdict_of_its_own():
    """T8e: H_eff negative but for the 0 of the centring ties under a causal A, -H_eff smooths."""
    module, d = tiny("gpt2").double(), 24
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for block in module.transformer.h:
            Q = torch.linalg.qr(torch.randn(d, d, generator=draw, dtype=torch.float64))[0]
            W = -(Q * torch.linspace(0.02, 0.3, d).double()) @ Q.T
            block.attn.c_attn.weight[:, 2 * d :] = W
            block.attn.c_proj.weight.copy_(torch.eye(d))
            block.ln_1.weight.fill_(1.0)
    found = sign_flips(open_model(module), torch.randint(3, 40, (8, 7), generator=draw))
    assert found.predicted_reversals.all()


def test_a_block_that_serves_two_layers_is_flipped_in_one_at_a_time():
    nets = [tiny("gpt2").double() for _ in range(2)]
    nets[0].transformer.h[1] = nets[0].transformer.h[0]
    nets[1].transformer.h[1].load_state_dict(nets[1].transformer.h[0].state_dict())
    texts = torch.randint(3, 40, (4, 7), generator=torch.Generator().manual_seed(0))
    tied, apart = (sign_flips(open_model(net), texts) for net in nets)
    for name, effect in apart.effects.items():
        np.testing.assert_allclose(tied.effects[name], effect, atol=1e-9)


def test_scores_are_taken_on_inputs_that_calibrated_nothing(pre):
    known, held = pre.split
    assert len(known) == len(held) == 3 and not set(known) & set(held)
    assert pre.scored["gain", "layer", MEANS].r2_within == pytest.approx(0.0, abs=1e-12)
    assert pre.scored["gain and shift", "layer", FROZEN].r2 > 1 - 1e-9
    table = pre.table
    assert list(table["layer"]) == [1, 2, 1, 2] and (table["reversed"] <= 1).all()
    gain = pre.effects["gain", "layer"].mean(0)
    np.testing.assert_allclose(table["effect_layer"][:2], gain)
    assert json.dumps(pre.to_json_object())
    assert "T8e predicts that the verdict is reversed" in pre.words()
    assert (("gain", "layer", GAP)) in pre.scored and pre.picture.files["png"]


def test_the_shares_are_those_of_all_layers_and_inputs():
    """10 inputs, 2 layers: 8 reversals are predicted, 5 seen, 3 both, so that 13 of 20 agree."""
    one, gaps = np.zeros((10, 2)), np.ones((10, 2, 2))
    one[:5, 0], gaps[2:, 0, 1] = -3.0, -1.0
    effects = {("gain", target): one for target in ("attention", "layer", "end")}
    predictions = {(*key, name): one for key in effects for name in (GAP, FROZEN)}
    said = flips.Flips("m", "pre", effects, predictions, np.ones((10, 2)), gaps, 0).words()
    assert "reversed in 40 % of the cases" in said and "really has the other sign in 25 %" in said
    assert "The two agree in 65 % (95 % interval 35 % to 86 %, 10 inputs)" in said
    assert "always guessing the more common answer is right in 75 %." in said


def test_biases_of_queries_and_keys_break_the_symmetry():
    """ViT has them: the frozen attention is no longer exact for (gamma, beta) either."""
    found = sign_flips(open_model(tiny("vit"), dtype=torch.float64), pixels(4))
    effect = found.effects["gain and shift", "attention"]
    error = effect - found.predictions["gain and shift", "attention", FROZEN]
    assert np.abs(error).max() > 1e-3


def test_what_has_no_sign_to_flip_is_refused():
    with pytest.raises(InputError, match="parallel FFN or norms behind"):
        sign_flips(open_model(today("Gemma 3")), inputs_of_today("Gemma 3", lengths=(6, 6)))
    refuses("give at least 4", lambda: sign_flips(shifted("pre"), random_pixels(3).double()))
    refuses("no inputs", lambda: sign_flips(shifted("pre"), []))
