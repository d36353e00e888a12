"""How the Hugging Face library, its hub and GGUF files are read: quietly, without foreign code.

A GGUF file, as llama.cpp keeps it, holds weights, config and tokenizer, and no code; it is read by
the library's own reader (packages gguf and transformers), de-quantised, and the library is then
given tensors, as for a folder.

timm's checkpoints of vision transformers are one file without a config: `timm_vit` builds such a
model from the shapes, with heads of width 64, the rule of these models, where heads= is not given.
"""

import io
import math
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from functools import partial
from math import isqrt
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.models import checkpoints
from oversmoothing.theory.support.errors import InputError, required

HEAD_WIDTH, EPS = 64, 1e-6
_MARKS = ("blocks.0.attn.qkv.weight", "patch_embed.proj.weight", "pos_embed")


class TimmAttention(nn.Module):
    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.num_heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        answer: Tensor = self.proj(mixed.transpose(1, 2).reshape(b, n, d))
        return answer


class TimmBlock(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=EPS) for _ in range(2))
        self.attn = TimmAttention(width, heads, bias)
        parts = {"fc1": nn.Linear(width, hidden), "act": nn.GELU(), "fc2": nn.Linear(hidden, width)}
        self.mlp = nn.Sequential(OrderedDict(parts))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        answer: Tensor = x + self.mlp(self.norm2(x))
        return answer


class TimmViT(nn.Module):
    """Class scores [b, classes] of pixels [b, 3, s, s], or tokens [b, n, d] without a head."""

    def __init__(
        self, *, width: int, depth: int, heads: int, patch: int, image_size: int, hidden: int,
        classes: int, bias: bool = True, channels: int = 3,
    ) -> None:  # fmt: skip
        super().__init__()
        self.image_size = image_size
        tokens = (image_size // patch) ** 2 + 1
        cut = {"proj": nn.Conv2d(channels, width, patch, patch), "flat": nn.Flatten(2)}
        self.patch_embed = nn.Sequential(OrderedDict(cut))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, width))
        self.blocks = nn.ModuleList(TimmBlock(width, heads, hidden, bias) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.head = nn.Linear(width, classes) if classes else nn.Identity()

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patch_embed(pixels).mT
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        answer: Tensor = self.head(x[:, 0]) if isinstance(self.head, nn.Linear) else x
        return answer


def has_timm_names(weights: Mapping[str, Tensor]) -> bool:
    return all(name in weights for name in _MARKS)


def timm_vit(weights: Mapping[str, Tensor], heads: int | None, where: str) -> TimmViT:
    """The model of a checkpoint with timm's names, in the checkpoint's dtype. Raises `InputError`
    for missing or surplus weights (layer scale, norms on queries and keys, a distillation token and
    the like are other models), and a width that is no multiple of 64 without heads=."""
    patches = weights["patch_embed.proj.weight"]
    width, channels, patch = patches.shape[0], patches.shape[1], patches.shape[-1]
    tokens = weights["pos_embed"].shape[1]
    side = isqrt(tokens - 1)
    if side * side != tokens - 1:
        raise InputError(
            f"'{where}' has {tokens} position embeddings, not one CLS token and a square of "
            "patches: distilled models and models without CLS are not understood"
        )
    if heads is None:
        if width % HEAD_WIDTH:
            raise InputError(
                f"'{where}': the number of heads does not follow from the width {width}: say it, "
                "open_model(..., heads=)"
            )
        heads = width // HEAD_WIDTH
    blocks = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
    depth = 1 + max(int(number) for number in blocks if number.isdecimal() and len(number) < 9)
    if depth > len(blocks):
        raise InputError(f"'{where}' holds {len(blocks)} blocks, numbered to {depth - 1}")
    # Rows of the matrix of the FFN and of that of the head, 0 without one.
    hidden, classes = (
        weights.get(name, torch.empty(0)).shape[0]
        for name in ("blocks.0.mlp.fc1.weight", "head.weight")
    )
    with torch.device("meta"):
        model = TimmViT(
            width=width, depth=depth, heads=heads, patch=patch, image_size=side * patch,
            hidden=hidden, classes=classes, bias="blocks.0.attn.qkv.bias" in weights,
            channels=channels,
        )  # fmt: skip
    expected = set(model.state_dict())
    missing, surplus = sorted(expected - set(weights)), sorted(set(weights) - expected)
    if missing or surplus:
        raise InputError(
            f"'{where}' is not a plain vision transformer with timm's names: missing "
            f"{missing[:3] or 'nothing'}, not understood {surplus[:3] or 'nothing'}; load it with "
            "its own code and give the module to describe()"
        )
    try:
        model.load_state_dict(dict(weights), assign=True)
    except RuntimeError as error:
        raise InputError(f"the shapes in '{where}' do not go together: {error}") from error
    return model


# Seconds that the hub has to answer.
PATIENCE = 5.0
# What the hub accepts as a name: owner/model or model.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
# Any of them set, the library asks no hub.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
GGUF = ".gguf"


def class_of(transformers: Any, config: Any) -> Any:
    """The class that the config names, with its classifier or language head; else the bare one."""
    for name in getattr(config, "architectures", None) or ():
        named = getattr(transformers, name, None)
        if isinstance(named, type) and issubclass(named, transformers.PreTrainedModel):
            return named
    return transformers.AutoModel


def first_line(error: Exception) -> str:
    """Of an error, its kind and what it says first."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


@contextmanager
def refusing(what: str, advice: str = "") -> Iterator[None]:
    """Errors of the library, of many kinds, as `InputError`: what (kind and first line), advice."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{what} ({first_line(error)}){advice}") from error


