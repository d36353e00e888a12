"""Smoothing while a model trains: the stream and the spectrum of H by layer, at a few steps.

Nothing of the training changes: the same loss to the bit. What is seen is the first pass of a step
that is watched, on its first inputs, whatever its precision and however many passes a step
accumulates. A hook copies these of what a block gives to float64 on the CPU: nothing of autograd is
kept, and where nothing is wanted it returns.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from oversmoothing.experiments.inspection import extract
from oversmoothing.experiments.inspection.heads_and_why import LARGEST, REGIONS, ValueModes
from oversmoothing.experiments.models.describe import describe, part_of
from oversmoothing.experiments.models.layers import gives_across
from oversmoothing.experiments.models.model import Heads, Model
from oversmoothing.simulations.state_metrics import kept_parts, stream_metrics
from oversmoothing.theory.support.errors import InputError, required, whole_number
from oversmoothing.theory.support.files import write_atomically

# Seconds that watching may take in front of its share: small models are then watched whole.
SPARE = 1.0
# Two packages with one content: a callback belongs to that whose Trainer it is given to.
PACKAGES = ("lightning.pytorch", "pytorch_lightning")


class Watcher:
    """Watches a model while it trains: metrics of its stream and the spectrum of H by layer.

    model: what `inspect` takes, a described model or a module; with
    `blocks`, the name of a list of blocks or the blocks themselves, any module whose blocks map
    tokens [b, n, d] to tokens: its stream alone is read. Every `every` steps the first `inputs` of
    the first pass are measured. mode: which passes count, those in training mode ('train'), in
    evaluation mode ('eval') or 'any'. budget: the share of the time since the first step that
    watching may take, beyond one second: a step that falls due while more was taken is put off, and
    spectra are taken of as many layers as there is time for, in turn; None: no limit, so that what
    is recorded does not depend on the machine. spectra: whether H's are taken (to 1,024 features).

    In a loop of your own call `step()` after each step of the optimizer; the callbacks do it
    themselves. `close()`, or leaving the context, takes the hooks off; the numbers stay.

    A module from `torch.compile` is watched by a pass of its own through the module it was made of,
    in evaluation mode on the first inputs: hooks see nothing inside of compiled code.

    Raises `InputError` for `torch.nn.DataParallel`, for modules that are not read where no
    blocks are named, and for options that are out of range.

    >>> import torch, oversmoothing
    >>> part = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    >>> model = torch.nn.TransformerEncoder(part, 2, enable_nested_tensor=False).eval()
    >>> optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with oversmoothing.Watcher(model, every=1, mode="any", budget=None) as watcher:
    ...     for _ in range(2):
    ...         model(torch.randn(4, 6, 8)).square().mean().backward()
    ...         optimiser.step()
    ...         watcher.step()
    >>> watcher
    Watcher(TransformerEncoder, 2 layers, every 1 steps: 2 steps watched)
    """

    def __init__(
        self,
        model: Model | nn.Module,
        *,
        blocks: str | Sequence[nn.Module] | None = None,
        every: int = 50,
        inputs: int = 4,
        mode: Literal["train", "eval", "any"] = "train",
        budget: float | None = 0.05,
        spectra: bool = True,
    ) -> None:
        whole_number("every", every, 1)
        whole_number("inputs", inputs, 1)
        if mode not in ("train", "eval", "any"):
            raise InputError(f"mode is {mode!r}: give 'train', 'eval' or 'any'")
        if budget is not None and not 0 < budget <= 1:
            raise InputError(f"budget is {budget}: a share of the time, above 0 and at most 1")
        outer = model.module if isinstance(model, Model) else model
        self.module, compiled = inner(outer)
        self.every, self.mode, self.budget = every, mode, budget
        read = None
        if blocks is None:
            read = model if isinstance(model, Model) else describe(self.module)
        self.cls, self.layers = (read.cls, read.layers) if read else (False, ())
        stack = [layer.block for layer in self.layers] if read else blocks_of(self.module, blocks)
        # Where tokens are [n, b, d], in front of the first layer and behind each.
        given = any(each.places and "before" in each.places.across for each in self.layers[:1])
        self._across = [given, *map(gives_across, self.layers)]
        self.spectra = spectra and any(layer.live for layer in self.layers)
        self.rows: list[dict[str, Any]] = []
        self.put_off = 0
        self._turn, self._count, self._spent = 0, 0, 0.0
        self._started = time.perf_counter()
        # The step that was watched or put off last, and the one that is to be watched.
        self._settled: int | None = None
        self._due: int | None = None
        self._pass: list[dict[str, Any]] = []
        self._fresh: list[dict[str, Any]] = []
        self._probing = self._warned = False
        self.inputs, self.depth = inputs, len(stack)
        self._handles: list[Any] = []
        self._hook(stack, compiled)
        self.arm(0)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name, steps = type(self.module).__name__, len({row["step"] for row in self.rows})
        return (
            f"Watcher({name}, {self.depth} layers, every {self.every} steps: {steps} steps watched)"
        )

    def close(self) -> None:
        """Take the hooks off; what was recorded stays."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._due = None

    # ------------------------------------------------------------------------------ the steps

    def step(self) -> None:
        """Say that a step of the optimizer is done."""
        self._count += 1
        self.arm(self._count)

    def resume(self, rows: Sequence[dict[str, Any]]) -> None:
        """Go on behind an interruption with the rows that were watched before it."""
        self.rows = list(rows)
        self._due = None

    def arm(self, step: int) -> None:
        """Watch the next pass as that of this step, where the step is due.

        step: how many the optimizer had taken when it began; may be said several times a step.
        """
        if not self._handles:
            return
        if self._due not in (None, step) and not self._warned:
            self._warned = True
            warnings.warn(
                f"no pass was seen at step {self._due}: the model is in another mode than "
                f"{self.mode!r}, runs compiled (give the Watcher what torch.compile returned), or "
                "its blocks are not those that run",
                stacklevel=3,
            )
        self._forget()
        self._due, self._pass = None, []
        if step % self.every or step == self._settled:
            return
        if self._affordable():
            self._due = step
        else:
            self._settled = step
            self.put_off += 1

    def _affordable(self) -> bool:
        if self.budget is None:
            return True
        return self._spent <= SPARE + self.budget * (time.perf_counter() - self._started)

    # ------------------------------------------------------------------------------- one pass

    def _hook(self, blocks: Sequence[nn.Module], compiled: Sequence[nn.Module]) -> None:
        """Hooks on the blocks, and on what calls them, which says which tokens are padding."""
        self._once = len({id(block) for block in blocks}) == len(blocks)
        first = blocks[0]
        before = {
            module: self._called
            for module in self.module.modules()
            if module is not first and any(each is first for each in module.modules())
        }
        before |= {first: self._before} | dict.fromkeys(compiled, self._probe)
        for module, hook in before.items():
            self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
        for block in dict.fromkeys(blocks):
            self._handles.append(block.register_forward_hook(self._after))

    def _forget(self) -> None:
        """A pass that was not seen to its end: its last layer, which tokens it keeps."""
        self._layer: int | None = None
        self._keep: Tensor | None = None

    def _wanted(self) -> bool:
        # A compiled pass is traced once and never asks again: its hooks are empty.
        if self._due is None or torch.compiler.is_compiling():
            return False
        if self._probing or self.mode == "any":
            return True
        return self.module.training == (self.mode == "train")

    def _called(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if not self._wanted():
            return
        named = extract.call_arguments(module, args, kwargs)
        said = {name: named[name] for name in extract.MASKS if name in named}
        masks = [each for each in said.values() if each is not None]
        if said and all(isinstance(each, Tensor) and each.ndim == 2 for each in masks):
            # The innermost call says it: a decoder's own, if only that it has none.
            keep = extract.kept_tokens(said)
            self._keep = None if keep is None else keep.detach()[: self.inputs].cpu()

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._wanted() and (self._layer is None or self._once):
            self._see(0, extract.tokens_of((*args, *kwargs.values()), module))

    def _after(self, module: nn.Module, _: Any, output: Any) -> None:
        if self._layer is None or not self._wanted():
            return
        self._see(self._layer + 1, extract.tokens_of(output, module))
        if self._layer == self.depth:
            self._forget()
            self._done()

    @torch.no_grad()
    def _see(self, layer: int, X: Tensor) -> None:
        """The stream [b, n, d] behind that layer; layer 0: in front of all."""
        X = X.transpose(0, 1) if self.layers and self._across[layer] else X
        X = X.detach()[: self.inputs].to("cpu", torch.float64, copy=True)
        keep, began = self._keep, time.perf_counter()
        if keep is not None and keep.shape != X.shape[:2]:
            raise InputError(
                f"the attention mask {tuple(keep.shape)} is not of the tokens {tuple(X.shape[:2])} "
                "that the blocks take: which of them are padding is not known"
            )
        self._layer = layer
        keep = None if keep is None or bool(keep.all()) else keep
        mode = "train" if self.module.training else "eval"
        row = {"step": self._due, "layer": layer, "mode": mode, "inputs": len(X)}
        self._pass = self._pass if layer else []
        self._pass.append(row | stream_readings(X, keep, cls=self.cls))
        self._spent += time.perf_counter() - began

    def _done(self) -> None:
        depth = len(self.layers)
        for turn in range(depth if self.spectra else 0):
            began, number = time.perf_counter(), (self._turn + turn) % depth
            if self.layers[number].live:
                self._pass[number + 1] |= spectral_readings(self.layers[number].heads)
            self._spent += time.perf_counter() - began
            if not self._affordable():
                self._turn = (number + 1) % depth
                break
        self._settled, self._due = self._due, None
        self._fresh, self._pass = self._pass, []
        self.rows += self._fresh

    def _probe(self, _: nn.Module, args: Any, kwargs: Any) -> None:
        """The pass that a compiled module is about to make, made once more without its code."""
        if not self._wanted():
            return
        began, spent = time.perf_counter(), self._spent
        self._probing = True
        try:
            extract.eager_pass(self.module, args, kwargs, self.inputs)
        finally:
            self._probing = False
        self._spent = spent + time.perf_counter() - began

    # ---------------------------------------------------------------------------- the numbers

    def to_frame(self) -> pd.DataFrame:
        """One row a watched step and layer; layer 0 is the stream in front of the first block.

        step: steps of the optimizer before the pass; mode, inputs; log_hfc_lfc, cos_mean (signed,
        over pairs of distinct tokens), effective_rank: means over the inputs; hfc_lfc: the
        geometric mean; *_without_cls: of the tokens but CLS; h_zero, h_universal_disc, h_positive,
        h_other: shares of the eigenvalues of H, h_real_min, h_real_max, h_abs_max: their extremes;
        asymmetry ||H - H^T||_F / ||H + H^T||_F, condition_V_H of its eigenvectors; missing where
        they were not taken. Without any row it has no columns.
        """
        return pd.DataFrame(self.rows)

    def save(self, path: str | Path) -> Path:
        """Write `to_frame` as CSV, whole or not at all. Raises `InputError` where it cannot."""
        return write_atomically(path, self.to_frame().to_csv(index=False))

    def take(self) -> tuple[int, dict[str, float]] | None:
        """(step, {'oversmoothing/layer_03/hfc_lfc': value, ...}) of the last watched pass, once.

        None where there is none since it was last asked for. For loggers.
        """
        rows, self._fresh = self._fresh, []
        if not rows:
            return None
        width = len(str(len(rows) - 1))
        said = {
            f"oversmoothing/layer_{row['layer']:0{width}d}/{name}": float(value)
            for row in rows
            for name, value in row.items()
            if name not in ("step", "layer", "mode", "inputs")
        }
        return rows[0]["step"], said

    # -------------------------------------------------------------------------- their trainers

    def hugging_face(self, trainer: Any) -> Any:
        """A callback for this `transformers.Trainer`: its own loggers get the numbers.

        trainer.add_callback(watcher.hugging_face(trainer)). The hooks come off when it ends. Raises
        `RequirementError` without transformers.
        """
        watcher = self

        class Watching(required("transformers").TrainerCallback):  # type: ignore[misc]
            """Arms the watcher at each step, and logs in front of the optimizer's."""

            def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                watcher.arm(state.global_step)

            def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                watched = watcher.take()
                if watched is not None:  # callbacks are not told whose they are
                    trainer.log(watched[1])

            def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                watcher.close()

        return Watching()

    def lightning(self) -> Any:
        """A callback for Lightning's `Trainer(callbacks=[...])`: its loggers get the numbers.

        The hooks come off when the fit ends, or fails. Raises `RequirementError` without lightning.
        """
        watcher = self
        # The package that the script has imported.
        package = next((name for name in PACKAGES if name in sys.modules), PACKAGES[0])

        class Watching(required(package).Callback):  # type: ignore[misc]
            """Arms the watcher at each batch; the loggers get what was seen after it."""

            def on_train_batch_start(self, trainer: Any, *_: Any, **__: Any) -> None:
                watcher.arm(trainer.global_step)

            def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
                watched = watcher.take()
                if watched is not None:
                    for logger in trainer.loggers:
                        logger.log_metrics(watched[1], step=watched[0])

            def on_fit_end(self, *_: Any, **__: Any) -> None:
                watcher.close()

            on_exception = on_fit_end

        return Watching()


def blocks_of(module: nn.Module, blocks: Any) -> list[nn.Module]:
    """The blocks named, or given; raises `InputError` where there are none."""
    stack = blocks
    if isinstance(blocks, str):
        stack = list(part_of(module, blocks, module.named_modules()).children())
    if not isinstance(stack, Sequence | nn.ModuleList) or not len(stack):
        raise InputError(f"there are no blocks in {blocks!r}: name the list of the layers")
    return list(stack)


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


METRICS = ("log_hfc_lfc", "cos_mean", "effective_rank")


def stream_readings(X: Tensor, keep: Tensor | None, *, cls: bool) -> dict[str, float]:
    """METRICS of X [m, n, d] over the kept tokens, means over the m inputs, and hfc_lfc.

    cls: the same without token 0 as well, under *_without_cls.
    """
    each = [stream_metrics(part, without_first=cls) for part in kept_parts(X, keep)]
    given: dict[str, float] = {}
    for suffix in ("", "_without_cls") if "cos_mean_without_cls" in each[0] else ("",):
        for name in METRICS:
            values = torch.cat([one[name + suffix] for one in each])
            given[name + suffix] = float(values.mean())
        given[f"hfc_lfc{suffix}"] = float(np.exp(given[f"log_hfc_lfc{suffix}"]))
    return given


def spectral_readings(heads: Heads) -> dict[str, float]:
    """What `Watcher.to_frame` has of H = sum_h (W_V,h W_O,h)^T; {} beyond LARGEST features."""
    if heads.W_V.shape[1] > LARGEST:
        return {}
    why = ValueModes.of(heads, heads.W_V.device).why
    names = [f"h_{name}" for name in (*REGIONS, "real_min", "real_max", "abs_max")]
    return {name: why[name] for name in (*names, "asymmetry", "condition_V_H")}
