"""`reparameterise` on models of every make: one H behind the heads, in its region; it trains."""

import copy
import math
import re
from operator import attrgetter

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from oversmoothing import describe, reparameterise
from oversmoothing.experiments.forms.form import orthogonal_factor
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.model import Model
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import tiny_model
from tests.support.tiny_transformers import Own, Stack, batch, pixels, tiny, tokens

FORMS = ["plus", "minus", "clip-minus", "sigmoid-plus", "disc", "interval", "band"]


class Plain(Own):
    """The same block out of place, as training needs it."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mix(self.first(x))
        return x + self.think(self.second(x))


def stack() -> Stack:
    module = Stack().eval()
    for floor in module.floors:
        floor.__class__ = Plain
    return module


def encoder() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, 16, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


def made(kind: str) -> tuple[nn.Module, Model]:
    """A random model and its description."""
    module = {"described": stack, "encoder": encoder}.get(kind, lambda: tiny(kind))()
    return module, describe(module)


def inputs(kind: str) -> Tensor | dict[str, Tensor]:
    wanted = {"described": (2, 5, 6), "encoder": (2, 5, 12)}
    if kind in wanted:
        return torch.randn(wanted[kind], generator=torch.Generator().manual_seed(0))
    return batch(kind)


def loss_of(module: nn.Module, given: Tensor | dict[str, Tensor]) -> Tensor:
    output = module(**given) if isinstance(given, dict) else module(given)
    if not isinstance(output, Tensor):
        output = output[0]
    # A goal of the right shape that nothing reaches at once.
    return (output - torch.linspace(-1, 1, output.shape[-1])).square().mean()


KINDS = ["vit", "deit", "bert", "gpt2", "described", "encoder"]  # as many values as features
# A form knows nothing of the kind that it is put into: each of them once beside every other.
PAIRS = [*((kind, "band") for kind in KINDS), *(("vit", form) for form in FORMS if form != "band")]


@pytest.mark.parametrize(("kind", "form"), PAIRS)
def test_the_heads_products_are_h_behind_projections_that_sum_to_one(kind, form):
    """W_V,h W_O,h = P_h H^T, P_h orthogonal projections, sum P_h = 1; as read from the module, with
    whose own output `extract` compares attention times values, norms and sums."""
    module, model = made(kind)
    changed = reparameterise(model if kind == "described" else module, form)
    assert changed.layers == (1, 2)
    assert (changed.check()["region"] == "inside").all()
    for layer, H in zip(describe(module).layers, changed.H(), strict=True):
        heads = layer.heads.double()
        P = heads.W_V @ heads.W_V.mT
        d = P.shape[-1]
        tolerance = {"rtol": 0, "atol": 8 * d * 2**-23 * float(1 + H.abs().max())}
        torch.testing.assert_close(P @ P, P, **tolerance)
        torch.testing.assert_close(P.sum(0), torch.eye(d, dtype=torch.float64), **tolerance)
        torch.testing.assert_close(heads.W_V @ heads.W_O, P @ H.mT, **tolerance)
    assert max(extract(describe(module), inputs(kind)).av_error) < 1e-4


@cases(
    "kind, form",
    *((kind, "band") for kind in (*KINDS, "llama")),
    ("vit", "disc"),
    ("gpt2", "clip-minus"),
)
def test_it_trains_and_stays_in_its_region(kind, form):
    """AdamW: the loss falls, and H is inside; at a rate far too large it still is."""
    module, model = made(kind)
    changed = reparameterise(model if kind == "described" else module, form)
    given = inputs(kind)
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    losses = []
    for step in range(20):
        optimizer.zero_grad()
        with parametrize.cached():
            loss = loss_of(module, given)
            loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % 5 == 4:
            assert (changed.check()["region"] == "inside").all()
    assert losses[-1] < 0.9 * losses[0]
    optimizer.param_groups[0]["lr"] = 10.0
    for _ in range(3):
        optimizer.zero_grad()
        loss_of(module, given).backward()
        optimizer.step()
        status = changed.check()["region"]
        # V of the clip may become singular, and then nobody knows the spectrum.
        assert status.isin(["inside"] if form != "clip-minus" else ["inside", "cannot tell"]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_the_region_already_is_left_as_it_is(kind):
    """Orthonormal values and W_O = W_V^T H^T with H in the band: the output stays, to rounding."""
    module, model = made(kind)
    reparameterise(model if kind == "described" else module, "band").bake()
    given = inputs(kind)
    with torch.no_grad():
        before = loss_of(module, given)
        again = reparameterise(module, "band")
        torch.testing.assert_close(loss_of(module, given), before, rtol=1e-4, atol=1e-5)
    assert again.check()["excess"].max() < 0


def test_the_start_is_the_best_fit_to_the_heads_products():
    """Given Q, H^T = sum_h P_h W_V,h W_O,h is nearest to all products: free form, any other H."""
    module = tiny("vit")
    heads = describe(module).layers[0].heads.double()
    products = heads.W_V @ heads.W_O
    changed = reparameterise(module, "free")
    after = describe(module).layers[0].heads.double()
    P, H = after.W_V @ after.W_V.mT, changed.H()[0]
    torch.testing.assert_close(H.mT, (P @ products).sum(0), rtol=0, atol=1e-4)
    own = (P @ H.mT - products).square().sum()
    for seed in range(5):
        other = H + 0.01 * torch.randn(
            H.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        assert own < (P @ other.mT - products).square().sum()
    # Q: the orthonormal matrix nearest to W_V, no other turned one is.
    W = heads.W_V.transpose(0, 1).flatten(1)
    Q = after.W_V.transpose(0, 1).flatten(1)
    turn = orthogonal_factor(torch.eye(len(W), dtype=torch.float64) + 0.01 * W)
    assert (Q - W).norm() < (Q @ turn - W).norm()


def test_queries_and_keys_of_a_fused_projection_are_not_touched():
    for kind, name in (
        ("gpt2", "transformer.h.0.attn.c_attn"),
        ("described", "floors.0.mix.all_three"),
    ):
        module, model = made(kind)
        before = describe(module).layers[0].heads
        changed = reparameterise(model if kind == "described" else module, "band")
        after = describe(module).layers[0].heads
        assert torch.equal(before.W_Q, after.W_Q) and torch.equal(before.W_K, after.W_K)
        assert not torch.equal(before.W_V, after.W_V)
        loss_of(module, inputs(kind)).backward()
        gradient = module.get_submodule(name).parametrizations.weight.original.grad
        assert gradient is not None and (gradient != 0).any(0).all()
        assert changed.form == "band"


def test_shared_keys_and_values_leave_zeros_and_the_guarantee_says_so():
    """Llama with 2 groups of 2 heads: values of 16 features, tokens of 32: H has 16 zeros."""
    module = tiny("llama")
    changed = reparameterise(module, "band", p=0.6)
    assert "H has 16 eigenvalues 0" in changed.guarantee
    assert changed.guarantee.startswith("no guarantee")
    assert (changed.check()["region"] == "inside").all()
    for layer, H in zip(describe(module).layers, changed.H(), strict=True):
        total = layer.heads.total()
        values = torch.linalg.eigvalsh((total + total.mT) / 2)
        torch.testing.assert_close(total, total.mT, rtol=0, atol=1e-5)
        assert H.shape == (16, 16)
        assert int((values.abs() < 1e-5).sum()) == 16
        assert int(((values < -0.6 + 1e-5) & (values > -1 - 1e-5)).sum()) == 16
    whole = tiny("llama", num_key_value_heads=4)
    assert "no guarantee" not in reparameterise(whole, "band").guarantee


def test_only_the_chosen_layers_change():
    module, untouched = tiny("vit"), tiny("vit")
    changed = reparameterise(module, "band", layers=[2])
    first, second = describe(module).layers
    before = describe(untouched).layers
    assert changed.layers == (2,)
    assert torch.equal(first.heads.W_V, before[0].heads.W_V)
    assert not torch.equal(second.heads.W_V, before[1].heads.W_V)


@pytest.mark.parametrize("kind", ["vit", "gpt2", "encoder"])
def test_baked_weights_are_an_ordinary_model(kind):
    """The same weights, the names of an untouched model, none left parametrised."""
    module, _ = made(kind)
    names = list(module.state_dict())
    changed = reparameterise(module, "disc")
    given, twin = inputs(kind), copy.deepcopy(module)
    with torch.no_grad():
        before = loss_of(module, given)
        weights = {name: attrgetter(name)(module).clone() for name in names}
        assert changed.bake() is module
        assert all(torch.equal(module.state_dict()[name], weights[name]) for name in names)
        # Of an encoder without parametrisations PyTorch takes a fused kernel, which sums in another
        # order: some 100 roundings of float32 from each of two layers.
        torch.testing.assert_close(loss_of(module, given), before, rtol=200 * 2.0**-24, atol=0)
        # A copy made before keeps its form.
        assert torch.equal(loss_of(twin, given), before)
    assert sorted(module.state_dict()) == sorted(names)
    assert all(p.requires_grad for p in module.parameters())


def test_a_copy_and_a_state_dict_carry_the_parametrisation():
    module, other = tiny("vit"), tiny("vit", seed=1)
    for each in (module, other):
        reparameterise(each, "band")
    twin, given = copy.deepcopy(module), pixels()
    other.load_state_dict(module.state_dict())
    with torch.no_grad():
        assert loss_of(twin, given) == loss_of(module, given) == loss_of(other, given)
        # The copy's outputs follow the copy's values, not the original's.
        for parameter in module.parameters():
            parameter.zero_()
        assert torch.equal(loss_of(twin, given), loss_of(other, given))


def test_the_bound_is_of_the_measured_attention_and_stands_under_hfc_lfc():
    """Attention made nearly uniform keeps tau small: a floor; as it is, tau is large: void."""
    module = tiny("vit")
    changed = reparameterise(module, "band", p=0.8)
    assert "p / (q sqrt(3))" in changed.guarantee
    sharp = changed.bound(pixels())
    assert len(sharp) == 2 and all(each.void_at is not None for each in sharp)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if "q_proj" in name or ".query." in name:
                parameter.mul_(0.01)
    gentle = changed.bound(pixels())
    for each in gentle:
        assert each.void_at is None
        assert math.sqrt(3) * each.table["tau"].max() < 0.8
        assert (each.table["hfc_lfc"] >= each.floor).all() and each.floor > 0
    refuses("padded", reparameterise(tiny("gpt2"), "band").bound, tokens())


def test_the_guarantee_names_what_heads_leave_of_it():
    for heads, form, said in (
        (3, "disc", "where all heads attend alike.*none is known"),
        (1, "disc", "HFC/LFC does not tend to 0"), (3, "minus", "no guarantee"),
    ):  # fmt: skip
        module = tiny("vit", num_attention_heads=heads)
        assert re.match(said, reparameterise(module, form).guarantee)


def test_what_cannot_be_changed_is_refused_and_left_alone():
    module = tiny("vit")
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for layers, message in (([], "from 1 to 2"), ([0], "from 1 to 2"), ([1, 3], "from 1 to 2")):
        refuses(message, reparameterise, module, "band", layers=layers)
    refuses("choose one of free", reparameterise, module, "clipped")
    refuses("no option", lambda: reparameterise(module, "band", s=1))
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    reparameterise(module, "band")
    refuses("parametrised already", reparameterise, module, "disc")
    refuses("own ViT", lambda: reparameterise(tiny_model("vit"), "band"))
    refuses("no softmax", lambda: reparameterise(nn.Linear(2, 2), "band"))


def test_layer_scale_is_refused():
    module = stack()
    for floor in module.floors:
        floor.mix.register_forward_hook(lambda _, __, out: 0.5 * out)
    refuses("layer scale", reparameterise, module, "band")
