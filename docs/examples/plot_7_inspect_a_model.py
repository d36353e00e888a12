"""
Inspect a small random ViT
==========================

A module of anyone's making is described by the names of its parts, put together again and compared
with itself, and then asked: does it smooth, where, and by which sublayer?
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

import oversmoothing

torch.manual_seed(0)


class Mix(nn.Module):
    """Attention of four heads with fused queries, keys and values."""

    def __init__(self, width):
        super().__init__()
        self.qkv, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.join(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Pre-LN: attention, then an FFN."""

    def __init__(self, width):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = Mix(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        x = x + self.mix(self.first_norm(x))
        return x + self.mlp(self.second_norm(x))


class Small(nn.Module):
    """Patches of 4 x 4 pixels through six blocks."""

    def __init__(self, width=32):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.encoder = nn.ModuleList([Block(width) for _ in range(6)])

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        for block in self.encoder:
            x = block(x)
        return x


model = oversmoothing.describe(
    Small().eval(),
    blocks="encoder",
    q="mix.qkv",
    k="mix.qkv",
    v="mix.qkv",
    out="mix.join",
    heads=4,
    norm_attention="first_norm",
    norm_ffn="second_norm",
    ffn="mlp",
)
report = oversmoothing.inspect(model, torch.rand(4, 1, 16, 16))
print(report.summary())

# %%
# The same as a picture; `report.save(FOLDER)` writes it with a page and the tables.
plt.figure(report.plot())
