"""`reparameterise`: a Transformer of any make, its H put into a region in which it then trains.

One H for the heads of a layer: W_V = Q, W_O = Q^T H^T, as parametrisations of its two weights.

How heads combine is our choice (the papers have one head, or do not say): the values of a layer
are an orthonormal basis Q [d, m] of the features, of which each head takes its own columns Q_h, so
that W_V,h W_O,h = P_h H^T with P_h = Q_h Q_h^T and sum_h P_h = 1: heads attend, each within its own
share of the features, and one H acts behind all of them:

    X' = X + (sum_h A_h X P_h) H^T.

Where all A_h are equal this is vec(X') = (I + H (x) A) vec(X), exactly. Heads that share keys and
values share Q_h and are averaged: their mean attention is row-stochastic again. Where the values
have fewer features than tokens, m < d, W_O = H^T Q^T with H [m, m]: the layer's product is Q H Q^T,
with d - m eigenvalues 0. Where they have more, Q has orthonormal rows, and all holds as for m = d.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from oversmoothing.experiments.forms.form import ROUNDING, Form, orthogonal_factor
from oversmoothing.experiments.forms.lasting_bound import LastingBound, lasting_bound
from oversmoothing.experiments.forms.regions import parameterisation
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models import model as models
from oversmoothing.experiments.models.describe import describe
from oversmoothing.simulations.spectra.head_values import normalised
from oversmoothing.theory.support.errors import InputError


def in_by_out(module: nn.Module, weight: Tensor) -> Tensor:
    """A weight as W of y = x W, or such a W as the weight: nn.Linear keeps the transpose."""
    return weight if hasattr(module, "nf") else weight.mT


def values(parts: models.ValueParts, weight: Tensor | None = None) -> Tensor:
    """W_V [d, m] of all groups, of a weight of `parts.value` (None: the one that it has)."""
    own: Tensor = getattr(parts.value, parts.name) if weight is None else weight
    W = in_by_out(parts.value, own)
    return W if parts.columns is None else W[:, parts.columns.to(W.device)]


def output_map(Q: Tensor, H: Tensor) -> Tensor:
    """W_O [m, d] of values Q [d, m]: Q^T H^T, or where m < d H^T Q^T."""
    return Q.mT @ H.mT if Q.shape[0] <= Q.shape[1] else H.mT @ Q.mT


class OrthonormalValues(nn.Module):
    """W_V -> Q: orthonormal columns, or rows where there are more columns than rows."""

    def __init__(self, parts: models.ValueParts) -> None:
        super().__init__()
        # Held but not registered: it holds this parametrisation.
        object.__setattr__(self, "split", parts)
        self.split: models.ValueParts

    def forward(self, weight: Tensor) -> Tensor:
        """The weight with Q in place of W_V."""
        W = values(self.split, weight)
        wide = W.to(torch.promote_types(W.dtype, torch.float32))
        with torch.autocast(W.device.type, enabled=False):
            short = wide.shape[0] < wide.shape[1]
            Q = orthogonal_factor(wide.mT).mT if short else orthogonal_factor(wide)
        return self._with(weight, Q.to(W.dtype))

    @torch.no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor:
        """W_V's polar factor, the orthonormal matrix nearest to it."""
        U, _, Vt = torch.linalg.svd(values(self.split, weight).double(), full_matrices=False)
        return self._with(weight, (U @ Vt).to(weight)).contiguous()

    def _with(self, weight: Tensor, W_V: Tensor) -> Tensor:
        columns = self.split.columns
        if columns is None:
            return in_by_out(self.split.value, W_V)
        whole = in_by_out(self.split.value, weight)
        placed = whole.index_copy(1, columns.to(whole.device), W_V)
        return in_by_out(self.split.value, placed)


