"""The clip has no gradient outside its interval: an eigenvalue that leaves it stays where it is."""

import sympy as sp

from oversmoothing.theory.proofs.kit import Claim, by

# c = clip(x, [-1, 0]), as a condition.
_CLIP = "(x < -1 and c == -1) or (-1 <= x and x <= 0 and c == x) or (x > 0 and c == 0)"
_SAME = _CLIP.replace("x", "y").replace("c", "e")


def _inside() -> sp.Matrix:
    """[2; fixed size] Inside, H is linear in psi_j with the coefficient v_j w_j^T: column j of V
    times row j of V^-1."""
    a, b, c, d, p, q = sp.symbols("a b c d p q")
    V = sp.Matrix([[a, b], [c, d]])
    H = V * sp.diag(p, q) * V.inv()
    return H.diff(p) - V[:, 0] * V.inv()[0, :]


CLAIM = Claim(
    name="P-2401.04301v3-clip-gradient",
    clauses=(
        "v3's H = V diag(clip(psi, [-1, 0])) V^-1 does not change while psi_j moves on one side "
        "outside [-1, 0]: there every loss has the derivative 0 in psi_j.",
        "Inside (-1, 0) the derivative of H is v_j w_j^T, v_j column j of V and w_j^T row j of "
        "V^-1: never 0.",
        "Gradient descent, with momentum from rest too, leaves a psi_j outside where it is, and "
        "the eigenvalue is -1 or 0 for good.",
        "Weight decay, psi -> (1 - r) psi with 0 < r < 1 and the gradient 0, does not bring back "
        "a psi_j > 0: it stays > 0, the eigenvalue stays 0. It brings back every psi_j < -1.",
    ),
    latex=r"\psi_j\notin[-1,0]\implies\frac{\partial H}{\partial\psi_j}=0",
    source="arXiv 2401.04301 v3, reparameterisation (public summary); ours",
    on_record=by.WRITTEN,
    setting="the clip's derivative is taken as 0 outside the interval, as in automatic "
    "differentiation; V invertible",
    evidence=(
        by.for_all(
            "outside, on one side, the clip is constant",
            given=(_CLIP, _SAME, "(x < -1 and y < -1) or (x > 0 and y > 0)"),
            then="c == e",
            at="x=1, y=2, c=0, e=0",
            covers=(1,),
        ).unless(
            "inside too",
            without="(x < -1 and y < -1) or (x > 0 and y > 0)",
            given="x < 0 and y < 0",
            at="x=-1/2, y=-1/4, c=-1/2, e=-1/4",
        ),
        by.written(
            "one entry of the diagonal",
            "[1] H depends on psi_j through clip(psi_j) alone, which is constant near psi_j.",
            _inside,
            "[2] v_j != 0 and w_j != 0, as V is invertible.",
            "[3] The step of psi_j is a multiple of its gradients so far, all 0; so it is outside "
            "at the next step again.",
            "[4] (1 - r)^k psi_j keeps its sign and tends to 0: from below -1 it comes to [-1, 0) "
            "after finitely many steps.",
        ),
        by.for_all(
            "decay keeps psi > 0 positive",
            given="x > 0; 0 < r; r < 1",
            then="(1-r)*x > 0",
            at="x=1, r=1/2",
            covers=(4,),
        ).unless("any r > 0", without="r < 1"),
    ),
    further="An eigenvalue 0 takes the strict order from the layer (T2e), and the clip keeps it.",
)
