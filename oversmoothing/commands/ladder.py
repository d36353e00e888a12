"""`oversmoothing ladder MODEL`: which cheap theory predicts the smoothing of a trained model?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oversmoothing.theory.support.errors import InputError

if TYPE_CHECKING:
    from oversmoothing.experiments.ladder.result import LadderResult
    from oversmoothing.experiments.models.model import Model


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="as for inspect, or a folder in --data-dir")
    add("--images", metavar="DIR", help="image files (default: CIFAR-100 in --data-dir)")
    add("--text", metavar="FILE", help="one text a line, for models that read text")
    add("--tokens", type=int, default=64, metavar="N", help="texts are cut to N tokens; shorter "
        "ones are left out (default %(default)s)")  # fmt: skip
    add("--data-dir", metavar="DIR", help="external models and data (or $OVERSMOOTHING_DATA)")
    add("--calibration", type=int, default=100, metavar="N", help="inputs of P0''', P6 and P7 "
        "(default %(default)s)")  # fmt: skip
    add("--standard", type=int, default=100, metavar="N", help="of those, inputs of P0 to P5 "
        "(default %(default)s)")  # fmt: skip
    add("--held-out", type=int, default=200, metavar="N", help="default %(default)s")
    add("--held-out-from", type=int, default=0, metavar="N", help="leave out the first N inputs "
        "of the held-out draw: those of an earlier run (default %(default)s)")  # fmt: skip
    add("--copies", type=int, default=0, metavar="N", help="altered copies of each calibration "
        "image for the kernel rungs (default %(default)s)")  # fmt: skip
    add("--first-layers", type=int, default=3, metavar="N", help="layers that P7's finer grid "
        "follows: cost against score (default %(default)s)")  # fmt: skip
    add("--seed", type=int, default=0, help="of the split, the copies and the bootstrap")
    add("--json", action="store_true", help="print one JSON object")
    add("--out", metavar="DIR", help="write ladder.json, ladder.csv, ladder_layers.csv there")


def run(arguments: Namespace) -> int:
    from oversmoothing.experiments.ladder.climb import ladder
    from oversmoothing.experiments.models.data import real_inputs
    from oversmoothing.experiments.models.sources import open_model
    from oversmoothing.theory.support.files import to_json
    from oversmoothing.theory.support.provenance import provenance

    for name in ("calibration", "standard", "held_out", "first_layers"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1")
    for name in ("copies", "held_out_from"):
        if getattr(arguments, name) < 0:
            given = getattr(arguments, name)
            raise InputError(f"--{name.replace('_', '-')} is {given}: it must be 0 or more")
    data = real_inputs(arguments.data_dir)
    source = arguments.model
    if data is not None and not Path(source).exists() and (data / source).exists():
        source = str(data / source)
    model = open_model(source)
    calibration, held_out, origin = _inputs(model, arguments, data)
    result = ladder(
        model,
        calibration,
        held_out,
        standard=arguments.standard,
        copies=arguments.copies,
        first_layers=arguments.first_layers,
        seed=arguments.seed,
    )
    found = {
        **result.to_json_object(),
        "model": Path(source).name,
        "inputs": origin,
        "held_out_from": arguments.held_out_from,
        "provenance": provenance(),
    }
    if arguments.out is not None:
        _write(Path(arguments.out), result, to_json(found))
    print(to_json(found) if arguments.json else describe(result), end="")
    return 0


def _inputs(
    model: Model, arguments: Namespace, data: Path | None
) -> tuple[Sequence[Any], Sequence[Any], str]:
    """Calibration and held-out inputs and where they are from; drawn apart by the seed."""
    import numpy as np

    from oversmoothing.experiments.models.pictures import Cifar100, PictureFolder

    skipped = arguments.held_out_from
    wanted = arguments.calibration + skipped + arguments.held_out
    first = arguments.calibration + skipped
    random = np.random.default_rng(arguments.seed)
    if model.modality == "text":
        texts = _texts(model, arguments)
        order = _drawn(random, len(texts), wanted)
        chosen = [texts[k] for k in order]
        origin = f"{Path(arguments.text).name}, cut to {arguments.tokens} tokens"
        return chosen[: arguments.calibration], chosen[first:], origin
    if arguments.images is not None:
        folder = PictureFolder.of(arguments.images)
        order = _drawn(random, len(folder), wanted)
        pictures = [folder[k] for k in order]
        origin = f"{Path(arguments.images).name}, split by the seed"
        return pictures[: arguments.calibration], pictures[first:], origin
    train = Cifar100.of(data, "train").indices
    known = np.sort(random.permutation(len(train))[: arguments.calibration])
    other = np.random.default_rng([arguments.seed, 1])
    held = np.sort(other.permutation(10_000)[skipped : skipped + arguments.held_out])
    if len(known) < arguments.calibration or len(held) < arguments.held_out:
        raise InputError("CIFAR-100 has 50,000 train and 10,000 test images: ask for fewer")
    return (
        list(Cifar100.of(data, "train", known.tolist())),
        list(Cifar100.of(data, "test", held.tolist())),
        "CIFAR-100: calibration from the train images, held out from the test images, by the seed",
    )


def _drawn(random: Any, there: int, wanted: int) -> list[int]:
    if there < wanted:
        raise InputError(
            f"there are {there} inputs and {wanted} are needed: give more, or lower --calibration "
            "and --held-out"
        )
    return [int(k) for k in random.permutation(there)[:wanted]]


def _texts(model: Model, arguments: Namespace) -> list[Any]:
    """Token ids [tokens] of every text that is long enough."""
    from oversmoothing.theory.support.files import read_text

    if arguments.text is None:
        raise InputError(f"the model '{model.name}' reads text: give --text FILE, one text a line")
    lines = [line for line in read_text(arguments.text).splitlines() if line.strip()]
    found = []
    for line in lines:
        ids = model.prepare([line])["input_ids"][0]
        if len(ids) >= arguments.tokens:
            found.append(ids[: arguments.tokens])
    return found


def _write(folder: Path, result: LadderResult, text: str) -> None:
    from oversmoothing.theory.support.files import write_atomically

    write_atomically(folder / "ladder.json", text)
    write_atomically(folder / "ladder.csv", result.to_frame().to_csv(index=False))
    write_atomically(folder / "ladder_layers.csv", result.by_layer().to_csv())


def describe(result: LadderResult) -> str:
    """The table of the rungs and what it says."""
    frame = result.to_frame()
    shown = frame[["rung", "r2", "r2_low", "r2_high", "r2_within", "sign", "spearman"]].copy()
    shown["cost %"] = 100 * frame["cost_share"]
    shown["fitted on"] = frame["calibration"]
    table = shown.to_string(index=False, float_format=lambda x: f"{x:.3f}", na_rep="-")
    skipped = "".join(f"{name} is left out: {why}.\n" for name, why in result.skipped.items())
    return (
        f"{table}\n\nThe change of log HFC/LFC over {result.measured.shape[1]} layers and "
        f"{len(result.measured)} held-out inputs of {result.tokens} tokens.\nR^2 pooled with its "
        "95 % interval over inputs; within: against each layer's calibration mean (P0').\ncost: "
        f"multiply-adds for one input, of the model's {result.model_cost:.3g}; -: the model's own "
        f"run is needed.\n{skipped}{verdict(result)}\n"
    )


def verdict(result: LadderResult) -> str:
    """In a sentence: the best rung without a full run of the model, and whether it beats P0'."""
    free = [rung for rung in result.rungs if rung.cost is not None]
    if not free:
        return "No rung could be scored."
    best = max(free, key=lambda rung: rung.score.r2)
    gain = best.score.r2_within_low
    if best.name == "P0'" or not gain > 0:
        return f"No cheap rung is better than the layers' means (best: {best.name})."
    assert best.cost is not None
    share = 100 * best.cost / result.model_cost
    return (
        f"The best rung without a full run of the model is {best.name}: R^2 {best.score.r2:.3f}, "
        f"{100 * best.score.r2_within:.0f} % of what the layers' means leave, at {share:.1f} % of "
        "the model's multiply-adds."
    )