def tokenizer_of(transformers: Any, folder: Path, **file: str) -> Any:
    """The tokenizer of a folder, or of a GGUF file in it (gguf_file=). Raises `InputError`."""
    try:
        with quiet(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True, **file
            )
        # Without a file the library makes a tokenizer that knows its special tokens alone.
        if len(tokenizer.get_vocab()) <= len(set(tokenizer.all_special_tokens)):
            raise InputError("it knows no words but its special tokens")
        longest = tokenizer.model_max_length
        number = isinstance(longest, int | float) and 1 <= longest < math.inf
        if not number or longest != int(longest):
            raise InputError("model_max_length is no number of tokens")
    except Exception as error:  # the library raises many kinds
        why = error if isinstance(error, InputError) else type(error).__name__
        raise InputError(
            f"'{folder}' has no tokenizer that can be loaded ({why}).\nPut its tokenizer.json "
            "there; in Python give open_model(..., tokenizer=), or token ids as a tensor."
        ) from error
    return tokenizer


@contextmanager
def quiet(logging: Any) -> Iterator[None]:
    """No progress bars, no news about unused weights, which are said here, and an empty input, on
    which the library asks whether foreign code may run."""
    before, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    stdin, sys.stdin = sys.stdin, io.StringIO()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        sys.stdin = stdin
        logging.set_verbosity(before)
        if bars:
            logging.enable_progress_bar()


class NotOnHubError(InputError):
    """A model that the hub does not have, or that cannot be had from it now; cause: why, a clause;
    remedy: what to do about it."""

    def __init__(self, name: str, cause: str, remedy: str) -> None:
        super().__init__(f"'{name}' is no folder or file here, and {cause}: {remedy}")
        self.cause, self.remedy = cause, remedy


