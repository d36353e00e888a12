"""`oversmoothing certify-model MODEL`: certified verdicts on the attention of a vision model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from oversmoothing.theory.support.errors import InputError


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="a vision model: folder, checkpoint or hub name")
    add("--images", metavar="DIR", help="image files, or cifar100: its test images in --data-dir "
        "(default: scikit-learn's photographs)")  # fmt: skip
    add("--count", type=int, default=5, help="images (default %(default)s)")
    add("--data-dir", metavar="DIR", help="external models and data (or $OVERSMOOTHING_DATA)")
    add("--out", metavar="DIR", help="write certified_attention.csv there")


def run(arguments: Namespace) -> int:
    import torch

    from oversmoothing.experiments.inspection.certified_attention import (
        certified_attention,
        summary,
    )
    from oversmoothing.experiments.models.pictures import named_pictures, photographs
    from oversmoothing.experiments.models.sources import open_model
    from oversmoothing.theory.support.files import write_atomically

    if arguments.count < 1:
        raise InputError(f"--count is {arguments.count}: it must be at least 1")
    model = open_model(arguments.model, dtype=torch.float64)
    if arguments.images is None:
        images = photographs(arguments.count)
    else:
        images = list(named_pictures(arguments.images, arguments.count, arguments.data_dir))
    table = certified_attention(model, images)
    print(summary(table))
    if arguments.out is not None:
        path = Path(arguments.out) / "certified_attention.csv"
        print(f"wrote {write_atomically(path, table.to_csv(index=False))}")
    return 0
