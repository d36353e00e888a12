"""What is said of trained models: `inspect` of twelve tiny ones, `enclose`, commands on a folder.

Weights are drawn here, name by name, so that they are the same whatever a library starts with.
"""

import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import oversmoothing
from tests.corpora.asking import answer_of, inside, printed, printed_json, written_csv, written_json

Entries = Iterator[tuple[str, Any]]
# One of each kind: norms before, behind and beside, rotations, groups, registers, sinks, bias.
MODELS = (
    "vit", "bert", "gpt2", "llama", "Gemma 2", "DINOv2 with registers", "ModernBERT", "GPT-NeoX",
    "ALBERT", "T5", "GPT-OSS",
)  # fmt: skip
# The library computes attention windows with padding, or mixtures of experts, in binary32 alone.
IN_SINGLE = ("ModernBERT", "GPT-OSS")
ITS_OWN = "described by names"
PICTURES = 6
SMALL = {
    "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
    "image_size": 16, "patch_size": 8,
}  # fmt: skip


def weighted(model: nn.Module) -> nn.Module:
    """In evaluation mode; every weight drawn from its name, gains around 1."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            drawn = rng.standard_normal(parameter.shape)
            gain = parameter.ndim == 1 and "norm" in name.lower() and name.endswith("weight")
            parameter.copy_(torch.from_numpy(0.4 * drawn + (1.0 if gain else 0.0)))
    return model.eval()


def inspect() -> Entries:
    """The report of each model, without its words; in binary64 where the library can."""
    from tests.support import families_of_today as today, tiny_transformers as tiny

    for name in MODELS:
        if name in tiny.FAMILIES:
            model, inputs = tiny.tiny(name), tiny.batch(name)
        else:
            model, inputs = today.today(name), today.inputs(name)
        if name in IN_SINGLE:
            yield f"{name} in binary32", report_of(weighted(model), inputs)
        else:
            yield name, report_of(weighted(model).double(), redrawn(inputs))
    inputs = redrawn(torch.empty(2, 5, 6))
    described = oversmoothing.describe(weighted(tiny.Stack()).double(), modality="vision")
    yield ITS_OWN, report_of(described, inputs)


def redrawn(inputs: Any) -> Any:
    """Token ids as they are; other numbers drawn by NumPy in binary64, for torch's draws depend on
    the processor."""
    if isinstance(inputs, dict):
        return {name: redrawn(value) for name, value in inputs.items()}
    if not inputs.is_floating_point():
        return inputs
    return torch.from_numpy(np.random.default_rng(1).standard_normal(inputs.shape))


def report_of(model: Any, inputs: Any) -> Any:
    return answer_of(oversmoothing.inspect(model, inputs).to_json_object())


def model_folder(folder: Path) -> None:
    """A ViT of 5 tokens as the library saves it, in `model`, the same with one layer in `shallow`,
    and images in `pictures`."""
    import transformers
    from PIL import Image

    transformers.utils.logging.disable_progress_bar()
    settings = {
        "image_processor_type": "ViTImageProcessor", "do_normalize": True, "do_rescale": True,
        "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.25] * 3, "resample": 2,
        "rescale_factor": 1 / 255, "size": {"height": 16, "width": 16},
    }  # fmt: skip
    for name, layers in (("model", 2), ("shallow", 1)):
        config = transformers.ViTConfig(**SMALL | {"num_hidden_layers": layers}, num_labels=3)
        model = weighted(transformers.ViTForImageClassification(config))
        model.save_pretrained(folder / name)
        (folder / name / "preprocessor_config.json").write_text(json.dumps(settings))
    (folder / "pictures").mkdir()
    rng = np.random.default_rng(5)
    for k in range(PICTURES):
        # Of another size than the model reads: what is done to them is part of the answers.
        pixels = rng.integers(0, 256, (20, 24, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "pictures" / f"{k}.png")


def enclose() -> Entries:
    """Intervals of every layer for two images, the sign of a change over two boxes."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        model_folder(Path())
        of = ("enclose", "model", "--images", "pictures")
        printed(*of, "--count", "2", "--out", "each")
        printed(*of, "--box", "--eps", "0.0001", "--layer", "1", "2", "--out", "box")
        printed(*of, "--box", "--layer", "1", "--out", "largest")
        for path in sorted(Path().rglob("enclosure-*.json")):
            found = written_json(path)
            # The pixels and what is taken of them: the metrics follow from them.
            del found["input"]["values"], found["digest"]
            yield str(path), found


def on_a_folder() -> Entries:
    """What the commands that measure a model say of one; the tables of those without --json."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        model_folder(Path())
        of, of_one = (("model", "--images", "pictures"), ("shallow", "--images", "pictures"))
        yield "inspect", printed_json("inspect", *of, "--count", "3")
        yield "tilt", {"layers": printed_json(*_probe("tilt", of), "--count", "4")["layers"]}
        yield "stability", printed_json(*_probe("stability", of_one), "--count", "2")
        loops = printed_json(*_probe("loop", of_one), "--count", "4", "--loops", "20")
        # The table of `scores`.
        yield "loop", {name: x for name, x in loops.items() if name != "predictors"}
        yield "flips", printed_json(*_probe("flips", of_one), "--count", "4")
        yield "readings", _table("readings.csv", *_probe("readings", of), "--count", "4")
        certified = _table("cases.csv", *_probe("certified", of), "--count", "2")
        yield "certify-model", certified
        exponents = _table("exponents.csv", *_probe("exponents", of), "--depth", "200")
        yield "exponents of a model", exponents


def _probe(kind: str, of: tuple[str, ...]) -> tuple[str, ...]:
    return "probe", of[0], kind, *of[1:]


def _table(name: str, *words: str) -> list[dict[str, Any]]:
    """The table that a command writes. Of `exponents` status 1 is an answer too."""
    printed(*words, codes=(0, 1) if words[2] == "exponents" else (0,))
    return written_csv(Path("results") / name)
