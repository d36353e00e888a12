"""What `inspect` returns: its findings, drawn and saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oversmoothing.experiments.inspection.findings import Findings
from oversmoothing.theory.support.files import output_folder, to_json, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Report(Findings):
    """`Findings` with a picture and files. matplotlib loads when it is drawn."""

    def plot(self) -> Figure:
        """The report as one matplotlib figure: metrics, account, spectra and tilt by layer."""
        from oversmoothing.experiments.inspection.report_plot import draw

        return draw(self)

    def save(self, folder: str | Path) -> dict[str, Path]:
        """Write report.html (self-contained), report.json, report.csv and report.png.

        Returns their paths by kind. Raises `InputError` where the folder cannot be written.
        """
        from oversmoothing.experiments.inspection.report_page import page, png

        place = output_folder(folder)
        picture = png(self.plot())
        return {
            "html": write_atomically(place / "report.html", page(self, picture)),
            "json": write_atomically(place / "report.json", to_json(self.to_json_object())),
            "csv": write_atomically(place / "report.csv", self.table.to_csv(index=False)),
            "png": write_atomically(place / "report.png", picture),
        }
