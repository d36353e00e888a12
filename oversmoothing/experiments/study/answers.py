"""The answers of the study: each question with its interval, by the rule written before the runs.

`preregistered.toml` says the rule. A question whose planned seeds are not all there shows no
difference, but how spread the first four are and how many seeds that asks for. `decision` is one of
DECISIONS; Holm's correction is over the primary questions, whose p-value is the smallest level at
which the rule would decide: twice a one-sided p of Student's t against the end it has to pass.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import nct, t as student

from oversmoothing.experiments.intervals import mean_interval, rank_correlation
from oversmoothing.experiments.study import RECORDED
from oversmoothing.experiments.study.lever import slope
from oversmoothing.experiments.study.protocol import Protocol, Question, protocol
from oversmoothing.experiments.study.study_pictures import drawn
from oversmoothing.experiments.study.study_runs import ROWS, known, read_rows
from oversmoothing.simulations.drawing.result import UNTESTED, Result, Sentence, Table, measured
from oversmoothing.theory.support.errors import InputError

# What lies wholly within +- negligible has one of three names, by where 0 lies.
NOTHING, SMALLER, OTHER_WAY = "no effect", "smaller than asked for", "the other way, but small"
DECISIONS = ("supported", "refuted", SMALLER, OTHER_WAY, NOTHING, "open", "void", "not run")
FIRST = 4  # seeds from which spreads are taken
MOVED = 0.3  # cosine to the start below which, in every layer, a network counts as trained
MOST = 1000  # seeds beyond which it is not said how many
Row = Mapping[str, Any]
Rows = Mapping[tuple[str, int], Any]
NAN = math.nan


def recorded_rows() -> list[dict[str, Any]]:
    """The rows of `results/rows.jsonl` in the package; none where no run is on record."""
    return read_rows(RECORDED / ROWS)


def value(row: Row, measure: str) -> float:
    """A measure of a run; NaN where it is void. Raises `InputError` for an unknown one."""
    if measure not in MEASURES:
        raise InputError(f"no measure '{measure}': there are {', '.join(MEASURES)}")
    return NAN if row.get("diverged") is not None else MEASURES[measure][0](row)


def _alignment_gain(row: Row) -> float:
    """Of H with the gain folded in, mean over layers; NaN where a layer has not left its start."""
    watched = row["trajectory"]
    if max(watched["cos"][-1]) >= MOVED:
        return NAN
    start, end = (np.mean(watched["folded_alignment"][k]) for k in (0, -1))
    return float(end - start)


def _slope(row: Row) -> float:
    """Per unit of delta, over the shifts, less that of the random changes."""
    lever = row["lever"]
    beyond = np.array(lever["effect"]) - np.array(lever["control"])
    return float(slope(lever["changes"], lever["doses"], beyond))


def _change(row: Row, name: str, dose: float) -> int:
    lever = row["lever"]
    return list(zip(lever["changes"], lever["doses"], strict=True)).index((name, dose))


def _into_disc(row: Row) -> float:
    k = _change(row, "into disc", 0.5)
    return float(row["lever"]["effect"][k] - row["lever"]["control"][k])


def _gap(row: Row) -> float:
    """KL of a shift by .1 less that of one by -.1."""
    divergences = row["lever"]["kl"]
    return float(divergences[_change(row, "shift", 0.1)] - divergences[_change(row, "shift", -0.1)])


# Each with what a value of it is, in words.
MEASURES: dict[str, tuple[Callable[[Row], float], str]] = {
    "error": (lambda row: float(row["score"]["error"]), "points of error"),
    "bits": (lambda row: float(row["score"]["bits"]), "bits a character"),
    "loss": (lambda row: float(row["score"]["loss"]), "nats"),
    "cost of corruption": (lambda row: float(np.mean(row["corruption"][1:]) - row["corruption"][0]),
                           "points of error"),
    "alignment gain": (_alignment_gain, "alignment gain"),
    "slope": (_slope, "log10 HFC/LFC a unit of delta"),
    "into disc": (_into_disc, "log10 HFC/LFC"),
    "KL gap": (_gap, "nats"),
}  # fmt: skip
# Over the cells of a group, of one seed: the rank correlation of the loss with this of the start.
RANKS = {
    "rank of gradient and loss": lambda row: row["start"]["gradient"],
    "rank of fall and loss": lambda row: -row["start"]["change"],
}


def values(question: Question, rows: Rows, chosen: Protocol) -> tuple[np.ndarray, int]:
    """(what is asked, a value a seed that is whole and not void; how many seeds are void)."""
    sample, void = [], 0
    names = chosen.cells_of(question)
    for seed in range(chosen.seeds(question)):
        own = [rows[name, seed] for name in names if (name, seed) in rows]
        if len(own) < len(names):
            continue
        if question.group:
            each = _rank(own, question.measure)
        else:
            seen = [value(row, question.measure) for row in own]
            each = seen[0] - sum(seen[1:])
        if math.isnan(each):
            void += 1
        else:
            sample.append(each)
    return np.array(sample, dtype=np.float64), void


def _rank(rows: Sequence[Row], measure: str) -> float:
    """Spearman's, over the runs of one seed; one that diverged has the largest loss."""
    if measure not in RANKS:
        raise InputError(f"no measure '{measure}' of a group: there are {', '.join(RANKS)}")
    losses = [math.inf if row.get("diverged") is not None else row["score"]["loss"] for row in rows]
    starts = [RANKS[measure](row) for row in rows]
    if any(each is None for each in starts):
        return NAN
    return rank_correlation(np.array(starts), np.array(losses))


