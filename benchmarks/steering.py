"""The threshold of steering, predicted from eigenvalues, against runs of drawn linear layers.

`experiments.power_method.steering` says what is predicted: the last alpha at which the planted
eigenvalue of F' = F + alpha u w^T does not dominate. Measured: the last alpha at which a run of
tokens through `DEPTH` layers does not end along its eigenvector v.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from oversmoothing.experiments.intervals import in_words, share_interval
from oversmoothing.experiments.power_method.steering import (
    Case,
    Matrix,
    predicted_threshold,
    steered,
)
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured
from oversmoothing.simulations.generators.attention import Softmax
from oversmoothing.theory.support.errors import whole_number

TOKENS, WIDTH, DEPTH = 6, 6, 1000
# Tokens count as tilted where the mean squared cosine with v is above this.
TILTED = 0.9
# A prediction is right where the measured alpha differs by at most this times 1 + |alpha|.
CLOSE = 0.05
# The alphas that are run, around the predicted one, in units of 1 + |alpha|.
AROUND = np.linspace(-0.5, 0.5, 101)


@dataclass(frozen=True)
class DrawnCase(Case):
    """A drawn layer with its tokens X0 [n, d]."""

    X0: Matrix


def drawn_cases(count: int, seed: int) -> list[DrawnCase]:
    """`count` cases; u is no eigenvector of F."""
    whole_number("the number of drawn cases", count, 1)
    rng = np.random.default_rng([seed, 25619])
    cases = []
    for _ in range(count):
        A = Softmax(temperature=0.5).draw(TOKENS, rng=rng)
        F = rng.standard_normal((WIDTH, WIDTH)) * rng.uniform(0.3, 1.5) / WIDTH**0.5
        u, w = rng.standard_normal((2, WIDTH))
        u /= np.linalg.norm(u)
        # Half along u, half across it: w^T u = 1 and |w| of a few.
        w = u + (w - (w @ u) * u) / WIDTH**0.5
        cases.append(DrawnCase(A, F, u, w, rng.standard_normal((TOKENS, WIDTH))))
    return cases


def measured_threshold(case: DrawnCase, alphas: Matrix) -> tuple[float, Matrix]:
    """(the smallest of the alphas from which on all runs end along v, the tilts [alphas]).

    NaN where the largest alpha's run does not.
    """
    ends = tilts(case, alphas)
    above = ends > TILTED
    if not above[-1]:
        return float("nan"), ends
    first = len(alphas) - int(np.argmin(above[::-1])) if not above.all() else 0
    return float(alphas[first]), ends


def tilts(case: DrawnCase, alphas: Matrix, depth: int = DEPTH) -> Matrix:
    """Mean squared cosine of the tokens with v over the last tenth of `depth` layers, for each of
    rising alphas; below, where the planted eigenvalue is not real, with the last v that there was.
    """
    F = case.F + alphas[:, None, None] * np.outer(case.u, case.w)
    X = np.broadcast_to(case.X0, (len(alphas), *case.X0.shape))
    v, turned, last = planted(F), F.transpose(0, 2, 1), []
    for layer in range(depth):
        X = X + case.A @ (X @ turned)
        X = X / np.abs(X).max((1, 2), keepdims=True)  # the factor does not matter
        if layer >= depth - depth // 10:
            along = np.square((X * v[:, None, :]).sum(-1))
            last.append((along / np.square(X).sum(-1)).mean(-1))
    return np.asarray(np.mean(last, axis=0))


def planted(F: Matrix) -> Matrix:
    """v [m, d] of F' [m, d, d] for rising alphas: the largest real eigenvalue's at the last of
    them, followed down from one to the next, and kept where it is complex."""
    values, vectors = np.linalg.eig(F)
    followed = np.empty(values.shape)
    v = followed[-1]
    real = np.where(np.abs(values.imag) == 0, values.real, -np.inf)
    own: complex = real[-1].max()
    step: complex = 0.0
    for k in reversed(range(len(F))):
        # Where it would be in a straight line, so that it is followed past others.
        which = np.argmin(np.abs(values[k] - own - step))
        step = complex(values[k][which]) - own
        own += step
        if own.imag == 0:
            v = vectors[k][:, which].real
        followed[k] = v / np.linalg.norm(v)
    return followed


def threshold_table(count: int = 200, seed: int = 0) -> pd.DataFrame:
    """A row a case: alpha predicted, measured, by the first-order formula, right, and if not, why.

    First order: F' is replaced by its value on u, mu = alpha + w^T F u, and the others by those of
    F: alpha = max |1 + lambda_j| - 1 - w^T F u.
    """
    rows = []
    for number, case in enumerate(drawn_cases(count, seed)):
        alpha, mu = predicted_threshold(case)
        unit = 1 + abs(alpha)
        seen, run = measured_threshold(case, alpha + AROUND * unit)
        right = abs(seen - alpha) <= CLOSE * unit
        top = np.abs(1 + np.linalg.eigvals(case.F)).max()
        rows.append(
            {
                "case": number,
                "predicted": alpha,
                "measured": seen,
                "first_order": float(top - 1 - case.w @ case.F @ case.u),
                "right": bool(right),
                "why": "" if right else _why(case, alpha, mu, seen),
                "tilt_below": float(run[len(run) // 2 - 10]),
                "tilt_above": float(run[len(run) // 2 + 10]),
            }
        )
    return pd.DataFrame(rows)


def _why(case: DrawnCase, alpha: float, mu: float, seen: float) -> str:
    """What a wrong prediction comes from, each reason checked on the case."""
    unit = 1 + abs(alpha)
    around = alpha + np.linspace(-CLOSE, CLOSE, 21) * unit
    if not seen <= alpha:
        later = tilts(case, alpha + AROUND[AROUND > 0] * unit, depth=20 * DEPTH)
        if later[AROUND[AROUND > 0] >= CLOSE - 1e-9].min() > TILTED:
            return f"slow: too small a lead for {DEPTH} layers, tilted after {20 * DEPTH}"
        return "not tilted where it dominates"
    below = np.linalg.eig(steered(case, around[0]))
    v = planted(np.stack([steered(case, each) for each in around]))[0]
    other = below[1][:, np.argmax(np.abs(1 + below[0]))]
    cosine = abs(v @ other) / np.linalg.norm(other)
    if cosine**2 > TILTED:
        return f"what dominates below has nearly the same direction (cosine {cosine:.2f} with v)"
    return "tilted where it does not dominate"


def steer(count: int = 200, seed: int = 0) -> Result:
    """`threshold_table`: how often the prediction was right, and why not elsewhere."""
    table = threshold_table(count, seed)
    right = int(table["right"].sum())
    ends = share_interval(right / count, count)
    off = (table["first_order"] - table["measured"]).abs()
    rough = int((off <= CLOSE * (1 + table["measured"].abs())).sum())
    says = (
        f"The predicted threshold of alpha is right (within {CLOSE:.0%} of 1 + |alpha|) in {right} "
        f"of {count} drawn layers ({in_words(*ends, count, '{:.3f}'.format, 'layer')}); the "
        f"first-order formula in {rough}."
    )
    wrong = [
        f"case {row.case}: predicted {row.predicted:.3f}, measured {row.measured:.3f}; {row.why}"
        for row in table[~table["right"]].itertuples()
    ]
    return Result(
        "steer",
        f"From which strength on a rank-one change turns the tokens of {count} linear layers",
        {"cases": Table(table)},
        [
            Sentence(says, measured(count, *ends, of="layer")),
            *(Sentence(each, measured(1, of="layer")) for each in wrong),
        ],
        {"draws": count, "seed": seed},
    )
