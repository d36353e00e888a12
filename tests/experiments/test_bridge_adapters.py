"""Adapters: the same model in whatever form it comes, and advice for what cannot be read."""

import json
import os
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

import oversmoothing
from benchmarks.timing import peak
from oversmoothing import describe, metrics, open_model
from oversmoothing.experiments.digits.training import trained
from oversmoothing.experiments.inspection.budget import Plan, costs, foresee, plan_of
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.inspection.heads_and_why import LARGEST
from oversmoothing.experiments.models import sources
from oversmoothing.experiments.models.checkpoints import Widened, in_float32
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.library import TimmViT
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.pictures import cifar100, real_inputs
from oversmoothing.theory.support.errors import RequirementError
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_config, tiny_model
from tests.support.tiny_transformers import TEXT, Stack, pixels, tiny, tokens

NAMES = {
    "vit.embeddings.cls_token": "cls_token", "vit.embeddings.position_embeddings": "pos_embed",
    "vit.embeddings.patch_embeddings.projection": "patch_embed.proj", "classifier": "head",
    "vit.layernorm.": "norm.", "vit.layers": "blocks", "attention.o_proj": "attn.proj",
    "layernorm_before": "norm1", "layernorm_after": "norm2",
}  # fmt: skip


def timm_weights(vit: nn.Module) -> dict[str, torch.Tensor]:
    """The weights of the library's ViT under timm's names (an independent renaming)."""
    found = {}
    for name, value in vit.state_dict().items():
        for theirs, timm in NAMES.items():
            name = name.replace(theirs, timm)
        found[name] = value.contiguous()
    for at, kind in product((0, 1), ("weight", "bias")):
        three = [found.pop(f"blocks.{at}.attention.{name}_proj.{kind}") for name in "qkv"]
        found[f"blocks.{at}.attn.qkv.{kind}"] = torch.cat(three)
    return found


def test_half_precision_is_kept_as_stored_and_becomes_float32_where_the_cpu_lacks_it(
    tmp_path, monkeypatch
):
    tiny("vit").to(torch.bfloat16).save_pretrained(tmp_path)
    kept = sources.runs_on_cpu(torch.bfloat16)
    assert open_model(tmp_path).dtype == (torch.bfloat16 if kept else torch.float32)
    assert open_model(tmp_path, dtype=torch.float64).dtype == torch.float64
    monkeypatch.setattr(sources, "runs_on_cpu", lambda dtype: False)
    model = open_model(tmp_path)
    assert model.dtype == torch.float32 and "float32 is used" in model.run_notes[-1]


def test_grouped_heads_are_repeated_in_order():
    module = tiny("llama")
    heads = open_model(module).layers[0].heads
    assert heads.number == 4 and heads.width == 8
    assert torch.equal(heads.W_V[0], heads.W_V[1]) and torch.equal(heads.W_K[2], heads.W_K[3])
    assert torch.equal(heads.W_V[2], module.model.layers[0].self_attn.v_proj.weight[8:].T)
    W_V, W_O = heads.double().W_V, heads.double().W_O
    assert W_V.dtype == torch.float64 and W_V.shape == (4, 32, 8) and W_O.shape == (4, 8, 32)
    torch.testing.assert_close(heads.total(), (W_V @ W_O).sum(0))


def test_a_timm_named_checkpoint_gives_the_same_scores(tmp_path):
    """Renamed weights of the library's ViT, in float16, against the original."""
    vit = tiny("vit").eval()
    halved = {name: value.half() for name, value in timm_weights(vit).items()}
    save_file(halved, tmp_path / "some_vit.safetensors")
    for source in (tmp_path, tmp_path / "some_vit.safetensors"):
        model = open_model(source, heads=3, dtype=torch.float32)
        assert model.cls and "0.485" in model.run_notes[0]
        vit.load_state_dict(
            {name: value.half().float() for name, value in vit.state_dict().items()}
        )
        # The two differ in the epsilon of their norms alone: 1e-6 and 1e-12.
        torch.testing.assert_close(
            model.logits(pixels()), open_model(vit).logits(pixels()), atol=1e-4, rtol=1e-4
        )
    half = open_model(tmp_path, heads=3)
    assert half.dtype == (torch.float16 if sources.runs_on_cpu(torch.float16) else torch.float32)
    assert max(extract(half, pixels()).av_error) < 0.25


