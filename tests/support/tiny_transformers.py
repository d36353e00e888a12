"""Tiny Transformers of every family that the bridge reads, with weights far from trivial."""

from __future__ import annotations

import torch
import transformers
from torch import Tensor, nn

from tests.support.architectures import drawn

WORDS = 40
VISION = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 32,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
ENDS = {"vocab_size": WORDS, "bos_token_id": 1, "eos_token_id": 2}
# The library's class and its sizes.
KINDS = {
    "vit": ("ViTForImageClassification", VISION | {"num_labels": 5}),
    "deit": ("DeiTModel", VISION),
    "bert": ("BertModel", {
        "vocab_size": WORDS, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 32, "max_position_embeddings": 16}),
    "gpt2": ("GPT2LMHeadModel", ENDS | {
        "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 16}),
    "llama": ("LlamaForCausalLM", ENDS | {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 48, "max_position_embeddings": 16}),
}  # fmt: skip
FAMILIES = tuple(KINDS)
TEXT = ("bert", "gpt2", "llama")
DEIT_TI = {
    "hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "image_size": 224,
    "patch_size": 16,
}  # fmt: skip


def hooks(module: nn.Module) -> int:
    """How many there are on it and its parts."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in module.modules())


def tiny(family: str, implementation: str = "sdpa", seed: int = 0, **settings: object) -> nn.Module:
    """A random model in evaluation mode; norm gains and biases are random as well."""
    model, sizes = KINDS[family]
    config = getattr(transformers, model).config_class(**sizes)
    for name, value in settings.items():
        setattr(config, name, value)
    return drawn(model, config, implementation, seed, moved=0.2)


def tokens(lengths: tuple[int, ...] = (7, 4), seed: int = 0) -> dict[str, Tensor]:
    """Random token ids, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths))
    ids = torch.randint(3, WORDS, shape, generator=generator)
    mask = (torch.arange(shape[1]) < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask}


def pixels(count: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(count, 3, 32, 32, generator=torch.Generator().manual_seed(seed))


def batch(family: str) -> Tensor | dict[str, Tensor]:
    """Inputs that the family reads; texts of different lengths."""
    return tokens() if family in TEXT else pixels()


class Mixer(nn.Module):
    """Attention that works in place, with its own names and query, key, value head by head."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.all_three = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        parts = self.all_three(x).view(b, n, self.heads, 3, -1).permute(3, 0, 2, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts)
        answer: Tensor = self.join(mixed.transpose(1, 2).reshape(b, n, d))
        return answer


class Own(nn.Module):
    """A Pre-LN block nobody knows; the residual is added in place."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.RMSNorm(width)
        self.mix = Mixer(width, heads)
        self.think = nn.Sequential(nn.Linear(width, width), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        x += self.mix(self.first(x))
        x += self.think(self.second(x))
        return x


class Stack(nn.Module):
    """A whole model of such blocks on inputs [b, n, 6]."""

    def __init__(self, width: int = 12, heads: int = 3, depth: int = 2, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Linear(6, width)
        self.floors = nn.ModuleList(Own(width, heads) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for floor in self.floors:
            x = floor(x)
        return x


class Letters:
    """A tokenizer of the library's kind: a letter is a token, number 3 is markup, 4 a line end."""

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [1, *(3 + ord(letter) - ord("a") for letter in text)]}

    def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
        return [f"<{number}>" for number in ids]

    def decode(self, ids: list[int]) -> str:
        return {3: " <b>", 4: "\n"}.get(ids[0], chr(ids[0] - 3 + ord("a")))
