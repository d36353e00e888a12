"""Peers beside us: the formulas are those that are said, others' code runs only when allowed, and
what differs shows. The fake peers are written here; nothing of a real one is needed.
"""

import json

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks import beside_peers
from benchmarks.__main__ import main
from benchmarks.peers import mixing_series, peer_code, peer_layers, precursor_sign, stand_ins
from benchmarks.peers.our_block import OurBlock
from benchmarks.peers.walk_collapse import (
    Blocks,
    accuracy_in_theory,
    accuracy_of_regression,
    features_by_depth,
    rates,
)
from oversmoothing.experiments.remedies import ContraNorm, Plain
from oversmoothing.theory.support.errors import RequirementError
from tests.support.refusals import refuses

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
ENERGY = peer_layers.FLOW_ENERGY
# The energy written anew, and a line that says whether the class body was executed.
HONEST = """
import no_library_of_this_name

class Unasked:
    raise SystemError("this is not among the names")

def batch_dirichlet(X):
    open({marker!r}, "w").close()
    total = 0.0
    for tokens in X:
        for x in tokens:
            total += np.square(tokens - x).sum() / 4
    return total / len(X)
"""


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.fixture
def data(tmp_path):
    """A folder of real inputs with one file of a fake peer."""
    place = ENERGY.place(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text(HONEST.format(marker=str(tmp_path / "ran")))
    return tmp_path


def energy_rows(printed: str) -> list[dict]:
    return [row for row in json.loads(printed) if "Dirichlet" in row["name"]]


# The formulas.


def test_contranorm_with_cosines_sees_directions_alone():
    X = random(5, 4)
    K = (torch.nn.functional.cosine_similarity(X[:, None], X[None], dim=-1) / 2).softmax(-1)
    remedy = ContraNorm(0.25, 2.0, cosine=True)
    torch.testing.assert_close(remedy.finish(X), X - 0.25 * K @ X, **CLOSE)
    torch.testing.assert_close(remedy.finish(8 * X), 8 * remedy.finish(X), **CLOSE)
    assert (ContraNorm(0.25, 2.0).finish(8 * X) - 8 * ContraNorm(0.25, 2.0).finish(X)).norm() > 0.1
    assert torch.equal(remedy.finish(torch.zeros(3, 4)), torch.zeros(3, 4))


def test_scores_of_large_tokens_leave_contranorm_with_each_token_alone():
    X = peer_layers.tokens(torch.Generator().manual_seed(0))
    for cosine, mean in ((False, 1.0), (True, 0.008)):
        U = nn.functional.normalize(X, dim=-1) if cosine else X
        alike = (U @ U.mT).softmax(-1)
        assert float(alike.diagonal(dim1=-2, dim2=-1).mean()) == pytest.approx(mean, abs=5e-4)
        found = ContraNorm(0.1, cosine=cosine).finish(X)
        torch.testing.assert_close(found, X - 0.1 * alike @ X, **CLOSE)


def test_the_single_precision_of_1_over_n_is_all_that_is_changed():
    n = 197
    A = random(2, 3, n, n).softmax(-1)
    changed = peer_layers._SingleJ(0.5, heads=3).double()
    J = torch.full((n, n), 1 / n, dtype=torch.float32).double()
    with torch.no_grad():
        torch.testing.assert_close(changed.attention(A), J + 1.5 * (A - J), rtol=1e-12, atol=1e-15)


def test_our_block_is_torchs_encoder_layer():
    d, heads = 12, 3
    theirs = nn.TransformerEncoderLayer(
        d, heads, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True
    )
    theirs = theirs.double().eval()
    with torch.no_grad():
        for k, value in enumerate(theirs.parameters()):
            value.copy_(0.3 * random(*value.shape, seed=k))
        names = {"self_attn.in_proj_weight": "attn.qkv.weight", "linear1": "mlp.fc1",
                 "self_attn.in_proj_bias": "attn.qkv.bias", "linear2": "mlp.fc2",
                 "self_attn.out_proj": "attn.proj"}  # fmt: skip
        weights = {}
        for name, value in theirs.state_dict().items():
            for old, new in names.items():
                name = name.replace(old, new)
            weights[name] = value
        X = random(2, 7, d, seed=99)
        torch.testing.assert_close(OurBlock(Plain(), weights, heads)(X), theirs(X), **CLOSE)


def test_stand_ins_cut_and_join_heads_and_patches():
    X = random(2, 5, 6)
    heads = stand_ins.rearrange(X, "b n (h d) -> b h n d", h=3)
    assert torch.equal(heads[1, 2, 4], X[1, 4, 4:6])
    assert torch.equal(stand_ins.rearrange(heads, "b h n d -> b n (h d)"), X)
    image = random(1, 3, 4, 6)
    patches = stand_ins.Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=2, p2=2)(image)
    assert patches.shape == (1, 6, 12)
    assert torch.equal(patches[0, 4].reshape(2, 2, 3), image[0, :, 2:4, 2:4].permute(1, 2, 0))
    refuses("does not know", stand_ins.rearrange, X, "b n d -> n b d", error=NotImplementedError)


