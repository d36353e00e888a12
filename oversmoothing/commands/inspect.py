"""`oversmoothing inspect MODEL`: does it smooth, where, by which sublayer, and why?"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oversmoothing.experiments.models.data import CIFAR100
from oversmoothing.theory.support.errors import InputError

if TYPE_CHECKING:
    from oversmoothing.experiments.inspection.report import Report
    from oversmoothing.experiments.models.model import Model


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "model",
        metavar="MODEL",
        help="vit, vit+, vit-, vit-random, the folder of a run; a Hugging Face folder or hub name; "
        "a timm-named checkpoint; or a folder within --data-dir",
    )
    add(
        "--images",
        metavar="DIR",
        help=f"image files, or {CIFAR100}: its test images in --data-dir (default: the digits "
        "validation images for the project's own models, else scikit-learn's photographs)",
    )
    add("--text", metavar="FILE", help="one text a line, for models that read text")
    add("--count", type=int, metavar="N", help="the first N inputs only")
    add("--spectra", type=int, metavar="N", help="take attention spectra of N inputs (0: none)")
    add("--batch-size", type=int, default=32, metavar="N", help="default %(default)s")
    add("--data-dir", metavar="DIR", help="external models and data (or $OVERSMOOTHING_DATA)")
    add("--json", action="store_true", help="print one JSON object")
    add("--seed", type=int, default=0, help="of the run named by vit, vit+, vit-, vit-random")
    add("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")
    add("--out", default="results", metavar="DIR", help="folder of the runs (default %(default)s)")
    add("--report", metavar="DIR", help="where the report goes (default: OUT/inspect/MODEL)")


def run(arguments: Namespace) -> int:
    from oversmoothing.experiments.inspection.inspect import inspect
    from oversmoothing.theory.support.files import to_json

    if arguments.count is not None and arguments.count < 1:
        raise InputError(f"--count is {arguments.count}: it must be at least 1")
    model = find_model(arguments)
    inputs = find_inputs(model, arguments)
    report = inspect(
        model,
        inputs,
        spectra=arguments.spectra,
        batch_size=arguments.batch_size,
        progress=not arguments.json,
    )
    folder = arguments.report or Path(arguments.out) / "inspect" / Path(model.name).name
    files = report.save(folder)
    if arguments.json:
        print(to_json(report.to_json_object()), end="")
    else:
        print(describe(report), end="")
        print(f"wrote {files['html']} (and .json, .csv, .png beside it)")
    return 0


def find_model(arguments: Namespace) -> Model:
    """The described model that the command line names."""
    from oversmoothing.experiments.digits.config import VARIANTS
    from oversmoothing.experiments.models.data import real_inputs
    from oversmoothing.experiments.models.sources import open_model
    from oversmoothing.simulations.engine.inputs import choose_device

    name = arguments.model
    device = choose_device(arguments.device)
    if name in VARIANTS:
        return open_model(_own_run(arguments, device), device=device).renamed(name)
    data = real_inputs(arguments.data_dir)
    inside = None if data is None else data / name
    if not Path(name).exists() and inside is not None and inside.exists():
        return open_model(inside, device=device).renamed(name)
    if not Path(name).exists() and "/" not in name:
        raise InputError(
            f"there is no model '{name}': give one of {', '.join(VARIANTS)}, the folder of a run "
            "or of a model, or owner/model on the Hugging Face hub"
        )
    found = open_model(name, device=device)
    return found.renamed(Path(name).name) if Path(name).exists() else found


def _own_run(arguments: Namespace, device: Any) -> Any:
    from oversmoothing.experiments.digits.config import default_config
    from oversmoothing.experiments.digits.training import trained

    name, results = arguments.model, Path(arguments.out)
    config = default_config(name, arguments.seed)
    if name != "vit-random" and not (results / config.folder_name()).exists():
        raise InputError(
            f"'{name}' (seed {config.seed}) has not been trained in '{results}': run "
            f"`oversmoothing train --variant {name} --seed {config.seed} --out {results}` first"
        )
    return trained(config, results, device=device).model


def find_inputs(model: Model, arguments: Namespace) -> Any:
    """Images or texts for the model; raises `InputError` for the other kind, and for none."""
    if model.modality == "text":
        return _texts(model, arguments)
    if arguments.text is not None:
        raise InputError(
            f"the model '{model.name}' reads images, not text: leave --text out, or give "
            "--images DIR"
        )
    return _images(model, arguments)


def _texts(model: Model, arguments: Namespace) -> list[str]:
    from oversmoothing.theory.support.files import read_text

    if arguments.images is not None or arguments.text is None:
        raise InputError(f"the model '{model.name}' reads text: give --text FILE, one text a line")
    texts = [line.strip() for line in read_text(arguments.text).splitlines() if line.strip()]
    if not texts:
        raise InputError(f"'{arguments.text}' holds no text: write one text a line in it")
    return texts[: arguments.count]


def _images(model: Model, arguments: Namespace) -> Any:
    from oversmoothing.experiments.digits.images import digits
    from oversmoothing.experiments.models.inputs import GreyImages
    from oversmoothing.experiments.models.pictures import named_pictures, photographs

    count = arguments.count
    if arguments.images is not None:
        return named_pictures(arguments.images, count, arguments.data_dir)
    if isinstance(model.prepare, GreyImages):
        return digits().validation.pixels[:count]
    if not arguments.json:
        print("no --images: scikit-learn's two photographs and crops of them", file=sys.stderr)
    return photographs(count or 8)


def describe(report: Report) -> str:
    """The report as a table, a row a layer, and its summary."""
    from oversmoothing.experiments.inspection.report_page import columns

    text = columns(report).to_string(index=False, float_format=lambda x: f"{x:.3f}", na_rep="-")
    spectra = (
        f" Spectra of {report.spectra} inputs; rho_Q:\ntheir median. A real h loses at consensus "
        "iff -s < h < 0; s: minimum over them."
        if report.spectra
        else ""
    )
    notes = "".join(f"\nNote: {note}." for note in report.notes)
    return (
        f"{text}\n\nMeans over {report.inputs}, {report.counted}; natural logarithms; cosines "
        f"signed, over pairs of\ndistinct tokens.{spectra}{notes}\n{report.summary()}\n"
    )
