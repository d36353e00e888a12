"""The lever: what is added is what was asked for, its control has its size, and it is foreseen."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from oversmoothing import describe, open_model
from oversmoothing.experiments.digits.data import Reads, digits
from oversmoothing.experiments.digits.training_config import Design
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.ladder.climb import split_inputs
from oversmoothing.experiments.study.lever import (
    DISC,
    Change,
    effects,
    folded,
    foreseen,
    intervene,
    into_disc,
    run,
    shift,
    without,
)
from oversmoothing.experiments.study.trained_shift import MOST, trained_shift
from tests.support.architectures import built
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny, tokens

GREYS = Reads("pixels", 16, 4, 10)
LETTERS = Reads("characters", 12, 7, 7, causal=True)
SMALL = Design(width=16, depth=2, heads=2, std=0.15)


def net(design: Design = SMALL, reads: Reads = GREYS, *, plain: bool = False) -> StudyNet:
    """In float64, with gains of its norms that are not 1; plain: W_O = 1."""
    made = StudyNet(design, reads, 0).double().eval()
    rng = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for block in made.blocks():
            gain = block.norm_attention.weight
            gain.copy_(1 + 0.3 * torch.rand(gain.shape, generator=rng))
            if plain:
                block.attention.W_O.copy_(torch.eye(16))
    return made


def pixels(count: int = 6) -> torch.Tensor:
    rng = torch.Generator().manual_seed(4)
    return torch.randn(count, 1, 8, 8, generator=rng, dtype=torch.float64)


def letters(count: int = 6) -> torch.Tensor:
    return torch.randint(7, (count, 12), generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_shift_is_the_network_whose_weights_are_changed(placement):
    """One head, W_O = 1: W_V + delta diag(1/g) has the product M + delta I, gain folded in."""
    own = net(SMALL.but(heads=1, placement=placement), plain=True)
    model, x, delta = open_model(own), pixels(), 0.2
    change = shift(model, delta)
    ratios, (scores,) = run(model, x, change)
    moved = [folded(layer) + delta * np.eye(16) for layer in model.layers]
    with torch.no_grad():
        for block in own.blocks():
            gain = block.norm_attention.weight if placement == "pre" else torch.ones(16)
            block.attention.W_V += delta * torch.diag(1 / gain.double())
    for layer, M in zip(open_model(own).layers, moved, strict=True):
        np.testing.assert_allclose(folded(layer), M, atol=1e-12)
    again, (wanted,) = run(open_model(own), x)
    torch.testing.assert_close(scores, wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ratios, again, atol=1e-10)


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_head_left_out_is_the_network_without_its_output_weights(placement: str) -> None:
    """With the gain and shift of a norm that are not 1 and 0."""
    own = net(SMALL.but(placement=placement))
    with torch.no_grad():
        for block in own.blocks():
            block.norm_attention.bias.copy_(torch.linspace(-0.5, 0.5, 16))
    model, x = open_model(own), pixels()
    results = effects(model, x, [without(model, (1, 1))])
    foreseen_, effect = results["predicted"][0], results["effect"][0]
    (plain, _), (ratios, _) = run(model, x), run(model, x, without(model, (1, 1)))
    np.testing.assert_array_equal(ratios[0], plain[0])
    np.testing.assert_allclose(ratios[1] - plain[1], effect)
    result = intervene(model, x, doses=(), parts=(), left_out=[(1, 1), (0, 0), (1, 0)])
    wanted = [f"without head {place}" for place in ("2.1", "1.0", "2.0")]
    assert list(result.table["change"]) == wanted
    same = (np.sign(result.table["predicted"]) == np.sign(result.table["measured"])).sum()
    said = " ".join(result.words().split())
    assert f"In {same} of 3 the change over the head's own attention sublayer" in said
    table = result.table
    lower, higher = int((table["measured"] < 0).sum()), int((table["measured"] > 0).sum())
    assert f"lowers log10 HFC/LFC in {lower} (the head" in said and lower != higher
    assert f"raises it in {higher}; " in said
    clear = ((table["low"] > 0) | (table["high"] < 0)).sum()
    assert f"in {clear} the 95 % interval leaves out 0" in said and clear > 0
    assert f"the same size lower it in {(table['random'] < 0).sum()}. In" in said
    first = table.iloc[0]
    alone = intervene(model, x, doses=(), parts=(), left_out=[(1, 1)]).words()
    assert f"at the model's end changes by {first['measured']:+.2g}, and over" in alone
    assert f"(ln: {np.log(10) * first['measured']:+.2g} and" in " ".join(alone.split())
    # A control changes H alone: what it adds to every token would be the head's.
    assert without(model, (1, 1)).control(np.random.default_rng(0)).b is None
    beside = np.corrcoef(result.table["predicted"], result.table["measured"])[0, 1]
    assert f"(correlation {beside:.2f})" in said
    with torch.no_grad():
        own.blocks()[1].attention.W_O.view(2, 8, 16)[1].zero_()
    np.testing.assert_allclose(ratios, run(open_model(own), x)[0], atol=1e-12)
    assert (np.abs(effect) > 1e-6).all() and (np.abs(foreseen_) > 1e-6).all()


@pytest.mark.parametrize(("reads", "inputs"), [(GREYS, pixels()), (LETTERS, letters())])
def test_heads_shifted_one_by_one_add_up_to_the_shift_of_their_mean(reads, inputs):
    """In one layer: mean_h A_h z D = sum_h A_h z D / heads."""
    model = open_model(net(SMALL.but(depth=1), reads))
    block, seen = model.layers[0].block, []
    # Without the FFN the output of the block is that of its sublayer.
    block.ffn[2].weight.data.zero_()
    block.register_forward_hook(lambda *a: seen.append(a[2].clone()))
    for change in (None, shift(model, 0.2), *(shift(model, 0.1, (0, head)) for head in (0, 1))):
        run(model, inputs, change)
    plain, whole, first, second = seen
    torch.testing.assert_close(whole - plain, (first - plain) + (second - plain))


def test_nothing_added_changes_nothing_and_no_hook_is_left():
    model, x = open_model(net()), pixels()
    none = Change("none", 0.0, np.zeros((2, 16, 16)))
    plain, changed = run(model, x), run(model, x, none)
    assert np.array_equal(plain[0], changed[0]) and torch.equal(plain[1][0], changed[1][0])
    moved = run(model, x, shift(model, 0.3))
    assert not np.array_equal(plain[0], moved[0])
    assert np.array_equal(plain[0], run(model, x)[0])


def test_a_control_is_random_and_of_the_same_norm_in_every_layer():
    model = open_model(net())
    change = into_disc(model, 0.5)
    one, other = (change.control(np.random.default_rng(seed)) for seed in (0, 1))
    size = np.linalg.norm(change.D, axis=(1, 2))
    np.testing.assert_allclose(np.linalg.norm(one.D, axis=(1, 2)), size)
    assert np.abs((one.D * other.D).sum((1, 2))).max() < 0.5 * (size**2).max()


def test_into_the_disc_moves_those_beyond_its_radius_by_their_part_and_no_others():
    model = open_model(net(SMALL.but(std=0.3)))
    for part in (0.5, 1.0):
        change = into_disc(model, part)
        for layer, D in zip(model.layers, change.D, strict=True):
            h = np.linalg.eigvals(folded(layer))
            z = h + 0.5
            wanted = np.where(abs(z) > DISC, h + part * (DISC * z / abs(z) - 0.5 - h), h)
            moved = np.linalg.eigvals(folded(layer) + D)
            gap = np.abs(moved[:, None] - wanted).min(0).max()
            assert gap < 1e-9 and (abs(z) > DISC).any()


def test_a_layer_without_ffn_does_exactly_what_was_foreseen():
    own = net(SMALL.but(depth=1))
    with torch.no_grad():
        own.blocks()[0].ffn[2].weight.zero_()
    model = open_model(own)
    changes = [shift(model, 0.1), shift(model, -0.1, (0, 1)), into_disc(model, 0.5)]
    found = effects(model, pixels(), changes)
    np.testing.assert_allclose(found["predicted"], found["effect"], atol=1e-9)
    assert np.abs(found["effect"]).min() > 1e-6 and (found["kl"] > 0).all()
    assert found["norm"][0] == pytest.approx(0.1 * 4 / np.linalg.norm(folded(model.layers[0])))


def test_what_is_foreseen_of_all_layers_is_the_sum_over_each():
    model = open_model(net(SMALL.but(depth=3)))
    whole = into_disc(model, 0.5)
    alone = [replace(whole, D=np.eye(3)[k, :, None, None] * whole.D) for k in range(3)]
    found = foreseen(model, pixels(), [whole, *alone])
    np.testing.assert_allclose(found[0], found[1:].sum(0), atol=1e-12)
    assert (np.abs(found[1:]).mean(1) > 1e-6).all()


def test_the_result_says_the_slope_beside_its_control_and_the_two_sides():
    model = open_model(net())
    result = intervene(model, pixels(), heads=[(1, 0)])
    table = result.table
    assert list(table["change"]) == ["shift"] * 4 + ["into disc"] + ["shift of head 2.0"] * 4
    own = table[table["change"] == "shift"]
    beyond = (own["amount"] * (own["measured"] - own["random"])).sum() / (own["amount"] ** 2).sum()
    assert f"by {beyond:+.2f} delta" in result.words() and "Smoothing by 0.1" in result.words()
    lost = own.set_index("amount")["KL"]
    assert f"{lost[0.1] - lost[-0.1]:+.2g} between them" in result.words()
    (disc,) = table[table["change"] == "into disc"].itertuples()
    said = (
        f"further than {DISC} from -1/2 50 % of the way to there changes log10 HFC/LFC by "
        f"{disc.measured - disc.random:+.3f} beyond"
    )
    assert said in " ".join(result.words().split())
    # Smoothing is a positive shift, at every dose.
    assert (np.sign(own["measured"]) == -np.sign(own["amount"])).all()


def test_a_shift_by_nothing_alone_has_no_slope():
    said = intervene(open_model(net()), pixels(), doses=(0.0,), parts=()).words()
    assert "nan" not in said and "1 change was made" in said


def test_a_model_in_half_precision_is_moved_as_one_in_full():
    texts = torch.randint(3, 40, (3, 7), generator=torch.Generator().manual_seed(0))
    found = []
    for dtype in (torch.float32, torch.bfloat16):
        model = open_model(tiny("llama"), dtype=dtype)
        changes = [shift(model, 0.5), into_disc(model, 1.0), without(model, (1, 2))]
        found.append(effects(model, texts, changes)["effect"])
    assert np.abs(found[0] - found[1]).max() < 0.05 * np.abs(found[0]).max()


def test_one_number_a_layer_is_trained_on_half_of_the_inputs_and_scored_on_the_other():
    """One head, W_O = 1: what is scored is the loss of the network whose W_V are moved so."""
    own = net(SMALL.but(heads=1), plain=True)
    model, x, depth = open_model(own), pixels(16), 2
    # What a network says whose first layer smooths and whose second sharpens.
    D = np.array([0.4, -0.3])[:, None, None] * np.eye(16)
    answers = run(model, x, Change("planted", 1.0, D))[1][0].argmax(1)
    result = trained_shift(model, x, answers, seed=3)
    deltas, scored = result.tables["deltas"].rows, result.table
    assert list(deltas.columns) == ["layer", "shift", "random 1", "random 2"]
    delta = deltas["shift"].to_numpy()
    order = np.random.default_rng([3, 4302]).permutation(16)
    halves = [sorted(order[:8].tolist()), sorted(order[8:].tolist())]

    def loss(numbers, half):
        moved = copy.deepcopy(own)
        with torch.no_grad():
            for block, number in zip(moved.blocks(), numbers, strict=True):
                gain = block.norm_attention.weight.double()
                block.attention.W_V += number * torch.diag(1 / gain)
            said = moved(x[half])
        return float(torch.nn.functional.cross_entropy(said, answers[half]))

    train, other = halves
    assert loss(delta, train) < loss(np.zeros(depth), train)
    for step in 0.1 * np.concatenate([np.eye(depth), -np.eye(depth)]):
        if np.abs(delta + step).max() <= MOST:
            assert loss(delta + step, train) > loss(delta, train) - 1e-4
    first = scored.iloc[0]
    assert first["loss before"] == pytest.approx(loss(np.zeros(depth), other), abs=1e-9)
    assert first["loss after"] == pytest.approx(loss(delta, other), abs=1e-9)
    assert f"between {delta.min():+.3f} and {delta.max():+.3f}" in result.words()


def test_a_decoder_is_trained_to_say_the_next_token_and_others_need_answers():
    model, x = open_model(net(SMALL.but(depth=1), LETTERS)), letters(8)
    result = trained_shift(model, x)
    order = np.random.default_rng([0, 4302]).permutation(8)
    other = x[sorted(order[4:].tolist())]
    (said,) = run(model, other)[1]
    loss = torch.nn.functional.cross_entropy(said[:, :-1].flatten(0, 1), other[:, 1:].flatten())
    assert result.table["loss before"].iloc[0] == pytest.approx(float(loss), abs=1e-9)
    refuses("nothing says what", lambda: trained_shift(open_model(net()), pixels()))
    refuses("at least 4", lambda: trained_shift(model, x[:3]))


def test_what_cannot_be_moved_is_refused_in_a_sentence():
    padded = open_model(tiny("bert"))
    refuses("are padded", effects, padded, tokens((7, 4)), [shift(padded, 0.1)])
    model = open_model(net())
    refuses(r"no head 3\.0", lambda: intervene(model, pixels(), heads=[(2, 0)]))
    joined = replace(model.layers[0], attention=model.layers[0].block)
    alike = replace(model, layers=(joined,))
    refuses("no module of its own", run, alike, pixels(), shift(model, 0.1))
    # The attention of XLNet gives the stream behind its norm.
    model, ids = describe(built("XLNet")), torch.arange(3, 15).reshape(2, 6)
    refuses("no module of its own", run, model, ids, shift(model, 0.1))


def test_divergence_is_that_of_the_scores_and_absent_without_a_head():
    model, x = open_model(net()), pixels()
    found = effects(model, x, [shift(model, 0.3)])
    (p,), (q,) = run(model, x)[1], run(model, x, shift(model, 0.3))[1]
    wanted = torch.nn.functional.kl_div(
        q.log_softmax(1), p.log_softmax(1), log_target=True, reduction="none"
    ).sum(1)
    np.testing.assert_allclose(found["kl"][0], wanted.numpy(), atol=1e-12)
    headless = replace(model, run=lambda batch: {"hidden": model.run(batch)})
    assert np.isnan(effects(headless, x, [shift(model, 0.3)])["kl"]).all()


@pytest.mark.parametrize("name, part", [("MLCD vision", None), ("FSMT encoder", "encoder")])
def test_a_shift_is_the_same_in_a_batch_where_tokens_lie_before_inputs(name, part):
    """The projection of MLCD gives [n, b, d], that of FSMT and its blocks too."""
    model = describe(built(name), part=part)
    g = torch.Generator().manual_seed(0)
    X = torch.arange(3, 21).reshape(3, 6) if part else torch.randn(3, 3, 32, 32, generator=g)
    change = shift(model, 0.2)
    alone = [run(model, X[k : k + 1], change)[0] for k in range(3)]
    np.testing.assert_allclose(run(model, X, change)[0], np.concatenate(alone, 1), atol=1e-5)


def test_predictors_are_scored_on_the_digits_own_images_where_none_are_named():
    own = digits().validation.pixels
    known, held, origin = split_inputs(open_model(net()), calibration=30, held_out=50)
    taken = [int((own == x).all(-1).all(-1).nonzero()[0]) for x in (*known, *held)]
    assert len(set(taken)) == 80 and origin.startswith("the model's usual images")
