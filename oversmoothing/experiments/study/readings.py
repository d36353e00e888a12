"""Table 1 of arXiv 2401.04301 in every reading: which eigenvalue dominates a layer, how often.

The paper counts "cases" without saying what a case is. Our readings, for any described model:
  E1        a case is an (image, layer, head): the head's own A and H_h with its exact zeros;
  E2        an (image, layer): A the mean over heads, H = sum_h H_h whole;
  E3        an (image, layer): the operator of all heads as it is, no Kronecker product (T7);
  E4        an (image, layer, j): each eigenvalue of the whole H alone against the mean A (T3b);
  E4 heads  an (image, layer, head, j): each eigenvalue of H_h alone against the head's own A.

Classes: 'consensus' (a = 1 wins), 'smallest' (the a of smallest real part, the paper's lambda_1),
'other' (another a; in E3, where no single A is left, whatever is not consensus), 'tie' (equal, by
exact zeros of H or to rounding) and, in E3 alone, 'undecided' (rounding decides, or Arnoldi's
method did not converge).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.inspection.extract import stream
from oversmoothing.experiments.inspection.heads_and_why import matrices
from oversmoothing.experiments.intervals import FEWEST, NAN, in_words, named, share_interval
from oversmoothing.experiments.models.model import Layer, Model, Trace, check_stochastic
from oversmoothing.experiments.models.pictures import Pictures
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.experiments.study import atlas
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.spectra import head_values
from oversmoothing.simulations.state import one_thread, undisturbed
from oversmoothing.theory.spectra.layer_discs import multipliers
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array
from oversmoothing.theory.verdict.formulas import Outcome
from oversmoothing.theory.verdict.verdict import heads_verdict

Attention = NDArray[np.floating]

CLASSES = (*head_values.CLASSES, "undecided")
MEANS = {
    "reading": "what one case is, E1 an input, layer and head, E2 an input and layer with the mean "
    "over heads, E3 with all heads as they are, E4 with each eigenvalue h of H alone",
    "class": "the a of A whose |1 + h a| is largest: 1 (consensus), that of smallest real part, "
    "another; tie: equal, by zeros of H or to rounding",
}
SHOWN = ("reading", "class", "count", "cases", "images", "percent", "percent_low", "percent_high")


# (layer, attention [m, heads, n, n], folding) -> [m, cases of one image], each one of CLASSES.
Reading = Callable[[Layer, Attention, atlas.Folding], NDArray[np.str_]]


def by_spectra(
    layer: Layer, attention: Attention, folding: atlas.Folding, *, heads: bool, alone: bool = False
) -> NDArray[np.str_]:
    """Where |1 + h a| is largest; alone: for each h_j by itself, else over all pairs.

    heads: of each head's own A and H_h, with its d - r zeros; else of the mean A and the whole H.
    """
    A = _plain(attention) if heads else head_values.mean_attention(attention)[:, None]
    H = atlas.own_values(layer, folding) if heads else [atlas.whole_values(layer, folding)]
    if alone:
        each = (zip(image, H, strict=True) for image in head_values.normalised(A))
        return np.stack([np.concatenate([_alone(*pair) for pair in pairs]) for pairs in each])
    index = np.tile(np.arange(len(H)), len(A))
    verdicts = head_values.spectral_verdicts(A.reshape(-1, *A.shape[2:]), H, index)
    return np.asarray(verdicts.dominant).reshape(len(A), len(H))


_OF_ALL_HEADS = {
    Outcome.SMOOTHING: "consensus", Outcome.TRIVIAL: "consensus", Outcome.NON_SMOOTHING: "other",
    Outcome.TIE: "tie", Outcome.UNDECIDED: "undecided",
}  # fmt: skip


def reading_e3(layer: Layer, attention: Attention, folding: atlas.Folding) -> NDArray[np.str_]:
    """E3: rho(I + sum_h H_h) against the radius of Y -> Y + sum_h B_h Y W_h on the quotient."""
    W = atlas.factors(layer, folding)
    verdicts = (heads_verdict(A=A, W=W).verdict for A in head_values.normalised(attention))
    return np.array([[_OF_ALL_HEADS[each]] for each in verdicts])


# Each with what a case is in it.
READINGS: dict[str, tuple[Reading, str]] = {
    "E1": (partial(by_spectra, heads=True), "each head alone"),
    "E2": (partial(by_spectra, heads=False), "the mean over heads"),
    "E3": (reading_e3, "all heads together"),
    "E4": (partial(by_spectra, heads=False, alone=True), "each eigenvalue of H alone"),
    "E4 heads": (partial(by_spectra, heads=True, alone=True), "each eigenvalue of each head"),
}


def layer_cases(
    layer: Layer, A: Attention, number: int = 1, readings: Sequence[str] = tuple(READINGS),
    folding: atlas.Folding = "unfolded", images: Sequence[int] = (),
) -> pd.DataFrame:  # fmt: skip
    """How many cases of each image and reading fall in each class, in layer `number` (from 1).

    A: [m, heads, n, n], float32 or float64, row-stochastic to that precision; images: the number of
    each (usually 0, 1, ...). Columns: reading, image, layer and each of CLASSES.
    Raises `InputError` where A does not fit.
    """
    heads, rows = layer.number, []
    if A.ndim != 4 or A.shape[1] != heads or A.shape[2] != A.shape[3]:
        raise InputError(
            f"attention of layer {number} has shape {list(A.shape)}; give [m, {heads}, n, n]"
        )
    for reading in readings:
        classes_of = READINGS[reading][0](layer, A, folding)
        for image, classes in zip(images or range(len(A)), classes_of, strict=True):
            counts = {name: np.count_nonzero(classes == name) for name in CLASSES}
            rows.append({"reading": reading, "image": image, "layer": number, **counts})
    return pd.DataFrame(rows, columns=["reading", "image", "layer", *CLASSES])


def _plain(attention: Attention) -> Attention:
    """float32 and float64 as they are, anything narrower in float32."""
    return attention if attention.dtype == np.float64 else attention.astype(np.float32, copy=False)


def _alone(A: Array, head: head_values.HeadValues) -> NDArray[np.str_]:
    """The class of every h_j alone, [d], A [n, n] with rows summing to 1; h_j = 0 is a tie."""
    h, errors = head.discs.centres, head.discs.radii
    if len(A) == 1:
        return np.full(len(h), "consensus")
    a, error = head_values.quotient_values(A)
    moduli = np.abs(multipliers(a, h))
    place = moduli.argmax(axis=0)
    margin = np.abs(1 + h) - moduli.max(axis=0)
    doubt = head_values.SAFETY * (
        np.abs(h) * error + 2 * errors + 4 * np.finfo(np.float64).eps * (1 + abs(h))
    )
    smallest = a[place].real <= a.real.min() + 2 * error
    wins = [np.abs(margin) <= doubt, margin > 0, smallest]
    return np.select(wins, ["tie", "consensus", "smallest"], "other")


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
    """One row a reading and class from `layer_cases`.

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
            ends = share_interval(mean, len(counts))
            row = {
                "reading": reading,
                "class": name,
                "count": int(counts[name].sum()),
                "cases": int(total.sum()),
                "images": len(counts),
                "layers": int(part["layer"].nunique()),
            }
            rows.append(row | named("percent", [100 * each for each in (mean, *ends)]))
    return pd.DataFrame(rows)


