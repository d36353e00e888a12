"""What a remedy costs: the time of an attention sublayer with it over that without, on one thread.

The sublayer has queries, keys, values and the output projection; the streams of hyper-connections
are mixed in it too. Both run in turn, and the shortest of each is taken.
"""

import time

import torch
from torch import Tensor

from oversmoothing.experiments.remedies.by_name import in_table
from oversmoothing.experiments.remedies.on_output import FormOfH
from oversmoothing.experiments.remedies.remedy import Plain, Remedy
from oversmoothing.experiments.remedies.streams import HyperConnections
from oversmoothing.experiments.threads import one_thread

TOKENS, WIDTH, BATCH, ROUNDS = 64, 128, 8, 60


@one_thread()
@torch.no_grad()
def cost_ratio(name: str, rounds: int = ROUNDS) -> float:
    """Seconds of processor time with the remedy over those without, a forward pass in float32."""
    draw = torch.Generator().manual_seed(0)
    X = torch.randn(BATCH, TOKENS, WIDTH, generator=draw)
    weights = torch.randn(4, WIDTH, WIDTH, generator=draw) / WIDTH**0.5
    remedy = in_table(name, WIDTH).float()
    state = remedy.spread(X) if isinstance(remedy, HyperConnections) else X
    free: tuple[Tensor, ...] = ()
    if isinstance(remedy, FormOfH):
        free = remedy.form.nearest((weights[2] @ weights[3]).mT)
    plain, own = [], []
    for _ in range(rounds):
        plain.append(_seconds(Plain(), X, weights, ()))
        own.append(_seconds(remedy, state, weights, free))
    # The shortest of each: what else runs on the machine only ever adds.
    return min(own) / min(plain)


def _seconds(remedy: Remedy, X: Tensor, weights: Tensor, free: tuple[Tensor, ...]) -> float:
    start = time.thread_time()  # a shared machine does not count
    sublayer(remedy, X, weights, free)
    return time.thread_time() - start


def sublayer(remedy: Remedy, X: Tensor, weights: Tensor, free: tuple[Tensor, ...] = ()) -> Tensor:
    """One attention sublayer of one head: weights [4, d, d] are W_Q, W_K, W_V, W_O.

    free: the free tensors of a form of H, which takes the place of W_V W_O.
    """
    W_Q, W_K, W_V, W_O = weights
    Z = remedy.entered(X)
    A = ((Z @ W_Q) @ (Z @ W_K).mT * X.shape[-1] ** -0.5).softmax(-1)
    if isinstance(remedy, FormOfH):
        # Formed anew in every pass, as in training.
        H: Tensor = remedy.form(*free)
        after: Tensor = X + A @ (Z @ H.mT)
        return after
    V = Z @ W_V
    V = remedy.values(V, V)
    Y = remedy.output(remedy.attention(A) @ V, V, V)
    return remedy.joined(X, Y @ W_O)


def parameters(name: str) -> int:
    """Trained numbers that the remedy adds to a layer of `WIDTH` features."""
    return sum(each.numel() for each in in_table(name, WIDTH).parameters())
