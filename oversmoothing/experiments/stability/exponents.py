"""Finite-time Lyapunov exponents of the differences between tokens along given streams.

With T_l = P Df_l(X_l) P, P = I - 11^T/n, and Phi = T_L ... T_1, the k-th exponent is
log sigma_k(Phi) / L. The leading singular vectors come from subspace iteration with Phi and Phi^T
(jvp and vjp of the blocks), so that what is given is a lower bound that the last rounds no longer
moved: `moved` says by how much they did. At consensus P Df P is the quotient of T1c; on streams
consensus is not invariant under Df, and T_l is what differences do to differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from oversmoothing.experiments.stability.block_maps import BlockMap, jvp
from oversmoothing.theory.support.errors import InputError

FRAME = 3
ROUNDS = 8


class Exponents(NamedTuple):
    """by_layer [layers, b, frame]: log growth of each leading singular vector in each layer, whose
    sums over layers are log sigma_k; moved [b]: by how much the last round changed log sigma_1."""

    by_layer: Tensor
    moved: Tensor


def exponents(
    blocks: Sequence[BlockMap], states: Sequence[Tensor], generator: torch.Generator
) -> Exponents:
    """The leading exponents along the streams states[l] [b, n, d] that the blocks run on."""
    b, n, d = states[0].shape
    frame = min(FRAME, (n - 1) * d)
    V = torch.randn(b, n, d, frame, generator=generator, dtype=states[0].dtype)
    V = _orthonormal(V - V.mean(1, keepdim=True))
    first = torch.zeros(b, dtype=V.dtype)
    for _ in range(ROUNDS):
        U = _orthonormal(_forward(blocks, states, V))
        V, R = _with_factor(_backward(blocks, states, U))
        last, first = first, torch.linalg.matrix_norm(R, ord=2).log()
    # In the frame, the singular vectors themselves.
    W = _forward(blocks, states, V).flatten(1, 2)
    turn = torch.linalg.svd(W, full_matrices=False)[2].mT
    V = (V.flatten(1, 2) @ turn).unflatten(1, (n, d))
    logs = []
    for f, X in zip(blocks, states, strict=False):
        V = _moved(f, X, V)
        size = torch.linalg.vector_norm(V, dim=(1, 2))
        logs.append(size.log())
        V = V / size[:, None, None]
    return Exponents(torch.stack(logs), first - last)


def _moved(f: BlockMap, X: Tensor, V: Tensor) -> Tensor:
    found = torch.stack([jvp(f, X, D.contiguous()) for D in V.unbind(-1)], dim=-1)
    return found - found.mean(1, keepdim=True)


def _forward(blocks: Sequence[BlockMap], states: Sequence[Tensor], V: Tensor) -> Tensor:
    for f, X in zip(blocks, states, strict=False):
        V = _moved(f, X, V)
    return V


def _backward(blocks: Sequence[BlockMap], states: Sequence[Tensor], U: Tensor) -> Tensor:
    for f, X in reversed(list(zip(blocks, states, strict=False))):
        back = _pulled(f, X, U)
        U = torch.stack(back, dim=-1)
        U = U - U.mean(1, keepdim=True)
    return U


def _pulled(f: BlockMap, X: Tensor, U: Tensor) -> list[Tensor]:
    try:
        with torch.enable_grad():
            pull = torch.func.vjp(f, X)[1]
        return [pull(D.contiguous(), retain_graph=True)[0].detach() for D in U.unbind(-1)]
    except RuntimeError as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"layer {f.number} has no derivative in reverse mode ({said}): its exponents need one, "
            "as training would; let it not work in place"
        ) from error


def _orthonormal(V: Tensor) -> Tensor:
    return _with_factor(V)[0]


def _with_factor(V: Tensor) -> tuple[Tensor, Tensor]:
    Q, R = torch.linalg.qr(V.flatten(1, 2))
    return Q.unflatten(1, V.shape[1:3]), R
