"""`oversmoothing probe MODEL KIND`: one experiment on a trained model, a function a kind."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from oversmoothing.commands import Row, forms, options as opt
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError

if TYPE_CHECKING:
    from oversmoothing.simulations.drawing.result import Result

_READINGS = ("E1", "E2", "E3", "E4", "E4 heads")


def probe(
    model: opt.Model,
    kind: Annotated[str, Argument(metavar="KIND",
        help="one of the forms below, each with options of its own", autocompletion=lambda: list(
        forms("probe")))],
) -> None:  # fmt: skip
    """Run one experiment on a trained model.

    The inputs are images (--images, --count) or texts (--text); results go to --out.
    """


def of_experiment(row: Row, measure: "Callable[..., Result]") -> Callable[..., None]:
    """The kind of `probe` that is measure(model, inputs, seed=seed), with the options of all."""

    def command(
        model: opt.Model,
        images: opt.Images = None,
        text: opt.Text = None,
        count: opt.Count = 8,
        tokens: opt.CutTexts = None,
        part: opt.Part = None,
        data_dir: opt.DataDir = None,
        seed: opt.Seed = 0,
        device: opt.Device = "auto",
        plot: opt.Plot = False,
        as_json: opt.Json = False,
        out: opt.Out = opt.RESULTS,
    ) -> None:
        opened, inputs = opt.model_and_inputs(
            model, out, images, text, count, data_dir, quiet=as_json, tokens=tokens, seed=seed,
            device=device, part=part,
        )  # fmt: skip
        folder = opt.new_folder(out / row.name.split()[-1] / opened.name)
        opt.finish(measure(opened, inputs, seed=seed), folder, as_json, plot)

    command.__doc__ = measure.__doc__
    return command


def stability(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = 8,
    tokens: opt.CutTexts = None,
    size: Annotated[float, opt.positive("size of real perturbations, relative to the stream",
        "S")] = 0.01,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Say whether small differences between tokens grow or die, layer by layer.

    It differentiates the model's own blocks in float64: at equal tokens (consensus), near them and
    at the tokens of your inputs. Beside that stand the formula of T8c and perturbations that were
    really made. It also says what the stack would do if it were looped. Writes stability.json and
    tables into stability/MODEL of the folder of results.
    """
    import torch

    from oversmoothing.experiments.repeated.stability import stability as measure

    opened, inputs = opt.model_and_inputs(
        model, out, images, text, count, data_dir, quiet=as_json, tokens=tokens, seed=seed,
        device="cpu", dtype=torch.float64, part=part,
    )  # fmt: skip
    folder = opt.new_folder(out / "stability" / opened.name)
    opt.finish(measure(opened, inputs, size=size, seed=seed), folder, as_json, plot)