@one_thread()
@undisturbed()
def readings_of(
    models: Mapping[str, Any], inputs: Tensor | Iterable[Any],
    readings: Sequence[str] = tuple(READINGS), folding: atlas.Folding = "unfolded",
    costly_inputs: int = 10, batch_size: int = 10,
) -> pd.DataFrame:  # fmt: skip
    """The table for several models over the same inputs, with the column `model` in front.

    models: anything that `open_model` reads, the project's own ViTs included, by name. E3 is many
    times as costly as the others and takes the first `costly_inputs` inputs only; padding is left
    out. Raises `InputError` for an unknown reading, learned sinks, and as `stream` does.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> table = oversmoothing.readings_of({"small": model}, X, readings=["E1"])
    >>> set(table["model"])
    {'small'}
    """
    how = _again(inputs), readings, folding, costly_inputs, batch_size
    parts = {name: summarise(_cases(open_model(each), *how)) for name, each in models.items()}
    table = pd.concat(parts, names=["model"]).reset_index("model").reset_index(drop=True)
    table.insert(1, "norm", folding)
    return table


def _cases(
    model: Model, inputs: Any, readings: Sequence[str], folding: atlas.Folding, costly_inputs: int,
    batch_size: int,
) -> pd.DataFrame:  # fmt: skip
    """Those of every layer, taken while the pass is in it, whose attention is then dropped."""
    check_stochastic(model)
    if odd := [name for name in readings if name not in READINGS]:
        raise InputError(f"no reading {odd[0]}: choose from {', '.join(READINGS)}")
    parts, seen = [], 0

    def see(number: int, trace: Trace, keep: Tensor, verified: bool) -> None:
        attention, layer = matrices(trace, keep), model.layers[number]
        for size in dict.fromkeys(A.shape[-1] for A in attention):
            alike = [k for k, A in enumerate(attention) if A.shape[-1] == size]
            few = [k for k in alike if seen + k < costly_inputs]
            for costly, some in ((False, alike), (True, few)):
                names = [name for name in readings if (name == "E3") == costly]
                if names and some:
                    A, images = np.stack([attention[k] for k in some]), [seen + k for k in some]
                    parts.append(layer_cases(layer, A, number + 1, names, folding, images))

    for batch in stream(model, inputs, batch_size=batch_size, see=see):
        seen += len(batch.keep)
    return pd.concat(parts, ignore_index=True)


