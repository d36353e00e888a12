"""Mean, standard deviation and 95 % interval of numbers that come batch by batch (Welford)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oversmoothing.experiments.inspection.intervals import Z95
from oversmoothing.theory.support.errors import InputError

Array = NDArray[np.float64]


class Running:
    """Statistics over the first axis of every batch given to `update`, in O(1) memory.

    Batches are [m, ...] with the same trailing shape; float64. NaN and infinity are kept, not
    dropped: they spoil the statistics of their own entry alone.
    """

    def __init__(self) -> None:
        self.count = 0
        self._mean: Array = np.zeros(())
        self._squares: Array = np.zeros(())

    def update(self, values: ArrayLike) -> Running:
        """Take in a batch [m, ...]. Raises `InputError` for a scalar or another trailing shape."""
        batch = np.asarray(values, dtype=np.float64)
        if batch.ndim == 0 or (self.count and batch.shape[1:] != self._mean.shape):
            raise InputError(
                f"a batch of the shape {batch.shape} after ones of [m, {self._mean.shape}]: the "
                "first axis counts the observations, the others stay as they are"
            )
        m = len(batch)
        if m == 0:
            return self
        with np.errstate(invalid="ignore"):
            mean = batch.mean(axis=0)
            squares = np.square(batch - mean).sum(axis=0)
            # Two samples of sizes N and m with their own means and sums of squares, put together.
            total = self.count + m
            gap = mean - self._mean
            self._squares = squares + self._squares + np.square(gap) * (self.count * m / total)
            self._mean = self._mean + gap * (m / total)
        self.count = total
        return self

    @property
    def mean(self) -> Array:
        """Mean over all observations; NaN before the first."""
        return self._mean if self.count else np.asarray(np.nan)

    @property
    def sd(self) -> Array:
        """Standard deviation with n - 1; NaN for fewer than two observations."""
        if self.count < 2:
            return np.full_like(self._mean, np.nan)
        return np.sqrt(self._squares / (self.count - 1))

    @property
    def interval(self) -> tuple[Array, Array]:
        """(low, high) of the mean: +- 1.96 standard errors; NaN for fewer than two."""
        reach = Z95 * self.sd / max(self.count, 1) ** 0.5
        return self.mean - reach, self.mean + reach
