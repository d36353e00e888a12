"""Watching a training changes nothing of it, and what is recorded is what the model did."""

import gc
import json
import warnings
import weakref
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BartConfig, BartModel

from oversmoothing import Watcher, describe, metrics
from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.inspection import watcher as room
from oversmoothing.experiments.inspection.heads_and_why import ValueModes
from oversmoothing.simulations.state import one_thread
from tests.support.architectures import built
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import tiny_model
from tests.support.tiny_transformers import Stack, hooks, pixels, tiny, tokens

BATCH = 8


@pytest.fixture(autouse=True)
def one():
    with one_thread():
        yield


def watched(model: nn.Module, **options: object) -> Watcher:
    """At every step, whatever it costs."""
    return Watcher(model, every=1, budget=None, **options)


def cosine(X: Tensor, keep: Tensor) -> float:
    """The mean cosine of the kept tokens, the mean over the inputs."""
    kept = zip(X.detach(), keep.bool(), strict=True)
    return float(np.mean([float(metrics(x[k].double())["cos_mean"]) for x, k in kept]))


def trained(
    *, every: int | None, steps: int = 4, accumulate: int = 1, autocast: bool = False
) -> tuple[list[Tensor], nn.Module, Watcher | None]:
    """The losses of a few steps on digits, dropout and all; every=None: nobody watches."""
    torch.manual_seed(0)
    model = tiny("vit", image_size=8, patch_size=2, num_channels=1, hidden_dropout_prob=0.1)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data, losses = digits().train, []
    watcher = None if every is None else Watcher(model, every=every, budget=None)
    number = 0
    for _ in range(steps):
        for _ in range(accumulate):
            part = slice(number * BATCH, (number + 1) * BATCH)
            number += 1
            labels = data.labels[part] % 5
            with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
                scores = model(data.pixels[part, None]).logits
            loss = functional.cross_entropy(scores.float(), labels) / accumulate
            loss.backward()
            losses.append(loss.detach())
        optimizer.step()
        optimizer.zero_grad()
        if watcher is not None:
            watcher.step()
    return losses, model, watcher


@pytest.mark.parametrize("settings", [{}, {"autocast": True}, {"accumulate": 3}], ids=str)
def test_the_loss_is_the_same_to_the_bit_whether_one_watches_or_not(settings):
    alone, left, _ = trained(every=None, **settings)
    seen, right, watcher = trained(every=1, **settings)
    assert watcher is not None and set(watcher.to_frame()["step"]) == {0, 1, 2, 3}
    assert all(torch.equal(a, b) for a, b in zip(alone, seen, strict=True))
    for a, b in zip(left.parameters(), right.parameters(), strict=True):
        assert torch.equal(a, b)


def test_of_several_passes_a_step_the_first_is_seen():
    (*_, one), (*_, three) = trained(every=2, steps=1), trained(every=2, steps=1, accumulate=3)
    assert one.to_frame().equals(three.to_frame())


def test_what_is_recorded_is_the_stream_and_the_spectrum_of_that_moment():
    """Against the metrics of the hidden states that the library itself gives."""
    torch.manual_seed(0)
    model = tiny("vit").train()
    with watched(model, inputs=3) as watcher:
        found = model(pixels(5), output_hidden_states=True).hidden_states
        hidden = [X.detach() for X in found]
        table = watcher.to_frame()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.1)
        watcher.step()
        model(pixels(5))
        later = watcher.to_frame().query("step == 1").reset_index(drop=True)
    assert list(table["layer"]) == [0, 1, 2] and set(table["inputs"]) == {3}
    for number, X in enumerate(hidden):
        exact, patches = metrics(X[:3].double()), metrics(X[:3, 1:].double())
        for name in ("log_hfc_lfc", "cos_mean", "effective_rank"):
            assert table[name][number] == pytest.approx(float(exact[name].mean()), rel=1e-9)
            found = table[f"{name}_without_cls"][number]
            assert found == pytest.approx(float(patches[name].mean()), rel=1e-9)
        assert table["hfc_lfc"][number] == pytest.approx(np.exp(table["log_hfc_lfc"][number]))
    assert np.isnan(table["h_abs_max"][0])
    for number, layer in enumerate(describe(model).layers, 1):
        why = ValueModes.of(layer.heads).why  # of the weights as they are now
        for name in ("h_zero", "h_universal_disc", "h_positive", "h_other", "h_real_min"):
            assert later[name][number] == pytest.approx(why[name], rel=1e-6, abs=1e-9)
        assert later["h_abs_max"][number] == pytest.approx(1.21 * table["h_abs_max"][number], 1e-4)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_padding_counts_for_nothing(family):
    model, batch = tiny(family).train(), tokens((7, 4))
    with watched(model, inputs=2, mode="any") as watcher:
        model.eval()
        hidden = model(**batch, output_hidden_states=True).hidden_states
    table = watcher.to_frame()
    means = [cosine(X, batch["attention_mask"]) for X in hidden[:-1]]
    assert list(table["cos_mean"][: len(means)]) == pytest.approx(means, rel=1e-9)


