"""`oversmoothing probe MODEL KIND`: one experiment on a trained model, a function a kind."""

import re
import sys
from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from oversmoothing.commands import Row, forms, options as opt
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.files import output_folder

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


# What kinds share, before and behind options of their own: each with its usual value.
_READ: dict[str, tuple[Any, Any]] = {
    "model": (opt.Model, Parameter.empty), "images": (opt.Images, None), "text": (opt.Text, None),
    "count": (opt.Count, 8), "every": (Annotated[int, opt.whole("take every N-th input only")], 1),
    "tokens": (opt.CutTexts, None),
}  # fmt: skip
_ELSE: dict[str, tuple[Any, Any]] = {
    "part": (opt.Part, None), "data_dir": (opt.DataDir, None), "seed": (opt.Seed, 0),
    "device": (opt.Device, "auto"), "plot": (opt.Plot, False), "as_json": (opt.Json, False),
    "out": (opt.Out, opt.RESULTS),
}  # fmt: skip
_OFTEN = "images text count tokens part seed plot"


def _kind(
    shared: str, *, count: int | None = 8, apart: bool = True, quiet: bool = False, dtype: str = "",
    device: str = "auto",
) -> Callable[[Callable[..., Any]], Callable[..., int]]:  # fmt: skip
    """The command of measure(model, inputs, seed, ...), whose keywords are options of its own.

    It returns a `Result`, or one with the exit status. shared: options of `_READ` and `_ELSE` that
    not all kinds have; without "count" one input is read. count: how many usually, None for all.
    apart: results lie in a folder KIND/MODEL. quiet: nothing is remarked on the inputs. dtype,
    device: of the model.
    """
    usual = {"count": (opt.Sample if count is None else opt.Count, count)}
    names = {"model", "data_dir", "as_json", "out", *shared.split()}

    def chosen(options: dict[str, tuple[Any, Any]]) -> list[Parameter]:
        return [Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=option)
                for name, (option, default) in options.items() if name in names]  # fmt: skip

    def command_of(measure: Callable[..., Any]) -> Callable[..., int]:
        own = [each for each in signature(measure).parameters.values()
               if each.kind is Parameter.KEYWORD_ONLY]  # fmt: skip

        def command(
            model: str, out: Path, data_dir: Path | None, as_json: bool, images: str | None = None,
            text: Path | None = None, count: int | None = 1, every: int = 1,
            tokens: int | None = None, seed: int = 0, plot: bool = True, **given: Any,
        ) -> int:  # fmt: skip
            import torch

            from oversmoothing.experiments.models import sources

            asked = {each.name: given.pop(each.name) for each in own}
            how = {"device": device, "dtype": getattr(torch, dtype) if dtype else None, **given}
            opt.show_progress()
            opt.look_up(images, text, data_dir)
            opened = sources.named_model(model, out, seed=seed, data_dir=data_dir, **how)
            # By its own name alone: what is written says nothing of the folders of this machine.
            opened = opened.renamed(Path(opened.name).name)
            sources.cut_texts([opened], tokens)
            inputs = sources.named_inputs(
                opened, images=images, text=text, count=count and count * every, data_dir=data_dir,
                quiet=quiet or as_json,
            )  # fmt: skip
            folder = out / measure.__name__ / opened.name.replace(":", "-")
            if not asked.get("dry_run"):
                folder = opt.new_folder(folder) if apart else output_folder(out)
            answer = measure(opened, inputs if every == 1 else inputs[::every], seed, **asked)
            result, status = answer if isinstance(answer, tuple) else (answer, 0)
            if result is None:  # --dry-run
                return 0
            opt.finish(result, folder, as_json, plot)
            return int(status)

        command.__doc__ = measure.__doc__
        parameters = [*chosen(_READ | usual), *own, *chosen(_ELSE)]
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return command

    return command_of


