"""How a model's blocks multiply small differences between tokens, on one batch.

Directions D [b, n, d] sum to 0 over the tokens and have unit length; growth is log ||P Df(Z)[D]||,
P = I - 11^T/n, at Z = 1 m^T + t (X - 1 m^T) with m the mean over the tokens of the stream X: t = 0
is consensus, where P Df P is the quotient of T1c, t = 1 the stream itself. There consensus is not
invariant under Df, and P Df P, what differences do to differences, is a compression of it, not a
quotient; `leak` says how much of a common shift becomes difference.

`exponents` are finite-time Lyapunov exponents of the differences between tokens along streams. With
T_l = P Df_l(X_l) P and Phi = T_L ... T_1 the k-th is log sigma_k(Phi) / L. The leading singular
vectors come from subspace iteration with Phi and Phi^T (jvp and vjp of the blocks), so that what is
given is a lower bound: `moved` says by how much the last round moved it.

At consensus a described layer sends equal tokens to equal tokens; its derivative there is a closed
form, from the weights of the description alone (T8c), for any number of heads, masks, rotary
positions and norms; only the FFN's own Jacobian is taken by jvp, of the FFN on one token.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from oversmoothing.experiments.ladder.recording import log_ratio
from oversmoothing.experiments.models.model import Layer, Model, Norm
from oversmoothing.experiments.repeated.blocks import (
    BlockMap,
    Recorded,
    at_consensus,
    check_consensus,
    jvp,
    plain_attention,
)
from oversmoothing.theory import at_consensus as theory
from oversmoothing.theory.at_consensus import LoopLaw
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.sizes import Array


@torch.no_grad()
def consensus_step(layer: Layer, c: Tensor) -> Tensor:
    """g(c) for c [b, d]: the layer sends equal tokens 1 c^T to 1 g(c)^T, whatever its attention."""
    X = c.unsqueeze(1)
    N = X if layer.placement == "post" else layer.norm_attention(X)
    heads = layer.heads.to(c.device, c.dtype)
    alone = torch.ones(len(c), heads.number, 1, 1, dtype=c.dtype, device=c.device)
    middle = layer.after_attention(X, heads.attended(alone, N))
    return layer.after_ffn(X, middle).squeeze(1)


@torch.no_grad()
def linearised(f: BlockMap, c: Tensor, n: int) -> theory.AtConsensus:
    """The closed form of T8c at 1 c^T with n tokens, c [d]; in float64 but for attention and the
    FFN, which are the block's own and run in its dtype."""
    layer, c = f.layer, c.double()
    dtype = next(p.dtype for p in layer.block.parameters() if p.is_floating_point())
    heads = layer.heads.to(c.device, c.dtype)
    A = f.first().attention(c.to(dtype).expand(1, n, -1).contiguous())[0].double()
    A = A / A.sum(-1, keepdim=True)  # what is stochastic to the rounding of float32
    W = torch.einsum("hdr,hre->hde", heads.W_V, heads.W_O)
    bias = torch.zeros_like(c)
    if heads.b_V is not None:
        bias = bias + torch.einsum("hr,hre->e", heads.b_V, heads.W_O)
    if heads.b_O is not None:
        bias = bias + heads.b_O
    return theory.layer_at_consensus(
        c.numpy(), A.numpy(), W.numpy(), bias.numpy(), placement=layer.placement,
        norm=_token_norm(layer.norm_attention, len(c)),
        norm_ffn=_token_norm(layer.norm_ffn, len(c)),
        ffn=None if layer.ffn is None else _token_map(layer.ffn, dtype),
        behind=_token_norm(layer.output_norm_attention, len(c)),
        behind_ffn=_token_norm(layer.output_norm_ffn, len(c)),
    )  # fmt: skip


def _token_norm(norm: Norm, d: int) -> theory.TokenNorm:
    gain = np.ones(d) if norm.kind == "none" else norm.gain.double().cpu().numpy()
    shift = np.zeros(d) if norm.shift is None else norm.shift.double().cpu().numpy()
    return theory.TokenNorm(norm.kind, gain, shift, norm.eps)


