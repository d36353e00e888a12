"""The atlas: rows that two routes agree on, a schema that stays, and what is not joined."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from oversmoothing import open_model
from oversmoothing.experiments.digits.data import Reads
from oversmoothing.experiments.digits.training_config import Design
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.inspection.spectra import own_dominance
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.study import RECORDED
from oversmoothing.experiments.study.atlas import (
    SCHEMA,
    atlas,
    faults,
    joined,
    read_atlas,
    recorded_deit,
    rows_of,
    value_spectra_table,
)
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny

GREYS = Reads("pixels", 16, 4, 10)
SMALL = Design(width=16, depth=2, heads=2, std=0.2)


def made(form: str = "ord", seed: int = 0, **changes: object) -> Model:
    net = StudyNet(SMALL.but(form=form, **changes), GREYS, seed).eval()
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for block in net.blocks():
            block.norm_attention.weight.copy_(0.5 + torch.rand(16, generator=rng))
    return open_model(net).renamed(f"{form} {seed}")


def pixels(count: int = 5) -> torch.Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_rows_are_those_of_the_dense_matrices(placement):
    model = made(placement=placement)
    rows = rows_of(model).set_index(["layer", "head"])
    assert list(rows.index) == [(layer, head) for layer in (1, 2) for head in (0, 1, 2)]
    for number, layer in enumerate(model.layers, 1):
        own = layer.heads.double()
        g = np.ones(16)
        if placement == "pre":
            g = layer.norm_attention.gain.double().numpy()
        parts = [(own.W_V[k] @ own.W_O[k]).numpy() for k in (0, 1)]
        for head, W in ((0, sum(parts)), (1, parts[0]), (2, parts[1])):
            row, H = rows.loc[number, head], (g[:, None] * W).T
            h = np.linalg.eigvals(H)
            h = h[np.argsort(-abs(h))][: 16 if head == 0 else 8]
            assert row["eigenvalues"] == len(h)
            plain = np.linalg.eigvals(W.T)
            plain = plain[np.argsort(-abs(plain))][: len(h)]
            size = np.linalg.norm(H)
            for name, value in (
                ("negative", (h.real < 0).mean()),
                ("disc", (abs(h + 0.5) < 0.5).mean()),
                ("radius", abs(h).max()),
                ("norm", size),
                ("alignment", -np.trace(H) / (len(h) ** 0.5 * size)),
                ("asymmetry", np.linalg.norm(H - H.T) / np.linalg.norm(H + H.T)),
                ("negative_unfolded", (plain.real < 0).mean()),
            ):
                assert row[name] == pytest.approx(value), name


def test_a_feature_whose_gain_is_0_makes_no_eigenvalue():
    """DeiT-Ti's layer 2 has one: its exact zero was counted, on a side that rounding chose."""
    model = made()
    with torch.no_grad():
        model.layers[0].norm_attention.gain[3] = 0
    row = rows_of(model).iloc[0]
    own, g = model.layers[0].heads.double(), model.layers[0].norm_attention.gain.double()
    h = np.linalg.eigvals((g[:, None] * (own.W_V @ own.W_O).sum(0)).numpy())
    h = h[np.argsort(abs(h))[1:]]
    assert row["eigenvalues"] == 15 and row["negative"] == pytest.approx((h.real < 0).mean())


def test_no_share_counts_the_zeros_of_heads_that_share_their_values():
    """Grouped queries: H of 32 features has rank 16, and rounding puts its zeros anywhere."""
    module = tiny("llama")
    rows = rows_of(open_model(module)).query("head == 0").set_index("layer")
    table = value_spectra_table(open_model(module)).query("of == 'whole'")
    for number, block in enumerate(module.model.layers, 1):
        g, V, out = (
            each.weight.detach().double().numpy()
            for each in (block.input_layernorm, block.self_attn.v_proj, block.self_attn.o_proj)
        )
        W_V = np.repeat(V.reshape(2, 8, 32), 2, axis=0).reshape(32, 32).T
        for norm, gain in (("unfolded", np.ones(32)), ("folded", g)):
            h = np.linalg.eigvals((gain[:, None] * W_V @ out.T).T)
            h = h[abs(h) > 1e-9]
            read = table.query("norm == @norm and layer == @number").iloc[0]
            assert len(h) == read["eigenvalues"] == rows.loc[number, "eigenvalues"] == 16
            of = "negative" if norm == "folded" else "negative_unfolded"
            assert (h.real < 0).mean() == read["negative"] == rows.loc[number, of]
            disc = (abs(h + 0.5) <= 0.5).mean()
            assert disc == read["universal_disc"]
        assert disc == rows.loc[number, "disc"]


def test_minus_the_identity_is_aligned_with_itself():
    for sign in (1.0, -1.0):
        model = made()
        with torch.no_grad():
            for layer in model.layers:
                attention = layer.attention
                attention.W_V.copy_(torch.diag(1 / layer.block.norm_attention.weight))
                attention.W_O.copy_(-sign * torch.eye(16))
        rows = rows_of(open_model(model.module))
        assert rows["alignment"].to_numpy() == pytest.approx(sign)
        assert (rows["negative"] == (sign > 0)).all() and (rows["asymmetry"] < 1e-6).all()


