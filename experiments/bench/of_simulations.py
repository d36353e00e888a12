"""Every benchmark of the package: each module of `experiments.bench` lists its own."""

from __future__ import annotations

from oversmoothing.experiments.bench import engine, scaling
from oversmoothing.experiments.bench import fused_heads as heads
from oversmoothing.experiments.bench import spectra_at_scale as spectra

MEASUREMENTS = [
    *engine.MEASUREMENTS,
    *spectra.MEASUREMENTS,
    *heads.MEASUREMENTS,
    *scaling.MEASUREMENTS,
]
