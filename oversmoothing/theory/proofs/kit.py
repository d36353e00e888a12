"""What a claim is written with, in one import; `theory.proofs` tells what it is."""

from oversmoothing.theory.numbers import exact as exact
from oversmoothing.theory.numbers.exact import Matrix, matrix
from oversmoothing.theory.proofs import (
    by,
    exact_spectrum as spectra,
    hypotheses as given,
    strategies as draw,
)
from oversmoothing.theory.proofs.chapter import Chapter
from oversmoothing.theory.proofs.checks import certain, equal, is_zero, meets, vanishes
from oversmoothing.theory.proofs.claim import Claim, Status
from oversmoothing.theory.verdict.verdict import verdict

# The matrices on which proofs are executed, each known by what it shows.

# Symmetric attention of two tokens with the second eigenvalue 1/2, 0, -1/2 and -3/4.
AA = matrix("3/4 1/4; 1/4 3/4")
J2 = matrix("1/2 1/2; 1/2 1/2")
AQ = matrix("1/4 3/4; 3/4 1/4")
AM = matrix("1/8 7/8; 7/8 1/8")
# Spectrum {1, 1/2, 1/5}, pi = (26, 9, 5)/40.
A3 = matrix("4/5 1/10 1/10; 3/10 3/5 1/10; 1/2 1/5 3/10")
# Circulant, 1 and -7/20 +- (7 sqrt 3/20) i.
C3 = matrix("1/10 4/5 1/10; 1/10 1/10 4/5; 4/5 1/10 1/10")
# Eigenvalues 1 and (1 +- 3i)/10, pi = (3, 3, 4)/10.
ROTATING = matrix("23/50 3/50 12/25; 12/25 7/25 6/25; 9/200 99/200 23/50")
# 1/5 I + 4/5 J/3 + u w^T/10, u = (1,-1,0), w = (1,1,-2): the eigenvalue 1/5 is defective.
DEFECTIVE = matrix("17/30 11/30 1/15; 1/6 11/30 7/15; 4/15 4/15 7/15")
# 1 pi^T + 1/5 (I - 1 pi^T) + u w^T/10, pi = (2,1,1)/4: 1/5 is defective, pi is not uniform.
SKEW_DEFECTIVE = matrix("3/5 3/10 1/10; 2/5 3/10 3/10; 2/5 1/10 1/2")
# Causal: with the spectra {1, 1/2, 1/4} and {1, 1/2, 1/3}, uniform rows in the second.
CAUSAL = matrix("1 0 0; 1/2 1/2 0; 1/2 1/4 1/4")
CAUSAL_MEANS = matrix("1 0 0; 1/2 1/2 0; 1/3 1/3 1/3")
