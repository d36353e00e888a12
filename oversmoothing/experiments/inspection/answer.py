"""The answer of a report, in numbers: how much the model smooths, how surely, and by what.

The thresholds of every grade are conventions: no theorem says where "mild" ends. What is graded is
the change of log HFC/LFC from the input to the last layer, held against the mean cosine between
tokens, because a smaller ratio alone is not yet agreement (T4b): a sublayer that adds one common
vector lowers HFC/LFC while the tokens still point apart.

Beside it what to try, by the cause. Of each advice 'proved' names the claim of the ledger that
proves it, and for what: not for a trained model with norms, FFN and layers of their own. 'measured'
says on which trained model a change was made and what it did, held against the model without it by
`compare` (commands: docs/guide/compare.md). What is neither is 'untested'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

import numpy as np

from oversmoothing.experiments.intervals import FEWEST, mean_interval
from oversmoothing.simulations.drawing.result import UNTESTED, Evidence, measured, proved
from oversmoothing.theory.support.sizes import Array

# |change of ln HFC/LFC|: below, the ratio is within a quarter of where it began; and a factor of 2.
MILD, STRONG = math.log(1.25), math.log(2.0)
# Smoothing is strong only where tokens have come to agree by half, sharpening only where they have
# not.
AGREE = 0.5
# Tokens of one length with the mean cosine .95 have HFC/LFC = .23.
COLLAPSED_COSINE, COLLAPSED_RATIO = 0.95, 0.25


class Grade(IntEnum):
    """From strong sharpening down to collapse: the more tokens agree, the lower."""

    STRONG_SHARPENING = 2
    MILD_SHARPENING = 1
    NONE = 0
    MILD_SMOOTHING = -1
    STRONG_SMOOTHING = -2
    COLLAPSED = -3


# The causes, of which each sums some parts of the account. In front of an FFN gain and shift are
# one with its first matrix and bias, and nothing tells them apart: they count as the FFN's. In
# front of attention they could be folded into H as well, but H as it is stored is what the spectra
# are of. Behind a residual sum (Post-LN) they act on the stream itself.
CAUSES = {
    "mixing": ("attention_body",),
    "scales": ("attention_scales", "ffn_scales"),
    "gains": ("attention_gains",),
    "ffn": ("ffn_body", "ffn_gains"),
}
POST_CAUSES = CAUSES | {"gains": ("attention_gains", "ffn_gains"), "ffn": ("ffn_body",)}


def grade(change: float, cosine: float, log_ratio: float) -> Grade:
    """The grade of a change of ln HFC/LFC that ends at this mean cosine and ln HFC/LFC: not smaller
    for a larger change, not larger for a larger cosine."""
    if is_collapsed(cosine, log_ratio):
        return Grade.COLLAPSED
    if change <= -MILD:
        strong = change <= -STRONG and cosine >= AGREE
        return Grade.STRONG_SMOOTHING if strong else Grade.MILD_SMOOTHING
    if change >= MILD:
        strong = change >= STRONG and cosine < AGREE
        return Grade.STRONG_SHARPENING if strong else Grade.MILD_SHARPENING
    return Grade.NONE


Ends = tuple[float, float, float]


def grades(
    change: Ends, cosine: Ends, log_ratio: Ends
) -> tuple[Grade | None, Grade | None, Grade | None]:
    """The grade of three (mean, low, high), and those at the ends of the intervals, least first;
    None where a mean, or an end of an interval, is unknown."""
    if math.isnan(change[0]) or math.isnan(cosine[0]):
        return None, None, None
    # The more tokens agree, the lower: a large cosine belongs to the low end.
    ends = ((0, 0), (1, 2), (2, 1))
    here, least, most = (grade(change[k], cosine[j], log_ratio[k]) for k, j in ends)
    known = np.isfinite([*change, *cosine, *log_ratio]).all()
    return (here, least, most) if known else (here, None, None)


def is_collapsed(cosine: float, log_ratio: float) -> bool:
    """Whether tokens of this mean cosine and ln HFC/LFC count as one."""
    return cosine >= COLLAPSED_COSINE and log_ratio <= math.log(COLLAPSED_RATIO)


@dataclass(frozen=True)
class Cause:
    """What moves ln HFC/LFC, over the inputs whose account was taken.

    sums: the mean change by each of CAUSES, over all layers; change: their sum. name: the one that
    moves it furthest in the direction of the change, None where none does. sure: whether it is told
    from every other cause, by the 95 % interval of the paired difference; largest: in the same way,
    whether the largest of all, in either direction, is by its size. placement: of the norms.
    """

    name: str | None
    sure: bool
    largest: bool
    sums: dict[str, float]
    change: float
    inputs: int
    placement: str


@dataclass(frozen=True)
class Answer:
    """What the sentence of a report says.

    grade: of the means; None where HFC/LFC or the cosine is undefined for some input. least, most:
    at the ends of the 95 % intervals (least <= grade <= most), equal where the inputs tell; None
    for fewer than FEWEST inputs. change, low, high: of ln HFC/LFC. ratios, cosines: at the input
    and after the last layer (geometric, arithmetic means). layer, layer_change: where the largest
    part of the change happens. closest: the layer after which the mean cosine is largest.
    collapsed_from: the layer from which on tokens count as one to the end, or None. against: the
    furthest way of HFC/LFC against its change, a tenth or more: (layer, HFC/LFC) at its two ends.
    """

    grade: Grade | None
    least: Grade | None
    most: Grade | None
    change: float
    low: float
    high: float
    ratios: tuple[float, float]
    cosines: tuple[float, float]
    depth: int
    inputs: int
    layer: int
    layer_change: float
    closest: int
    closest_cosine: float
    collapsed_from: int | None
    cause: Cause | None
    against: tuple[tuple[int, float], tuple[int, float]] | None = None

    @property
    def sure(self) -> bool:
        """Whether the inputs tell the grade, at 95 %."""
        return self.grade is not None and self.least == self.most == self.grade

    @property
    def certainty(self) -> str:
        """'told', 'between two grades' or 'cannot tell'."""
        if self.sure:
            return "told"
        if self.grade is None or self.least is None or self.most is None:
            return "cannot tell"
        return "cannot tell" if self.least < 0 < self.most else "between grades"


def answer(
    logs: Array, cosines: Array, parts: Mapping[str, Array], placement: str = "pre"
) -> Answer:
    """logs, cosines [layers + 1, inputs]: ln HFC/LFC and the mean cosine, from the input on; parts:
    the account by name, each [layers, accounted inputs], or empty; placement of the norms."""
    change = logs[-1] - logs[0]
    outcome = tuple(map(mean_interval, (change, cosines[-1], logs[-1])))
    mean, low, high = outcome[0]
    here, least, most = grades(*outcome)
    if here is not None and len(change) >= FEWEST and least is None:
        # Tokens all equal, or of mean 0: there is no interval, only the inputs themselves.
        each = [grade(*three) for three in zip(change, cosines[-1], logs[-1], strict=True)]
        least, most = min(each), max(each)
    average, cosine_by_layer = logs.mean(axis=1), cosines.mean(axis=1)
    with np.errstate(invalid="ignore"):
        steps = np.diff(average)
    sign = -1.0 if mean < 0 else 1.0
    layer = int(np.argmax(np.nan_to_num(sign * steps, nan=-np.inf))) + 1
    closest = int(np.argmax(np.nan_to_num(cosine_by_layer[1:], nan=-np.inf))) + 1
    together = [is_collapsed(c, e) for c, e in zip(cosine_by_layer, average, strict=True)]
    apart = [k for k, value in enumerate(together) if not value]
    return Answer(
        grade=here,
        least=least,
        most=most,
        change=mean,
        low=low,
        high=high,
        ratios=(float(np.exp(average[0])), float(np.exp(average[-1]))),
        cosines=(float(cosine_by_layer[0]), float(cosine_by_layer[-1])),
        depth=len(steps),
        inputs=len(change),
        layer=layer,
        layer_change=float(steps[layer - 1]),
        closest=closest,
        closest_cosine=float(cosine_by_layer[closest]),
        collapsed_from=(apart[-1] + 1 if apart else 0) if together[-1] else None,
        cause=cause(parts, sign, placement),
        against=_against(average, sign),
    )


def _against(logs: Array, sign: float) -> tuple[tuple[int, float], tuple[int, float]] | None:
    """Of ln HFC/LFC by layer, which changes in the direction of the sign (`Answer.against`)."""
    if not np.isfinite(logs).all():
        return None
    rising = sign * logs
    falls = np.maximum.accumulate(rising) - rising
    last = int(np.argmax(falls))
    first = int(np.argmax(rising[: last + 1]))
    (since, to), far = np.exp(logs[[first, last]]), falls[last] >= math.log(1.1)
    return ((first, float(since)), (last, float(to))) if far else None


def cause(parts: Mapping[str, Array], sign: float, placement: str) -> Cause | None:
    """What moves ln HFC/LFC in the direction `sign`, -1 or 1; None without an account."""
    if not parts or not next(iter(parts.values())).size:
        return None
    causes = POST_CAUSES if placement == "post" else CAUSES
    by = {name: np.sum([parts[part] for part in of], axis=(0, 1)) for name, of in causes.items()}
    sums = {name: float(values.mean()) for name, values in by.items()}
    whole = np.sum(list(by.values()), axis=0)
    best = max(sums, key=lambda name: sign * sums[name])
    others = [by[best] - by[name] for name in sums if name != best]
    # Whether the 95 % interval of each mean lies on that side of 0.
    sure = len(whole) > 1 and all(mean_interval(sign * each)[1] > 0 for each in (by[best], *others))
    first, *rest = sorted(sums, key=lambda name: -abs(sums[name]))
    size = {name: np.sign(sums[name]) * values for name, values in by.items()}
    largest = all(mean_interval(size[first] - size[name])[1] > 0 for name in rest)
    return Cause(
        name=best if sign * sums[best] > 0 else None,
        sure=sure,
        largest=largest,
        sums=sums,
        change=float(whole.mean()),
        inputs=len(whole),
        placement=placement,
    )


Known = Literal["proved", "measured", "untested"]


@dataclass(frozen=True)
class Advice:
    """One thing to try. claims: the ledger's names that prove it, for the case in `proved_for`;
    measured: on which trained model, and what came of it."""

    words: str
    claims: tuple[str, ...] = ()
    proved_for: str = ""
    measured: str = ""

    @property
    def known(self) -> Known:
        """What it rests on first."""
        return "proved" if self.claims else "measured" if self.measured else "untested"

    @property
    def grounds(self) -> tuple[tuple[str, Known], ...]:
        """What is known, each in words with how: proved, measured or untested."""
        proof = f"proved only for {self.proved_for} ({', '.join(self.claims)})"
        tried: tuple[str, Known] = (f"measured {self.measured}", "measured")
        if not self.measured:
            tried = ("untested on trained models" if self.claims else "untested", "untested")
        return ((proof, "proved"), tried) if self.claims else (tried,)

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The same as a result carries it."""
        known = [proved(", ".join(self.claims))] if self.claims else []
        return (*known, measured(1, of="model") if self.measured else UNTESTED)

    @property
    def how(self) -> str:
        """How it is known, in words."""
        return "; ".join(words for words, _ in self.grounds)

    def __str__(self) -> str:
        return f"{self.words} [{self.how}]"


