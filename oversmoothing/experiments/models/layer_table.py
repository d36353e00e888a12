"""The layers of a described model as a short table: what they are made of, like ones in a row."""

from collections.abc import Sequence
from typing import Any

import pandas as pd


def layer_table(layers: Sequence[Any]) -> pd.DataFrame:
    """One row for each run of like layers (each a `Layer`): numbers from 1, heads, norms, FFN."""
    rows: list[dict[str, Any]] = []
    for number, layer in enumerate(layers, 1):
        row = _row(layer)
        if rows and rows[-1].items() >= row.items():
            rows[-1]["layers"] = f"{rows[-1]['layers'].split(' ')[0]} to {number}"
        else:
            rows.append({"layers": str(number), **row})
    return pd.DataFrame(rows)


def _row(layer: Any) -> dict[str, str | int]:
    behind = (layer.output_norm_attention, layer.output_norm_ffn)
    also = {
        "norms of q, k": layer.q_norm or layer.k_norm,
        "logits capped": layer.softcap,
        "sinks": layer.sinks is not None,
        "norms behind": any(norm.kind != "none" for norm in behind),
    }
    norms = dict.fromkeys((layer.norm_attention.kind, layer.norm_ffn.kind))
    return {
        "heads": layer.heads.number,
        "head width": layer.heads.width,
        "norms": f"{layer.placement}: {', '.join(norms)}",
        "FFN": "no" if layer.ffn is None else "yes",
        "also": ", ".join(name for name, has in also.items() if has) or "-",
    }
