"""The front door of the project: the command `oversmoothing` and the names a library user imports.

    import oversmoothing
    oversmoothing.verdict(A=..., H=...)                        # does it oversmooth, and why
    oversmoothing.evolve(X0=..., A=..., W=..., depth=1000)     # simulate it, on CPU or GPU
    oversmoothing.evolve(X0=..., A=..., W=..., depth=range(1001)).metrics()["hfc_lfc"]  # its curve
    oversmoothing.evolve_heads(X0=..., attention=..., weights=..., depth=50)  # many heads
    oversmoothing.inspect(model, images)                       # ask it of a trained model
    oversmoothing.remedies.AttnScale(0.5).layer(X, A, W)       # a remedy around a layer
    from oversmoothing import Claim, by, draw, exact, given    # a claim of one's own, see `prove`

This module is the public interface; `oversmoothing.theory`, `.simulations`, `.experiments` and
`.paper_figures` are how it is made. The stub beside it, `__init__.pyi`, is the list of the names;
they load on first use, so that a verdict does not wait for torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from oversmoothing import moved as _moved  # noqa: F401

__version__ = "0.1.0"


@cache
def _homes() -> dict[str, str]:
    """The module of each public name: what the stub imports as itself."""
    import ast

    with open(os.path.splitext(__file__)[0] + ".pyi", encoding="utf-8") as stub:
        lines = ast.parse(stub.read()).body
    return {
        name.asname: str(line.module)
        for line in lines
        if isinstance(line, ast.ImportFrom)
        for name in line.names
        if name.asname
    }


def __getattr__(name: str) -> Any:
    if name == "Update":
        raise AttributeError(
            "oversmoothing.Update is gone: oversmoothing.verdict gives both spectra of a layer, "
            "oversmoothing.evolve its steps, and oversmoothing.theory.layer pi and the quotient B"
        )
    homes = _homes()
    if name == "__all__":
        value: Any = sorted(_loadable())
    elif name in homes:
        from oversmoothing.theory.support.errors import required

        home = required(homes[name])
        value = getattr(home, name, None) or required(f"{homes[name]}.{name}")
    else:
        raise AttributeError(f"module 'oversmoothing' has no attribute {name!r}")
    globals()[name] = value
    return value


@cache
def _loadable() -> list[str]:
    """The public names that load here: without the extra `commands`, those that need none."""
    from importlib.util import find_spec

    from oversmoothing.theory.support.errors import EXTRA_OF

    every = all(find_spec(library) for library, of in EXTRA_OF.items() if of == "commands")
    plain = ("layer", "simulations", "theory", "experiments.forms.regions")
    homes = _homes().items()
    return [name for name, home in homes if every or home.partition(".")[2].startswith(plain)]


def __dir__() -> list[str]:
    return ["__version__", "main", *_loadable()]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Exit status: 0 done, 1 a check failed, 2 bad input, 70 a fault of the program, 74 text that
    standard output did not take, 130 interrupted.
    """

    def run() -> int:
        from oversmoothing.commands.main import main as line

        return line(argv)

    words = sys.argv[1:] if argv is None else argv
    command = next((word for word in words if not word.startswith("-")), "")
    try:
        from oversmoothing.commands.ending import ended

        return ended(run, command)
    except KeyboardInterrupt:  # while what says so was itself being read
        said = f"oversmoothing {command}".rstrip()
        print(f"{said}: interrupted", file=sys.stderr)
        exec("")  # takes CPython's mark away, as in `oversmoothing.commands.ending.interrupted`
        return 130
