"""The measurements of `experiments`, for `oversmoothing bench`."""

from __future__ import annotations

from oversmoothing.experiments.bench import inspecting as bridge
from oversmoothing.experiments.bench import trained_spectra as spectra

MEASUREMENTS = [*bridge.MEASUREMENTS, *spectra.MEASUREMENTS]
