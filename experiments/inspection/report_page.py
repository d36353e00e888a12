"""The report as one self-contained page, the picture within it."""

import base64
import io
from importlib import resources

import pandas as pd
from jinja2 import Environment
from matplotlib.figure import Figure

from oversmoothing.experiments.inspection.findings import CONVENTIONS, Findings
from oversmoothing.theory.support.provenance import provenance

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


def columns(report: Findings) -> pd.DataFrame:
    """The short table of the report."""
    frame = report.to_frame()
    chosen = {name: title for name, title in COLUMNS.items() if name in frame}
    table = frame[list(chosen)].rename(columns=chosen)
    if "consensus %" in table:
        table["consensus %"] = 100 * table["consensus %"]
    return table


def words(report: Findings) -> str:
    """What the short table counts, and the summary."""
    spectra = (
        f" Spectra of {report.spectra} inputs; rho_Q:\ntheir median. A real h loses at consensus "
        "iff -s < h < 0; s: minimum over them."
        if report.spectra
        else ""
    )
    notes = "".join(f"\nNote: {note}." for note in report.notes)
    return (
        f"Means over {report.inputs}, {report.counted}; natural logarithms; cosines "
        f"signed, over pairs of\ndistinct tokens.{spectra}{notes}\n{report.summary()}"
    )


def png(figure: Figure) -> bytes:
    """A figure as PNG without a date in it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def page(report: Findings, picture: bytes) -> str:
    """HTML with the verdict, the table, the picture and the conventions."""
    source = (
        resources.files("oversmoothing.experiments.inspection")
        .joinpath("report_page.html")
        .read_text("utf-8")
    )
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    table = columns(report)
    return environment.from_string(source).render(
        report=report,
        summary=report.summary(),
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
