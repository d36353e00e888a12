"""Training repeats to the bit, is stored whole or not at all; the test images choose nothing."""

import dataclasses
import json
import math
import os
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing import InputError, open_model
from oversmoothing.experiments.digits import training, training_state as store
from oversmoothing.experiments.digits.data import SIZES, augmented, digits
from oversmoothing.experiments.digits.training_config import (
    FORM_OF,
    Design,
    TrainConfig,
    default_config,
)
from oversmoothing.experiments.digits.training_loop import learning_rate
from oversmoothing.experiments.digits.training_state import FILES, MANIFEST, StoredRun
from oversmoothing.experiments.digits.vit import StudyNet, generator
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.study.study_tasks import task
from oversmoothing.theory.support.errors import RequirementError
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import TINY, random_pixels, tiny_config, train

TRAIN, VALIDATION, TEST = SIZES["digits"].train, SIZES["digits"].validation, SIZES["digits"].test


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One tiny ViT-, trained once for this file."""
    return training.trained(tiny_config("vit-"), tmp_path_factory.mktemp("results"), progress=False)


def copied(run: StoredRun, target: Path) -> Path:
    return Path(shutil.copytree(run.folder, target / run.folder.name))


def written(of: training.TrainedModel, place: Path, config: object, weights: object = None) -> None:
    """A run of these parts in `run`."""
    weights = of.run.weights if weights is None else weights
    store.save_run(place / "run", config=config, weights=weights, log=of.run.log, metrics={})


def test_the_split_is_fixed_disjoint_and_stratified():
    data = digits()
    parts = (data.train, data.validation, data.test)
    assert [len(part) for part in parts] == [TRAIN, VALIDATION, TEST]
    images = torch.cat([part.pixels for part in parts]).flatten(1)
    # 1797 different images: equal rows would hide a shared one.
    assert len(torch.unique(images, dim=0)) == TRAIN + VALIDATION + TEST
    assert float(images.min()) == -1 and float(images.max()) == 1
    for part in parts:
        share = torch.bincount(part.labels, minlength=10) / len(part)
        assert (share - 0.1).abs().max() < 0.01


@given(seed=st.integers(0, 10**6), shift=st.floats(0, 2), zoom=st.floats(0, 0.3))
@settings(max_examples=25, deadline=None)
def test_augmentation_repeats_and_keeps_the_range_and_without_reach_all(seed, shift, zoom):
    pixels, reach = random_pixels(3, seed), {"shift": shift, "rotation": 15.0, "zoom": zoom}
    first, again = (augmented(pixels, torch.Generator().manual_seed(seed), **reach) for _ in "12")
    assert torch.equal(first, again)
    assert first.min() >= -1 - 1e-5 and first.max() <= 1 + 1e-5

    rng = torch.Generator().manual_seed(0)
    pixels, blank = random_pixels(4), -torch.ones(4, 8, 8)
    same = augmented(pixels, rng, shift=0, rotation=0, zoom=0)
    torch.testing.assert_close(same, pixels, rtol=0, atol=1e-5)
    assert torch.equal(augmented(blank, rng, shift=3, rotation=45, zoom=0.2), blank)


def test_the_same_configuration_gives_the_same_weights_and_log(finished):
    torch.manual_seed(123)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    model, log, metrics = train(finished.config)
    assert torch.get_num_threads() == 3
    torch.set_num_threads(threads)
    stored = finished.run.weights
    assert all(torch.equal(value, stored[name]) for name, value in model.state_dict().items())
    # The file itself: pandas before 3.1 reads a number to one unit in its last place.
    assert log.to_csv(index=False) == (finished.run.folder / "log.csv").read_text("utf-8")
    assert metrics["test_correct"] == finished.run.metrics["test_correct"]


def test_another_seed_gives_other_weights_order_and_augmentation():
    first, second = (training.new_model(tiny_config(seed=seed)).position for seed in (0, 1))
    assert not torch.equal(first, second)
    draws = [
        torch.rand(4, generator=generator(seed, purpose))
        for seed in (0, 1)
        for purpose in ("positions", "order", "augmentation")
    ]
    assert len({tuple(draw.tolist()) for draw in draws}) == 6


@pytest.mark.parametrize("variant", ["vit", "vit+", "vit-"])
def test_a_few_epochs_lower_the_loss(variant):
    config = tiny_config(variant, epochs=3, batch_size=32, learning_rate=1e-2)
    _, log, _ = train(config)
    losses = log.groupby("epoch")["validation_loss"].first()
    assert losses.iloc[-1] < losses.iloc[0] - 0.3


def test_the_log_follows_the_spectrum_of_every_layer(finished):
    log = finished.run.log
    assert log.groupby("epoch").size().to_dict() == {0: 2, 1: 2, 2: 2}
    assert (log["h_real_max"] < 0).all() and (log["h_real_min"] > -1.5).all()
    assert (log["safe_interval_min"] > 1).all()
    within = log["h_real_min"] >= -1
    assert (log.loc[within, "consensus_share"] == 0).all()
    assert log["training_loss"].isna().tolist() == [True] * 2 + [False] * 4


def test_the_test_images_are_scored_once_and_after_the_choice(monkeypatch):
    test, seen = digits().test.pixels, []
    genuine = training.score

    def watched(model, images):
        seen.append(torch.equal(images.pixels, test))
        return genuine(model, images)

    monkeypatch.setattr(training, "score", watched)
    train(tiny_config())
    assert seen == [False] * (len(seen) - 1) + [True]


def test_the_epoch_with_the_lowest_validation_loss_is_kept_and_no_later_one(finished, monkeypatch):
    log = finished.run.log[finished.run.log["epoch"] > 0]
    best = log.loc[log["validation_loss"].idxmin()]
    # Before pandas 3 a number that is read back may be off in its last digit.
    accuracy = finished.run.metrics["validation_accuracy"]
    assert accuracy == pytest.approx(best["validation_accuracy"], rel=1e-14)
    losses = iter([0.1, 3.0, 1.0, 2.0, 0.0, 0.0])  # untrained, three epochs, validation, test
    monkeypatch.setattr(training, "score", lambda model, images: (next(losses), 1))
    assert train(tiny_config(epochs=3))[2]["selected_epoch"] == 2


def test_the_learning_rate_warms_up_and_falls_to_zero():
    rates = [learning_rate(1.0, 0.1, step, 1000) for step in range(1000)]
    assert rates[0] == pytest.approx(0.01, rel=1e-3)
    assert max(rates) == pytest.approx(rates[99]) and 0.9 < max(rates) <= 1
    assert 0 < rates[-1] < 1e-5
    assert all(b < a for a, b in pairwise(rates[100:]))


def test_a_diverging_training_is_reported():
    refuses(r"diverged in epoch 1.*lower learning_rate", train, tiny_config(learning_rate=1e30))


def same(one: torch.nn.Module, other: torch.nn.Module) -> None:
    """Every weight, to the bit."""
    found = other.state_dict()
    for name, value in one.state_dict().items():
        assert torch.equal(value, found[name]), name


def test_the_random_model_is_the_untrained_one():
    model, log, metrics = train(config := tiny_config("vit-random"))
    same(model, training.new_model(config))
    assert set(log["epoch"]) == {0} and metrics["required_test_accuracy"] is None


def test_the_required_accuracy_is_enforced(finished):
    said = r"vit- \(seed 0\) classifies .* below the required"
    refuses(said, training.require_accuracy, finished, error=RequirementError)


def test_a_finished_run_is_read_and_not_trained_again(finished, monkeypatch):
    monkeypatch.setattr(training, "train_on", None)
    again = training.trained(finished.config, finished.run.folder.parent, progress=False)
    pixels = random_pixels(3)
    assert torch.equal(again.model(pixels), finished.model(pixels))
    assert not again.model.training
    provenance = json.loads((finished.run.folder / "provenance.json").read_text())
    assert "torch" in provenance["versions"]


@pytest.mark.parametrize("name", [*FILES, MANIFEST])
@pytest.mark.parametrize("how", ["missing", "truncated", "emptied", "a pipe"])
def test_a_damaged_run_is_refused_with_advice(finished, tmp_path, name, how):
    file = copied(finished.run, tmp_path) / name
    content = file.read_bytes()
    file.unlink()
    if how == "a pipe":
        os.mkfifo(file)
    elif how != "missing":
        file.write_bytes(content[: len(content) // 2] if how == "truncated" else b"")
    said = rf"{re.escape(str(file.parent))}.*damaged or incomplete.*Delete that folder"
    refuses(f"(?s){said}", training.trained, finished.config, tmp_path, progress=False)


@cases(
    "stated, said",
    *((dict.fromkeys([field], 16384), "not of the width and depth")
      for field in ("depth", "width", "ratio")),
    (tiny_config("vit").model_dump(), "not those of its config"),
    # The network whose heads shared their values whatever a variant's name said.
    ({"ffn_ratio": 2, "value_scale": 0.5},
     r"of an earlier release.*train it again, as vit-shared"),
)  # fmt: skip
def test_weights_of_another_configuration_are_refused(finished, tmp_path, stated, said):
    """A giant before it is made."""
    written(finished, tmp_path, finished.config.model_dump() | stated)
    refuses(said, training.load_model, tmp_path / "run")


def test_a_run_under_the_name_of_another_is_refused(finished, tmp_path):
    other = finished.config.model_copy(update={"seed": 5})
    copied(finished.run, tmp_path).rename(tmp_path / other.folder_name())
    said = r"another run than it holds \(seed \d+, not 5\)"
    refuses(said, training.trained, other, tmp_path, progress=False)


@pytest.mark.parametrize("change", ["surplus", "missing", "integers", "bool"])
def test_weights_that_are_not_the_models_are_refused_by_name(finished, tmp_path, change):
    weights = dict(finished.run.weights)
    name = "of.another" if change == "surplus" else sorted(weights)[0]
    if change == "missing":
        del weights[name]
    else:
        dtype = {"integers": torch.int64, "bool": torch.bool}.get(change, torch.float32)
        weights[name] = weights.get(name, torch.zeros(3)).to(dtype)
    with pytest.raises(InputError, match=name):
        written(finished, tmp_path, finished.config.model_dump(), weights)
        training.load_model(tmp_path / "run")


def test_a_run_finished_by_another_process_first_stays(finished, tmp_path):
    folder = copied(finished.run, tmp_path)
    kept = store.save_run(
        folder, config={}, weights={}, log=finished.run.log, metrics={"late": True}
    )
    assert kept.metrics == finished.run.metrics
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


@cases(
    "fields, message",
    ({"epoch": 3}, "no key 'epoch'. Did you mean 'epochs'"),
    ({"qqq": 3}, "no key 'qqq'.\nKnown: width"),
    ({"epochs": "3"}, "must be an integer"),
    ({"epochs": 2.5}, "must be an integer"),
    ({"depth": True}, "must be an integer"),
    ({"depth": 0}, "must be an integer from 1 to 16384"),
    ({"epochs": 0}, "go together"),
    ({"batch_size": TRAIN + 1}, "more than the 1077 training images"),
    ({"learning_rate": -1}, "a number >= 0"),
    ({"learning_rate": math.nan}, "a number >= 0"),
    ({"learning_rate": math.inf}, "a number >= 0"),
    ({"std": 0}, "a number > 0"),
    ({"label_smoothing": 1}, "from 0 to 0.99"),
    ({"variant": "vit*"}, "one of vit, vit"),
    ({"variant": 3}, "it must be a text in quotes"),
    ({"tied": 3}, "it must be true or false"),
    ({"width": 30}, "not a multiple of heads"),
    ({"patch": 3}, "does not divide"),
    ({"band_p": 0.6, "band_q": 0.5}, "p < q"),
    ({"signed": [2, 1]}, "rising order"),
    ({"signed": [9]}, "1 to depth 6"),
    ({"signed": []}, "1 to depth 6"),
    ({"fraction": 0.0}, "fraction = 0.0: it must be"),
    ({"fraction": 0.01}, "batch_size 32 is more than the 11 training images"),
    ({"augmentation": "deit"}, "digits are grey"),
    ({"data": "cifar1000"}, "one of digits, cifar10, cifar100"),
    ({"data": "cifar100", "patch": 5}, "does not divide the image size 32"),
    ([], "must hold a JSON object"),
)
def test_a_bad_configuration_is_refused_with_advice(fields, message):
    for said in (message, "config.json"):
        refuses(said, TrainConfig.from_json_object, fields, "config.json")


def test_every_field_enters_the_name_of_the_run():
    """Two configurations that differ anywhere must not share a folder."""
    base = default_config("vit")
    changed = {
        "variant": "vit+", "seed": 1, "depth": 4, "width": 32, "heads": 8, "patch": 4,
        "ratio": 3, "std": 0.7, "epochs": 1, "batch_size": 16, "learning_rate": 0.1,
        "warmup": 0.5, "weight_decay": 0.5, "label_smoothing": 0.5, "shift": 0.7, "rotation": 1.0,
        "zoom": 0.5, "log_every": 1, "probe_images": 1, "band_p": 0.4, "band_q": 0.9, "tied": True,
        "signed": [1, 3], "start": "mimetic", "mask": "local", "placement": "post",
        "gains": "negative", "fraction": 0.5, "drop_path": 0.1, "precision": "bfloat16",
        "watch_every": 7,
    }  # fmt: skip
    # These stand behind one another: pictures alone have colours, and alone are mixed.
    cifar = [{"data": "cifar10"}, {"data": "cifar100"}]
    deit = [{**each, "augmentation": "deit"} for each in cifar]
    assert set(changed) | set(deit[0]) == set(base.model_dump())
    names = {base.folder_name()} | {
        TrainConfig(**{**base.model_dump(), **fields}).folder_name()
        for fields in [*({name: value} for name, value in changed.items()), *cifar, *deit]
    }
    assert len(names) == len(changed) + 5
    assert TrainConfig.from_json_object(base.model_dump(), "x").folder_name() in names
    assert len({default_config(variant).folder_name() for variant in FORM_OF}) == len(FORM_OF)


def test_an_ordinary_variant_is_the_network_of_the_study():
    own = StudyNet(Design(), task("digits").reads, 4)
    same(training.new_model(default_config("vit", 4)), own)


@cases("variant", "vit-clip-minus", "vit-shared-disc", "vit-shared-interval", "vit-shared-band")
def test_spectra_lie_in_the_region_at_every_logged_step(variant):
    """Learning rate 0.1, fifty times the figures': H stays, and consensus dominates no image."""
    tied = variant == "vit-shared-interval"
    config = tiny_config(variant, batch_size=32, learning_rate=0.1, tied=tied)
    model, log, _ = train(config)
    assert len(log) == 6 and (log["region"] == "inside").all()
    assert (log["consensus_share"] == 0).all()
    if variant == "vit-shared-band":
        assert log["h_real_min"].min() >= -1 - 1e-9 and log["h_real_max"].max() <= -0.5 + 1e-9
    if variant == "vit-shared-interval":
        # One H in both layers: a start of 1, then what the probe images leave.
        (own,) = {block.attention.owner for block in model.blocks()}
        assert float(own.projection.form.s) > 1