def _token_map(ffn: Callable[[Tensor], Tensor], dtype: torch.dtype) -> theory.TokenMap:
    def value(x: Array) -> Array:
        return np.asarray(ffn(torch.from_numpy(x).to(dtype)[None, None])[0, 0].double().numpy())

    def jacobian(x: Array) -> Array:
        """One jvp of d equal tokens, each in another direction: row k is column k of J."""
        d = len(x)
        X = torch.from_numpy(x).to(dtype).expand(1, d, d).contiguous()
        moved = torch.func.jvp(ffn, (X,), (torch.eye(d, dtype=dtype)[None],))[1]
        return np.asarray(moved[0].T.double().numpy())

    return theory.TokenMap(value, jacobian)


LOOPS = 400
# Equal tokens longer than this are followed no farther: parts of a block may run in float32, and
# square them.
_FAR = torch.finfo(torch.float32).max ** 0.25


def loop_laws(blocks: Sequence[BlockMap], c: Tensor, n: int, loops: int = LOOPS) -> list[LoopLaw]:
    """The laws near consensus of the blocks applied in turn, after `loops` rounds from each 1 c^T,
    or as many as stay far within the floats: what they would do for ever to small differences
    between nearly equal tokens (T12). c [b, d], n tokens; a law for each of the b.

    Only equal tokens are followed, one for all of them, and the derivative across consensus is
    taken where that path has led (T8c): a few per cent of the cost of looping the layers. In
    float32 a law, logarithms of some 1 / loops, is right to about 1e-3.
    """
    point, image, lengths = c, _round(blocks, c), [_lengths(c)]
    while len(lengths) <= loops and bool((_lengths(image) < _FAR).all()):
        point, image = image, _round(blocks, image)
        lengths.append(_lengths(point))
    loops = len(lengths) - 1
    size, far = _lengths(image), lengths[-1]
    cosine = (image.double() * point.double()).sum(-1).cpu().numpy() / (size * far)
    laws = []
    for k in range(len(c)):
        at, linear = point[k], []
        for block in blocks:
            linear.append(linearised(block, at, n))
            at = consensus_step(block.layer, at[None])[0]
        across = abs(theory.transverse_eigenvalue(linear))
        laws.append(
            LoopLaw(
                loops=loops,
                along=float(np.log(size[k] / far[k])),
                across=math.log(across) if across > 0 else -math.inf,
                power=float(np.log2(far[k] / lengths[loops // 2][k])),
                turning=math.acos(max(-1.0, min(1.0, float(cosine[k])))),
            )
        )
    return laws


def _round(blocks: Sequence[BlockMap], point: Tensor) -> Tensor:
    for block in blocks:
        point = consensus_step(block.layer, point)
    return point


def _lengths(c: Tensor) -> np.ndarray:
    return np.asarray(torch.linalg.vector_norm(c.double(), dim=-1).cpu().numpy())


# How far from consensus, as a share of the stream's own differences.
DISTANCES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
# Directions: the stream's own differences, a Gaussian draw, and draws v u^T over tokens, features.
KINDS = ("own", "gaussian", "rank one", "rank one, again")
GAUSSIAN = KINDS.index("gaussian")
# Gaussian directions an input at consensus and at the stream: one draw is no property of a layer.
DRAWS = 8
# Of a real perturbation, relative to the length of the stream.
SIZE = 0.01

Growth = dict[str, Array]


def growth(model: Model, run: Recorded, generator: torch.Generator, size: float = SIZE) -> Growth:
    """Arrays by name, layers first, then the b inputs of the batch:

    growth [layers, b, distances, kinds] by jvp; closed [layers, b, kinds] by T8c at consensus;
    observed [layers, b, kinds], of f(X + e D) - f(X) with e = size ||X||; many_across, many_actual
    (by jvp at consensus and at the stream), many_closed and many_observed [layers, b, DRAWS], the
    same of Gaussian directions, the first of which is that of KINDS; along [layers, b], the
    growth of a common shift at consensus; mean [layers, b], log |g(m)|/|m|; leak [layers, b], of a
    common shift at X; exponents [layers, b, frame] and moved [1, b, frame]: see `exponents`;
    tangent and run [layers, b]: a Gaussian perturbation of the first stream carried by Df, and
    really made; logs [layers + 1, b]: log HFC/LFC.
    """
    states = run.states
    if states[0].shape[1] < 2:
        raise InputError(
            "an input has a single token, and whether tokens become alike is asked of two or more: "
            "leave it out"
        )
    rows = []
    with torch.no_grad(), plain_attention(model.module):
        along = _along(run.blocks, states, generator, size)
        for f, X, carried in zip(run.blocks, states, along, strict=False):
            check_consensus(f, X)
            rows.append(_layer(f, X, generator, size) | carried)
        leading, moved = exponents(run.blocks, states, generator)
    logs = torch.stack([log_ratio(X) for X in states])
    whole = {"exponents": leading, "moved": moved[None], "logs": logs}
    joined = {name: torch.stack([row[name] for row in rows]) for name in rows[0]} | whole
    return {name: values.numpy() for name, values in joined.items()}


def directions(X: Tensor, generator: torch.Generator) -> list[Tensor]:
    """Of each kind in KINDS, [b, n, d]; the first is NaN where all tokens are equal."""
    tokens, features = X[..., :1], X[:, :1]
    products = (drawn(tokens, generator) * drawn(features, generator) for _ in KINDS[2:])
    return [unit(differences(D)) for D in (X, drawn(X, generator), *products)]


def drawn(like: Tensor, generator: torch.Generator) -> Tensor:
    """Independent normal numbers of that shape and dtype."""
    return torch.randn(like.shape, generator=generator, dtype=like.dtype)


def differences(X: Tensor) -> Tensor:
    """P X: less the mean over the tokens."""
    return X - X.mean(1, keepdim=True)


def unit(D: Tensor) -> Tensor:
    """Of unit length, input by input; NaN for 0."""
    return D / lengths(D)[:, None, None]


def lengths(D: Tensor) -> Tensor:
    """||D|| of each input, [b]."""
    size: Tensor = torch.linalg.vector_norm(D, dim=(1, 2))
    return size


def _layer(f: BlockMap, X: Tensor, generator: torch.Generator, size: float) -> dict[str, Tensor]:
    kinds = directions(X, generator)
    E, base = differences(X), at_consensus(X)

    def grown(Z: Tensor, directions: list[Tensor]) -> list[Tensor]:
        return [lengths(differences(jvp(f, Z, D))).log() for D in directions]

    moved = [torch.stack(grown(base + t * E, kinds), dim=-1) for t in DISTANCES]
    shift = unit(drawn(X[:, :1], generator).expand_as(X))
    shifted = jvp(f, X, shift)
    reach = size * lengths(X)[:, None, None]
    Y = f(X)
    more = [unit(differences(drawn(X, generator))) for _ in range(DRAWS - 1)]
    seen = [lengths(differences(f(X + reach * D) - Y)) / reach[:, 0, 0] for D in [*kinds, *more]]
    closed = []
    for k, c in enumerate(base[:, 0]):
        linear = linearised(f, c.double(), X.shape[1])
        images = [torch.from_numpy(linear(D[k].double().numpy())) for D in [*kinds, *more]]
        closed.append(torch.stack([lengths(differences(D[None])).log()[0] for D in images]))
    by_jvp = torch.stack(moved, dim=1)
    whole = {"closed": torch.stack(closed), "observed": torch.stack(seen, dim=-1).log()}
    for name, place, at in (("across", base, 0), ("actual", X, -1)):
        whole[name] = torch.stack([*by_jvp[:, at].unbind(-1), *grown(place, more)], dim=-1)
    several = [GAUSSIAN, *range(len(KINDS), len(KINDS) + DRAWS - 1)]
    return {
        "growth": by_jvp,
        **{name: whole[name][..., : len(KINDS)] for name in ("closed", "observed")},
        **{f"many_{name}": values[..., several] for name, values in whole.items()},
        "along": lengths(jvp(f, base, shift)).log(),
        "mean": (lengths(f(base)) / lengths(base)).log(),
        "leak": lengths(differences(shifted)) / lengths(shifted),
    }


def _along(
    blocks: Sequence[BlockMap], states: Sequence[Tensor], generator: torch.Generator, size: float
) -> Iterator[dict[str, Tensor]]:
    """By layer, of a perturbation that goes with the streams, carried by Df and really made."""
    X = states[0]
    tangent = unit(differences(drawn(X, generator)))
    reach = size * lengths(X)
    real = X + reach[:, None, None] * tangent
    # Logs of the differences so far, of the tangent and of the real pair.
    far = scale = torch.zeros(2, len(X), dtype=X.dtype)
    for f, X in zip(blocks, states, strict=False):
        tangent = jvp(f, X, tangent)
        scale = scale + lengths(tangent).log()
        tangent, real, before = unit(tangent), f(real), far
        apart = lengths(differences(real - f(X))) / reach
        far = torch.stack([lengths(differences(tangent)).log() + scale[0], apart.log()])
        yield dict(zip(("tangent", "run"), far - before, strict=True))


FRAME = 3
ROUNDS = 8


def exponents(
    blocks: Sequence[BlockMap], states: Sequence[Tensor], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Along the streams states[l] [b, n, d] that the blocks run on: the log growth of each leading
    singular vector in each layer, [layers, b, frame], whose sums over layers are log sigma_k; and
    by how much the last round changed log sigma_k, [b, frame]."""
    along = list(zip(blocks, states, strict=False))
    b, n, d = states[0].shape
    frame = min(FRAME, (n - 1) * d)
    V = torch.randn(b, n, d, frame, generator=generator, dtype=states[0].dtype)
    V, _ = _orthonormal(differences(V))
    first = torch.zeros(b, frame, dtype=V.dtype)
    for _ in range(ROUNDS):
        for f, X in along:
            V = _moved(f, X, V)
        V, _ = _orthonormal(V)
        for f, X in reversed(along):
            V = _pulled(f, X, V)
        V, R = _orthonormal(V)
        last, first = first, torch.linalg.svdvals(R).log()
    # In the frame, the singular vectors themselves.
    W = V
    for f, X in along:
        W = _moved(f, X, W)
    turn = torch.linalg.svd(W.flatten(1, 2), full_matrices=False)[2].mT
    V = (V.flatten(1, 2) @ turn).unflatten(1, (n, d))
    logs = []
    for f, X in along:
        V = _moved(f, X, V)
        size = lengths(V)
        logs.append(size.log())
        V = V / size[:, None, None]
    return torch.stack(logs), first - last


def _moved(f: BlockMap, X: Tensor, V: Tensor) -> Tensor:
    """T_l of the directions V [b, n, d, frame]."""
    return differences(torch.stack([jvp(f, X, D.contiguous()) for D in V.unbind(-1)], dim=-1))


def _pulled(f: BlockMap, X: Tensor, V: Tensor) -> Tensor:
    """T_l^T of them."""
    try:
        with torch.enable_grad():
            pull = torch.func.vjp(f, X)[1]
        back = [pull(D.contiguous(), retain_graph=True)[0].detach() for D in V.unbind(-1)]
    except RuntimeError as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"layer {f.number} has no derivative in reverse mode ({said}): its exponents need one, "
            "as training would; let it not work in place"
        ) from error
    return differences(torch.stack(back, dim=-1))


def _orthonormal(V: Tensor) -> tuple[Tensor, Tensor]:
    """Q [b, n, d, frame] and R of V = Q R."""
    Q, R = torch.linalg.qr(V.flatten(1, 2))
    return Q.unflatten(1, V.shape[1:3]), R
