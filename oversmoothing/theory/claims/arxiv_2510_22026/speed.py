"""Where the norm stands sets the speed of a token's direction: radius and direction apart."""

import sympy as sp

from oversmoothing.theory.proofs.kit import Claim, by


def _apart() -> list[sp.Expr]:
    """x' = a in three features: r' and theta' for r = |x|, theta = x/r, as stated."""
    t = sp.Symbol("t")
    x = sp.Matrix([sp.Function(f"x{k}", real=True)(t) for k in range(3)])
    a = sp.Matrix(sp.symbols("a1:4", real=True))
    r = sp.sqrt(x.dot(x))
    moving = dict(zip(x.diff(t), a, strict=True))
    theta = x / r
    radius = r.diff(t).subs(moving) - theta.dot(a)
    direction = theta.diff(t).subs(moving) - (a - theta * theta.dot(a)) / r
    return [radius, *direction]


CLAIM = Claim(
    name="N-2510.22026-speed",
    clauses=(
        "Tokens in continuous depth, x_i' = a_i with a_i a function of all directions theta_k = "
        "x_k/r_k (Pre-LN without gain, ours): r_i' = theta_i^T a_i and theta_i' = (I - theta_i "
        "theta_i^T) a_i/r_i. Post-LN, where x_i is kept at length 1, has theta_i' = (I - theta_i "
        "theta_i^T) a_i. (Abstract: normalisation acts as a regulation of speed; these forms are "
        "our reading.)",
        "So both have the same fixed points of all directions, and each token moves along the same "
        "field, under Pre-LN 1/r_i times as fast.",
        "Where all r_i(t) = r(t) the directions pass through the same states, Pre-LN at t what "
        "Post-LN has at the time int_0^t ds/r(s). With |a_i| <= c that is at least ln(1 + c "
        "t/r_0)/c: it is infinite in the end.",
        "Where moreover theta_i^T a_i >= c_0 > 0 it is at most ln(1 + c_0 t/r_0)/c_0. So what "
        "Post-LN does as exp(-kappa t) Pre-LN does as a power of t: at least (1 + c_0 "
        "t/r_0)^(-kappa/c_0) and at most (1 + c t/r_0)^(-kappa/c).",
    ),
    latex=r"\dot r_i=\theta_i^\top a_i,\qquad "
    r"\dot\theta_i=\tfrac1{r_i}(I-\theta_i\theta_i^\top)a_i",
    source="ours, for arXiv 2510.22026 (abstract)",
    on_record=by.WRITTEN,
    setting="continuous depth; no gain, bias or feed-forward block",
    evidence=(
        by.written(
            "a change of time",
            "[1] r' = x^T x'/r and (x/r)' = x'/r - x r'/r^2. Post-LN projects x' on the sphere's "
            "tangent space.",
            "[2] 1/r_i > 0 changes neither where theta_i' is 0 nor its direction.",
            "[3] In the time s with ds = dt/r both equations are the same, with the same start. r "
            "<= r_0 + c t; the integral of 1/(r_0 + c s) is ln(1 + c t/r_0)/c.",
            "[4] r >= r_0 + c_0 t in the same way, and exp(-kappa ln(1 + z)/c) = (1 + "
            "z)^(-kappa/c).",
        ),
        by.Symbolic("radius and direction, three features", _apart),
    ),
    further="Tokens of different length do not share one time: the path of the directions is then "
    "another. In layers: N-2510.22026-layers.",
)
