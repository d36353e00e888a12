"""
Inspect a small random ViT
==========================

A module of anyone's making is read by watching one pass of it, put together again, compared with
itself, and then asked: does it smooth, where, and by which sublayer? You see the ratio by
layer and what each sublayer adds.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

import oversmoothing

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).chunk(3, -1)
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.join(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


class Small(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.encoder = nn.ModuleList([Block(width) for _ in range(6)])

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        for block in self.encoder:
            x = block(x)
        return x


model = oversmoothing.describe(Small().eval(), torch.rand(2, 1, 16, 16))
report = oversmoothing.inspect(model, torch.rand(8, 1, 16, 16))
print(report)
figure = plt.figure(report.plot())
oversmoothing.show(figure, report.to_frame().to_dict("list"))
