"""Attention is read from a pass of any code, or refused by layer and cause."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing import describe, inspect
from oversmoothing.experiments.inspection import inspect as unread
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.inspect import seen
from oversmoothing.experiments.models.describe import NotReadError, tensors
from oversmoothing.experiments.models.reader import UNSEEN
from oversmoothing.simulations.state_metrics import stream_log_ratio
from tests.support.architectures import BUILDS, SIZES, drawn, rows, small_config
from tests.support.cases import cases
from tests.support.refusals import refuses

TABLE = Path(__file__).parents[2] / "docs" / "guide" / "architectures.csv"
D, HEADS, N = 12, 3, 9
R = D // HEADS


class Block(nn.Module):
    """Pre-LN by hand; variants replace one of its steps."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v, self.o, self.gate = (nn.Linear(D, D) for _ in range(5))
        self.up, self.down = nn.Linear(D, 20), nn.Linear(20, D)
        self.size = nn.Parameter(torch.rand(D) + 0.5)

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], HEADS, R).transpose(1, 2)

    def weights(self, y: Tensor) -> Tensor:
        q, k = self.split(self.q(y)), self.split(self.k(y))
        return (q @ k.mT / R**0.5).softmax(-1)

    def values(self, y: Tensor) -> Tensor:
        return self.split(self.v(y))

    def joined(self, z: Tensor) -> Tensor:
        return z.transpose(1, 2).flatten(2)

    def attend(self, y: Tensor) -> Tensor:
        return self.o(self.joined(self.weights(y) @ self.values(y)))

    def ffn(self, y: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(y)))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.one(x))
        return x + self.ffn(self.two(x))


