"""The H of a layer in each reading; and the atlas: a row a layer and head of any model read.

The H of a reading comes from the described weights, with the exact zeros that it has. Norm
'unfolded' takes W_V as it is, as the paper does. 'folded' puts the norm in front of the attention
into it (`Heads.folded`); the centring of a LayerNorm makes one eigenvalue of H exactly 0.

The atlas stands on a schema that stays. Of H with the gain of the norm in front folded in
(`lever.folded`), the H that acts on normed tokens: of a layer the sum over its heads (head 0), of a
head its own, but for exact zeros. With inputs also what its attention does on them: where it goes,
and whether consensus dominates a head's own A_h and H_h. Of a layer of many heads that is no
product of one A and one H: `probe MODEL readings` asks it apart.

Others extend it: `atlas --join FILE` adds rows made elsewhere after it has checked them. Each row
says by hashes of which weights and inputs it is.
"""

import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from oversmoothing.experiments.inspection.extract import prepared, stream
from oversmoothing.experiments.inspection.heads_and_why import (
    asymmetry,
    joined as together,
    matrices,
)
from oversmoothing.experiments.inspection.spectra import own_dominance
from oversmoothing.experiments.models.model import Layer, Model, Trace, start_spread
from oversmoothing.experiments.study import RECORDED
from oversmoothing.experiments.study.lever import folded, with_gain
from oversmoothing.simulations.drawing.result import UNTESTED, Result, Sentence, Table, measured
from oversmoothing.simulations.running import provenance
from oversmoothing.simulations.spectra.head_values import (
    HeadValues,
    asymmetry_at_random,
    dense_values,
    head_values,
)
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.layer.attention import complement_basis
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_text
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.formulas import in_universal_disc

Folding = Literal["unfolded", "folded"]


def factors(layer: Layer, folding: Folding) -> tuple[Array, Array]:
    """(W_V [heads, d, r], W_O [heads, r, d]) in float64, the norm folded in where asked."""
    own = layer.heads
    own = own.folded(layer.norm_attention) if folding == "folded" else own.double()
    return own.W_V.detach().numpy(), own.W_O.detach().numpy()


def own_values(layer: Layer, folding: Folding) -> list[HeadValues]:
    """spec(H_h) of every head, through its r x r core where r < d."""
    return [
        head_values(first, second)
        if first.shape[1] < len(first)
        else _whole(first @ second, layer, folding)
        for first, second in zip(*factors(layer, folding), strict=True)
    ]


def whole_values(layer: Layer, folding: Folding) -> HeadValues:
    """spec(H), H = sum_h H_h, through a core where the heads together have rank below d."""
    W_V, W_O = factors(layer, folding)
    left, right = together(W_V, W_O)
    if left.shape[1] < len(left):
        return head_values(left, right)
    return _whole(np.einsum("hdr,hre->de", W_V, W_O), layer, folding)


def _whole(W: Array, layer: Layer, folding: Folding) -> HeadValues:
    """spec of a W [d, d] of full rank, but for the zero that the centring of a LayerNorm makes."""
    if folding == "folded" and layer.norm_attention.kind == "layer" and len(W) > 1:
        Q = complement_basis(len(W))
        return head_values(Q, Q.T @ W)
    return dense_values(W.T)


OF = ("whole", "heads")


def value_spectra_table(model: Model) -> pd.DataFrame:
    """A row a norm, OF (the whole layer, its heads) and layer: where the eigenvalues of H lie.

    eigenvalues: how many, without exact zeros; negative, universal_disc: the shares with Re h < 0
    and with |h + 1/2| <= 1/2; of the whole H asymmetry ||H - H^T||_F / ||H + H^T||_F and
    asymmetry_at_random, of independent entries (`asymmetry_at_random`); cos_start, cos(H_start,
    H_end) of the unfolded H, NaN where the start is unknown.
    """
    rows = [
        {"norm": folding, "of": of, "layer": number, **_row(layer, folding, of)}
        for folding in get_args(Folding)
        for of in OF
        for number, layer in enumerate(model.layers, 1)
    ]
    return pd.DataFrame(rows)


