"""By what a claim is established: every kind of evidence, as `by` in a claim."""

from oversmoothing.theory.proofs.claim import Effort
from oversmoothing.theory.proofs.evidence import (
    Certified,
    Measurement,
    Measurements,
    Settled,
    Simulated,
    Step,
    Symbolic,
    searched,
    show,
)
from oversmoothing.theory.proofs.for_all import CORNERS, EIGENVALUE, ForAllReals, for_all
from oversmoothing.theory.proofs.written import refuted, written
