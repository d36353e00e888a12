"""Mean and sd over seeds of each kind of run, the paper's figures beside; hypotheses judged.

A hypothesis is held against the mean paired difference of its runs and the interval of that. Pairs
are of one seed: the same images in the same order, the same draw of everything but what differs.
The interval is Student's over the seeds. It is no statement on other data, sizes or recipes, and
with three seeds it is wide: open is a common answer and an honest one. Hypotheses are judged one by
one; no correction is made for their number.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.intervals import mean_interval
from oversmoothing.experiments.study.protocol import (
    CORRUPTION,
    DATA_EFFICIENCY,
    Choice,
    Hypothesis,
    Protocol,
)
from oversmoothing.experiments.study.study_runs import MEASURES
from oversmoothing.simulations.drawing.wording import signed

VERDICTS = ("supported", "refuted", "open", "no runs", "withdrawn")


@dataclass(frozen=True)
class Difference:
    """Mean of m paired differences and its interval; the ends are NaN for m = 1, all for m = 0."""

    mean: float
    low: float
    high: float
    m: int


def difference(values: list[float], confidence: float) -> Difference:
    """Of paired differences, by Student's t with m - 1 degrees; no spread, no width."""
    m = len(values)
    if m == 0 or not np.isfinite(values).all():
        return Difference(math.nan, math.nan, math.nan, m)
    return Difference(*mean_interval(values, fewest=2, confidence=confidence), m)


def verdict(seen: Difference, predicts: str, margin: float) -> str:
    """Supported or refuted where the whole interval says so, else open; no runs without any."""
    low, high = seen.low, seen.high
    if seen.m == 0:
        return "no runs"
    if math.isnan(low):
        return "open"
    if predicts == "within":
        if -margin < low and high < margin:
            return "supported"
        return "refuted" if high < -margin or low > margin else "open"
    if predicts == "greater":
        low, high, margin = -high, -low, -margin
    if high < margin:
        return "supported"
    return "refuted" if low > margin else "open"


def paired(hypothesis: Hypothesis, chosen: Protocol, table: pd.DataFrame) -> list[float]:
    """The difference of each seed that has all of its runs."""
    known = hypothesis.measure in table
    values = dict(zip(table["run"], table[hypothesis.measure], strict=True)) if known else {}

    def value(choice: Choice | None, seed: int) -> float:
        if choice is None:
            return 0.0
        return float(values[chosen.run(choice, seed).name])

    differences = []
    for seed in chosen.seeds:
        try:
            own = value(hypothesis.first, seed) - value(hypothesis.second, seed)
            own -= value(hypothesis.less_first, seed) - value(hypothesis.less_second, seed)
        except KeyError:
            continue
        differences.append(own - (hypothesis.value or 0.0))
    return differences


def adjudicated(chosen: Protocol, studies: list[str], table: pd.DataFrame) -> pd.DataFrame:
    """A row a hypothesis of these studies: what it says, the difference, the interval, verdict, and
    what became of it since. One that was withdrawn has its interval and no other verdict."""
    rows = []
    for each in chosen.hypotheses:
        if each.study not in studies:
            continue
        seen = difference(paired(each, chosen, table), chosen.confidence)
        rows.append(
            {
                "name": each.name,
                "study": each.study,
                "says": each.says,
                "measure": each.measure,
                "predicts": each.predicts,
                "margin": each.margin,
                "difference": seen.mean,
                "low": seen.low,
                "high": seen.high,
                "seeds": seen.m,
                "verdict": "withdrawn"
                if each.withdrawn
                else verdict(seen, each.predicts, each.margin),
                "note": each.note,
            }
        )
    return pd.DataFrame(rows)


# What is compared with the run of the same seed whose H is free and that has no remedy.
COMPARED = ("test_error", "corrupted_error", "log_hfc_lfc")
# What a terminal and the book show.
USUAL = ("test_error", "log_hfc_lfc", "cos_mean", "effective_rank", "cos_start", "h_universal_disc")
WANTED: dict[str, tuple[str, ...]] = {
    "corruption": ("corrupted_error", *(f"error_at_{s}" for s in SEVERITIES)),
    "spectrum": ("cos_start", "h_universal_disc", "h_positive", "asymmetry", "condition_V_H",
                 "test_error"),
}  # fmt: skip
# What is drawn: (the factor along the axis, the measures).
_DRAWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "data-efficiency": ("fraction", ("test_error", "log_hfc_lfc")),
    "corruption": ("severity", ("error",)),
    "depth": ("depth", ("test_error", "log_hfc_lfc", "effective_rank")),
    "layernorm": ("", ("test_error", "log_hfc_lfc")),
    "spectrum": ("", ("h_universal_disc", "h_positive", "asymmetry", "cos_start")),
    "remedies": ("", ("test_error", "log_hfc_lfc")),
}