def loop(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = 20,
    every: Annotated[int, opt.whole("take every N-th input only")] = 1,
    tokens: opt.CutTexts = None,
    loops: Annotated[int, opt.whole("number of loops", 20, sizes.POINTS *1000)] = 200,
    group: Annotated[list[str] | None, Option(metavar="A-B",
        help="loop layers A to B in turn (several; default each block)")] = None,
    recall: Annotated[float | None, opt.real(
        "look for fixed points of X <- f(X) + B X_0, and predict nothing", "B",
        -sizes.REAL)] = None,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Say whether tokens collapse if a block of a trained model is repeated.

    Attention is recomputed in every loop. What each block (or --group) will do is predicted before
    it is looped. The predictor is chosen on half of the blocks and inputs, and scored on the rest.
    Writes loop.json and tables into loop/MODEL of the folder of results.
    """
    import torch

    from oversmoothing.experiments.repeated.loop import loop as run, recalled

    groups = None if group is None else [_layers(each) for each in group]
    opened, inputs = opt.model_and_inputs(
        model, out, images, text, count * every, data_dir, quiet=as_json, tokens=tokens, seed=seed,
        device="cpu", part=part, dtype=torch.float32,
    )  # fmt: skip
    folder = opt.new_folder(out / "loop" / opened.name)
    how: dict[str, Any] = {"groups": groups, "loops": loops, "seed": seed}
    inputs = inputs[::every]
    if recall is None:
        opt.finish(run(opened, inputs, **how), folder, as_json, plot)
    else:
        opt.finish(recalled(opened, inputs, recall, **how), folder, as_json, plot)


def _layers(word: str) -> tuple[int, ...]:
    # No model has a million layers, and a longer number would be a list without end.
    named = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", word)
    first, last = (0, -1) if named is None else (int(named[1]), int(named[2] or named[1]))
    if first <= last:
        return tuple(range(first, last + 1))
    raise InputError(
        f"--group {word[:40]} names no layers: write 3, or 1-12 for layers 1 to 12 in turn"
    )


def flips(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = 40,
    tokens: opt.CutTexts = None,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """Say what the sign of a norm's gain does, layer by layer, predicted and measured.

    In one layer at a time the gain of attention's norm changes its sign, with and without the
    shift. The effect on HFC/LFC, over the layer and at the end, is compared with what T8d and T8e
    predict, on half of the inputs (give at least 4). Writes flips.json and tables into flips/MODEL.
    """
    import torch

    from oversmoothing.experiments.repeated.flips import sign_flips

    if count < 4:
        raise InputError(f"--count is {count}: half of the inputs are scored, give at least 4")
    opened, inputs = opt.model_and_inputs(
        model, out, images, text, count, data_dir, quiet=as_json, tokens=tokens, seed=seed,
        device="cpu", part=part, dtype=torch.float32,
    )  # fmt: skip
    folder = opt.new_folder(out / "flips" / opened.name)
    opt.finish(sign_flips(opened, inputs, seed=seed), folder, as_json, plot)


def intervene(
    model: opt.Model,
    shift: Annotated[list[float] | None, opt.real(
        "add D to every eigenvalue of H (several; default -.1 -.05 .05 .1)", "D", -sizes.REAL)
        ] = None,
    into_disc: Annotated[list[float] | None, opt.real(
        "move eigenvalues outside the disc this part of the way into it (default .5)", "T",
        most=1)] = None,
    head: Annotated[list[str] | None, Option(metavar="L.H",
        help="shift head H of layer L alone as well (several; from 1)")] = None,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = 50,
    every: Annotated[int, opt.whole("take every N-th input only")] = 1,
    tokens: opt.CutTexts = None,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Move the eigenvalues of H in a trained model and see what becomes of its tokens.

    Nothing is retrained. Every change is compared with random changes of the same norm, and its
    effect on HFC/LFC is predicted from the unchanged model before it is measured. Negative shifts
    sharpen, positive ones smooth. Writes intervene.json and tables into intervene/MODEL of the
    folder of results.
    """
    from oversmoothing.experiments.study.lever import DOSES, intervene as measure

    heads = []
    for each in head or []:
        named = re.fullmatch(r"([0-9]{1,6})\.([0-9]{1,6})", each)
        if named is None:
            raise InputError(f"--head {each[:40]} names no head: write 3.1, layer 3, head 1")
        heads.append((int(named[1]) - 1, int(named[2]) - 1))
    opened, inputs = opt.model_and_inputs(
        model, out, images, text, count * every, data_dir, quiet=as_json, tokens=tokens, seed=seed,
        device="cpu", part=part,
    )  # fmt: skip
    folder = opt.new_folder(out / "intervene" / opened.name.replace(":", "-"))
    alone = shift is None and into_disc is None
    doses = shift if shift is not None else DOSES if alone or heads else ()
    parts = into_disc if into_disc is not None else (0.5,) if alone else ()
    result = measure(opened, inputs[::every], seed=seed, doses=doses, parts=parts, heads=heads)
    opt.finish(result, folder, as_json)


def tilt(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Sample = None,
    steer: Annotated[bool, Option("--steer",
        help="steer the model towards random directions too")] = False,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Say whether a trained model's tokens turn as in the power method.

    They could turn towards the eigenvector of largest |lambda| or of largest |1 + lambda|: two
    theories, told apart where these differ. --steer tries to turn them elsewhere. Writes tilt.csv,
    and with --steer steered.csv.
    """
    from oversmoothing.experiments.power_method.tilt import tilts
    from oversmoothing.theory.support.files import output_folder

    opened, inputs = opt.model_and_inputs(
        model, out, images, text, count, data_dir, quiet=as_json, seed=seed, device="cpu"
    )
    opt.finish(tilts(opened, inputs, seed=seed, steer=steer), output_folder(out), as_json)


def readings(
    model: opt.Model,
    readings: Annotated[list[str] | None, opt.one_of("reading", _READINGS,
        "ways to count (default E1 E2)")] = None,
    folded: Annotated[bool, Option("--folded",
        help="fold the gains of the norm into W_V first")] = False,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Sample = None,
    costly: Annotated[int, opt.whole("number of inputs for E3")] = 8,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Say which eigenvalue dominates a trained model's layers, as Table 1 of the paper counts it.

    The paper does not say what it counts as one case, so there are several ways: each head alone
    (E1), the mean over heads (E2), all heads together (E3), each eigenvalue of H alone (E4), each
    of each head (E4 heads). Inputs must have one length. Writes readings.csv and value_spectra.csv,
    which says where the eigenvalues of H lie and how far H has turned from its start.
    """
    from oversmoothing.experiments.study.readings import readings as read
    from oversmoothing.theory.support.files import output_folder

    opt.needs("E3" in (readings or ()), "--readings E3", "--costly")
    # No remark on which pictures stand in: the table says how many.
    opened, inputs = opt.model_and_inputs(
        model, out, images, text, count, data_dir, quiet=True, seed=seed, device=device
    )
    folder = output_folder(out)
    chosen = list(readings or ("E1", "E2"))
    result = read(opened, inputs, chosen, "folded" if folded else "unfolded", costly)
    opt.finish(result, folder, as_json)


def ladder(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    tokens: Annotated[int, opt.whole("longest text in tokens", least=2)] = 64,
    data_dir: opt.DataDir = None,
    calibration: Annotated[int, opt.whole("number of inputs of P0''', P6 and P7")] = 100,
    standard: Annotated[int, opt.whole("number of those that P0 to P5 take")] = 100,
    held_out: Annotated[int, opt.whole("number of inputs that the scores are taken on")] = 200,
    held_out_from: Annotated[int, opt.whole(
        "leave out the first N of the held-out draw, those of an earlier run", 0)] = 0,
    copies: Annotated[int, opt.whole(
        "number of altered copies of a calibration image for the kernel rungs", 0)] = 0,
    first_layers: Annotated[int, opt.whole(
        "number of layers that P7's finer grid follows, cost against score")] = 3,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Which cheap theory predicts the smoothing of a trained model, scored.

    Without --images: CIFAR-100 in --data-dir. Texts shorter than --tokens are left out. Writes
    ladder.json, tables and a page.
    """
    from oversmoothing.experiments.ladder import ladder as climb
    from oversmoothing.experiments.ladder.climb import split_inputs
    from oversmoothing.experiments.models.sources import named_model
    from oversmoothing.theory.support.files import output_folder

    opt.look_up(images, text, data_dir)
    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
    opened = opened.renamed(Path(opened.name).name)
    opt.needs(opened.modality == "text", "a model that reads text", "--text", "--tokens")
    opt.needs(opened.modality != "text", "a model that reads images", "--images")
    parts = split_inputs(
        opened, images=images, text=text, tokens=tokens, calibration=calibration,
        held_out=held_out, held_out_from=held_out_from, seed=seed, data_dir=data_dir,
    )  # fmt: skip
    folder = output_folder(out)
    result = climb(
        opened, parts.calibration, parts.held_out, standard=standard, copies=copies,
        first_layers=first_layers, seed=seed,
        origin={"inputs": parts.origin, "held_out_from": held_out_from},
    )  # fmt: skip
    opt.finish(result, folder, as_json)


def exponents(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    scale: Annotated[float, opt.real("factor of the heads' summed weights", "S")] = 0.5,
    depth: opt.Depth = 20_000,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Rates of a trained model's layers, repeated: Lyapunov exponents against measured slopes.

    The layers are operators on one input. --depth is a multiple of 200. Writes exponents.csv and
    exponents.json. Exit status 1: a slope is further from what is predicted than so many layers
    leave open.
    """
    from oversmoothing.experiments.repeated.blocks import cycled_layers
    from oversmoothing.simulations.against_theory import exponents as runs
    from oversmoothing.theory.support.files import output_folder

    folder = output_folder(out)
    opened, inputs = opt.model_and_inputs(
        model, out, images, text, 1, data_dir, quiet=True, seed=seed, device="cpu"
    )
    attention, weights, X0 = cycled_layers(opened, inputs, scale)
    run = runs.exponent_run(f"{opened.name}, repeated", attention, weights, X0, depth)
    asked = {"model": opened.name, "depth": depth, "scale": scale, "seed": seed}
    opt.finish(runs.exponents([run], asked), folder, as_json)
    return int(not run.agrees)


def certified(
    model: opt.Model,
    images: opt.Images = None,
    count: opt.Count = 8,
    data_dir: opt.DataDir = None,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:
    """Certified verdicts on the attention of a trained vision model.

    Writes certified_attention.csv and certified_attention.json.
    """
    import torch

    from oversmoothing.experiments.inspection.spectra import certified_attention
    from oversmoothing.theory.support.files import output_folder

    opened, inputs = opt.model_and_inputs(
        model, out, images, None, count, data_dir, quiet=True, dtype=torch.float64
    )
    folder = output_folder(out)
    opt.finish(certified_attention(opened, inputs), folder, as_json)
