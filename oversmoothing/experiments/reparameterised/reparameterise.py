"""`reparameterise`: a Transformer of any make, its H put into a region in which it then trains."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from oversmoothing.experiments.digits.vit import ViT
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models.adapters import from_module
from oversmoothing.experiments.models.model import Layer, Model
from oversmoothing.experiments.parameterisations.choose import parameterisation
from oversmoothing.experiments.parameterisations.form import ROUNDING, Inside
from oversmoothing.experiments.parameterisations.lasting_bound import LastingBound, lasting_bound
from oversmoothing.experiments.reparameterised.split_heads import (
    SplitOutputs,
    impose,
    imposed,
    values,
)
from oversmoothing.theory.support.errors import InputError


@dataclass(frozen=True)
class Reparameterised:
    """What `reparameterise` did to a model; `module` is the model itself, changed in place.

    form: its name; layers: the numbers, from 1, of the layers whose H it is.
    """

    module: nn.Module
    form: str
    layers: tuple[int, ...]
    _outputs: tuple[SplitOutputs, ...]
    _prepare: Callable[[list[Any]], Any]

    @property
    def guarantee(self) -> str:
        """What is promised of these layers without norms, biases and FFN, and what is not."""
        first = self._outputs[0]
        own, k = first.form.guarantee, first.split.kv_heads
        d, m = values(first.split).shape
        if own.weights == "none" or (k == 1 and m >= d):
            return str(own)
        if m < d:
            return (
                f"no guarantee: values have {m} features and tokens {d}, so that H has {d - m} "
                f"eigenvalues 0 whatever the form; within the span of the values H keeps to the "
                f"region of '{self.form}' (T2e: a 0 is a TIE at best)"
            )
        if own.weights == "untied":
            return (
                f"HFC/LFC keeps a floor after every layer while q |tau|_2 < p, |tau|_2 over the "
                f"Dobrushin coefficients of the {k} heads (or groups of heads): at worst tau < "
                f"p / (q sqrt({k})); void beyond; H may differ by layer; attention: any (T7b with "
                "heads that split the features, see lasting_bound)"
            )
        return f"where all heads attend alike: {own}; where they differ, none is known"

    @torch.no_grad()
    def H(self) -> list[Tensor]:
        """H [d, d] of each layer, or [m, m] on the span of fewer values, in float64, formed from
        the form's parameters."""
        return [each.form(*(free.double() for free in _free(each))).cpu() for each in self._outputs]

    def check(self) -> pd.DataFrame:
        """A row a layer: whether H lies in its region now, by how much (`excess`) up to the
        rounding (`tolerance`), and the smallest and largest real part of its eigenvalues."""
        rows = []
        for number, each, H in zip(self.layers, self._outputs, self.H(), strict=True):
            found = _inside(each)
            h = torch.linalg.eigvals(H).real
            rows.append(
                {
                    "layer": number,
                    "region": found.status,
                    "excess": found.excess,
                    "tolerance": found.tolerance,
                    "h_real_min": float(h.min()),
                    "h_real_max": float(h.max()),
                }
            )
        return pd.DataFrame(rows)

    def bound(self, inputs: Any, model: Model | None = None) -> list[LastingBound]:
        """T7b's recursion over all layers, one result an input, with the attention measured there.

        inputs: as `inspect` takes them; model: a fresh description, for a module that is known by
        `describe` alone. A statement on the attention sublayers alone (see `lasting_bound`). Raises
        `InputError` where rows of attention do not sum to 1 (padding, learned sinks).
        """
        read = model or replace(from_module(self.module), prepare=self._prepare)
        found = extract(read, inputs)
        products = [
            (each.heads.W_V.double() @ each.heads.W_O.double()).cpu().numpy()
            for each in read.layers
        ]
        if not bool(found.keep.all()):
            raise InputError("these inputs are padded: give texts of one length, or one at a time")
        bounds = []
        for k, start in enumerate(found.traces[0].before):
            attention = []
            for trace in found.traces:
                assert trace.attention is not None
                A = trace.attention[k].double()
                attention.append((A / A.sum(-1, keepdim=True)).numpy())
            bounds.append(lasting_bound(attention, products, start.double().numpy()))
        return bounds

    def bake(self) -> nn.Module:
        """Leave the weights as plain numbers, for saving; the model trains freely from then on."""
        for each in self._outputs:
            parametrize.remove_parametrizations(each.split.out, "weight")
            parametrize.remove_parametrizations(each.split.value, each.split.name)
        return self.module


