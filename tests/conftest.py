"""How property tests run: without a deadline (machines are shared); in CI the same each time."""

from __future__ import annotations

import os

from hypothesis import settings
from jaxtyping import install_import_hook

from oversmoothing.theory.proofs.coq import share_built
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
