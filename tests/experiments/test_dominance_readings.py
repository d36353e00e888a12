"""The readings of Table 1: each class is what it says, and the readings agree where they must."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing import main, open_model, readings_of, verdict
from oversmoothing.experiments.inspection.spectra import certified_attention
from oversmoothing.experiments.models.model import Heads
from oversmoothing.experiments.models.pictures import photographs
from oversmoothing.experiments.study import atlas
from oversmoothing.experiments.study.readings import (
    CLASSES,
    READINGS,
    _alone,
    layer_cases,
    nearest,
    readings,
    summarise,
)
from oversmoothing.simulations.spectra.head_values import layer_dominance
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.verdict.formulas import disc_form
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, softmax_attention, tiny_model
from tests.support.tiny_transformers import tiny, tokens

seeds = st.integers(0, 2**32 - 1)
EXPECTED = {"SMOOTHING": {"consensus"}, "NON_SMOOTHING": {"smallest", "other"}}


def heads_of(W_V: torch.Tensor, W_O: torch.Tensor) -> Heads:
    return Heads(W_V, W_V, W_V, W_O)


def layer(seed: int, heads: int, d: int, r: int, scale: float = 2.0, norm: str = "layer") -> object:
    """What the readings use of a described layer."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal(shape) * (scale / shape[1]) ** 0.5)

    gain = torch.from_numpy(rng.uniform(0.5, 2, d))
    return SimpleNamespace(
        number=heads,
        heads=heads_of(draw(heads, d, r), draw(heads, r, d)),
        norm_attention=SimpleNamespace(kind=norm, gain=gain),
    )


def attention(seed: int, m: int, heads: int, n: int) -> np.ndarray:
    drawn = [softmax_attention(seed + 7 * i + k, n, 2.0) for i in range(m) for k in range(heads)]
    return np.stack(drawn).reshape(m, heads, n, n)


