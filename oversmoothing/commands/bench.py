"""`oversmoothing bench`: every speed and accuracy target of the project, measured in one run."""

import os
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt


def bench(
    only: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Measurements whose name holds this (several)."),
    ] = None,
    names: Annotated[
        bool, Option("--list", help="Print the measurements and what they measure.")
    ] = False,
    device: opt.Device = "cpu",
    data_dir: opt.DataDir = None,
    run_peers_code: Annotated[
        bool,
        Option(
            "--run-peers-code",
            help="Execute other people's Python, where DIR/peers holds it (nothing is fetched).",
        ),
    ] = False,
    as_json: opt.Json = False,
    report: opt.ReportFile = None,
) -> None:
    """Speed and accuracy against their targets, as ratios in one run.

    --report writes the table with its provenance as JSON. --only peers holds others' public layers
    against ours; without --run-peers-code it shows what was recorded.
    """
    from oversmoothing.experiments.bench import running
    from oversmoothing.experiments.models.pictures import VARIABLE, real_inputs
    from oversmoothing.experiments.peers.peer_code import running_peers_code
    from oversmoothing.simulations.engine.inputs import choose_device
    from oversmoothing.theory.support.files import to_json, write_atomically

    chosen = running.select(running.measurements(), only)
    if names:
        opt.only_named(report, as_json)
        for each in chosen:
            print(f"{each.name:44s} {each.summary}")
        return
    place = choose_device(device).type
    data = real_inputs(data_dir)
    if data is not None:
        os.environ[VARIABLE] = str(data)  # measurements are told the device alone
    with running_peers_code(run_peers_code):
        rows = running.measure(chosen, place, data)
    if as_json:
        print(to_json([row.to_json_object() for row in rows]), end="")
    else:
        print(running.table(rows))
    if report is not None:
        write_atomically(report, to_json(running.record(rows, place)))
        if not as_json:
            print(f"wrote {report}")
