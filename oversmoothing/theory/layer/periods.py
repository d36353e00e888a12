"""Periods of the closed classes of A, from its zeros: the eigenvalues of modulus 1 besides 1.

An irreducible class of period p moves from each of p groups of tokens into the next; the p-th roots
of unity w are simple eigenvalues of it, with eigenvectors w^g on group g (Perron and Frobenius).
Where the groups are of one size, such an eigenvector has the mean 0 exactly.
"""

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray


def cyclic_groups(positive: NDArray[np.bool_], members: Sequence[int]) -> list[list[int]]:
    """The groups of a closed class (token indices) in the order in which they follow each other.

    positive [n, n]: where A_ij > 0. One group where the class is aperiodic.
    """
    level = {members[0]: 0}
    queue, period = [members[0]], 0
    for i in queue:
        for j in members:
            if not positive[i, j]:
                continue
            if j not in level:
                level[j] = level[i] + 1
                queue.append(j)
            else:
                period = gcd(period, level[i] + 1 - level[j])
    return [[i for i in members if level[i] % period == g] for g in range(period)]
