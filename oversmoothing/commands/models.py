"""Commands on trained models: what a model does, what is proved of it, and how one is trained."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import json_rows, output_folder, to_json

if TYPE_CHECKING:
    from oversmoothing.experiments.models.model import Model
    from oversmoothing.simulations.drawing.result import Result

_SHARED = ("plus", "minus", "clip-plus", "clip-minus", "sigmoid-plus", "sigmoid-minus", "disc",
           "interval", "band")  # fmt: skip
_FORMS = ("sym", "clip-plus", "clip-minus", "shared", *(f"shared-{form}" for form in _SHARED))
_VARIANTS = ("vit", "vit+", "vit-", *(f"vit-{form}" for form in _FORMS), "all")
_STUDIES = ("core", "trainability", "exploratory", "all", "answers", "spreads")


def inspect(
    model: opt.Model,
    other: Annotated[str | None, Argument(metavar="OTHER",
        help="second model: the two are compared")] = None,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Sample = None,
    tokens: opt.CutTexts = None,
    budget: Annotated[str, Option(metavar="B",
        help="forward passes for causes, heads and spectra, or 'all'")] = "4",
    batch_size: Annotated[int, opt.whole("number of inputs at once", most=sizes.POINTS)] = 32,
    wide: Annotated[bool, Option("--wide",
        help="add the further sentences and the table of all layers")] = False,
    part: opt.Part = None,
    data_dir: opt.DataDir = None,
    as_json: opt.Json = False,
    dry_run: opt.DryRun = False,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Say whether a trained model smooths, in which layers, by what, and what to try.

    It writes a page, tables and a picture into inspect/MODEL of the folder of results, or into
    MODEL-2 beside an earlier one. With a second model (another checkpoint, or the same after a
    remedy) both run on the same inputs, and their differences by layer are written. A model in
    stages (Swin) gets a report for each stage.

    If there are more inputs than --count, --seed draws which are taken: in the order of its names a
    folder may begin with one class of pictures.

    Before it measures it says how many forward passes, how much time and how much memory it will
    take. A larger budget measures causes, heads and spectra on more inputs. Weights of a folder
    stay in its files and are read layer by layer.
    """
    from oversmoothing.experiments.inspection.budget import foresee
    from oversmoothing.experiments.inspection.compare import compare, inspect_stages
    from oversmoothing.experiments.inspection.inspect import inspect as ask, seen
    from oversmoothing.experiments.models.describe import NotReadError, SeveralStacksError
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model

    def opened(name: str, part: str | None) -> "Model":
        return named_model(name, out, seed=seed, device=device, data_dir=data_dir, part=part)

    if as_json:
        opt.unread("beside --json", "--wide")
    opt.look_up(images, text, data_dir)
    asked: dict[str, Any] = {"images": images, "text": text, "data_dir": data_dir, "drawn": seed,
                             "quiet": as_json}  # fmt: skip
    staged = False
    try:
        models = [opened(name, part) for name in ([model] if other is None else [model, other])]
    except NotReadError as refused:
        inputs = named_inputs(refused.model, count=count or 8, **asked)
        name = Path(refused.model.name).name
        opt.finish(seen(refused, inputs), opt.new_folder(out / "inspect" / name), as_json, False)
        return
    except SeveralStacksError as several:
        staged = several.stages and other is None
        if not staged:
            raise
        models = [opened(model, each) for each in several.parts]
    cut_texts(models, tokens)
    inputs = named_inputs(models[0], count=count, **asked)
    how: dict[str, Any] = {"budget": budget, "batch_size": batch_size}
    if dry_run or not as_json:
        for each in models:
            said = f"{Path(each.name).name}: {foresee(each, inputs, **how)}"
            print(opt.wrapped(said, True), file=sys.stdout if dry_run else sys.stderr)
    if dry_run:
        return
    name = ", ".join(Path(each.name).name for each in (models[:1] if staged else models))
    folder = opt.new_folder(out / "inspect" / name)
    how["progress"] = not as_json
    report: Result
    if staged:
        report = inspect_stages(models, inputs, **how)
    else:
        first, *second = (ask(each, inputs, **how) for each in models)
        report = compare(first, *second) if second else first
    opt.finish(report, folder, as_json, wide=wide)
    if not (as_json or wide) and len(models) == 1:
        print("every layer in numbers, and all results: on the page report.html, or with --wide")


