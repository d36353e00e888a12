"""Open a trained model from a hub name, a folder, a file or memory, without running foreign code.

Weights are read from safetensors; a pickled checkpoint only by torch's loader that builds nothing
but tensors. Needs the extra `models` for Hugging Face models.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from oversmoothing.experiments.models import checkpoints, library, pictures
from oversmoothing.experiments.models.describe import SeveralStacksError, describe
from oversmoothing.experiments.models.inputs import IMAGENET, Images, Texts, text_lines
from oversmoothing.experiments.models.model import Model
from oversmoothing.simulations.state import choose_device, undisturbed
from oversmoothing.theory.support.errors import InputError, required

# Of the inputs that are named, where no count says how many.
SAMPLE = 200


@dataclass(frozen=True)
class Source:
    """Models that a room beside this one makes; nothing of it is imported before one is met.

    mark: the file that every folder of such a model holds; prefix: of their names; module: where
    they are opened. It has NAMES and, of them, the USUAL ones; stored(folder), the module stored
    there; made(name, results, seed, device), that of a name. Each `DescribesItself`.
    """

    mark: str
    prefix: str
    module: str

    @property
    def home(self) -> Any:
        """The module, imported now."""
        return import_module(self.module)


SOURCES = (
    Source("manifest.json", "vit", "oversmoothing.experiments.digits.training"),
    Source("rows.jsonl", "study:", "oversmoothing.experiments.study.study_runs"),
)


@undisturbed()
def open_model(
    source: str | Path | nn.Module | Model,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    tokenizer: Any = None,
    heads: int | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    part: str | None = None,
) -> Model:
    """The `Model` of a source.

    source: a name on the Hugging Face hub, a local folder (of the Hugging Face library, of a
    training run of this project, or with one timm-named checkpoint or GGUF file), such a file, a
    module in memory (read where it is: dtype and device change it in place, nothing else does), or
    a Model, which is handed on.

    dtype: of the forward pass (default: as stored; half precision becomes float32 on a CPU that
    cannot run it, and run_notes say so). heads: for a timm-named checkpoint whose heads are not
    64 wide. mean, std: of the pixels, where the source does not state them or states them wrongly.
    tokenizer: for text models without one. part: of a model with several stacks of blocks the one
    of interest, by its name ('vision_model', 'encoder'): a tower runs alone, a stage in the whole.

    Raises `InputError`, with what to do, for what cannot be found, read, trusted or understood.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> oversmoothing.open_model(model).depth
    2
    """
    if isinstance(source, Model):
        return source
    if not isinstance(source, str | Path | nn.Module):
        raise InputError(
            f"{type(source).__name__} is no model: give a module, a folder, a checkpoint file, or "
            "a name on the hub such as owner/model"
        )
    if source == "":
        raise InputError("no model is named: give a folder, a checkpoint file, or owner/model")
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise InputError(f"dtype is {dtype!r}: give one of torch, torch.float32")
    if device is not None:
        device = choose_device(str(device))
    given = {"mean": mean, "std": std, "tokenizer": tokenizer, "part": part}
    settings = {name: value for name, value in given.items() if value is not None}
    if isinstance(source, nn.Module):
        module, notes = _placed(source, dtype, device)
        return describe(module, **settings).noted(*notes)
    place = Path(source)
    if place.is_file():
        module, notes = _checkpoint(place, heads, settings)
    elif place.is_dir():
        module, notes = _folder(place, heads, settings)
    elif place.exists():
        raise InputError(f"'{source}' is no regular file: give a folder or a checkpoint file")
    elif isinstance(source, Path):
        raise InputError(f"there is no folder or file '{source}': check the path")
    else:
        module, notes = _hugging_face(library.folder_of(source), settings, source)
    placed, more = _placed(module, dtype, device)
    model = describe(placed.eval(), name=str(source), **settings)
    return model.noted(*notes, *more)


@undisturbed()
def open_stages(source: str | Path | nn.Module, **settings: Any) -> list[Model]:
    """The stages of a model whose tokens grow fewer between them (Swin), each as a `Model`.

    A model of one stack is its only stage. settings, and what is raised: see `open_model`.
    """
    try:
        return [open_model(source, **settings)]
    except SeveralStacksError as several:
        if not several.stages:
            raise
        return [open_model(source, part=part, **settings) for part in several.parts]


def _folder(
    place: Path, heads: int | None, settings: dict[str, Any]
) -> tuple[nn.Module, list[str]]:
    for source in SOURCES:
        if (place / source.mark).exists():
            return source.home.stored(place), []
    checkpoints.refuse_adapter(place)
    if (place / "config.json").exists() and "model_type" in checkpoints.read_object(
        place / "config.json"
    ):
        return _hugging_face(place, settings, str(place))
    files = checkpoints.weights_within(place, (".safetensors", library.GGUF, *checkpoints.PICKLES))
    if not files:
        held = ", ".join(sorted(p.name for p in place.iterdir())[:5])
        raise InputError(
            f"'{place}' is no model folder: it {f'holds {held}' if held else 'is empty'}. It needs "
            "a config.json of the Hugging Face library or a checkpoint (.safetensors); download "
            "the whole folder"
        )
    if len(files) > 1:
        raise InputError(f"'{place}' holds {len(files)} checkpoints: name the file itself")
    return _checkpoint(files[0], heads, settings)


def _checkpoint(
    path: Path, heads: int | None, settings: dict[str, Any]
) -> tuple[nn.Module, list[str]]:
    if path.suffix == library.GGUF:
        return library.read_gguf(path, settings)
    weights = checkpoints.read_weights(path)
    config = path.parent / "config.json"
    held = checkpoints.read_object(config) if config.exists() else {}
    if not library.has_timm_names(weights):
        names = ", ".join(list(weights)[:3])
        named = held.get("architecture")
        clip = (path.parent / pictures.OPEN_CLIP).exists()
        kind = "open_clip" if clip else named and f"timm's {named}"
        if kind:
            raise InputError(
                f"'{path}' is a checkpoint of {kind}, and without its library a plain vision "
                "transformer with timm's names alone is read\n"
                "load it with its library in Python and give the module to oversmoothing.inspect, "
                "or take its folder of the Hugging Face library"
            )
        raise InputError(
            f"'{path}' is a bare checkpoint (its first weights: {names}) without timm's names, and "
            "does not say what model it belongs to: give the folder with its config.json, or load "
            "it into its module and give that"
        )
    notes = []
    stated = held.get("pretrained_cfg", held)
    if not {"mean", "std"} <= set(settings | stated):
        notes.append("the checkpoint states no pixel statistics: ImageNet's mean and std are used")
    for name, usual in IMAGENET.items():
        settings.setdefault(name, pictures.by_channel(stated.get(name, usual), name, str(path)))
    if heads is None:
        notes.append("the checkpoint states no number of heads: heads of width 64 are taken")
    module = library.timm_vit(weights, heads, str(path))
    module.pretrained_cfg = stated
    return module, notes


def _hugging_face(folder: Path, settings: dict[str, Any], name: str) -> tuple[nn.Module, list[str]]:
    checkpoints.check_configs(folder)
    transformers = required("transformers")
    weights = checkpoints.folder_weights(folder)
    config_file = folder / "config.json"
    checkpoints.check_layers(checkpoints.read_object(config_file), len(weights), str(config_file))
    settings["folder"] = folder
    cannot = f"the model folder '{name}' cannot be loaded"
    with library.quiet(transformers.utils.logging), library.refusing(cannot):
        config = transformers.AutoConfig.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True
        )
        kind = library.class_of(transformers, config)
        checkpoints.check_size(checkpoints.shell_of(transformers, kind, config), weights, name)
        module, info = kind.from_pretrained(
            None, config=config, state_dict=weights, output_loading_info=True,
            trust_remote_code=False, local_files_only=True,
        )  # fmt: skip
    checkpoints.check_loaded(info, name)
    notes = []
    if any(name.endswith("distillation_token") for name, _ in module.named_parameters()):
        notes.append("the second token is the distillation token; only CLS is left out as such")
    settings.setdefault("tokenizer", lambda: library.tokenizer_of(transformers, folder))
    if hasattr(config, "image_size"):
        settings.pop("tokenizer")
    return module, notes


def _placed(
    module: nn.Module, dtype: torch.dtype | None, device: torch.device | str | None
) -> tuple[nn.Module, list[str]]:
    """The module on the device and in the dtype asked for, or in float32 where the CPU must."""
    module = module.to(device, dtype)
    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    if dtype or first is None or first.device.type != "cpu" or runs_on_cpu(first.dtype):
        return module, []
    return module.float(), [f"stored in {first.dtype}, which this CPU cannot run: float32 is used"]


@torch.no_grad()
def runs_on_cpu(dtype: torch.dtype) -> bool:
    """Whether torch has the operations of a Transformer in this dtype on the CPU."""
    x = torch.ones(1, 1, 4, 4, dtype=dtype)
    try:
        torch.nn.functional.scaled_dot_product_attention(x, x, x)
        torch.nn.functional.conv2d(x, x)
        torch.nn.functional.layer_norm(torch.nn.functional.gelu(x @ x), (4,)).softmax(-1)
    except RuntimeError:
        return False
    return True


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
    chosen = choose_device(device)
    owners = (each for each in SOURCES if name.startswith(each.prefix) and name in each.home.NAMES)
    if (own := next(owners, None)) is not None:
        made = own.home.made(name, results, seed, chosen)
        model = open_model(made, device=chosen, dtype=dtype).renamed(name)
    elif Path(source := pictures.within(name, data_dir)).exists():
        shown = Path(os.path.abspath(name)).name if source == name else name
        model = open_model(Path(source), device=chosen, dtype=dtype, part=part).renamed(shown)
    else:
        try:
            model = open_model(name, device=chosen, dtype=dtype, part=part)
        except library.NotOnHubError as error:
            named = ", ".join(each for own in SOURCES for each in own.home.USUAL)
            raise InputError(
                f"no model '{name}' {pictures.looked_in(data_dir)}, and {error.cause}.\n"
                f"{error.remedy[0].upper()}{error.remedy[1:]} (or {named})."
            ) from error
    for note in model.prepare.notes if isinstance(model.prepare, Images) else ():
        if note in model.run_notes:
            print(f"{model.name}: {note}", file=sys.stderr)
    return model


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
    drawn: int | None = None,
) -> Any:
    """Images or texts for the model, the first `count`; raises `InputError` for the other kind.

    Of inputs that are named and no count: the first `SAMPLE`, with a remark on stderr where there
    are more. drawn: a seed, by which so many are drawn in place of the first, in the order drawn: a
    folder in the order of its names may begin with one class of pictures.

    Without images: the model's usual ones (digits: their validation images), else
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
                f"which inputs? '{model.name}' reads text.\nAdd --text FILE (one text a line)."
            )
        return _sample(named_texts(text, data_dir), count, drawn)
    if text is not None:
        raise InputError(
            f"the model '{model.name}' reads images, not text: leave --text out, or give "
            "--images DIR"
        )
    if images is not None:
        some = count if drawn is None else None
        return _sample(pictures.named_pictures(images, some, data_dir), count, drawn)
    usual = getattr(model.prepare, "usual", None)
    if usual is not None:
        return usual(count)
    if not quiet:
        print("no --images: scikit-learn's two photographs and crops of them", file=sys.stderr)
    return pictures.photographs(count or 8)


def named_texts(text: Path, data_dir: Path | None) -> list[str]:
    """The texts of a file here or within the real inputs, - for standard input (`text_lines`)."""
    return text_lines(Path(pictures.within(str(text), data_dir)))


def _sample(inputs: Sequence[Any], count: int | None, drawn: int | None) -> Sequence[Any]:
    """`count` of them, `SAMPLE` where it is None, which is said: the first, or drawn by a seed."""
    if count is None and len(inputs) > SAMPLE:
        which = "the first " if drawn is None else ""
        by = "" if drawn is None else ", drawn by --seed"
        words = f"{which}{SAMPLE} of {len(inputs):,}{by}; --count N takes more or fewer"
        print(words, file=sys.stderr)
        count = SAMPLE
    if drawn is None:
        return inputs[:count]
    order = np.random.default_rng(drawn).permutation(len(inputs))[:count].tolist()
    if isinstance(inputs, pictures.Pictures):
        return inputs.chosen(order)
    return [inputs[k] for k in order]
