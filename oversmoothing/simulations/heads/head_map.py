"""sum_h A_h X W_h as three products over all heads at once.

With W_h = P_h Q_h: one product X [P_1 ... P_H], one batched product with the A_h, one product with
[Q_1; ...; Q_H]. Dense W_h are the case P_h = I, where the first product falls away.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from oversmoothing.simulations.state import normalise
from oversmoothing.theory.spectra.heads import HeadWeights, side_by_side
from oversmoothing.theory.support.sizes import Array


class HeadMap:
    """The weights of one layer on a device.

    shift: with scaled=True, W_h is 2^shift times what is kept, whose factors have their largest
    entries in [1/2, 1); else 0.
    """

    def __init__(
        self, weights: HeadWeights, where: torch.device, dtype: torch.dtype, scaled: bool = False
    ) -> None:
        self.heads, self.d = weights.heads, weights.d
        self.shift = 0

        def on_device(W: Array) -> Tensor:
            x = torch.as_tensor(W.copy())
            if scaled:
                x, shift = normalise(x, 2)
                self.shift += int(shift)
            return x.to(where, dtype)

        self.Q = on_device(weights.Q.reshape(-1, self.d))
        self.P = None if weights.P is None else on_device(side_by_side(weights.P))

    def enter(self, X: Float[Tensor, "N k d"]) -> Float[Tensor, "N k spread r"]:
        """X P_h: [N, k, d] -> [N, k, heads or 1, r] (one copy of X itself where W is dense)."""
        if self.P is None:
            return X.unsqueeze(2)
        N, k, d = X.shape
        return (X.reshape(N * k, d) @ self.P).view(N, k, self.heads, -1)

    def leave(self, T: Float[Tensor, "N k spread r"]) -> Float[Tensor, "N k d"]:
        """sum_h T_h Q_h: [N, k, heads, r] -> [N, k, d]; a missing head dimension is spread."""
        N, k = T.shape[:2]
        T = T.expand(N, k, self.heads, T.shape[-1])
        return (T.reshape(N * k, -1) @ self.Q).view(N, k, self.d)

    def total(self, m: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """m sum_h W_h for m [N, d]."""
        return self.leave(self.enter(m.unsqueeze(1))).squeeze(1)


def mix(
    A: Float[Tensor, "shared heads k n"], Z: Float[Tensor, "N n spread r"]
) -> Float[Tensor, "N k heads r"]:
    """A_h Z_h: A [N or 1, heads, k, n], Z [N, n, heads or 1, r] -> [N, k, heads, r]."""
    N, n, spread, r = Z.shape
    shared, heads, k = A.shape[0] == 1, A.shape[1], A.shape[2]
    if shared and spread == 1:
        # One product for all heads and states: their A_h stacked, the states side by side.
        side = Z.squeeze(2).transpose(0, 1).reshape(n, N * r)
        return (A[0].reshape(heads * k, n) @ side).view(heads, k, N, r).permute(2, 1, 0, 3)
    if shared:
        side = Z.permute(2, 1, 0, 3).reshape(heads, n, N * r)
        return torch.bmm(A[0], side).view(heads, k, N, r).permute(2, 1, 0, 3)
    Z = Z.expand(N, n, heads, r).transpose(1, 2)
    return (A @ Z).transpose(1, 2)