def _row(layer: Layer, folding: Folding, of: str) -> dict[str, float]:
    parts = [whole_values(layer, folding)] if of == "whole" else own_values(layer, folding)
    h = np.concatenate([each.discs.centres for each in parts])
    h = h[h != 0]
    skew = at_random = np.nan
    if of == "whole":
        H = np.einsum("hdr,hre->ed", *factors(layer, folding))
        skew, at_random = asymmetry(H), asymmetry_at_random(len(H))
    return {
        "eigenvalues": len(h),
        "negative": float((h.real < 0).mean()),
        "universal_disc": float(np.mean([in_universal_disc(complex(value)) for value in h])),
        "asymmetry": skew,
        "asymmetry_at_random": at_random,
        "cos_start": np.nan if layer.cos_start is None else layer.cos_start,
    }


def recorded_deit() -> pd.DataFrame:
    """That of the trained DeiT-Ti, as `probe deit-tiny-patch16-224 readings` wrote it."""
    return pd.read_csv(RECORDED / "value_spectra_deit_tiny.csv")


def in_all(table: pd.DataFrame) -> pd.DataFrame:
    """Over the layers, a row a norm and OF: shares of all eigenvalues in per cent, the mean
    asymmetry, in how many layers it is below that of independent entries, and cos(H_start, H_end)
    or 'start unknown'."""
    rows = []
    for (norm, of), part in table.groupby(["norm", "of"], sort=False):
        count = part["eigenvalues"]
        own, random = part["asymmetry"], part["asymmetry_at_random"]
        words = {
            "asymmetry": f"{own.mean():.3f} (random {random.mean():.3f})",
            "below random": f"{int((own < random).sum())} of {len(part)} layers",
            "cos(H_start, H_end)": start_spread(part["cos_start"].tolist()),
        }
        row = {
            "norm": norm,
            "H of": of,
            "eigenvalues": int(count.sum()),
            "Re h < 0, %": 100 * float((part["negative"] * count).sum() / count.sum()),
            "in the disc, %": 100 * float((part["universal_disc"] * count).sum() / count.sum()),
        }
        rows.append(row | (words if of == "whole" else dict.fromkeys(words, "-")))
    return pd.DataFrame(rows)


MEANS = {
    "norm": "whether the norm in front of the attention is folded into W_V",
    "eigenvalues": "without exact zeros, in all layers",
    "in the disc, %": "those with |h + 1/2| <= 1/2, where tokens stay apart under every attention",
    "asymmetry": "||H - H^T|| / ||H + H^T||, mean over layers; random: of independent entries",
    "below random": "in how many layers it is smaller than that of independent entries",
    "cos(H_start, H_end)": "cosine of H to what it was before training, 1 where it did not turn",
}
VERSION = 1
# Column -> what it is, in the order of the file. A change of any is another VERSION.
SCHEMA = {
    "schema": "version of these columns",
    "model": "name", "revision": "of the hub, or empty", "weights": "SHA-256 of all parameters",
    "modality": "vision, text or features", "causal": "whether tokens see earlier ones alone",
    "layers": "how many", "layer": "from 1", "head": "from 1; 0: all heads together",
    "heads": "how many the layer has",
    "d": "features", "r": "features of a head", "eigenvalues": "without exact zeros",
    "negative": "share with Re h < 0", "disc": "share with |h + 1/2| < 1/2",
    "alignment": "-tr H / (sqrt d ||H||_F), the cosine to -I; of a head sqrt r in place of sqrt d",
    "radius": "largest |h|", "norm": "||H||_F", "asymmetry": "||H - H^T||_F / ||H + H^T||_F",
    "negative_unfolded": "share with Re h < 0 without the gain",
    "cos_start": "cosine of H to its random start",
    "inputs": "how many, 0 for none", "inputs_hash": "SHA-256 of what the model read",
    "sink": "attention on the token that has most of it, mean over queries and inputs",
    "consensus": "share of inputs on which it dominates A_h and H_h",
    "made": "version of the program",
}  # fmt: skip
OF_LAYERS = ("negative", "disc", "alignment", "asymmetry", "sink", "consensus")
_TEXT = ("model", "revision", "weights", "modality", "inputs_hash", "made")
_SHARES = ("negative", "disc", "negative_unfolded", "sink", "consensus")
_WHOLE = ("schema", "layers", "layer", "head", "heads", "d", "r", "eigenvalues", "inputs")


