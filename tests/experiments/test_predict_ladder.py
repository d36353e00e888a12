"""The rungs: each is exact on the model that it is the theory of, and its cost is counted."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn

from oversmoothing import describe, ladder, open_model
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.ladder import landmarks, recording
from oversmoothing.experiments.ladder.climb import altered
from oversmoothing.experiments.ladder.landmarks import Grid, Landmarks, Stage
from oversmoothing.experiments.ladder.linear import linear_state
from oversmoothing.experiments.ladder.recording import record
from oversmoothing.experiments.ladder.regression import (
    Environment,
    StateFeatures,
    ridge,
    spectral_statistics,
)
from oversmoothing.experiments.ladder.scores import LadderResult, Rung, score
from oversmoothing.simulations.drawing.result import write
from oversmoothing.simulations.state_metrics import log_hfc_lfc_ratio
from tests.support.cases import cases
from tests.support.kronecker import leaning
from tests.support.refusals import refuses
from tests.support.tiny_transformers import DEIT_TI, tiny

WIDTH, HEADS = 8, 2
# One step and trajectory: attention alone, with norm, with FFN by Jacobian, by least squares.
ONE, ONE_N, ONE_J, ONE_F, ALL, ALL_N, ALL_J, ALL_F = recording.NAMES


class _Block(nn.Module):
    def __init__(self, norm: bool, ffn: nn.Module | None, bias: bool) -> None:
        super().__init__()
        self.mix, self.ffn = nn.MultiheadAttention(WIDTH, HEADS, bias=bias, batch_first=True), ffn
        self.one, self.two = (nn.LayerNorm(WIDTH) if norm else nn.Identity() for _ in range(2))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        N = self.one(X)
        X = X + self.mix(N, N, N, need_weights=False)[0]
        return X if self.ffn is None else X + self.ffn(self.two(X))


def stack(depth=3, *, norm=True, ffn="gelu", bias=True, cls=False, seed=0):
    torch.manual_seed(seed)
    inner = {
        None: lambda: None,
        "affine": lambda: nn.Linear(WIDTH, WIDTH),
        "gelu": lambda: nn.Sequential(nn.Linear(WIDTH, 12), nn.GELU(), nn.Linear(12, WIDTH)),
    }[ffn]
    module = nn.Sequential(*(_Block(norm, inner(), bias) for _ in range(depth))).double().eval()
    for p in module.parameters():
        p.data = 0.5 * torch.randn_like(p)
    return describe(module, cls=cls, modality="vision")


def inputs(count=14, n=5, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return 1 + torch.randn(count, n, WIDTH, generator=generator, dtype=torch.float64)


def predictions(model, X):
    """(predicted changes by rung, changes [b, layers] by the project's metric), FFNs fitted to the
    inputs."""
    found = extract(model, X)
    affine = recording.affine_ffns(model, [found.traces])
    states = [found.traces[0].before, *(trace.after_ffn for trace in found.traces)]
    measured = torch.stack([log_hfc_lfc_ratio(Y) for Y in states], dim=1).diff(dim=1)
    return recording.operator_changes(model, found.traces, affine), measured


@cases(
    "of, exact, other",
    # One step (P2) and the whole trajectory by frozen attention (P3): X + sum_h A_h X W_h.
    ({"norm": False, "ffn": None, "bias": False},
     dict.fromkeys((ONE, ALL, ONE_N, ALL_N), 1e-10), None),
    ({"ffn": None}, dict.fromkeys((ONE_N, ALL_N), 1e-10), ONE),  # P4, and not P2
    *(({"norm": norm, "ffn": "affine"}, {ONE_J: 1e-7, ALL_J: 1e-7, ONE_F: 1e-6, ALL_F: 1e-6}, ALL_N)
      for norm in (True, False)),  # P5, and not P4
)  # fmt: skip
def test_a_rung_is_exact_on_the_model_that_it_is_the_theory_of(of, exact, other):
    found, measured = predictions(stack(**of), inputs())
    for name, off in exact.items():
        torch.testing.assert_close(found[name], measured, atol=off, rtol=0)
    assert other is None or (found[other] - measured).abs().max() > 1e-3


def test_a_jacobian_by_differences_is_the_automatic_one():
    f = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3)).double()
    point = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.autograd.functional.jacobian(f, point).T
    with torch.no_grad():
        found = recording.jacobian(f, point)
        torch.testing.assert_close(found.M, expected, atol=1e-8, rtol=0)
        torch.testing.assert_close(found(point), f(point))


def test_the_spectral_gap_is_that_of_the_kronecker_spectrum():
    """Of causal attention the eigenvalues stand on its diagonal (T1h)."""
    model = stack(1, norm=False, ffn=None, bias=False)
    h = torch.linalg.eigvals(model.layers[0].heads.total())
    A, causal = extract(model, inputs(2)).traces[0].attention, torch.from_numpy(leaning(60))
    a = [torch.linalg.eigvals(each.mean(0)) for each in A]
    rests = [each[(each - 1).abs().argsort()[1:]] for each in a]
    for attention, others in ((A, rests), (causal[None, None], [causal.diagonal()[1:]])):
        traces = (SimpleNamespace(attention=attention),)
        for values in recording.spectral_gaps(model.layers, traces).values():
            for value, rest in zip(values[:, 0], others, strict=True):
                gap = (1 + h[:, None] * rest).abs().max() / (1 + h).abs().max()
                assert float(value) == pytest.approx(float(gap.log()), abs=1e-10)


def linear_recording(images=60, n=4, d=3, layers=3, seed=0):
    """States that one affine operator a layer makes exactly."""
    generator = torch.Generator().manual_seed(seed)
    X = 2 + torch.randn(images, n, d, generator=generator)
    states = [X]
    for _ in range(layers):
        M = torch.eye(d) + 0.3 * torch.randn(d, d, generator=generator)
        X = X @ M + torch.randn(n, d, generator=generator)
        states.append(X)
    logs = torch.stack([recording.log_energies(X) for X in states], dim=1).numpy()
    return recording.Recording(states[0], logs, torch.stack(states))


def test_p6_is_exact_where_the_layers_are_affine_and_needs_x0_alone(monkeypatch):
    monkeypatch.setattr("oversmoothing.experiments.ladder.linear.PENALTY", 1e-9)
    known, held = linear_recording(), linear_recording(seed=0)
    found = linear_state(known)
    logs = found.logs(held.start).reshape(len(held), -1, 2)
    np.testing.assert_allclose(logs, held.logs, atol=1e-4)
    np.testing.assert_allclose(found.predict(held.start), held.change, atol=2e-2)


def test_p6_puts_missing_energy_back_in_the_mean():
    """Noise that no operator can know raises the energy by its calibration mean."""
    known = linear_recording()
    noisy = known.states.clone()
    noisy[1:] += torch.randn(noisy[1:].shape, generator=torch.Generator().manual_seed(5))
    logs = torch.stack([recording.log_energies(X) for X in noisy], dim=1).numpy()
    raised = recording.Recording(known.start, logs, noisy)
    found = linear_state(raised)
    energy = np.exp(2 * found.logs(known.start).reshape(len(known), -1, 2)).mean(0)
    np.testing.assert_allclose(energy, np.exp(2 * logs).mean(0), rtol=1e-3)
    # The reading is fitted to the same logs that a held-out image gives.
    read = ridge(found.logs(known.start), raised.change)(found.logs(known.start))
    np.testing.assert_allclose(found.predict(known.start), read, atol=1e-4)


@pytest.mark.parametrize(("tokens", "cls"), [(16, False), (17, True), (26, True), (197, True)])
def test_landmarks_lie_in_their_context_and_stand_for_all_patches(tokens, cls):
    grid = Grid(tokens, cls)
    for context, marks in zip(grid.context, grid.landmarks, strict=True):
        assert set(marks.tolist()) <= set(context.tolist())
        stage = Stage(grid, range(1), marks, context)
        assert float(stage.bias.exp().sum()) == pytest.approx(tokens)
        assert float(stage.weights.sum()) == pytest.approx(tokens)
        assert marks.numel() > 0 and int(context.min()) >= cls
    assert set(grid.context[1].tolist()) == set(grid.landmarks[0].tolist())


def test_tokens_that_are_no_grid_are_refused():
    for tokens in (9, 17):
        refuses("square grid", Grid, tokens, False)


def test_landmarks_keep_their_own_values_and_the_rest_is_interpolated():
    generator = torch.Generator().manual_seed(2)
    features = torch.randn(50, 6, 3, generator=generator)
    target = features @ torch.randn(3, 4, generator=generator) + torch.randn(6, 4)
    marks = torch.tensor([1, 4])
    found = Environment(features, [target], marks, rank=3)
    around = found.around(0, found.phi(features), marks, target[:, marks] + 7)
    torch.testing.assert_close(around[:, marks], target[:, marks] + 7)
    exact = found.around(0, found.phi(features), marks, target[:, marks])
    torch.testing.assert_close(exact, target, atol=0.05, rtol=0)


def test_with_the_true_context_the_landmarks_follow_the_model(monkeypatch):
    """All patches landmarks of one stage that covers every layer: the model itself."""
    X = inputs(20, 16).float()
    model = describe(stack(2).module.float(), modality="vision")
    every = torch.arange(16)
    grid = Grid(16, False)
    grid.context = grid.landmarks = every, every
    monkeypatch.setattr(landmarks, "Grid", lambda *given, **how: grid)
    known = record(model, X, states=True)
    ratio = Landmarks(model, known, first_layers=1).features(known.start)[-1].values
    expected = known.logs[..., 0] - known.logs[..., 1]
    # The first columns: X_0, stage 1 (layer 1), stage 2 (layer 2).
    np.testing.assert_allclose(ratio[:, :3], expected, atol=1e-3)
    # The last column: stage 1 completed to all patches, which are landmarks here.
    np.testing.assert_allclose(ratio[:, 3], expected[:, 1], atol=1e-3)


@pytest.mark.parametrize("first", [1, 2, 7])
def test_more_layers_on_the_finer_grid_cost_more(first):
    model = open_model(tiny("vit"))
    pixels = torch.randn(30, 3, 32, 32, generator=torch.Generator().manual_seed(6))
    known = record(model, pixels, states=True)
    found = Landmarks(model, known, first)
    assert len(found.stages[0].layers) == min(first, 2)
    assert found.features(known.start)[-1].values.shape == (30, 1 + 2 + min(first, 2))
    assert (found.cost() > Landmarks(model, known, 1).cost()) == (first > 1)
    refuses("at least 1", Landmarks, model, known, 0)


def test_features_are_finite_for_states_without_spread_in_a_direction():
    X = torch.zeros(12, 5, 4)
    X[..., 0] = torch.randn(12, 5, generator=torch.Generator().manual_seed(0)) + 3
    for block in StateFeatures(X)(X):
        assert np.isfinite(block.values).all()
    assert np.isfinite(spectral_statistics(X)).all()


def test_the_cost_of_deit_tiny_is_the_known_one():
    """12 layers of 12 d^2 n + 2 n^2 d multiply-adds, d = 192, n = 197."""
    model = open_model(tiny("vit", **DEIT_TI, num_hidden_layers=12))
    assert recording.model_cost(model, 197) == 12 * (12 * 192**2 * 197 + 2 * 197**2 * 192)


def test_the_whole_ladder_on_a_vision_model(tmp_path):
    model = open_model(tiny("vit"))
    pixels = torch.randn(34, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    found = ladder(model, pixels[:24], pixels[24:], standard=15)
    frame = found.table.set_index("rung")
    wanted = {"P0", "P0'", "P0''", "P0'''", ONE, ALL, "P6", "P7 kernel", "P7 landmarks"}
    assert wanted | {"P7 landmarks, reduced FFN"} <= set(frame.index)
    assert frame.loc["P0'", "r2_within"] == 0 and frame.loc["P0", "multiply_adds"] == 0
    assert frame.loc["P0''", "calibration"] == 15 and frame.loc["P6", "calibration"] == 24
    own_run = frame.index.str.match(r"P[1-5]")
    assert (frame["multiply_adds"].isna() == own_run).all()
    assert found.tables["r2_by_layer"].rows.shape == (2, 1 + len(frame)) and not found.skipped
    record = json.loads(write(found, tmp_path)[0].read_text())
    assert record == found.to_json_object()
    # R^2 can be computed again from what is kept.
    kept = pd.DataFrame(record["predictions"])
    assert len(kept) == 10 * 2 and list(kept["input"][:3]) == [1, 1, 2]
    y = kept["measured"]
    for rung in frame.index:
        r2 = 1 - np.square(y - kept[rung]).sum() / np.square(y - y.mean()).sum()
        assert r2 == pytest.approx(frame.loc[rung, "r2"], abs=1e-12), rung


def test_a_rung_that_predicts_what_another_does_has_fallen_back():
    """Equal inputs leave nothing to fit but the means of the layers."""
    model = open_model(tiny("vit"))
    pixels = torch.randn(14, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    found = ladder(model, pixels[:1].repeat(10, 1, 1, 1), pixels[10:], standard=10)
    assert re.search(r"The same numbers as P0', .* come from .*P7 kernel", found.words())
    honest, again = (ladder(model, pixels[:10], pixels[10:], standard=10) for _ in range(2))
    assert "The same numbers" not in honest.words() and honest.table.equals(again.table)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_causal_text_models_climb_all_but_the_landmarks(family):
    model = open_model(tiny(family))
    ids = torch.randint(0, 40, (30, 9), generator=torch.Generator().manual_seed(4))
    found = ladder(model, list(ids[:20]), list(ids[20:]))
    assert list(found.skipped) == ["P7 landmarks", "P7 landmarks, reduced FFN"]
    assert all("vision" in why for why in found.skipped.values())
    assert len(found.rungs) > 10


def test_what_the_ladder_does_not_apply_to_is_refused():
    refuses("Post-LN", lambda: ladder(open_model(tiny("bert")), [], []))
    model = stack(1)
    refuses("at least 10", lambda: ladder(model, inputs(9), inputs(2)))
    refuses("PIL", lambda: ladder(model, inputs(12), inputs(2), copies=1))
    refuses("different numbers of tokens", lambda: ladder(model, inputs(12), inputs(2, n=6)))


def test_copies_are_mirrors_first_and_repeatable():
    array = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    image = Image.fromarray(array)
    one, two = list(altered([image], 2, 5)), list(altered([image], 2, 5))
    assert np.array_equal(np.asarray(one[0]), array[:, ::-1])
    assert np.array_equal(np.asarray(one[1]), np.asarray(two[1])) and one[1].size == (8, 8)
    assert not np.array_equal(np.asarray(one[1]), array)


def test_the_command_writes_the_ladder_says_what_it_found_and_refuses_few_images(tmp_path, told):
    tiny("vit").save_pretrained(tmp_path / "model")
    (tmp_path / "images").mkdir()
    random = np.random.default_rng(0)
    command = ["probe", tmp_path / "model", "ladder", "--images", tmp_path / "images",
               "--out", tmp_path / "out"]  # fmt: skip
    for k in range(24):
        array = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(array).save(tmp_path / "images" / f"{k:02}.png")
        assert k or "needed" in told(2, *command)
    sizes = ["--calibration", "16", "--standard", "12", "--held-out", "6", "--copies", "1"]
    said = told(0, *command, *sizes)
    # No "[measured on 6 inputs]" between what defines a rung and the number of it.
    assert "an intercept a layer. R^2 is pooled" in " ".join(said.split())
    assert "multiply-adds" in said
    found = json.loads((tmp_path / "out" / "ladder.json").read_text())
    assert found["model"] == "model" and str(tmp_path) not in json.dumps(found)
    assert found["held_out"] == 6 and found["provenance"]["versions"]["torch"]
    names = [rung["rung"] for rung in found["rungs"]]
    assert "P6" in names and "P6, 12 inputs" in names
    assert found["settings"]["held_out_from"] == 0 and "split by the seed" in str(found["settings"])
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "ladder.json", "ladder.csv", "ladder.txt", "ladder.html", "r2_by_layer.csv",
        "predictions.csv",
    }  # fmt: skip


def test_the_verdict_does_not_praise_what_is_no_better_than_the_means():
    y = np.random.default_rng(0).standard_normal((8, 2))
    # Better on these inputs, by one of them.
    doubtful = np.where(np.arange(16).reshape(8, 2) == np.abs(y).argmax(), y, -0.05 * y)
    for predicted, said in (
        (-y, "None: no predictor"),
        (doubtful, "Not known: these inputs do not tell whether P6"),
        (y, "P6: it is the best of those that need no full run of the model (R^2 1.000"),
    ):
        means, own = (
            Rung(name, each, 1, 8, 0, "", score(y, each, np.zeros(2), resamples=20))
            for name, each in (("P0'", np.zeros((8, 2))), ("P6", predicted))
        )
        if predicted is doubtful:
            assert own.score.r2_within > 0 > own.score.r2_within_low
        assert LadderResult("m", 5, y, 10, (means, own), {}, {}).words().startswith(said)
