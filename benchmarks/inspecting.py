"""What inspecting a model costs, against a plain forward pass on the same inputs."""

import tempfile
import time
from functools import partial
from typing import Any

import torch

from benchmarks.benchmark import Row, measurement
from benchmarks.timing import in_fresh_process, peak
from oversmoothing.experiments.inspection.budget import Plan
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.inspect import inspect
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.experiments.models.describe import describe
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.sources import open_model

IMAGES, BATCH = 192, 32


def vit(width: int = 192, heads: int = 3, depth: int = 12) -> Model:
    """A randomly initialised ViT of the shape of DeiT-Ti: 197 tokens, 12 layers."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=width,
        num_attention_heads=heads,
        num_hidden_layers=depth,
        intermediate_size=4 * width,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return open_model(ViTModel(config)).renamed("random DeiT-Ti")


@measurement("bridge/inspect", "inspecting a model against its forward pass")
def cost() -> list[Row]:
    """Extraction, and inspecting without spectra, against a forward pass; spectra per image."""
    model = vit()
    pixels = torch.randn((IMAGES, 3, 224, 224), generator=torch.Generator().manual_seed(0))

    @torch.no_grad()
    def forward() -> Any:
        for part in torch.split(pixels, BATCH):
            model.run(part)

    def extraction() -> None:
        for _ in stream(model, pixels, batch_size=BATCH):
            pass

    def whole() -> object:
        return inspect(model, pixels, batch_size=BATCH)

    plain, extracted, inspected = interleaved_medians([forward, extraction, whole], 3)
    one = pixels[:4]
    without, spectra = interleaved_medians(
        [
            lambda: inspect(model, one, budget=Plan(4, 4, 4, 0, 1), batch_size=4),
            lambda: inspect(model, one, budget=Plan(4, 4, 4, 4), batch_size=4),
        ],
        1,
    )
    an_image = plain / IMAGES
    note = f"{IMAGES} images, DeiT-Ti shape, float32, one thread"
    both = {"forward": plain, "extraction": extracted}
    whole_pass = {"forward": plain, "inspect": inspected}
    an_input = (spectra - without) / 4
    return [
        Row("bridge: extraction with A V check / forward pass", extracted / plain, both, note),
        Row("bridge: inspect without spectra / forward pass", inspected / plain, whole_pass, note,
            at_most=5.0),
        Row("bridge: spectra (E2, tilt) of an image / its forward pass", an_input / an_image,
            {"spectra of an image": an_input}, "n = 197, 12 layers"),
    ]  # fmt: skip


@measurement("bridge/reading", "reading a model once against its forward pass")
def reading() -> list[Row]:
    """In processor time: two passes, one of them watched, and what is tried on pieces of it."""
    rows = []
    for shape, width, heads, most in (("DeiT-Ti", 192, 3, 8.0), ("ViT-B", 768, 12, 5.0)):
        module = vit(width, heads).module
        pixels = torch.randn((2, 3, 224, 224), generator=torch.Generator().manual_seed(0))
        runs = [torch.no_grad()(partial(module, pixels)), partial(describe, module)]
        plain, once = interleaved_medians(runs, 5, clock=time.process_time)
        rows.append(
            Row(f"bridge: reading once / forward pass, {shape}", once / plain,
                {"forward": plain, "reading": once}, "2 images, 12 layers, float32, one thread",
                at_most=most)
        )  # fmt: skip
    return rows


def _decoder(folder: str) -> tuple[float, float, float]:
    """(GiB at the peak beyond what was there, of one layer's weights and attention, seconds)."""
    begin = time.process_time()
    with peak() as most:
        model = open_model(folder, tokenizer=lambda: None)
        ids = torch.arange(TEXT)[None] % WORDS
        inspect(model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    heads = model.layers[0].number
    size = sum(p.numel() for p in model.layers[0].block.parameters()) + heads * TEXT**2
    return most[0] / 2**10, 4 * size / 2**30, time.process_time() - begin


TEXT, WORDS = 2048, 1000


@measurement("bridge/decoder", "inspecting a decoder of d = 4,096 from its folder", long=True)
def decoder() -> list[Row]:
    """Two layers, 32 heads, bfloat16 in safetensors, random weights, one text of 2,048 tokens."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=WORDS, hidden_size=4096, intermediate_size=11008, num_attention_heads=32,
        num_hidden_layers=2, max_position_embeddings=TEXT, dtype=torch.bfloat16,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
        most, own, seconds = in_fresh_process(_decoder, folder, start="spawn")
    note = f"{most:.2f} GiB at the peak; weights and attention of a layer in float32: {own:.2f}"
    return [
        Row("bridge: GiB beyond one layer, decoder of d = 4,096", most - own,
            {"opening and inspecting": seconds}, note, at_most=2.0)
    ]  # fmt: skip
