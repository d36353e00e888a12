"""The measurements of `experiments`, for `oversmoothing bench`."""

from __future__ import annotations

from experiments.benches import bridge, spectra

MEASUREMENTS = [*bridge.MEASUREMENTS, *spectra.MEASUREMENTS]
