"""A vision transformer with timm's parameter names, built from a checkpoint's shapes alone.

Such checkpoints are one file without a config. Everything but the number of heads follows from the
shapes; heads of width 64 are the rule of these models, and heads= overrides it.
"""

from collections import OrderedDict
from collections.abc import Mapping
from math import isqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.theory.support.errors import InputError

HEAD_WIDTH, EPS = 64, 1e-6
_MARKS = ("blocks.0.attn.qkv.weight", "patch_embed.proj.weight", "pos_embed")


class TimmAttention(nn.Module):
    def __init__(self, width: int, heads: int, bias: bool) -> None:
        super().__init__()
        self.num_heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v)
        answer: Tensor = self.proj(mixed.transpose(1, 2).reshape(b, n, d))
        return answer


class TimmBlock(nn.Module):
    def __init__(self, width: int, heads: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=EPS) for _ in range(2))
        self.attn = TimmAttention(width, heads, bias)
        parts = {"fc1": nn.Linear(width, hidden), "act": nn.GELU(), "fc2": nn.Linear(hidden, width)}
        self.mlp = nn.Sequential(OrderedDict(parts))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        answer: Tensor = x + self.mlp(self.norm2(x))
        return answer


class TimmViT(nn.Module):
    """Class scores [b, classes] of pixels [b, 3, s, s], or tokens [b, n, d] without a head."""

    def __init__(
        self, *, width: int, depth: int, heads: int, patch: int, image_size: int, hidden: int,
        classes: int, bias: bool = True, channels: int = 3,
    ) -> None:  # fmt: skip
        super().__init__()
        self.image_size = image_size
        tokens = (image_size // patch) ** 2 + 1
        cut = {"proj": nn.Conv2d(channels, width, patch, patch), "flat": nn.Flatten(2)}
        self.patch_embed = nn.Sequential(OrderedDict(cut))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, width))
        self.blocks = nn.ModuleList(TimmBlock(width, heads, hidden, bias) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=EPS)
        self.head = nn.Linear(width, classes) if classes else nn.Identity()

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patch_embed(pixels).mT
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        answer: Tensor = self.head(x[:, 0]) if isinstance(self.head, nn.Linear) else x
        return answer


def has_timm_names(weights: Mapping[str, Tensor]) -> bool:
    return all(name in weights for name in _MARKS)


def timm_vit(weights: Mapping[str, Tensor], heads: int | None, where: str) -> TimmViT:
    """The model of a checkpoint with timm's names, in the checkpoint's dtype.

    Raises `InputError` for missing or surplus weights (layer scale, norms on queries and keys, a
    distillation token and the like are other models), and a width that is no multiple of 64
    without heads=.
    """
    patches = weights["patch_embed.proj.weight"]
    width, channels, patch = patches.shape[0], patches.shape[1], patches.shape[-1]
    tokens = weights["pos_embed"].shape[1]
    side = isqrt(tokens - 1)
    if side * side != tokens - 1:
        raise InputError(
            f"'{where}' has {tokens} position embeddings, not one CLS token and a square of "
            "patches: distilled models and models without CLS are not understood"
        )
    if heads is None:
        if width % HEAD_WIDTH:
            raise InputError(
                f"'{where}': the number of heads does not follow from the width {width}: say it, "
                "open_model(..., heads=)"
            )
        heads = width // HEAD_WIDTH
    blocks = {name.split(".")[1] for name in weights if name.startswith("blocks.")}
    depth = 1 + max(int(number) for number in blocks if number.isdecimal() and len(number) < 9)
    if depth > len(blocks):
        raise InputError(f"'{where}' holds {len(blocks)} blocks, numbered to {depth - 1}")
    with torch.device("meta"):
        model = TimmViT(
            width=width,
            depth=depth,
            heads=heads,
            patch=patch,
            image_size=side * patch,
            hidden=weights.get("blocks.0.mlp.fc1.weight", torch.empty(0)).shape[0],
            classes=weights["head.weight"].shape[0] if "head.weight" in weights else 0,
            bias="blocks.0.attn.qkv.bias" in weights,
            channels=channels,
        )
    expected = set(model.state_dict())
    missing, surplus = sorted(expected - set(weights)), sorted(set(weights) - expected)
    if missing or surplus:
        raise InputError(
            f"'{where}' is not a plain vision transformer with timm's names: missing "
            f"{missing[:3] or 'nothing'}, not understood {surplus[:3] or 'nothing'}; load it with "
            "its own code and give the module to describe()"
        )
    try:
        model.load_state_dict(dict(weights), assign=True)
    except RuntimeError as error:
        raise InputError(f"the shapes in '{where}' do not go together: {error}") from error
    return model
