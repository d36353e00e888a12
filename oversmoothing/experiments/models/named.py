"""The model and the inputs that a user names: a run, a folder, a name on the hub; a folder of
images, CIFAR-100, a file of texts."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from oversmoothing.experiments.models.hub import NotOnHubError
from oversmoothing.experiments.models.inputs import Images, Texts, text_lines
from oversmoothing.experiments.models.model import Model
from oversmoothing.experiments.models.pictures import looked_in, named_pictures, photographs, within
from oversmoothing.experiments.models.sources import SOURCES, open_model
from oversmoothing.simulations.engine.problem import choose_device
from oversmoothing.theory.support.errors import InputError

# Of the inputs that are named, where no count says how many.
SAMPLE = 200


def named_model(
    name: str,
    results: Path,
    *,
    seed: int = 0,
    device: str = "auto",
    data_dir: Path | None = None,
    dtype: torch.dtype | None = None,
    part: str | None = None,
) -> Model:
    """The described model of that name, looked for here, then in --data-dir, then on the hub.

    results: where runs of the digits models lie; seed: of the run; dtype, part: see `open_model`.
    How pictures are read is remarked on stderr where the source does not say it, or says more than
    is read. Raises `InputError` where there is none, and says which command trains it.
    """
    model = _found(name, results, seed, choose_device(device), data_dir, dtype, part)
    for note in model.prepare.notes if isinstance(model.prepare, Images) else ():
        if note in model.run_notes:
            print(f"{model.name}: {note}", file=sys.stderr)
    return model


def _found(
    name: str,
    results: Path,
    seed: int,
    chosen: torch.device,
    data_dir: Path | None,
    dtype: torch.dtype | None,
    part: str | None,
) -> Model:
    for own in SOURCES:
        if name.startswith(own.prefix) and name in own.home.NAMES:
            made = own.home.made(name, results, seed, chosen)
            return open_model(made, device=chosen, dtype=dtype).renamed(name)
    source = within(name, data_dir)
    if Path(source).exists():
        shown = Path(os.path.abspath(name)).name if source == name else name
        return open_model(Path(source), device=chosen, dtype=dtype, part=part).renamed(shown)
    try:
        return open_model(name, device=chosen, dtype=dtype, part=part)
    except NotOnHubError as error:
        named = ", ".join(each for own in SOURCES for each in own.home.USUAL)
        raise InputError(
            f"no model '{name}' was found: it is none of {named}, no folder or file "
            f"{looked_in(data_dir)}, and {error.cause}: {error.remedy}"
        ) from error


def cut_texts(models: Iterable[Model], tokens: int | None) -> None:
    """The models read so many tokens of a text at most; None: as many as each can.

    Raises `InputError` for tokens of a model that reads no texts.
    """
    for model in models:
        if isinstance(model.prepare, Texts):
            model.prepare.tokens = tokens
        elif tokens is not None:
            raise InputError(f"the model '{model.name}' reads no texts: --tokens cuts texts")


def named_inputs(
    model: Model,
    *,
    images: str | None = None,
    text: Path | None = None,
    count: int | None = None,
    data_dir: Path | None = None,
    quiet: bool = False,
) -> Any:
    """Images or texts for the model, the first `count`; raises `InputError` for the other kind.

    Of inputs that are named and no count: the first `SAMPLE`, with a remark on stderr where there
    are more. Without images: the model's usual ones (digits: their validation images), else
    scikit-learn's photographs, with a remark on stderr unless quiet.
    """
    if model.modality == "features":
        raise InputError(
            f"the model '{model.name}' reads tensors, neither images nor text: give them "
            "in Python, oversmoothing.inspect(model, tensor)"
        )
    if model.modality == "text":
        if images is not None or text is None:
            raise InputError(
                f"the model '{model.name}' reads text: give --text FILE, one text a line"
            )
        return _sample(named_texts(text, data_dir), count)
    if text is not None:
        raise InputError(
            f"the model '{model.name}' reads images, not text: leave --text out, or give "
            "--images DIR"
        )
    if images is not None:
        return _sample(named_pictures(images, count, data_dir), count)
    usual = getattr(model.prepare, "usual", None)
    if usual is not None:
        return usual(count)
    if not quiet:
        print("no --images: scikit-learn's two photographs and crops of them", file=sys.stderr)
    return photographs(count or 8)


def named_texts(text: Path, data_dir: Path | None) -> list[str]:
    """The texts of a file here or within the real inputs, - for standard input (`text_lines`)."""
    return text_lines(Path(within(str(text), data_dir)))


def _sample(inputs: Sequence[Any], count: int | None) -> Sequence[Any]:
    """The first `count` of them, the first `SAMPLE` where it is None, which is said."""
    if count is None and len(inputs) > SAMPLE:
        print(f"the first {SAMPLE} of {len(inputs):,}; --count N takes others", file=sys.stderr)
        count = SAMPLE
    return inputs[:count]
