"""What the fused layer of many heads costs, as ratios in one process with one BLAS thread.

n = 197 tokens, d = 768, 12 heads of r = 64, float32: the attention block of a ViT-B/16.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.benchmark import Row, measurement
from oversmoothing.experiments.intervals import interleaved_medians
from oversmoothing.simulations.engine.evolve_heads import evolve_heads
from oversmoothing.simulations.engine.layers import HeadMap, mix
from oversmoothing.simulations.engine.state_attention import FromState
from oversmoothing.theory.spectra.heads import HeadWeights

N, D, HEADS, R = 197, 768, 12, 64
SHAPE = f"n = {N}, d = {D}, {HEADS} heads of r = {R}, float32"
# Products of squares of this size are taken for the peak.
SQUARE = 1024
# The fused layer's flops: into and out of the heads, and the attention of each.
FLOPS = 2 * (2 * N * D * HEADS * R + HEADS * N * N * R)
_LAYERS = 8


@measurement("heads", "a layer of many heads, fused, against a loop over heads", cuda=True)
def fused_heads(device: str) -> list[Row]:
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator)).to(device)

    A = torch.softmax(normal(HEADS, N, N), dim=-1)
    W_V, W_O = normal(HEADS, D, R, scale=D**-0.5), normal(HEADS, R, D, scale=0.1 * R**-0.5)
    W = W_V @ W_O
    X = normal(1, N, D)
    weights = HeadWeights(W_V.cpu().double().numpy(), W_O.cpu().double().numpy())
    fused_map = HeadMap(weights, X.device, torch.float32)
    square = normal(SQUARE, SQUARE)
    A_stack = A.unsqueeze(0)

    def fused() -> Tensor:
        return X + fused_map.leave(mix(A_stack, fused_map.enter(X)))

    def by_head() -> Tensor:
        result = X[0].clone()
        for h in range(HEADS):
            result += A[h] @ (X[0] @ W_V[h]) @ W_O[h]
        return result

    def dense_by_head() -> Tensor:
        result = X[0].clone()
        for h in range(HEADS):
            result += A[h] @ X[0] @ W[h]
        return result

    def evolved(attention: object, depth: int) -> Callable[[], object]:
        return lambda: evolve_heads(
            X0=X[0], attention=attention, weights=(W_V, W_O), depth=[depth], device=device
        )

    follow = FromState(normal(HEADS, D, R, scale=D**-0.5), normal(HEADS, D, R, scale=D**-0.5))
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)

    def repeated(layer: Callable[[], Tensor]) -> Callable[[], object]:
        # As in a run: the weights stay in the cache from one layer to the next.
        return lambda: [layer() for _ in range(_LAYERS)]

    runs: list[Callable[[], object]] = [
        *map(repeated, (fused, by_head, dense_by_head, lambda: square @ square)),
        *(evolved(attention, depth) for attention in (A, follow) for depth in (1, 1 + _LAYERS)),
    ]
    medians = interleaved_medians(runs, 7, synchronise=wait)
    ours, heads, dense, gemm = (seconds / _LAYERS for seconds in medians[:4])
    peak = 2 * SQUARE**3 / gemm
    # What comes before the first layer is in both, and cancels.
    given, computed = ((medians[i + 1] - medians[i]) / _LAYERS for i in (4, 6))
    return [
        Row("per-head loop / fused layer", heads / ours, {"fused": ours, "per head": heads}, SHAPE,
            at_least=1.0),
        Row("dense per head / fused layer", dense / ours,
            {"fused": ours, "dense per head": dense}, SHAPE),
        Row("fused layer, fraction of the peak of a square product", FLOPS / ours / peak,
            {"fused": ours, "square product": gemm}, f"{SHAPE}; {FLOPS / 1e6:.0f} Mflop"),
        Row("a layer of evolve_heads / fused layer", given / ours,
            {"layer": given, "fused": ours}, "scale kept, mean apart"),
        Row("a layer with attention from X / fused layer", computed / ours,
            {"layer": computed, "fused": ours},
            "softmax of 12 x 197 x 197 logits, deviations apart"),
    ]  # fmt: skip
