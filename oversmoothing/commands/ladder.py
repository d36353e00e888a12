"""`oversmoothing ladder`: which cheap theory predicts the smoothing of a trained model?"""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def _number(least: int, help: str) -> Any:
    return Option(metavar="N", min=least, max=sizes.SEED, help=help)


def ladder(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    tokens: Annotated[
        int, _number(1, "Texts are cut to N tokens; shorter ones are left out.")
    ] = 64,
    data_dir: opt.DataDir = None,
    calibration: Annotated[int, _number(1, "Inputs of P0''', P6 and P7.")] = 100,
    standard: Annotated[int, _number(1, "Of those, inputs of P0 to P5.")] = 100,
    held_out: Annotated[int, _number(1, "Inputs that the scores are taken on.")] = 200,
    held_out_from: Annotated[
        int, _number(0, "Leave out the first N of the held-out draw: those of an earlier run.")
    ] = 0,
    copies: Annotated[
        int, _number(0, "Altered copies of each calibration image for the kernel rungs.")
    ] = 0,
    first_layers: Annotated[
        int, _number(1, "Layers that P7's finer grid follows: cost against score.")
    ] = 3,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """Which cheap theory predicts the smoothing of a trained model, scored.

    Without --images: CIFAR-100 in --data-dir. Writes ladder.json, ladder.csv, ladder_layers.csv.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.experiments.ladder import ladder as climb
    from oversmoothing.experiments.ladder.climb import split_inputs
    from oversmoothing.experiments.models.named import named_model
    from oversmoothing.simulations.provenance import provenance
    from oversmoothing.theory.support.files import output_folder, to_json, write_together

    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
    # By its own name alone: what is written says nothing of the folders of this machine.
    opened = opened.renamed(Path(opened.name).name)
    parts = split_inputs(
        opened,
        images=images,
        text=text,
        tokens=tokens,
        calibration=calibration,
        held_out=held_out,
        held_out_from=held_out_from,
        seed=seed,
        data_dir=data_dir,
    )
    folder = output_folder(out)
    result = climb(
        opened,
        parts.calibration,
        parts.held_out,
        standard=standard,
        copies=copies,
        first_layers=first_layers,
        seed=seed,
    )
    found = {
        **result.to_json_object(),
        "inputs": parts.origin,
        "held_out_from": held_out_from,
        "provenance": provenance(),
    }
    write_together(
        {
            folder / "ladder.json": to_json(found),
            folder / "ladder.csv": result.to_frame().to_csv(index=False),
            folder / "ladder_layers.csv": result.by_layer().to_csv(),
        }
    )
    if as_json:
        print(to_json(found), end="")
    else:
        print(f"{table_text(result.score_table(), '{:.3f}'.format)}\n\n{result.words()}")
        print(f"wrote {folder / 'ladder.json'} (and two tables beside it)")
