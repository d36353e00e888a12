"""`oversmoothing steer`: from which alpha on does F + alpha u w^T turn a layer's tokens?"""

from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes

# Of the predictions, that must be right.
REQUIRED = 0.95


def steer(
    draws: Annotated[
        int, Option(metavar="N", min=1, max=sizes.POINTS, help="How many layers are drawn.")
    ] = 200,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    report: opt.ReportFile = None,
) -> int:
    """From which strength on a rank-one change of F turns the tokens of linear layers.

    Exit status 1: fewer than 95 % are right. --report writes the table as CSV. Of a trained model:
    `tilt --steer`.
    """
    from oversmoothing.experiments.power_method.steering import threshold_table, words
    from oversmoothing.theory.support.files import to_json, write_atomically

    table = threshold_table(draws, seed)
    if report is not None:
        write_atomically(report, table.to_csv(index=False))
    print(to_json(table.to_dict("records")) if as_json else f"{words(table)}\n", end="")
    return int(not table["right"].mean() >= REQUIRED)
