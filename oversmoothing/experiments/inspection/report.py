"""What `inspect` returns: does this model smooth, where, by which sublayer, and why?

Observed: the metrics of the residual stream by layer, and the account of each layer's change of
log HFC/LFC by sublayer and by what the norms add. Beside it, and never inferred from it: what the
spectra of attention and H say in the paper's linear model, which knows neither norm nor FFN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversmoothing.experiments.inspection import sentences
from oversmoothing.experiments.inspection.answer import (
    AGREE,
    COLLAPSED_COSINE,
    COLLAPSED_RATIO,
    MILD,
    STRONG,
    Advice,
    Answer,
    advice,
    answer,
    answer_object,
    row_objects,
)
from oversmoothing.experiments.inspection.states import CONVERGED, LARGE
from oversmoothing.experiments.inspection.tokens import TOGETHER, merged_words
from oversmoothing.experiments.models.model import start_in_words
from oversmoothing.simulations.drawing.wording import as_html
from oversmoothing.simulations.state_metrics import NAMES
from oversmoothing.theory.support.files import json_number, output_folder, to_json, write_together

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SCHEMA_VERSION = 1

CONVENTIONS = {
    "residual_stream": "X after each layer, before the norm of the next; layer 0: in front of all; "
    "with Post-LN, X after the norm of each sublayer",
    "tokens": "all tokens, with CLS where there is one, without padding; columns *_without_cls "
    "leave CLS out",
    "hfc_lfc": "Frobenius norms of X - 1 m and 1 m, m the mean over the tokens; natural log; "
    "the mean over inputs is the geometric one, exp of the mean of the logarithm, in every table",
    "cosines": "over pairs of distinct tokens; cos signed, cos_abs absolute",
    "effective_rank": "exp of the entropy of the singular values over their sum",
    "intervals": "_low and _high: 95 % interval of the mean by Student's t, over all inputs "
    "(`images`), of the account's parts over `accounted` of them, of ranks and what is looked at "
    "closely (the heads too) over `closer`; missing where there are fewer than five",
    "grades": "by convention, of the change of ln HFC/LFC: none below "
    f"{MILD:.3f} (a factor of 1.25), strong from {STRONG:.3f} (2) on where the mean cosine at the "
    f"end is {AGREE} or more for smoothing, less for sharpening, else mild; collapsed: mean cosine "
    f"{COLLAPSED_COSINE} or more and HFC/LFC {COLLAPSED_RATIO} or less at the end. What is not "
    "told: the grades at the ends of the 95 % intervals of the change, the cosine and the ratio, "
    "each by itself, differ",
    "causes": "sums of the account: mixing (attention_body), scales (of both sublayers), gains (of "
    "attention's norm, with Post-LN of both norms), ffn (ffn_body and, with the norm in front, its "
    "gains, which are one with the first matrix); named where the 95 % interval of its difference "
    "to every other lies on one side. The account switches body, scales and gains on in this "
    "order; another order splits otherwise",
    "desunk": "_desunk: of X without its largest direction, X - sigma_1 u_1 v_1^T (T4g); "
    "sink_share: sigma_1 over the sum of the singular values; *_without_first: without position 0 "
    "(CLS, where there is one); *_without_registers: without the registers; *_patches: without "
    "both; "
    f"*_without_large: without the tokens of more than {LARGE:g} times the median norm, "
    "large_tokens of them; over the inputs looked at closely",
    "sinks in attention": "where learned sinks take a part of it: row_sum, the mean sum of its "
    "rows; attention_radius, the largest |a|, and operator_radius, the largest |1 + h a|, of the "
    "mean over heads and H whole; no verdict, since consensus is no mode",
    "rank_growth": "effective rank of all tokens over effective_rank_half, that of every second "
    f"one; above {CONVERGED} it has not converged in the number of tokens",
    "heads": "log_change: of ln HFC/LFC after the attention sublayer by the head's being there, "
    "the others kept (they do not sum); share, radius (rho_Q), rho_consensus, margin (rho_C - "
    "rho_Q): of the head's own A and H; dobrushin; entropy of its rows over the logarithm of the "
    "tokens in sight; sink_mass: mean attention to its sink_token",
    "together": f"tokens joined where their cosine is {TOGETHER} or more, a cluster is what is "
    "connected so; merged_share: of the tokens in a cluster of two or more; largest_cluster: of "
    "those in the largest",
    "linear": "share of the layer's output (_with_residual) or of output - input "
    "(_without_residual), tokens centred, that one linear map of its input explains; fitted on "
    "every second input, scored on the others, both ways; large tokens weigh most",
    "bands": "_p05 and _p95: 5th and 95th percentile of the inputs (`images`)",
    "log_change": "of log HFC/LFC over a sublayer. _body: with one scale for all tokens and unit "
    "gains in its norm; _scales: what each token's own scale adds; _gains: what the norm's gain "
    "and shift add; the three sum to the sublayer's change over the inputs accounted for",
    "dominance": "reading E2: a case is an (input, layer); A the mean over heads, H whole, the "
    "maximum over all pairs (j, i); norm and FFN are not in it",
    "predicted_log_rate": "log(rho_quotient / rho_consensus), median over inputs",
    "outside_share": "share of h_j, counted alone, at which consensus does not lose; for real h "
    "those outside (-safe_interval, 0)",
    "regions": "share of the eigenvalues of H (h_*) and of the heads' own H (head_h_*): zero "
    "(exact), universal_disc |h + 1/2| <= 1/2, positive real part, other",
    "cos_start": "cosine of H with where it was drawn before training (1: it did not turn); null: "
    "start unknown",
    "asymmetry": "||H - H^T||_F / ||H + H^T||_F: 0 symmetric, about 1 for independent entries, inf "
    "antisymmetric",
    "departure_from_normality": "sqrt(||H||_F^2 - sum |h|^2) / ||H||_F (Henrici)",
    "attention": "dobrushin and subdominant modulus of the mean over heads; drift: its relative "
    "change from the layer before (Frobenius)",
    "tilt": "gain over the layer of the mean |cos| of the tokens with the principal direction of H "
    "by |h| (tilt_modulus) or |1 + h| (tilt_residual); a complex pair spans a plane; *_random: the "
    "same for random directions",
}

# Columns of the table on the page and on the terminal, where they were measured.
NARROW = {
    "layer": "layer",
    "hfc_lfc": "HFC/LFC",
    "cos_mean": "cosine",
    "effective_rank": "rank",
    "log_change_attention": "attention",
    "log_change_ffn": "FFN",
}
WIDE = {
    "log_change_attention_body": "mixing",
    "log_change_attention_scales": "att. scales",
    "log_change_attention_gains": "att. gains",
    "log_change_ffn_body": "FFN body",
    "log_change_ffn_scales": "FFN scales",
    "log_change_ffn_gains": "FFN gains",
    "cos_min": "cos min",
    "cos_mean_desunk": "cos desunk",
    "effective_rank_desunk": "rank desunk",
    "sink_share": "sink share",
    "merged_share": "merged",
    "rank_growth": "rank growth",
    "row_sum": "row sum",
    "attention_radius": "max |a|",
    "operator_radius": "max |1 + h a|",
    "linear_with_residual": "linear",
    "linear_without_residual": "linear w/o res.",
    "consensus_share": "consensus %",
    "rho_consensus": "rho_C",
    "rho_quotient_median": "rho_Q",
    "h_real_min": "Re h min",
    "h_real_max": "Re h max",
    "safe_interval_min": "safe s",
    "cos_start": "cos start",
}

# The columns of `heads`, on the page.
HEADS = {
    "layer": "layer",
    "head": "head",
    "log_change": "ln HFC/LFC",
    "log_change_low": "low",
    "log_change_high": "high",
    "share": "consensus",
    "radius": "rho_Q",
    "rho_consensus": "rho_C",
    "margin": "margin",
    "dobrushin": "Dobrushin",
    "entropy": "entropy",
    "sink_mass": "sink mass",
    "sink_token": "sink token",
}

# The account of a layer, log_change_*: each part's colour (of `PALETTE`) and its words.
ACCOUNT = {
    "attention_body": ("blue", "attention: mixing"),
    "attention_scales": ("sky", "attention: token scales"),
    "attention_gains": ("light", "attention: gains"),
    "ffn_body": ("vermillion", "FFN: itself"),
    "ffn_scales": ("orange", "FFN: token scales"),
    "ffn_gains": ("purple", "FFN: gains"),
}
# Where the norms' shares were not measured.
SUBLAYERS = {"attention": ("blue", "attention"), "ffn": ("vermillion", "FFN")}


@dataclass(frozen=True)
class Report:
    """What `inspect` found. `table` has one row a layer, row 0 the input in front of layer 1.

    tokens: 0 where inputs differ in length. images: number of inputs. logs, cosines [layers + 1,
    images]: log HFC/LFC and the mean cosine, from the input on; by_attention, by_ffn [layers,
    images]: the changes of log HFC/LFC by sublayer; parts: the account by name, each [layers,
    accounted]. modality: 'vision', 'text' or 'features'. placement: of the norms, 'pre', 'post' or
    'parallel'. cls: whether token 0 is CLS; registers: how many follow it. spectra: inputs whose
    spectra were taken. accounted: inputs on which the norms' shares were measured. closer: inputs
    that were looked at closely, of which heads has one row a head (`head_table`); tokens_together
    has the clusters of the tokens of the first of them (`token_clusters`), pixels [k, H, W, 3]
    those as the model sees them, None where they are no images. account_error: largest |sum of
    parts - whole change| over their layers; the parts of the first input are all computed from the
    weights. av_error: largest relative difference between sum_h A_h N(X) W_V W_O and the module's
    own output. notes: what the reader must know.
    """

    model: str
    tokens: int
    images: int
    table: pd.DataFrame
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

    def __repr__(self) -> str:
        return f"Report('{self.model}', {len(self.by_attention)} layers, {self.inputs})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary and the short table."""
        return as_html(self.summary(), self.short_table())

    def to_frame(self) -> pd.DataFrame:
        """One row a layer, from layer 0 (the input); the columns of `CONVENTIONS`."""
        return self.table.copy()

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
        """Of ln HFC/LFC over the whole stack, [images]."""
        found: NDArray[np.float64] = self.logs[-1] - self.logs[0]
        return found

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
        found, noun = self.answer, self.noun
        attention, ffn = (float(by.sum(0).mean()) for by in (self.by_attention, self.by_ffn))
        spectra = None
        if "consensus_share" in self.table:
            share = float(self.table["consensus_share"].iloc[1:].mean())
            spectra = sentences.Spectra(share, f"({noun}, layer)")
        said = (
            sentences.of_grade(found, self.model, self.inputs),
            sentences.of_cause(found, attention, ffn, noun),
            sentences.of_sink_attention(self.table, self.closer, noun)
            or sentences.of_spectra(found, spectra),
            sentences.of_depth(found),
            sentences.of_sinks(self.table, self.closer, noun, self.registers),
            sentences.of_rank(self.table),
            sentences.of_heads(self.heads, self.closer),
            sentences.of_tokens(self.table),
            sentences.of_words(self.merged, len(self.by_attention), noun),
        )
        return [sentence for sentence in said if sentence]

    def words(self, width: int = 100) -> str:
        """The summary, what to try and what the table counts, in lines of at most `width`."""
        tried = [f"To try: {each}." for each in self.advice]
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
        notes = [f"Note: {note}." for note in self.notes]
        return "\n".join(
            fill(part, width, break_long_words=False, break_on_hyphens=False)
            for part in (*self.said(), *tried, *notes, counted)
        )

    def to_json_object(self) -> dict[str, Any]:
        """{schema_version, model, tokens, images, conventions, input, layers, summary, ...}.

        `layers` has one object a layer; `input` holds the metrics in front of the first. Unknown
        is null, infinite is "inf" or "-inf".
        """
        first, *layers = row_objects(self.table)
        plain = ("model", "modality", "tokens", "images", "spectra", "accounted", "closer")
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in plain},
            "account_error": json_number(self.account_error),
            "av_error": json_number(self.av_error),
            "notes": list(self.notes),
            "conventions": CONVENTIONS,
            "input": {name: value for name, value in first.items() if name.startswith(NAMES)},
            "layers": layers,
            "heads": row_objects(self.heads),
            "merged": self.merged.to_dict("records"),
            "answer": answer_object(self.answer, self.advice),
            "summary": self.summary(),
        }

    @property
    def merged(self) -> pd.DataFrame:
        """Which tokens came together, in words: `merged_words`; empty where there are none."""
        tokens = self.tokens_together
        return merged_words(tokens) if "word" in tokens else pd.DataFrame()

    def plot(self) -> Figure:
        """The report as one matplotlib figure: metrics, account, spectra and tilt by layer.

        matplotlib loads when it is drawn.
        """
        from oversmoothing.experiments.inspection.plots import draw

        title = f"{self.model}: {self.inputs}, {self.counted}"
        return draw(self.table, self.heads, title, without_cls=self.cls)

    def plot_tokens(self) -> Figure | None:
        """Which tokens of the first inputs come together, on the images where there are any.

        None where no input was looked at closely.
        """
        from oversmoothing.experiments.inspection.plots import draw_tokens

        if self.tokens_together.empty:
            return None
        return draw_tokens(self.tokens_together, self.pixels, self.model)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write report.html (self-contained), report.json, report.csv and report.png.

        Beside them report_heads.csv, report_tokens.csv and, drawn, report_tokens.png where inputs
        were looked at closely, and report_words.csv where tokens with words came together. Returns
        their paths by kind. Raises `InputError` where the folder cannot be written.
        """
        from oversmoothing.experiments.inspection.page.report_page import page
        from oversmoothing.simulations.drawing.picture import png

        place, picture, tokens = output_folder(folder), png(self.plot()), self.plot_tokens()
        drawn = None if tokens is None else png(tokens)
        names: dict[str, str] = {kind: f"report.{kind}" for kind in ("html", "json", "csv", "png")}
        contents: dict[str, str | bytes] = {
            "html": "",
            "json": to_json(self.to_json_object()),
            "csv": self.table.to_csv(index=False),
            "png": picture,
        }
        if drawn is not None:
            names |= {"heads": "report_heads.csv", "tokens": "report_tokens.png"}
            names["clusters"] = "report_tokens.csv"
            contents |= {
                "heads": self.heads.to_csv(index=False),
                "clusters": self.tokens_together.to_csv(index=False),
                "tokens": drawn,
            }
        if not self.merged.empty:
            names["words"], contents["words"] = "report_words.csv", self.merged.to_csv(index=False)
        contents["html"] = page(self, picture, drawn)
        paths = {kind: place / names[kind] for kind in contents}
        write_together({paths[kind]: content for kind, content in contents.items()})
        return paths
