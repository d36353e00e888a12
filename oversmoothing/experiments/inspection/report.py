"""What `inspect` returns: does this model smooth, where, by which sublayer, and why?

Observed: the metrics of the residual stream by layer, and the account of each layer's change of
log HFC/LFC by sublayer and by what the norms add. Beside it, and never inferred from it: what the
spectra of attention and H say in the paper's linear model, which knows neither norm nor FFN. Of all
that three answers come first: does it smooth, by what, what to try; with what carries each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.experiments.inspection import sentences
from oversmoothing.experiments.inspection.answer import (
    MILD,
    Advice,
    Answer,
    Cause,
    Grade,
    advice,
    answer,
    answer_object,
)
from oversmoothing.experiments.inspection.sentences import (
    CONVENTIONS,
    NAMED,
    NARROW,
    PARTS,
    POST,
    WIDE,
    layers,
)
from oversmoothing.experiments.inspection.states import merged_words
from oversmoothing.experiments.intervals import FEWEST, in_words
from oversmoothing.experiments.models.model import start_in_words
from oversmoothing.simulations.drawing.result import (
    UNTESTED,
    AsTable,
    Result,
    Sentence,
    Table,
    measured,
    plain_table,
)
from oversmoothing.simulations.drawing.result_files import saved
from oversmoothing.simulations.drawing.wording import factor_text, signed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# 2: `layers` begins with the input, layer 0.
SCHEMA_VERSION = 2


@dataclass(frozen=True)
class Reply:
    """One of the three questions of a report, and the answer in a sentence.

    details: what carries it, each with how it is known: 'proved', 'measured' or 'untested'.
    """

    question: str
    short: str
    details: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False, repr=False)
class Report(Result):
    """What `inspect` found.

    by_layer, later `table`: a row a layer, row 0 the input in front of layer 1. tokens: 0 where
    inputs differ in length. images: number of inputs. logs, cosines [layers + 1, images]: log
    HFC/LFC and the mean cosine, from the input on; by_attention, by_ffn [layers, images]: the
    changes of log HFC/LFC by sublayer; parts: the account by name, each [layers, accounted].
    modality: 'vision', 'text' or 'features'. placement: of the norms, 'pre', 'post' or 'parallel'.
    cls: whether token 0 is CLS; registers: how many follow it. spectra: inputs whose spectra were
    taken. accounted: inputs on which the norms' shares were measured. closer: inputs that were
    looked at closely, of which heads has one row a head (`head_table`); tokens_together has the
    clusters of the tokens of the first of them (`token_clusters`), pixels [k, H, W, 3] those as the
    model sees them, None where they are no images. account_error: largest |sum of parts - whole
    change| over their layers; the parts of the first input are all computed from the weights.
    av_error: largest relative difference between sum_h A_h N(X) W_V W_O and the module's own
    output. notes: what the reader must know.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> X = torch.randn(4, 6, 8, generator=torch.Generator().manual_seed(0))
    >>> report = oversmoothing.inspect(model, X)
    >>> len(report.to_frame()), report.tokens
    (3, 6)
    """

    model: str
    tokens: int
    images: int
    by_layer: pd.DataFrame
    logs: NDArray[np.float64]
    cosines: NDArray[np.float64]
    by_attention: NDArray[np.float64]
    by_ffn: NDArray[np.float64]
    parts: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    placement: str = "pre"
    modality: str = "vision"
    cls: bool = True
    registers: int = 0
    spectra: int = 0
    closer: int = 0
    heads: pd.DataFrame = field(default_factory=pd.DataFrame)
    tokens_together: pd.DataFrame = field(default_factory=pd.DataFrame)
    pixels: NDArray[np.float64] | None = None
    accounted: int = 0
    account_error: float = 0.0
    av_error: float = 0.0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shown = [name for name in NARROW if name in self.by_layer]
        self.tables = {"layers": Table(self.by_layer, {}, shown, "{:.3f}")}
        further = {"heads": self.heads, "merged": self.merged}
        tables = {name: Table(rows) for name, rows in further.items() if not rows.empty}
        plain = ("model", "modality", "tokens", "images", "spectra", "accounted", "closer")
        super().__init__(
            "report",
            f"{self.model}: {self.inputs}, {self.counted}",
            self.tables | tables,
            self._sentences(),
            {"schema_version": SCHEMA_VERSION} | {name: getattr(self, name) for name in plain},
            details={
                **{name: [] for name in further if name not in tables},
                "account_error": self.account_error,
                "av_error": self.av_error,
                "notes": list(self.notes),
                "conventions": CONVENTIONS,
                "answer": answer_object(self.answer, self.advice),
                "summary": self.summary(),
            },
            picture=self.plot,
        )

    save = saved

    def __repr__(self) -> str:
        return f"Report('{self.model}', {len(self.by_attention)} layers, {self.inputs})"

    def short_table(self, *, wide: bool = False) -> pd.DataFrame:
        """The columns of the page and the terminal under their titles; wide: all of them.

        HFC/LFC is the geometric mean.
        """
        titles = NARROW | WIDE if wide else NARROW
        table = self.table[[name for name in titles if name in self.table]].rename(columns=titles)
        if "consensus %" in table:
            table["consensus %"] *= 100
        return table

    @property
    def inputs(self) -> str:
        """The inputs in words: '250 images', '1 text'."""
        return f"{self.images} {self.noun}{'' if self.images == 1 else 's'}"

    @property
    def noun(self) -> str:
        """What an input is called."""
        return {"vision": "image", "text": "text"}.get(self.modality, "input")

    @property
    def counted(self) -> str:
        """The tokens in words."""
        number = f"all {self.tokens} tokens" if self.tokens else "all tokens but padding"
        special = ["CLS"] * self.cls
        if self.registers:
            special.append(f"{self.registers} register{'' if self.registers == 1 else 's'}")
        return f"{number} with {' and '.join(special)}" if special else number

    @property
    def change(self) -> NDArray[np.float64]:
        """The change of ln HFC/LFC over the whole stack, [images]."""
        outcome: NDArray[np.float64] = self.logs[-1] - self.logs[0]
        return outcome

    @cached_property
    def answer(self) -> Answer:
        """The answer in numbers: grade, certainty, cause, depth."""
        return answer(self.logs, self.cosines, self.parts, self.placement)

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to try, each with how it is known; nothing where there is nothing to mend."""
        negative = float(self.table["negative_gains_attention"].iloc[1:].mean())
        return advice(self.answer, placement=self.placement, negative_gains=negative)

    def summary(self) -> str:
        """A paragraph: `said`, one after the other."""
        return " ".join(self.said())

    def said(self) -> list[str]:
        """Sentence by sentence: does the model smooth, how surely, by what, how the spectra fit.

        Then whether it collapses, and what a closer look at some inputs found.
        """
        outcome, noun = self.answer, self.noun
        attention, ffn = (float(by.sum(0).mean()) for by in (self.by_attention, self.by_ffn))
        share = None
        if "consensus_share" in self.table:
            share = float(self.table["consensus_share"].iloc[1:].mean())
        said = (
            sentences.of_grade(outcome, self.model, self.inputs),
            sentences.of_cause(outcome, attention, ffn, noun),
            sentences.of_sink_attention(self.table, self.closer, noun)
            or sentences.of_spectra(outcome, share, noun),
            sentences.of_depth(outcome),
            sentences.of_sinks(self.table, self.closer, noun, self.registers),
            sentences.of_rank(self.table),
            sentences.of_heads(self.heads, self.closer),
            sentences.of_tokens(self.table),
            sentences.of_words(self.merged, len(self.by_attention), noun),
        )
        return [sentence for sentence in said if sentence]

    @property
    def replies(self) -> tuple[Reply, ...]:
        """Does it smooth? By what? What to try? Each in a sentence, with what carries it."""
        heads = [sentences.of_heads(self.heads, self.closer), sentences.why_heads(self.heads)]
        return replies(self.answer, self.advice, self.inputs, heads)

    def short_words(self) -> str:
        """The three answers and what carries each, a line each."""
        lines = []
        for reply in self.replies:
            lines += ["", reply.question, f"  {reply.short}"]
            lines += [f"  {words} [{known}]" for words, known in reply.details if words]
        return "\n".join(lines[1:])

    def text(self, as_table: AsTable | None = None, wide: bool = False) -> str:
        """The three answers; wide: every sentence, and the table of all layers."""
        if not wide:
            return self.short_words()
        table = (as_table or plain_table)(self.short_table(wide=True), "{:.3f}".format)
        return f"{self.words()}\n\n{table}"

    def _sentences(self) -> list[Sentence]:
        """The summary, what to try and what the table counts."""
        seen = measured(self.images)
        spectra = (
            f" Spectra of {self.spectra} inputs; rho_Q is their median; a real h loses at "
            "consensus iff -s < h < 0, s the minimum over them."
            if self.spectra
            else ""
        )
        starts = self.table["cos_start"].tolist() if "cos_start" in self.table else None
        counted = (
            f"Means over {self.inputs}, {self.counted} (HFC/LFC: geometric); attention, FFN: "
            "change of ln HFC/LFC; cosines signed, over pairs of distinct tokens. H of its layers: "
            f"{start_in_words(starts)}.{spectra}"
        )
        return [
            *(Sentence(each, seen) for each in self.said()),
            *(Sentence(f"To try: {each}.", *each.evidence) for each in self.advice),
            *(Sentence(f"Note: {note}.", UNTESTED) for note in self.notes),
            Sentence(counted, seen),
        ]

    @cached_property
    def merged(self) -> pd.DataFrame:
        """Which tokens came together, in words: `merged_words`; empty where there are none."""
        tokens = self.tokens_together
        return merged_words(tokens) if "word" in tokens else pd.DataFrame()

    def plot(self) -> Figure:
        """The report as one matplotlib figure: metrics, account, spectra and tilt by layer.

        matplotlib loads when it is drawn.
        """
        from oversmoothing.experiments.inspection.plots import draw

        return draw(self.table, self.heads, self.title, without_cls=self.cls)

    def plot_tokens(self) -> Figure | None:
        """Which tokens of the first inputs come together, on the images where there are any.

        None where no input was looked at closely.
        """
        from oversmoothing.experiments.inspection.plots import draw_tokens

        if self.tokens_together.empty:
            return None
        return draw_tokens(self.tokens_together, self.pixels, self.model)

    @cached_property
    def _drawn_tokens(self) -> bytes | None:
        from oversmoothing.simulations.drawing.picture import png

        figure = self.plot_tokens()
        return None if figure is None else png(figure)

    def own_page(self) -> str:
        """The page of a report, with its charts and maps."""
        from oversmoothing.experiments.inspection.report_page import page

        assert self.picture is not None
        return page(self, self.picture.file("png"), self._drawn_tokens)

    def beside(self) -> dict[str, str | bytes]:
        """Which tokens came together, as a table and drawn, where inputs were looked at closely."""
        if self._drawn_tokens is None:
            return {}
        rows = self.tokens_together.to_csv(index=False)
        return {"report_tokens.csv": rows, "report_tokens.png": self._drawn_tokens}


