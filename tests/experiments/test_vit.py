"""The network: heads with values of their own or shared, forms that hold, equal starts."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.sparse.csgraph import connected_components
from torch import nn

from oversmoothing import metrics, open_model, parameterisation
from oversmoothing.experiments.digits import vit
from oversmoothing.experiments.digits.data import Reads, seen
from oversmoothing.experiments.digits.training_config import FORMS, SHARED, Design
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.study.atlas import spectrum
from oversmoothing.experiments.study.protocol import Cell
from oversmoothing.experiments.study.study_runs import h_measures, start_measures, trained
from oversmoothing.experiments.study.study_tasks import task
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model

SMALL = Design(width=16, depth=2, heads=2)
GREYS = Reads("pixels", 16, 4, 10)
LETTERS = Reads("characters", 12, 7, 7, causal=True)
SIGNED = ("sym", "plus", "minus", "clip+", "clip-")
SINGLE = torch.finfo(torch.float32).eps


def inputs(reads: Reads) -> torch.Tensor:
    rng = torch.Generator().manual_seed(3)
    if reads.kind == "characters":
        return torch.randint(reads.inputs, (3, reads.tokens), generator=rng)
    return torch.randn(3, reads.side, reads.side, generator=rng)


@pytest.mark.parametrize("form", FORMS)
def test_each_head_has_its_own_values_but_where_they_are_shared(form):
    net = StudyNet(SMALL.but(form=form), GREYS, 0)
    heads = net.described(None).layers[0].heads
    first, second = (heads.W_V[k] @ heads.W_O[k] for k in (0, 1))
    assert torch.equal(first, second) == (form in SHARED)
    if form in SIGNED:
        # Own columns of one orthogonal Q: X' Q_h = X Q_h + A_h X Q_h Lambda_h, head by head.
        overlap = torch.linalg.matrix_norm(heads.W_V[0].T @ heads.W_V[1])
        assert float(overlap) < 16 * SINGLE
        X, A = torch.randn(5, 16), torch.rand(2, 5, 5)
        after = X + sum(A[k] @ X @ heads.W_V[k] @ heads.W_O[k] for k in (0, 1))
        for k in (0, 1):
            Q = heads.W_V[k]
            own = X @ Q + A[k] @ X @ Q @ (heads.W_O[k] @ Q)
            torch.testing.assert_close(after @ Q, own, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{"form": form, "reads": reads} for form in FORMS for reads in (GREYS, LETTERS)]
    + [{"placement": p} for p in ("post", "sandwich", "peri")]
    + [{"placement": p, "form": "shared"} for p in ("sandwich", "peri")]
    + [{"mask": m} for m in ("local", "strided", "axial")] + [{"start": "mimetic"}, {"signed": 1}]
    + [{"tied": True}, {"gains": "negative"}],
)  # fmt: skip
def test_the_description_is_what_the_network_computes(changes):
    design = {"form": "minus", **changes}
    reads = design.pop("reads", GREYS)
    model = open_model(StudyNet(SMALL.but(**design), reads, 1))
    assert max(extract(model, inputs(reads), verify=True).av_error) < 1e-5


@pytest.mark.parametrize("changes", [{"laplacian": 1}, {"removal": True}])
def test_what_is_no_layer_of_the_theory_refuses_its_description(changes):
    net = StudyNet(SMALL.but(**changes), GREYS, 0)
    assert torch.isfinite(net(inputs(GREYS))).all()
    refuses("not described", open_model, net)


def test_arms_of_one_seed_share_every_draw_but_their_values_and_start_at_one_norm():
    nets = {form: StudyNet(SMALL.but(form=form), GREYS, 5) for form in FORMS}
    plain = dict(nets["ord"].named_parameters())
    norms = torch.linalg.matrix_norm(nets["ord"].products())
    for form, net in nets.items():
        for name, value in net.named_parameters():
            if name.rpartition(".")[2] not in ("W_V", "W_O", "W_H", "theta", "psi", "core"):
                assert torch.equal(value, plain[name]), (form, name)
        if not any(isinstance(each.attention.projection, nn.Module) for each in net.blocks()):
            torch.testing.assert_close(
                torch.linalg.matrix_norm(net.products()), norms, rtol=64 * SINGLE, atol=0
            )
    other = StudyNet(SMALL, GREYS, 6)
    assert not torch.equal(other.position, nets["ord"].position)


def test_the_small_mimetic_start_has_the_norm_of_the_normal_one():
    normal, mimetic, small = (
        StudyNet(SMALL.but(start=start), GREYS, 5).products()
        for start in ("normal", "mimetic", "small mimetic")
    )
    size = torch.linalg.matrix_norm
    torch.testing.assert_close(size(small), size(normal), rtol=1e-4, atol=0)
    one, other = (each / size(each)[:, None, None] for each in (small, mimetic))
    torch.testing.assert_close(one, other, rtol=0, atol=1e-5)
    # .4 Z - .4 I: the cosine to -I is near 1/sqrt 2 at every width.
    align = -torch.diagonal(mimetic, dim1=1, dim2=2).sum(1) / (4 * size(mimetic))
    assert (align - 0.5**0.5).abs().max() < 0.15


@pytest.mark.parametrize("form", SIGNED)
def test_forms_hold_their_spectra_while_training_and_weights_move(form):
    cell = Cell("digits", 30, SMALL.but(form=form))
    net, row = trained(cell, 0)
    watched = row["trajectory"]
    assert np.max(watched["asymmetry"]) < 100 * SINGLE
    if form in ("minus", "plus"):
        assert (np.array(watched["negative"]) == (form == "minus")).all()
    if form.startswith("clip"):
        h = torch.linalg.eigvalsh(net.products())
        low, high = (0, 1) if form == "clip+" else (-1, 0)
        assert (h >= low - 1e-5).all() and (h <= high + 1e-5).all()
    assert len(watched["step"]) == 13 and watched["step"][-1] == 30
    assert watched["cos"][0] == [1.0, 1.0] and max(watched["cos"][-1]) < 0.999
    assert net.cos_start == watched["cos"][-1]


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_what_a_row_says_of_h_is_what_the_atlas_says(placement):
    """Two routes: through cores of the network's maps, through the described heads."""
    net = StudyNet(SMALL.but(std=0.2, placement=placement), GREYS, 0)
    start = torch.randn(16, 16, generator=torch.Generator().manual_seed(1)).double()
    with torch.no_grad():
        for block in net.blocks():
            gain = block.norm_attention.weight
            gain.copy_(1.5 * torch.rand(gain.shape, generator=torch.Generator().manual_seed(2)))
    for block, layer in zip(net.blocks(), net.described(None).layers, strict=True):
        with torch.no_grad():
            row = h_measures(block, start)
        whole, heads = spectrum(layer, None), [spectrum(layer, head) for head in (0, 1)]
        for name in ("alignment", "negative", "disc"):
            assert row[f"folded_{name}"] == pytest.approx(whole[name], abs=1e-6)
        for name in ("negative", "disc"):
            own = np.mean([each[name] for each in heads])
            assert row[f"folded_head_{name}"] == pytest.approx(own, abs=1e-6)
        assert row["negative"] == pytest.approx(whole["negative_unfolded"], abs=1e-6)
        H = layer.heads.total()
        cosine = float((H * start).sum() / H.norm() / start.norm())
        free = [M - M.trace() / 16 * torch.eye(16) for M in (H, start)]
        assert row["cos"] == pytest.approx(cosine, abs=1e-5)
        apart = float((free[0] * free[1]).sum() / free[0].norm() / free[1].norm())
        assert row["cos_free"] == pytest.approx(apart, abs=1e-5)
        skew = float((H - H.T).norm() / (2 * H.norm()))
        assert row["asymmetry"] == pytest.approx(skew, abs=1e-5)
        assert row["norm"] == pytest.approx(float(H.norm()), rel=1e-5)


