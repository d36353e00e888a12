"""What `oversmoothing train` prints of its models."""

import pandas as pd

from oversmoothing.experiments.digits.training import TrainedModel
from oversmoothing.experiments.models.model import start_spread


def training_table(models: list[tuple[TrainedModel, bool]]) -> pd.DataFrame:
    """A row for each model; the flag says that it was trained before.

    "h safe": the share of eigenvalues of H at which consensus loses under the attention of the
    probe images (T3b), over layers and images: what leaves it shows here. "cos(H_start, H_end)":
    how far H has turned from its draw, smallest to largest over the layers; 1 is not at all.
    """
    rows = []
    for model, stored in models:
        log, metrics = model.run.log, model.run.metrics
        kept = log[log["epoch"] == metrics["selected_epoch"]]
        rows.append(
            {
                "model": metrics["variant"],
                "seed": model.config.seed,
                "test accuracy": f"{metrics['test_correct']}/{metrics['test_count']} = "
                f"{100 * metrics['test_accuracy']:.2f} %",
                "epoch kept": metrics["selected_epoch"],
                "Re h": f"{kept['h_real_min'].min():.3f} to {kept['h_real_max'].max():.3f}",
                "cos(H_start, H_end)": start_spread(model.model.cos_start),
                "h safe": f"{100 * (1 - kept['outside_share'].mean()):.0f} %",
                "seconds": "cached" if stored else f"{metrics['seconds']:.1f}",
                # A byte of a path that is no text in any encoding is written as in JSON.
                "folder": str(model.run.folder).encode("utf-8", "backslashreplace").decode("utf-8"),
            }
        )
    return pd.DataFrame(rows)
