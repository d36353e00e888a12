"""Multiply-adds: of the model and of what predicts it, for one input, weights times tokens."""

from oversmoothing.experiments.models.model import Heads, Layer, Model


def _projections(heads: Heads) -> int:
    return 2 * heads.W_Q.numel() + heads.W_V.numel() + heads.W_O.numel()


def token_cost(layer: Layer) -> int:
    """Multiply-adds of one token through the layer's projections and FFN, without attention."""
    return _projections(layer.heads) + ffn_cost(layer)


def ffn_cost(layer: Layer) -> int:
    """Multiply-adds of one token through the FFN: the block's matrices that are not attention's.

    0 without an FFN. A block whose attention module is the block itself counts what its own
    projections leave.
    """
    if layer.ffn is None:
        return 0
    if layer.attention is layer.block:
        entries = sum(p.numel() for p in layer.block.parameters() if p.ndim == 2)
        return max(entries - _projections(layer.heads), 0)
    inner = {id(p) for p in layer.attention.parameters()}
    if layer.out is not None:
        inner |= {id(p) for p in layer.out.parameters()}
    return sum(p.numel() for p in layer.block.parameters() if p.ndim == 2 and id(p) not in inner)


def attention_cost(layer: Layer, queries: int, keys: int) -> int:
    """Multiply-adds of q k^T and A v."""
    heads = layer.heads
    return queries * keys * heads.number * (heads.W_Q.shape[-1] + heads.width)


def model_cost(model: Model, tokens: int) -> int:
    """Multiply-adds of all layers on one input of `tokens` tokens (no embedding, no final head)."""
    return sum(tokens * token_cost(x) + attention_cost(x, tokens, tokens) for x in model.layers)
