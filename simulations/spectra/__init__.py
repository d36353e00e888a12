"""Verdicts for thousands of attention matrices against the heads that they belong to (T1, T3).

`spectral_verdicts` is the front; `head_values` prepares a head. Bounds decide most pairs, Ritz
values many of the rest, and LAPACK whatever is closer than ten times the error estimate.
"""

from oversmoothing.simulations.spectra.batch_verdicts import SpectralVerdicts, spectral_verdicts
from oversmoothing.simulations.spectra.head_values import HeadValues, dense_values, head_values
from oversmoothing.simulations.spectra.steps import CLASSES

__all__ = [
    "CLASSES",
    "HeadValues",
    "SpectralVerdicts",
    "dense_values",
    "head_values",
    "spectral_verdicts",
]
