"""Products of doubly stochastic mixings, of which abstracts of 2026 say that they tend to uniform.

Every such R has R 1 = 1 and 1^T R = 1^T, so that R_L ... R_1 - J = (R_L - J) ... (R_1 - J), whose
spectral norm is at most the product of the second singular values: sharp mixing forgets slowly.
"""

import numpy as np

from oversmoothing.simulations.generators.attention import sinkhorn


def from_uniform(
    streams: int, layers: int, draws: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The largest |entry - 1/streams| of R_l ... R_1, and its bound, [layers, draws] each.

    A mixing is Sinkhorn's of exp(g), g standard Gaussian: drawn, not trained.
    """
    R = sinkhorn(np.exp(rng.standard_normal((layers, draws, streams, streams))))
    products = [R[0]]
    for each in R[1:]:
        products.append(each @ products[-1])
    second = np.linalg.svd(R, compute_uv=False)[..., 1]
    return np.abs(np.stack(products) - 1 / streams).max((-2, -1)), np.cumprod(second, axis=0)