@given(seed=seeds, heads=st.integers(1, 3), n=st.integers(1, 7), r=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_E1_is_the_verdict_of_every_head_with_its_zeros(seed, heads, n, r):
    one, A = layer(seed, heads, 4, r), attention(seed, 2, heads, n)
    found = READINGS["E1"][0](one, A, "unfolded")
    for i in range(2):
        for k in range(heads):
            W = tuple(x[k].numpy() for x in (one.heads.W_V, one.heads.W_O))
            answer = verdict(A=A[i, k], W=W).verdict
            assert found[i, k] in EXPECTED.get(answer, {"tie", "consensus"})


@given(seed=seeds, heads=st.integers(1, 3), n=st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_E2_agrees_with_the_reading_of_the_digits_table(seed, heads, n):
    one, A = layer(seed, heads, 4, 4), attention(seed, 3, heads, n)
    W_V, W_O = atlas.factors(one, "unfolded")
    expected = layer_dominance(A, np.einsum("hdr,hre->ed", W_V, W_O)).classes
    found = READINGS["E2"][0](one, A, "unfolded")[:, 0]
    for own, name in zip(found, expected, strict=True):
        assert own in (name, "tie")


@given(seed=seeds, n=st.integers(2, 6), heads=st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_E3_is_the_radius_of_the_whole_operator(seed, n, heads):
    """Against I + sum_h H_h (x) B_h written out."""
    one, A = layer(seed, heads, 3, 2), attention(seed, 1, heads, n)
    W_V, W_O = atlas.factors(one, "unfolded")
    W = W_V @ W_O
    M = sum(np.kron(W[k].T, quotient(A[0, k])) for k in range(heads)) + np.eye(3 * (n - 1))
    rho_q = np.abs(np.linalg.eigvals(M)).max()
    rho_c = np.abs(np.linalg.eigvals(np.eye(3) + W.sum(0))).max()
    name = READINGS["E3"][0](one, A, "unfolded")[0, 0]
    if abs(rho_c - rho_q) > 1e-6:
        assert name == ("consensus" if rho_c > rho_q else "other")


@given(seed=seeds, n=st.integers(2, 7))
@settings(max_examples=30, deadline=None)
def test_E4_is_the_disc_rule_and_its_zeros_are_ties(seed, n):
    one, A = layer(seed, 2, 5, 1), attention(seed, 1, 2, n)
    h = atlas.whole_values(one, "unfolded").discs
    classes = READINGS["E4"][0](one, A, "unfolded")[0]
    a = np.linalg.eigvals(quotient(A[0].mean(0)))
    loses = (disc_form(h.centres[None], a[:, None]) < 0).any(0)
    zero = (h.radii == 0) & (h.centres == 0)
    assert zero.sum() == 3
    assert set(classes[zero]) == {"tie"}
    for name, lost in zip(classes[~zero], loses[~zero], strict=True):
        assert name in ({"smallest", "other", "tie"} if lost else {"consensus", "tie"})
    assert READINGS["E4 heads"][0](one, A, "unfolded").shape == (1, 2 * 5)


@pytest.mark.parametrize("seed", range(6))
def test_T7e_a_decoder_is_read_token_by_token(seed):
    """60 tokens, each mostly of the one before: the quotient's own eigenvalues are false ones."""
    one, rng = layer(seed, 2, 3, 3), np.random.default_rng(seed)
    A = np.tril(rng.random((1, 2, 60, 60))) * 0.01 + 0.9 * np.eye(60, k=-1)
    A /= A.sum(-1, keepdims=True)
    W_V, W_O = atlas.factors(one, "unfolded")
    own, tokens = np.einsum("hdr,hre->hed", W_V, W_O), np.diagonal(A[0], axis1=1, axis2=2)

    def won(whole: np.ndarray, parts: np.ndarray) -> bool:
        radii = [np.abs(1 + np.linalg.eigvals(M)).max() for M in (whole, *parts)]
        return radii[0] > max(radii[1:])

    heads = [won(H, a[1:, None, None] * H) for H, a in zip(own, tokens, strict=True)]
    seen = READINGS["E1"][0](one, A, "unfolded")[0]
    assert [name == "consensus" for name in seen] == heads
    all_heads = won(own.sum(0), np.einsum("hi,hde->ide", tokens[:, 1:], own))
    assert READINGS["E3"][0](one, A, "unfolded")[0, 0] == ("consensus" if all_heads else "other")
    h = np.linalg.eigvals(own.sum(0))
    moduli = np.abs(1 + tokens.mean(0)[1:, None] * h).max(0)
    alone = READINGS["E4"][0](one, A, "unfolded")[0]
    assert sorted(name == "consensus" for name in alone) == sorted(np.abs(1 + h) > moduli)


def test_a_head_of_low_rank_that_exceeds_nothing_ties_in_every_precision():
    """h = -1/2 of rank 1 with a PSD kernel: both radii are 1 by the zeros, and by nothing else."""
    e = torch.eye(4, dtype=torch.float64)
    one = SimpleNamespace(
        number=1,
        heads=heads_of(e[None, :, :1], -0.5 * e[None, :1]),
        norm_attention=SimpleNamespace(kind="none", gain=torch.ones(4)),
    )
    A = np.full((2, 1, 5, 5), 0.1) + 0.5 * np.eye(5)
    for dtype in (np.float64, np.float32):
        table = summarise(layer_cases(one, A.astype(dtype)))
        tie = table[(table["class"] == "tie")].set_index("reading")["percent"]
        assert tie["E1"] == tie["E2"] == 100
        # One by one: three zeros tie, and -1/2 loses at consensus.
        assert tie["E4"] == 75


@given(seed=seeds, r=st.integers(1, 4), norm=st.sampled_from(["layer", "rms", "none"]))
@settings(max_examples=30, deadline=None)
def test_folding_a_norm_is_its_gain_and_its_centring(seed, r, norm):
    """spec(C diag(g) W) with the zero of C exact; where there is no norm nothing changes."""
    d = 4
    one = layer(seed, 2, d, r, norm=norm)
    g = one.norm_attention.gain.numpy()
    C = np.eye(d) - 1 / d if norm == "layer" else np.eye(d)
    left = np.eye(d) if norm == "none" else C @ np.diag(g)
    plain, _ = atlas.factors(one, "unfolded")
    W_V, W_O = atlas.factors(one, "folded")
    np.testing.assert_allclose(W_V, left @ plain, atol=1e-13)
    both = [atlas.whole_values(one, "folded"), *atlas.own_values(one, "folded")]
    dense = [np.einsum("hdr,hre->de", W_V, W_O), *(W_V @ W_O)]
    for found, W in zip(both, dense, strict=True):
        expected = np.linalg.eigvals(W)
        for power in (1, 2, 3):
            assert (found.discs.centres**power).sum() == pytest.approx(
                (expected**power).sum(), abs=1e-9 * (1 + np.abs(expected).max()) ** 3
            )
        if norm == "layer":
            assert ((found.discs.radii == 0) & (found.discs.centres == 0)).any()


@pytest.fixture(scope="module")
def table():
    names = "vit-random", "vit-shared-plus", "vit-shared-minus"
    models = {name: tiny_model(name) for name in names}
    return readings_of(models, random_pixels(6), costly_inputs=2, batch_size=4)


def test_the_classes_share_out_every_case_of_every_model(table):
    for (_, reading), part in table.groupby(["model", "reading"]):
        assert part["count"].sum() == part["cases"].iloc[0]
        assert part["percent"].sum() == pytest.approx(100)
        assert part["images"].iloc[0] == (2 if reading == "E3" else 6)
        if reading == "E3":
            assert part[["percent_low", "percent_high"]].isna().all(axis=None)
            continue
        assert (part["percent_low"] <= part["percent"] + 1e-9).all()
        assert (part["percent"] <= part["percent_high"] + 1e-9).all()
        assert (part["percent_low"] < part["percent_high"]).all()
    assert set(table["reading"]) == set(READINGS)


def test_signed_models_obey_the_theorems_in_every_reading(table):
    """Every h_j > 0: consensus in each (T2d). Every h_j in [-1, 0): consensus in none (T3d); the
    heads of these models share one H, so that E3 is E2."""
    consensus = table[table["class"] == "consensus"].set_index(["model", "reading"])["percent"]
    assert (consensus["vit-shared-plus"] == 100).all()
    assert (consensus["vit-shared-minus"] == 0).all()


def test_intervals_are_over_images_and_not_over_their_cases():
    rows = [("E1", i, 1, k, 20 - k, 0, 0, 0) for i, k in enumerate((9, 11, 10, 8, 12))]
    cases = pd.DataFrame(rows, columns=["reading", "image", "layer", *CLASSES])
    found = summarise(cases).set_index("class").loc["consensus"]
    assert found["percent"] == pytest.approx(50) and found["cases"] == 100
    # Wilson's at a half, z / (2 sqrt(n + z^2)), n the five images.
    reach = 1.959964 / (2 * (5 + 1.959964**2) ** 0.5)
    assert found["percent_high"] - 50 == pytest.approx(100 * reach, rel=1e-5)


def test_the_nearest_reading_is_a_distance_from_a_published_column():
    one, A = layer(1, 2, 4, 2), attention(1, 3, 2, 6)
    table = summarise(layer_cases(one, A))
    found = nearest(table, "DeiT-B/16")
    assert found["distance"].is_monotonic_increasing and set(found["reading"]) == set(READINGS)
    assert ((found["distance"] >= 0) & (found["distance"] <= 100)).all()
    refuses("no column", nearest, table, "GPT")
    # 60 + 20 + 20 beside 57.82 + 42.18; of two classes it would be 75.
    cases = [("E1", 0, 1, 60, 20, 20, 0, 0)]
    table = summarise(pd.DataFrame(cases, columns=["reading", "image", "layer", *CLASSES]))
    (row,) = nearest(table, "DeiT-B/16").itertuples()
    assert (row.distance, row.distance_two) == pytest.approx((22.18, 17.18))


@pytest.mark.parametrize(("radius", "name"), [(0.02, "consensus"), (0.03, "tie")])
def test_an_eigenvalue_that_may_be_off_by_more_than_its_margin_is_a_tie(radius, name):
    """|1 + h| - |1 + h/2| = 1/2 beside SAFETY 2 radius."""
    h = Discs(np.array([1 + 0j]), np.array([radius]), np.arange(1))
    A = np.array([[0.75, 0.25], [0.25, 0.75]])
    assert list(_alone(A, SimpleNamespace(discs=h))) == [name]


def test_what_does_not_fit_the_model_is_refused():
    refuses("no reading E9", readings_of, {"vit": tiny_model("vit")}, random_pixels(1), ["E9"])
    refuses(r"give \[m, 2, n, n\]", lambda: layer_cases(layer(0, 2, 3, 1), attention(0, 1, 1, 4)))


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_padding_counts_for_nothing_in_a_reading(family):
    model = open_model(tiny(family))
    both = tokens((7, 4))
    alone = [{name: value[:1] for name, value in both.items()},
             {name: value[1:, :4] for name, value in both.items()}]  # fmt: skip
    columns = ["reading", "class"]
    counts = [readings_of({"tiny": model}, texts, costly_inputs=2).set_index(columns)["count"]
              for texts in (both, *alone)]  # fmt: skip
    assert counts[0].sum() > 0
    pd.testing.assert_series_equal(counts[0], counts[1] + counts[2])
    said = readings(model, both, ["E1"], "folded", 1).sentences
    assert said and not any("column" in sentence.says for sentence in said)


def test_the_command_prints_every_reading_asked_for(tmp_path, told):
    tiny("vit").save_pretrained(tmp_path / "vit")
    command = ["probe", str(tmp_path / "vit"), "readings", "--count", "2", "--out", str(tmp_path)]
    out = " ".join(told(0, *command, "--readings", "E1", "E3").split())
    assert "E1" in out and "E3" in out and "another model, so no reproduction" in out
    assert main([*command[:2], "--costly", "0"]) == 2
    assert (tmp_path / "readings.csv").exists()
    assert "Re h < 0, %" in out and "start unknown" in out
    layers = pd.read_csv(tmp_path / "value_spectra.csv")
    model = open_model(tmp_path / "vit")
    for (folding, of), part in layers.groupby(["norm", "of"]):
        for row, layer in zip(part.itertuples(), model.layers, strict=True):
            W_V, W_O = atlas.factors(layer, folding)
            each = [(a @ b).T for a, b in zip(W_V, W_O, strict=True)]
            parts = each if of == "heads" else [sum(each)]
            h = np.concatenate([np.linalg.eigvals(H) for H in parts])
            # Exact zeros come out of LAPACK as roundings, whatever their sign.
            h = h[np.abs(h) > 1e-9 * np.abs(h).max()]
            assert row.eigenvalues == len(h)
            assert row.negative == pytest.approx((h.real < 0).mean())
            assert row.universal_disc == pytest.approx((np.abs(h + 0.5) <= 0.5).mean())
            if of == "whole":
                H = sum(each)
                ratio = np.linalg.norm(H - H.T) / np.linalg.norm(H + H.T)
                assert row.asymmetry == pytest.approx(ratio)
                at_random = ((len(H) - 1) / (len(H) + 1)) ** 0.5
                assert row.asymmetry_at_random == pytest.approx(at_random)


def test_the_recorded_spectra_of_deit_are_those_that_are_quoted():
    """Of 12 layers of 192 features: shares in per cent, and asymmetry below the random value."""
    table = atlas.in_all(atlas.recorded_deit()).set_index(["norm", "H of"])
    for *key, negative, disc in (
        ("unfolded", "whole", 77.0, 73.3), ("unfolded", "heads", 82.0, 79.7),
        ("folded", "whole", 77.1, 71.6), ("folded", "heads", 81.4, 79.0),
    ):  # fmt: skip
        row = table.loc[tuple(key)]
        assert row["Re h < 0, %"] == pytest.approx(negative, abs=0.05), key
        assert row["in the disc, %"] == pytest.approx(disc, abs=0.05), key
    whole = table.loc[("unfolded", "whole")]
    assert whole["asymmetry"] == "0.684 (random 0.995)"
    assert whole["below random"] == "12 of 12 layers"
    assert whole["cos(H_start, H_end)"] == "start unknown"


def test_the_spectra_of_deit_are_still_those_on_record(real):
    found = atlas.value_spectra_table(open_model(real("deit-tiny-patch16-224")))
    pd.testing.assert_frame_equal(found, atlas.recorded_deit(), rtol=1e-6)


# --- certified head by head ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("vit")
    tiny("vit").save_pretrained(path)
    return path


def test_every_case_is_certified_or_says_why(folder):
    result = certified_attention(open_model(folder, dtype=torch.float64), photographs(2))
    table, layers = result.tables["cases"].rows, result.table.set_index("layer")
    assert len(table) == 2 * 3 * 2 and list(layers.index) == [1, 2]
    # A terminal shows how often each verdict comes, a row a layer, behind the answer.
    for (layer, said), own in table.groupby(["layer", "verdict"]):
        assert layers.loc[layer, said] == len(own)
    assert layers.drop(columns="largest radius").to_numpy().sum() == len(table)
    assert result.words().startswith("100.0 % of 12 cases are certified: ")
    assert len(result.text().split("\n\n")[1].splitlines()) == 1 + 2 + 1
    assert set(table["verdict"]) <= {"SMOOTHING", "NON_SMOOTHING", "TIE", "UNDECIDED"}
    decided = table[table["verdict"] == "SMOOTHING"]
    assert (decided["margin_low"] > 0).all()
    assert f"; {table['seconds'].median():.2g} s a spectrum" in " ".join(result.words().split())


def test_the_command_prints_the_share(folder, tmp_path, told):
    words = ["probe", str(folder), "certified", "--count=1", f"--out={tmp_path}"]
    assert "6 cases" in told(0, *words)
    assert (tmp_path / "certified_attention.csv").exists()


def test_models_of_text_are_refused(tmp_path):
    tiny("llama").save_pretrained(tmp_path)
    model = open_model(tmp_path, dtype=torch.float64)
    refuses("reads text", certified_attention, model, [torch.arange(4)])
