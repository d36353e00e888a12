"""Pretrained vision transformers: read by what their modules can do, and certified head by head."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import ViTConfig, ViTModel

import oversmoothing
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.spectra import certified_attention
from oversmoothing.experiments.models.pictures import named_pictures, photographs
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.theory.support.errors import InputError
from tests.support.tiny_transformers import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny ViT with random weights, saved as the library saves models."""
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=32,
        image_size=32,
        patch_size=8,
        initializer_range=0.3,
    )
    path = tmp_path_factory.mktemp("vit")
    ViTModel(config, add_pooling_layer=False).save_pretrained(path)
    return path


@pytest.fixture
def model(folder):
    return open_model(folder, dtype=torch.float64)


def test_attention_is_row_stochastic_and_heads_compose_the_layer(model):
    pixels = model.prepare(photographs(3))
    assert pixels.shape == (3, 3, 32, 32)
    attention = [trace.attention for trace in extract(model, pixels).traces]
    assert len(attention) == 2 and attention[0].shape == (3, 3, 17, 17)
    assert (attention[1].sum(-1) - 1).abs().max() < 17 * np.finfo(np.float64).eps
    factors = [model.layers[0].heads.value_projection(head) for head in range(3)]
    assert all(W_V.shape == W_O.T.shape == (24, 8) for W_V, W_O in factors)
    total = sum(W_V @ W_O for W_V, W_O in factors)
    torch.testing.assert_close(total, model.layers[0].heads.total())


def test_attention_times_value_is_what_the_module_computes(model):
    """A X W_V W_proj summed over heads, with the biases, against the module's own output."""
    seen = {}
    first = model.layers[0].attention
    first.register_forward_hook(
        lambda m, args, kwargs, out: seen.update(
            x=(args[0] if args else kwargs["hidden_states"]).detach(), out=out[0].detach()
        ),
        with_kwargs=True,
    )
    A = extract(model, photographs(1)).traces[0].attention[0]
    x, heads = seen["x"][0], model.layers[0].heads
    expected = torch.zeros_like(x)
    for h in range(3):
        W_V, W_O = heads.value_projection(h)
        expected += A[h] @ x @ W_V @ W_O
    found = seen["out"].reshape(expected.shape)
    constant = (found - expected)[0]
    # What is left are the biases, the same for every token.
    assert (found - expected - constant).abs().max() < 1e-12 * expected.abs().max()


def test_every_case_is_certified_or_says_why(model):
    result = certified_attention(model, photographs(2))
    table = result.table
    assert len(table) == 2 * 3 * 2
    assert set(table["verdict"]) <= {"SMOOTHING", "NON_SMOOTHING", "TIE", "UNDECIDED"}
    decided = table[table["verdict"] == "SMOOTHING"]
    assert (decided["margin_low"] > 0).all()
    assert "certified" in result.words()


def test_the_command_prints_the_share(folder, tmp_path, capsys):
    words = ["probe", str(folder), "certified", "--count=1", f"--out={tmp_path}"]
    assert oversmoothing.main(words) == 0
    assert "6 cases" in capsys.readouterr().out
    assert (tmp_path / "certified_attention.csv").exists()


def test_unusable_models_are_refused_with_advice(folder, tmp_path):
    with pytest.raises(InputError, match="no model folder"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(InputError, match=r"convert it to \.safetensors"):
        open_model(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(InputError, match="no intact safetensors file"):
        open_model(tmp_path)


def test_models_of_text_are_refused(tmp_path):
    tiny("llama").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="reads text"):
        certified_attention(open_model(tmp_path, dtype=torch.float64), [torch.arange(4)])


def test_folders_of_images_are_checked(tmp_path):
    with pytest.raises(InputError, match="holds no files"):
        named_pictures(str(tmp_path), 2, None)
    Image.new("RGB", (10, 12)).save(tmp_path / "a.png")
    assert len(named_pictures(str(tmp_path), 5, None)) == 1
    (tmp_path / "b.png").write_text("no image")
    with pytest.raises(InputError, match="not an image"):
        list(named_pictures(str(tmp_path), 5, None))


def test_cifar100_is_asked_for_by_name_and_missed_with_advice(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("OVERSMOOTHING_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="give --data-dir"):
        named_pictures("cifar100", 2, None)
    (tmp_path / "cifar100").mkdir()
    Image.new("RGB", (10, 12)).save(tmp_path / "cifar100" / "a.png")
    assert len(named_pictures("cifar100", 2, None)) == 1  # a folder of that name
