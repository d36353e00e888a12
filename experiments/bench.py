"""The measurements of `experiments`, for `oversmoothing bench`."""

from __future__ import annotations

from experiments.benches import bridge

MEASUREMENTS = [*bridge.MEASUREMENTS]
