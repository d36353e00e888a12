"""The table of every reading: percentages by class with 95 % intervals over images."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.intervals import FEWEST, NAN, in_words, share_interval
from oversmoothing.experiments.models.pictures import Pictures
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.table1.cases import CLASSES, READINGS, Attention, dominance_cases
from oversmoothing.experiments.table1.value_spectra import Folding
from oversmoothing.experiments.threads import one_thread
from oversmoothing.theory.support.errors import InputError

# Table 1 of arXiv 2401.04301 (v1), percent of cases (consensus, smallest).
PUBLISHED = {
    "random ViT-B/16": (100.0, 0.0),
    "ViT-B/16": (70.27, 29.73),
    "DeiT-B/16": (57.82, 42.18),
    "ViT-Ti": (98.92, 1.08),
    "ViT-Ti+": (100.0, 0.0),
    "ViT-Ti\u2212": (0.0, 100.0),
}


def summarise(cases: pd.DataFrame) -> pd.DataFrame:
    """One row a reading and class from `dominance_cases`.

    Columns: reading, class, count, cases, images, layers, percent, percent_low, percent_high. The
    interval is Wilson's, the images counted as trials (`share_interval`); NaN for fewer than five.
    """
    rows = []
    for reading, part in cases.groupby("reading", sort=False):
        counts = part.groupby("image")[list(CLASSES)].sum()
        total = counts.sum(axis=1)
        for name in CLASSES:
            if name == "undecided" and reading != "E3":
                continue
            mean = float((counts[name] / total).mean())
            low, high = share_interval(mean, len(counts))
            rows.append(
                {
                    "reading": reading,
                    "class": name,
                    "count": int(counts[name].sum()),
                    "cases": int(total.sum()),
                    "images": len(counts),
                    "layers": int(part["layer"].nunique()),
                    "percent": 100 * mean,
                    "percent_low": 100 * low,
                    "percent_high": 100 * high,
                }
            )
    return pd.DataFrame(rows)


@one_thread()
def readings_of(
    models: Mapping[str, Any],
    inputs: Any,
    readings: Sequence[str] = tuple(READINGS),
    folding: Folding = "unfolded",
    costly_inputs: int = 10,
    batch_size: int = 10,
) -> pd.DataFrame:
    """The table for several models over the same inputs, with the column `model` in front.

    models: anything that `open_model` reads, the project's own ViTs included, by name. E3 is many
    times as costly as the others and takes the first `costly_inputs` inputs only; inputs with
    padding are refused. Raises `InputError` as `dominance_cases` and `stream` do.
    """
    tables = []
    for name, source in models.items():
        model = open_model(source)
        parts = []
        seen = 0
        for batch in stream(model, _again(inputs), batch_size=batch_size):
            if not bool(batch.keep.all()):
                raise InputError("the readings take inputs of one length, without padding")
            attention = [_array(trace.attention) for trace in batch.traces]
            cheap = [each for each in readings if each != "E3"]
            parts.append(dominance_cases(model, attention, cheap, folding, seen))
            left = costly_inputs - seen
            if "E3" in readings and left > 0:
                some = [A[:left] for A in attention]
                parts.append(dominance_cases(model, some, ["E3"], folding, seen))
            seen += len(batch.keep)
        table = summarise(pd.concat(parts, ignore_index=True))
        table.insert(0, "norm", folding)
        table.insert(0, "model", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _again(inputs: Any) -> Any:
    """Inputs that several models can run over."""
    once = isinstance(inputs, Iterable) and not isinstance(inputs, Pictures)
    return list(inputs) if once and not hasattr(inputs, "shape") else inputs


def _array(attention: Any) -> Attention:
    assert attention is not None
    result: Attention = attention.cpu().numpy()
    return result


def nearest(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """The readings by their distance from one published column: a comparison, no reproduction.

    distance: half the sum of |difference| in percent over consensus, smallest and the rest, which
    the published table leaves none for. distance_two: the same after sharing out what is neither
    in proportion, as a table of two classes would.
    """
    if column not in PUBLISHED:
        raise InputError(f"no column '{column}': choose from {', '.join(PUBLISHED)}")
    goal = np.array(PUBLISHED[column])
    rows = []
    keys = [name for name in ("model", "norm", "reading") if name in table]
    for key, part in table.groupby(keys, sort=False):
        percent = part.set_index("class")["percent"]
        # E3 knows no smallest a: what is not consensus stands in its place.
        second = "other" if key[-1] == "E3" else "smallest"
        two = np.array([percent["consensus"], percent[second]])
        rest = 100 - two.sum()
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                "consensus": two[0],
                "smallest": two[1],
                "distance": 0.5 * (np.abs(two - goal).sum() + rest),
                "distance_two": (
                    float(np.abs(100 * two[0] / two.sum() - goal[0])) if two.sum() else np.nan
                ),
            }
        )
    return pd.DataFrame(rows).sort_values("distance", ignore_index=True)


def nearest_words(table: pd.DataFrame) -> str:
    """A sentence for each published column: which reading comes nearest."""
    lines = []
    for column in ("DeiT-B/16", "ViT-B/16"):
        best = nearest(table, column).sort_values("distance").iloc[0]
        lines.append(
            f"Nearest to the published column {column}: {best['reading']}, {best['distance']:.1f} "
            "points away (a comparison, no reproduction)."
        )
    return "\n".join(lines)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Percent and 95 % interval over inputs (from five on), a row a reading, a column a class."""
    ends = zip(table["percent"], table["percent_low"], table["percent_high"], strict=True)
    words = table.assign(
        cell=[
            f"{percent:.2f}" + ("" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]")
            for percent, low, high in ends
        ]
    )
    keys = ["model", "norm", "reading", "cases", "images"]
    return words.pivot(index=keys, columns="class", values="cell").reset_index().fillna("-")


def interval_words(table: pd.DataFrame) -> str:
    """Over how many inputs the intervals of `wide` are, or how many they take."""
    lines = []
    for images in dict.fromkeys(table["images"].tolist()):
        part = table[table["images"] == images]
        said = f"95 % intervals (Wilson's) over {images} inputs"
        said = said if images >= FEWEST else in_words(NAN, NAN, images, str)
        lines.append(f"{', '.join(dict.fromkeys(part['reading']))}: {said}.")
    return "\n".join(lines)
