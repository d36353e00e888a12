"""Table 2 of arXiv 2401.04301 (v1): errors with all, half and a tenth of the training images."""

import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.study.protocol import DATA_EFFICIENCY
from oversmoothing.paper_figures import study_results
from oversmoothing.paper_figures.comparison import Comparison, in_words
from oversmoothing.paper_figures.digits_models import SHARED_VALUE
from oversmoothing.paper_figures.figure_base import Context

NAME = "table_2"
TITLE = "Table 2: ViT (ours: shared-value), ViT+ and ViT\u2212 with fewer training images"
SHORT = (
    "Test errors by the share of the training images: as the paper prints them for CIFAR-100, and "
    "ours of other models: those of the study in this folder, else the recorded runs."
)
NOT_SHOWN = (
    "Ours are other models, trained for fewer steps, or of other data: numbers are not comparable, "
    "only which model errs less. With few seeds that often stays open."
)
STUDY = "data-efficiency"


def data(context: Context) -> pd.DataFrame:
    """The paper's errors, and means and sd over seeds of ours; see `study_results.joined`."""
    paper = pd.DataFrame(
        [
            {"variant": variant, "x": fraction, "error": 100 - right, "sd": sd}
            for variant, row in DATA_EFFICIENCY.items()
            for fraction, (right, sd) in row.items()
        ]
    )
    found = study_results.studies(context.results, STUDY)
    return study_results.joined(paper, {data: (each, ours(each)) for data, each in found.items()})


def ours(study: study_results.Study) -> pd.DataFrame:
    """Mean, sd and number of seeds of the base models by variant and fraction."""
    by = study.base.groupby(["variant", "fraction"], sort=False)["test_error"]
    names = {"fraction": "x", "mean": "error", "std": "sd", "count": "seeds"}
    found = by.agg(["mean", "std", "count"]).reset_index().rename(columns=names)
    return found.sort_values(["variant", "x"], ascending=[True, False], ignore_index=True)


def draw(table: pd.DataFrame) -> Figure:
    """Error against the share of the images."""
    return study_results.draw(table, "training images used (%)", STUDY, log=True)


def compared(table: pd.DataFrame) -> list[Comparison]:
    """The order of the models, and the numbers."""
    return study_results.compared(table, "Table 2", "100, 50 and 10 % of the images")


def caption(table: pd.DataFrame) -> str:
    """What is shown, and each comparison in words."""
    return (
        f"{TITLE}. Left: the paper (arXiv 2401.04301, v1), CIFAR-100, typed in, 100 less its "
        f"accuracies, bars one sd. Beside it ours, of `oversmoothing study {STUDY}`; as many steps "
        f"at a smaller share. {study_results.in_caption(table)} {SHARED_VALUE}\n"
        + in_words(compared(table))
    )
