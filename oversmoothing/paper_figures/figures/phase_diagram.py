"""Figure: where random attention and a random H smooth: a sweep as a phase diagram (T2, T5).

Over the temperature of attention and the upper end of the eigenvalues of H, for three asymmetries
of W_Q W_K^T. `oversmoothing sweep CONFIG --figure X Y PANEL` draws the same of any sweep.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import Context, label_panels
from oversmoothing.simulations.sweep import phase_diagram as diagram
from oversmoothing.simulations.sweep.config import PARAMETERS, Config, example
from oversmoothing.simulations.sweep.runner import run_sweep
from oversmoothing.simulations.sweep.store import read_table

TITLE = "Where random attention smooths: share over temperature and the spectrum of H"
SHORT = (
    "Where random attention and a random H smooth: the share of draws by verdict, where "
    "eigenvalues of H may be positive. The data have the measured slope of HFC/LFC."
)
NOT_SHOWN = (
    "Gaussian scores and a real spectrum in an orthonormal basis: trained attention is "
    "neither. A share is of a few draws in each cell, and the line averages neighbours."
)


def configuration(seed: int) -> Config:
    """The packaged example, its draws shifted to another seed."""
    base = example("phase_diagram")
    number = len(base.axes["seed"])
    seeds = tuple(map(PARAMETERS["seed"].check, range(seed * number, (seed + 1) * number)))
    return replace(base, axes=base.axes | {"seed": seeds})


def data(context: Context) -> pd.DataFrame:
    """One row a cell (`phase_diagram.cells`); some 20 s where the sweep is not there.

    The sweep itself is kept in context.results/sweeps/phase_diagram and resumes if broken.
    """
    path = run_sweep(
        configuration(context.seed),
        context.results / "sweeps" / f"phase_diagram-{context.seed}",
        progress=context.progress,
    )
    return diagram.cells(read_table(path).to_pandas(), "temperature", "high", "asymmetry")


def draw(table: pd.DataFrame) -> Figure:
    """The share of SMOOTHING where eigenvalues of H may be positive, a column an asymmetry."""
    figure = diagram.draw(_shown(table))
    label_panels(np.array(figure.axes[: table["panel"].nunique()]))
    return figure


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["y"] > 1e-9].assign(slope=np.nan)


def words(table: pd.DataFrame) -> str:
    rest = table[~(table["y"] > 1e-9)]
    fixed = example("phase_diagram").fixed
    return (
        f"n = {fixed['n']} tokens, d = {fixed['d']} features, {fixed['depth']} layers; eigenvalues "
        f"of H uniform in [{fixed['low']:g}, high] in a random orthonormal basis; W_Q W_K^T "
        f"Gaussian, asymmetry its antisymmetric share. {diagram.caption(_shown(table))} The table "
        f"also has slopes, and {len(rest):,} cells with high of at most 0, where no h is positive: "
        f"there {rest['smoothing'].sum():,} of {rest['points'].sum():,} points smooth."
    )