def by_choice(chosen: Protocol, study: str, table: pd.DataFrame) -> pd.DataFrame:
    """A row a kind of run: what differs from the base, how many seeds, mean and sd of each measure.

    cos_start_seeds: of how many seeds cos(H_start, H_end) is known. `against` is the same kind with
    a free H and no remedy (of a free one, the base); NAME_less is the mean paired difference of
    COMPARED from it, with its interval NAME_low to NAME_high. Where the paper has a figure of
    CIFAR-100 for it, `paper_error` is beside it, in per cent.
    """
    rows = []
    for choice in chosen.choices(study):
        names = [chosen.run(choice, seed).name for seed in chosen.seeds]
        own = table[table["run"].isin(names)]
        row: dict[str, Any] = {"what": in_words(choice), "seeds": len(own)}
        for name in MEASURES:
            if name in own and own[name].notna().any():
                row[name], row[f"{name}_sd"] = own[name].mean(), own[name].std()
        row["cos_start_seeds"] = int(own["cos_start"].count()) if "cos_start" in own else 0
        row |= _compared(chosen, choice, table)
        if study == "data-efficiency" and not choice.get("tied"):
            paper = DATA_EFFICIENCY.get(choice.get("variant", "vit"), {})
            row["paper_error"] = 100 - paper.get(choice.get("fraction", 1.0), (np.nan,))[0]
        if study == "corruption" and not choice.get("tied"):
            severe = CORRUPTION.get(choice.get("variant", "vit"), (np.nan,) * len(SEVERITIES))
            row["paper_error"] = 100 - float(np.mean(severe[1:]))
        rows.append(row)
    return pd.DataFrame(rows)


def _compared(chosen: Protocol, choice: Choice, table: pd.DataFrame) -> dict[str, Any]:
    plain = {key: value for key, value in choice.items() if key not in ("variant", "remedy")}
    against = {} if plain == choice else plain
    if against == choice:
        return {"against": ""}
    row: dict[str, Any] = {"against": in_words(against)}
    for name in COMPARED:
        if name in table:
            values = dict(zip(table["run"], table[name], strict=True))
            pairs = [
                [values.get(chosen.run(each, seed).name, math.nan) for each in (choice, against)]
                for seed in chosen.seeds
            ]
            seen = difference([a - b for a, b in pairs if math.isfinite(a - b)], chosen.confidence)
            row |= {f"{name}_less": seen.mean, f"{name}_low": seen.low, f"{name}_high": seen.high}
    return row


def in_words(choice: Any) -> str:
    """'vit-, fraction 0.1'; the base is 'vit'."""
    rest = [f"{name} {value}" for name, value in choice.items() if name not in ("variant", "tied")]
    return ", ".join(
        [choice.get("variant", "vit"), *(["tied"] if choice.get("tied") else []), *rest]
    )


def shown(study: str, table: pd.DataFrame) -> pd.DataFrame:
    """The table for the book: mean ± sd of what the study is about."""
    words = table[["what", "seeds"]].copy()
    for name in WANTED.get(study, USUAL):
        if name in table:
            pairs = zip(table[name], table[f"{name}_sd"], strict=True)
            words[MEASURES[name]] = [_spread(mean, sd) for mean, sd in pairs]
        if name == "cos_start":
            # A spectrum says what training made of H only where H has left its start.
            cells = words.get(MEASURES[name], [""] * len(words))
            known = zip(cells, table["cos_start_seeds"], table["seeds"], strict=True)
            words[MEASURES[name]] = [_of(cell, count, seeds) for cell, count, seeds in known]
    for name in _compared_by(study):
        if f"{name}_less" in table:
            ends = zip(*(table[f"{name}_{end}"] for end in ("less", "low", "high")), strict=True)
            words[f"{MEASURES[name]}: difference from shared-value ViT"] = [
                _within(*end) for end in ends
            ]
    if "paper_error" in table:
        words["CIFAR-100, the paper's error, %"] = table["paper_error"]
    return words


