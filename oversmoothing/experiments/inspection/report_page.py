"""A report as one page of HTML that needs no other file and asks no network.

Its tables and pictures stand without a script; scripts take their numbers from those tables.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from oversmoothing.experiments.inspection.sentences import (
    ACCOUNT,
    CONVENTIONS,
    HEADS,
    NARROW,
    SUBLAYERS,
    WIDE,
)
from oversmoothing.experiments.inspection.states import (
    CLUSTER_COLOURS,
    TOGETHER,
    patch_side,
    shortened,
)
from oversmoothing.simulations.drawing.web_page import as_data, as_link, web_page
from oversmoothing.simulations.provenance import provenance

# Clusters of an input after a layer that the page lists, and letters of each; merged.csv has
# all.
LISTED, LETTERS = 4, 240
# The charts: a title, what its lines are, whether its axis is logarithmic.
_CHARTS = (
    ("ratio", "HFC/LFC, geometric mean", {"hfc_lfc": ""}),
    (
        "cosine",
        "Cosine of two tokens, signed",
        {
            "cos_mean": "mean",
            "cos_min": "smallest",
            "cos_mean_desunk": "mean without the largest direction",
        },
    ),
    (
        "rank",
        "Effective rank",
        {"effective_rank": "all", "effective_rank_desunk": "without the largest direction"},
    ),
)


def page(report: Any, picture: bytes, tokens: bytes | None) -> str:
    """HTML of a `Report` with the verdict, the tables, the pictures (PNG) and the conventions."""
    merged = report.merged
    if not merged.empty:
        merged = merged[merged["cluster"] < LISTED]
        merged = merged.assign(words=[shortened(words, LETTERS) for words in merged["words"]])
    inner = report.table.iloc[1:]
    account = ACCOUNT if "log_change_attention_body" in inner else SUBLAYERS
    return web_page(
        "oversmoothing.experiments.inspection",
        "report.html",
        style="report.css",
        scripts=("layers.js", "heads.js", "tokens.js"),
        report=report,
        said=report.said(),
        narrow=_cells(report.short_table(), NARROW),
        wide=_cells(report.short_table(wide=True), NARROW | WIDE),
        heads=_cells(report.heads.rename(columns=HEADS), HEADS),
        charts=[
            (key, title, {name: said for name, said in lines.items() if _shown(name, report.table)})
            for key, title, lines in _CHARTS
        ],
        account={f"log_change_{name}": look for name, look in account.items()},
        bands=as_data(_bands(report.table)),
        together=TOGETHER,
        clusters=as_data(_clusters(report.tokens_together, report.pixels)),
        picture=as_link(picture),
        tokens=tokens and as_link(tokens),
        merged=merged.to_dict("records"),
        conventions=CONVENTIONS,
        provenance=provenance(),
    )


def _shown(name: str, table: pd.DataFrame) -> bool:
    return name == "hfc_lfc" or name in table


def _cells(table: pd.DataFrame, titles: dict[str, str]) -> dict[str, Any]:
    """The columns, each {name, title}, and the rows as cells, each {text, value}."""
    names = {title: name for name, title in titles.items()}
    rows = table.astype(object).to_dict("records")
    return {
        "columns": [{"name": names[str(title)], "title": title} for title in table.columns],
        "rows": [[cell(value) for value in row.values()] for row in rows],
    }


def cell(value: float) -> dict[str, Any]:
    """The text of a number, and all its digits; a number that is not known has none."""
    if pd.isna(value):
        return {"text": "–", "value": None}
    if isinstance(value, int | np.integer):
        return {"text": str(value), "value": value}
    text = f"{value:.3f}" if value == 0 or abs(value) >= 0.0005 else f"{value:.1e}"
    exact = repr(float(value)).replace("inf", "Infinity")
    return {"text": text.replace("-", "−").replace("inf", "∞"), "value": exact}


def _bands(table: pd.DataFrame) -> dict[str, list[list[float | None]]]:
    """From the 5th to the 95th percentile of the inputs, by layer: {column: [low, high]}."""
    shown = {}
    for name in ("log_hfc_lfc", "cos_mean", "cos_min", "effective_rank"):
        if f"{name}_p05" in table:
            ends = [table[f"{name}_{end}"].to_numpy(float) for end in ("p05", "p95")]
            if name == "log_hfc_lfc":
                name, ends = "hfc_lfc", [np.exp(end) for end in ends]
            shown[name] = [[_known(value) for value in end] for end in ends]
    return shown


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _clusters(tokens: pd.DataFrame, pixels: NDArray[np.float64] | None) -> dict[str, Any]:
    """Of each input drawn: the clusters [layers + 1][n], its words, or its image and the side of
    its square of patches."""
    inputs = []
    for number in [] if tokens.empty else tokens["input"].unique():
        rows = tokens[tokens["input"] == number]
        grid = rows.pivot(index="layer", columns="token", values="cluster")
        side = None if pixels is None else patch_side(grid.shape[1], pixels.shape)
        first = rows[rows["layer"] == 0].sort_values("token")
        inputs.append(
            {
                "clusters": grid.to_numpy().tolist(),
                "words": list(first["word"]) if "word" in first else None,
                "side": side,
                "picture": None if pixels is None or side is None else _png(pixels[number]),
            }
        )
    return {"colours": CLUSTER_COLOURS, "inputs": inputs}


def _png(pixels: NDArray[np.float64]) -> str:
    """[H, W, 3] in [0, 1] as the address of an image."""
    file = io.BytesIO()
    Image.fromarray((255 * pixels).round().astype(np.uint8)).save(file, "png")
    return as_link(file.getvalue())
