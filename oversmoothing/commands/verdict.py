"""`oversmoothing verdict`: the theory's answer on one case, in words or as JSON."""

import sys
from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support.errors import InputError


def verdict(
    case: opt.CaseFile = None,
    example: opt.Example = None,
    depth: Annotated[
        list[int] | None,
        Option(metavar="L", parser=opt.layers, help="HFC/LFC after L layers too (several)."),
    ] = None,
    exact_binary: Annotated[
        bool,
        Option("--exact-binary", help="Decide the binary numbers, not all that rounds to them."),
    ] = False,
    certified: Annotated[
        bool, Option("--certified", hidden=True, help="The old name of --exact-binary.")
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Does X' = X + A X H^T oversmooth, and why."""
    from oversmoothing.theory.claims.golden import chosen_case
    from oversmoothing.theory.support.files import to_json
    from oversmoothing.theory.verdict.verdict import answer, check_depths

    depths = check_depths(depth or [])
    layer, start = chosen_case(case, example)
    if depths and start is None:
        raise InputError('--depth needs a start: add "X0" to the case')
    if certified:
        print("--certified is now called --exact-binary", file=sys.stderr)
    result = answer(layer, start, depths, exact_binary or certified)
    print(to_json(result.to_json_object()) if as_json else f"{result}\n", end="")
