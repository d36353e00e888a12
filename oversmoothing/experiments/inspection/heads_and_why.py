"""Why a layer does what it does: the spectrum of its H, its attention, the tilt; head by head.

All of H = sum_h (W_V,h W_O,h)^T is float64. Regions of an eigenvalue h: 'zero' (exact, from the
rank of the heads), 'universal_disc' |h + 1/2| <= 1/2, h != 0, where consensus loses for every
positive A (T3c), 'positive' Re h > 0, and 'other' (Re h <= 0 outside the disc, where A decides).

The spectral columns of a head are of its A_h and H_h alone (T1, T2). What a head does to the tokens
is measured by leaving it out: the others stay, so the heads' numbers do not sum to the sublayer's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from oversmoothing.experiments.intervals import FEWEST, NAN, mean_interval, named
from oversmoothing.experiments.models.model import Heads, Layer, Trace
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.simulations.state import fetched, for_eigenvalues
from oversmoothing.simulations.state_metrics import stream_log_ratio
from oversmoothing.theory.support.sizes import Array, Complex
from oversmoothing.theory.verdict.formulas import in_universal_disc

REGIONS = ("zero", "universal_disc", "positive", "other")


def value_projection(heads: Heads) -> Array:
    """H = sum_h (W_V,h W_O,h)^T [d, d] in float64."""
    return np.ascontiguousarray(heads.total().detach().numpy().T)


def regions(h: NDArray[np.complex128], zeros: int = 0) -> dict[str, float]:
    """Share of eigenvalues in each of REGIONS; `zeros` exact ones are added to h [k]."""
    disc = np.array([in_universal_disc(complex(value)) for value in h], dtype=bool)
    numbers = np.select([h == 0, disc, h.real > 0], REGIONS[:3], REGIONS[3])
    counts = Counter(["zero"] * zeros + numbers.tolist())
    return {name: counts[name] / counts.total() for name in REGIONS}


# Beyond, the eigenvalues of one H take minutes.
LARGEST = 1024
CPU = torch.device("cpu")


def eigenpairs(H: Array, where: torch.device, *, vectors: bool) -> tuple[Complex, Complex | None]:
    """(h [d], V [d, d] or None) of H [d, d] of a model that lies `where`."""
    if for_eigenvalues(len(H), where) == where != CPU:
        there = torch.from_numpy(H).to(where, non_blocking=True)
        pairs = torch.linalg.eig(there) if vectors else [torch.linalg.eigvals(there)]
        h, *V = (each.numpy() for each in fetched(pairs))
        return h, V[0] if V else None
    if vectors:
        return np.linalg.eig(H)
    return np.linalg.eigvals(H).astype(np.complex128), None


@dataclass(frozen=True)
class ValueModes:
    """The eigenvalues h [d] of H [d, d] of a layer, empty where they are left out, and what the
    weights say: `why`. H is not kept: a model may be larger than memory.

    own [heads, min(r, d)]: the eigenvalues of each H_h but for `zeros` = d - r exact zeros, where
    r < d by its core W_O W_V. largest: the eigenvalue and eigenvector with the largest |h|
    ('modulus') and with the largest |1 + h| ('residual'), {} where eigenvectors were not asked for.
    """

    h: Complex
    own: Complex
    zeros: int
    why: dict[str, float]
    largest: dict[str, tuple[complex, Complex]]

    @classmethod
    def of(
        cls, heads: Heads, where: torch.device = CPU, *, values: bool = True, vectors: bool = True
    ) -> ValueModes:
        """One eigenproblem of H, where it is asked for, and one of r x r a head; the model lies
        `where`."""
        W_V, W_O = (W.detach().cpu().double().numpy() for W in (heads.W_V, heads.W_O))
        core = W_O @ W_V if heads.width < W_V.shape[1] else W_V @ W_O
        own = np.linalg.eigvals(core).astype(np.complex128)
        H = value_projection(heads)
        h, V = np.empty(0, dtype=np.complex128), None
        if values:
            h, V = eigenpairs(H, where, vectors=vectors)
            # Rounding makes small numbers of zeros, and of their eigenvectors any basis.
            L = joined(W_V, W_O)[0]
            zero = np.argsort(np.abs(h))[: max(0, len(H) - L.shape[1])]
            h[zero] = 0.0
        zeros, largest = max(0, len(H) - own.shape[1]), {}
        if V is not None:
            V[:, zero] = np.linalg.qr(L, "complete")[0][:, L.shape[1] :]
            best = {"modulus": int(np.argmax(np.abs(h))), "residual": int(np.argmax(np.abs(1 + h)))}
            largest = {name: (complex(h[k]), V[:, k].copy()) for name, k in best.items()}
        return cls(h, own, zeros, _why(H, h, V, own, zeros), largest)

    def of_head(self, head: int) -> Complex:
        """The eigenvalues of H_h, one 0 among them where it has exact zeros."""
        return np.append(self.own[head], 0.0) if self.zeros else self.own[head]


def joined(W_V: Array, W_O: Array) -> tuple[Array, Array]:
    """(L [d, k], R [k, d]) with L R = sum_h W_V,h W_O,h, for W_V [heads, d, r], W_O [heads, r, d]:
    heads that share W_V (grouped queries), or W_O, stand in it once, so that k bounds the rank."""
    names = [[own.tobytes() for own in W] for W in (W_V, W_O)]
    values = len(set(names[0])) <= len(set(names[1]))
    alike: dict[bytes, list[int]] = {}
    for head, name in enumerate(names[0 if values else 1]):
        alike.setdefault(name, []).append(head)
    kept, added = (W_V, W_O) if values else (W_O, W_V)
    pairs = [(kept[own[0]], added[own].sum(0)) for own in alike.values()]
    left, right = zip(*(pair if values else pair[::-1] for pair in pairs), strict=True)
    return np.concatenate(left, 1), np.concatenate(right, 0)


def asymmetry(H: Array) -> float:
    """||H - H^T||_F / ||H + H^T||_F of H [d, d]: 0 symmetric, inf skew; 0 for H = 0."""
    skew, even = float(np.linalg.norm(H - H.T)), float(np.linalg.norm(H + H.T))
    return skew / even if even else math.inf if skew else 0.0


def _why(H: Array, h: Complex, V: Complex | None, own: Complex, zeros: int) -> dict[str, float]:
    """What the weights of one layer say, without any input.

    h_<region>, head_h_<region>: shares of eigenvalues, of H whole and of the heads' own H_h (each
    with its d - r zeros); h_real_min, h_real_max, h_abs_max; `asymmetry`; condition_V_H of its
    eigenvectors (2-norm, inf where singular, NaN without them), those of exact zeros orthonormal;
    Henrici's departure_from_normality sqrt(||H||_F^2 - sum |h|^2) / ||H||_F. NaN without h.
    """
    norm, whole = float(np.linalg.norm(H)), h if len(h) else np.full(1, NAN, dtype=np.complex128)
    excess = max(0.0, norm**2 - float((np.abs(h) ** 2).sum())) if len(h) else NAN
    shares = regions(h) if len(h) else dict.fromkeys(REGIONS, NAN)
    return {
        **{f"h_{name}": share for name, share in shares.items()},
        **{f"head_h_{name}": share for name, share in
           regions(own.ravel(), zeros * len(own)).items()},
        "h_real_min": float(whole.real.min()),
        "h_real_max": float(whole.real.max()),
        "h_abs_max": float(np.abs(whole).max()),
        "asymmetry": asymmetry(H),
        "condition_V_H": NAN if V is None else float(np.linalg.cond(V)),
        "departure_from_normality": excess**0.5 / norm if norm else 0.0,
    }  # fmt: skip


def dobrushin(A: Tensor) -> Tensor:
    """tau(A), half the largest l1 distance of two rows, [...] for A [..., n, n] (T5c)."""
    n = A.shape[-1]
    flat = A.reshape(-1, n, n)
    return torch.stack([torch.pdist(each, p=1).max() / 2 if n > 1 else each.new_zeros(())
                        for each in flat]).reshape(A.shape[:-2]).double()  # fmt: skip


Measured = dict[str, Array]
# Of a head, taken of its spectra (`spectra.head_dominance`).
SPECTRAL = ("consensus", "radius", "rho_consensus", "margin")


def head_numbers(layer: Layer, trace: Trace, keep: Tensor, causal: bool, pairs: int) -> Measured:
    """By name [heads, inputs], of a layer with its attention; SPECTRAL among them, NaN.

    log_change: of ln HFC/LFC after the attention sublayer, by the head's being there. entropy: of
    the rows of A_h over the logarithm of the tokens in sight, those that some head of the layer
    gives a weight (no mask, no window hides them), mean. sink_mass: of the token
    that is attended to most, mean over queries; sink_token: its position. Of the first `pairs`
    inputs, NaN of others: dobrushin, tau(A_h). All over the kept tokens.
    """
    assert trace.attention is not None
    heads = layer.number
    numbers = {"log_change": _left_out(layer, trace, keep)}
    names = ("dobrushin", "entropy", "sink_mass", "sink_token")
    numbers |= {name: np.full((heads, len(keep)), np.nan) for name in (*names, *SPECTRAL)}
    for k, (whole, kept) in enumerate(zip(trace.attention, keep, strict=True)):
        whole = whole if bool(kept.all()) else whole[:, kept][:, :, kept]
        sight = (whole > 0).any(0).sum(-1)
        for head, A in enumerate(whole):
            mass, token = A.mean(-2, dtype=torch.float64).max(-1)
            numbers["sink_mass"][head, k], numbers["sink_token"][head, k] = mass, token
            if layer.sinks:
                continue  # rows sum to less than 1: what follows is of stochastic matrices
            numbers["entropy"][head, k] = _entropy(A, sight, causal)
            if k < pairs:
                numbers["dobrushin"][head, k] = dobrushin(A)
    return numbers


# A column of `head_table`: of which number of `head_numbers`, over the inputs where it is known.
_OVER_INPUTS: dict[str, tuple[str, Callable[[Array], np.floating]]] = {
    "share": ("consensus", np.mean),
    **{name: (name, np.median) for name in ("radius", "rho_consensus", "margin")},
    **{name: (name, np.mean) for name in ("dobrushin", "entropy", "sink_mass")},
}


def head_table(measured: Measured) -> pd.DataFrame:
    """One row a head: layer (from 1), head (from 0), log_change with its 95 % interval, share (of
    the inputs in which consensus dominates), and the rest of `head_numbers` by `_OVER_INPUTS`."""
    depth, heads, _ = measured["log_change"].shape
    rows = []
    for layer, head in np.ndindex(depth, heads):
        own = {name: values[layer, head] for name, values in measured.items()}
        positions, counts = np.unique(own["sink_token"], return_counts=True)
        row = {"layer": layer + 1, "head": head}
        row |= named("log_change", mean_interval(own["log_change"]))
        for name, (of, mean) in _OVER_INPUTS.items():
            taken = own[of][~np.isnan(own[of])]
            row[name] = float(mean(taken)) if len(taken) else NAN
        rows.append(row | {"sink_token": int(positions[counts.argmax()])})
    return pd.DataFrame(rows)


def worst_heads(table: pd.DataFrame, number: int = 3) -> pd.DataFrame:
    """The heads that smooth most by being there, whose 95 % interval lies below 0."""
    smoothing = table[table["log_change_high"] < 0]
    return smoothing.nsmallest(number, "log_change")


def of_heads(heads: pd.DataFrame, inputs: int) -> str:
    """Which heads smooth, by leaving each of them out, and which would by a mean that is open."""
    if heads.empty or not inputs:
        return ""
    if inputs < FEWEST:
        return (
            f"Which heads smooth is not known: {inputs} input{'s' * (inputs > 1)} looked at "
            f"closely, {FEWEST} are needed. Give {FEWEST} or more with --budget all."
        )
    smoothing, worst = heads[heads["log_change_high"] < 0], worst_heads(heads)
    most, least = (0.0, 0.0) if worst.empty else worst["log_change"].iloc[[0, -1]]
    more = heads[(heads["log_change"] < least) & (heads["log_change_high"] >= 0)]
    first = more.nsmallest(1, "log_change")
    open_ = _heads_named(first)
    how = "most" if worst.empty else "more" if (first["log_change"] < most).any() else "as much"
    also = f"; {open_} measures {how}, but its interval contains 0" if open_ else ""
    if smoothing.empty:
        return f"No head is seen to smooth when it is left out{also}."
    against = heads[heads["log_change_low"] > 0]
    most_against = _heads_named(against.nlargest(1, "log_change"))
    parting = "" if against.empty else f" Most against it: {most_against}."
    undecided = len(heads) - len(smoothing) - len(against)
    return (
        f"{len(smoothing)} of {len(heads)} heads smooth in their own layer: right after its "
        "attention ln HFC/LFC is lower with the head than without it, and the 95 % interval of the "
        f"difference lies below 0. Most of all: {_heads_named(worst)}{also}; layers count from 1, "
        "heads from 0 (all: heads.csv). Heads that sharpen, with intervals above 0: "
        f"{len(against)}.{parting} Undecided on these {inputs} inputs: {undecided}. More inputs "
        "may name other heads, and by chance alone one interval in 20 misses 0. Each head is left "
        "out alone, so these effects do not add up to that of attention. At the model's end one "
        "may do the opposite: `probe MODEL intervene --without L.H` with these inputs measures "
        "that."
    )


def _heads_named(heads: pd.DataFrame) -> str:
    """'layer 2 head 0 (-0.069)'."""
    return ", ".join(
        f"layer {row['layer']} head {row['head']} ({signed(row['log_change'], 3)})"
        for row in heads.to_dict("records")
    )


def why_heads(heads: pd.DataFrame, cls: bool = False, causal: bool = False) -> str:
    """Whether the spectra, where they were taken, agree with what the named heads do, how often
    they do with heads that do the opposite, and what else is known of the first that they do not
    explain. causal: all a lie in [0, 1], and no margin is below 0 where h = 0 is among the h."""
    worst = heads if heads.empty else worst_heads(heads).dropna(subset="share")
    if worst.empty:
        return ""
    if causal and not (heads["margin"] < -1e-9).any():
        return (
            "Why? Spectra do not tell these heads from others: each head whose spectrum was taken "
            "smooths or ties by it (margin rho_C - rho_Q, of the head repeated without end, 0 or "
            "above), as every causal head of low rank must."
        )
    said, known = [], ""
    for row in worst.to_dict("records"):
        # The median margin says the same: in half of the inputs or more.
        explains = row["margin"] > 0 and row["share"] >= 0.5
        margin = signed(row["margin"])
        if margin == "0.00":
            margin = f"{row['margin']:+.1g}" if row["margin"] else "0, a tie"
        words = (
            f"layer {row['layer']} head {row['head']}: its spectrum "
            f"{'agrees' if explains else 'does not explain it'} (margin {margin})"
        )
        if not (explains or known):
            to = "CLS" if cls and row["sink_token"] == 0 else f"token {row['sink_token']}"
            known = (
                f", and what does is not known; {100 * row['sink_mass']:.0f} % of its attention "
                f"is on {to}, and the entropy of its rows is {row['entropy']:.2f} (1: equal "
                "attention to all tokens in sight)"
            )
            words += known
        said.append(words)
    # What all heads have in common, those that sharpen too, explains none.
    taken = heads.dropna(subset="share")
    above = taken["margin"] > 0
    smooth, sharpen = taken["log_change_high"] < 0, taken["log_change_low"] > 0
    others = (
        f" The margin is above 0 in {(above & smooth).sum()} of the {smooth.sum()} heads that "
        f"smooth, and in {(above & sharpen).sum()} of the {sharpen.sum()} that sharpen."
    )
    return (
        f"Why? {'. '.join(each[0].upper() + each[1:] for each in said)}. Margin: rho_C - rho_Q of "
        "the head's own A and H, repeated without end (growth of equal tokens less that of "
        f"differences); above 0 it smooths by its spectrum alone.{others * bool(sharpen.any())}"
    )


def _entropy(A: Tensor, sight: Tensor, causal: bool) -> float:
    """Of the rows of A [n, n], each over the logarithm of its `sight` [n]: but for the first row of
    a causal A, which sees itself alone. NaN where there is none."""
    rows = torch.special.entr(A).sum(-1, dtype=torch.float64)
    return float((rows / sight.clamp_min(2).double().log())[int(causal) :].mean())


def _left_out(layer: Layer, trace: Trace, keep: Tensor) -> Array:
    """[heads, inputs]: ln HFC/LFC after the sublayer less that without the head."""
    assert trace.mixed is not None
    weights = layer.heads.to(trace.before.device, trace.before.dtype)
    numbers = np.empty((weights.number, len(keep)))
    # Where nothing follows the sum, a head is taken off the stream as the pass gave it.
    plain = layer.placement != "post" and layer.output_norm_attention.kind == "none"
    for k, kept in enumerate(keep):
        X, Y, Z = trace.before[k][kept], trace.after_attention[k][kept], trace.mixed[k][:, kept]
        whole = None if plain else weights.joined(Z[None])
        there = Y[None] if whole is None else layer.after_attention(X, whole)
        log = stream_log_ratio(there)
        for head, W_O in enumerate(weights.W_O):
            own = Z[head] @ W_O
            without = there - own if whole is None else layer.after_attention(X, whole - own)
            numbers[head, k] = log - stream_log_ratio(without)
    return numbers


def matrices(trace: Trace, keep: Tensor) -> list[NDArray[np.floating]]:
    """Attention [heads, k, k] of each input over its k kept tokens."""
    assert trace.attention is not None
    answer = []
    for A, kept in zip(trace.attention, keep, strict=True):
        A = A if bool(kept.all()) else A[:, kept][:, :, kept]
        answer.append((A if A.dtype == torch.float64 else A.float()).cpu().numpy())
    return answer


def sink_attention(
    trace: Trace, keep: Tensor, value: ValueModes, causal: bool
) -> dict[str, Tensor]:
    """By name [inputs]: row_sum, the mean over rows; attention_radius, the largest |a|;
    operator_radius, the largest |1 + h a|."""
    means = [A.astype(np.float64).mean(axis=0) for A in matrices(trace, keep)]
    spectra = [np.diagonal(A) if causal else np.linalg.eigvals(A) for A in means]
    columns = {
        "row_sum": [A.sum(axis=1).mean() for A in means],
        "attention_radius": [np.abs(a).max() for a in spectra],
        "operator_radius": [
            np.abs(1 + np.outer(value.h, a)).max() if len(value.h) else NAN for a in spectra
        ],
    }
    return {name: torch.tensor(values, dtype=torch.float64) for name, values in columns.items()}