@pytest.mark.parametrize("masked", ["src_key_padding_mask", "tgt_key_padding_mask"])
@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_padding_of_pytorch_s_modules_counts_for_nothing(part, masked):
    """Of an encoder and a decoder each has its own."""
    torch.manual_seed(0)
    model = nn.Transformer(8, 2, 2, 2, 16, batch_first=True)
    states, padding = torch.randn(2, 3, 6, 8), torch.arange(6) >= torch.tensor([2, 4, 6])[:, None]
    with watched(model, blocks=f"{part}.layers") as watcher:
        model(*states, **{masked: padding})
    own = masked.startswith("src") == (part == "encoder")
    keep = ~padding if own else torch.ones_like(padding)
    mean = cosine(states[int(part == "decoder")], keep)
    assert watcher.to_frame()["cos_mean"][0] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("length", [6, 5])
def test_a_decoder_without_a_mask_has_not_its_encoder_s(length):
    torch.manual_seed(0)
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 2}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_ffn_dim": 8, f"{part}_attention_heads": 2}
    model = BartModel(BartConfig(vocab_size=20, max_position_embeddings=8, **sizes)).train()
    ids, mask = torch.arange(3, 15).reshape(2, 6), torch.tensor([[1] * 6, [1] * 3 + [0] * 3])
    with watched(model, blocks="decoder.layers") as watcher:
        seen = model(ids, mask, ids[:, :length], output_hidden_states=True).decoder_hidden_states
    mean = float(metrics(seen[0].detach().double())["cos_mean"].mean())
    assert watcher.to_frame()["cos_mean"][0] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("lengths", [(6, 6, 6), (6, 2, 4)])
def test_tokens_that_lie_before_inputs_are_tokens_all_the_same(lengths):
    """XLNet's blocks take and give [n, b, d]."""
    model = built("XLNet").train()
    ids = torch.arange(3, 21).reshape(3, 6)
    mask = (torch.arange(6) < torch.tensor(lengths)[:, None]).long()
    with watched(model, inputs=2, spectra=False) as watcher:
        found = model(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    table = watcher.to_frame()
    means = [cosine(X[:2], mask[:2]) for X in found[:-1]]
    assert list(table["cos_mean"][: len(means)]) == pytest.approx(means, rel=1e-6)
    assert set(table["inputs"]) == {2}


def test_the_mode_chooses_the_passes():
    model = tiny("vit")
    with watched(model) as train, watched(model, mode="eval") as evaluation:
        model.eval()(pixels())
        assert train.to_frame().empty and set(evaluation.to_frame()["mode"]) == {"eval"}
        model.train()(pixels())
    assert set(train.to_frame()["mode"]) == {"train"}


def test_a_step_in_which_no_pass_was_seen_is_said_once():
    with Watcher(tiny("vit"), every=1, budget=None) as watcher:
        with pytest.warns(UserWarning, match="no pass was seen at step 0: the model is in another"):
            watcher.step()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            watcher.step()


def test_nothing_of_the_graph_stays_alive_and_the_hooks_come_off():
    model = tiny("vit").train()
    before = hooks(model)
    with watched(model) as watcher:
        counts = []
        for _ in range(3):
            scores = model(pixels()).logits
            alive = weakref.ref(scores)
            scores.sum().backward()
            del scores
            watcher.step()
            gc.collect()
            assert alive() is None
            counts.append(sum(type(each) is Tensor for each in gc.get_objects()))
        assert counts[0] == counts[-1]
    assert hooks(model) == before
    rows = len(watcher.rows)
    watcher.arm(9)
    model(pixels())
    assert len(watcher.rows) == rows


def test_an_interrupted_pass_leaves_nothing_behind():
    model = tiny("vit").train()
    with watched(model) as watcher:
        second = list(describe(model).layers)[1].block
        handle = second.register_forward_pre_hook(lambda *_: 1 / 0)
        refuses("", lambda: model(pixels()), error=ZeroDivisionError)
        handle.remove()
        model(pixels())
    assert list(watcher.to_frame()["layer"]) == [0, 1, 2]


def test_any_module_is_watched_by_its_blocks_and_a_described_one_with_its_spectra():
    model = Stack().train()
    batch = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0))
    described = describe(model)
    with watched(model, blocks="floors") as bare, watched(described) as known:
        model(batch)
    left, right = bare.to_frame(), known.to_frame()
    assert left["log_hfc_lfc"].equals(right["log_hfc_lfc"])
    assert "h_positive" not in left and right["h_positive"].notna().sum() == 2