class SplitOutputs(nn.Module):
    """The free tensors of a form -> W_O = Q^T H^T (m >= d) or H^T Q^T (m < d), Q the values."""

    def __init__(self, parts: models.ValueParts, form: Form) -> None:
        super().__init__()
        self.form = form
        object.__setattr__(self, "split", parts)
        self.split: models.ValueParts

    def forward(self, *free: Tensor) -> Tensor:
        """The weight of the output projection."""
        H = self.form(*free)
        Q = values(self.split)
        with torch.autocast(Q.device.type, enabled=False):
            W_O = output_map(Q, H)
        groups, repeats = self.split.kv_heads, self.split.heads // self.split.kv_heads
        if repeats > 1:
            W_O = W_O.view(groups, -1, W_O.shape[1]).repeat_interleave(repeats, 0).flatten(0, 1)
            W_O = W_O / repeats
        return in_by_out(self.split.out, W_O)

    @torch.no_grad()
    def right_inverse(self, weight: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The free tensors whose W_O is near this one, given the values as they are."""
        W = in_by_out(self.split.out, weight).double()
        groups, repeats = self.split.kv_heads, self.split.heads // self.split.kv_heads
        summed = W.reshape(groups, repeats, -1, W.shape[1]).sum(1).flatten(0, 1)
        Q = values(self.split).double()
        # The least squares solution of Q^T H^T = W_O, of H^T Q^T = W_O.
        H = (Q @ summed if Q.shape[0] <= Q.shape[1] else summed @ Q).mT
        return self.form.right_inverse(H.to(weight))


@torch.no_grad()
def impose(parts: models.ValueParts, form: Form) -> None:
    """Register both parametrisations; they start from the weights that stand there.

    Q starts at the orthonormal matrix nearest to W_V, H at the region's point near the one that
    fits every W_V,h W_O,h best given Q, H^T = sum_h P_h W_V,h W_O,h.
    """
    W_V = values(parts).double()
    groups, repeats = parts.kv_heads, parts.heads // parts.kv_heads
    by_group = W_V.view(len(W_V), groups, -1).transpose(0, 1)
    weight: Any = parts.out.weight
    by_head = in_by_out(parts.out, weight).double().reshape(parts.heads, -1, len(W_V))
    products = by_group.repeat_interleave(repeats, 0) @ by_head
    parametrize.register_parametrization(parts.value, parts.name, OrthonormalValues(parts))
    Q = values(parts).double().view(len(W_V), groups, -1).transpose(0, 1)
    W_O = (Q.mT.repeat_interleave(repeats, 0) @ products).flatten(0, 1)
    weight.copy_(in_by_out(parts.out, W_O))
    parametrize.register_parametrization(parts.out, "weight", SplitOutputs(parts, form))


@dataclass(frozen=True)
class Reparameterised:
    """What `reparameterise` did to a model; `module` is the model itself, changed in place.

    form: its name; layers: the numbers, from 1, of the layers whose H it is.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> done = oversmoothing.reparameterise(model, "band", layers=[2], p=0.5)
    >>> done
    Reparameterised('band', layers 2)
    """

    module: nn.Module
    form: str
    layers: tuple[int, ...]
    _outputs: tuple[SplitOutputs, ...]
    _prepare: Callable[[list[Any]], Any]

    def __repr__(self) -> str:
        return f"Reparameterised({self.form!r}, layers {', '.join(map(str, self.layers))})"

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
        """H [d, d] of each layer, or [m, m] on the span of fewer values, formed in float64."""
        return [each.form(*(free.double() for free in _free(each))).cpu() for each in self._outputs]

    def check(self) -> pd.DataFrame:
        """A row a layer: whether H lies in its region now, by how much (`excess`) up to the
        rounding (`tolerance`), and the smallest and largest real part of its eigenvalues."""
        h = [torch.linalg.eigvals(H).real for H in self.H()]
        free = [(each.form, _free(each)) for each in self._outputs]
        place = [form.inside(form(*own), form.condition(*own)) for form, own in free]
        return pd.DataFrame(
            {
                "layer": self.layers,
                "region": [each.status for each in place],
                "excess": [each.excess for each in place],
                "tolerance": [each.tolerance for each in place],
                "h_real_min": [float(each.min()) for each in h],
                "h_real_max": [float(each.max()) for each in h],
            }
        )

    def bound(
        self, inputs: Tensor | Iterable[Any] | dict[str, Tensor], model: models.Model | None = None
    ) -> list[LastingBound]:
        """T7b's recursion over all layers, one result an input, with the attention measured there.

        inputs: as `inspect` takes them; model: a fresh description, for a module that is known by
        `describe` alone. A statement on the attention sublayers alone (see `lasting_bound`). Raises
        `InputError` where rows of attention do not sum to 1 (padding, learned sinks).
        """
        read = model or replace(describe(self.module), prepare=self._prepare)
        models.check_stochastic(read)
        recorded = extract(read, inputs)
        products = [
            (each.heads.W_V.double() @ each.heads.W_O.double()).cpu().numpy()
            for each in read.layers
        ]
        if not bool(recorded.keep.all()):
            raise InputError("these inputs are padded: give texts of one length, or one at a time")
        bounds = []
        for k, start in enumerate(recorded.traces[0].before):
            each = (trace.attention for trace in recorded.traces if trace.attention is not None)
            attention = [normalised(A[k].numpy()) for A in each]
            bounds.append(lasting_bound(attention, products, start.double().numpy()))
        return bounds

    def bake(self) -> nn.Module:
        """Leave the weights as plain numbers, for saving; the model trains freely from then on."""
        for each in self._outputs:
            split = each.split
            for module, name in ((split.out, "weight"), (split.value, split.name)):
                # Removal changes the class that parametrize made, which a deepcopy shares.
                kind = type(module)
                module.__class__ = type(kind.__name__, kind.__bases__, dict(vars(kind)))
                parametrize.remove_parametrizations(module, name)
        return self.module


def reparameterise(
    model: nn.Module | models.Model, form: str, layers: list[int] | None = None, **options: Any
) -> Reparameterised:
    """Put H of a Transformer into a form's region, near where it is, to train it on from there.

    model: of the Hugging Face library (what `inspect` reads), or what `describe` made of any other
    module; changed in place, before the optimiser is made. form: 'plus', 'minus', 'clip-minus',
    'clip-plus', 'sigmoid-minus', 'sigmoid-plus', 'disc', 'interval' or 'band', see
    `parameterisation`; options: its options. layers: numbers from 1 (None: all).

    W_V becomes orthonormal, W_O = W_V^T H^T: each head attends within its own share of the features
    and one H acts behind all heads, which is our choice. `.guarantee` says what follows from it,
    `.check()` measures it, `.bound(inputs)` is T7b's certificate on a batch, `.bake()` leaves plain
    weights. Biases, norms and FFN stay as they are. Under `torch.nn.utils.parametrize.cached()`
    every weight is formed once a step.

    Raises `InputError` for an unknown form, layers that are not there or parametrised already, and
    layer scale, with which H in the stream is another than the one imposed.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> done = oversmoothing.reparameterise(model, "disc")
    >>> done.form, done.layers
    ('disc', (1, 2))
    """
    if isinstance(model, models.DescribesItself):
        raise InputError(
            "this model describes itself, as the project's own ViT does, whose H is a form "
            "already: train it with TrainConfig(variant='vit-FORM')"
        )
    described = model if isinstance(model, models.Model) else describe(model)
    whole = range(1, described.depth + 1)
    numbers = sorted(set(whole if layers is None else layers))
    if not numbers or not set(numbers) <= set(whole):
        raise InputError(
            f"layers {layers}: give numbers from 1 to {described.depth}, the model's depth"
        )
    parameterisation(form, **options)  # refused before anything is changed
    # A block that stands in the stack several times is changed once.
    chosen: dict[int, tuple[int, models.Layer]] = {}
    for number in numbers:
        layer = described.layers[number - 1]
        _check(layer, number)
        assert layer.parts is not None
        chosen.setdefault(id(layer.parts.out), (number, layer))
    made = []
    for number, layer in chosen.values():
        assert layer.parts is not None
        impose(layer.parts, parameterisation(form, **options).to(layer.heads.W_O.device))
        chain: Any = layer.parts.out.parametrizations
        made.append(chain.weight[0])
        _agrees(layer, number, chain.weight[0])
    numbers = [number for number, _ in chosen.values()]
    module, prepare = described.module, described.prepare
    return Reparameterised(module, form, tuple(numbers), tuple(made), prepare)


def _check(layer: models.Layer, number: int) -> None:
    if layer.parts is None or not layer.live:
        raise InputError(f"layer {number}: it is not known where W_V and W_O stand")
    places = (layer.parts.value, layer.parts.name), (layer.parts.out, "weight")
    if any(parametrize.is_parametrized(*place) for place in places):
        raise InputError(f"layer {number}: its weights are parametrised already; bake() them first")
    if not (isinstance(layer.output_scale, float) and layer.output_scale == 1.0):
        raise InputError(
            f"layer {number} multiplies what attention gives (layer scale): H in the stream would "
            "be another than the one imposed; fold the scale into the output projection first"
        )


def _free(each: SplitOutputs) -> list[Tensor]:
    chain: Any = each.split.out.parametrizations
    return [original.detach() for original in chain.weight.parameters(recurse=False)]


@torch.no_grad()
def _agrees(layer: models.Layer, number: int, each: SplitOutputs) -> None:
    """Hold the heads as the description reads them against H: declared is not believed."""
    total, own = layer.heads.total(), values(each.split).detach()
    Q, H = own.double().cpu(), each.form(*_free(each)).double().cpu()
    wanted = Q @ output_map(Q, H)
    error = float(torch.linalg.matrix_norm(total - wanted))
    eps = torch.finfo(own.dtype).eps
    if not error <= ROUNDING * len(Q) * eps * float(torch.linalg.matrix_norm(wanted)):
        raise InputError(
            f"layer {number}: after the change sum_h W_V,h W_O,h differs from H by {error:.3g}: "
            "W_V and W_O are not where the description says"
        )