# ------------------------------------------------------------------------------ the three answers

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
    outcome: Answer, tried: Sequence[Advice], inputs: str, heads: Sequence[str] = ()
) -> tuple[Reply, Reply, Reply]:
    """Does it smooth? By what? What to try? heads: which heads smooth, in sentences."""
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
        short += f" (Seen on {inputs} alone: to speak of others takes at least {FEWEST}.)"
    elif outcome.certainty == "cannot tell":
        short = f"These {inputs} do not show whether it smooths or sharpens."
    elif not outcome.sure and outcome.least is not None and outcome.most is not None:
        others = [NAMED[grade] for grade in Grade if outcome.least <= grade <= outcome.most]
        others.remove(NAMED[outcome.grade])
        short += f" The 95 % intervals over {inputs} also allow {' or '.join(others)}."
    ends = in_words(outcome.low, outcome.high, outcome.inputs, factor_text)
    moved = (
        f"HFC/LFC (differences between tokens over what they share) changes by a factor of "
        f"{factor_text(outcome.change)} ({ends}) over {layers(outcome)}; the mean cosine between "
        f"tokens goes from {start:.3f} to {end:.3f}."
    )
    return Reply(question, short, ((moved, "measured"),))


def _by_what(outcome: Answer, heads: Sequence[str]) -> Reply:
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
    listed = ", ".join(f"{_subject(cause, name)} {signed(x)}" for name, x in cause.sums.items())
    over = "one input" if cause.inputs == 1 else f"{cause.inputs} inputs"
    every = f" ({signed(outcome.change)} on all {outcome.inputs})"
    told = "" if cause.sure or not large else "; these inputs do not show which part is the largest"
    parts = (
        f"On {over} ln HFC/LFC changes by {signed(cause.change)}"
        f"{every * (cause.inputs < outcome.inputs)}. By part: {listed}{told}."
    )
    return Reply(question, short, tuple((words, "measured") for words in (parts, *heads) if words))


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
        if outcome.grade is not None and outcome.inputs < FEWEST:
            short = f"Nothing yet: give at least {FEWEST} inputs."
        return Reply(question, short if unknown else "Nothing: there is no smoothing to undo.")
    first, *others = tried
    details = [(_sentence(words), known) for words, known in first.grounds if words != known]
    details += [(_sentence(str(each.words)), each.known) for each in others]
    return Reply(question, _sentence(first.words), tuple(details) or (("", first.known),))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."