def test_consensus_dominates_heads_of_positive_h_on_every_input_and_of_negative_on_none():
    """T2d and T3d, gains of one sign: Q Lambda Q^T with a positive gain keeps its signs, whatever
    the size of h."""
    for form, share, size in (("plus", 1.0, 1.0), ("plus", 1.0, 1e-3), ("minus", 0.0, 1.0)):
        model = made(form, std=0.1)
        with torch.no_grad():
            for layer in model.layers:
                layer.attention.psi.mul_(size)
        rows = rows_of(model, pixels())
        heads = rows[rows["head"] > 0]
        assert (heads["radius"] < 1).all() and (heads["consensus"] == share).all()
        assert rows.loc[rows["head"] == 0, "consensus"].isna().all()
        assert rows["sink"].between(1 / 17, 1).all() and (rows["inputs"] == 5).all()


@pytest.mark.parametrize(
    ("a", "h", "dominates"),
    # The last margin is 1.1e-16 in floats.
    [*((0.5, h, h > 0) for h in (1e-10, 1, 0, -1, -4 / 3)), (0.25, -1.6, False)],
)
def test_a_margin_is_held_against_what_rounding_moves(a, h, dominates):
    """A tie at 0 and at -2/(1 + a) (T2b), and consensus for every h > 0 however small."""
    A = np.array([[1 + a, 1 - a], [1 - a, 1 + a]], dtype=np.float32) / 2
    assert own_dominance(A, np.array([h], dtype=complex))["consensus"] == dominates


def test_hashes_follow_weights_and_inputs_and_nothing_else():
    one, again, other = rows_of(made(), pixels()), rows_of(made(), pixels()), rows_of(made(seed=1))
    assert one.equals(again)
    assert set(one["weights"]) != set(other["weights"])
    assert set(rows_of(made(), pixels(4))["inputs_hash"]) != set(one["inputs_hash"])
    assert set(other["inputs_hash"]) == {""} and other["sink"].isna().all()


def test_a_file_is_read_back_as_it_was_and_joined_once(tmp_path):
    first, second = rows_of(made(), pixels()), rows_of(made(seed=1))
    path = tmp_path / "rows.csv"
    pd.concat([first, second]).to_csv(path, index=False)
    back = read_atlas(path)
    assert list(back) == list(SCHEMA)
    pd.testing.assert_frame_equal(back, pd.concat([first, second], ignore_index=True))
    assert len(joined([back, first, second])) == len(back)
    # The same weights on other inputs are further rows.
    assert len(joined([back, rows_of(made())])) == len(back) + len(first)
    result = atlas(back)
    assert len(result.table) == 2 and "vision" in result.words()
    assert result.picture is not None and result.picture.draw is not None
    assert len(result.picture.draw().axes) == 2


def _shifted(name: str, value: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows.assign(**{name: rows[name] + value})


@cases(
    "forged, said",
    (_shifted("negative", 2.0), "negative beyond 0 and 1"),
    (_shifted("negative", 0.01), "no count of eigenvalues"),
    (_shifted("alignment", 3.0), "alignment beyond 1"),
    (_shifted("radius", 1e3), "larger than the norm"),
    (_shifted("schema", 1), "another version"),
    (lambda rows: rows.iloc[:-1], "each layer and head"),
    (lambda rows: rows[rows["layer"] == 1], "each layer and head"),
    (lambda rows: pd.concat([rows, rows]), "each layer and head"),
    (lambda rows: rows.assign(weights="of my own"), "no SHA-256"),
    (lambda rows: rows.drop(columns="sink"), "its columns are others"),
    (lambda rows: rows.assign(d="wide"), "no atlas of version"),
)
def test_what_cannot_be_so_is_not_joined(forged, said, tmp_path):
    rows = rows_of(made())
    assert not faults(rows)
    path = tmp_path / "rows.csv"
    forged(rows).to_csv(path, index=False)
    refuses(said, read_atlas, path)
    refuses("differ in disc", joined, [rows, rows.assign(disc=1 - rows["disc"])])


def test_the_recorded_atlas_agrees_with_readings_made_by_another_route():
    """Spectra of DeiT-Ti as `probe readings` recorded them, by disc of a proven radius; and a
    pilot's, by a program of its own: 76.9 and 81.4 % with Re h < 0, .414 towards -I."""
    rows = read_atlas(RECORDED / "atlas.csv")
    assert not faults(rows) and rows["model"].nunique() == 4
    deit = rows[rows["model"] == "deit-tiny-patch16-224"]
    layers, heads = deit[deit["head"] == 0], deit[deit["head"] > 0]
    kept = recorded_deit()
    for of, own in (("whole", layers), ("heads", heads)):
        read = kept[(kept["norm"] == "unfolded") & (kept["of"] == of)].set_index("layer")
        found = own.groupby("layer")["negative_unfolded"].mean()
        np.testing.assert_allclose(found, read["negative"], atol=1e-9)
    assert layers["negative"].mean() == pytest.approx(0.769, abs=5e-4)
    assert heads["negative"].mean() == pytest.approx(0.814, abs=5e-4)
    assert layers["alignment"].mean() == pytest.approx(0.414, abs=5e-4)
