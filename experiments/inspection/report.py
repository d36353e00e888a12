"""What `inspect` returns: does this model smooth, where, by which sublayer, and why?

Observed: the metrics of the residual stream by layer, and the account of each layer's change of
log HFC/LFC by sublayer and by what the norms add. Beside it, and never inferred from it: what the
spectra of attention and H say in the paper's linear model, which knows neither norm nor FFN.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jinja2 import Environment
from numpy.typing import NDArray

from oversmoothing.experiments.inspection.intervals import mean_interval
from oversmoothing.simulations.metrics.stream_metrics import NAMES
from oversmoothing.theory.support.files import json_number, output_folder, to_json, write_together
from oversmoothing.theory.support.provenance import provenance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1

CONVENTIONS = {
    "residual_stream": "X after each layer, before the norm of the next; layer 0: in front of all; "
    "with Post-LN, X after the norm of each sublayer",
    "tokens": "all tokens, with CLS where there is one, without padding; columns *_without_cls "
    "leave CLS out",
    "hfc_lfc": "Frobenius norms of X - 1 m and 1 m, m the mean over the tokens; natural log",
    "cosines": "over pairs of distinct tokens; cos signed, cos_abs absolute",
    "effective_rank": "exp of the entropy of the singular values over their sum",
    "intervals": "_low and _high: 95 % interval of the mean over inputs (mean +- 1.96 s.e.)",
    "bands": "_p05 and _p95: 5th and 95th percentile of the inputs",
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
    "asymmetry": "||H - H^T||_F / (2 ||H||_F)",
    "departure_from_normality": "sqrt(||H||_F^2 - sum |h|^2) / ||H||_F (Henrici)",
    "attention": "dobrushin and subdominant modulus of the mean over heads; drift: its relative "
    "change from the layer before (Frobenius)",
    "tilt": "gain over the layer of the mean |cos| of the tokens with the principal direction of H "
    "by |h| (tilt_modulus) or |1 + h| (tilt_residual); a complex pair spans a plane; *_random: the "
    "same for random directions",
}

# Columns of the table on the page and on the terminal, where they were measured.
COLUMNS = {
    "layer": "layer",
    "log_hfc_lfc": "log HFC/LFC",
    "log_change_attention": "by attention",
    "log_change_ffn": "by FFN",
    "cos_mean": "cos mean",
    "cos_min": "cos min",
    "effective_rank": "eff. rank",
    "consensus_share": "consensus %",
    "rho_consensus": "rho_C",
    "rho_quotient_median": "rho_Q",
    "h_real_min": "Re h min",
    "h_real_max": "Re h max",
    "safe_interval_min": "safe s",
}


@dataclass(frozen=True)
class Report:
    """What `inspect` found. `table` has one row a layer, row 0 the input in front of layer 1.

    tokens: 0 where inputs differ in length. images: number of inputs. change [images]: of log
    HFC/LFC over the whole stack; by_attention, by_ffn [layers, images]: its parts. modality:
    'vision' or 'text'. cls: whether token 0 is CLS. spectra: inputs whose spectra were taken.
    accounted: inputs on which the norms' shares were measured. account_error: largest |sum of parts
    - whole change| over their layers; the parts of the first batch are all computed from the
    weights. av_error: largest relative difference between sum_h A_h N(X) W_V W_O and the module's
    own output. notes: what the reader must know.
    """

    model: str
    tokens: int
    images: int
    table: pd.DataFrame
    change: NDArray[np.float64]
    by_attention: NDArray[np.float64]
    by_ffn: NDArray[np.float64]
    modality: str = "vision"
    cls: bool = True
    spectra: int = 0
    accounted: int = 0
    account_error: float = 0.0
    av_error: float = 0.0
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """One row a layer, from layer 0 (the input); the columns of `CONVENTIONS`."""
        return self.table.copy()

    def short_table(self) -> pd.DataFrame:
        """The columns of the page and the terminal, under their titles."""
        table = self.table[[name for name in COLUMNS if name in self.table]].rename(columns=COLUMNS)
        if "consensus %" in table:
            table["consensus %"] *= 100
        return table

    @property
    def inputs(self) -> str:
        """The inputs in words: '250 images', '1 text'."""
        noun = "image" if self.modality == "vision" else "text"
        return f"{self.images} {noun}{'' if self.images == 1 else 's'}"

    @property
    def counted(self) -> str:
        """The tokens in words."""
        number = f"all {self.tokens} tokens" if self.tokens else "all tokens but padding"
        return f"{number} with CLS" if self.cls else number

    def summary(self) -> str:
        """Two sentences: does the model smooth, where, by which sublayer, on what evidence."""
        mean, low, high = mean_interval(self.change)
        interval = (
            "a single input, hence no interval"
            if np.isnan(low)
            else f"95 % interval {low:+.2f} to {high:+.2f}"
        )
        if high < 0:
            verb = "smooths its tokens"
        elif low > 0:
            verb = "sharpens its tokens"
        else:
            verb = "neither smooths nor sharpens its tokens measurably"
        depth = len(self.by_attention)
        by_layer = (self.by_attention + self.by_ffn).mean(axis=1)
        sign = -1.0 if mean < 0 else 1.0
        where = int(np.argmax(sign * by_layer)) + 1
        attention, ffn = float(self.by_attention.sum(0).mean()), float(self.by_ffn.sum(0).mean())
        mover = "attention" if sign * attention > sign * ffn else "FFN"
        ends = np.exp(self.table["log_hfc_lfc"].iloc[[0, -1]])
        return (
            f"{self.model} {verb}: HFC/LFC goes from {ends.iloc[0]:.3g} to {ends.iloc[1]:.3g} over "
            f"{depth} layers (geometric means), most in layer {where}, and mainly by the {mover} "
            f"sublayers (change of log HFC/LFC: attention {attention:+.2f}, FFN {ffn:+.2f}). "
            f"Evidence: the residual stream of {self.inputs}, {self.counted} "
            f"(total change of log HFC/LFC {mean:+.2f}, {interval}){self._spectral_words()}."
        )

    def _spectral_words(self) -> str:
        if "consensus_share" not in self.table:
            return "; no spectra were taken"
        won = float(self.table["consensus_share"].iloc[1:].mean())
        case = "(image, layer)" if self.modality == "vision" else "(text, layer)"
        return (
            ", while in the spectra of attention and H alone, reading E2, consensus dominates "
            f"{100 * won:.1f} % of the {case} cases"
        )

    def words(self) -> str:
        """What the short table counts, and the summary."""
        spectra = (
            f" Spectra of {self.spectra} inputs; rho_Q:\ntheir median. A real h loses at consensus "
            "iff -s < h < 0; s: minimum over them."
            if self.spectra
            else ""
        )
        notes = "".join(f"\nNote: {note}." for note in self.notes)
        return (
            f"Means over {self.inputs}, {self.counted}; natural logarithms; cosines "
            f"signed, over pairs of\ndistinct tokens.{spectra}{notes}\n{self.summary()}"
        )

    def to_json_object(self) -> dict[str, Any]:
        """{schema_version, model, tokens, images, conventions, input, layers, summary, ...}.

        `layers` has one object a layer; `input` holds the metrics in front of the first. Unknown
        is null, infinite is "inf" or "-inf".
        """
        first, *layers = (
            {
                str(key): int(value) if key == "layer" else json_number(value)
                for key, value in record.items()
            }
            for record in self.table.to_dict("records")
        )
        plain = ("model", "modality", "tokens", "images", "spectra", "accounted")
        return {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in plain},
            "account_error": json_number(self.account_error),
            "av_error": json_number(self.av_error),
            "notes": list(self.notes),
            "conventions": CONVENTIONS,
            "input": {name: value for name, value in first.items() if name.startswith(NAMES)},
            "layers": layers,
            "summary": self.summary(),
        }

    def plot(self) -> Figure:
        """The report as one matplotlib figure: metrics, account, spectra and tilt by layer.

        matplotlib loads when it is drawn.
        """
        from oversmoothing.experiments.inspection.report_plot import draw

        title = f"{self.model}: {self.inputs}, {self.counted}"
        return draw(self.table, title, without_cls=self.cls)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write report.html (self-contained), report.json, report.csv and report.png.

        Returns their paths by kind. Raises `InputError` where the folder cannot be written.
        """
        place, picture = output_folder(folder), io.BytesIO()
        # Without a date or a version in it.
        self.plot().savefig(picture, format="png", dpi=130, metadata={"Software": None})
        contents: dict[str, str | bytes] = {
            "html": self._page(picture.getvalue()),
            "json": to_json(self.to_json_object()),
            "csv": self.table.to_csv(index=False),
            "png": picture.getvalue(),
        }
        paths = {kind: place / f"report.{kind}" for kind in contents}
        write_together({paths[kind]: content for kind, content in contents.items()})
        return paths

    def _page(self, picture: bytes) -> str:
        """HTML with the verdict, the table, the picture and the conventions."""
        source = resources.files("oversmoothing.experiments.inspection") / "report_page.html"
        environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        table = self.short_table()
        return environment.from_string(source.read_text("utf-8")).render(
            report=self,
            summary=self.summary(),
            titles=list(table.columns),
            rows=[
                [_cell(str(title), value) for title, value in row.items()]
                for row in table.to_dict("records")
            ],
            picture=base64.b64encode(picture).decode("ascii"),
            conventions=CONVENTIONS,
            provenance=provenance(),
        )


def _cell(title: str, value: float) -> str:
    if title == "layer":
        return str(int(value))
    return "–" if pd.isna(value) else f"{value:.3f}".replace("-", "−")
