"""What `inspect` returns: does this model smooth, where, by which sublayer, and why?

Observed: the metrics of the residual stream by layer, and the account of each layer's change of
log HFC/LFC by sublayer and by what the norms add. Beside it, and never inferred from it: what the
spectra of attention and H say in the paper's linear model, which knows neither norm nor FFN. Of all
that three answers come first: does it smooth, by what, what to try; with what carries each.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from oversmoothing.experiments.inspection import answer as answers, sentences, states
from oversmoothing.experiments.inspection.answer import Advice, Answer, advice, answer_object
from oversmoothing.experiments.inspection.heads_and_why import of_heads, why_heads
from oversmoothing.experiments.inspection.sentences import HEADS, NARROW, WIDE
from oversmoothing.experiments.models.model import start_in_words
from oversmoothing.simulations.drawing import result
from oversmoothing.simulations.drawing.wording import plain_table
from oversmoothing.simulations.running import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# 2: `layers` begins with the input, layer 0.
SCHEMA_VERSION = 2


@dataclass(eq=False, repr=False)
class Report(result.Result):
    """What `inspect` found.

    by_layer, later `table`: a row a layer, row 0 the input in front of layer 1. tokens: 0 where
    inputs differ in length. images: number of inputs. logs, cosines [layers + 1, images]: log
    HFC/LFC and the mean cosine, from the input on; by_attention, by_ffn [layers, images]: the
    changes of log HFC/LFC by sublayer; parts: the account by name, each [layers, accounted].
    modality: 'vision', 'text' or 'features'. placement: of the norms, 'pre', 'post' or 'parallel'.
    cls: whether token 0 is CLS; registers: how many follow it. causal: as of `Model`. spectra:
    inputs whose spectra were taken. accounted: inputs on which the norms' shares were measured.
    closer: inputs that were looked at closely, of which heads has one row a head (`head_table`);
    tokens_together has the clusters of the tokens of the first of them (`token_clusters`), pixels
    [k, H, W, 3] those as the model sees them, None where they are no images. account_error: largest
    |sum of parts - whole change| over their layers; the parts of the first input are all computed
    from the weights. av_error: largest relative difference between sum_h A_h N(X) W_V W_O and the
    module's own output. notes: what the reader must know.

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
    causal: bool = False
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
        further = {"heads": self.heads, "merged": self.merged}
        self.tables = {"layers": result.Table(self.by_layer, {}, shown, "{:.3f}")} | {
            name: result.Table(rows) for name, rows in further.items() if not rows.empty
        }
        plain = ("model", "modality", "tokens", "images", "spectra", "accounted", "closer")
        super().__init__(
            "report",
            f"{self.model}: {self.inputs}, {self.counted}",
            self.tables,
            self._sentences(),
            {"schema_version": SCHEMA_VERSION} | {name: getattr(self, name) for name in plain},
            details={
                **{name: [] for name in further if name not in self.tables},
                **{name: getattr(self, name) for name in ("account_error", "av_error", "notes")},
                "conventions": sentences.CONVENTIONS,
                "answer": answer_object(self.answer, self.advice),
                "summary": self.summary(),
            },
            picture=self.plot,
        )

    save = result.saved

    def __repr__(self) -> str:
        return f"Report('{self.model}', {len(self.by_attention)} layers, {self.inputs})"

    def __str__(self) -> str:
        return "\n\n".join(self.said())

    def short_table(self, *, wide: bool = False) -> pd.DataFrame:
        """What page and terminal show, with titles (HFC/LFC: geometric mean); wide: all columns."""
        titles = NARROW | WIDE if wide else NARROW
        table = self.table[[name for name in titles if name in self.table]].rename(columns=titles)
        if "consensus %" in table:
            table["consensus %"] *= 100
        return table

    @property
    def inputs(self) -> str:
        """The inputs in words: '250 images', '1 text'."""
        return f"{self.images} {self.noun}{'s' * (self.images != 1)}"

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
            special.append(f"{self.registers} register{'s' * (self.registers != 1)}")
        return f"{number} with {' and '.join(special)}" if special else number

    @property
    def change(self) -> NDArray[np.float64]:
        """The change of ln HFC/LFC over the whole stack, [images]."""
        outcome: NDArray[np.float64] = self.logs[-1] - self.logs[0]
        return outcome

    @cached_property
    def answer(self) -> Answer:
        """The answer in numbers: grade, certainty, cause, depth."""
        return answers.answer(self.logs, self.cosines, self.parts, self.placement)

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to try, each with how it is known; nothing where there is nothing to mend."""
        inner = self.table.iloc[1:]
        return advice(
            self.answer, placement=self.placement, causal=self.causal,
            negative_gains=float(inner["negative_gains_attention"].mean()),
            in_disc=float(inner.get("h_universal_disc", pd.Series(dtype=float)).mean()),
        )  # fmt: skip

    def summary(self) -> str:
        """A paragraph: `said`, one after the other."""
        return " ".join(self.said())

    def said(self) -> list[str]:
        """Sentence by sentence: does the model smooth, how surely, by what; then `further`."""
        does, why, _ = self.replies
        own = (words for reply in (does, why) for words in (reply.short, *dict(reply.details)))
        return [f"Does {self.model} smooth? {next(own)}", *filter(None, own), *self.further()]

    def further(self) -> list[str]:
        """How the spectra fit, whether it collapses, what a closer look at some inputs found."""
        outcome, noun = self.answer, self.noun
        share, own = None, "share" in self.heads and bool(self.heads["share"].notna().any())
        if "consensus_share" in self.table:
            share = float(self.table["consensus_share"].iloc[1:].mean())
        # Beside numbers of the inputs looked at closely: the mean of the same ones, not of all.
        close = self.table.assign(cos_mean=self.cosines[:, : self.closer or None].mean(1))
        said = (
            sentences.of_sink_attention(self.table, self.closer, noun)
            or sentences.of_spectra(outcome, share, noun, own),
            sentences.of_depth(outcome),
            sentences.of_sinks(close, self.closer, noun, self.registers),
            sentences.of_rank(self.table),
            sentences.of_tokens(self.table),
            sentences.of_words(self.merged, len(self.by_attention), noun),
        )
        return [sentence for sentence in said if sentence]

    @property
    def replies(self) -> tuple[sentences.Reply, ...]:
        """Does it smooth? By what? What to try? Each in a sentence, with what carries it."""
        attention, ffn = (float(by.sum(0).mean()) for by in (self.by_attention, self.by_ffn))
        heads = [of_heads(self.heads, self.closer), why_heads(self.heads, self.cls, self.causal)]
        ends = self.table.get("cos_mean_desunk", pd.Series([np.nan]))
        over = sentences.first_inputs(self.closer, self.noun)
        return (
            sentences.does_it(self.answer, self.inputs, (ends.iloc[0], ends.iloc[-1]), over),
            sentences.by_what(self.answer, (attention, ffn), heads),
            sentences.what_to_try(self.advice, self.answer),
        )

    def short_words(self) -> str:
        """The three answers and what carries each, a line each."""
        lines = []
        for reply in self.replies:
            lines += ["", reply.question, f"  {reply.short}"]
            lines += [f"  {words} [{known}]" for words, known in reply.details if words]
        return "\n".join(lines[1:])

    def text(self, as_table: result.AsTable | None = None, wide: bool = False) -> str:
        """The three answers; wide: the further sentences, notes, and the table of all layers."""
        if not wide:
            return self.short_words()
        table = (as_table or plain_table)(self.short_table(wide=True), "{:.3f}".format)
        further = [*self.further(), *(f"Note: {note}." for note in self.notes), self._counted()]
        return "\n\n".join([self.short_words(), "\n".join(further), table])

    def _counted(self) -> str:
        """What the table counts."""
        spectra = (
            f" Spectra of {self.spectra} inputs; rho_Q is their median; a real h loses at "
            "consensus iff -s < h < 0, s the minimum over them."
        ) * bool(self.spectra)
        starts = self.table["cos_start"].tolist() if "cos_start" in self.table else None
        return (
            f"Means over {self.inputs}, {self.counted} (HFC/LFC: geometric); attention, FFN: "
            "change of ln HFC/LFC; cosines signed, over pairs of distinct tokens. H of its layers: "
            f"{start_in_words(starts)}.{spectra}"
        )

    def _sentences(self) -> list[result.Sentence]:
        """The summary, what to try and what the table counts."""
        seen = result.measured(self.images)
        return [
            *(result.Sentence(each, seen) for each in self.said()),
            *(result.Sentence(f"To try: {each}.", *each.evidence) for each in self.advice),
            *(result.Sentence(f"Note: {note}.", result.UNTESTED) for note in self.notes),
            result.Sentence(self._counted(), seen),
        ]

    @cached_property
    def merged(self) -> pd.DataFrame:
        """Which tokens came together, in words: `merged_words`; empty where there are none."""
        tokens = self.tokens_together
        return states.merged_words(tokens) if "word" in tokens else pd.DataFrame()

    def plot(self) -> Figure:
        """The report as one matplotlib figure: metrics, account, spectra and tilt by layer.

        matplotlib loads when it is drawn.
        """
        from oversmoothing.experiments.inspection.plots import draw

        return draw(self.table, self.heads, self.title)

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
        """The page of a report, with its charts and maps, as one file that asks no network."""
        return _page(self, self._drawn_tokens)

    def beside(self) -> dict[str, str | bytes]:
        """Which tokens came together, as a table and drawn, where inputs were looked at closely."""
        if self._drawn_tokens is None:
            return {}
        rows = self.tokens_together.to_csv(index=False)
        return {"report_tokens.csv": rows, "report_tokens.png": self._drawn_tokens}


# --------------------------------------------------------------------------------------- the page

# Clusters of an input after a layer that the page lists, and letters of each; merged.csv has all.
LISTED, LETTERS = 4, 240
# The charts: a title, what its lines are, whether its axis is logarithmic.
_CHARTS = (
    ("ratio", "HFC/LFC, geometric mean, logarithmic axis", {"hfc_lfc": ""}),
    ("cosine", "Cosine of two tokens, signed",
     {"cos_mean": "mean", "cos_min": "smallest",
      "cos_mean_desunk": "mean without the largest direction"}),
    ("rank", "Effective rank",
     {"effective_rank": "all", "effective_rank_desunk": "without the largest direction"}),
)  # fmt: skip


def _page(report: Report, tokens: bytes | None) -> str:
    """HTML with answers, tables, pictures and conventions, all of which stand without a script."""
    from oversmoothing.simulations.drawing.web_page import as_data, as_link, web_page

    assert report.picture is not None
    merged = report.merged
    if not merged.empty:
        merged = merged[merged["cluster"] < LISTED]
        words = [states.shortened(each, LETTERS) for each in merged["words"]]
        merged = merged.assign(words=words)
    inner, columns = report.table.iloc[1:], {"hfc_lfc", *report.table}
    ends, norms = _bands(report.table), "log_change_attention_body" in inner
    account = sentences.ACCOUNT if norms else sentences.SUBLAYERS
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
            (key, title, {name: said for name, said in lines.items() if name in columns})
            for key, title, lines in _CHARTS
        ],
        account={f"log_change_{name}": look for name, look in account.items()},
        bands=as_data(ends),
        banded=list(ends),
        together=states.TOGETHER,
        clusters=as_data(_clusters(report.tokens_together, report.pixels)),
        picture=as_link(report.picture.files["png"]),
        tokens=tokens and as_link(tokens),
        merged=merged.to_dict("records"),
        conventions=sentences.CONVENTIONS,
        provenance=provenance(),
    )


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
        if f"{name}_p05" in table and table[f"{name}_p05"].notna().any():
            ends = [table[f"{name}_{end}"].to_numpy(float) for end in ("p05", "p95")]
            if name == "log_hfc_lfc":
                name, ends = "hfc_lfc", [np.exp(end) for end in ends]
            shown[name] = [[x if np.isfinite(x) else None for x in end.tolist()] for end in ends]
    return shown


def _clusters(tokens: pd.DataFrame, pixels: NDArray[np.float64] | None) -> dict[str, Any]:
    """Of each input drawn: the clusters [layers + 1][n], and its words or its image.

    side: of the square of patches of an image.
    """
    inputs = []
    for number in [] if tokens.empty else tokens["input"].unique():
        rows = tokens[tokens["input"] == number]
        grid = rows.pivot(index="layer", columns="token", values="cluster")
        side = None if pixels is None else states.patch_side(grid.shape[1], pixels.shape)
        first = rows[rows["layer"] == 0].sort_values("token")
        inputs.append(
            {
                "clusters": grid.to_numpy().tolist(),
                "words": list(first["word"]) if "word" in first else None,
                "side": side,
                "picture": None if pixels is None or side is None else _png(pixels[number]),
            }
        )
    return {"colours": states.CLUSTER_COLOURS, "inputs": inputs}


def _png(pixels: NDArray[np.float64]) -> str:
    """[H, W, 3] in [0, 1] as the address of an image."""
    from oversmoothing.simulations.drawing.web_page import as_link

    file = io.BytesIO()
    Image.fromarray((255 * pixels).round().astype(np.uint8)).save(file, "png")
    return as_link(file.getvalue())