def _worst(question: Question, rows: Rows, chosen: Protocol) -> int:
    """How many runs `_rank` took as the worst, since they diverged."""
    names = chosen.cells_of(question) if question.group else []
    return sum(row.get("diverged") is not None for key, row in rows.items() if key[0] in names)


@dataclass(frozen=True)
class Decided:
    """mean [low, high] of n values; decision: of DECISIONS, p: the smallest level at which the rule
    gives it (1 for 'open'; of what lies within +- negligible that at which it lies there)."""

    mean: float
    low: float
    high: float
    n: int
    decision: str
    p: float


def decide(question: Question, seen: np.ndarray, confidence: float = 0.95) -> Decided:
    """By the rule, without Holm's correction."""
    n = len(seen)
    if n < 2:
        return Decided(float(seen.mean()) if n else NAN, NAN, NAN, n, "open", 1.0)
    mean, low, high = mean_interval(seen, fewest=2, confidence=confidence)
    error = float(np.std(seen, ddof=1)) / n**0.5
    small = SMALLER if mean * (-1.0 if question.predicts == "less" else 1.0) > 0 else OTHER_WAY
    for decision, gap in _beyond(question, mean).items():
        # The smallest level at which the interval lies beyond that end.
        p = min(1.0, 2 * float(student.sf(gap / error, n - 1))) if error else float(gap <= 0)
        if p < 1 - confidence:
            inside = NOTHING if low <= 0 <= high else small
            return Decided(mean, low, high, n, inside if decision == NOTHING else decision, p)
    return Decided(mean, low, high, n, "open", 1.0)


def _beyond(question: Question, mean: float) -> dict[str, float]:
    """How far a mean lies beyond the ends by which the rule decides, in its order."""
    margin, sign = question.margin, -1.0 if question.predicts == "less" else 1.0
    if question.predicts == "within":
        return {"supported": margin - abs(mean), "refuted": abs(mean) - margin}
    # Of a difference the margin is how far beyond 0 it must lie; else it is the end itself.
    end = sign * margin if question.second else margin
    inside = {NOTHING: question.negligible - abs(mean)} if question.negligible else {}
    refuted = sign * ((0.0 if question.second else end) - mean)
    return {"supported": sign * (mean - end), **inside, "refuted": refuted}