def test_pickled_checkpoints_hold_tensors_only(tmp_path):
    weights = timm_weights(tiny("vit"))
    for name, held in {"a.pt": weights, "b.pth": {"model": weights, "epoch": 3}}.items():
        torch.save(held, tmp_path / name)
        model = open_model(tmp_path / name, heads=3)
        assert torch.equal(model.module.head.weight, weights["head.weight"])


def test_the_folder_of_a_training_run_opens(tmp_path):
    found = trained(tiny_config("vit-random"), tmp_path)
    model = open_model(found.run.folder)
    assert torch.equal(model.logits(random_pixels(2)), found.model(random_pixels(2)))
    assert max(extract(model, random_pixels(2)).av_error) < 1e-5


def test_own_vits_and_models_pass_through():
    module = tiny_model()
    model = open_model(module)
    assert model.cls and model.depth == 2 and open_model(model) is model
    assert torch.equal(model.logits(random_pixels(2)), module(random_pixels(2)))
    grey = Image.fromarray(np.zeros((8, 8), dtype=np.uint8))
    assert (model.prepare([grey]) == -1).all()
    refuses("8 x 8", lambda: model.prepare([grey.resize((9, 8))]))


@pytest.mark.parametrize("wrong", [torch.zeros(2, 3, 32, 31), torch.zeros(3, 32, 32), ["text"], []])
def test_images_of_the_wrong_kind_are_refused(wrong):
    refuses(r"reads|no images", lambda: extract(open_model(tiny("vit")), wrong))


def test_texts_are_padded_and_kept_apart(tmp_path):
    def tokenizer(text):
        return {"input_ids": [3 + ord(letter) - ord("a") for letter in text]}

    tokenizer.convert_ids_to_tokens = None
    model = open_model(tiny("bert"), tokenizer=tokenizer)
    found = list(stream(model, iter(["abcde", "ab", "abc"]), batch_size=2))
    assert found[0].keep.tolist() == [[True] * 5, [True, True, False, False, False]]
    assert found[1].keep.tolist() == [[True] * 3]
    nothing = {"input_ids": torch.ones(2, 3).long(), "attention_mask": torch.zeros(2, 3)}
    for wrong, advice in [
        (["a" * 17], "at most 16"), ([""], "none of them empty"), ([3], "strings"),
        (["é"], "knows 0 to 40"), (nothing, "keep a token"),
    ]:  # fmt: skip
        refuses(advice, extract, model, wrong)


@pytest.mark.parametrize("family", TEXT)
def test_models_without_a_tokenizer_say_so_and_read_ids(family, tmp_path):
    module = tiny(family)
    refuses("without a tokenizer", lambda: extract(open_model(module), ["text"]))
    module.save_pretrained(tmp_path)
    model = open_model(tmp_path)
    refuses("no tokenizer that can be loaded", extract, model, ["text"])
    assert bool(extract(model, tokens()["input_ids"]).keep.all())


def test_other_architectures_are_refused_with_the_way_out(tmp_path):
    no_forward = nn.ModuleList([nn.Linear(2, 2)])
    refuses(r"give some, describe\(module, inputs\)", open_model, no_forward)
    refuses("no softmax", open_model, nn.Linear(2, 2))
    config = transformers.ResNetConfig(hidden_sizes=[8, 8], depths=[1, 1], embedding_size=8)
    transformers.ResNetModel(config).save_pretrained(tmp_path)
    refuses("no softmax", open_model, tmp_path)


def test_weights_that_are_no_numbers_cut_short_or_missing_are_refused(tmp_path):
    module, path = tiny("vit"), tmp_path / "model.safetensors"
    module.save_pretrained(tmp_path)
    content, state = path.read_bytes(), dict(module.state_dict())
    for cut in (0, 4, 100, len(content) - 1):
        path.write_bytes(content[:cut])
        refuses("cut short", open_model, tmp_path)
    del state["vit.layers.1.attention.v_proj.weight"]
    save_file(state, path, {"format": "pt"})
    refuses("which would stay random", open_model, tmp_path)
    with torch.no_grad():
        module.vit.layers[1].mlp.fc1.weight[2, 3] = torch.nan
    refuses(r"layers.1.mlp.fc1.weight' has 1 entries", open_model, module)


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def test_a_pickle_that_would_run_code_is_refused_unopened(tmp_path):
    mark = tmp_path / "mark"
    (tmp_path / "model").mkdir()
    for name in ("raw.pt", "zipped.pt", "model/pytorch_model.bin"):
        if name == "zipped.pt":
            torch.save({"blocks": Malicious(mark)}, tmp_path / name)
        else:
            (tmp_path / name).write_bytes(pickle.dumps(Malicious(mark)))
    tiny("vit").config.save_pretrained(tmp_path / "model")
    for source in ("raw.pt", "zipped.pt", "model"):
        refuses("safetensors", open_model, tmp_path / source)
    assert not mark.exists()


