"""Table 1 of arXiv 2401.04301 (v1) in the readings that fit it: which eigenvalue dominates.

The paper does not say what its percentages count. E1: a head, its A against its H; E2: a layer, the
mean A against the whole H; E4: an eigenvalue of the whole H. (E3, the operator of all heads, is for
DeiT-Ti in the recorded table.) Beside it what the paper says of the
asymmetry of H, ||H - H^T||_F / ||H + H^T||_F: 0 for a symmetric H, about 1 for independent entries.
Its own formula was not at hand; a reviewer quotes its values, from about .95 down to about .70,
which this ratio fits: a share of 2 ||H||_F starts at 1/sqrt(2) and cannot start at .95.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from oversmoothing.experiments.digits.data import digits
from oversmoothing.experiments.digits.training import dominance_by_layer
from oversmoothing.experiments.digits.training_config import TRAINED
from oversmoothing.experiments.digits.vit import StudyNet
from oversmoothing.experiments.intervals import FEWEST, mean_interval, named, share_interval
from oversmoothing.experiments.models.model import start_in_words
from oversmoothing.experiments.study import RECORDED as RECORDED_RUNS
from oversmoothing.experiments.study.atlas import recorded_deit
from oversmoothing.experiments.study.readings import PUBLISHED, readings_of
from oversmoothing.paper_figures import figure_base as base
from oversmoothing.paper_figures.models_shown import (
    CIFAR,
    PAPER_ERROR,
    Shown,
    cifar_runs,
    digits_models,
    trained_here,
    untrained,
)
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure
from oversmoothing.simulations.spectra.head_values import CLASSES, asymmetry_at_random
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import RequirementError

TITLE = "Table 1: which eigenvalue dominates, in every reading"
SHORT = (
    "The share of cases in which consensus dominates, by what a case may be. Black diamonds "
    "are the paper's, as printed; the other shapes are ours, by reading."
)
NOT_SHOWN = (
    "Only the untrained row is the same model as the paper's. DeiT-Ti stands beside "
    "DeiT-B/16, and digits models beside those of CIFAR-100, where no run of CIFAR-100 is "
    "there."
)

RECORDED = (
    "recorded: oversmoothing probe deit-tiny-patch16-224 readings --images cifar100 --count 100 "
    "--readings E1 E2 E4, and --count 8 --costly 8 --readings E3"
)
DEIT = "DeiT-Ti, ImageNet"
COMPUTED = "computed"
PAPER = "arXiv 2401.04301 (v1), Table 1, typed in"
# Of E1, E4 and of other data than the digits; E2 of the digits counts every validation image.
IMAGES = 20
# Percentages are printed to two decimals.
PRINTED = 0.005
MARKER = {"E1": "o", "E2": "s", "E3": "^", "E4": "v"}
MEANING = {
    "E1": "E1, a head",
    "E2": "E2, a layer (mean A, whole H)",
    "E3": "E3, a layer (all heads as they are)",
    "E4": "E4, an eigenvalue of H",
}
# Typed in: the asymmetry as a public review of the submission quotes it, at the start and the end.
ASYMMETRY = (0.95, 0.70)
# A run tells what training makes of H where no layer keeps more than this cosine with its start.
LEFT = 0.3


def data(context: base.Context) -> pd.DataFrame:
    """kind 'share': a row a model, reading and class, ours with 95 % intervals over images, then
    the paper's; of the digits' reading E2 also where the spectrum of H lies (`dominance_table`).
    kind 'asymmetry': a row a layer at the first and the last watched step of a free H (`epoch`),
    then of DeiT-Ti; at_random: of independent entries in that dimension.

    test_error: of ours that were trained here, in per cent; cos_start_low, cos_start_high: the
    smallest and largest cos(H_start, H_end) of its layers, NaN where the start is unknown. Raises
    what `digits_models` does, and `RequirementError` where the table contradicts a theorem.
    """
    models = digits_models(context)
    spectra = dominance_table(
        {name: models[name].model for name in TRAINED}, digits().validation.pixels
    )
    require_theorems(spectra)
    parts = []
    for shown in (untrained(context), *trained_here(context, IMAGES)):
        # Of the digits E2 is counted on every validation image.
        readings = ["E1", "E4"] if shown.data == "digits" else ["E1", "E2", "E4"]
        rows = readings_of({shown.label: shown.model}, shown.inputs, readings)
        if shown.data == "digits":
            whole = spectra[spectra["model"] == shown.variant].assign(model=shown.label)
            rows = pd.concat([whole, rows])
        parts.append(rows.assign(**_known(shown)))
    # DeiT-Ti on 100 images of CIFAR-100, E3 on 8, by the commands that `RECORDED` names.
    deit = pd.read_csv(RECORDED_RUNS / "readings_deit_tiny.csv")
    parts.append(deit.assign(model=DEIT, column="DeiT-B/16", data="ImageNet", source=RECORDED))
    parts.append(typed_in())
    shares = pd.concat(parts, ignore_index=True).assign(kind="share")
    asymmetries = pd.concat(list(_asymmetries(context))).assign(kind="asymmetry", source=COMPUTED)
    table = pd.concat([shares, asymmetries], ignore_index=True)
    # Counts stay whole where other rows have none.
    counts = ["count", "cases", "images", "layers", "layers_within_unit", "consensus_within_unit",
              "layers_beyond_one"]  # fmt: skip
    return table.astype(dict.fromkeys(counts, "Int64"))


@one_thread()
def dominance_table(models: Mapping[str, StudyNet], pixels: Tensor) -> pd.DataFrame:
    """Reading E2, a row a model and class: counts, shares and where the spectrum of H lies.

    pixels [m, 8, 8] on the CPU. Columns: model, reading, class, count; percent, percent_low,
    percent_high (95 %, `share_interval`); cases, images, layers; and, the same for each class of a
    model: h_real_min, h_real_max, h_abs_max over its layers; safe_interval_min over cases;
    outside_percent, of all (image, layer, j) with h_j outside the safe interval (for complex h:
    where consensus does not lose); layers_within_unit, layers with all h_j in [-1, 0);
    consensus_within_unit, cases of those layers that consensus wins; layers_beyond_one, layers
    with some h_j < -1.
    """
    rows = (_rows(name, model, pixels) for name, model in models.items())
    return pd.DataFrame([*chain.from_iterable(rows)])


def _rows(name: str, model: StudyNet, pixels: Tensor) -> Iterator[dict[str, object]]:
    layers = dominance_by_layer(model, pixels.to(next(model.parameters()).device))
    classes = np.stack([layer.classes for layer in layers])
    depth, images = classes.shape
    within = np.array([layer.within_unit for layer in layers])
    h = np.stack([layer.h for layer in layers])
    common = {
        "cases": classes.size,
        "images": images,
        "layers": depth,
        "h_real_min": h.real.min(),
        "h_real_max": h.real.max(),
        "h_abs_max": np.abs(h).max(),
        "safe_interval_min": min(layer.safe.min() for layer in layers),
        "outside_percent": 100 * np.mean([layer.outside.mean() for layer in layers]),
        "layers_within_unit": int(within.sum()),
        "consensus_within_unit": int((classes[within] == "consensus").sum()),
        "layers_beyond_one": int((h.real < -1).any(axis=1).sum()),
    }
    for each in CLASSES:
        count = int((classes == each).sum())
        low, high = share_interval(count / classes.size, images)
        percents = (100 * count / classes.size, 100 * low, 100 * high)
        yield {"model": name, "reading": "E2", "class": each, "count": count,
               **named("percent", percents), **common}  # fmt: skip


def require_theorems(table: pd.DataFrame) -> None:
    """Raise `RequirementError` where the table contradicts T2d (ViT+) or T3d (h_j in [-1, 0))."""
    for _, row in table[table["class"] == "consensus"].iterrows():
        if row["model"] == "vit+" and row["count"] != row["cases"]:
            raise RequirementError(
                f"vit+: consensus dominates {row['count']} of {row['cases']} cases in reading "
                f"{row['reading']}, but every h_j > 0 demands all of them (T2d)"
            )
        if row["consensus_within_unit"] > 0:
            raise RequirementError(
                f"{row['model']}: consensus dominates {row['consensus_within_unit']} cases in "
                f"layers with every h_j in [-1, 0), in reading {row['reading']}; T3d allows none"
            )


def _known(shown: Shown) -> dict[str, Any]:
    starts = [layer.cos_start for layer in shown.model.layers if layer.cos_start is not None]
    return {
        "column": shown.column,
        "data": shown.data,
        "source": COMPUTED,
        "variant": shown.variant,
        "test_error": shown.test_error,
        "cos_start_low": min(starts, default=np.nan),
        "cos_start_high": max(starts, default=np.nan),
    }


def typed_in() -> pd.DataFrame:
    """The published columns; the paper gives two classes."""
    rows = [
        (name, name, "paper", each, percent, PAPER)
        for name, pair in PUBLISHED.items()
        for each, percent in zip(("consensus", "smallest"), pair, strict=True)
    ]
    return pd.DataFrame(rows, columns=["model", "column", "reading", "class", "percent", "source"])


def _asymmetries(context: base.Context) -> Iterator[pd.DataFrame]:
    """Of each free H that was watched while training, then of the trained DeiT-Ti, H as stored."""
    runs = {"digits": digits_models(context)["vit"], CIFAR: cifar_runs(context.results).get("vit")}
    for name, run in runs.items():
        if run is not None and "asymmetry" in run.run.watched:
            watched = run.run.watched.dropna(subset=["asymmetry"])
            watched = watched.assign(epoch=watched["step"] / run.config.per_epoch)
            # The first and the last step of each layer.
            layers = watched.sort_values("epoch").groupby("layer")
            own = pd.concat([layers.head(1), layers.tail(1)])[["layer", "epoch", "asymmetry"]]
            own = own.assign(model=name, variant="vit")
            starts = dict(enumerate(run.model.cos_start or [], 1))
            at_random = asymmetry_at_random(run.config.width)
            yield own.assign(at_random=at_random, cos_start=own["layer"].map(starts))
    table = recorded_deit()
    own = table[(table["norm"] == "unfolded") & (table["of"] == "whole")]
    own = own.rename(columns={"asymmetry_at_random": "at_random"}).assign(model=DEIT)
    yield own[["model", "layer", "asymmetry", "at_random"]]


def draw(table: pd.DataFrame) -> Figure:
    """Consensus in per cent: a row a model, the paper a black diamond, a shape a reading."""
    figure, axes = new_figure(1, 1, height=3.4)
    axis = axes[0, 0]
    consensus = table[table["class"] == "consensus"]
    names: list[str] = []
    for column, (paper, _) in PUBLISHED.items():
        group = consensus[(consensus["column"] == column) & (consensus["source"] != PAPER)]
        models = list(dict.fromkeys(group["model"])) or [column]
        for model in models:
            place = -len(names)
            axis.plot(paper, place, "D", color=PALETTE["black"], markersize=6, zorder=2)
            own = group[group["model"] == model].to_dict("records")
            for number_of, row in enumerate(own):
                reading, percent = str(row["reading"]), float(row["percent"])
                # Fewer than FEWEST images have no interval.
                reach = [[max(0, percent - row["percent_low"])], [row["percent_high"] - percent]]
                axis.errorbar(
                    percent, place - 0.16 * (number_of + 1), xerr=np.nan_to_num(reach),
                    color=PALETTE["blue"], elinewidth=0.8, marker=MARKER[reading], markersize=4.5,
                )  # fmt: skip
            other = f"\n({model}: another model)" if own and model != column else ""
            names.append(f"{column}{other or ('' if own else ' (not run)')}")
    axis.set_yticks([-place for place in range(len(names))], names, fontsize=7)
    axis.set(xlim=(-3, 103), xlabel="consensus dominates (% of cases)")
    axis.set_ylim(-len(names) + 0.25, 0.45)
    handles = [base.mark("the paper, as printed", "D", color="black")]
    handles += [base.mark(MEANING[name], MARKER[name], color=PALETTE["blue"])
                for name in sorted(MARKER.keys() & consensus["reading"])]  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def compared(table: pd.DataFrame) -> list[base.Comparison]:
    """Column by column, in the reading that is nearest to what the paper describes, E2; the
    untrained one in every reading; then the asymmetry of H."""
    said = []
    shares = table[table["kind"] == "share"]
    ours = shares[(shares["class"] == "consensus") & (shares["source"] != PAPER)]
    for column, (paper, _) in PUBLISHED.items():
        own = ours[ours["column"] == column]
        if column == "ViT-B/16":
            why = "its weights are not here"
            said.append(base.unchecked(f"Table 1, {column}", f"{paper:.2f} %", why))
        for row in own.to_dict("records"):
            reading, percent = row["reading"], float(row["percent"])
            what = f"Table 1, {column}, {MEANING[reading]}"
            # Fewer than FEWEST images have no interval.
            reach = float(row["percent_high"]) - float(row["percent_low"])
            tolerance = PRINTED + (reach / 2 if reach >= 0 else 0.0)
            why = ""
            if column == "random ViT-B/16":
                why = f"{row['images']:.0f} photographs, one draw; how the paper counts is unknown"
            elif reading == "E2" and column == "ViT-Ti+":
                why = f"{row['data']}; every h > 0 demands it of any data (T2d)"
            elif row["data"] == CIFAR:
                why = "another recipe and number of epochs"
            each = base.number(what, paper, percent, tolerance, why)
            if not why:
                why = f"{row['model']} is another model"
                each = base.unchecked(what, f"{paper:.2f} %", why, f"{percent:.2f} %")
            if row["data"] == CIFAR:
                each = base.at_accuracy(each, float(row["test_error"]), PAPER_ERROR[row["variant"]])
            said.append(replace(each, recorded=row["source"] == RECORDED))
    return said + _of_asymmetry(table[table["kind"] == "asymmetry"])


def _of_asymmetry(table: pd.DataFrame) -> list[base.Comparison]:
    """That it falls, decided by models whose start is known and whose H has left it; and its
    values, whose formula is not known."""
    falls = "asymmetry falls while training"
    deit = table[table["model"] == DEIT]
    below, random = (deit["asymmetry"] < deit["at_random"]).sum(), deit["at_random"].mean()
    end = deit["asymmetry"].mean()
    why = (
        f"its start is unknown; trained, {below} of {len(deit)} layers lie below {random:.3f}, "
        "that of independent entries"
    )
    end_alone = base.unchecked(f"{falls}, DeiT-Ti", "falls", why, f"{end:.2f} at its end")
    said = [replace(end_alone, recorded=True)]
    for name, part in table[table["variant"] == "vit"].groupby("model", sort=False):
        said.append(_while_trained(f"{falls}, {name}", part))
    values = f"from {ASYMMETRY[0]:.2f} to {ASYMMETRY[1]:.2f}"
    ours = f"from {random:.2f} to {end:.2f}"
    why = "its formula is not known: by ours independent entries against DeiT-Ti, trained"
    return [*said, base.unchecked("asymmetry, values", values, why, ours)]


def _while_trained(what: str, part: pd.DataFrame) -> base.Comparison:
    """Of one run in which H is free; nothing is decided by an H that has not left its start."""
    layers = part.sort_values("epoch").groupby("layer")
    ends, cosines = layers["asymmetry"].agg(["first", "last"]), layers["cos_start"].last()
    change = mean_interval((ends["last"] - ends["first"]).to_numpy(dtype=np.float64), fewest=2)
    known = start_in_words(cosines.tolist()) if cosines.notna().any() else "its end is not recorded"
    why = f"{len(ends)} layers of one run; {known}"
    if (cosines > LEFT).any():
        why += ": H has not left its start"
        return base.unchecked(what, "falls", why, f"{change[0]:+.3f}")
    return base.sign(what, "falls", change, False, why)


def words(table: pd.DataFrame) -> str:
    """What is counted, what the theorems demand of ViT+ and ViT-, and where each H has gone."""
    ours = table[(table["class"] == "consensus") & (table["source"] != PAPER)]
    trained = ours[ours["column"] != "random ViT-B/16"].groupby("model", sort=False)
    starts = [
        f"{model}: {start_in_words(row[['cos_start_low', 'cos_start_high']].tolist())}"
        for model, row in trained.first(skipna=False).iterrows()
    ]
    digits_rows = ours[(ours["data"] == "digits") & (ours["reading"] == "E2")]
    return (
        "Consensus: |1 + lambda_j^H| is the largest over all pairs (j, i). Intervals (95 %) are "
        f"over images; fewer than {FEWEST} images have none. Black: {PAPER}. DeiT-Ti is "
        f"{RECORDED}. {' '.join(_theorems(digits_rows.set_index('variant')))} "
        f"{'; '.join(starts)}."
    )


def _theorems(rows: pd.DataFrame) -> Iterator[str]:
    """Sentences on the digits' reading E2: both theorems, and where ViT- leaves their range."""
    if not {"vit+", "vit-"} <= set(rows.index):
        return
    plus, minus = (rows.loc[name].to_dict() for name in ("vit+", "vit-"))
    yield (
        f"ViT+ of digits is dominated by consensus in {plus['percent']:.4g} % of its cases (T2d "
        f"demands 100 %), ViT\u2212 in {minus['percent']:.4g} %; in the "
        f"{int(minus['layers_within_unit'])} of its {int(minus['layers'])} layers with every psi^2 "
        f"<= 1 consensus wins {int(minus['consensus_within_unit'])} cases (T3d demands none)."
    )
    beyond = int(minus["layers_beyond_one"])
    if beyond == 0:
        yield "No psi^2 exceeds 1."
    else:
        yield (
            f"In {beyond} layers some psi^2 exceeds 1 (largest {-minus['h_real_min']:.2f}), where "
            f"the guarantee ends; {minus['outside_percent']:.3g} % of \u2212psi^2 leave the safe "
            f"interval, whose smallest s is {minus['safe_interval_min']:.2f}."
        )