def reparameterise(
    model: nn.Module | Model, form: str, layers: list[int] | None = None, **options: Any
) -> Reparameterised:
    """Put H of a Transformer into a form's region, near where it is, to train it on from there.

    model: of the Hugging Face library (what `inspect` reads), or what `describe` made of any other
    module; changed in place, before the optimiser is made. form: 'plus', 'minus', 'clip-minus',
    'clip-plus', 'sigmoid-minus', 'sigmoid-plus', 'disc', 'interval' or 'band', see
    `parameterisation`; options: its options. layers: numbers from 1 (None: all).

    W_V becomes orthonormal, W_O = W_V^T H^T: each head attends within its own share of the features
    and one H acts behind all heads, which is our choice (the papers do not say how heads combine).
    `.guarantee` says what follows from it, `.check()` measures it, `.bound(inputs)` is T7b's
    certificate on a batch, `.bake()` leaves plain weights. Biases, norms and FFN stay as they are.
    Under `torch.nn.utils.parametrize.cached()` every weight is formed once a step.

    Raises `InputError` for an unknown form, layers that are not there or parametrised already, and
    layer scale, with which H in the stream is another than the one imposed.
    """
    if isinstance(model, ViT):
        raise InputError(
            "this is the project's own ViT, whose H is a form already: train it with "
            "TrainConfig(variant='vit-FORM')"
        )
    described = model if isinstance(model, Model) else from_module(model)
    numbers = _numbers(layers, described.depth)
    parameterisation(form, **options)  # refused before anything is changed
    # A block that stands in the stack several times is changed once.
    chosen: dict[int, tuple[int, Layer]] = {}
    for number in numbers:
        layer = described.layers[number - 1]
        _check(layer, number)
        assert layer.parts is not None
        chosen.setdefault(id(layer.parts.out), (number, layer))
    found = []
    for number, layer in chosen.values():
        assert layer.parts is not None
        impose(layer.parts, parameterisation(form, **options).to(layer.heads.W_O.device))
        chain: Any = layer.parts.out.parametrizations
        found.append(chain.weight[0])
        _agrees(layer, number, chain.weight[0])
    return Reparameterised(
        described.module,
        form,
        tuple(number for number, _ in chosen.values()),
        tuple(found),
        described.prepare,
    )


def _numbers(layers: list[int] | None, depth: int) -> list[int]:
    if layers is None:
        return list(range(1, depth + 1))
    numbers = sorted(set(layers))
    if not numbers or not 1 <= numbers[0] <= numbers[-1] <= depth:
        raise InputError(f"layers {layers}: give numbers from 1 to {depth}, the model's depth")
    return numbers


def _check(layer: Layer, number: int) -> None:
    if layer.parts is None or layer.read is None:
        raise InputError(f"layer {number}: it is not known where W_V and W_O stand")
    if imposed(layer.parts):
        raise InputError(f"layer {number}: its weights are parametrised already; bake() them first")
    if not (isinstance(layer.output_scale, float) and layer.output_scale == 1.0):
        raise InputError(
            f"layer {number} multiplies what attention gives (layer scale): H in the stream would "
            "be another than the one imposed; fold the scale into the output projection first"
        )


def _free(each: SplitOutputs) -> list[Tensor]:
    chain: Any = each.split.out.parametrizations
    originals = chain.weight
    return [original.detach() for original in originals.parameters(recurse=False)]


def _inside(each: SplitOutputs) -> Inside:
    free = _free(each)
    H = each.form(*free)
    return each.form.inside(H, each.form.condition(*free))


@torch.no_grad()
def _agrees(layer: Layer, number: int, each: SplitOutputs) -> None:
    """Hold the heads as the description reads them against H: declared is not believed."""
    assert layer.read is not None
    total = layer.read().total()
    Q, H = values(each.split).detach().double().cpu(), each.form(*_free(each)).double().cpu()
    wanted = Q @ (Q.mT @ H.mT if Q.shape[0] <= Q.shape[1] else H.mT @ Q.mT)
    error = float(torch.linalg.matrix_norm(total - wanted))
    eps = torch.finfo(layer.read().W_O.dtype).eps
    if not error <= ROUNDING * len(Q) * eps * float(torch.linalg.matrix_norm(wanted)):
        raise InputError(
            f"layer {number}: after the change sum_h W_V,h W_O,h differs from H by {error:.3g}: "
            "W_V and W_O are not where the description says"
        )
