"""Growth of differences between tokens: derivatives of real blocks, closed forms, differences."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from oversmoothing import describe, open_model
from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.repeated.blocks import (
    BlockMap,
    at_consensus,
    check_consensus,
    jvp,
    plain_attention,
    recorded,
)
from oversmoothing.experiments.repeated.growth import (
    consensus_step,
    exponents,
    linearised,
    loop_laws,
)
from oversmoothing.experiments.repeated.stability import holds_to, stability
from tests.support.architectures import built
from tests.support.cases import cases
from tests.support.families_of_today import inputs as inputs_of_today, today
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import Stack, pixels, tiny, tokens

AGREE = 1e-6


def signed_gains(module: nn.Module) -> nn.Module:
    """Every gain of a norm takes the sign of a coin."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.ndim == 1 and name.endswith("weight"):
                coins = torch.rand(parameter.shape, generator=generator) < 0.5
                parameter[coins] *= -1
    return module


def opened(kind: str):
    """(model in float64, a batch): Pre-LN, Post-LN, RMSNorm, masks, rotary positions, biases."""
    if kind in ("own-pre", "own-post"):
        placement = kind.removeprefix("own-")
        return open_model(tiny_model(placement=placement), dtype=torch.float64), random_pixels(2)
    if kind == "named":
        # LayerNorm in front of attention, RMSNorm in front of the FFN, residuals added in place.
        module = signed_gains(Stack()).double()
        generator = torch.Generator().manual_seed(3)
        X = torch.randn(2, 5, 6, generator=generator).double()
        return describe(module, modality="vision"), X
    model = open_model(signed_gains(tiny(kind)), dtype=torch.float64)
    return model, pixels() if kind in ("vit", "deit") else tokens((6, 6))


KINDS = ("vit", "bert", "gpt2", "llama", "named", "own-pre", "own-post")
# The library's RMSNorm rounds to float32 whatever its input: differences over 1e-5 show it.
ROUNDED = {"llama": 32 * np.finfo(np.float32).eps / 1e-5}


def directions(X: torch.Tensor, seed: int = 0) -> torch.Tensor:
    return torch.randn(X.shape, generator=torch.Generator().manual_seed(seed)).to(X)


@pytest.mark.parametrize("kind", KINDS)
def test_jvp_closed_form_and_differences_agree_at_consensus(kind):
    """T8c, to 1e-6 relative in float64, for gains of either sign, with biases and an FFN."""
    model, batch = opened(kind)
    found = recorded(model, batch)
    with torch.no_grad(), plain_attention(model.module):
        for f, X in zip(found.blocks, found.states, strict=False):
            check_consensus(f, X)
            Z, D = at_consensus(X), directions(X)
            step = 1e-5 * float(Z.abs().max())
            derivative = jvp(f, Z, D)
            differences = (f(Z + step * D) - f(Z - step * D)) / (2 * step)
            pairs = zip(Z[:, 0], D.numpy(), strict=True)
            closed = torch.tensor(np.stack([linearised(f, c, X.shape[1])(d) for c, d in pairs]))
            size = float(torch.linalg.vector_norm(derivative))
            for other, allowed in ((differences, ROUNDED.get(kind, AGREE)), (closed, AGREE)):
                assert float(torch.linalg.vector_norm(derivative - other)) < allowed * size
            image = consensus_step(f.layer, Z[:, 0])
            torch.testing.assert_close(image, f(Z)[:, 0], rtol=AGREE, atol=AGREE)


@pytest.fixture(scope="module")
def measured():
    model, batch = opened("vit")
    return stability(model, batch, seed=1)


