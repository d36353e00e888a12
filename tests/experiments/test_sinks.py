"""What one large direction hides, and how linear a layer is: laws on states made to be known."""

import pandas as pd
import pytest
import torch
from torch import Tensor

from oversmoothing import inspect, metrics, open_model
from oversmoothing.experiments.inspection import states
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.observe import Linearity
from oversmoothing.experiments.inspection.sentences import of_rank, of_sinks
from oversmoothing.experiments.inspection.states import sinks, state_numbers
from oversmoothing.experiments.models.model import Trace
from tests.support.families_of_today import inputs, today, whole
from tests.support.made_models import WIDTH, draw, made, sharing
from tests.support.refusals import refuses


@pytest.mark.parametrize("shape", [(20, 6), (6, 20), (7, 7)])
def test_the_raw_rank_is_a_function_of_the_rank_behind_the_sink(shape):
    """T4g: erank(X) = e^eta(p) erank(X')^(1-p)."""
    X = draw(*shape) + 5
    found, raw = sinks(X), float(metrics(X)["effective_rank"])
    p = found["sink_share"]
    eta = torch.special.entr(p) + torch.special.entr(1 - p)
    assert float(eta.exp() * found["effective_rank_desunk"] ** (1 - p)) == pytest.approx(raw)


@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
@pytest.mark.parametrize("pull", [0.0, 0.3, 3.0, 60.0])
def test_the_largest_direction_is_that_of_the_singular_values(shape, pull):
    """Whatever the distance of the second: the further they are pulled the larger it is."""
    X = draw(*shape) + pull
    u, sigma, v = torch.linalg.svd(X, full_matrices=False)
    found, rest = sinks(X), metrics(X - sigma[0] * torch.outer(u[:, 0], v[0]))
    for name in ("cos_mean", "effective_rank"):
        # Near collapse the rounding of a Gram matrix, 1e-8 of sigma_2, counts as a direction.
        torch.testing.assert_close(found[f"{name}_desunk"], rest[name], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(found["sink_share"], sigma[0] / sigma.sum(), rtol=1e-9, atol=0)


def test_a_pivot_that_rounding_leaves_at_0_does_not_hide_the_largest_direction():
    """The eigenvalue as known lies so far below that the shifted matrix is exactly singular."""
    eps = torch.finfo(torch.float64).eps
    gram = torch.diag(torch.tensor([1 + 4 * eps, 0.5], dtype=torch.float64))
    assert states._first_vector(gram, gram.new_tensor(1.0)).abs().tolist() == [1.0, 0.0]


def test_behind_a_sink_token_stands_what_stood_there_without_it():
    Z, v = draw(30, 8), draw(8, seed=1)
    X = Z.clone()
    X[3] += 1e6 * v
    found = sinks(X)
    assert float(metrics(X)["effective_rank"]) < 1.001 and found["large_tokens"] == 1
    kept = torch.arange(30) != 3
    across = v / v.norm()
    clean = metrics(Z[kept] - torch.outer(Z[kept] @ across, across))
    torch.testing.assert_close(
        found["effective_rank_desunk"], clean["effective_rank"], rtol=1e-4, atol=0
    )
    without = metrics(Z[kept])
    for name in ("cos_mean", "effective_rank"):
        torch.testing.assert_close(found[f"{name}_without_large"], without[name])


@pytest.mark.parametrize(("cls", "registers"), [(True, 2), (False, 3), (True, 0), (False, 0)])
@pytest.mark.parametrize("width", [6, 14])
def test_registers_and_cls_are_left_out_by_their_number(width, cls, registers):
    """Each part as if it were a state of its own, raw and without its largest direction."""
    X, how = draw(14, width) + 1, {"cls": cls, "registers": registers}
    found = {k: x[0] for k, x in state_numbers(X[None], **how, ranks=1, closely=1)[1][0].items()}
    end = int(cls) + registers
    parts = {"without_first": list(range(1, 14))}
    if registers:
        parts["without_registers"] = [k for k in range(14) if not cls <= k < end]
        parts["patches"] = list(range(end, 14))
    for name, kept in parts.items():
        raw, alone = metrics(X[kept]), sinks(X[kept])
        for column in ("cos_mean", "effective_rank"):
            torch.testing.assert_close(found[f"{column}_{name}"], raw[column])
            torch.testing.assert_close(found[f"{column}_desunk_{name}"], alone[f"{column}_desunk"])
        torch.testing.assert_close(found[f"sink_share_{name}"], alone["sink_share"])
    assert ("cos_mean_patches" in found) == (registers > 0)


@pytest.mark.parametrize("name", ["DINOv2 with registers", "DINOv3"])
def test_registers_of_a_model_are_counted_and_left_out(name):
    """A large register hides the patches from every raw column, and from none without it."""
    module = today(name)
    with torch.no_grad():
        module.embeddings.register_tokens[0, 1] += 1e3
    model = open_model(module)
    assert (model.cls, model.registers) == (True, 2)
    report = inspect(model, inputs(name), name="registers")
    assert report.counted == "all 19 tokens with CLS and 2 registers"
    row = report.to_frame().iloc[0]
    X = extract(model, inputs(name)).traces[0].before.double()
    for column in ("cos_mean", "effective_rank"):
        for place, first in (("patches", []), ("without_registers", [0])):
            kept = [*first, *range(3, 19)]
            expected = metrics(X[:, kept])[column].mean()
            assert row[f"{column}_{place}"] == pytest.approx(float(expected), rel=1e-6)
    assert row["large_tokens"] == 1
    assert row["effective_rank"] < 2 < 5 < row["effective_rank_without_registers"]
    assert "Its patches alone, without CLS and the 2 registers, have" in report.summary()


def test_models_without_registers_have_no_columns_of_them():
    model = open_model(today("DINOv2"))
    report = inspect(model, inputs("DINOv2"))
    assert model.registers == 0 and report.counted == "all 17 tokens with CLS"
    assert "cos_mean_patches" not in report.table and "patches alone" not in report.summary()
    assert "cos_mean_desunk_without_first" in report.table
    assert open_model(whole("DINOv3", num_register_tokens=0)).registers == 0


def test_rank_one_and_one_token_have_nothing_behind_them():
    one = sinks(torch.outer(draw(6), draw(4, seed=1)))
    assert one["effective_rank_desunk"].isnan() and one["sink_share"] == pytest.approx(1.0)
    assert sinks(draw(1, 4))["cos_mean_without_first"].isnan()


@pytest.mark.parametrize(("rank", "converged"), [(3, True), (64, False)])
def test_the_rank_converges_where_directions_are_fewer_than_tokens(rank, converged):
    X = draw(64, rank) @ draw(rank, 64, seed=1)
    growth = metrics(X)["effective_rank"] / sinks(X)["effective_rank_half"]
    assert (float(growth) <= 1.1) == converged


def scores(X: Tensor, Y: Tensor) -> dict[str, float]:
    held = Linearity(made(depth=1))
    keep = torch.ones(X.shape[:2], dtype=torch.bool)
    for part in (slice(0, 3), slice(3, None)):
        held.see(0, Trace(None, X[part], X[part], Y[part]), keep[part], part.start)
    return held.columns()[0]


def test_a_linear_layer_is_linear_and_noise_is_not():
    X = draw(9, 40, WIDTH) + 3
    exact = scores(X, X + X @ draw(WIDTH, WIDTH, seed=1) + 2)
    assert exact["linear_with_residual"] == pytest.approx(1, abs=1e-6)
    assert exact["linear_without_residual"] == pytest.approx(1, abs=1e-6)
    noise = scores(X, X + 0.5 * draw(9, 40, WIDTH, seed=2))
    # Var X / (Var X + 1/4), and nothing of the noise itself.
    assert noise["linear_with_residual"] == pytest.approx(0.8, abs=0.05)
    assert -0.3 < noise["linear_without_residual"] < 0.05


def test_of_directions_that_were_not_fitted_a_layer_is_not_said_to_take_them_away():
    """Texts with words of their own, before any position is added: X + X / 10 is near to X."""
    X = draw(10, 40, WIDTH)
    X[::2, :, WIDTH // 2 :] = 0
    X[1::2, :, : WIDTH // 2] = 0
    found = scores(X, 1.1 * X)
    assert found["linear_with_residual"] == pytest.approx(1 - 0.1**2 / 1.1**2, abs=2e-3)
    assert found["linear_without_residual"] == pytest.approx(0, abs=0.02)


def test_too_few_tokens_tell_nothing_of_linearity():
    X = draw(4, 6, WIDTH)
    assert all(value != value for value in scores(X, X).values())


def test_the_report_has_the_columns_and_says_them():
    report = inspect(made(value=0.1), sharing(10), name="made", budget=Plan(10, 3))
    row = report.to_frame().iloc[-1]
    assert report.closer == 3 and "over the first 3 images" in report.summary()
    assert f"mean cosine {row['cos_mean_desunk']:.3f} and effective rank" in report.summary()
    raw = report.cosines[-1, :3].mean()
    assert f"; raw {raw:.3f} and " in report.summary() and abs(raw - row["cos_mean"]) > 2e-3
    # Behind an H that is a multiple of 1 a layer of equal heads is linear but for its norms.
    assert 0 < row["linear_with_residual"] <= 1
    assert "rank_growth" not in inspect(made(), sharing(2), budget=Plan(ranks=2)).table
    refuses("closely is -1", lambda: Plan(closely=-1))


def test_the_sentences_read_the_table():
    table = pd.DataFrame({"layer": range(5), "rank_growth": [1.2, 1.3, 1.0, 1.05, 1.11]})
    table[["sink_share", "cos_mean_desunk", "effective_rank_desunk"]] = 0.625, 0.05, 669.0
    table[["cos_mean", "effective_rank"]] = 0.829, 191.0
    assert "After layers 0 to 1, 4 (0: the input) the effective rank still grows" in of_rank(table)
    assert "twice as many have up to 1.30 times the rank" in of_rank(table)
    said = of_sinks(table, 1, "text")
    assert "over the first text" in said and "rank 669.0; raw 0.829 and 191.0." in said
    assert of_sinks(table, 0, "text") == "" and of_rank(table[table["layer"].isin([2, 3])]) == ""