def columns(study: str, table: pd.DataFrame) -> list[str]:
    """The columns of `by_choice` that a terminal shows."""
    measures = [each for name in WANTED.get(study, USUAL) for each in (name, f"{name}_sd")]
    more = [f"{name}_{end}" for name in _compared_by(study) for end in ("less", "low", "high")]
    return [each for each in ("what", "seeds", *measures, *more, "paper_error") if each in table]


def _compared_by(study: str) -> tuple[str, ...]:
    return COMPARED[1:] if study == "corruption" else COMPARED[::2]


def _of(cell: str, count: int, seeds: int) -> str:
    """A cell that is known of some of the seeds alone."""
    if not count:
        return "end not recorded"
    return cell if count == seeds else f"{cell} (of {count} seed{'s' if count > 1 else ''})"


def _spread(mean: float, sd: float) -> str:
    """Mean ± sd; of one seed the value alone."""
    if math.isnan(mean):
        return ""
    # Equal seeds have a spread of rounding alone.
    sd = 0.0 if sd < 1e-12 * abs(mean) else sd
    return f"{mean:.3g}" + ("" if math.isnan(sd) else f" ± {sd:.2g}")


def _within(mean: float, low: float, high: float) -> str:
    """A difference and its interval, which one seed does not have."""
    if math.isnan(mean):
        return ""
    return f"{signed(mean)}" + ("" if math.isnan(low) else f" [{signed(low)}, {signed(high)}]")


def picture(chosen: Protocol, study: str, table: pd.DataFrame, path: Path) -> list[Path]:
    """Means with their sd, as PNG and PDF."""
    axis, names = _DRAWN[study]
    figure = Figure(figsize=(4.2 * len(names) + 1, 4.2), layout="constrained")
    for place, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        if axis == "severity":
            for choice, row in _rows(chosen, study, table):
                means = [row.get(f"error_at_{s}", np.nan) for s in SEVERITIES]
                sds = [row.get(f"error_at_{s}_sd", np.nan) for s in SEVERITIES]
                style = "--" if choice.get("tied") else "-"
                place.errorbar(SEVERITIES, means, sds, label=in_words(choice), ls=style, capsize=2)
            place.set_xlabel("severity")
            place.set_ylabel("test error, %, mean over kinds")
        elif axis:
            _lines(chosen, study, table, axis, name, place)
        else:
            place.barh(table["what"], table[name], xerr=table[f"{name}_sd"].fillna(0))
            place.set_xlabel(MEASURES[name])
            place.invert_yaxis()
            place.tick_params(axis="y", labelsize=6)
            if name != names[0]:
                place.set_yticklabels([])
    if axis:
        figure.axes[0].legend(fontsize=7)
    figure.suptitle(f"{study}: mean ± sd over {_seeds(table)} seeds, {chosen.data}", fontsize=9)
    written = [path.with_suffix(end) for end in (".png", ".pdf")]
    for each in written:
        figure.savefig(each, dpi=150)
    return written


def _seeds(table: pd.DataFrame) -> str:
    """Of the kinds of runs: '3', or '1 to 3' while runs are missing."""
    low, high = table["seeds"].min(), table["seeds"].max()
    return f"{low}" if low == high else f"{low} to {high}"


def _rows(chosen: Protocol, study: str, table: pd.DataFrame) -> list[tuple[Any, Any]]:
    return list(zip(chosen.choices(study), table.to_dict("records"), strict=True))


def _lines(
    chosen: Protocol, study: str, table: pd.DataFrame, axis: str, name: str, place: Any
) -> None:
    """A line for each variant, tied or not, along the axis."""
    lines: dict[str, list[tuple[float, float, float]]] = {}
    default = {"fraction": 1.0, "depth": 8}[axis]
    for choice, row in _rows(chosen, study, table):
        own = {key: value for key, value in choice.items() if key != axis}
        point = (choice.get(axis, default), row.get(name, np.nan), row.get(f"{name}_sd", np.nan))
        lines.setdefault(in_words(own), []).append(point)
    for label, points in lines.items():
        x, y, sd = (list(each) for each in zip(*sorted(points), strict=True))
        place.errorbar(x, y, sd, label=label, ls="--" if "tied" in label else "-", capsize=2)
    place.set_xscale("log", base=2 if axis == "depth" else 10)
    place.set_xlabel(axis)
    place.set_ylabel(MEASURES[name])
