"""The few parts of timm and einops that peers' layers import, written anew for this comparison.

They stand for `timm.models.layers.Mlp`, `einops.rearrange` and `einops.layers.torch.Rearrange`, so
that neither library is needed; both sides of a comparison use them or do without.
"""

from collections.abc import Callable

from torch import Tensor, nn

_SPLIT, _MERGE = "b n (h d) -> b h n d", "b h n d -> b n (h d)"
_PATCHES = "b c (h p1) (w p2) -> b (h w) (p1 p2 c)"


class Mlp(nn.Module):
    """Linear, activation, linear: in_features -> hidden_features -> in_features. No dropout."""

    def __init__(
        self,
        in_features: int,
        hidden_features: int,
        act_layer: Callable[[], nn.Module] = nn.GELU,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        if drop:
            raise NotImplementedError("the stand-in of Mlp has no dropout")
        self.fc1 = nn.Linear(in_features, hidden_features)
        self.act = act_layer()
        self.fc2 = nn.Linear(hidden_features, in_features)

    def forward(self, x: Tensor) -> Tensor:
        after: Tensor = self.fc2(self.act(self.fc1(x)))
        return after


def rearrange(x: Tensor, pattern: str, h: int | None = None) -> Tensor:
    """h heads out of the features, or back into them; any other pattern is refused."""
    if pattern == _SPLIT and h is not None:
        b, n, width = x.shape
        return x.reshape(b, n, h, width // h).transpose(1, 2)
    if pattern == _MERGE:
        return x.transpose(1, 2).flatten(2)
    raise NotImplementedError(f"the stand-in of rearrange does not know '{pattern}'")


class Rearrange(nn.Module):
    """An image [b, c, h p, w p] as tokens [b, h w, p p c]."""

    def __init__(self, pattern: str, p1: int, p2: int) -> None:
        super().__init__()
        if pattern != _PATCHES:
            raise NotImplementedError(f"the stand-in of Rearrange does not know '{pattern}'")
        self.p1, self.p2 = p1, p2

    def forward(self, x: Tensor) -> Tensor:
        b, c, height, width = x.shape
        tiles = x.reshape(b, c, height // self.p1, self.p1, width // self.p2, self.p2)
        return tiles.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