def folder_of(name: str) -> Path:
    """The folder of a model of the hub: its configs first, its weights where these may be read;
    where the hub does not answer, of what was downloaded before. Raises `NotOnHubError`, and
    `InputError` for a folder that is refused."""
    if not _HUB_NAME.fullmatch(name):
        remedy = "give a folder, a checkpoint file, or owner/model"
        raise NotOnHubError(name, "it is no name that the hub could have", remedy)
    logging, hub = required("transformers").utils.logging, required("huggingface_hub")
    errors = required("huggingface_hub.errors")
    silent = None
    try:
        with quiet(logging):
            # Asked once and shortly: a download tries again and again where there is no network.
            silent = _silence(hub, errors, name)
            have = partial(hub.snapshot_download, name, local_files_only=silent is not None)
            said = ["*.json", "*.txt", "*.model"]
            folder = Path(have(allow_patterns=said, ignore_patterns=["*/*"]))
            checkpoints.check_configs(folder)
            weights = checkpoints.weight_files(folder) or ["model.safetensors"]
            return Path(have(allow_patterns=weights))
    except InputError:
        raise
    except Exception as error:  # the library raises many kinds
        raise NotOnHubError(name, *_why(errors, error, silent)) from error


def _silence(hub: Any, errors: Any, name: str) -> tuple[str, str] | None:
    """Why the hub does not answer and what to do, None where it does; an error that it answers with
    is raised: it knows no such model, or does not give it."""
    elsewhere = "download the model's folder elsewhere and give its path"
    try:
        hub.HfApi().model_info(name, timeout=PATIENCE)
    except (errors.HfHubHTTPError, errors.HFValidationError):
        raise
    except errors.OfflineModeIsEnabled:
        names = " and ".join(each for each in _OFFLINE if os.environ.get(each))
        return (
            f"the hub was not asked, for {names or 'the offline mode of its library'} is set",
            f"unset it, or {elsewhere}",
        )
    except Exception as error:  # of the network, of many kinds
        return (
            f"the hub could not be reached ({first_line(error)})",
            f"check the connection, or {elsewhere}",
        )
    return None


def _why(errors: Any, error: Exception, silent: tuple[str, str] | None) -> tuple[str, str]:
    """The cause and the remedy."""
    if silent is not None and isinstance(error, errors.LocalEntryNotFoundError):
        return f"{silent[0]}; what was downloaded from it before does not hold it", silent[1]
    login = "log in with `hf auth login`"
    if isinstance(error, errors.GatedRepoError):
        return "the hub gives it only to those who accepted its terms", f"accept them and {login}"
    if isinstance(error, errors.RepositoryNotFoundError):
        return (
            "the hub has no model of that name that it shows to everyone",
            f"check the spelling, owner/model; for a private one {login}",
        )
    return (
        f"the hub did not give it ({first_line(error)})",
        "check the name, or download the model's folder elsewhere and give its path",
    )


def read_gguf(path: Path, settings: dict[str, Any]) -> tuple[nn.Module, list[str]]:
    """The module in float32, and a remark; settings gets the file's tokenizer where it has none.

    Raises `InputError` for a file that the library cannot read, or whose parts do not go together.
    """
    transformers, gguf = required("transformers"), required("gguf")
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    # The reader draws a bar whatever the library's settings.
    with (
        quiet(transformers.utils.logging),
        redirect_stderr(io.StringIO()),
        refusing(f"'{path}' cannot be read as GGUF"),
    ):
        reader = gguf.GGUFReader(str(path))
        stored = {each.tensor_type.name for each in reader.tensors}
        load: Any = load_gguf_checkpoint
        said = load(str(path))["config"]
        checkpoints.check_layers(said, len(reader.tensors), str(path))
        config = transformers.AutoConfig.for_model(**said)
        # The class with a language head, which the file does not name.
        names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        config.architectures = [x for x in [names.get(config.model_type)] if x]
        kind = class_of(transformers, config)
        shell = checkpoints.shell_of(transformers, kind, config)
        weights = load(
            str(path), return_tensors=True, model_to_load=shell, torch_dtype=torch.float32
        )["tensors"]
        checkpoints.check_size(shell, weights, str(path))
        module, info = kind.from_pretrained(
            None, config=config, state_dict=weights, output_loading_info=True
        )
    checkpoints.check_loaded(info, str(path))
    settings.setdefault(
        "tokenizer", lambda: tokenizer_of(transformers, path.parent, gguf_file=path.name)
    )
    return module, [f"stored as {', '.join(sorted(stored))}, de-quantised to float32"]
