"""A transformer block in timm's form, with the places of a remedy, by the weights of another one.

What stands beside a peer's block: norm, attention of several heads, residual sum, norm, FFN,
residual sum. Nothing of it is the peer's but the numbers.
"""

import torch
from torch import Tensor, nn

from oversmoothing.experiments.remedies.remedy import Remedy


class Sublayer(nn.Module):
    """Attention of several heads with weights copied from a module with `qkv` and `proj`."""

    def __init__(self, remedy: Remedy, weights: dict[str, Tensor], heads: int) -> None:
        super().__init__()
        self.remedy = remedy
        self.heads = heads
        self.qkv, self.qkv_bias = weights["qkv.weight"].clone(), weights["qkv.bias"].clone()
        self.proj, self.proj_bias = weights["proj.weight"].clone(), weights["proj.bias"].clone()

    def forward(self, X: Tensor) -> Tensor:
        """The branch's output [b, n, d] of tokens X [b, n, d]."""
        b, n, d = X.shape
        Q, K, V = (
            each.reshape(b, n, self.heads, d // self.heads).transpose(1, 2)
            for each in (X @ self.qkv.mT + self.qkv_bias).chunk(3, -1)
        )
        A = (Q @ K.mT / (d // self.heads) ** 0.5).softmax(-1)
        Y = (self.remedy.attention(A) @ V).transpose(1, 2).reshape(b, n, d)
        return self.remedy.output(Y @ self.proj.mT + self.proj_bias, X, X)


class OurBlock(nn.Module):
    """X -> X + attention(norm X) -> X + FFN(norm X), pre-norm, under a remedy."""

    def __init__(self, remedy: Remedy, weights: dict[str, Tensor], heads: int) -> None:
        super().__init__()
        self.sublayer = Sublayer(remedy, below("attn.", weights), heads)
        self.weights = {name: value.clone() for name, value in weights.items()}

    def forward(self, X: Tensor) -> Tensor:
        """Tokens [b, n, d] behind the block."""
        middle = self.sublayer.remedy.joined(X, self.sublayer(self._normed("norm1", X)))
        hidden = nn.functional.gelu(self._linear("mlp.fc1", self._normed("norm2", middle)))
        return middle + self._linear("mlp.fc2", hidden)

    def _normed(self, name: str, X: Tensor) -> Tensor:
        gain, shift = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return torch.nn.functional.layer_norm(X, X.shape[-1:], gain, shift, eps=1e-5)

    def _linear(self, name: str, X: Tensor) -> Tensor:
        return X @ self.weights[f"{name}.weight"].mT + self.weights[f"{name}.bias"]


def below(prefix: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights whose name begins so, without it."""
    return {name.removeprefix(prefix): value for name, value in weights.items()
            if name.startswith(prefix)}  # fmt: skip