def test_files_of_other_kinds_are_refused(tmp_path):
    torch.save(torch.zeros(3), tmp_path / "one.pt")
    for name, advice in (
        ("a.ckpt", "kind that is not read"), ("a.onnx", "convert"), ("one.pt", "not named weights"),
    ):  # fmt: skip
        if name != "one.pt":
            (tmp_path / name).write_bytes(b"x")
        refuses(advice, open_model, tmp_path / name)


def test_bare_checkpoints_without_known_names_are_refused(tmp_path):
    save_file({"first.weight": torch.zeros(3)}, tmp_path / "a.safetensors")
    refuses(r"first.weight.*config.json", open_model, tmp_path)
    (tmp_path / "config.json").write_text('{"architecture": "resnet18", "num_classes": 9}')
    refuses("checkpoint of timm's resnet18, .*plain vision transformer", open_model, tmp_path)
    (tmp_path / "config.json").unlink()
    (tmp_path / "open_clip_config.json").write_text("{}")
    refuses("checkpoint of open_clip,.*plain vision transformer", open_model, tmp_path)
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "own/base"}')
    refuses(r"adapter \(PEFT\) of own/base(.|\n)*merge_and_unload", open_model, tmp_path)
    (tmp_path / "adapter_config.json").unlink()
    weights = timm_weights(tiny("vit"))
    cases = {
        "missing": {k: v for k, v in weights.items() if k != "blocks.1.norm2.bias"},
        "not understood": {**weights, "blocks.0.ls1.gamma": torch.ones(24)},
        "distilled": {**weights, "pos_embed": torch.zeros(1, 18, 24)},
        "do not go together": {**weights, "norm.bias": torch.zeros(3)},
    }
    for advice, held in cases.items():
        save_file(held, tmp_path / "a.safetensors")
        refuses(advice, open_model, tmp_path, heads=3)
    save_file(weights, tmp_path / "a.safetensors")
    refuses("heads=", open_model, tmp_path)


def test_empty_folders_and_missing_paths_are_refused(tmp_path):
    refuses("it is empty", open_model, tmp_path)
    refuses("there is no folder or file", lambda: open_model(tmp_path / "missing"))
    refuses("no name that the hub could have", open_model, "./missing")
    (tmp_path / "config.json").write_text("{")
    refuses("JSON", open_model, tmp_path)
    tiny("vit").config.save_pretrained(tmp_path)
    refuses("no weights", open_model, tmp_path)
    for name in "ab":
        save_file({"x": torch.zeros(1)}, tmp_path / f"{name}.safetensors")
    (tmp_path / "config.json").unlink()
    refuses("name the file itself", open_model, tmp_path)


