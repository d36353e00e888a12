"""`oversmoothing certify`: a verdict that anyone can check, written to a file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from oversmoothing.theory.certificates.certificate import certify
from oversmoothing.theory.layer.case import make_case, read_case
from oversmoothing.theory.layer.golden import golden_case
from oversmoothing.theory.numbers.rational import to_fraction
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import to_json, write_atomically


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `certify`."""
    parser.add_argument("case", nargs="?", metavar="CASE.json", help="as for `verdict`")
    parser.add_argument("--example", metavar="NAME", help="a golden case instead, e.g. GT4")
    parser.add_argument(
        "--eps", default="1/1000", help="of the depth L*(eps) (default %(default)s)"
    )
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
    eps = to_fraction(arguments.eps, "--eps")
    if eps <= 0:
        raise InputError(f"--eps is {eps}: it must be positive")
    body = certify(case, eps)
    if arguments.output is None:
        print(to_json(body), end="")
        return 0
    path = write_atomically(arguments.output, to_json(body))
    claim = body["claim"]
    print(f"{claim['verdict']} ({claim['reason']})")
    if "genericity" in claim:
        print(f"genericity {claim['genericity']['status']}: {claim['genericity']['reason']}")
    if "verdict_x0" in claim:
        print(f"for this X_0: {claim['verdict_x0']}")
    if "depth" in claim:
        print(f"HFC/LFC <= {claim['eps']} at every depth from {claim['depth']} on")
    print(f"wrote {path}")
    return 0