def of_experiment(row: Row, measure: "Callable[..., Result]") -> Callable[..., int]:
    """The kind of `probe` that is measure(model, inputs, seed=seed), with the options of all."""

    def asked(model: Any, inputs: Any, seed: int) -> "Result":
        return measure(model, inputs, seed=seed)

    asked.__name__, asked.__doc__ = row.name.split()[-1], measure.__doc__
    return _kind(f"{_OFTEN} device")(asked)


@_kind(_OFTEN, device="cpu", dtype="float64")
def stability(
    model: Any, inputs: Any, seed: int, *,
    size: Annotated[float, opt.positive("size of finite perturbations, relative to the stream",
        "S")] = 0.01,
) -> "Result":  # fmt: skip
    """Say whether small differences between tokens grow or die, layer by layer.

    It differentiates the model's own blocks in float64: at equal tokens (consensus), near them and
    at the tokens of your inputs. Beside that stand the formula of T8c and finite perturbations. It
    also says what the stack would do if it were looped. Writes stability.json and tables into
    stability/MODEL of the folder of results.
    """
    from oversmoothing.experiments.repeated.stability import stability as measure

    return measure(model, inputs, size=size, seed=seed)


def _layers(word: str) -> tuple[int, ...]:
    # No model has a million layers, and a longer number would be a list without end.
    named = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", word)
    first, last = (0, -1) if named is None else (int(named[1]), int(named[2] or named[1]))
    if first <= last:
        return tuple(range(first, last + 1))
    raise BadParameter(f"{word[:40]} names no layers: write 3, or 1-12 for layers 1 to 12 in turn")


@_kind(f"{_OFTEN} every", count=20, device="cpu", dtype="float32")
def loop(
    model: Any, inputs: Any, seed: int, *,
    loops: Annotated[int, opt.whole("number of loops", 20, sizes.POINTS *1000)] = 200,
    group: Annotated[list[Any] | None, Option(metavar="A-B", parser=_layers,
        help="loop layers A to B in turn (several; default each block)")] = None,
    recall: Annotated[float | None, opt.real(
        "look for fixed points of X <- f(X) + B X_0, and predict nothing", "B",
        -sizes.REAL)] = None,
) -> "Result":  # fmt: skip
    """Say whether tokens collapse if a block of a trained model is repeated.

    Attention is recomputed in every loop. What each block (or --group) will do is predicted before
    it is looped. The predictor is chosen on half of the blocks and inputs, and scored on the rest.
    Writes loop.json and tables into loop/MODEL of the folder of results.
    """
    from oversmoothing.experiments.repeated.loop import loop as run, recalled

    how: dict[str, Any] = {"groups": group, "loops": loops, "seed": seed}
    return run(model, inputs, **how) if recall is None else recalled(model, inputs, recall, **how)


@_kind(_OFTEN, count=40, device="cpu", dtype="float32")
def flips(model: Any, inputs: Any, seed: int) -> "Result":
    """Say what the sign of a norm's gain does, layer by layer, predicted and measured.

    In one layer at a time the gain of attention's norm changes its sign, with and without the
    shift. The effect on HFC/LFC, over the layer and at the end, is compared with what T8d and T8e
    predict, on half of the inputs (give at least 4). Writes flips.json and tables into flips/MODEL.
    """
    from oversmoothing.experiments.repeated.flips import sign_flips

    return sign_flips(model, inputs, seed=seed)


def _head(word: str) -> tuple[int, int]:
    named = re.fullmatch(r"([0-9]{1,6})\.([0-9]{1,6})", word)
    if named is None:
        raise BadParameter(f"{word[:40]} names no head: write 3.0, the first head of layer 3")
    return int(named[1]) - 1, int(named[2])


def _heads(word: str) -> tuple[int, int] | None:
    return None if word == "all" else _head(word)