def test_a_block_that_runs_many_times_is_seen_each_time():
    class Again(Stack):
        def forward(self, x):
            x = self.embed(x)
            for _ in range(3):
                x = self.floors[0](x)
            return x

    model = Again(depth=1)
    with watched(model, blocks=[model.floors[0]] * 3) as watcher:
        for _ in range(2):
            model(torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0)))
            watcher.step()
    assert list(watcher.to_frame()["layer"]) == [0, 1, 2, 3] * 2


@pytest.mark.filterwarnings("ignore:Guards may run slower")  # of torch, on Python 3.13.0
def test_a_compiled_model_is_watched_by_a_pass_of_its_own_and_computes_the_same():
    def losses(watch):
        torch.manual_seed(0)
        model = tiny("vit", hidden_dropout_prob=0.1).train()
        compiled = torch.compile(model, backend="eager")
        watcher = Watcher(compiled, every=2, budget=None) if watch else None
        found = []
        for _ in range(3):
            found.append(float(compiled(pixels(6)).logits.square().sum().detach()))
            assert model.training
            if watcher:
                watcher.step()
        return found, [] if watcher is None else list(watcher.to_frame()["step"])

    alone, seen = losses(False), losses(True)
    assert alone[0] == seen[0] and seen[1] == [0] * 3 + [2] * 3


def test_the_project_s_own_models_are_watched_and_a_stream_that_is_not_finite_recorded_as_such():
    infinite = pixels()
    infinite[0, 0, 0, 0] = torch.inf
    for model, batch in ((tiny_model(), digits().train.pixels[:4]), (tiny("vit"), infinite)):
        with watched(model.train()) as watcher:
            model(batch)
        table = watcher.to_frame()
        assert table["cos_mean"].isna().all() == (batch is infinite)
        assert len(table) == 3 and table["h_abs_max"].notna().sum() == 2


def test_a_budget_that_is_spent_puts_a_watch_off_and_takes_spectra_in_turn(monkeypatch):
    model = tiny("vit").train()
    clock = iter(range(10**6))
    monkeypatch.setattr(room.time, "perf_counter", lambda: 10.0 * next(clock))
    with Watcher(model, every=1, budget=0.05) as watcher:
        for _ in range(300):
            model(pixels())
            watcher.step()
    table = watcher.to_frame()
    assert 0 < watcher.put_off < 300 and watcher.put_off + table["step"].nunique() == 301
    taken = table[table["h_abs_max"].notna()]
    assert set(taken["layer"]) == {1, 2} and taken.groupby("step").size().max() == 1
    assert "steps watched" in repr(watcher)


@cases(
    "options, words",
    ({"every": 0}, "at least 1"),
    ({"inputs": 0}, "at least 1"),
    ({"budget": 0.0}, "budget is 0.0"),
    ({"mode": "training"}, "mode is 'training'"),
    ({"blocks": "nowhere"}, "has no part 'nowhere'"),
)
def test_options_out_of_range_and_what_is_no_module_are_refused(options, words):
    refuses(words, lambda: Watcher(tiny("vit"), **options))
    refuses("DataParallel copies the model", lambda: Watcher(nn.DataParallel(tiny("vit"))))
    refuses("int is no module", Watcher, 42)
    refuses("no softmax", lambda: Watcher(nn.Linear(2, 2)))


def test_the_numbers_are_saved_whole(tmp_path):
    *_, watcher = trained(every=2)
    path = watcher.save(tmp_path / "smoothing.csv")
    lines = path.read_text().splitlines()
    assert lines[0].startswith("step,layer,mode,inputs,log_hfc_lfc") and len(lines) == 1 + 2 * 3
    step, said = watcher.take()
    assert step == 2 and "oversmoothing/layer_0/hfc_lfc" in said and watcher.take() is None


# --- the guide's five lines in a script of each trainer, with its own logger ---


MISSING = "the extra `training` is not installed: pip install 'oversmoothing[training]'"
LAYERS = 3


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
        watcher = Watcher(model, every=2, budget=None)
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
    watcher = Watcher(module.model, every=2, budget=None) if watch else None
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
    watcher = Watcher(model)
    watcher.lightning().on_exception(None, None, ValueError())
    assert not any(each._forward_hooks for each in model.modules())


def test_the_record_is_plain_numbers():
    model = small_vit()
    with watched(model) as watcher:
        model(digits().train.pixels[:4, None])
    _, said = watcher.take()
    assert json.loads(json.dumps(said)).keys() == said.keys()
