"""The guide's five lines in a script of each trainer, run on the digits with their own loggers."""

import json
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional

import oversmoothing
from oversmoothing.experiments.digits.data import digits
from oversmoothing.simulations.state import one_thread
from tests.support.cases import cases
from tests.support.tiny_transformers import tiny

MISSING = "the extra `training` is not installed: pip install 'oversmoothing[training]'"
LAYERS = 3


@pytest.fixture(autouse=True)
def one():
    with one_thread():
        yield


def small_vit() -> nn.Module:
    sizes = {"image_size": 8, "patch_size": 2, "num_channels": 1, "num_labels": 10}
    return tiny("vit", num_hidden_layers=LAYERS, **sizes).train()


def examples(count: int = 128) -> list[dict[str, torch.Tensor]]:
    data = digits().train
    return [{"pixel_values": data.pixels[k, None], "labels": data.labels[k]} for k in range(count)]


def scalars(folder) -> dict[str, list[int]]:
    """The tags of TensorBoard's files with the steps at which they stand."""
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason=MISSING
    )
    found = {}
    for path in folder.rglob("events.*"):
        read = accumulator.EventAccumulator(str(path))
        read.Reload()
        for tag in read.Tags()["scalars"]:
            found[tag] = [event.step for event in read.Scalars(tag)]
    return found


def hugging_face(folder, *, watch: bool, **settings):
    from transformers import Trainer, TrainingArguments

    model = small_vit()
    arguments = TrainingArguments(
        str(folder), per_device_train_batch_size=16, max_steps=5, logging_steps=1, seed=1,
        report_to="tensorboard" if watch else "none", save_strategy="no", disable_tqdm=True,
        use_cpu=True, **settings,
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=examples(), eval_dataset=examples(32))
    watcher = None
    if watch:
        watcher = oversmoothing.Watcher(model, every=2, budget=None)
        trainer.add_callback(watcher.hugging_face(trainer))
    trainer.train()
    return trainer, watcher


ALL_AT_ONCE = {
    "bf16": True, "gradient_accumulation_steps": 2, "eval_strategy": "steps", "eval_steps": 1,
}  # fmt: skip


@pytest.mark.parametrize("settings", [{}, ALL_AT_ONCE], ids=["plain", "all at once"])
def test_in_a_hugging_face_trainer(tmp_path, monkeypatch, settings):
    pytest.importorskip("accelerate", reason=MISSING)
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    alone, _ = hugging_face(tmp_path / "a", watch=False, **settings)
    trainer, watcher = hugging_face(tmp_path / "b", watch=True, **settings)
    table = watcher.to_frame()
    assert list(table["step"].unique()) == [0, 2, 4] and len(table) == 3 * (LAYERS + 1)
    assert set(table["mode"]) == {"train"} and table["h_abs_max"].notna().sum() == 3 * LAYERS
    losses = [
        [row["loss"] for row in each.state.log_history if "loss" in row]
        for each in (alone, trainer)
    ]
    assert losses[0] == losses[1] and len(losses[0]) == 5
    tags = scalars(tmp_path / "board")
    assert tags["train/oversmoothing/layer_3/hfc_lfc"] == [0, 2, 4]
    assert not any(module._forward_hooks for module in trainer.model.modules())


def lightning_script(folder, *, watch: bool, loggers: list, **settings):
    import lightning

    class Digits(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = small_vit()
            self.losses: list[float] = []

        def training_step(self, batch, _):
            scores = self.model(batch["pixel_values"]).logits
            loss = functional.cross_entropy(scores, batch["labels"])
            self.losses.append(float(loss.detach()))
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    lightning.seed_everything(1, verbose=False)
    module = Digits()
    watcher = oversmoothing.Watcher(module.model, every=2, budget=None) if watch else None
    trainer = lightning.Trainer(
        max_steps=5, accelerator="cpu", default_root_dir=folder, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, logger=loggers or False,
        callbacks=[watcher.lightning()] if watcher else [], **settings,
    )  # fmt: skip
    data = torch.utils.data.DataLoader(examples(), batch_size=8, shuffle=True)
    trainer.fit(module, data)
    return module, watcher


@pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers")
@cases("settings", {}, {"precision": "bf16-mixed", "accumulate_grad_batches": 2}, ids=str)
def test_in_lightning(tmp_path, settings):
    pytest.importorskip("lightning", reason=MISSING)
    from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger

    alone, _ = lightning_script(tmp_path, watch=False, loggers=[], **settings)
    loggers = [CSVLogger(tmp_path / "csv"), TensorBoardLogger(tmp_path / "board")]
    module, watcher = lightning_script(tmp_path, watch=True, loggers=loggers, **settings)
    table = watcher.to_frame()
    assert list(table["step"].unique()) == [0, 2, 4] and len(table) == 3 * (LAYERS + 1)
    assert alone.losses == module.losses and len(alone.losses) >= 5
    assert scalars(tmp_path / "board")["oversmoothing/layer_3/cos_mean"] == [0, 2, 4]
    written = pd.read_csv(next((tmp_path / "csv").rglob("metrics.csv")))
    said = written["oversmoothing/layer_2/effective_rank"].dropna()
    assert list(said) == pytest.approx(list(table.query("layer == 2")["effective_rank"]))
    assert not any(each._forward_hooks for each in module.modules())


def test_the_guide_shows_the_lines_that_run_here():
    page = (Path(__file__).parents[2] / "docs/guide/train.md").read_text("utf-8")
    here = Path(__file__).read_text("utf-8")
    for line in ("trainer.add_callback(watcher.hugging_face(trainer))", "[watcher.lightning()]"):
        assert line in page and here.count(line) > 1


def test_a_callback_takes_the_hooks_off_when_lightning_fails(tmp_path):
    pytest.importorskip("lightning", reason=MISSING)
    model = small_vit()
    watcher = oversmoothing.Watcher(model)
    watcher.lightning().on_exception(None, None, ValueError())
    assert not any(each._forward_hooks for each in model.modules())


def test_the_record_is_plain_numbers(tmp_path):
    model = small_vit().train()
    with oversmoothing.Watcher(model, every=1, budget=None) as watcher:
        model(digits().train.pixels[:4, None])
    _, said = watcher.take()
    assert json.loads(json.dumps(said)).keys() == said.keys()
