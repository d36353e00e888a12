"""Which basis has the eigenvector of a disc."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from oversmoothing.theory.spectra.disc_basis import Basis
from oversmoothing.theory.spectra.discs import Discs, Failure


class Vectors:
    """Where the eigenvectors of some discs are found: in their basis, or in another one, `again`,
    where the discs stood on a diagonal."""

    def __init__(self, given: Discs, again: Callable[[], Discs | Failure]) -> None:
        self._given, self._again = given, again

    @cached_property
    def discs(self) -> Discs | None:
        """Those with the basis; None where there is none."""
        found: Discs | Failure = self._given if self._given.basis is not None else self._again()
        return None if isinstance(found, Failure) or found.basis is None else found

    def find(self, i: int) -> tuple[Basis, int] | None:
        """(basis, place) of the eigenvalue in the disc i, which is alone."""
        discs = self.discs
        if discs is None or discs.basis is None:
            return None
        if discs is self._given:
            return (discs.basis, i) if i < len(discs.basis.re) else None
        given = self._given
        near = np.abs(discs.centres - given.centres[i]) <= 2 * (discs.radii + given.radii[i])
        found = np.flatnonzero(near)
        alone = len(found) == 1 and discs.alone[found[0]]
        return (discs.basis, int(found[0])) if alone else None