_DISC = Advice(
    "Keep the eigenvalues h of every layer's H in the disc |h + 1/2| <= 1/2, h not 0, for example "
    "H = -(I - K)/2 with any K of norm below 1: equal tokens (consensus) then never dominate",
    ("T3c",),
    "one layer repeated, any positive attention, no norm and no FFN",
    "on a small ViT of this project, trained on digits with H = -Q diag(psi^2) Q^T and again with "
    "H free: ln HFC/LFC changes by +0.46 in place of -0.38 (difference +0.84; over other images of "
    "these two networks between +0.81 and +0.87, 95 % interval, 360 images; trained again on "
    "another processor +0.93), at an accuracy of 96.9 in place of 98.6 %; commands: "
    "docs/guide/compare.md",
)
_REMOVE_MEAN = Advice(
    "Subtract a part tau of the mean over the tokens after every layer, with |1 - tau| < r, where "
    "r < 1 is the factor by which HFC/LFC falls in each layer in the long run (layers that differ "
    "have no one r: try several tau)",
    ("N-2312.06182-remedy",),
    "one layer repeated, any positive attention, no norm and no FFN",
)
_FLIP = Advice(
    "Turn the sign of gain and shift before attention, since most of these gains are negative: "
    "without biases in queries and keys that turns H into -H, and the verdict where |h| is small",
    ("T8e-reversal",),
    "Pre-LN with frozen attention, one scale for all tokens and one real h",
)
_GAINS = Advice(
    "Hold the norms' gains nearer to 1 while training (weight decay toward 1, not toward 0)"
)
_KEEP_GAINS = Advice(
    "Keep the gains of attention's norm as they are trained (do not set them to 1): here they keep "
    "the tokens apart",
    measured="in an earlier run of the trained DeiT-Ti on 50 other photographs, over the whole "
    "model: with these gains set to 1 and nothing trained again, ln HFC/LFC changes by -0.73, with "
    "the trained ones by +0.27 (difference -1.00, 95 % interval -1.12 to -0.89); "
    "to freeze or decay them in training was not tried",
)
_FFN_BIAS = Advice(
    "Look at the output bias of the FFN and at what it adds to every token alike, and take that "
    "mean away"
)
_FFN_BLIND = Advice(
    "Do not expect an FFN to part tokens that have come together: at consensus it multiplies what "
    "they share and what parts them by one and the same matrix, only attention tells them apart",
    ("T8c",),
    "states near consensus",
)
_SCALES = Advice(
    "Norm the tokens once before the first layer, so that a few large ones do not set the mean"
)