def test_real_small_differences_grow_as_the_jvp_says(measured):
    """At the streams, for every kind of direction, and carried through the layers."""
    model, batch = opened("vit")
    small = stability(model, batch, size=1e-6, seed=1)
    growth = small.arrays["growth"][:, :, -1]
    np.testing.assert_allclose(small.arrays["observed"], growth, atol=1e-4)
    np.testing.assert_allclose(small.arrays["run"], small.arrays["tangent"], atol=1e-3)
    far = stability(model, batch, size=0.5, seed=1)
    assert np.abs(far.arrays["observed"] - growth).max() > 1e-2


def test_the_closed_form_is_exact_at_consensus_and_holds_until_r2_falls_below_9_10(measured):
    table = measured.tables["distances"].rows.set_index("distance")
    assert table.loc[0.0, "r2"] > 1 - 1e-9 and table.loc[0.0, "median_error"] < 1e-9
    assert list(table["median_error"]) == sorted(table["median_error"])
    assert table.loc[1.0, "r2"] < 0.9
    assert holds_to(measured.tables["distances"].rows) < 1.0
    distances = pd.DataFrame({"distance": [0.0, 0.1, 0.3, 1.0], "r2": [1.0, 0.9, 0.89, 0.95]})
    assert holds_to(distances) == 0.1
    assert np.isnan(holds_to(distances.iloc[2:]))


def test_exponents_are_the_singular_values_of_the_product_of_derivatives():
    """Against all (n d) x (n d) Jacobians, multiplied."""
    model, batch = opened("own-pre")
    found = recorded(model, batch[:1])
    with plain_attention(model.module):
        generator = torch.Generator().manual_seed(0)
        leading, moved = exponents(found.blocks, found.states, generator)
        n, d = found.states[0].shape[1:]
        P = torch.eye(n, dtype=torch.float64) - 1 / n
        across = torch.kron(P, torch.eye(d, dtype=torch.float64))
        product = across
        for f, X in zip(found.blocks, found.states, strict=False):
            J = torch.func.jacfwd(lambda x, f=f: f(x[None])[0])(X[0]).reshape(n * d, n * d)
            product = across @ J.detach() @ across @ product
    top = torch.linalg.svdvals(product.detach())[: moved.shape[1]].log()
    short = top - leading.sum(0)[0]
    assert bool((short > -1e-9).all() and (short < 10 * moved[0].abs() + 1e-9).all())
    assert float(moved[0, 0].abs()) < 0.05


def test_a_looped_stack_that_outgrows_the_floats_is_said_to_grow():
    """The first block of ModernBERT has no norm: equal tokens grow geometrically."""
    model = describe(built("ModernBERT", "sdpa").double())
    result = stability(model, tokens((6,)))
    assert np.isfinite(result.law.rate) and result.law.power > 1.5 and result.law.loops < 400
    assert "a round" in result.words()