def _again(inputs: Any) -> Any:
    """Inputs that several models can run over."""
    once = isinstance(inputs, Iterable) and not isinstance(inputs, Pictures | Mapping)
    return list(inputs) if once and not hasattr(inputs, "shape") else inputs


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
        shared = 100 * two[0] / two.sum() if two.sum() else np.nan
        distances = 0.5 * (np.abs(two - goal).sum() + rest), float(np.abs(shared - goal[0]))
        rows.append((*key, *two, *distances))
    names = [*keys, "consensus", "smallest", "distance", "distance_two"]
    return pd.DataFrame(rows, columns=names).sort_values("distance", ignore_index=True)


def readings(
    model: Model, inputs: Any, names: Sequence[str], folding: atlas.Folding, costly_inputs: int
) -> Result:
    """Of one model, and where the eigenvalues of its H lie.

    Tables `readings` (see `readings_of`), `value_spectra` and `eigenvalues`; it says which reading
    is nearest to the published columns (of pictures), and over how many inputs the intervals are.
    """
    table = readings_of({model.name: model}, inputs, names, folding, costly_inputs)
    spectra = atlas.value_spectra_table(model)
    images = dict.fromkeys(table["images"].tolist())
    own = table.loc[table["class"] == "consensus", ["percent", "reading"]].itertuples(index=False)
    each = [f"{share:.0f} % of cases by {name} ({READINGS[name][1]})" for share, name in own]
    says = f"Consensus (all tokens equal, a = 1) dominates in {', '.join(each)}."
    sentences = [Sentence(says, measured(min(images)))]
    for number in images:
        said = f"95 % intervals (Wilson's) over {number} inputs"
        said = said if number >= FEWEST else in_words(NAN, NAN, number, str)
        names_said = table.loc[table["images"] == number, "reading"].unique()
        sentences.append(Sentence(f"{', '.join(names_said)}: {said}.", measured(number)))
    # The published columns are of pictures.
    for column in ("DeiT-B/16", "ViT-B/16") if model.modality == "vision" else ():
        best = nearest(table, column).iloc[0]
        says = (
            f"Nearest to the paper's column {column} is {best['reading']}, {best['distance']:.1f} "
            "points away: another model, so no reproduction."
        )
        sentences.append(Sentence(says, measured(min(images))))
    overall = atlas.in_all(spectra)
    names = [*map(str, overall)]
    return Result(
        "readings",
        f"{model.name}: which eigenvalue dominates its layers (Table 1 of the paper)?",
        {
            "readings": Table(table, dict.fromkeys(SHOWN[-3:], "%"), SHOWN, "{:.2f}", means=MEANS),
            "value_spectra": Table(spectra),
            "eigenvalues": Table(overall, shown=names, number="{:.1f}", means=atlas.MEANS),
        },
        sentences,
        {"model": model.name, "norm": folding, "costly_inputs": costly_inputs},
    )
