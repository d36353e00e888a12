"""Every speed and accuracy target of the project, measured: one module a subject."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oversmoothing.experiments.bench.benchmark import Measurement

_MODULES = (
    "certificates",
    "engine",
    "spectra_at_scale",
    "fused_heads",
    "scaling",
    "inspecting",
    "trained_spectra",
)


def measurements() -> list[Measurement]:
    """What the modules declare with `benchmark.measurement`, in their order."""
    from oversmoothing.experiments.bench.benchmark import Measurement

    modules = (import_module(f"{__name__}.{name}") for name in _MODULES)
    return [each for module in modules for each in vars(module).values()
            if isinstance(each, Measurement)]  # fmt: skip
