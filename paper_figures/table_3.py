"""Table 3 of arXiv 2401.04301 (v1): errors on corrupted images, by severity."""

import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.study.paper_numbers import CORRUPTION
from oversmoothing.paper_figures import study_results
from oversmoothing.paper_figures.comparison import Comparison, in_words
from oversmoothing.paper_figures.figure_base import Context

NAME = "table_3"
TITLE = "Table 3: ViT, ViT+ and ViT\u2212 on corrupted images"
SHORT = (
    "Test errors by the severity of the corruption: as the paper prints them for CIFAR-100, and "
    "those of digits models where the study has been run into this folder."
)
NOT_SHOWN = (
    "Digits are no CIFAR-100, and their corruptions are in the style of its benchmark, not the "
    "benchmark: only which model errs less can be compared."
)
STUDY = "corruption"


def data(context: Context) -> pd.DataFrame:
    """The paper's errors, and means and sd over seeds of the study's; see `study_results`."""
    paper = pd.DataFrame(
        [
            {"variant": variant, "x": severity, "error": 100 - right}
            for variant, row in CORRUPTION.items()
            for severity, right in zip(SEVERITIES, row, strict=True)
        ]
    ).assign(sd=float("nan"))
    runs = study_results.study_runs(context.results, STUDY)
    return study_results.joined(paper, ours(runs), STUDY, runs)


def ours(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean, sd and number of seeds of the base models with all images, by variant and severity."""
    if not len(runs):
        return runs
    base = study_results.base_runs(runs)
    base = base[base["fraction"] == 1.0]
    rows = [
        {"variant": variant, "x": severity, "error": own.mean(), "sd": own.std(), "seeds": len(own)}
        for variant, part in base.groupby("variant", sort=False)
        for severity in SEVERITIES
        if len(own := part[f"error_at_{severity}"].dropna())
    ]
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Error against severity."""
    return study_results.draw(table, "severity of the corruption", STUDY, log=False)


def compared(table: pd.DataFrame) -> list[Comparison]:
    """The order of the models, and the numbers."""
    return study_results.compared(table, "Table 3")


def caption(table: pd.DataFrame) -> str:
    """What is shown, and each comparison in words."""
    return (
        f"{TITLE}. Left: {study_results.PAPER}, 100 less its accuracies. Right: digits models of "
        f"`oversmoothing study {STUDY}`, means over thirteen kinds of corruption in the style of "
        "CIFAR-C, mean and sd over seeds.\n" + in_words(compared(table))
    )
