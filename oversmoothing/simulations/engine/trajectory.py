"""The states that `evolve` kept, from which every metric is read (T1c, T1d)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float64, Int64
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.simulations.drawing.wording import as_html, few
from oversmoothing.simulations.engine.errors import States, errors_of, pieces, split_states
from oversmoothing.simulations.state import UNUSED, SplitState, scale, undisturbed
from oversmoothing.simulations.state_metrics import metrics
from oversmoothing.theory.support.errors import InputError, RequirementError, required, whole_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# The columns that a notebook shows, and what it calls them.
_SHOWN = {"depth": "layer", "log10": "log10 HFC/LFC", "cos_mean": "cos mean", "cos_min": "cos min",
          "effective_rank": "eff. rank"}  # fmt: skip


@dataclass(frozen=True)
class Trajectory:
    """States X_L at chosen depths L, in the coordinates y_i = x_i - x_n and c = pi^T X.

    depths: L of each state. batch: the batch shape. kept: states [len(depths), N, n, d], the rows
    of y and then c, N the flattened batch; exponents [len(depths), N, 2], their powers of two; the
    tokens themselves where they are known better than from these; and offset [N, n], 1/n - pi, so
    that mean = c + offset^T HFC. method: how the states were computed (see `evolve`), reason: why
    so, in a sentence.

    >>> import oversmoothing
    >>> A = [[0.75, 0.25], [0.25, 0.75]]
    >>> oversmoothing.evolve(X0=[[1.0], [2.0]], A=A, H=[[0.5]], depth=[0, 10, 1000])
    Trajectory(3 depths from 0 to 1000, n=2, d=1, method='closed_form')
    """

    depths: tuple[int, ...]
    batch: tuple[int, ...]
    kept: States
    method: str
    reason: str

    def __repr__(self) -> str:
        n, d = self.states.shape[-2:]
        kept = f"{len(self.depths)} depths from {self.depths[0]} to {self.depths[-1]}"
        batch = f", batch {self.batch}" if self.batch else ""
        return f"Trajectory({kept}, n={n}, d={d}{batch}, method='{self.method}')"

    def __len__(self) -> int:
        return len(self.depths)

    @property
    def states(self) -> Tensor:
        """The rows of y and then c, [depths, N, n, d]."""
        return self.kept.states

    @property
    def exponents(self) -> Tensor:
        """Their powers of two, [depths, N, 2]."""
        return self.kept.exponents

    @property
    def offset(self) -> Float64[Tensor, "N n"]:
        """1/n - pi, or 0 where c is the plain mean."""
        return self.kept.offset

    @cached_property
    def error(self) -> tuple[float, ...]:
        """At each depth an estimate of the error of log HFC/LFC, the worst of the batch.

        It counts the relative errors of HFC and of the mean, what the two lose to cancellation
        included; inf where no digit is known. For an iteration it is the distance to runs that
        start a few units of rounding away and go off by one or two more in each layer; asking for
        it the first time makes these runs. It is no proven bound.
        """
        hfc, mean, _ = self._errors
        return tuple(float(e) for e in (hfc + mean).amax(-1))

    @cached_property
    def hfc_error(self) -> tuple[float, ...]:
        """The same of HFC alone, relative to its norm."""
        return tuple(float(e) for e in self._errors[0].amax(-1))

    @cached_property
    def cosine_error(self) -> tuple[float, ...]:
        """The same of the mean and the least cosine: twice the worst relative error of a token."""
        if self.states.shape[-2] == 1:
            return (0.0,) * len(self.depths)
        return tuple(2.0 * float(e) for e in self._errors[2].amax((-2, -1)))

    @cached_property
    @undisturbed()
    def _errors(self) -> tuple[Tensor, Tensor, Tensor]:
        return errors_of(self.kept)

    @undisturbed()
    def state(self, index: int) -> SplitState:
        """The split state at depths[index], batched as the input was, in float64.

        Raises `InputError` for an index that no kept depth has.
        """
        index = whole_number("the index of a kept depth", index)
        if not -len(self.depths) <= index < len(self.depths):
            raise InputError(
                f"index {index} is that of no kept depth: {len(self.depths)} are kept, "
                f"{list(self.depths[:8])}; name others in evolve(depth=[...])"
            )
        parts = vars(split_states(self.kept, slice(index, index + 1 or None))).values()
        return SplitState(*(x.reshape((*self.batch, *x.shape[2:])) for x in parts))

    @undisturbed()
    def X(self, index: int) -> tuple[Float64[Tensor, "*batch n d"], Int64[Tensor, "*batch"]]:
        """(X [..., n, d], exponent [...]): the state at depths[index] is 2^exponent X."""
        state = self.state(index)
        rows, exponent = state.rows, state.row_exponent
        top = torch.where((rows != 0).any(-1), exponent, UNUSED).amax(-1)
        top = torch.where((rows != 0).any(-1).any(-1), top, torch.zeros_like(top))
        return scale(rows, exponent - top.unsqueeze(-1), 1), top

    @undisturbed()
    def metrics(self) -> pd.DataFrame:
        """One row for each depth (and batch element): depth and every metric of `metrics`.

        Batched input adds the column batch, the index into the flattened batch. Raises
        `RequirementError` without pandas.
        """
        return self._table(pieces(self.kept))

    def plot(self, axes: Sequence[Axes] | None = None) -> NDArray[np.object_]:
        """Draw HFC/LFC (from its logarithm) and the cosines against depth; returns the two Axes.

        axes: two of your own; else those of a new figure, `axes[0].figure`. A batch shows medians,
        with bands from the least to the largest. matplotlib loads when it is drawn. Raises
        `InputError` for another number of axes, `RequirementError` without pandas.
        """
        table = self.metrics()
        from oversmoothing.simulations.drawing.depth_plot import draw_metrics

        return draw_metrics(table, axes)

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the line, and some of the depths, of a batch its first element.

        None, and so the line alone, where there is no pandas.
        """
        try:
            table = self._table([slice(k, k + 1) for k in few(len(self.depths))])
        except RequirementError:
            return None
        of = " Element 0 of the batch:" if self.batch else ""
        first = table[table["batch"] == 0] if self.batch else table
        shown = first.assign(log10=first["log_hfc_lfc"] / math.log(10.0))
        return as_html(f"{self!r}{of}", shown[list(_SHOWN)].rename(columns=_SHOWN))

    def _table(self, places: Iterable[slice]) -> pd.DataFrame:
        """The metrics at ranges of the kept depths, each of which is read at once."""
        read = [(self.depths[each], metrics(split_states(self.kept, each))) for each in places]
        depths, number = [L for some, _ in read for L in some], math.prod(self.batch)
        table: dict[str, object] = {"depth": [L for L in depths for _ in range(number)]}
        if self.batch:
            table["batch"] = list(range(number)) * len(depths)
        for name in read[0][1]:
            parts = [values[name].flatten().cpu() for _, values in read]
            table[name] = torch.cat(parts).numpy()
        frame: pd.DataFrame = required("pandas").DataFrame(table)
        return frame
