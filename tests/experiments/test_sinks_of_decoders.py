"""The figures that the book states of trained decoders are those computed here."""

from pathlib import Path

import pytest
from sklearn import datasets

from oversmoothing import metrics, open_model
from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.states import sinks
from oversmoothing.experiments.models.sources import cut_texts
from tests.experiments.test_trained_by_name import place

BOOK = Path(__file__).parents[2] / "docs" / "theory" / "t4.md"
SETS = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")
COLUMNS = [
    f"{name}{part}"
    for part in ("", "_desunk", "_without_first", "_desunk_without_first")
    for name in ("cos_mean", "effective_rank")
]


def stated(model: str) -> list[list[float]]:
    """The rows of the table under the name of the model."""
    after = BOOK.read_text().split(f"\n{model}")[1].split("\n\n")[1]
    return [[float(cell) for cell in line.split("|")[1:-1]] for line in after.splitlines()[2:]]


@pytest.mark.parametrize(("model", "layers"), [("SmolLM2", 10), ("stories260K", 6)])
def test_the_table_of_the_book_is_computed(model, layers):
    """The raw columns by the metrics of a state, the others by `sinks`; to the digits stated."""
    described = open_model(place(model))
    cut_texts([described], 512)
    texts = [" ".join(getattr(datasets, f"load_{name}")().DESCR.split()) for name in SETS]
    rows = stated(model)
    assert len(rows) == layers
    sums = {row[0]: [0.0] * len(COLUMNS) for row in rows}
    for batch in stream(described, texts, batch_size=1, attention=False):
        streams = [batch.traces[0].before, *(trace.after_ffn for trace in batch.traces)]
        for layer, total in sums.items():
            state = streams[int(layer)][0].double()
            raw, found = metrics(state), sinks(state)
            for k, name in enumerate(COLUMNS):
                value = raw[name] if k < 2 else found[name]
                total[k] += float(value) / len(texts)
    for row in rows:
        for name, value, ours in zip(COLUMNS, row[1:], sums[row[0]], strict=True):
            # Half a digit of what is stated, and what float32 on another machine may change.
            assert ours == pytest.approx(value, abs=0.01 if "cos" in name else 0.5), (row[0], name)
