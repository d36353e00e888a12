"""By what a claim is established: every kind of evidence, as `by` in a claim."""

from oversmoothing.theory.proofs.claim import Effort, Scope, Status
from oversmoothing.theory.proofs.evidence import (
    Certified,
    Measurement,
    Measurements,
    Settled,
    Simulated,
    Step,
    Symbolic,
    show,
)
from oversmoothing.theory.proofs.for_all import CORNERS, EIGENVALUE, ForAllReals, for_all
from oversmoothing.theory.proofs.formal import Formal
from oversmoothing.theory.proofs.search import law, searched
from oversmoothing.theory.proofs.written import refuted, step, written

# How a claim stands on record.
MACHINE, DECIDED, WRITTEN = Status.MACHINE, Status.DECIDED, Status.WRITTEN
# What the check of a step covers.
GENERAL = Scope.GENERAL
