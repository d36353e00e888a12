"""The three answers of a report: does it smooth, by what, what to try; what carries each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oversmoothing.experiments.inspection.answer import MILD, Advice, Answer, Cause, Grade
from oversmoothing.experiments.inspection.sentences import NAMED, PARTS, POST, layers
from oversmoothing.experiments.intervals import FEWEST, in_words
from oversmoothing.simulations.drawing.wording import factor_text, signed


@dataclass(frozen=True)
class Reply:
    """One of the three questions of a report: the answer in a sentence, what carries it, and how
    each is known: 'proved', 'measured' or 'untested'."""

    question: str
    short: str
    details: tuple[tuple[str, str], ...] = ()


# The answer by grade, where the inputs tell it.
_REPLIES = {
    Grade.STRONG_SHARPENING: "No: its tokens grow apart strongly.",
    Grade.MILD_SHARPENING: "No: its tokens grow apart mildly.",
    Grade.NONE: "No: its tokens end about as different as they began.",
    Grade.MILD_SMOOTHING: "Yes, mildly: its tokens become more alike.",
    Grade.STRONG_SMOOTHING: "Yes, strongly: its tokens become much more alike.",
    Grade.COLLAPSED: "Yes, wholly: its tokens collapse into one.",
}


def replies(
    outcome: Answer, tried: Sequence[Advice], inputs: str, heads: str = ""
) -> tuple[Reply, Reply, Reply]:
    """Does it smooth? By what? What to try? heads: which heads smooth, in a sentence."""
    return _does_it(outcome, inputs), _by_what(outcome, heads), _what_to_try(tried, outcome)


def _does_it(outcome: Answer, inputs: str) -> Reply:
    question = "Does it smooth?"
    if outcome.grade is None:
        why = "HFC/LFC or a cosine is undefined for some input: tokens are 0, or their mean is."
        return Reply(question, "This is not known.", ((why, "measured"),))
    short = _REPLIES[outcome.grade]
    start, end = outcome.cosines
    if Grade.COLLAPSED < outcome.grade < 0 and end <= start:
        short = "Yes, by HFC/LFC alone: it falls, while the angles between tokens do not close."
    elif outcome.grade > 0 and end >= start:
        short = "No: HFC/LFC rises, though the angles between tokens do not open."
    if outcome.inputs < FEWEST:
        short += f" (Seen on {inputs}: at least {FEWEST} are needed to speak of others.)"
    elif outcome.certainty == "cannot tell":
        short = f"These {inputs} do not show whether it smooths or sharpens."
    elif not outcome.sure and outcome.least is not None and outcome.most is not None:
        others = [NAMED[grade] for grade in Grade if outcome.least <= grade <= outcome.most]
        others.remove(NAMED[outcome.grade])
        short += f" The 95 % intervals over {inputs} do not exclude {' or '.join(others)}."
    ends = in_words(outcome.low, outcome.high, outcome.inputs, factor_text)
    moved = (
        f"HFC/LFC, what differs between tokens beside what they share, changes by a factor of "
        f"{factor_text(outcome.change)} ({ends}) over {layers(outcome)}; the mean cosine between "
        f"tokens goes from {start:.3f} to {end:.3f}."
    )
    return Reply(question, short, ((moved, "measured"),))


def _by_what(outcome: Answer, heads: str) -> Reply:
    question, cause = "By what?", outcome.cause
    if cause is None:
        return Reply(question, "The parts of its layers were not measured.")
    large = sorted(
        (k for k, x in cause.sums.items() if abs(x) >= MILD), key=lambda k: -abs(cause.sums[k])
    )
    if not large:
        short = "No part of its layers moves it far."
    else:
        up, down = ([k for k in large if (cause.sums[k] > 0) == more] for more in (True, False))
        sides = [_together(cause, names) for names in (up, down) if names]
        sides.sort(key=lambda side: not side.startswith(_subject(cause, large[0])))
        short = ", but ".join(sides) + "."
        short = short[0].upper() + short[1:]
    listed = ", ".join(f"{PARTS[name][2]} {signed(value)}" for name, value in cause.sums.items())
    over = "one input" if cause.inputs == 1 else f"{cause.inputs} inputs"
    told = "" if cause.sure or not large else "; these inputs do not show which part is the largest"
    parts = f"Change of ln HFC/LFC by part, over {over}: {listed}{told}."
    return Reply(question, short, tuple((words, "measured") for words in (parts, heads) if words))


def _subject(cause: Cause, name: str) -> str:
    return (POST if cause.placement == "post" else PARTS)[name][0]


def _together(cause: Cause, names: Sequence[str]) -> str:
    """'attention's mixing and the FFN smooth'."""
    # A subject with "of" comes last: 'the gains of the norm and the FFN' could be one thing.
    subjects = sorted((_subject(cause, name) for name in names), key=lambda name: " of " in name)
    verb = "sharpen" if cause.sums[names[0]] > 0 else "smooth"
    ending = PARTS[names[0]][1] if len(names) == 1 else ""
    if len(names) == 1 and cause.placement == "post":
        ending = POST[names[0]][1]
    return f"{' and '.join(subjects)} {verb}{ending}"


def _what_to_try(tried: Sequence[Advice], outcome: Answer) -> Reply:
    question = "What to try?"
    if not tried:
        unknown = outcome.grade is None or outcome.certainty == "cannot tell"
        short = "Nothing yet: these inputs do not show whether it smooths."
        return Reply(question, short if unknown else "Nothing: no smoothing was seen to undo.")
    first, *others = tried
    details = [(_sentence(words), known) for words, known in first.grounds if words != known]
    details += [(_sentence(str(each.words)), each.known) for each in others]
    return Reply(question, _sentence(first.words), tuple(details) or (("", first.known),))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