@_kind("images text count every tokens part seed", count=50, device="cpu", dtype="float32")
def intervene(
    model: Any, inputs: Any, seed: int, *,
    shift: Annotated[list[float] | None, opt.real(
        "add D to every eigenvalue of H (several; default -.1 -.05 .05 .1)", "D", -sizes.REAL)
        ] = None,
    into_disc: Annotated[list[float] | None, opt.real(
        "move eigenvalues this part of the way to within .45 of -1/2 (default .5)", "T",
        most=1)] = None,
    head: Annotated[list[Any] | None, Option(metavar="L.H", parser=_head,
        help="shift head H of layer L alone as well (several; L from 1, H from 0)")] = None,
    without: Annotated[list[Any] | None, Option(metavar="L.H", parser=_heads,
        help="leave out head H of layer L (several; all: each head in turn)")] = None,
    train: Annotated[bool, Option("--train",
        help="train one shift a layer on half of the inputs, and score the other half")] = False,
) -> "Result":  # fmt: skip
    """Move the eigenvalues of H in a trained model, or leave heads out, and see what its tokens do.

    Nothing is retrained (but for --train). Every change is compared with random changes of the same
    norm, and its effect on HFC/LFC is predicted from the unchanged model before it is measured.
    Negative shifts sharpen, positive ones smooth. Writes intervene.json (with --train
    trained_shift.json) and tables into intervene/MODEL of the folder of results.
    """
    if train:
        from oversmoothing.experiments.study.trained_shift import trained_shift

        opt.unread("beside --train", "--shift", "--into-disc", "--head", "--without")
        answers = getattr(model.prepare, "answers", lambda inputs: None)(inputs)
        return trained_shift(model, inputs, answers, seed=seed)
    from oversmoothing.experiments.study.lever import DOSES, intervene as measure

    alone = shift is None and into_disc is None and not without
    doses = shift if shift is not None else DOSES if alone or head else ()
    parts = into_disc if into_disc is not None else (0.5,) if alone else ()
    every = [(layer, k) for layer, each in enumerate(model.layers) for k in range(each.number)]
    left_out = every if None in (without or ()) else without or []
    return measure(
        model, inputs, seed=seed, doses=doses, parts=parts, heads=head or [], left_out=left_out
    )


@_kind("images text count seed", count=None, device="cpu", apart=False)
def tilt(
    model: Any, inputs: Any, seed: int, *,
    steer: Annotated[bool, Option("--steer",
        help="steer the model towards random directions too: often 10 minutes and more")] = False,
    dry_run: opt.DryRun = False,
) -> "Result | None":  # fmt: skip
    """Say whether a trained model's tokens turn as in the power method.

    They could turn towards the eigenvector of largest |lambda| or of largest |1 + lambda|: two
    theories, told apart where these differ. --steer tries to turn them elsewhere, and says before
    how many forward passes and how much time it will take. Writes tilt.csv, and with --steer
    steered.csv.
    """
    from oversmoothing.experiments.power_method.steering import foreseen
    from oversmoothing.experiments.power_method.tilt import tilts

    opt.needs(steer, "--steer", "--dry-run")
    if steer:
        said = opt.wrapped(f"{model.name}: {foreseen(model, inputs)}", True)
        print(said, file=None if dry_run else sys.stderr)
    if dry_run:
        return None

    return tilts(model, inputs, seed=seed, steer=steer)


# No remark on which pictures stand in: the table says how many.
@_kind("images text count tokens seed device", count=None, quiet=True, apart=False)
def readings(
    model: Any, inputs: Any, seed: int, *,
    readings: Annotated[list[str] | None, opt.one_of("reading", _READINGS,
        "ways to count (default E1 E2)")] = None,
    folded: Annotated[bool, Option("--folded",
        help="fold the gains of the norm into W_V first")] = False,
    costly: Annotated[int, opt.whole("number of inputs for E3")] = 8,
) -> "Result":  # fmt: skip
    """Say which eigenvalue dominates a trained model's layers, as Table 1 of the paper counts it.

    The paper does not say what it counts as one case, so there are several ways: each head alone
    (E1), the mean over heads (E2), all heads together (E3), each eigenvalue of H alone (E4), each
    of each head (E4 heads). Writes readings.csv and value_spectra.csv, which says where the
    eigenvalues of H lie and how far H has turned from its start.
    """
    from oversmoothing.experiments.study.readings import readings as read

    opt.needs("E3" in (readings or ()), "--readings E3", "--costly")
    chosen = list(readings or ("E1", "E2"))
    return read(model, inputs, chosen, "folded" if folded else "unfolded", costly)