def test_at_the_start_gradients_and_ratios_are_those_of_the_stream():
    own = task("digits")
    flat = start_measures(StudyNet(SMALL.but(depth=1), own.reads, 0), own, 0)
    assert flat == {"gradient": 0.0, "change": 0.0}
    net = StudyNet(SMALL.but(depth=3, form="plus", std=0.3), own.reads, 0)
    seen = start_measures(net, own, 0)
    images, labels = next(own.batches(0, 1.0, 64))
    first = stream_of(net, images)[1].requires_grad_()
    last = net.blocks()[2](net.blocks()[1](first))
    scores = net.scores(net.norm(last[:, 0]))
    loss = torch.nn.functional.cross_entropy(scores, labels)
    sizes = [float(each.norm()) for each in torch.autograd.grad(loss, [first, last])]
    assert seen["gradient"] == pytest.approx(math.log10(sizes[0] / sizes[1]), abs=1e-4)
    ratios = [float(metrics(X.detach())["log_hfc_lfc"].mean()) for X in (first, last)]
    change = (ratios[1] - ratios[0]) / math.log(10)
    assert seen["change"] == pytest.approx(change, abs=1e-4) and change < 0


def test_psi_is_decayed_as_w_v_is_and_theta_never():
    for form in ("ord", "minus"):
        net = StudyNet(SMALL.but(form=form), GREYS, 0)
        names = {id(value): name for name, value in net.named_parameters()}
        decayed, free = ({names[id(v)] for v in part} for part in net.decayed())
        assert decayed | free == set(names.values()) and not decayed & free
        own = "layers.0.attention."
        wanted = {f"{own}W_V", f"{own}W_O"} if form == "ord" else {f"{own}psi"}
        assert wanted | {f"{own}query_key", "scores.weight"} <= decayed
        assert {"position", "cls", "norm.weight", "layers.0.ffn.0.bias"} <= free
        assert (f"{own}theta" in free) == (form == "minus")


