"""`oversmoothing certify`: a verdict that anyone can check, written to a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from theory.case import make_case, read_case
from theory.certificates.certificate import certify
from theory.errors import InputError
from theory.files import to_json, write_atomically
from theory.golden import golden_case


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `certify`."""
    parser.add_argument("case", nargs="?", metavar="CASE.json", help="as for `verdict`")
    parser.add_argument("--example", metavar="NAME", help="a golden case instead, e.g. GT4")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")


def run(arguments: Namespace) -> int:
    """Run `certify`. UNDECIDED is an answer: exit status 0."""
    if (arguments.case is None) == (arguments.example is None):
        raise InputError("give either a CASE.json or --example NAME")
    if arguments.example is None:
        case = read_case(arguments.case)
    else:
        golden = golden_case(arguments.example)
        case = make_case(golden.A, golden.H, golden.X0)
    body = certify(case)
    if arguments.output is None:
        print(to_json(body), end="")
        return 0
    path = write_atomically(arguments.output, to_json(body))
    print(f"{body['claim']['verdict']} ({body['claim']['reason']})\nwrote {path}")
    return 0
