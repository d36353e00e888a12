"""By what a claim is established: every kind of evidence, as `by` in a claim.

>>> from oversmoothing import by
>>> by.WRITTEN
<Status.WRITTEN: 'written'>
"""

from oversmoothing.theory.proofs.claim import Effort, Scope, Status
from oversmoothing.theory.proofs.coq import Formal
from oversmoothing.theory.proofs.evidence import (
    Certified,
    Measurement,
    Measurements,
    Settled,
    Simulated,
    Step,
    Symbolic,
    show,
    step,
    written,
)
from oversmoothing.theory.proofs.reals import CORNERS, EIGENVALUE, ForAllReals, for_all
from oversmoothing.theory.proofs.search import law, searched

# How a claim stands on record.
MACHINE, DECIDED, WRITTEN = Status.MACHINE, Status.DECIDED, Status.WRITTEN
# What the check of a step covers.
GENERAL = Scope.GENERAL

# A user's type checker takes these for exported, too.
__all__ = [
    "CORNERS", "DECIDED", "EIGENVALUE", "GENERAL", "MACHINE", "WRITTEN", "Certified", "Effort",
    "ForAllReals", "Formal", "Measurement", "Measurements", "Scope", "Settled", "Simulated",
    "Status", "Step", "Symbolic", "for_all", "law", "searched", "show", "step", "written",
]  # fmt: skip
