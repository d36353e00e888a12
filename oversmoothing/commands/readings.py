"""`oversmoothing readings MODEL`: Table 1 of arXiv 2401.04301 for any model, in every reading."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import pandas as pd

from oversmoothing.commands.inspect import find_inputs, find_model
from oversmoothing.experiments.models.data import CIFAR100
from oversmoothing.theory.support.errors import InputError

NAMES = ("E1", "E2", "E3", "E4", "E4 heads")


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="as for `inspect`; the readings are for one input length")
    add("--readings", nargs="+", choices=NAMES, default=["E1", "E2"], help="default E1 E2")
    add("--folded", action="store_true", help="fold the gains of the norm into W_V first")
    add("--images", metavar="DIR", help=f"image files, or {CIFAR100}: its test images")
    add("--text", metavar="FILE", help="one text a line, for models that read text")
    add("--count", type=int, metavar="N", help="the first N inputs only")
    add("--costly", type=int, default=5, metavar="N", help="inputs of E3 (default %(default)s)")
    add("--data-dir", metavar="DIR", help="external models and data (or $OVERSMOOTHING_DATA)")
    add("--seed", type=int, default=0, help="of the run named by vit, vit+, vit-, vit-random")
    add("--device", default="cpu", help="of the forward pass (default %(default)s)")
    add("--out", default="results", metavar="DIR", help="folder of the runs (default %(default)s)")
    add("--csv", metavar="FILE", help="write the table there")


def run(arguments: Namespace) -> int:
    from oversmoothing.experiments.table1 import nearest, readings_of
    from oversmoothing.theory.support.files import write_atomically

    for name in ("count", "costly"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            raise InputError(f"--{name} is {value}: it must be at least 1")
    arguments.json = True  # no remark on which pictures stand in: the table says how many
    model = find_model(arguments)
    table = readings_of(
        {model.name: model},
        find_inputs(model, arguments),
        arguments.readings,
        "folded" if arguments.folded else "unfolded",
        arguments.costly,
    )
    print(describe(table))
    for column in ("DeiT-B/16", "ViT-B/16"):
        best = nearest(table, column).sort_values("distance").iloc[0]
        print(
            f"Nearest to the published column {column}: {best['reading']}, {best['distance']:.1f} "
            "points away (a comparison, no reproduction)."
        )
    if arguments.csv is not None:
        print(f"wrote {write_atomically(Path(arguments.csv), table.to_csv(index=False))}")
    return 0


def describe(table: pd.DataFrame) -> str:
    """Percent and 95 % interval over inputs, a row a reading, a column a class."""
    words = table.assign(
        cell=[
            f"{row.percent:.2f} [{row.percent_low:.2f}, {row.percent_high:.2f}]"
            for row in table.itertuples()
        ]
    )
    wide = words.pivot(index=["model", "norm", "reading", "cases"], columns="class", values="cell")
    return str(wide.reset_index().fillna("-").to_string(index=False))