def test_a_decoder_says_nothing_of_what_comes_later():
    for mask in ("dense", "local", "strided"):
        net = StudyNet(SMALL.but(mask=mask), LETTERS, 0).eval()
        one = inputs(LETTERS)
        other = one.clone()
        other[:, 8] = (one[:, 8] + 1) % 7
        same, changed = net(one), net(other)
        torch.testing.assert_close(same[:, :8], changed[:, :8], rtol=0, atol=1e-6)
        assert not torch.equal(same[:, 8], changed[:, 8])


def test_fused_and_plain_attention_are_the_same(monkeypatch):
    for form in ("ord", "minus"):
        for reads in (GREYS, LETTERS):
            net = StudyNet(SMALL.but(form=form, mask="local"), reads, 0)
            plain = net(inputs(reads))
            monkeypatch.setattr(vit, "FUSED", 1)
            torch.testing.assert_close(net(inputs(reads)), plain, rtol=1e-5, atol=1e-6)
            monkeypatch.undo()


def test_every_mask_of_patches_connects_all_tokens_and_sees_fewer():
    for mask in ("local", "strided", "axial"):
        graph = seen(mask, GREYS)
        assert graph is not None and bool(graph.diagonal().all()) and not bool(graph.all())
        assert connected_components(graph.numpy(), directed=True, connection="strong")[0] == 1
        patches = graph[1:, 1:].numpy()
        parts = connected_components(patches, directed=True, connection="strong")[0]
        assert parts == (4 if mask == "strided" else 1)
    refuses("axial", seen, "axial", LETTERS)


def test_what_is_no_design_is_refused_in_a_sentence():
    for wrong, said in (
        ({"form": "both"}, "form is 'both': choose ord"), ({"width": 15}, "multiple of heads"),
        ({"laplacian": 9}, "no more than all"), ({"mask": "round"}, "must be one of dense"),
    ):  # fmt: skip
        refuses(said, SMALL.but, **wrong)


def test_the_usual_start_has_the_rms_eigenvalue_of_a_deit():
    h = torch.linalg.matrix_norm(StudyNet(Design(), GREYS, 0).products()) / math.sqrt(64)
    assert (h - 192 * 0.02**2).abs().max() < 0.005


def stream_of(net: StudyNet, pixels: torch.Tensor) -> list[torch.Tensor]:
    stream: list[torch.Tensor] = []
    with torch.no_grad():
        assert torch.equal(net(pixels), net(pixels, stream))
    return stream


@pytest.mark.parametrize("form", FORMS)
def test_the_attention_sublayer_is_the_kronecker_operator(form):
    """vec(X') = vec(X) + sum_h (H_h (x) A_h) vec(LN X), vec stacking columns; seeing the stream
    changes no bit."""
    net = StudyNet(SMALL.but(form=form, std=0.2), GREYS, 0).double().eval()
    X = stream_of(net, random_pixels(1).double())[0]
    block, heads = net.blocks()[0], net.described(None).layers[0].heads
    A = block.heads_of(X)[0].detach().numpy()
    normed = block.norm_attention(X)
    added = sum(
        np.kron((heads.W_V[k] @ heads.W_O[k]).T.numpy(), A[k])
        @ normed[0].detach().numpy().ravel("F")
        for k in (0, 1)
    )
    own = block.attention(normed)[0].detach().numpy().ravel("F")
    np.testing.assert_allclose(own, added, rtol=0, atol=1e-12)


