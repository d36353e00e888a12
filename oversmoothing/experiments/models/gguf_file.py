"""A model in one GGUF file, as llama.cpp keeps it: weights, config and tokenizer, de-quantised.

The file is read by the library's own reader (packages gguf and transformers); the library is then
given tensors, as for a folder. A GGUF file holds no code.
"""

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
from torch import nn

from oversmoothing.experiments.models.library import class_of, first_line, quiet, tokenizer_of
from oversmoothing.experiments.models.model_folder import (
    check_layers,
    check_loaded,
    check_size,
    shell_of,
)
from oversmoothing.theory.support.errors import InputError, required

GGUF = ".gguf"


def read_gguf(path: Path, settings: dict[str, Any]) -> tuple[nn.Module, list[str]]:
    """The module in float32, and a remark; settings gets the file's tokenizer where it has none.

    Raises `InputError` for a file that the library cannot read, or whose parts do not go together.
    """
    transformers, gguf = required("transformers"), required("gguf")
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    # The reader draws a bar whatever the library's settings.
    with quiet(transformers.utils.logging), redirect_stderr(io.StringIO()):
        try:
            reader = gguf.GGUFReader(str(path))
            stored = {each.tensor_type.name for each in reader.tensors}
            load: Any = load_gguf_checkpoint
            said = load(str(path))["config"]
            check_layers(said, len(reader.tensors), str(path))
            config = transformers.AutoConfig.for_model(**said)
            config.architectures = _language_model(transformers, config)
            kind = class_of(transformers, config)
            shell = shell_of(transformers, kind, config)
            weights = load(
                str(path), return_tensors=True, model_to_load=shell, torch_dtype=torch.float32
            )["tensors"]
            check_size(shell, weights, str(path))
            module, info = kind.from_pretrained(
                None, config=config, state_dict=weights, output_loading_info=True
            )
        except InputError:
            raise
        except Exception as error:  # the library raises many kinds
            raise InputError(f"'{path}' cannot be read as GGUF ({first_line(error)})") from error
    check_loaded(info, str(path))
    settings.setdefault(
        "tokenizer", lambda: tokenizer_of(transformers, path.parent, gguf_file=path.name)
    )
    return module, [f"stored as {', '.join(sorted(stored))}, de-quantised to float32"]


def _language_model(transformers: Any, config: Any) -> list[str]:
    """The name of the class with a language head: the file says none."""
    names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return [names[config.model_type]] if config.model_type in names else []
