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
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.power_method.steering import steer as run
    from oversmoothing.theory.support.files import to_json, write_atomically

    result = run(draws, seed)
    if report is not None:
        write_atomically(report, result.table.to_csv(index=False))
    cases = result.tables["cases"].to_json_object()
    print(to_json(cases) if as_json else f"{result.text(table_text)}\n", end="")
    return int(not result.table["right"].mean() >= REQUIRED)