class Net(nn.Module):
    def __init__(self, kind: type[Block]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Linear(5, D)
        self.blocks = nn.ModuleList(kind() for _ in range(2))
        with torch.no_grad():
            for p in self.parameters():
                p.add_(0.3 * torch.randn_like(p))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return x


def inputs() -> Tensor:
    return torch.randn(3, 7, 5, generator=torch.Generator().manual_seed(1))


def variant(**steps: Callable[..., Tensor]) -> type[Block]:
    return type("Variant", (Block,), steps)


def by_einsum(b: Block, y: Tensor) -> Tensor:
    q, k, v = (f(y).unflatten(-1, (HEADS, R)) for f in (b.q, b.k, b.v))
    A = (torch.einsum("bihr,bjhr->bhij", q, k) / R**0.5).softmax(-1)
    return b.o(torch.einsum("bhij,bjhr->bihr", A, v).flatten(2))


def of_one_value(b: Block, y: Tensor) -> Tensor:
    """Multi-query: all heads share the first one's values."""
    z = b.weights(y).flatten(1, 2) @ b.v(y)[..., :R]
    return b.o(b.joined(z.view(len(y), HEADS, -1, R)))


def post(b: Block, x: Tensor) -> Tensor:
    x = b.one(x + b.attend(x))
    return b.two(x + b.ffn(x))


def post_by_hand(b: Block, x: Tensor) -> Tensor:
    """A LayerNorm in operations of its own, as DeBERTa's."""

    def norm(own: nn.LayerNorm, y: Tensor) -> Tensor:
        mean = y.mean(-1, keepdim=True)
        square = (y - mean).pow(2).mean(-1, keepdim=True)
        return own.weight * ((y - mean) / torch.sqrt(square + own.eps)) + own.bias

    x = norm(b.one, x + b.attend(x))
    return norm(b.two, x + b.ffn(x))


def post_rms(b: Block, x: Tensor) -> Tensor:
    x = functional.rms_norm(x + b.attend(x), (D,), b.size)
    return functional.rms_norm(x + b.ffn(x), (D,), b.size)


def rms_by_hand(b: Block, x: Tensor) -> Tensor:
    x = x + b.attend(b.size * x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt())
    return x + b.ffn(b.two(x))


def in_place(b: Block, x: Tensor) -> Tensor:
    x += b.attend(b.one(x))
    x += b.ffn(b.two(x))
    return x


def looped(b: Block, y: Tensor) -> Tensor:
    q, k, v = (b.split(f(y)) for f in (b.q, b.k, b.v))
    parts = [(q[:, h] @ k[:, h].mT / R**0.5).softmax(-1) @ v[:, h] for h in range(HEADS)]
    return b.o(torch.cat(parts, -1))


def summed(b: Block, y: Tensor) -> Tensor:
    """Each head with its own rows of W_O."""
    A, v = b.weights(y), b.values(y)
    W = b.o.weight.T.reshape(HEADS, R, D)
    return sum((A[:, h] @ v[:, h] @ W[h] for h in range(HEADS)), b.o.bias)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, R, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        later = torch.ones(x.shape[1], x.shape[1]).triu(1) > 0
        A = (self.q(x) @ self.k(x).mT * R**-0.5).masked_fill(later, -math.inf).softmax(-1)
        return functional.dropout(A, 0.1, self.training) @ self.v(x)


class Heads(Block):
    """A module a head, as courses write it."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(HEADS))

    def attend(self, y: Tensor) -> Tensor:
        return self.o(torch.cat([head(y) for head in self.heads], -1))


class Own(Block):
    """Around PyTorch's attention, whose three projections are one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.MultiheadAttention(D, HEADS, batch_first=True)

    def attend(self, y: Tensor) -> Tensor:
        return self.mix(y, y, y, need_weights=False)[0]


def written_out(b: Block, y: Tensor) -> Tensor:
    scores = b.split(b.q(y)) @ b.split(b.k(y)).mT / R**0.5
    shares = (scores - scores.amax(-1, keepdim=True)).exp()
    return shares / shares.sum(-1, keepdim=True)


def weighted(b: Block, x: Tensor) -> Tensor:
    x = x.add(b.attend(b.one(x)), alpha=0.4)
    return torch.addcmul(x, b.size, b.ffn(b.two(x)))


def of_cls(b: Block, x: Tensor) -> Tensor:
    x = torch.cat([x[:, :1] + b.attend(b.one(x))[:, :1], x[:, 1:]], 1)
    return x + b.ffn(b.two(x))


READ: dict[str, tuple[type[Block], str]] = {
    "by hand": (Block, "pre"),
    "einsum": (variant(attend=by_einsum), "pre"),
    "one value for all heads": (variant(attend=of_one_value), "pre"),
    "a loop over heads": (variant(attend=looped), "pre"),
    "a module a head": (Heads, "pre"),
    "a softmax written out": (variant(weights=written_out), "pre"),
    "PyTorch's attention": (Own, "pre"),
    "what is taken off": (variant(
        forward=lambda b, x: (y := x - b.attend(b.one(x))) - b.ffn(b.two(y))), "pre"),
    "weights within the sums": (variant(forward=weighted), "pre"),
    "addcmul": (variant(forward=lambda b, x: (
        y := torch.addcmul(x, b.size, b.attend(b.one(x)))) + b.ffn(b.two(y))), "pre"),
    "layer scale": (variant(attend=lambda b, y: b.size * Block.attend(b, y)), "pre"),
    "a residual multiplier": (variant(attend=lambda b, y: 0.4 * Block.attend(b, y)), "pre"),
    "capped logits": (variant(weights=lambda b, y: (
        2 * torch.tanh(b.split(b.q(y)) @ b.split(b.k(y)).mT / 2)).softmax(-1)), "pre"),
    "Post-LN": (variant(forward=post), "post"),
    "Post-LN written out": (variant(forward=post_by_hand), "post"),
    "Post-LN by RMS": (variant(forward=post_rms), "post"),
    "Post-LN, then scaled": (variant(forward=lambda b, x: 1.5 * post(b, x)), "post"),
    "in parallel": (variant(
        forward=lambda b, x: x + b.attend(b.one(x)) + b.ffn(b.two(x))), "parallel"),
    "norms behind": (variant(
        forward=lambda b, x: (y := x + b.two(b.attend(b.one(x)))) + b.ffn(y)), "pre"),
    "in place": (variant(forward=in_place), "pre"),
    "RMS by hand": (variant(forward=rms_by_hand), "pre"),
    "a gated FFN": (variant(ffn=lambda b, y: b.down(b.up(y) * b.up(y).sigmoid())), "pre"),
    "adapters beside the weights": (variant(
        values=lambda b, y: b.split(b.v(y) + 2 * b.down(b.up(y))),
        attend=lambda b, y: b.o(z := b.joined(b.weights(y) @ b.values(y))) + b.down(b.up(z))),
        "pre"),
    "attention alone": (variant(forward=lambda b, x: x + b.attend(b.one(x))), "pre"),
    "numbers added": (variant(ffn=lambda b, y: (Block.ffn(b, y), y.sum() + y.sum())[0]), "pre"),
}  # fmt: skip


# Of those whose A is by softmax(q k^T / sqrt(r)): what H is multiplied with.
OWN = dict.fromkeys(
    ("by hand", "einsum", "a loop over heads", "a softmax written out", "addcmul", "layer scale",
     "in place", "attention alone"), 1.0,
) | {"what is taken off": -1.0, "weights within the sums": 0.4}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_within_the_form_is_read_and_recomputed(name):
    """The heads' products sum to what the module's own attention gives of one token alone."""
    kind, placement = READ[name]
    net, X = Net(kind).eval(), inputs()
    model = describe(net)
    found = extract(model, X)
    assert max(found.av_error) < 1e-5
    assert {layer.placement for layer in model.layers} == {placement}
    with torch.no_grad():
        torch.testing.assert_close(found.traces[-1].after_ffn, net(X), atol=1e-4, rtol=1e-4)
        own = Block.weights(net.blocks[0], net.blocks[0].one(net.embed(X)))
    if name in OWN:
        torch.testing.assert_close(found.traces[0].attention, own, atol=1e-6, rtol=0)
        scale = net.blocks[0].size if name in ("layer scale", "addcmul") else OWN[name]
        H = net.blocks[0].v.weight.T.double() @ net.blocks[0].o.weight.T.double() * scale
        torch.testing.assert_close(model.layers[0].heads.total(), H.detach(), atol=1e-5, rtol=0)
        assert model.layers[0].plain and model.layers[0].scaling == pytest.approx(R**-0.5)


@pytest.mark.parametrize("name", ["Post-LN", "Post-LN written out", "Post-LN, then scaled"])
def test_a_norm_behind_the_last_layer_is_no_part_of_it(name):
    """Before any training a norm of a norm has the form of one."""
    net, behind = Net(READ[name][0]).eval(), nn.LayerNorm(D)
    for norm in (block.two for block in net.blocks):
        norm.reset_parameters()
    nn.init.constant_(behind.weight, 2.0)
    model, X = describe(nn.Sequential(net, behind)), torch.randn(3, 7, 5)
    torch.testing.assert_close(extract(model, X).traces[-1].after_ffn, net(X), atol=1e-5, rtol=0)
    assert model.layers[-1].norm_ffn.eps == pytest.approx(1e-5, rel=1e-3)


# Of two layers that do the same with other numbers: what is changed in the second one.
OTHERWISE: dict[str, tuple[str, Callable[[Block], object]]] = {
    "biases that the first lacks": ("by hand", lambda b: [b.v.bias.fill_(3), b.o.bias.fill_(2)]),
    "gains of norms": ("by hand", lambda b: [b.one.weight.fill_(-3), b.one.bias.fill_(1e-3)]),
    "a layer scale": ("layer scale", lambda b: b.size.fill_(-4)),
    "another epsilon": ("by hand", lambda b: setattr(b.one, "eps", 5e-3)),
    "no FFN to speak of": ("by hand", lambda b: [b.down.weight.zero_(), b.up.weight.zero_()]),
    "queries as keys": ("by hand", lambda b: [setattr(b, "k", b.q), setattr(b, "v", b.q)]),
    "values as one weight with the output": ("by hand", lambda b: setattr(b, "o", b.v)),
    "a permuted weight": ("einsum", lambda b: b.v.weight.copy_(b.v.weight.flip(0))),
}  # fmt: skip


@pytest.mark.parametrize("change", OTHERWISE)
def test_a_layer_that_does_the_same_as_the_first_is_read_by_its_own_numbers(change):
    name, make = OTHERWISE[change]
    net = Net(READ[name][0]).eval()
    with torch.no_grad():
        for p in (net.blocks[0].v.bias, net.blocks[0].o.bias, net.blocks[0].one.bias):
            p.zero_()
        make(net.blocks[1])
    model = describe(net)
    assert max(extract(model, inputs()).av_error) < 1e-5
    for block, layer in zip(net.blocks, model.layers, strict=True):
        scale = block.size if name == "layer scale" else 1.0
        H = block.v.weight.T.double() @ block.o.weight.T.double() * scale
        torch.testing.assert_close(layer.heads.total(), H.detach(), atol=1e-5, rtol=1e-6)
        torch.testing.assert_close(layer.norm_ffn.gain, block.two.weight.detach())
        norm = layer.norm_attention
        torch.testing.assert_close(norm.gain, block.one.weight.detach())
        shift = torch.zeros(D) if norm.shift is None else norm.shift
        torch.testing.assert_close(shift, block.one.bias.detach(), atol=1e-6, rtol=1e-6)
        assert norm.eps == pytest.approx(block.one.eps)


def test_tokens_that_the_last_ffn_alone_mixes_are_noticed():
    """By a matrix over tokens, which is 1 in the layers before."""

    def ffn(b, y):
        return b.down(functional.gelu(b.up(b.tokens @ y)))

    net = Net(variant(ffn=ffn)).eval()
    net.blocks.append(type(net.blocks[0])().eval())
    for block in net.blocks:
        block.register_buffer("tokens", torch.eye(N))
    net.blocks[-1].tokens += 0.1
    X = torch.randn(2, N, 5, generator=torch.Generator().manual_seed(1))
    refuses("mixes tokens", describe, net, X)


def test_what_a_layer_is_found_to_be_is_held_against_the_next():
    """A number and a gain that is taken twice, both 1 in all layers but the last: their maps and
    gains are those that are stored, and those of the last are not."""

    def values(b, y):
        return b.split(b.v(y) * b.number)

    def forward(b, x):
        normed = x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        x = x + b.attend(b.size * (b.size * normed))
        return x + b.ffn(b.two(x))

    kind, numbers = variant(values=values, forward=forward), (1.0, 1.0, 3.0)
    net = Net(kind).eval()
    net.blocks.append(kind().eval())
    for number, block in zip(numbers, net.blocks, strict=True):
        block.register_buffer("number", torch.tensor(number))
        block.size.data.fill_(number)
    model = describe(net)
    assert max(extract(model, inputs()).av_error) < 1e-5
    for number, block, layer in zip(numbers, net.blocks, model.layers, strict=True):
        H = number * block.v.weight.T.double() @ block.o.weight.T.double()
        torch.testing.assert_close(layer.heads.total(), H.detach(), atol=1e-5, rtol=1e-5)
        gain = torch.full((D,), number**2)
        torch.testing.assert_close(layer.norm_attention.gain, gain, atol=1e-4, rtol=1e-4)


def test_a_gate_that_is_open_in_the_first_layer_alone_is_refused():
    def gated(b, y):
        return b.o(b.size * b.joined(b.weights(y) @ b.values(y)))

    net = Net(variant(attend=gated)).eval()
    with torch.no_grad():
        net.blocks[0].size.fill_(1)
    refuses("attention 2", describe, net)


def test_attention_over_features_is_refused():
    def over_features(b, y):
        q, k, v = (b.split(part(y)).mT for part in (b.q, b.k, b.v))
        return b.o(b.joined(((q @ k.mT).softmax(-1) @ v).mT))

    net = Net(variant(attend=over_features))
    refuses("has 9 columns, and 12 features are no multiple", describe, net, torch.randn(2, N, 5))


def test_a_module_that_takes_no_made_up_inputs_is_read_from_those_given():
    class Fixed(Net):
        def forward(self, x):
            return super().forward(x.reshape(-1, N, 5))

    net, X = Fixed(Block), torch.randn(4, N, 5, generator=torch.Generator().manual_seed(0))
    refuses("does not run on inputs that are made up", describe, net)
    for given in (X, list(X)):
        report = inspect(net, given, budget=1)
        assert report.av_error < 1e-5 and report.logs.shape == (3, 4)
    refuses("does not run on inputs that are made up", inspect, net, ["a text"])


@cases(
    "names, modality, cls, registers",
    (("class_token",), "features", True, 0),
    (("class_token", "reg_token"), "vision", True, 1),
    (("reg_token",), "vision", False, 1),
    (("other",), "features", False, 0),
)
def test_learned_tokens_are_cls_and_registers_by_their_names(names, modality, cls, registers):
    class Learned(Net):
        def forward(self, x):
            learned = [getattr(self, name).expand(len(x), -1, -1) for name in names]
            x = torch.cat([*learned, self.embed(x)], 1)
            for block in self.blocks:
                x = block(x)
            return x

    net = Learned(Block)
    for name in names:
        net.register_parameter(name, nn.Parameter(torch.ones(1, 1, D)))
    model = describe(net, torch.randn(3, N, 5), modality=modality, prepare=tensors)
    assert (model.cls, model.registers) == (cls, registers)


@pytest.mark.parametrize("size", [16, (16, 16), (4, 16, 16)])
def test_pictures_of_one_channel_and_volumes_are_read_as_tensors(size):
    class Grey(Net):
        def __init__(self, kind):
            super().__init__(kind)
            self.image_size, self.patches = size, nn.Conv2d(1, 5, 4, 4)

        def forward(self, x):
            return super().forward(self.patches(x.mean(-3, keepdim=True)).flatten(2).mT)

    X = torch.randn(3, 4 if size == (4, 16, 16) else 1, 16, 16)
    assert inspect(Grey(Block), X, budget=1).av_error < 1e-5


REFUSED: dict[str, tuple[type[Block], str]] = {
    "a gate": (variant(attend=lambda b, y: b.o(
        b.joined(b.weights(y) @ b.values(y)) * b.gate(y).sigmoid())), "a gate or a norm"),
    "a norm of A V": (variant(attend=lambda b, y: b.o(
        b.two(b.joined(b.weights(y) @ b.values(y))))), "output is no linear function"),
    "an activation behind A V": (variant(attend=lambda b, y: b.o(
        torch.tanh(b.joined(b.weights(y) @ b.values(y))))), "output is no linear function"),
    "normed values": (variant(values=lambda b, y: functional.normalize(
        b.split(b.v(y)), dim=-1)), "values are no linear function"),
    "values of sums": (variant(values=lambda b, y: b.split(b.v(y).cumsum(1))), "off by"),
    # As of exp / (1 + sum exp): no sink is a token.
    "rows that sum to 0.9": (variant(weights=lambda b, y: 0.9 * Block.weights(b, y)),
                             "no stochastic matrix"),
    "rows minus their mean": (variant(
        weights=lambda b, y: Block.weights(b, y) - 1 / y.shape[1]), "no stochastic matrix"),
    "a weighted residual": (variant(
        forward=lambda b, x: (y := 0.5 * x + b.attend(b.one(x))) + b.ffn(b.two(y))),
        "the residual itself is multiplied"),
    "an FFN that mixes": (variant(
        ffn=lambda b, y: b.down(functional.gelu(b.up(y + y.mean(1, keepdim=True))))),
        "mixes tokens"),
    "a second mixer": (variant(
        forward=lambda b, x: (y := Block.forward(b, x)) + b.gate(y.cumsum(1))),
        "further sublayers stand behind"),
    "positions between the blocks": (variant(forward=lambda b, x: Block.forward(
        b, x + torch.linspace(0, 1, D))), "the stream changes behind this layer"),
    "a sum for CLS alone": (variant(forward=of_cls), "of some tokens alone"),
    "heads added one by one": (variant(attend=summed), "beside the attention mixes tokens"),
    "a norm by tanh": (variant(attend=lambda b, y: Block.attend(b, torch.tanh(b.size * y))),
                       "normed stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_outside_the_form_is_refused_by_layer_and_cause(name):
    kind, cause = REFUSED[name]
    refuses(rf"is not read: .*{cause}.*\(attention 1", lambda: describe(Net(kind)))


def refusal(*given: object) -> NotReadError:
    """What `describe` raises."""
    with pytest.raises(NotReadError) as refused:
        describe(*given)
    return refused.value


@cases(
    "net, said",
    (Net(REFUSED["a sum for CLS alone"][0]), "of some tokens alone"),
    (nn.Sequential(nn.Linear(5, 4), nn.ReLU()), "no softmax over tokens multiplies values"),
)
def test_where_no_stream_is_seen_nothing_is_shown(net, said):
    refused = refusal(net)
    assert said in str(refused)
    refuses("show no stream that could be measured", seen, refused, torch.randn(3, N, 5))


# What a pass of the others shows has another form than a row a layer.
@pytest.mark.parametrize("name", list(REFUSED)[:-3] + list(REFUSED)[-1:])
def test_of_a_refused_model_the_streams_and_attention_of_its_own_pass_are_shown(name):
    net, X = Net(REFUSED[name][0]), torch.randn(6, N, 5)
    refused, streams, weights = refusal(net, X), [], []
    for block in net.blocks:
        block.register_forward_hook(lambda b, args, out: streams.append((args[0], out)))
        make = block.weights
        block.weights = lambda y, make=make: (weights.append(A := make(y)), A)[1]
    result = seen(refused, X)
    # Batches of four and two, two layers each.
    assert len(streams) == len(weights) == 4
    for k, row in enumerate(result.table.itertuples(index=False)):
        front, end = (torch.cat([streams[j][side] for j in (k, k + 2)]) for side in (0, 1))
        if name != "positions between the blocks":
            assert row[2] == pytest.approx(float(stream_log_ratio(front).mean()) / math.log(10))
        if name != "a second mixer":
            assert row[4] == pytest.approx(float(stream_log_ratio(end).mean()) / math.log(10))
        if "rows" not in name:
            A = torch.cat([weights[j] for j in (k, k + 2)])
            assert row[5] == pytest.approx(float(A.amax(-1).mean()))
    assert "By what, it cannot say" in result.words() and "is not read" in result.words()
    # As a mapping, whose length is no number of inputs, they give the same.
    net.forward = lambda x, given=net.forward: given(x["x"] if isinstance(x, dict) else x)
    again = seen(refused, {"x": X})
    assert again.table.equals(result.table) and again.words() == result.words()


@cases(
    "change, said",
    ([-0.5, -0.4, -0.6, -0.5, -0.5, -0.4], "tokens end more alike"),
    ([0.5, 0.4, 0.6, 0.5, 0.5, 0.4], "tokens end less alike"),
    ([0.5, -0.4, 0.6, -0.5, 0.5, -0.4], "cannot be told"),
    ([math.nan] * 6, "cannot be told"),
)
def test_whether_tokens_end_alike_is_told_where_the_interval_leaves_out_0(
    monkeypatch, change, said
):
    X, rows = torch.randn(6, N, 5), iter((change[:4], change[4:]))
    refused = refusal(Net(REFUSED["a gate"][0]), X)

    def layers(graph, module, inputs):
        ends = np.array(next(rows))
        return ["blocks.0"], np.stack([0 * ends, ends, ends, ends])[None]

    monkeypatch.setattr(unread, "_layers", layers)
    assert said in unread.seen(refused, X).words()


def test_what_is_described_is_printed():
    said = str(describe(Net(Block), name="mine"))
    assert said.startswith("Model('mine', 2 layers, width 12, 3 heads, features, not causal)")
    assert "1 to 2" in said and "pre: layer" in said


def test_weights_are_where_they_stand_in_the_module():
    """Read anew after a change."""
    net = Net(Block)
    layer = describe(net).layers[1]
    before = layer.heads.W_V
    assert layer.live and layer.block is net.blocks[1] and layer.out is net.blocks[1].o
    with torch.no_grad():
        net.blocks[1].v.weight.mul_(2)
    torch.testing.assert_close(layer.heads.W_V, 2 * before)
    assert layer.parts is not None and layer.parts.value is net.blocks[1].v


def test_a_hook_that_changes_what_attention_gives_is_read_with_it():
    net = Net(Block)
    plain = describe(net).layers[0].heads.total()
    net.blocks[0].o.register_forward_hook(lambda _, __, out: 1.1 * out)
    model = describe(net)
    torch.testing.assert_close(model.layers[0].heads.total(), 1.1 * plain, atol=1e-6, rtol=1e-5)
    assert max(extract(model, torch.randn(2, 7, 5)).av_error) < 1e-5


def test_inspect_shows_what_can_be_shown_of_a_refused_folder(tmp_path, told):
    """DiffLlama: two softmaxes a head and a norm behind A V. Held to its own hidden states."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    sizes = SIZES | {"vocab_size": 8, "num_hidden_layers": 2, "eos_token_id": 0}
    model = drawn("DiffLlamaModel", small_config("DiffLlama", sizes, {}), moved=0.1)
    folder = tmp_path / "diffllama"
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({x: k for k, x in enumerate("_abcdefg")}, unk_token="_"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="_")
    tokenizer.save_pretrained(folder)
    text = tmp_path / "text"
    text.write_text("a b c d e\nf g a\n")
    words = "inspect", folder, "--text", text, "--out", tmp_path / "out"
    rows = json.loads(told(0, *words, "--json"))["layers"]
    expected = []
    for ids in ([1, 2, 3, 4, 5], [6, 7, 1]):
        states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        expected.append([float(stream_log_ratio(x.detach())) / math.log(10) for x in states[:2]])
    assert [row["in front"] for row in rows] == pytest.approx(np.mean(expected, axis=0).tolist())
    assert "By what, it cannot say: DiffLlamaModel is not read" in told(0, *words)


def test_where_no_ffn_is_found_the_end_of_a_layer_is_not_known():
    """The residual is multiplied in front of the FFN's sum, as Doge's: not the last layer's end."""
    kind = variant(forward=lambda b, x: b.size * (y := x + b.attend(b.one(x))) + b.ffn(b.two(y)))
    net, X = Net(kind).eval(), torch.randn(5, 7, 5, generator=torch.Generator().manual_seed(1))
    result = seen(refusal(net, X), X)
    rows = result.tables["layers"].rows
    assert rows["behind layer"].isna().all() and rows["behind attention"].notna().all()
    assert "from the input to the stream behind the last attention log10 HFC/LFC" in result.text()
    with torch.no_grad():
        first = net.blocks[0](net.embed(X))
    expected = stream_log_ratio(first).mean() / math.log(10)
    assert rows["in front"][1] == pytest.approx(float(expected), abs=1e-5)


def test_every_architecture_is_read_or_refused_as_on_record():
    """160 of 208 are read, with the model's own attention and streams, the norms of each where they
    stand; the others say why not."""

    def of(table):
        return {row["architecture"]: (row["read"], row["what"]) if row["read"] == "read" else ""
                for row in table}  # fmt: skip

    table = list(rows(list(BUILDS)))
    assert of(table) == of(csv.DictReader(TABLE.open(encoding="utf-8")))
    read = [row for row in table if row["read"] == "read"]
    assert (len(table), len(read)) == (208, 160)
    for row in read:
        errors = [float(row[name]) for name in ("output", "attention", "streams")]
        assert max(error for error in errors if not math.isnan(error)) < 1e-6, row
    for row in table:
        assert row["read"] == "read" or "(attention " in row["what"] or UNSEEN in row["what"], row


def test_a_model_with_two_main_inputs_is_asked_for_by_the_first():
    """OneFormer's main_input_name is a list."""
    net, X = Net(variant()).eval(), torch.randn(2, 7, 5)
    net.main_input_name = ["X", "task"]
    net.forward = lambda X, task=None: Net.forward(net, X)
    assert describe(net, X).depth == describe(Net(variant()).eval(), X).depth