# Others' code is executed only when allowed, and only what is named.


@pytest.fixture
def command(data):
    return ["--only", "peers/layers", "--data-dir", str(data), "--json", "--no-record"]


def test_without_the_option_nothing_is_executed_and_the_record_is_shown(data, command, capsys):
    assert main(command) == 0
    rows = energy_rows(capsys.readouterr().out)
    assert not (data / "ran").exists()
    assert rows and all(row["note"].startswith("RECORDED on 20") for row in rows)
    assert all(row["holds"] is None and peer_code.OPTION in row["note"] for row in rows)
    refuses("other people's Python", peer_code.load, ENERGY, data, error=RequirementError)


def test_with_the_option_the_named_parts_run_and_the_rest_does_not(data, command, capsys):
    assert main([*command, peer_code.OPTION]) == 0
    printed = capsys.readouterr()
    assert "executing other people's Python from" in printed.err
    difference, time = energy_rows(printed.out)
    assert (data / "ran").exists()
    assert difference["holds"] is True and "equal to rounding" in difference["note"]
    assert f"NOT the {ENERGY.digest} of that commit" in difference["note"]
    assert time["ratio"] > 0 and time["seconds"].keys() == {"ours", "theirs"}
    # Every other file is missing, and each row says which and where to.
    others = [row for row in json.loads(printed.out) if "Dirichlet" not in row["name"]]
    assert all(row["note"].startswith("RECORDED") and "not run: put " in row["note"]
               for row in others)  # fmt: skip
    assert not peer_code.is_allowed()


def test_a_wrong_formula_of_a_peer_shows_as_a_difference(data):
    place = ENERGY.place(data)
    place.write_text(place.read_text().replace("/ 4", "/ 2"))
    (energy,) = [each for each in peer_layers.COMPARISONS if each.sources == (ENERGY,)]
    with peer_code.running_peers_code():
        row, _ = beside_peers.compared(energy, data)
    assert row.ratio == pytest.approx(0.5) and row.holds is False
    assert row.note.startswith("DIFFERS, unexplained")


def test_files_that_are_no_python_or_lack_a_name_are_refused(data):
    for text, said in (("def other(): pass", "has no batch_dirichlet"), ("def (", "is no Python")):
        ENERGY.place(data).write_text(text)
        with peer_code.running_peers_code():
            refuses(said, peer_code.load, ENERGY, data)


def test_an_explanation_counts_only_where_it_agrees():
    assert beside_peers.verdict(0.1, 1e-15, "why") == "differs, explained: why"
    for given in ((0.1, 0.05, "why"), (0.1, None, ""), (float("nan"), None, "")):
        assert beside_peers.verdict(*given) == "DIFFERS, unexplained"
    assert np.isnan(beside_peers.relative_difference(random(2), random(3)))


def test_the_record_holds_every_comparison_at_the_commits_that_are_named():
    kept = {row["name"]: row for row in beside_peers.record()["rows"]}
    for each in peer_layers.COMPARISONS:
        row = kept[f"peers: {each.name}, difference"]
        assert "unexplained" not in row["note"]
        for source in each.sources:
            text = f"{source.path} {source.commit[:12]}, sha256 {source.digest}"
            assert text in row["note"] and f"{text}, NOT" not in row["note"]
        if each.but:
            assert row["ratio"] > peer_layers.ROUNDING
            assert kept[f"peers: {each.name}, difference explained"]["holds"] is True
        else:
            assert row["holds"] is True
    assert sum("gradient flow at its own start" in name for name in kept) == 3


