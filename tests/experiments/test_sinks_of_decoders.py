"""The figures that the book states of trained decoders are those computed here."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from oversmoothing import metrics, open_model
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.states import sinks
from oversmoothing.experiments.models.sources import cut_texts
from tests.experiments.test_trained_by_name import place

BOOK = Path(__file__).parents[2] / "docs" / "theory" / "t4.md"
SETS = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
COLUMNS = ("cos_mean", "effective_rank", "cos_mean_desunk", "effective_rank_desunk",
           "effective_rank_without_first")  # fmt: skip


def means(model: str) -> list[list[float]]:
    """COLUMNS of the stream in front of all layers and behind each, means over the texts: the raw
    ones by the metrics of a state, the others by `sinks`."""
    described = open_model(place(model))
    cut_texts([described], 512)
    texts = [" ".join(getattr(datasets, f"load_{name}")().DESCR.split()) for name in SETS]
    sums = np.zeros((described.depth + 1, len(COLUMNS)))
    for batch in stream(described, texts, batch_size=1, attention=False):
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        for layer, state in enumerate(X[0].double() for X in streams):
            numbers = sinks(state) | {name: metrics(state)[name] for name in COLUMNS[:2]}
            sums[layer] += [float(numbers[name]) for name in COLUMNS]
    return (sums / len(texts)).tolist()


def test_the_table_of_the_book_is_computed():
    """To the digits stated."""
    found, after = means("SmolLM2"), BOOK.read_text().split("\nSmolLM2")[1].split("\n\n")[1]
    rows = [[float(cell) for cell in line.split("|")[1:-1]] for line in after.splitlines()[2:]]
    assert len(rows) == 7
    for layer, *values in rows:
        for name, value, ours in zip(COLUMNS, values, found[int(layer)], strict=True):
            # Half a digit of what is stated, and what float32 on another machine may change.
            assert ours == pytest.approx(value, abs=0.01 if "cos" in name else 0.5), (layer, name)


def test_the_smallest_rank_of_the_book_is_computed():
    (stated,) = re.findall(r"In stories260K .* it is ([\d.]+) at the least", BOOK.read_text())
    least = min(rank for _, rank, *_ in means("stories260K"))
    assert least == pytest.approx(float(stated), abs=0.05)
