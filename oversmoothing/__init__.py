"""The front door of the project: the command `oversmoothing` and the names a library user imports.

    import oversmoothing
    oversmoothing.verdict(A=..., H=...)                        # does it oversmooth, and why
    oversmoothing.evolve(X0=..., A=..., W=..., depth=1000)     # simulate it, on CPU or GPU
    oversmoothing.evolve_heads(X0=..., attention=..., weights=..., depth=50)  # many heads
    oversmoothing.inspect(model, images)                       # ask it of a trained model
    oversmoothing.remedies.AttnScale(0.5).layer(X, A, W)       # a remedy around a layer
    from oversmoothing import Claim, by, draw, exact, given    # a claim of one's own, see `prove`

This module is the public interface; `oversmoothing.theory`, `.simulations`, `.experiments` and
`.paper_figures` are how it is made. Names load on first use, so that a verdict does not wait for
torch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.extras import required

if TYPE_CHECKING:
    from oversmoothing.experiments import remedies
    from oversmoothing.experiments.inspection.compare import Comparison, compare
    from oversmoothing.experiments.inspection.inspect import inspect
    from oversmoothing.experiments.inspection.report import Report
    from oversmoothing.experiments.inspection.stages import Stages, inspect_stages
    from oversmoothing.experiments.ladder.climb import ladder
    from oversmoothing.experiments.models.describe import describe
    from oversmoothing.experiments.models.sources import open_model
    from oversmoothing.experiments.parameterisations.choose import (
        parameterisation,
        value_projection,
    )
    from oversmoothing.experiments.parameterisations.lasting_bound import lasting_bound
    from oversmoothing.experiments.reparameterised.reparameterise import (
        Reparameterised,
        reparameterise,
    )
    from oversmoothing.experiments.table1.table import readings_of
    from oversmoothing.experiments.watching.watcher import Watcher
    from oversmoothing.simulations.engine.evolve import evolve
    from oversmoothing.simulations.engine.trajectory import Trajectory
    from oversmoothing.simulations.heads.evolve_heads import (
        Drawn,
        Fixed,
        FromState,
        PerLayer,
        evolve_heads,
    )
    from oversmoothing.simulations.metrics.metrics import metrics
    from oversmoothing.theory.ask import verdict
    from oversmoothing.theory.layer.golden import golden_case
    from oversmoothing.theory.numbers import exact_matrix as exact
    from oversmoothing.theory.proofs import by, hypotheses as given, strategies as draw
    from oversmoothing.theory.proofs.claim import Claim
    from oversmoothing.theory.verdict.answer import Verdict
    from oversmoothing.theory.verdict.heads_verdict import heads_verdict

__version__ = "0.1.0"

_HOME = {
    "Drawn": "oversmoothing.simulations.heads.evolve_heads",
    "Fixed": "oversmoothing.simulations.heads.evolve_heads",
    "FromState": "oversmoothing.simulations.heads.evolve_heads",
    "PerLayer": "oversmoothing.simulations.heads.evolve_heads",
    "Report": "oversmoothing.experiments.inspection.report",
    "Comparison": "oversmoothing.experiments.inspection.compare",
    "compare": "oversmoothing.experiments.inspection.compare",
    "describe": "oversmoothing.experiments.models.describe",
    "inspect": "oversmoothing.experiments.inspection.inspect",
    "Stages": "oversmoothing.experiments.inspection.stages",
    "inspect_stages": "oversmoothing.experiments.inspection.stages",
    "Watcher": "oversmoothing.experiments.watching.watcher",
    "Trajectory": "oversmoothing.simulations.engine.trajectory",
    "evolve": "oversmoothing.simulations.engine.evolve",
    "evolve_heads": "oversmoothing.simulations.heads.evolve_heads",
    "heads_verdict": "oversmoothing.theory.verdict.heads_verdict",
    "ladder": "oversmoothing.experiments.ladder.climb",
    "lasting_bound": "oversmoothing.experiments.parameterisations.lasting_bound",
    "parameterisation": "oversmoothing.experiments.parameterisations.choose",
    "Reparameterised": "oversmoothing.experiments.reparameterised.reparameterise",
    "reparameterise": "oversmoothing.experiments.reparameterised.reparameterise",
    "value_projection": "oversmoothing.experiments.parameterisations.choose",
    "metrics": "oversmoothing.simulations.metrics.metrics",
    "readings_of": "oversmoothing.experiments.table1.table",
    "open_model": "oversmoothing.experiments.models.sources",
    "golden_case": "oversmoothing.theory.layer.golden",
    "Verdict": "oversmoothing.theory.verdict.answer",
    "verdict": "oversmoothing.theory.ask",
    # What a claim is written with.
    **dict.fromkeys(("Claim", "by", "draw", "exact", "given"), "oversmoothing.theory.proofs.kit"),
}
# Public names that are a package of several.
_PACKAGES = {"remedies": "oversmoothing.experiments.remedies"}

__all__ = [
    "Claim",
    "Comparison",
    "Drawn",
    "Fixed",
    "FromState",
    "InputError",
    "PerLayer",
    "Reparameterised",
    "Report",
    "Stages",
    "Trajectory",
    "Verdict",
    "Watcher",
    "by",
    "compare",
    "describe",
    "draw",
    "evolve",
    "evolve_heads",
    "exact",
    "given",
    "golden_case",
    "heads_verdict",
    "inspect",
    "inspect_stages",
    "ladder",
    "lasting_bound",
    "metrics",
    "open_model",
    "parameterisation",
    "readings_of",
    "remedies",
    "reparameterise",
    "value_projection",
    "verdict",
]


def __getattr__(name: str) -> Any:
    if name == "Update":
        raise AttributeError(
            "oversmoothing.Update is gone: oversmoothing.verdict gives both spectra of a layer, "
            "oversmoothing.evolve its steps, and oversmoothing.theory.layer pi and the quotient B"
        )
    if name in _PACKAGES:
        value: Any = required(_PACKAGES[name])
    elif name in _HOME:
        value = getattr(required(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'oversmoothing' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Exit status: 0 done, 1 a check failed, 2 bad input, 70 a fault of the program, 74 text that
    standard output did not take, 130 interrupted.
    """

    def run() -> int:
        from oversmoothing.commands.line import main as line

        return line(argv)

    words = sys.argv[1:] if argv is None else argv
    command = next((word for word in words if not word.startswith("-")), "")
    try:
        from oversmoothing.commands.ending import ended

        return ended(run, command)
    except KeyboardInterrupt:  # while what says so was itself being read
        said = f"oversmoothing {command}".rstrip()
        print(f"{said}: interrupted; what was finished is kept", file=sys.stderr)
        return 130
