"""What hooks are told of a pass: its arguments, its tokens, and what these and the weights say."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.inspection.heads_and_why import LARGEST, REGIONS, ValueModes
from oversmoothing.experiments.models.model import Heads, evaluating
from oversmoothing.simulations.state_metrics import stream_metrics
from oversmoothing.theory.support.errors import InputError


def call_arguments(module: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """The call's arguments by name, those swallowed by **kwargs among them."""
    try:
        bound = inspect.signature(module.forward).bind_partial(*args, **kwargs)
    except TypeError:
        return dict(kwargs)
    named = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            named |= named.pop(name, {})
    return named


def tokens_of(values: Any, module: nn.Module) -> Tensor:
    """The tokens: the first tensor [b, n, d] among arguments or results."""
    for value in values if isinstance(values, tuple | list) else (values,):
        if isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point():
            return value
    raise InputError(
        f"no tokens [b, n, d] are seen at {type(module).__name__}: its blocks must take and give "
        "them as the first tensor"
    )


def inner(module: nn.Module) -> tuple[nn.Module, list[nn.Module]]:
    """(the module within its wrappings, those of them that are compiled).

    Raises `InputError` for what is no module, and for `torch.nn.DataParallel`.
    """
    compiled = []
    given: Any = module
    while True:
        if not isinstance(given, nn.Module):
            raise InputError(f"{type(given).__name__} is no module of torch: give the model itself")
        if isinstance(given, nn.DataParallel):
            raise InputError(
                "torch.nn.DataParallel copies the model at each pass, and hooks see the copies: "
                "give its .module on one device, or use DistributedDataParallel"
            )
        if isinstance(given, nn.parallel.DistributedDataParallel):
            given = given.module
        elif isinstance(getattr(given, "_orig_mod", None), nn.Module):
            compiled.append(given)
            given = given._orig_mod
        else:
            return given, compiled


def eager_pass(module: nn.Module, args: Any, kwargs: Any, inputs: int) -> None:
    """module(*args, **kwargs) on the first inputs, in evaluation mode, without a gradient.

    Neither the state of the random generators nor the module's mode or buffers are other than
    before: the pass that follows is the same to the bit.
    """
    tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    sizes = [len(each) for each in tensors if each.ndim > 1] or [0]

    def cut(value: Any) -> Any:
        batch = isinstance(value, Tensor) and value.ndim > 0 and len(value) == sizes[0]
        return value[:inputs] if batch else value

    devices = sorted({each.get_device() for each in tensors if each.is_cuda})
    args, kwargs = tree_map(cut, (args, kwargs))
    with evaluating(module), torch.no_grad(), torch.random.fork_rng(devices):
        module(*args, **kwargs)


METRICS = ("log_hfc_lfc", "cos_mean", "effective_rank")


def stream_readings(X: Tensor, keep: Tensor | None, *, cls: bool) -> dict[str, float]:
    """METRICS of X [m, n, d] over the kept tokens, means over the m inputs; hfc_lfc: the geometric
    mean. cls: the same without token 0 as well, under *_without_cls."""
    parts = [X] if keep is None else [x[k][None] for x, k in zip(X, keep, strict=True)]
    each = [stream_metrics(part, without_first=cls) for part in parts]
    given: dict[str, float] = {}
    for suffix in ("", "_without_cls") if "cos_mean_without_cls" in each[0] else ("",):
        for name in METRICS:
            values = torch.cat([one[name + suffix] for one in each])
            given[name + suffix] = float(values.mean())
        given[f"hfc_lfc{suffix}"] = float(np.exp(given[f"log_hfc_lfc{suffix}"]))
    return given


def spectral_readings(heads: Heads) -> dict[str, float]:
    """Shares of the eigenvalues h of H = sum_h (W_V,h W_O,h)^T by region (`why.REGIONS`),
    h_real_min, h_real_max, h_abs_max, asymmetry ||H - H^T||_F / ||H + H^T||_F and condition_V_H,
    that of its eigenvectors; {} for more than LARGEST features."""
    if heads.W_V.shape[1] > LARGEST:
        return {}
    why = ValueModes.of(heads, heads.W_V.device).why
    names = [f"h_{name}" for name in (*REGIONS, "real_min", "real_max", "abs_max")]
    return {name: why[name] for name in (*names, "asymmetry", "condition_V_H")}
