"""Sentences of a verdict: what was compared, what follows for HFC/LFC."""

from oversmoothing.theory.verdict.cosine_limits import CosineLimit
from oversmoothing.theory.verdict.limits import Limits
from oversmoothing.theory.verdict.onset import FALLS, OUTWEIGHS, RISES, Onset
from oversmoothing.theory.verdict.outcome import Outcome
from oversmoothing.theory.verdict.token_limits import TokenLimits
from oversmoothing.theory.verdict.tokens import TokenGrowth

ONE_TOKEN = "one token only (n = 1): HFC is 0 at every depth, there is nothing to smooth."
CLOSE_EIGENVALUES = (
    "eigenvalues agree to more digits than this tool parts: rho_C and rho_Q are not compared."
)
ZERO_STATE = "X_0 = 0: every metric is 0/0 at every depth."
AT_CONSENSUS = " This X_0 is at consensus already (PX_0 = 0) and stays there."
VANISHES = " From this X_0 the state becomes exactly 0."
ILL_CONDITIONED = " The eigenvectors are too ill-conditioned to say which modes this X_0 contains."
TOO_MANY_MODES = " This X_0 has too many modes to say exactly which of them it contains."


# Fewer layers than this before the verdict shows are not worth a sentence.
_SOON = 10
_BEGINS = {
    FALLS: "HFC/LFC falls in every layer only from about layer",
    RISES: "HFC/LFC rises in every layer only from about layer",
    OUTWEIGHS: "they outweigh the others only from about layer",
}


def shown(begins: Onset | None) -> str:
    """The sentence on the finite horizon: how long this X_0 hides what decides (T4e)."""
    if begins is None or begins.layer < _SOON:
        return ""
    return (
        " The dominant modes do not lead this X_0 from the start: "
        f"{_BEGINS[begins.how]} {begins.layer:.3g} on."
    )


def near(distance: float) -> str:
    """The sentence on the nearest other verdict."""
    return (
        f" To first order, changes of A (rows kept stochastic) and H by {distance:.2g} of their "
        "norms reach the boundary to another verdict."
    )


def number(z: complex) -> str:
    if abs(z.imag) <= 1e-15 * max(1.0, abs(z)):
        return f"{z.real:.6g}"
    return f"{z.real:.6g}{z.imag:+.6g}i"


def compared(name: Outcome, rho_c: str, rho_q: str, consensus: str, quotient: str) -> str:
    """What is said of two radii, each as it is known, and the modes they belong to."""
    if name is Outcome.SMOOTHING:
        return (
            f"consensus dominates: |1 + h| = {rho_c} ({consensus}) exceeds every other mode, "
            f"the largest being |1 + h a| = {rho_q} ({quotient})."
        )
    if name is Outcome.NON_SMOOTHING:
        return (
            f"consensus does not dominate: |1 + h a| = {rho_q} ({quotient}) exceeds "
            f"|1 + h| = {rho_c}, the largest at consensus ({consensus})."
        )
    return (
        f"tie in modulus: |1 + h| = {rho_c} at consensus ({consensus}) equals the largest "
        f"|1 + h a| of the other modes ({quotient})."
    )


def repeated_one(classes: int) -> str:
    return (
        f" The eigenvalue 1 of A occurs {classes} times ({classes} groups of tokens that attend "
        "only within): consensus is not the only fixed family."
    )


def limit_words(behaviour: Limits, for_x0: bool) -> str:
    start = "this X_0" if for_x0 else "generic X_0"
    rank = "" if behaviour.limit_rank is None else f", rank {behaviour.limit_rank}"
    if behaviour.tends_to is None:
        return ""
    if behaviour.tends_to == "constant":
        value = "a constant" if for_x0 else "a constant that depends on X_0"
        if behaviour.limit is not None:
            value = f"{behaviour.limit:.6g}"
        return f" For {start} HFC/LFC tends to {value}{rank}."
    words = {"zero": "tends to 0", "infinity": "grows without bound", "oscillates": "oscillates"}
    return f" For {start} HFC/LFC {words[behaviour.tends_to]}{rank}."


def token_words(tokens: TokenLimits) -> str:
    """The sentences on single tokens and their cosines, of what is decided (T14e-T14h)."""
    if tokens.growth is None or not tokens.cosines:
        return ""
    words = ""
    known = [growth for growth in tokens.growth if growth is not None]
    gone = [i for i, growth in enumerate(tokens.growth) if growth and not growth.rate]
    if len(set(known)) > 1 and len(known) == len(tokens.growth):
        each = ", ".join(map(_order, known[:_FEW])) + (", ..." if len(known) > _FEW else "")
        words = f" Its tokens do not all grow alike: like {each}."
    if gone and len(gone) < len(tokens.growth):
        words += f" Token {gone[0]} is exactly 0 from some depth on."
    no_limit = sum(x is not None and x.tends_to == "oscillates" for x in tokens.cosines.values())
    if no_limit:
        words += f" The cosines of {no_limit} of {len(tokens.cosines)} pairs of tokens oscillate."
    for name, limit in (("smallest", tokens.cos_min), ("mean", tokens.cos_mean)):
        words += _cosine(name, limit)
    return words


# So many tokens, or limits by residue, are named one by one.
_FEW = 6


def _order(growth: TokenGrowth) -> str:
    power = {0: "", 1: "L "}.get(growth.power, f"L^{growth.power} ")
    return f"{power}{growth.rate:.6g}^L" if growth.rate else "0"


def _cosine(name: str, limit: CosineLimit | None) -> str:
    if limit is None or not limit.values:
        return ""
    shown = ["none" if v is None else f"{v:.6g}" for v in limit.values]
    if limit.tends_to == "constant":
        return f" The {name} cosine between tokens tends to {shown[0]}."
    listed = ", ".join(shown[:_FEW]) + (", ..." if len(shown) > _FEW else "")
    return f" The {name} cosine tends to {listed} by the residue of L modulo {len(shown)}."