def enclose(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = 1,
    box: Annotated[bool, Option("--box",
        help="take a box of images around each, in place of the image")] = False,
    eps: Annotated[float | None, opt.positive(
        "how far each pixel of a box, as the model reads it, may be off (default: the most "
        "that is proved)", "E")] = None,
    layer: Annotated[list[int] | None, opt.whole(
        "layers for which a box is proved (default all)")] = None,
    check: Annotated[list[Path] | None, Option(metavar="FILE",
        help="recompute what these files claim of MODEL, and no more")] = None,
    data_dir: opt.DataDir = None,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> int:  # fmt: skip
    """Prove a trained model's metrics, layer by layer, for one input or a box of images.

    The forward pass runs in interval arithmetic: HFC/LFC, cosines and effective rank come out as
    intervals that contain the exact values. A second computation confirms each file before it is
    written (enclosure-1.json, ... in enclose/MODEL of the folder of results). --box asks whether
    HFC/LFC falls or rises over a layer for all images within --eps of one. --check ends with status
    1 if a file is refused.
    """
    import torch

    from oversmoothing.experiments.enclosures.proving import check_file, prove_boxes, prove_inputs
    from oversmoothing.experiments.models.sources import named_inputs, named_model

    opt.needs(box, "--box", "--eps", "--layer")
    if check:
        opt.alone("--check", "MODEL", "--data-dir", "--json", "--out")
    opt.look_up(images, text, data_dir)
    opened = named_model(model, out, device="cpu", data_dir=data_dir, dtype=torch.float64)
    if check:
        each = [(str(path), check_file(opened, str(path))) for path in check]
        rows = [{"file": p, "accepted": c.accepted, "words": c.words} for p, c in each]
        said = [f"{p}: {'accepted' if c.accepted else 'REFUSED'}: {c.words}" for p, c in each]
        opt.shown(as_json, {"checked": rows}, "\n".join(said))
        return 0 if all(c.accepted for _, c in each) else 1
    inputs = named_inputs(opened, images=images, text=text, count=count, data_dir=data_dir)
    inputs = inputs[:count]
    opt.show_progress()
    folder = opt.new_folder(out / "enclose" / Path(opened.name).name)
    if box:
        proofs = prove_boxes(opened, inputs, eps, layer or [])
    else:
        single = named_model(model, out, device="cpu", data_dir=data_dir, dtype=torch.float32)
        proofs = prove_inputs(opened, single, inputs)
    bodies = []
    for number, proof in enumerate(proofs, 1):
        path = proof.write(folder, number)
        bodies.append(proof.body)
        if not as_json:
            print(opt.wrapped(f"{proof.text(opt.table_text)}\nwrote {path}"))
    if as_json:
        print(to_json({"enclosures": bodies}), end="")
    return 0


def train(
    config: Annotated[str | None, Argument(metavar="CONFIG.toml",
        help="configuration as TOML (or .json; - is JSON)")] = None,
    recipe: Annotated[str | None, Option(metavar="NAME",
        help="configuration that comes with the package: cifar100-vit-ti (the paper's size), "
        "cifar10-vit-ti, cifar100-small")] = None,
    variant: Annotated[str | None, opt.one_of("variant", _VARIANTS,
        "form of H: vit (free), vit+, vit-, or vit-FORM with FORM one of "
        f"{', '.join(_FORMS)}; shared: one H for all heads (default: CONFIG's, or all: the first "
        "three)",
        todo="Choose vit, vit+, vit- or vit-FORM.")] = None,
    seed: Annotated[int | None, opt.whole("seed of everything random (default: CONFIG's, or 0)",
        least=0)] = None,
    data_dir: opt.DataDir = None,
    hub: Annotated[bool, Option("--hub",
        help="fetch CIFAR from the Hugging Face hub where it is not there")] = False,
    device: opt.Device = "auto",
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Train a small ViT on digits or CIFAR, with H free, of one sign or in a region.

    Each head has values of its own; in vit-shared and its forms all heads share one value map H,
    and a layer adds heads.mean(1) @ (y @ H^T).

    A model with the same configuration that was trained before is read back. An interrupted
    training continues from its last checkpoint when you type the command again. On several GPUs:
    accelerate launch -m oversmoothing train ...
    """
    from oversmoothing.experiments.digits.training import trained, training_table
    from oversmoothing.experiments.digits.training_config import configurations
    from oversmoothing.experiments.models.pictures import real_inputs
    from oversmoothing.simulations.state import choose_device

    configs = configurations(config, variant, seed, recipe)
    pictures = any(each.data != "digits" for each in configs)
    opt.needs(pictures, 'data = "cifar10" or "cifar100" in CONFIG', "--data-dir", "--hub")
    chosen = choose_device(device)
    data = real_inputs(data_dir)
    # Three models, their logs and what stands beside them while they are written.
    results = output_folder(out, room=2**24)
    models = []
    for each in configs:
        stored = (results / each.folder_name()).exists()
        run = trained(each, results, device=chosen, data_dir=data, hub=hub)
        models.append((run, stored))
    table = training_table(models)
    opt.shown(as_json, {"models": json_rows(table)}, opt.table_text(table))


def atlas(
    models: Annotated[list[str] | None, Argument(metavar="MODEL...",
        help="folders, files or hub names; vit, vit-, study:CELL; none with --join alone")] = None,
    images: opt.Images = None,
    text: opt.Text = None,
    count: opt.Count = 8,
    tokens: opt.CutTexts = None,
    join: Annotated[list[Path] | None, Option(metavar="FILE",
        help="rows.csv of others (several), joined after it is checked")] = None,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """List where the eigenvalues of H lie in trained models, one row a layer and one a head.

    From the weights alone; with --images (vision) or --text also where attention goes, and on how
    many inputs consensus dominates each head. Writes atlas.json, atlas.csv (a row a model) and
    rows.csv into atlas of the folder of results. --join takes rows.csv, whose columns stay the same
    in later releases.
    """
    from oversmoothing.experiments.models.sources import cut_texts, named_inputs, named_model
    from oversmoothing.experiments.study import atlas as made

    if not models and not join:
        raise InputError("no model is named.\nGive MODEL..., or --join FILE.")
    opt.needs(images is not None or text is not None, "--images or --text", "--count")
    opt.needs(text is not None, "--text", "--tokens")
    opt.show_progress()
    opt.look_up(images, text, data_dir)
    frames = [made.read_atlas(path) for path in join or []]
    opened = [named_model(name, out, seed=seed, device="cpu", data_dir=data_dir)
              for name in models or []]  # fmt: skip
    for kind, flag in (("vision", "--images"), ("text", "--text")):
        opt.needs(any(each.modality == kind for each in opened), f"a {kind} model", flag)
    for model in (each.renamed(Path(each.name).name) for each in opened):
        asked = {"vision": images, "text": text}.get(model.modality)
        inputs = None
        if asked is not None:
            cut_texts([model], tokens if model.modality == "text" else None)
            given: Any = {"images": images} if model.modality == "vision" else {"text": text}
            inputs = named_inputs(model, count=count, data_dir=data_dir, quiet=as_json, **given)
            inputs = inputs[:count]
        frames.append(made.rows_of(model, inputs))
    opt.finish(made.atlas(made.joined(frames)), output_folder(out / "atlas"), as_json, plot)


def study(
    name: Annotated[str, Argument(metavar="NAME", help="runs to make: core, trainability, "
        "exploratory or all; or answers, spreads", callback=opt.checked("study", _STUDIES),
        autocompletion=lambda: list(_STUDIES))],
    protocol: Annotated[Path | None, Option(metavar="FILE.toml",
        help="cells and questions of your own (default: the project's)")] = None,
    task: Annotated[str | None, Option(metavar="TASK",
        help="only the runs of one task: digits, cifar100, bible, ... (default all)")] = None,
    workers: opt.Workers = 1,
    blocks: Annotated[int | None, opt.whole(
        "number of blocks, one seed each, to finish (default all)")] = None,
    so_far: Annotated[bool, Option("--so-far",
        help="show intervals of unfinished questions too, which decide nothing")] = False,
    device: opt.Device = "cpu",
    dry_run: opt.DryRun = False,
    data_dir: opt.DataDir = None,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Train networks to learn what the sign of H does, where it turns and what moving it does.

    The questions, their margins, seeds and the rule of decision were written before the runs
    (preregistered.toml). `study core` trains what they need, one process a core, block by block;
    with --device cuda all networks of one task at once, on a GPU. Interrupted, the same command
    goes on. Each finished run is a row of study/rows.jsonl in the folder of results. `study
    answers` decides every question from these rows, or from the recorded ones where the folder has
    none; `study spreads` shows how spread the first seeds are, and no difference.
    """
    from oversmoothing.experiments.models.pictures import real_inputs
    from oversmoothing.experiments.study import answers as said
    from oversmoothing.experiments.study.protocol import TIERS, protocol as read
    from oversmoothing.experiments.study.study_runs import ROWS, cost, read_rows, run_blocks
    from oversmoothing.simulations.state import choose_device

    if dry_run:
        opt.alone("--dry-run", "NAME", "--protocol", "--task", "--workers", "--json", "--out")
    trains = name not in ("answers", "spreads")
    if trains:
        opt.unread(f"beside {name}", "--so-far", "--plot")
    else:
        opt.unread(f"beside {name}", "--task", "--workers", "--blocks", "--device", "--dry-run",
                   "--data-dir")  # fmt: skip
        opt.unread("beside spreads", *["--so-far"] * (name == "spreads"))
    chosen, folder = read(protocol), out / "study"
    rows = read_rows(folder / ROWS)
    if not trains:
        rows = rows or said.recorded_rows()
        if name == "spreads":
            result = said.spreads(rows, chosen)
        else:
            result = said.answers(rows, chosen, so_far=so_far)
        opt.finish(result, output_folder(folder), as_json, plot)
        return
    tiers = TIERS if name == "all" else (name,)
    if task is not None:
        tasks = sorted({cell.task for cell, _ in chosen.cells.values()})
        opt.checked("task", tasks, f"Choose {', '.join(tasks)}.")(task)
        chosen = chosen.of_task(task)
    place = choose_device(device)
    takes = cost(chosen, tiers, rows, workers)
    if not as_json:
        print(takes, flush=True)
    made = 0
    if not dry_run:
        made = run_blocks(
            chosen, folder, tiers=tiers, workers=workers, data=real_inputs(data_dir),
            blocks=blocks, device=None if place.type == "cpu" else place, progress=not as_json,
        )  # fmt: skip
    if as_json:
        print(to_json({"cost": takes, "made": made}), end="")
    elif not dry_run:
        print(f"{made} runs made; their rows are in {folder / ROWS}: `oversmoothing study answers`")
