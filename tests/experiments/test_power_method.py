"""Tilt towards eigendirections, and the threshold of steering (N-2605.25619-direction)."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import oversmoothing
from benchmarks import steering as runs
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.power_method import steering, tilt
from tests.support.architectures import built
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_model
from tests.support.tiny_transformers import pixels, tiny, tokens


def test_eigendirections_are_invariant_lines_and_planes():
    H = np.random.default_rng(0).standard_normal((7, 7))
    found = steering.eigendirections(H)
    assert sum(each.basis.shape[1] for each in found) == 7
    for each in found:
        B = each.basis
        np.testing.assert_allclose(B.T @ B, np.eye(B.shape[1]), atol=1e-12)
        np.testing.assert_allclose(H @ B, B @ (B.T @ H @ B), atol=1e-10)


def test_the_two_rules_part_where_the_largest_eigenvalue_is_negative():
    """N-2605.25619-modulus: F = diag(1, -3/2)."""
    directions = steering.eigendirections(np.diag([1.0, -1.5]))
    by = {
        rule: directions[steering.principal(directions, rule)].value
        for rule in ("power", "residual")
    }
    assert by == {"power": -1.5, "residual": 1.0}


@pytest.mark.parametrize("rank", [0, 4, 9])
def test_directions_outside_the_kernel_are_as_many_as_the_rank(rank):
    """The basis of a kernel is any, and rounding makes complex pairs of its zeros: neither counts
    among the directions that a tilt is held against."""
    first, second = np.random.default_rng(rank).standard_normal((2, 9, rank))
    H = first @ second.T
    found = steering.eigendirections(H)
    own = [found[k] for k in steering.outside_kernel(found, H)]
    assert sum(each.basis.shape[1] for each in own) == rank
    assert all(np.linalg.norm(H @ each.basis) > 1e-6 for each in own)


def test_a_random_direction_has_a_share_of_one_on_average():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2, 5, 8)) + 3  # tokens that share a direction
    for k in (1, 2):
        found = steering.shares(X, steering.random_bases(4000, 8, k, rng)).mean(-1)
        # A share has a standard deviation below d/k.
        np.testing.assert_allclose(found, 1.0, atol=4 * 8 / k / 4000**0.5)
    # By hand: tokens that are 0 are left out.
    by_hand = steering.shares(np.array([[[3.0, 4.0], [0, 0], [1, 0]]]), np.eye(2)[:, :, None])
    np.testing.assert_allclose(by_hand, [[2 * (0.36 + 1) / 2, 2 * 0.64 / 2]], atol=1e-15)


def test_tilts_are_those_of_the_streams_by_hand():
    """Each layer's tilt again, from the model's own parameters and streams."""
    model = oversmoothing.open_model(tiny_model(), dtype=torch.float64)
    pixels = random_pixels(3).double()
    found = tilt.tilts(model, pixels, random=10)
    traces = extract(model, pixels).traces
    for number, (layer, own) in enumerate(zip(model.layers, model.module.blocks(), strict=True)):
        X, Y = traces[number].before, traces[number].after_attention
        norm = own.norm_attention
        scale = float((X.var(-1, unbiased=False) + norm.eps).rsqrt().mean())
        C = torch.eye(X.shape[-1], dtype=X.dtype) - 1 / X.shape[-1]
        H = own.attention.in_float64() @ torch.diag(norm.weight.double()) @ C * scale
        np.testing.assert_allclose(steering.product(layer, scale), H.detach().numpy(), atol=1e-6)
        values = np.linalg.eigvals(H.detach().numpy())
        for k, moduli in enumerate((np.abs(values), np.abs(1 + values))):
            picked = found.values[number, k]
            assert abs(abs(picked + k) - moduli.max()) < 1e-5
        directions = steering.eigendirections(steering.product(layer, scale))
        basis = directions[steering.principal(directions, "residual")].basis
        units = (torch.nn.functional.normalize(Z, dim=-1).numpy() for Z in (X, Y))
        before, after = (np.square(Z @ basis).sum(-1).mean(-1) for Z in units)
        per = X.shape[-1] / basis.shape[1]
        np.testing.assert_allclose(found.tilt[number, 1], per * (after - before), atol=1e-5)
        # Beside it every direction but those of the kernel, which the centring makes.
        moved = [
            np.diff([steering.shares(Z.numpy(), each.basis[None]).mean() for Z in (X, Y)]).item()
            for each in directions if abs(each.value) > 1e-6
        ]  # fmt: skip
        smaller = sum(each < found.tilt[number, 1].mean() - 1e-6 for each in moved)
        assert found.table["above_other"][2 * number + 1] == smaller / (len(moved) - 1)


def test_the_words_say_which_rule_the_tilt_is_for():
    values = np.array([[-1.5, 1.0], [2.0, 2.0]])
    tilts = np.zeros((2, 2, 5))
    tilts[0, 1] = [1.0, 1.1, 0.9, 1.0, 1.05]
    half = np.full((2, 2), 0.5)
    made = tilt.Tilts("toy", tilts, tilts, half, half, values)
    assert made.apart.tolist() == [True, False]
    # The answer comes first.
    assert made.sentences[0].says.startswith("The tilt speaks for |1 + lambda|: in the one layer")
    turned = tilt.Tilts("toy", -tilts, tilts, half, half, values)
    assert "for |lambda|" in turned.words() and "away in 1" in turned.words()
    same = tilt.Tilts("toy", tilts, tilts, half, half, values[[1, 1]])
    assert "no test between" in same.words()


def test_attention_that_adds_nothing_tilts_towards_nothing():
    """All tilts are 0: above no random direction, above no other, towards and away in no layer."""
    module = tiny_model()
    with torch.no_grad():
        for block in module.blocks():
            for weights in block.parameters():
                weights.zero_()
    model = oversmoothing.open_model(module, dtype=torch.float64)
    found = tilt.tilts(model, random_pixels(5).double(), random=10)
    assert not found.tilt.any() and not found.table[["above_random", "above_other"]].any(axis=None)
    assert "in 0 of 2 layers and away in 0 " in found.words()
    nothing, half = np.zeros((1, 2, 5)), np.full((1, 2), 0.5)
    even = tilt.Tilts("toy", nothing, nothing, half, half, np.array([[-1.5, 1.0]]))
    assert "for neither" in even.words()


def test_bad_input_is_a_sentence():
    model = oversmoothing.open_model(tiny_model())
    refuses("there are no inputs", lambda: tilt.tilts(model, random_pixels(1)[:0]))
    refuses("drawn cases is 0", runs.drawn_cases, 0, 0)
    parallel = tuple(replace(each, placement="parallel") for each in model.layers)
    said, beside = "attention and FFN to the stream at once", replace(model, layers=parallel)
    refuses(said, tilt.tilts, beside, random_pixels(2))
    post = oversmoothing.open_model(tiny("bert"))
    given = steering.steering(post, np.ones(post.width), np.ones(post.depth))
    refuses("no norm in front of its attention", given.__enter__)


def test_the_threshold_of_an_eigenvector_is_that_of_the_claim():
    """N-2605.25619-steering (1): F u = f u, w = u needs |1 + f + alpha| > max |1 + lambda_j|. For
    F = diag(-1/2, 1/2, 1/4) and u = e_1: 1/2 + alpha > 3/2."""
    e = np.eye(3)[0]
    case = runs.DrawnCase(np.full((2, 2), 0.5), np.diag([-0.5, 0.5, 0.25]), e, e, np.ones((2, 3)))
    alpha, mu = steering.predicted_threshold(case)
    assert (alpha, mu) == (pytest.approx(1.0, abs=1e-9), pytest.approx(0.5, abs=1e-9))
    found = runs.tilts(case, np.linspace(0.9, 1.1, 21))
    assert (found[:10] < 0.1).all() and (found[11:] > 0.999).all()


@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_the_threshold_of_a_trained_layer_has_the_gain_that_its_head_reads(gain, monkeypatch):
    """The head adds alpha u u^T N(x), N(x) = gain x here: 1/2 + gain alpha > 3/2 for F above."""
    model = oversmoothing.open_model(tiny("llama"))
    F = np.diag([-0.5, 0.5] + [0.25] * (model.width - 2))
    monkeypatch.setattr(steering, "product", lambda layer, scale: F)
    for layer in model.layers:
        torch.nn.init.constant_(layer.norm_attention.module.weight, gain)
    alphas = steering.thresholds(
        oversmoothing.open_model(model.module), [1.0] * model.depth, np.eye(model.width)[0]
    )
    np.testing.assert_allclose(alphas, 1 / gain, atol=1e-6)


def test_the_predicted_threshold_is_right_in_drawn_layers_and_solves_its_equation(monkeypatch):
    table = runs.threshold_table(6, seed=1)
    assert table["right"].sum() >= 5
    assert (table["tilt_above"] > runs.TILTED).all()
    assert (table.loc[~table["right"], "why"] != "").all()
    right, threshold = int(table["right"].sum()), steering.predicted_threshold
    assert f"in {right} of 6 drawn layers" in runs.steer(6, seed=1).words()
    for case in runs.drawn_cases(5, seed=3):
        alpha, mu = threshold(case)
        values = np.linalg.eigvals(steering.steered(case, alpha))
        assert np.abs(values - mu).min() < 1e-4  # where two meet: eps^(1/2)
        assert abs(case.w @ case.u - 1) < 1e-12
    # A wrong one is noticed.
    monkeypatch.setattr(
        runs, "predicted_threshold", lambda case: (threshold(case)[0] + 0.3, threshold(case)[1])
    )
    assert "in 0 of 3 drawn layers" in runs.steer(3).words()


def test_a_block_that_serves_two_layers_is_steered_in_each_by_its_own_alpha():
    nets = [tiny("gpt2").double() for _ in range(2)]
    nets[0].transformer.h[1] = nets[0].transformer.h[0]
    nets[1].transformer.h[1].load_state_dict(nets[1].transformer.h[0].state_dict())
    ends = []
    for model in map(oversmoothing.open_model, nets):
        with steering.steering(model, np.eye(model.width)[0], np.array([0.5, 2.0])):
            given = tokens()["input_ids"][:1]
            ends.append(extract(model, given, attention=False, verify=False).traces[-1].after_ffn)
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("family", ["llama", "vit", "DINOv2"])
def test_steering_adds_one_more_head_with_even_attention(family):
    """DINOv2 scales what its attention gives, feature by feature."""
    net = built(family, "sdpa") if family == "DINOv2" else tiny(family)
    model = oversmoothing.open_model(net)
    given = tokens()["input_ids"][:1] if family == "llama" else pixels(1)
    u = np.eye(model.width)[0]
    plain = extract(model, given, attention=False, verify=False).traces[0]
    with steering.steering(model, u, np.full(model.depth, 0.5)):
        moved = extract(model, given, attention=False, verify=False).traces[0]
    again = extract(model, given, attention=False, verify=False).traces[0]
    assert torch.equal(plain.after_attention, again.after_attention)
    normed = model.layers[0].norm_attention(plain.before)[..., 0]
    n = normed.shape[-1]
    even = normed.cumsum(-1) / torch.arange(1, n + 1) if model.causal else normed.mean(-1)[:, None]
    wanted = plain.after_attention.clone()
    wanted[..., 0] += 0.5 * even
    torch.testing.assert_close(moved.after_attention, wanted, rtol=1e-4, atol=1e-5)


def test_a_padded_batch_tilts_as_its_texts_do():
    model, batch = oversmoothing.open_model(tiny("bert").double()), tokens((7, 4))
    found = tilt.tilts(model, batch).tilt
    # H of Post-LN does not know the inputs.
    alone = [tilt.tilts(model, batch["input_ids"][k : k + 1, :n]) for k, n in ((0, 7), (1, 4))]
    np.testing.assert_allclose(found, np.concatenate([x.tilt for x in alone], 2), atol=1e-9)
    refuses("one by one", lambda: tilt.tilts(model, batch, steer=True))


def test_a_steered_model_tilts_more_the_larger_alpha_is():
    model = oversmoothing.open_model(tiny_model(std=0.25))
    table = steering.steered_tilts(model, random_pixels(3), multiples=(0.0, 32.0), directions=2)
    assert table["along_u"].iloc[1] > 2 * table["along_u"].iloc[0]
    said = steering.on_steering(table, "tiny", 3).says
    assert "3 inputs, at least 5 are needed" in said and "interval is not told" in said


def test_images_are_steered_in_batches_as_one_by_one(monkeypatch):
    model, tables = oversmoothing.open_model(tiny_model()), []
    for size in (2, 1):
        monkeypatch.setattr(steering, "BATCH", size)
        given = random_pixels(3)
        tables.append(steering.steered_tilts(model, given, multiples=(0.0, 2.0), directions=2))
    # Float32: sums over a batch in another order.
    np.testing.assert_allclose(*(table.to_numpy() for table in tables), rtol=1e-4)


def test_the_command_writes_both_tables(tmp_path, told, monkeypatch):
    from oversmoothing.experiments.digits import training

    monkeypatch.setattr(training, "made", lambda *a, **k: tiny_model())
    words = ["probe", "vit-random", "tilt", "--count", "5", "--steer", "--out", str(tmp_path)]
    said = told(0, *words, "--dry-run")
    # Of tilt and scales, and of 5 directions at 5 multiples.
    assert re.search(r"5 inputs of \d+ tokens: about .* s to measure.* 135 forward passes", said)
    assert not any(tmp_path.iterdir())
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, told(0, *words, "--dry-run").splitlines())) <= 60
    found = json.loads(told(0, *words, "--json"))
    assert (
        "NaN" not in json.dumps(found) and len(found["layers"]) == 4 and len(found["steered"]) == 5
    )
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"tilt.json", "tilt.csv", "steered.csv", "tilt.txt", "tilt.html"}
