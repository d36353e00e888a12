"""What to try, by the cause: each advice says how it is known.

'proved' names the claim of the ledger that proves it, and for what; a trained model with norms, FFN
and layers of their own is not what the claim is about. 'measured' says on which trained model a
change was made and what it did, held against the model without it by `compare`; docs/guide/
inspect.md holds the commands. What is neither is 'untested'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oversmoothing.experiments.inspection.answer import MILD, Answer, Grade

Known = Literal["proved", "measured", "untested"]


@dataclass(frozen=True)
class Advice:
    """One thing to try. claims: the ledger's names that prove it, for the case in `proved_for`;
    measured: on which trained model, and what came of it."""

    words: str
    known: Known
    claims: tuple[str, ...] = ()
    proved_for: str = ""
    measured: str = ""

    @property
    def how(self) -> str:
        """How it is known, in words."""
        if not self.claims:
            return f"measured {self.measured}" if self.measured else self.known
        tried = f"measured {self.measured}" if self.measured else "untested on trained models"
        return f"proved: {', '.join(self.claims)}, for {self.proved_for}; {tried}"

    def __str__(self) -> str:
        return f"{self.words} [{self.how}]"


_DISC = Advice(
    "Keep the eigenvalues h of every layer's H in the disc |h + 1/2| <= 1/2, h not 0, for example "
    "H = -(I - K)/2 with ||K|| < 1: consensus then never dominates",
    "proved",
    ("T3c",),
    "one layer repeated, any positive attention, no norm and no FFN",
    "on the digits shared-value ViT of this project, H = -Q diag(psi^2) Q^T beside a free H, both "
    "trained: ln HFC/LFC changes by +0.23 in place of -0.63 (difference +0.86, 95 % interval +0.83 "
    "to +0.89, "
    "360 images)",
)
_REMOVE_MEAN = Advice(
    "Take a part tau of the mean over the tokens away after every layer, with |1 - tau| < r = "
    "rho_Q/rho_C",
    "proved",
    ("N-2312.06182-remedy",),
    "one layer repeated, any positive attention, no norm and no FFN",
)
_FLIP = Advice(
    "Turn the sign of gain and shift before attention, since most of these gains are negative: "
    "without biases in queries and keys that turns H into -H, and the verdict where |h| is small",
    "proved",
    ("T8e-reversal",),
    "Pre-LN with frozen attention, one scale for all tokens and one real h",
)
_GAINS = Advice(
    "Hold the norms' gains nearer to 1 while training (weight decay toward 1, not toward 0)",
    "untested",
)
_KEEP_GAINS = Advice(
    "Leave the norms' gains free to train (no weight decay, no freezing): here they are what keeps "
    "the tokens apart",
    "measured",
    measured="on the trained DeiT-Ti, those of its attention set to 1 and nothing trained after: "
    "ln HFC/LFC changes by -0.72 in place of +0.19 (difference -0.90, 95 % interval -1.02 to "
    "-0.79, 50 photographs); what freezing them in training does is untested",
)
_FFN_BIAS = Advice(
    "Look at the output bias of the FFN and at what it adds to every token alike, and take that "
    "mean away",
    "untested",
)
_FFN_BLIND = Advice(
    "Do not expect an FFN to part tokens that have come together: at consensus it multiplies what "
    "they share and what parts them by one and the same matrix, only attention tells them apart",
    "proved",
    ("T8c",),
    "states near consensus",
)
_SCALES = Advice(
    "Norm the tokens once before the first layer, so that a few large ones do not set the mean",
    "untested",
)


def advice(found: Answer, *, placement: str, negative_gains: float) -> tuple[Advice, ...]:
    """What to try, first things first; nothing where tokens do not smooth and nothing holds them.

    placement: 'pre' or 'post'; negative_gains: the share of gains before attention below 0.
    """
    cause = found.cause
    if found.grade is None:
        return ()
    if found.grade >= Grade.NONE:
        sums = {} if cause is None else cause.sums
        held = sums.get("gains", 0.0) >= MILD and sums.get("mixing", 0.0) <= -MILD
        return (_KEEP_GAINS,) if held else ()
    flip = (_FLIP,) if placement == "pre" and negative_gains > 0.5 else ()
    by_cause: dict[str | None, tuple[Advice, ...]] = {
        None: (_REMOVE_MEAN, _DISC),
        "mixing": (_DISC, _REMOVE_MEAN),
        "gains": (*flip, _GAINS, _REMOVE_MEAN),
        "ffn": (_FFN_BIAS, _REMOVE_MEAN, _FFN_BLIND),
        "scales": (_SCALES, _REMOVE_MEAN),
    }
    return by_cause[None if cause is None else cause.name]
