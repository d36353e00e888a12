"""Table 3 of arXiv 2401.04301 (v1): errors on corrupted images, by severity."""

import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.experiments.digits.corruptions import SEVERITIES
from oversmoothing.experiments.study.protocol import CORRUPTION
from oversmoothing.paper_figures import study_results
from oversmoothing.paper_figures.comparison import Comparison, in_words
from oversmoothing.paper_figures.digits_models import SHARED_VALUE
from oversmoothing.paper_figures.figure_base import Context

NAME = "table_3"
TITLE = "Table 3: ViT (ours: shared-value), ViT+ and ViT\u2212 on corrupted images"
SHORT = (
    "Test errors by the severity of the corruption: as the paper prints them for CIFAR-100, and "
    "ours of other models: those of the study in this folder, else the recorded runs."
)
NOT_SHOWN = (
    "Ours are other models, trained for fewer steps, or of other data, and corruptions are in the "
    "style of the benchmark, not the benchmark: only which model errs less can be compared."
)
STUDY = "corruption"


def data(context: Context) -> pd.DataFrame:
    """The paper's errors, and means and sd over seeds of ours; see `study_results.joined`."""
    paper = pd.DataFrame(
        [
            {"variant": variant, "x": severity, "error": 100 - right}
            for variant, row in CORRUPTION.items()
            for severity, right in zip(SEVERITIES, row, strict=True)
        ]
    ).assign(sd=float("nan"))
    found = study_results.studies(context.results, STUDY)
    return study_results.joined(paper, {data: (each, ours(each)) for data, each in found.items()})


def ours(study: study_results.Study) -> pd.DataFrame:
    """Mean, sd and number of seeds of the base models with all images, by variant and severity."""
    whole = study.base[study.base["fraction"] == 1.0]
    rows = [
        {"variant": variant, "x": severity, "error": own.mean(), "sd": own.std(), "seeds": len(own)}
        for variant, part in whole.groupby("variant", sort=False)
        for severity in SEVERITIES
        if len(own := part.get(f"error_at_{severity}", pd.Series(dtype=float)).dropna())
    ]
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame) -> Figure:
    """Error against severity."""
    return study_results.draw(table, "severity of the corruption", STUDY, log=False)


def compared(table: pd.DataFrame) -> list[Comparison]:
    """The order of the models, and the numbers."""
    return study_results.compared(table, "Table 3", "severities 0 to 5")


def caption(table: pd.DataFrame) -> str:
    """What is shown, and each comparison in words."""
    return (
        f"{TITLE}. Left: the paper (arXiv 2401.04301, v1), CIFAR-100, typed in, 100 less its "
        f"accuracies. Beside it ours, of `oversmoothing study {STUDY}`: means over the kinds of "
        f"corruption in the style of CIFAR-C. {study_results.in_caption(table)} {SHARED_VALUE}\n"
        + in_words(compared(table))
    )
