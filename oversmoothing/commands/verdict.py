"""`oversmoothing verdict`: the theory's answer on one case, in words or as JSON."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from oversmoothing.theory.support.errors import InputError


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "case",
        nargs="?",
        metavar="CASE.json",
        help='"A" (or its "logits"), "H" (or the factors "W_V", "W_proj" of a head) and optionally '
        '"X0" as nested lists, for X\' = X + A X H^T; strings ("3/4") are exact',
    )
    parser.add_argument("--example", metavar="NAME", help="a golden case instead, e.g. GT4")
    parser.add_argument(
        "--depth", type=int, nargs="+", default=[], metavar="L", help="HFC/LFC after L layers too"
    )
    parser.add_argument("--certified", action="store_true", help="enclose both radii rigorously")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: Namespace) -> int:
    from oversmoothing.theory.ask import answer
    from oversmoothing.theory.layer.case import make_case, read_case
    from oversmoothing.theory.layer.golden import golden_case, golden_cases
    from oversmoothing.theory.support.files import to_json
    from oversmoothing.theory.verdict.verdict import check_depths

    if (arguments.case is None) == (arguments.example is None):
        raise InputError(
            "give either a CASE.json or --example NAME, one of " + ", ".join(golden_cases())
        )
    depths = check_depths(arguments.depth)
    if arguments.example is not None:
        golden = golden_case(arguments.example)
        case = make_case(golden.A, golden.H, golden.X0)
    else:
        case = read_case(arguments.case)
    if depths and case.X0 is None:
        raise InputError('--depth needs a start: add "X0" to the case')
    result = answer(case, depths, arguments.certified)
    print(to_json(result.to_json_object()) if arguments.json else f"{result}\n", end="")
    return 0
