"""`oversmoothing enclose`: a trained network's smoothing, on an input or a box of them, proved."""

from pathlib import Path
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError


def enclose(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.FewInputs = 1,
    box: Annotated[
        bool, Option("--box", help="A box of images around each, in place of the image.")
    ] = False,
    eps: Annotated[
        float | None,
        Option(
            metavar="NUMBER",
            help="Of the box: how far each pixel, as the model reads it, may be off "
            "(default: the most that is proved).",
        ),
    ] = None,
    layer: Annotated[
        list[int] | None, Option(metavar="N", min=1, help="Of the box: these layers alone.")
    ] = None,
    check: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="Recompute what these files claim of MODEL, and no more."),
    ] = None,
    data_dir: opt.DataDir = None,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Metrics of every layer of a trained model, proved for an input or a box of them.

    HFC/LFC, cosines and effective rank as theorems about MODEL and an input: the forward pass runs
    in rigorous arithmetic, and gives intervals that contain what exact arithmetic would. Writes
    enclosure-1.json and so on into enclose/MODEL of the folder of results, each after another route
    has confirmed it. --box: over all images within --eps of one, does HFC/LFC fall or rise over a
    layer? Exit status of --check: 0 accepted, 1 refused.
    """
    import torch

    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.enclosures.run import (
        check_file,
        prove_boxes,
        prove_inputs,
        write,
    )
    from oversmoothing.experiments.models.sources import named_inputs, named_model
    from oversmoothing.theory.support.files import output_folder

    if (eps is not None or layer) and not box:
        raise InputError("--eps and --layer are of a box: give --box too")
    if eps is not None and not 0 < eps < sizes.REAL:
        raise InputError(f"--eps is {eps}: give a positive number")

    opened_model = named_model(model, out, device="cpu", data_dir=data_dir, dtype=torch.float64)
    if check:
        found = [check_file(opened_model, str(path)) for path in check]
        for path, each in zip(check, found, strict=True):
            print(f"{path}: {'accepted' if each.accepted else 'REFUSED'}: {each.words}")
        return 0 if all(each.accepted for each in found) else 1
    inputs = named_inputs(opened_model, images=images, text=text, count=count, data_dir=data_dir)
    inputs = inputs[:count]
    folder = output_folder(opt.beside(out / "enclose" / Path(opened_model.name).name))
    if box:
        proofs = prove_boxes(opened_model, inputs, eps, layer or [])
    else:
        single = named_model(model, out, device="cpu", data_dir=data_dir, dtype=torch.float32)
        proofs = prove_inputs(opened_model, single, inputs)
    for number, proof in enumerate(proofs, 1):
        if proof.table is not None:
            print(table_text(proof.table, "{:.1e}".format))
        print(f"{proof.words}\nwrote {write(folder, number, proof)}", flush=True)
    return 0
