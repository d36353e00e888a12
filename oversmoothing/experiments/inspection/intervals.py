"""95 % intervals over images, which are the independent observations of every table here."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

# The 97.5 % point of the standard normal distribution.
Z95 = 1.959963984540054


def share_interval(share: float, images: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share in [0, 1] averaged over `images` independent images.

    The cases of one image (its layers) depend on each other. Whatever their dependence, a quantity
    in [0, 1] with mean p has a variance of at most p (1 - p), so counting images and not cases
    as trials never makes the interval too short; and it is not empty at 0 or 1.
    """
    z2 = Z95**2 / images
    return _lower_end(share, z2), 1.0 - _lower_end(1.0 - share, z2)


def _lower_end(p: float, z2: float) -> float:
    """The smaller root of (1 + z2) x^2 - (2 p + z2) x + p^2, from the larger one: no cancellation,
    so that the end never leaves [0, p]."""
    larger = (p + z2 / 2 + float(np.sqrt(z2 * (p * (1 - p) + z2 / 4)))) / (1 + z2)
    return p * p / ((1 + z2) * larger)


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """(mean, low, high) over the first axis of values [m], by Student's t with m - 1 degrees.

    Exact for normal values whatever m, and wide where m is 2 or 3. NaN (an undefined metric of some
    image) and infinity are kept, not dropped. For m = 1 the ends are NaN.
    """
    m = len(values)
    mean = float(np.mean(values))
    if m == 1 or not np.isfinite(mean):
        return mean, float("nan"), float("nan")
    reach = float(student.ppf(0.975, m - 1)) * float(np.std(values, ddof=1)) / m**0.5
    return mean, mean - reach, mean + reach