def test_without_the_library_the_extra_is_named(monkeypatch, tmp_path):
    tiny("vit").save_pretrained(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    refuses("oversmoothing\\[models\\]", open_model, tmp_path, error=RequirementError)
    # timm's names need no library.
    sizes = {"width": 64, "depth": 1, "heads": 1, "patch": 8, "image_size": 16, "hidden": 8}
    save_file(TimmViT(**sizes, classes=0, bias=False).state_dict(), tmp_path / "a.safetensors")
    assert open_model(tmp_path / "a.safetensors").depth == 1


def test_described_models_take_lists_of_tensors():
    model = describe(Stack())
    assert model.prepare([torch.zeros(5, 6)] * 2).shape == (2, 5, 6)
    refuses("different shapes", lambda: model.prepare([torch.zeros(5, 6), torch.zeros(4, 6)]))
    refuses("prepare=", model.prepare, ["text"])
    refuses("cannot run", lambda: extract(model, torch.zeros(2, 5, 7)))


def cifar(count: int) -> list[Image.Image]:
    return list(cifar100(real_inputs(), "test", range(count)))


def test_the_trained_vit_has_the_published_cosines(real):
    """Mean pairwise cosine of the residual stream, input and after blocks 1 to 12, of pictures that
    are resized whole; the folder's own processor crops them."""
    published = np.array(
        [0.540, 0.552, 0.485, 0.409, 0.360, 0.347, 0.318, 0.336, 0.372, 0.375, 0.383, 0.383, 0.323]
    )
    model = open_model(real("deit-tiny-patch16-224"))
    rows = []
    whole = Images(224, model.prepare.mean, model.prepare.std)
    assert not torch.equal(whole(cifar(1)), model.prepare(cifar(1)))
    for found in stream(model, whole(cifar(8)), batch_size=8):
        assert max(found.av_error) < 1e-5
        states = [found.traces[0].before, *(trace.after_ffn for trace in found.traces)]
        rows.append(np.stack([metrics(x)["cos_mean"].numpy() for x in states], axis=1))
    cosine = np.concatenate(rows)
    # 8 of the 250 images behind the published numbers: 4 standard errors about the mean.
    assert (np.abs(cosine.mean(0) - published) < 0.02 + 4 * cosine.std(0, ddof=1) / 8**0.5).all()


def test_the_trained_vit_is_the_same_under_timm_names(real):
    model, timm = open_model(real("deit-tiny-patch16-224")), open_model(real("deit-tiny-timm"))
    assert "ImageNet" in " ".join(timm.run_notes) and timm.layers[0].heads.number == 3
    assert (timm.prepare.mean, timm.prepare.std) == (model.prepare.mean, model.prepare.std)
    pixels = model.prepare(cifar(2))
    scores = model.logits(pixels)
    half = open_model(real("deit-tiny-timm"), dtype=torch.float32)
    found = half.logits(pixels)
    # Weights rounded to 2^-11 of themselves, through 24 sublayers.
    assert (found - scores).abs().max() < 24 * 2**-11 * scores.abs().max()
    assert max(extract(timm, pixels).av_error) < 0.02


def test_the_trained_decoder_writes_its_published_text(real):
    model = open_model(real("stories260K"))
    expected = json.loads(real("stories260K/greedy.json").read_text("utf-8"))["greedy_ids_from_bos"]
    assert max(extract(model, [
        "Once upon a time, there was a little girl named Lily.", "Lily"
    ]).av_error) < 1e-5  # fmt: skip
    # Each id is the greedy choice after those in front of it: one causal pass checks them all.
    scores = model.logits(model.prepare([torch.tensor(expected[:-1])]))
    assert scores[0].argmax(-1).tolist() == expected[1:]


# --- a model of a folder stays in its files: weights are mapped, read layer by layer, dropped ---


def made(kind: str, folder: Path, dtype: torch.dtype = torch.float32, **sizes: Any) -> nn.Module:
    """A module stored in shards in the folder."""
    module = tiny(kind, **sizes).to(dtype)
    module.save_pretrained(folder, max_shard_size="20MB" if sizes else "20KB")
    return module


def given(model: Model, tokens: int = 12) -> Any:
    if model.modality == "vision":
        return pixels(3)
    draw = torch.Generator().manual_seed(1)
    return {"input_ids": torch.randint(3, 40, (3, tokens), generator=draw)}


def mapped(tensor: Tensor) -> str:
    """The file that the memory of a tensor is mapped from, or ''."""
    at = tensor.data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, _, _, _, _, *name = line.split(maxsplit=5)
        first, last = (int(each, 16) for each in place.split("-"))
        if first <= at < last:
            return name[0] if name else ""
    return ""


@cases(
    "kind, said",
    ("vit", ("vision", True, False, "pre")),
    ("deit", ("vision", True, False, "pre")),
    ("bert", ("text", True, False, "post")),
    ("gpt2", ("text", False, True, "pre")),
    ("llama", ("text", False, True, "pre")),
)
def test_a_folder_is_read_as_the_module_in_memory_is_to_the_bit(kind, said, tmp_path):
    module = made(kind, tmp_path)
    tokenizer = {"tokenizer": lambda: None} if kind in TEXT else {}
    stored = oversmoothing.open_model(tmp_path, **tokenizer)
    held = oversmoothing.describe(module, **tokenizer, folder=tmp_path)
    assert type(stored.module) is type(module)  # with its head, where it has one
    assert (stored.modality, stored.cls, stored.causal, stored.layers[0].placement) == said
    for layer in stored.layers:
        for name, p in layer.block.named_parameters():
            assert mapped(p).endswith(".safetensors"), name
    inputs = given(stored)
    tables = [
        oversmoothing.inspect(each, inputs, name="one", budget="all") for each in (stored, held)
    ]
    pd.testing.assert_frame_equal(tables[0].table, tables[1].table, check_exact=True)
    pd.testing.assert_frame_equal(tables[0].heads, tables[1].heads, check_exact=True)


def test_a_checkpoint_of_pytorch_is_mapped_too(tmp_path):
    module = made("gpt2", tmp_path / "made")
    module.config.save_pretrained(tmp_path)
    torch.save(module.state_dict(), tmp_path / "pytorch_model.bin")
    stored = oversmoothing.open_model(tmp_path, tokenizer=lambda: None)
    for p, own in zip(stored.module.parameters(), module.parameters(), strict=True):
        assert torch.equal(p, own) and mapped(p).endswith(".bin")


def test_half_precision_is_read_as_a_float32_copy_of_the_model(tmp_path):
    made("llama", tmp_path, torch.bfloat16)
    narrow = oversmoothing.open_model(tmp_path, tokenizer=lambda: None)
    wide = oversmoothing.open_model(tmp_path, tokenizer=lambda: None, dtype=torch.float32)
    assert all(p.dtype == torch.bfloat16 for p in narrow.module.parameters())
    for one, other in zip(narrow.layers, wide.layers, strict=True):
        for name, tensor in vars(one.heads).items():
            assert tensor is None or torch.equal(tensor, getattr(other.heads, name)), name
        assert torch.equal(one.norm_attention.gain, other.norm_attention.gain)
    errors = [extract(each, given(each)).av_error for each in (narrow, wide)]
    assert errors[0] == pytest.approx(errors[1], abs=1e-6)
    assert not any(isinstance(p, Widened) for p in narrow.module.parameters())


def test_a_widened_weight_is_float32_to_every_operation():
    own = torch.nn.Linear(6, 4).to(torch.bfloat16)
    other = torch.nn.Linear(6, 4)
    other.load_state_dict({name: p.float() for name, p in own.state_dict().items()})
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    before = own.weight
    with in_float32(own), torch.no_grad():
        assert own.weight.dtype == torch.float32 and isinstance(own.weight, Widened)
        assert torch.equal(own(x), other(x))
        assert isinstance(own.weight.mT[1:], Widened)
        assert torch.equal(own.weight.mT[1:] + 0, other.weight.mT[1:])
        rows = torch.tensor([2, 0])
        assert torch.equal(nn.functional.embedding(rows, own.weight), other.weight[rows])
        refuses("a weight in half precision is written to", own.weight.mul_, 2, error=RuntimeError)
    assert own.weight is before and own.weight.dtype == torch.bfloat16


def test_memory_does_not_grow_with_the_layers(tmp_path):
    """From 2 to 12 layers it may grow by .4 of their weights in float32, which held it would by
    at least 1: the pass that is read keeps 24 tokens of every layer, about .2 of these narrow
    ones (d = 256) and less of wider ones."""
    taken = []
    for depth in (2, 2, 12):  # the first for what is loaded once
        folder = tmp_path / str(depth)
        made(
            "llama", folder, torch.bfloat16, hidden_size=256, intermediate_size=4096,
            num_hidden_layers=depth,
        )  # fmt: skip
        with peak() as most:
            model = oversmoothing.open_model(folder, tokenizer=lambda: None)
            oversmoothing.inspect(model, given(model))
        weights = sum(p.numel() for p in model.layers[0].block.parameters()) * 4 / 2**20
        taken.append(most[0])
    assert taken[2] - taken[1] < 0.4 * 10 * weights, (taken, weights)


def test_eigenvalues_of_wide_value_maps_are_left_out_and_said():
    """Unless the budget has room for them, which grows with the inputs."""
    width = LARGEST + 8
    block = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True, norm_first=True)
    model = oversmoothing.describe(nn.TransformerEncoder(block, 1, enable_nested_tensor=False))
    X = torch.randn(1, 6, width, generator=torch.Generator().manual_seed(0))
    said = str(foresee(model, X, 4, 1))
    assert "the eigenvalues of each layer's H are left out, for" in said
    report = oversmoothing.inspect(model, X)
    assert any("are left out" in note for note in report.notes)
    row = report.table.iloc[1]
    assert pd.isna(row["h_abs_max"]) and pd.isna(row["h_positive"]) and row["asymmetry"] > 0
    assert row["head_h_zero"] == pytest.approx(0.5)
    assert plan_of(model, 6, 1, costs(model, 6).weights + 100).values == 1
    assert Plan().values == 1