def test_a_vit_minus_beyond_its_safe_interval_is_shown(tmp_path):
    """-psi^2 drawn down to -6: the log and the table say which share of H is no longer safe."""
    config = tiny_config("vit-", std=1.0, epochs=1)
    model = training.trained(config, tmp_path, progress=False)
    log = model.run.log
    assert (log["h_real_min"] < -log["safe_interval_min"]).any()
    assert log["outside_share"].max() > 0.3
    assert (log["region"] == "inside").all()  # its region, (-inf, 0], is no guarantee
    beside = dataclasses.replace(model.run, folder=Path("\udcff"))  # a byte that is no text
    row = training.training_table([(dataclasses.replace(model, run=beside), False)]).iloc[0]
    assert row["folder"] == "\\udcff"
    shown = row["h safe"]
    safe = 100 * (1 - log[log["epoch"] == 1]["outside_share"].mean())
    assert shown == f"{safe:.0f} %" and safe < 70
    held = training.trained(tiny_config("vit-shared-band", epochs=1), tmp_path, progress=False)
    assert training.training_table([(held, False)])["h safe"].iloc[0] == "100 %"


@cases(
    "how",
    {"variant": "vit-shared-band", "tied": True},
    {"variant": "vit-shared-interval", "signed": [2], "gains": "positive"},
    {"variant": "vit-shared-disc", "placement": "post", "gains": "negative"},
    {"variant": "vit", "placement": "post", "gains": "fixed"},
)
def test_every_choice_is_stored_read_back_and_inspected(tmp_path, how):
    found = training.trained(tiny_config(epochs=1, **how), tmp_path, progress=False)
    again = training.load_model(found.run.folder)
    same(found.model, again.model)
    pixels = random_pixels(3)
    assert torch.equal(found.model(pixels), again.model(pixels))
    # `extract` holds the description against the module: norms, attention, sums, stream.
    seen = extract(open_model(again.model), pixels)
    assert max(seen.av_error) < 1e-4


def test_the_command_trains_all_variants_and_then_reads_them(tmp_path, told):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**TINY, "epochs": 1}))
    command = ["train", path, "--device", "cpu", "--out", tmp_path / "out"]
    first = told(0, *command)
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert "test accuracy" in first and "cached" not in first
    assert told(0, *command).count("cached") == 3
