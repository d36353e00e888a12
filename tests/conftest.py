"""How property tests run: without a deadline (machines are shared); in CI the same each time."""

from __future__ import annotations

import os

# Tests run in as many processes as there are processors. A second thread of linear algebra in each
# waits for one that another process has: seen, 234 s in place of 4. Before NumPy and torch come.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")

from hypothesis import settings
from jaxtyping import install_import_hook

from oversmoothing.theory.proofs.formal import share_built
from tests.support.shapes import shapes

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# The shapes in signatures hold at run time: in tests alone, which is soon enough to see one broken.
SHAPED = ("metrics", "states")
install_import_hook([f"oversmoothing.simulations.{room}" for room in SHAPED], "beartype.beartype")
# Where users' own input comes in, the arrays alone.
SHAPES_ALONE = tuple(f"simulations.{room}" for room in ("engine", "generators", "heads", "spectra"))
install_import_hook(
    [f"oversmoothing.{room}" for room in SHAPES_ALONE], f"{shapes.__module__}.{shapes.__name__}"
)

# By the process that starts the others, before it does: what Coq's kernel accepts, it accepts once.
share_built()