def ladder(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    tokens: Annotated[int, opt.whole("longest text in tokens", least=2)] = 64,
    data_dir: opt.DataDir = None,
    calibration: Annotated[int, opt.whole("number of inputs that fit P0''', P6 and P7")] = 100,
    standard: Annotated[int, opt.whole("number of these that fit P0 to P5")] = 100,
    held_out: Annotated[int, opt.whole("number of inputs that the scores are taken on")] = 200,
    held_out_from: Annotated[int, opt.whole(
        "leave out the first N of the held-out draw, those of an earlier run", 0)] = 0,
    copies: Annotated[int, opt.whole(
        "number of altered copies of each such image, for P0''' and P7", 0)] = 0,
    first_layers: Annotated[int, opt.whole(
        "number of layers that P7's finer grid follows, cost against score")] = 3,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Which cheap theory predicts the smoothing of a trained model, scored.

    The predictors are P0 to P7. Without --images: of digits models their validation images, else
    CIFAR-100 in --data-dir. Shorter texts than --tokens are left out. Writes ladder.json and more.
    """
    from oversmoothing.experiments.ladder.climb import ladder as climb, split_inputs
    from oversmoothing.experiments.models.sources import named_model

    opt.look_up(images, text, data_dir)
    opened = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
    opened = opened.renamed(Path(opened.name).name)
    opt.needs(opened.modality == "text", "a model that reads text", "--text", "--tokens")
    opt.needs(opened.modality != "text", "a model that reads images", "--images")
    known, held, origin = split_inputs(
        opened, images=images, text=text, tokens=tokens, calibration=calibration,
        held_out=held_out, held_out_from=held_out_from, seed=seed, data_dir=data_dir,
    )  # fmt: skip
    folder = output_folder(out)
    result = climb(
        opened, known, held, standard=standard, copies=copies, first_layers=first_layers, seed=seed,
        origin={"inputs": origin, "held_out_from": held_out_from},
    )  # fmt: skip
    opt.finish(result, folder, as_json)


@_kind("images text seed", device="cpu", quiet=True, apart=False)
def exponents(
    model: Any, inputs: Any, seed: int, *,
    scale: Annotated[float, opt.real("factor of the heads' summed weights", "S")] = 0.5,
    depth: opt.Depth = 20_000,
) -> "tuple[Result, int]":  # fmt: skip
    """Rates of a trained model's layers, repeated: Lyapunov exponents against measured slopes.

    Each layer is the operator that it is on one input. --depth is a multiple of 200. Writes
    exponents.csv and exponents.json. Exit status 1: a slope is off by more than its error.
    """
    from oversmoothing.experiments.repeated.blocks import cycled_layers
    from oversmoothing.simulations.against_theory import exponents as runs

    attention, weights, X0 = cycled_layers(model, inputs, scale)
    run = runs.exponent_run(f"{model.name}, repeated", attention, weights, X0, depth)
    asked = {"model": model.name, "depth": depth, "scale": scale, "seed": seed}
    return runs.exponents([run], asked), int(not run.agrees)


@_kind("images count", dtype="float64", quiet=True, apart=False)
def certified(model: Any, inputs: Any, seed: int) -> "Result":
    """Certified verdicts on the attention of a trained vision model.

    Writes certified_attention.json, certified_attention.csv (a row a layer) and cases.csv.
    """
    from oversmoothing.experiments.inspection.spectra import certified_attention

    return certified_attention(model, inputs)
