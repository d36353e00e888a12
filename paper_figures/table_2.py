"""Table 2 of arXiv 2401.04301 (v1): errors with all, half and a tenth of the training images."""

import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.study.paper_numbers import DATA_EFFICIENCY
from oversmoothing.paper_figures import study_results
from oversmoothing.paper_figures.comparison import Comparison, in_words
from oversmoothing.paper_figures.figure_base import Context

NAME = "table_2"
TITLE = "Table 2: ViT, ViT+ and ViT\u2212 with fewer training images"
SHORT = (
    "Test errors by the share of the training images: as the paper prints them for CIFAR-100, and "
    "those of digits models where the study has been run into this folder."
)
NOT_SHOWN = (
    "Digits are no CIFAR-100: numbers are not comparable, only which model errs less. With few "
    "seeds that often stays open."
)
STUDY = "data-efficiency"


def data(context: Context) -> pd.DataFrame:
    """The paper's errors, and means and sd over seeds of the study's; see `study_results`."""
    paper = pd.DataFrame(
        [
            {"variant": variant, "x": fraction, "error": 100 - right, "sd": sd}
            for variant, row in DATA_EFFICIENCY.items()
            for fraction, (right, sd) in row.items()
        ]
    )
    runs = study_results.study_runs(context.results, STUDY)
    return study_results.joined(paper, ours(runs), STUDY, runs)


def ours(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean, sd and number of seeds of the base models by variant and fraction."""
    if not len(runs):
        return runs
    base = study_results.base_runs(runs)
    found = base.groupby(["variant", "fraction"])["test_error"].agg(["mean", "std", "count"])
    names = {"fraction": "x", "mean": "error", "std": "sd", "count": "seeds"}
    return found.reset_index().rename(columns=names)


def draw(table: pd.DataFrame) -> Figure:
    """Error against the share of the images."""
    return study_results.draw(table, "training images used (%)", STUDY, log=True)


def compared(table: pd.DataFrame) -> list[Comparison]:
    """The order of the models, and the numbers."""
    return study_results.compared(table, "Table 2")


def caption(table: pd.DataFrame) -> str:
    """What is shown, and each comparison in words."""
    return (
        f"{TITLE}. Left: {study_results.PAPER}, 100 less its accuracies, bars one sd. Right: "
        f"digits models of `oversmoothing study {STUDY}`, mean and sd over seeds; as many steps "
        "at a smaller share.\n" + in_words(compared(table))
    )
