"""A model of a folder stays in its files: weights are mapped, read layer by layer, and dropped."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

import oversmoothing
from benchmarks.timing import peak
from oversmoothing.experiments.inspection.budget import Plan, costs, foresee, plan_of
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.inspection.heads_and_why import LARGEST
from oversmoothing.experiments.models.checkpoints import Widened, in_float32
from oversmoothing.experiments.models.model import Model
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import TEXT, pixels, tiny


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