# What can be computed anew without their code.


def test_the_walk_moves_means_and_shrinks_noise_as_its_powers_say():
    blocks = Blocks(nodes=30, p_in=0.4, p_out=0.1, sigma=0.0)
    W, X0 = blocks.draw(2, np.random.default_rng(0))
    np.testing.assert_allclose(W.sum(-1), 1)
    assert (np.diagonal(W, axis1=1, axis2=2) > 0).all()
    *_, last = features_by_depth(W, X0, range(4))
    np.testing.assert_allclose(last, W @ W @ W @ blocks.means[blocks.labels], atol=1e-14)
    assert np.linalg.norm(blocks.means[0] - blocks.means[1]) == pytest.approx(1)


def test_without_edges_the_accuracy_of_two_communities_is_the_normal_integral():
    blocks = Blocks(nodes=20, communities=2, p_in=0, p_out=0)
    for depth in (0, 3):
        found = accuracy_in_theory(blocks, depth, 1, np.random.default_rng(0))
        # Phi(1/2). The best density has a kink, its slope jumps by 2 (1/2) phi(1/2)/2 = .18: cells
        # of h = 15/100 are off by at most .18 h^2/8.
        assert found == pytest.approx(0.6914624612740131, abs=5e-4)


def test_theory_and_regression_agree_on_small_graphs():
    blocks, rng = Blocks(nodes=60, p_in=0.4, p_out=0.1), np.random.default_rng(0)
    theory = [accuracy_in_theory(blocks, depth, 50, rng) for depth in range(3)]
    guessed = accuracy_of_regression(blocks, range(3), 100, rng)
    # 6,000 guesses of features that are shared within a graph: 100 independent graphs of sd .1.
    np.testing.assert_allclose(theory, guessed, atol=0.04)
    assert theory[1] > theory[0] + 0.1


def test_the_walk_collapses_at_its_second_eigenvalue():
    measured, predicted = rates(Blocks(nodes=30, p_in=0.4, p_out=0.1), np.random.default_rng(0),
                                (300, 600))  # fmt: skip
    assert measured == pytest.approx(predicted, rel=1e-6) and predicted < 0


def test_products_of_mixings_stay_below_the_product_of_second_singular_values():
    apart, bound = mixing_series.from_uniform(4, 6, 50, np.random.default_rng(0))
    assert (apart <= bound + 1e-15).all() and (apart[-1] < apart[0]).all()


# A tied layer with A = J, written here: X' = X + J X W moves consensus alone, by 1 + h.
SIGNED = """
class SimpleTransformer(nn.Module):
    def __init__(self, size, patch, depth, dim, heads, sign, embed, weight_norm):
        super().__init__()
        self.depth, self.sign, self.weight_norm = depth, sign, weight_norm
        self.WVs = nn.ParameterList([nn.Parameter(1.5 * torch.eye(dim))])
        self.pos_embedding = nn.Parameter(torch.zeros(1))

    def diffuse(self, image):
        S = self.WVs[0]
        W = self.sign * S @ S.T
        if self.weight_norm:
            W = W / torch.linalg.norm(W)
        states = [image.flatten(2).mT]
        for _ in range(self.depth):
            X = states[-1]
            states.append(X + X.mean(1, keepdim=True) @ W)
        return [each.numpy() for each in states], []

def diffusion_step(): pass
def diffusion_stepFT(): pass
def diffusion_stepI(): pass
def diffusion_stepIFT(): pass
"""


def test_h_below_minus_2_smooths_and_in_minus_1_to_0_does_not(tmp_path):
    place = peer_layers.FLOW.place(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text(SIGNED)
    with peer_code.running_peers_code():
        parts = peer_code.load(peer_layers.FLOW, tmp_path).parts
    # S = 3/2 I: h = -9/4, |1 + h| = 5/4 for consensus; over its norm h = -1/sqrt(128).
    unbounded = precursor_sign.runs(parts, -1, False, range(2))
    bounded = precursor_sign.runs(parts, -1, True, range(2))
    assert unbounded.smoothed() == 2 and bounded.smoothed() == 0
    np.testing.assert_allclose(unbounded.end - unbounded.start, -64 * np.log(1.25), rtol=1e-8)
    np.testing.assert_allclose(unbounded.largest, 2.25)
    np.testing.assert_allclose(bounded.largest, 128**-0.5)
