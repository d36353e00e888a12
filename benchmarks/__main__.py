"""`make bench`: every speed and accuracy target of the project, measured in one run, as ratios.

Each run is added to the record, `benchmarks/history.jsonl`, and drawn beside the earlier ones of
the same machine, `benchmarks/history.png`. What has become worse by more than noise is named, and
the exit status is 1.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import history, running
from benchmarks.benchmark import Measurement
from benchmarks.peers.peer_code import running_peers_code
from oversmoothing.experiments.models.pictures import VARIABLE, real_inputs
from oversmoothing.simulations.state import choose_device
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import to_json, write_atomically


def parser() -> argparse.ArgumentParser:
    told = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Speed and accuracy against their targets, as ratios in one run. --only peers "
        "holds others' public layers against ours; without --run-peers-code it shows what was "
        "recorded.",
    )
    told.add_argument("--only", nargs="+", metavar="NAME", help="measurements whose name holds it")
    told.add_argument("--list", action="store_true", help="print their names and what they measure")
    told.add_argument(
        "--times", type=int, default=1, metavar="N",
        help="measure all N times over, and say in how many of the runs each target holds",
    )  # fmt: skip
    told.add_argument("--device", default="cpu", help="auto, cpu or cuda")
    told.add_argument("--data-dir", type=Path, metavar="DIR", help="or $OVERSMOOTHING_DATA")
    told.add_argument(
        "--run-peers-code",
        action="store_true",
        help="execute other people's Python, where DIR/peers holds it (nothing is fetched)",
    )
    told.add_argument("--json", action="store_true", help="print the rows as one JSON list")
    told.add_argument(
        "--record", type=Path, metavar="FILE", default=history.RECORD, help="where runs are added"
    )
    told.add_argument("--no-record", action="store_true", help="compare, and add nothing")
    told.add_argument("--report", type=Path, metavar="FILE", help="write rows and provenance too")
    return told


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 measured, 1 where a ratio became worse, 2 bad input.

    With --times 1 where a target does not hold in every run.
    """
    told = parser()
    asked = told.parse_args(argv)
    if asked.list and (asked.json or asked.report):
        told.error("--list prints names alone: leave out --json and --report")
    if asked.times < 1 or (asked.times > 1 and (asked.json or asked.report)):
        told.error("--times is at least 1; with more leave out --json and --report")
    try:
        return measure(asked)
    except InputError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


def measure(asked: argparse.Namespace) -> int:
    """The exit status."""
    chosen = running.select(running.measurements(), asked.only)
    if asked.list:
        for each in chosen:
            print(f"{each.name:44s} {each.summary}")
        return 0
    place = choose_device(asked.device).type
    data = real_inputs(asked.data_dir)
    if data is not None:
        os.environ[VARIABLE] = str(data)  # measurements are told the device alone
    past = history.Past.read(asked.record)
    if asked.times > 1:
        return repeat(asked, chosen, place, data)
    with running_peers_code(asked.run_peers_code):
        rows, worse = running.measure(chosen, place, data, past)
    if asked.json:
        print(to_json([row.to_json_object() for row in rows]), end="")
    else:
        print(running.table(rows))
    if asked.report is not None:
        write_atomically(asked.report, to_json(running.record(rows, place)))
        print(f"wrote {asked.report}", file=sys.stderr)
    if rows and not asked.no_record:
        history.append(rows, place, asked.record)
        picture = asked.record.with_suffix(".png")
        history.draw(history.Past.read(asked.record), place, picture, rows)
        print(f"added to {asked.record}; drawn in {picture}", file=sys.stderr)
    for name in worse:
        print(
            f"more than {history.NOISE:.0%} worse than the median of the latest "
            f"{history.LATEST} runs of this machine: {name}",
            file=sys.stderr,
        )
    return 1 if worse else 0


def repeat(
    asked: argparse.Namespace, chosen: list[Measurement], place: str, data: Path | None
) -> int:
    """Runs that are all counted: none is measured again for being worse than the record."""
    runs = []
    with running_peers_code(asked.run_peers_code):
        for k in range(asked.times):
            began = os.getloadavg()
            runs.append(running.measure(chosen, place, data, history.Past([]))[0])
            load = f"load {began[0]:.1f} before, {os.getloadavg()[0]:.1f} after"
            print(f"run {k + 1} of {asked.times}: {load}", file=sys.stderr)
            if runs[-1] and not asked.no_record:
                history.append(runs[-1], place, asked.record)
    words, every = running.held(runs)
    print(words)
    return 0 if every else 1


if __name__ == "__main__":
    sys.exit(main())
