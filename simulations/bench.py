"""Every benchmark of the package: each module of `simulations.benches` lists its own."""

from __future__ import annotations

from simulations.benches import engine, heads, scaling, spectra

MEASUREMENTS = [
    *engine.MEASUREMENTS,
    *spectra.MEASUREMENTS,
    *heads.MEASUREMENTS,
    *scaling.MEASUREMENTS,
]
