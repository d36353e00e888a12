"""The front door of the project: the command `oversmoothing` and the names a library user imports.

    import oversmoothing
    oversmoothing.verdict(A=..., H=...)                        # does it oversmooth, and why
    oversmoothing.evolve(X0=..., A=..., W=..., depth=1000)     # simulate it, on CPU or GPU
    oversmoothing.evolve_heads(X0=..., attention=..., weights=..., depth=50)  # many heads
    oversmoothing.inspect(model, images)                       # ask it of a trained model

This module is the public interface; `theory`, `simulations`, `experiments` and `paper_figures` are
how it is made. Names load on first use, so that a verdict does not wait for torch.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from theory.command import Command
from theory.errors import InputError, RequirementError

if TYPE_CHECKING:
    from experiments.bridge.adapters import describe, open_model
    from experiments.bridge.predict.ladder import ladder
    from experiments.inspect import Report, inspect
    from experiments.readings import readings_of
    from simulations.evolve import evolve
    from simulations.heads import Drawn, Fixed, FromState, PerLayer, evolve_heads
    from simulations.metrics import metrics
    from simulations.trajectory import Trajectory
    from theory.golden import golden_case
    from theory.heads_spectrum import heads_verdict
    from theory.update import Update
    from theory.verdict import Verdict, verdict

__version__ = "0.1.0"

_HOME = {
    "Drawn": "simulations.heads",
    "Fixed": "simulations.heads",
    "FromState": "simulations.heads",
    "PerLayer": "simulations.heads",
    "Report": "experiments.inspect",
    "describe": "experiments.bridge.adapters",
    "inspect": "experiments.inspect",
    "Trajectory": "simulations.trajectory",
    "evolve": "simulations.evolve",
    "evolve_heads": "simulations.heads",
    "heads_verdict": "theory.heads_spectrum",
    "ladder": "experiments.bridge.predict.ladder",
    "metrics": "simulations.metrics",
    "readings_of": "experiments.readings",
    "open_model": "experiments.bridge.adapters",
    "golden_case": "theory.golden",
    "Update": "theory.update",
    "Verdict": "theory.verdict",
    "verdict": "theory.verdict",
}

__all__ = [
    "Drawn",
    "Fixed",
    "FromState",
    "InputError",
    "PerLayer",
    "Report",
    "Trajectory",
    "Update",
    "Verdict",
    "describe",
    "evolve",
    "evolve_heads",
    "golden_case",
    "heads_verdict",
    "inspect",
    "ladder",
    "metrics",
    "open_model",
    "readings_of",
    "verdict",
]

_PACKAGES = ("theory", "simulations", "experiments", "paper_figures")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'oversmoothing' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def commands() -> list[Command]:
    """What the packages offer, in the order in which they build on each other."""
    return [
        command
        for package in _PACKAGES
        for command in import_module(f"{package}.commands").COMMANDS
    ]


def _parser(offered: Sequence[Command], chosen: str | None) -> ArgumentParser:
    """Every command by name; the arguments of the chosen one alone, since they may load torch."""
    parser = ArgumentParser(
        prog="oversmoothing",
        description="Do a Transformer's tokens become alike as depth grows? It depends on the "
        "spectrum: ask of a case, a simulation or a trained model.",
    )
    parser.add_argument("--version", action="version", version=f"oversmoothing {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in offered:
        described = f"{command.summary[0].upper()}{command.summary[1:]}."
        sub = subparsers.add_parser(command.name, help=command.summary, description=described)
        if command.name == chosen:
            command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line. Exit status: 0 done, 1 a check failed, 2 bad input, 130 interrupted."""
    words = list(sys.argv[1:] if argv is None else argv)
    chosen = next((word for word in words if not word.startswith("-")), None)
    arguments: Namespace = _parser(commands(), chosen).parse_args(words)
    try:
        return int(arguments.run(arguments))
    except InputError as error:
        print(f"oversmoothing {arguments.command}: {error}", file=sys.stderr)
        return 2
    except RequirementError as error:
        print(f"oversmoothing {arguments.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            f"oversmoothing {arguments.command}: interrupted; what was finished is kept",
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: nothing is wrong with the result.
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