def test_the_looped_stack_follows_its_law_near_consensus():
    """Small differences in the model's own looped blocks against loop_laws, which never looped
    them: the slope of log HFC/LFC over the last rounds."""
    model, batch = opened("own-pre")
    found = recorded(model, batch[:1])
    X = found.states[0]
    rounds = 400
    law = loop_laws(found.blocks, X[:1].mean(1), X.shape[1], rounds)[0]
    E = X - X.mean(1, keepdim=True)
    Z = at_consensus(X) + 1e-9 * E
    logs = []
    with torch.no_grad(), plain_attention(model.module):
        for _ in range(rounds):
            for f in found.blocks:
                Z = f(Z)
            logs.append(float(log_ratio(Z)[0]))
    # Over the last half, of a power: the exponent.
    slope = (logs[-1] - logs[rounds // 2 - 1]) / np.log(2)
    assert law.polynomial and abs(law.power - 1) < 0.1
    assert slope == pytest.approx(law.exponent, abs=0.1)


def test_eager_attention_which_rounds_to_float32_grows_as_the_formula_says():
    """The library's eager softmax is of float32 in a float64 model: rows sum to 1 to 1e-7."""
    plain, eager = (
        stability(open_model(tiny("llama", each), dtype=torch.float64), tokens((6,))).arrays
        for each in ("sdpa", "eager")
    )
    for name in ("along", "closed", "many_actual", "exponents"):
        np.testing.assert_allclose(eager[name], plain[name], atol=AGREE)


def test_tables_words_picture_and_json_say_the_same(measured):
    frame = measured.table
    each = measured.arrays["many_observed"]
    assert frame["observed_spread"].to_numpy() == pytest.approx(each.std(-1, ddof=1).mean(-1))
    assert list(frame["layer"]) == [1, 2] and np.isfinite(frame["across"]).all()
    record = measured.to_json_object()
    assert record["layers"][0]["across"] == pytest.approx(frame["across"][0])
    assert "layers" in measured.words() and "2 inputs" in measured.text()
    # Differences that shrink less than what tokens share gain on it, and do not grow.
    gain = int((frame["observed"] > frame["mean"]).sum())
    assert f"and in {gain} they gain on what tokens share" in " ".join(measured.words().split())
    assert measured.picture.files["png"]


def test_equal_tokens_have_no_own_direction_and_the_others_are_measured():
    torch.manual_seed(0)
    module = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=True), 2
    )
    found = stability(open_model(module, dtype=torch.float64), torch.ones(1, 4, 8).double())
    assert np.isnan(found.arrays["growth"][0, :, :, 0]).all()
    assert np.isfinite(found.arrays["growth"][0, :, :, 1]).all()


class Rounded(torch.autograd.Function):
    """An autograd function without jvp."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def changed(kind: str):
    module = Stack(depth=1).double()
    block = module.floors[0]
    whole = block.forward

    def forward(x):
        y = whole(x)
        if kind == "shape":
            return y[:, 1:]
        if kind == "positions":
            return y + 0.01 * torch.arange(y.shape[1]).to(y)[:, None]
        return Rounded.apply(y)

    found = describe(module)
    block.forward = forward
    X = module.embed(torch.randn(1, 5, 6, generator=torch.Generator().manual_seed(0)).double())
    return BlockMap(1, found.layers[0], (X.detach(),), {}, {}, module), X.detach()


@cases(
    "kind, ask, said",
    ("shape", lambda f, X: f(X), r"takes a stream \(1, 5, 12\) and gives \(1, 4"),
    ("positions", check_consensus, "makes equal tokens different, .* no inv"),
    ("function", lambda f, X: jvp(f, X, directions(X)), "has no forward-mode derivative .*: give"),
)
def test_a_block_that_growth_cannot_be_asked_of_is_refused(kind, ask, said):
    refuses(f"layer 1 {said}", lambda: ask(*changed(kind)))


def test_sinks_have_no_consensus():
    """Rows of attention that sum to less than 1 make equal tokens different."""
    found = recorded(open_model(today("GPT-OSS")), inputs_of_today("GPT-OSS", lengths=(6, 6)))
    with torch.no_grad():
        given = found.blocks[0], found.states[0]
        refuses("makes equal tokens different", check_consensus, *given)


@cases(
    "ask, said",
    (lambda: stability(*opened("named"), size=0.0), "size is 0.0: give a share"),
    (lambda: stability(opened("named")[0], []), "no inputs"),
    (lambda: stability(opened("named")[0], torch.zeros(1, 1, 6).double()), "single token"),
    (lambda: stability(*opened("named")), r"no derivative in reverse mode .*: its exponents"),
    (lambda: stability(open_model(tiny("vit")), pixels()), "float32, in which small differences"),
    (
        lambda: recorded(open_model(tiny("vit"), dtype=torch.bfloat16), pixels()),
        "bfloat16, in which differences drown",
    ),
    (
        lambda: recorded(open_model(tiny("bert"), dtype=torch.float64), tokens((6, 4))),
        "different lengths",
    ),
)
def test_settings_and_inputs_that_cannot_be_used_are_refused(ask, said):
    refuses(said, ask)