def weights_hash(model: Model) -> str:
    """SHA-256 of every parameter and its name, as stored."""
    digest = hashlib.sha256()
    for name, value in sorted(model.module.named_parameters()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(_bytes(value))
    return digest.hexdigest()


def inputs_hash(model: Model, inputs: Iterable[Any]) -> str:
    """SHA-256 of the inputs as the model reads them, one after the other."""
    digest = hashlib.sha256()
    for each in inputs:
        read = prepared(model, each[None] if isinstance(each, Tensor) else [each])
        for value in read.values() if isinstance(read, Mapping) else (read,):
            digest.update(_bytes(value))
    return digest.hexdigest()


def _bytes(value: Tensor) -> memoryview:
    """As they lie in memory, not copied."""
    flat = value.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


@one_thread()
def rows_of(model: Model, inputs: Sequence[Any] | Tensor | None = None) -> pd.DataFrame:
    """The rows of a model in the columns of SCHEMA; without inputs those about them are empty.
    Raises `InputError` where the model cannot run on the inputs, or is not as described."""
    seen = None if inputs is None else _attended(model, inputs)
    config = getattr(model.module, "config", None)
    common = {
        "schema": VERSION,
        "model": model.name,
        "revision": str(getattr(config, "_commit_hash", None) or ""),
        "weights": weights_hash(model),
        "modality": model.modality,
        "causal": model.causal,
        "layers": model.depth,
        "d": model.width,
        "inputs": 0 if inputs is None else len(inputs),
        "inputs_hash": "" if inputs is None else inputs_hash(model, inputs),
        "made": str(provenance()["commit"] or ""),
    }
    rows = []
    for number, layer in enumerate(each.kept() for each in model.layers):
        for head in (None, *range(layer.number)):
            row = {**common, "layer": number + 1, "head": 0 if head is None else head + 1,
                   "heads": layer.number, "r": layer.width,
                   "cos_start": layer.cos_start}  # fmt: skip
            row |= spectrum(layer, head)
            if seen is not None:
                heads = slice(None) if head is None else head
                row["sink"] = float(seen["sink"][number][:, heads].mean())
                if head is not None:
                    row["consensus"] = float(seen["consensus"][number][:, head].mean())
            rows.append(row)
    return _in_schema(pd.DataFrame(rows))


def spectrum(layer: Layer, head: int | None) -> dict[str, float]:
    """What the weights say of H of a layer (head None) or of one head of rank r < d."""
    M = folded(layer, head)
    d, r = len(M), layer.width
    h = eigenvalues(layer, head)
    plain = eigenvalues(layer, head, gained=False)
    size = float(np.linalg.norm(M))
    return {
        "eigenvalues": len(h),
        "negative": float((h.real < 0).mean()),
        "disc": float((np.abs(h + 0.5) < 0.5).mean()),
        "alignment": -float(np.trace(M)) / ((d if head is None else min(d, r)) ** 0.5 * size)
        if size
        else np.nan,
        "radius": float(np.abs(h).max()),
        "norm": size,
        "asymmetry": asymmetry(M),
        "negative_unfolded": float((plain.real < 0).mean()),
    }


def eigenvalues(layer: Layer, head: int | None, gained: bool = True) -> Complex:
    """Those of H without the exact zeros that its rank and its features of weight 0 make: of a head
    through its r x r core."""
    W_V, W_O = with_gain(layer, gained)
    left, right = together(W_V, W_O) if head is None else (W_V[head], W_O[head])
    # A feature that is not read (its gain is 0) or not written makes one zero more.
    if (live := left.any(1) & right.any(0)).any():
        left, right = left[live], right[:, live]
    product = right @ left if left.shape[1] < left.shape[0] else left @ right
    values: Complex = np.linalg.eigvals(product).astype(np.complex128)
    return values


def _attended(model: Model, inputs: Any) -> dict[str, list[Array]]:
    """By layer [inputs, heads]: 'sink', and 'consensus', whether it dominates A_h and H_h (NaN
    where the rows of attention do not sum to 1)."""
    held: dict[str, list[list[Array]]] = {
        name: [[] for _ in model.layers] for name in ("sink", "consensus")
    }
    layers = (layer.kept() for layer in model.layers)  # in memory one at a time
    heads = [[eigenvalues(layer, head) for head in range(layer.number)] for layer in layers]
    values = [[np.append(h, [0.0] * (len(h) < model.width)) for h in own] for own in heads]

    def see(number: int, trace: Trace, keep: Tensor, verified: bool) -> None:
        for A in matrices(trace, keep):
            held["sink"][number].append(A.mean(-2, dtype=np.float64).max(-1))
            said = np.full(len(A), np.nan)
            if not model.layers[number].sinks:
                pairs = zip(A, values[number], strict=True)
                said[:] = [own_dominance(*pair)["consensus"] for pair in pairs]
            held["consensus"][number].append(said)

    for _ in stream(model, inputs, batch_size=8, see=see):
        pass
    return {name: [np.stack(each) for each in layers] for name, layers in held.items()}


def _in_schema(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of SCHEMA in their order, of their kinds."""
    kinds = {"causal": bool} | dict.fromkeys(_TEXT, str) | dict.fromkeys(_WHOLE, np.int64)
    empty = dict.fromkeys(_TEXT, "")
    whole = frame.reindex(columns=list(SCHEMA)).fillna(empty)
    return whole.astype({name: kinds.get(name, np.float64) for name in SCHEMA})


def read_atlas(path: Path) -> pd.DataFrame:
    """The rows of a file, checked. Raises `InputError` with the first thing that is wrong."""
    kinds: Any = dict.fromkeys(_TEXT, str)
    try:
        frame = pd.read_csv(io.StringIO(read_text(path)), dtype=kinds)
        if list(frame) != list(SCHEMA):
            raise ValueError("its columns are others")
        frame = _in_schema(frame)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"'{path}' is no atlas of version {VERSION} ({error}): give the rows.csv of an atlas"
        ) from error
    if wrong := faults(frame):
        raise InputError(f"'{path}' is not joined: {wrong[0]}")
    return frame


def faults(frame: pd.DataFrame) -> list[str]:
    """What cannot be so in rows of an atlas, in words; nothing for what may be joined."""
    counted = frame["negative"] * frame["eigenvalues"]
    off = (counted - counted.round()).abs() > 1e-6 * frame["eigenvalues"]
    leaning = (frame["alignment"].abs() > 1 + 1e-9) | (frame["asymmetry"] < 0)
    odd = {
        f"rows of another version than {VERSION}": frame["schema"] != VERSION,
        **{f"{name} beyond 0 and 1": (frame[name] < 0) | (frame[name] > 1) for name in _SHARES},
        "an alignment beyond 1, or an asymmetry below 0": leaning,
        # |h| <= ||H||_F, and (Re tr H)^2 <= rank ||H||_F^2.
        "an eigenvalue larger than the norm of its H":
            frame["radius"] > frame["norm"] * (1 + 1e-9),
        "a share that is no count of eigenvalues": off,
        "a hash of weights that is no SHA-256":
            frame["weights"].str.fullmatch("[0-9a-f]{64}").eq(False),
    }  # fmt: skip
    wrong = [words for words, rows in odd.items() if rows.any()]
    for key, own in frame.groupby(["weights", "inputs_hash"]):
        heads = own.groupby("layer")["heads"].first()
        wanted = {(layer, head) for layer, number in heads.items() for head in range(number + 1)}
        there = list(zip(own["layer"], own["head"], strict=True))
        whole = list(heads.index) == list(range(1, int(own["layers"].iloc[0]) + 1))
        whole = whole and set(there) == wanted and len(there) == len(wanted)
        if not whole or own["model"].nunique() > 1:
            wrong.append(f"the rows of {own['model'].iloc[0]} ({str(key)[2:10]}) are "
                         "not one for each layer and head")  # fmt: skip
    return wrong


def joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All rows, each model and inputs once: of equal hashes the later rows stand."""
    whole = pd.concat(frames, ignore_index=True)
    for _, own in whole.groupby(["weights", "layer", "head"]):
        for name in ("negative", "disc", "alignment", "radius"):
            if np.ptp(own[name]) > 1e-6 * max(1.0, own[name].abs().max()):
                raise InputError(
                    f"rows of the same weights ({own['model'].iloc[0]}) differ in {name} of layer "
                    f"{own['layer'].iloc[0]}: one of the files is wrong"
                )
    keys = ["weights", "inputs_hash", "layer", "head"]
    return whole.drop_duplicates(keys, keep="last", ignore_index=True)


def atlas(rows: pd.DataFrame) -> Result:
    """The rows with a table that compares the models, vision and text, and a picture by depth."""
    parts = rows, rows[rows["head"] == 0], rows[rows["head"] > 0]
    every, layers, heads = (each.groupby(["model", "weights"], sort=False) for each in parts)
    table = every[["modality", "layers", "d"]].first()
    table["negative"], table["head_negative"] = (x["negative"].mean() for x in (layers, heads))
    table = table.join(layers[["disc", "alignment", "asymmetry"]].mean())
    table = table.join(heads[["sink", "consensus"]].mean()).reset_index()
    table["weights"] = table["weights"].str[:8]
    leaning = {kind: table[table["modality"] == kind]["alignment"] for kind in ("vision", "text")}
    said = [
        Sentence(
            f"{kind}: H, gain folded in, leans towards -I in {(own > 0).sum()} of {len(own)} "
            f"models (alignment {own.min():+.2f} to {own.max():+.2f}).",
            measured(len(own), of="model"),
        )
        for kind, own in leaning.items()
        if len(own)
    ]
    means = {name: SCHEMA[name] for name in OF_LAYERS}
    return Result(
        "atlas",
        f"H of {len(table)} trained models, layer by layer and head by head",
        {"models": Table(table, shown=[*map(str, table)], means=means), "rows": Table(rows)},
        said or [Sentence("No model of images or text is here.", UNTESTED)],
        {"schema": VERSION},
        details={"columns": dict(SCHEMA)},
        picture=lambda: drawn(rows),
    )


def drawn(rows: pd.DataFrame) -> Figure:
    """Alignment with -I and the heads' share of Re h < 0 along the depth, a line a model."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for (name, _), own in rows.groupby(["model", "weights"], sort=False):
        layers = own[own["head"] == 0].drop_duplicates("layer").sort_values("layer")
        heads = own[own["head"] > 0].groupby("layer")["negative"].mean()
        style = "-" if own["modality"].iloc[0] == "vision" else "--"
        depth = (layers["layer"] - 0.5) / layers["layers"]
        left.plot(depth, layers["alignment"], style, marker=".", label=name)
        right.plot(depth, heads.to_numpy(), style, marker=".", label=name)
    left.axhline(0, color="0.7", linewidth=0.8)
    right.axhline(0.5, color="0.7", linewidth=0.8)
    left.set(xlabel="depth (share of the layers)", ylabel="alignment of H with $-I$")
    right.set(xlabel="depth (share of the layers)", ylabel="share of heads' Re h < 0", ylim=(0, 1))
    right.legend(fontsize=7)
    return figure
