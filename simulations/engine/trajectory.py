"""The states that `evolve` kept, from which every metric is read (T1c, T1d)."""

import math
from dataclasses import dataclass

import pandas as pd
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from oversmoothing.simulations.metrics.metrics import metrics
from oversmoothing.simulations.states.scaled import UNUSED, add, scale
from oversmoothing.simulations.states.split_state import SplitState, from_differences, join

# States are measured together as long as they hold at most this many numbers.
_TOGETHER = 1 << 20


@dataclass(frozen=True)
class Trajectory:
    """States X_L at chosen depths L, in the coordinates y_i = x_i - x_n and c = pi^T X.

    depths: L of each state. batch: the batch shape. states [len(depths), N, n, d]: the rows of y
    and then c, N the flattened batch; exponents [len(depths), N, 2]: their powers of two.
    offset [N, n]: 1/n - pi, so that mean = c + offset^T HFC. method: how the states were computed
    (see `evolve`), reason: why so, in a sentence; error: at each depth a first-order estimate of
    the relative error of HFC and of the pi-mean, the worst of the two and of the batch.
    """

    depths: tuple[int, ...]
    batch: tuple[int, ...]
    states: Float[Tensor, "depths N n d"]
    exponents: Int64[Tensor, "depths N 2"]
    offset: Float64[Tensor, "N n"]
    method: str
    reason: str
    error: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.depths)

    def state(self, index: int) -> SplitState:
        """The split state at depths[index], batched as the input was, in float64."""
        flat = self._split(index, index + 1 or None)
        n, d = self.states.shape[-2:]
        return SplitState(
            flat.hfc.reshape(*self.batch, n, d),
            flat.mean.reshape(*self.batch, d),
            flat.hfc_exponent.reshape(self.batch),
            flat.mean_exponent.reshape(self.batch),
            flat.rows.reshape(*self.batch, n, d),
            flat.row_exponent.reshape(*self.batch, n),
        )

    def X(self, index: int) -> tuple[Float64[Tensor, "*batch n d"], Int64[Tensor, "*batch"]]:
        """(X [..., n, d], exponent [...]): the state at depths[index] is 2^exponent X."""
        state = self.state(index)
        rows, exponent = state.rows, state.row_exponent
        top = torch.where((rows != 0).any(-1), exponent, UNUSED).amax(-1)
        top = torch.where((rows != 0).any(-1).any(-1), top, torch.zeros_like(top))
        return scale(rows, exponent - top.unsqueeze(-1), 1), top

    def metrics(self) -> pd.DataFrame:
        """One row for each depth (and batch element): depth and every metric of `metrics`.

        Batched input adds the column batch, the index into the flattened batch.
        """
        step = max(1, _TOGETHER // max(1, self.states[0].numel()))
        parts = []
        for first in range(0, len(self.depths), step):
            values = metrics(self._split(first, first + step))
            parts.append({name: value.flatten().cpu() for name, value in values.items()})
        number = math.prod(self.batch)
        table: dict[str, object] = {"depth": [L for L in self.depths for _ in range(number)]}
        if self.batch:
            table["batch"] = list(range(number)) * len(self.depths)
        for name in parts[0] if parts else ():
            table[name] = torch.cat([part[name] for part in parts]).numpy()
        return pd.DataFrame(table)

    def _split(self, first: int, last: int | None) -> SplitState:
        """The states of a range of depths, batch [depths, N]."""
        Z = self.states[first:last].to(torch.float64)
        hfc_exponent, c_exponent = self.exponents[first:last].unbind(-1)
        hfc = from_differences(Z[..., :-1, :])
        coupling = (self.offset.unsqueeze(-2) @ hfc).squeeze(-2)
        mean, mean_exponent = add((Z[..., -1, :], c_exponent), (coupling, hfc_exponent), trailing=1)
        return join(hfc, mean, hfc_exponent, mean_exponent)