def holm(levels: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    adjusted, largest = [0.0] * len(levels), 0.0
    for rank, k in enumerate(sorted(range(len(levels)), key=lambda k: levels[k])):
        largest = max(largest, min(1.0, (len(levels) - rank) * levels[k]))
        adjusted[k] = largest
    return adjusted


def power(n: int, sd: float, distance: float, confidence: float = 0.95) -> float:
    """The chance that the interval of n values lies wholly beyond an end which the true mean is
    `distance` beyond, in normal values of deviation sd: the noncentral t distribution."""
    if n < 2:
        return 0.0
    if sd == 0 or math.isinf(distance):
        return float(distance > 0)
    cut = float(student.ppf((1 + confidence) / 2, n - 1))
    return float(nct.sf(cut, n - 1, distance / (sd / n**0.5)))


def seeds_needed(
    sd: float, distance: float, wanted: float = 0.8, confidence: float = 0.95,
    width: float = math.inf,
) -> float:  # fmt: skip
    """The least n with that power; NaN beyond MOST, and where there is no distance. width: of the
    range within which the interval must lie, that ends `distance` beyond the mean."""
    if not distance > 0 or math.isnan(sd):
        return NAN

    def enough(n: int) -> bool:
        near, far = (power(n, sd, each, confidence) for each in (distance, width - distance))
        # It misses both ends of a range only where it is longer than that.
        return near + far - 1 >= wanted

    return next((float(n) for n in range(2, MOST + 1) if enough(n)), NAN)


def table(chosen: Protocol, rows: Rows, *, so_far: bool = False) -> pd.DataFrame:
    """A row a question. so_far: also of questions whose seeds are not all there."""
    made, asks = [], []
    for question in chosen.questions:
        seen, void = values(question, rows, chosen)
        planned = chosen.seeds(question)
        whole = len(seen) + void >= planned
        first = seen[:FIRST]
        sd = float(first.std(ddof=1)) if len(first) == FIRST else question.sd
        answer = decide(question, seen, chosen.confidence)
        decision = answer.decision
        if len(seen) < 2:
            decision = "void" if whole and void else "not run"
        shown = whole or so_far
        # Rows keep seven digits: a mean far below its interval is their rounding.
        near = abs(answer.mean) < 1e-6 * (answer.high - answer.low)
        said = (0.0 if near else answer.mean, answer.low, answer.high, answer.p, decision)
        value, low, high, p, decision = said if shown else (NAN, NAN, NAN, NAN, "not run")
        row = {
            "question": question.name, "says": question.says, "measure": question.measure,
            "primary": question.primary, "value": value, "low": low, "high": high,
            "seeds": len(seen), "planned": planned, "void": void,
            "worst": _worst(question, rows, chosen), "decision": decision, "p": p, "sd": sd,
            "detectable": _detectable(planned, sd, chosen), "needed": NAN,
        }  # fmt: skip
        made.append(row)
        way, distance = max(_beyond(question, answer.mean).items(), key=lambda each: each[1])
        ends = {"supported": question.margin} if question.predicts == "within" else {
            NOTHING: question.negligible}  # fmt: skip
        asks.append((float(seen.std(ddof=1)) if len(seen) > 1 and shown else NAN, distance,
                     2 * ends.get(way, math.inf)))  # fmt: skip
    frame = pd.DataFrame(made)
    judged = frame[frame["primary"] & ~frame["decision"].isin(["not run", "void"])].index
    # All primary questions count, those without runs with p = 1.
    missing = int(frame["primary"].sum()) - len(judged)
    adjusted = holm([*frame.loc[judged, "p"], *[1.0] * missing])[: len(judged)]
    frame["p_holm"] = NAN
    frame.loc[judged, "p_holm"] = adjusted
    lost = frame["p_holm"] >= 1 - chosen.confidence
    frame.loc[lost, "decision"] = "open"
    # What the correction alone leaves open must pass at the level that it asks for.
    level = (1 - chosen.confidence) * np.where(lost, frame["p"] / frame["p_holm"], 1.0)
    frame["needed"] = [
        seeds_needed(sd, distance, chosen.power, 1 - own, width)
        for (sd, distance, width), own in zip(asks, level, strict=True)
    ]
    return frame


def _detectable(n: int, sd: float, chosen: Protocol) -> float:
    """How far beyond its end a mean must lie for the power that the protocol wants."""
    if math.isnan(sd) or n < 2:
        return NAN
    low, high = 0.0, 100 * sd
    for _ in range(60):
        middle = (low + high) / 2
        enough = power(n, sd, middle, chosen.confidence) >= chosen.power
        low, high = (low, middle) if enough else (middle, high)
    return high


def means(chosen: Protocol, rows: Rows) -> pd.DataFrame:
    """A row a cell whose seeds are all there: means of how it ended and what became of H."""
    made = []
    for name, cell, own, ended in chosen.runs(rows):
        if len(own) < chosen.cells[name][1]:
            continue
        last = [{key: points[-1] for key, points in row["trajectory"].items()} for row in ended]
        row: dict[str, Any] = {"cell": name, "tier": cell.tier, "seeds": len(own),
                               "diverged": len(own) - len(ended)}  # fmt: skip
        for measure in ("error", "bits", "loss"):
            scores = [each["score"][measure] for each in ended if measure in each["score"]]
            row[measure] = float(np.mean(scores)) if scores else NAN
            row[f"{measure}_sd"] = float(np.std(scores, ddof=1)) if len(scores) > 1 else NAN
        for key in ("cos", "alignment", "negative", "disc", "head_negative", "head_disc"):
            row[key] = float(np.mean([each[key] for each in last])) if last else NAN
        row["hfc_lfc"] = float(np.mean([x["hfc_lfc"][-1] for x in last])) if last else NAN
        for key in ("gradient", "change"):
            starts = [each["start"][key] for each in own if each["start"][key] is not None]
            row[f"start_{key}"] = float(np.mean(starts)) if starts else NAN
        made.append(row)
    return pd.DataFrame(made)


def trajectories(chosen: Protocol, rows: Rows) -> pd.DataFrame:
    """A row a cell of the core and a point: means over seeds and layers of what H does."""
    keys = ("loss", "cos", "cos_free", "alignment", "negative", "disc", "head_negative",
            "head_disc", "folded_alignment", "norm", "hfc_lfc")  # fmt: skip
    made = []
    for name, cell, _, own in chosen.runs(rows):
        if cell.tier != "core" or not own:
            continue
        for point, step in enumerate(own[0]["trajectory"]["step"]):
            row: dict[str, Any] = {"cell": name, "step": step, "seeds": len(own)}
            for key in keys:
                seen = [each["trajectory"][key][point] for each in own]
                ends = [x[-1] for x in seen] if key == "hfc_lfc" else seen
                row[key] = NAN if any(x is None for x in ends) else float(np.mean(ends))
            made.append(row)
    return pd.DataFrame(made)


SHOWN = ("question", "value", "low", "high", "seeds", "planned", "decision", "p_holm")
ASKED = {
    "planned": "seeds planned before the runs",
    "p_holm": "p value, corrected for the number of primary questions (Holm); others have none",
}


def answers(
    rows: Sequence[dict[str, Any]], chosen: Protocol | None = None, *, so_far: bool = False
) -> Result:
    """Every question with its answer first, then the means and trajectories behind it. rows: of
    `study_runs.read_rows` or `recorded_rows`, of cells as they are now alone; so_far: intervals of
    questions whose seeds are not all there, which decide nothing."""
    chosen = chosen or protocol()
    own = known(rows, chosen)
    asked = table(chosen, own, so_far=so_far)
    asked = asked.sort_values("decision", key=lambda x: x == "not run", kind="stable")
    tables = {"answers": Table(asked.reset_index(drop=True), {}, SHOWN, means=ASKED)}
    for name, frame in (("means", means(chosen, own)), ("trajectories", trajectories(chosen, own))):
        if len(frame):
            tables[name] = Table(frame)
    made = [row["made"] for row in own.values()]
    details = {
        "runs": len(own),
        "planned_runs": sum(seeds for _, seeds in chosen.cells.values()),
        "of_another_recipe": len(rows) - len(own),
        "core_hours": round(sum(row["seconds_in_all"] for row in own.values()) / 3600, 2),
        "dates": sorted({each["date"] for each in made}),
        "commits": sorted({str(each["commit"]) for each in made}),
    }
    return Result(
        "study", chosen.title, tables, list(_sentences(asked, len(own))),
        {"protocol": chosen.source, "confidence": chosen.confidence, "so_far": so_far},
        details=details,
        picture=partial(drawn, chosen, own) if own else None,
    )  # fmt: skip


def rounded(value: float, low: float, high: float) -> str:
    """A value in the digits that its interval leaves; a dash for none."""
    if math.isnan(value):
        return "–"
    half = (high - low) / 2
    digits = 1 - math.floor(math.log10(half)) if half > 0 else 3
    return f"{round(value, digits) + 0.0:+.{max(digits, 0)}f}"


def _sentences(asked: pd.DataFrame, runs: int) -> Iterator[Sentence]:
    """How many questions are answered and how; a line each, alike ones together; those not run."""
    left = asked[asked["decision"] == "not run"]
    done = asked[asked["decision"] != "not run"]
    done = done.sort_values("decision", key=lambda x: x.map(DECISIONS.index), kind="stable")
    if len(done):
        counts = done["decision"].value_counts(sort=False).items()
        groups = "; ".join(f"{count} {decision}" for decision, count in counts)
        seeds = " to ".join(map(str, sorted({done["planned"].min(), done["planned"].max()})))
        void = f" ({done['void'].sum()} void)" if done["void"].any() else ""
        yield Sentence(
            f"{len(done)} of {len(asked)} questions were run with all their seeds, {seeds} "
            f"each{void}: {groups}.",
            measured(runs, of="run"),
        )
    for row in done.to_dict("records"):
        low, high, n = row["low"], row["high"], row["seeds"]
        more = ""
        if row["decision"] == "void":
            more = " Too few of its runs can be interpreted."
        elif row["decision"] == "open" and not math.isnan(row["needed"]):
            more = f" {row['needed']:.0f} seeds would decide, were the truth what was seen."
        elif row["decision"] == "open":
            more = f" No number of seeds up to {MOST} would decide what was seen."
        void = f" {row['void']} seeds are void." if row["void"] else ""
        if row["worst"]:
            void += f" Runs that diverged rank as the largest loss: {row['worst']}."
        kind = "" if row["primary"] else " (exploratory)"
        # A rank correlation is its own unit.
        unit = MEASURES.get(row["measure"], (None, row["measure"]))[1]
        number = rounded(row["value"], low, high)
        seen = "" if math.isnan(row["value"]) else f" Seen: {number} {unit}."
        says = f"{row['question']}{kind}, {row['decision']}: {row['says']}{seen}{void}{more}"
        yield Sentence(says, measured(n, low, high, "seed") if n else UNTESTED)
    if len(left):
        names = "; ".join(left["question"])
        says = f"Nothing follows yet for these, of which seeds are missing: {names}."
        yield Sentence(says, UNTESTED)


def spreads(rows: Sequence[dict[str, Any]], chosen: Protocol | None = None) -> Result:
    """Of each question the deviation of its first four seeds, without any mean: how far beyond its
    end the truth must lie to be decided with the seeds that are planned."""
    chosen = chosen or protocol()
    asked = table(chosen, known(rows, chosen))
    frame = asked[["question", "measure", "seeds", "planned", "sd", "detectable"]]
    wanted = f"{100 * chosen.power:.0f} %"
    says = (
        "detectable: how far beyond the end of its margin the truth must lie for a power of "
        f"{wanted} with the planned seeds. sd: of the first {FIRST} seeds, where they are there, "
        "else as expected before."
    )
    return Result("spreads", chosen.title, {"spreads": Table(frame)}, [Sentence(says, UNTESTED)],
                  {"protocol": chosen.source, "power": chosen.power})  # fmt: skip