_CAUSAL = "any positive attention (this model's is causal: above the diagonal it is 0)"


def advice(
    outcome: Answer,
    *,
    placement: str,
    negative_gains: float,
    causal: bool = False,
    in_disc: float = math.nan,
) -> tuple[Advice, ...]:
    """What to try, first things first; nothing where tokens do not smooth and nothing holds them.

    placement: 'pre' or 'post'; negative_gains: the share of gains before attention below 0. causal:
    no mean over all tokens is advised, since it would show a token those behind it. in_disc: the
    share of the eigenvalues of H that lie in the disc, where they are known.
    """
    cause = outcome.cause
    if outcome.grade is None:
        return ()
    if outcome.grade >= Grade.NONE:
        sums = {} if cause is None else cause.sums
        held = sums.get("gains", 0.0) >= MILD and sums.get("mixing", 0.0) <= -MILD
        return (_KEEP_GAINS,) if held else ()
    flip = (_FLIP,) if placement == "pre" and negative_gains > 0.5 else ()
    by_cause: dict[str | None, tuple[Advice, ...]] = {
        None: (_REMOVE_MEAN, _DISC),
        "mixing": (_DISC, _REMOVE_MEAN),
        "gains": (*flip, _GAINS, _REMOVE_MEAN),
        "ffn": (_FFN_BIAS, _REMOVE_MEAN, _FFN_BLIND),
        "scales": (_SCALES, _REMOVE_MEAN),
    }
    tried = by_cause[None if cause is None else cause.name]
    if causal:
        tried = tuple(
            replace(each, proved_for=each.proved_for.replace("any positive attention", _CAUSAL))
            for each in tried
            if each is not _REMOVE_MEAN
        )
    if math.isnan(in_disc):
        return tried
    now = f" (now {100 * in_disc:.0f} % of this model's lie there)"
    return tuple(
        replace(each, words=each.words + now) if each.claims == _DISC.claims else each
        for each in tried
    )


# What of an advice is in the JSON.
_TO_TRY = ("words", "known", "claims", "measured")


def answer_object(outcome: Answer, tried: Sequence[Advice]) -> dict[str, Any]:
    """Grades by name, their certainty, the change with its interval, the cause, what to try."""
    grades = {"grade": outcome.grade, "least": outcome.least, "most": outcome.most}
    cause = outcome.cause
    return {
        **{name: None if one is None else one.name.lower() for name, one in grades.items()},
        **{name: getattr(outcome, name) for name in ("certainty", "change", "low", "high")},
        "cause": cause and cause.name,
        "cause_sure": cause is not None and cause.sure,
        "causes": cause and cause.sums,
        "collapsed_from": outcome.collapsed_from,
        "to_try": [{name: getattr(each, name) for name in _TO_TRY} for each in tried],
    }
