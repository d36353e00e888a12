"""Adapters: the same model in whatever form it comes, and advice for what cannot be read."""

import json
import os
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from oversmoothing import InputError, describe, metrics, open_model
from oversmoothing.experiments.digits.training import trained
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.models import sources
from oversmoothing.experiments.models.inputs import Images
from oversmoothing.experiments.models.library import TimmViT
from oversmoothing.experiments.models.pictures import cifar100, real_inputs
from oversmoothing.theory.support.errors import RequirementError
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, tiny_config, tiny_model
from tests.support.tiny_transformers import TEXT, Stack, pixels, tiny, tokens

needs_data = pytest.mark.skipif(
    not os.environ.get("OVERSMOOTHING_DATA"), reason="needs real inputs: OVERSMOOTHING_DATA"
)


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
    with pytest.raises(InputError, match="keep a token"):
        extract(model, {"input_ids": torch.ones(2, 3).long(), "attention_mask": torch.zeros(2, 3)})
    for wrong, advice in [
        (["a" * 17], "at most 16"), ([""], "none of them empty"), ([3], "strings"),
        (["é"], "knows 0 to 40"),
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


def test_weights_that_are_not_numbers_are_refused():
    module = tiny("vit")
    with torch.no_grad():
        module.vit.layers[1].mlp.fc1.weight[2, 3] = torch.nan
    refuses(r"layers.1.mlp.fc1.weight' has 1 entries", open_model, module)


def test_truncated_files_are_refused(tmp_path):
    tiny("vit").save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    content = path.read_bytes()
    for cut in (0, 4, 100, len(content) - 1):
        path.write_bytes(content[:cut])
        refuses("cut short", open_model, tmp_path)


def test_incomplete_weights_are_refused(tmp_path):
    module = tiny("vit")
    module.save_pretrained(tmp_path)
    state = module.state_dict()
    del state["vit.layers.1.attention.v_proj.weight"]
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    refuses("which would stay random", open_model, tmp_path)


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
    for name, advice in {"a.ckpt": "kind that is not read", "a.onnx": "convert"}.items():
        (tmp_path / name).write_bytes(b"x")
        refuses(advice, open_model, tmp_path / name)
    torch.save(torch.zeros(3), tmp_path / "one.pt")
    refuses("not named weights", lambda: open_model(tmp_path / "one.pt"))


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


def real(name: str) -> Path:
    folder = real_inputs()
    assert folder is not None
    return folder / name


def cifar(count: int) -> list[Image.Image]:
    return list(cifar100(real_inputs(), "test", range(count)))


@needs_data
def test_the_trained_vit_has_the_published_cosines():
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


@needs_data
def test_the_trained_vit_is_the_same_under_timm_names():
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


@needs_data
def test_the_trained_decoder_writes_its_published_text():
    model = open_model(real("stories260K"))
    expected = json.loads(real("stories260K/greedy.json").read_text("utf-8"))["greedy_ids_from_bos"]
    assert max(extract(model, [
        "Once upon a time, there was a little girl named Lily.", "Lily"
    ]).av_error) < 1e-5  # fmt: skip
    # Each id is the greedy choice after those in front of it: one causal pass checks them all.
    scores = model.logits(model.prepare([torch.tensor(expected[:-1])]))
    assert scores[0].argmax(-1).tolist() == expected[1:]