@given(row=st.integers(0, 7), column=st.integers(0, 7))
@settings(max_examples=20, deadline=None)
def test_a_pixel_enters_the_token_of_its_patch_alone(row, column):
    net = tiny_model()
    blank = torch.zeros(1, 8, 8)
    lit = blank.clone()
    lit[0, row, column] = 1.0
    moved = (net.embedded(lit) - net.embedded(blank)).abs().sum(-1)[0]
    assert moved.nonzero().flatten().tolist() == [1 + 4 * (row // 2) + column // 2]


@pytest.mark.parametrize("form", FORMS)
def test_weights_are_all_drawn_and_never_from_global_state(form):
    """Memory that was never written would show as extreme values."""
    state = torch.get_rng_state()
    first, second = (StudyNet(SMALL.but(form=form), GREYS, 0).state_dict() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in first.items():
        assert torch.equal(value, second[name]), name
        assert torch.isfinite(value).all() and value.abs().max() < 10, name
    assert not any("bias" in name for name in first if "attention." in name and "norm" not in name)


def test_tied_layers_share_one_h_and_untied_ones_do_not():
    for tied, number in ((True, 1), (False, 3)):
        net = tiny_model("vit-shared-band", depth=3, tied=tied)
        held = [name for name in net.state_dict() if name.endswith("psi")]
        assert held == [f"layers.{k}.attention.projection.psi" for k in range(number)]
        H = net.value_projections()
        assert H.shape == (3, 16, 16)
        assert torch.equal(H[0], H[2]) == tied
    copied = copy.deepcopy(tiny_model("vit-", depth=3, tied=True))
    assert len({block.attention.owner for block in copied.blocks()}) == 1
    copied(random_pixels(2)).square().sum().backward()
    assert all(p.grad is not None for p in copied.parameters())


def test_only_the_chosen_layers_take_the_form():
    net = tiny_model("vit-shared-band", depth=4, signed=[2, 4])
    inside = [bool(parameterisation("band").inside(H)) for H in net.value_projections()]
    assert inside == [False, True, False, True]
    H = tiny_model("vit-", depth=4, signed=[2, 4], tied=True).value_projections()
    assert torch.equal(H[1], H[3]) and torch.equal(H[0], H[2]) and not torch.equal(H[0], H[1])
    forms = [SMALL.but(form="minus", signed=1).form_of(number) for number in (1, 2)]
    assert forms == ["minus", "ord"]


@pytest.mark.parametrize("gains", ["free", "positive", "negative", "fixed"])
@pytest.mark.parametrize("placement", ["pre", "post"])
def test_gains_keep_their_sign_through_training(placement, gains):
    net = tiny_model("vit", placement=placement, gains=gains).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=5.0)
    for _ in range(3):
        optimizer.zero_grad()
        net(random_pixels(4)).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
    for block in net.blocks():
        for norm in (block.norm_attention, block.norm_ffn):
            gain = norm.weight.detach()
            moved = not torch.equal(gain.abs(), torch.ones_like(gain))
            assert moved == (gains != "fixed")
            assert {"positive": (gain > 0), "negative": (gain < 0)}.get(gains, gain == gain).all()


def test_post_ln_normalises_behind_each_sublayer():
    """X <- LN(X + A X H^T), X <- LN(X + FFN(X)): T8c's order."""
    net = tiny_model("vit-shared", placement="post").double()
    stream, block = stream_of(net, random_pixels(1).double()), net.blocks()[0]
    X, A = stream[0], block.heads_of(stream[0]).mean(1)
    middle = block.norm_attention(X + A @ X @ block.attention.total())
    after = block.norm_ffn(middle + block.ffn(middle))
    torch.testing.assert_close(stream[1], after.detach(), rtol=0, atol=1e-12)


def test_the_sign_of_all_gains_reverses_h_in_pre_ln_and_nothing_in_post_ln():
    """T8d, exactly: Pre-LN gamma -> -gamma in front of attention is H -> -H; Post-LN is odd."""
    X = torch.randn(2, 17, 16, generator=torch.Generator().manual_seed(0)).double()
    pairs = {
        placement: [tiny_model("vit", placement=placement, gains=gains).double().blocks()[0]
                    for gains in ("free", "negative")]
        for placement in ("pre", "post")
    }  # fmt: skip
    plain, flipped = (block.attention(block.norm_attention(X)) for block in pairs["pre"])
    torch.testing.assert_close(plain, -flipped, rtol=0, atol=1e-13)
    assert torch.equal(*(block.heads_of(X) for block in pairs["pre"]))
    plain, flipped = (block.norm_attention(X + block.attention(X)) for block in pairs["post"])
    assert torch.equal(plain, -flipped)
