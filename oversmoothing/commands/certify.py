"""`oversmoothing certify`: a verdict that anyone can check, as a file."""

from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support.errors import InputError


def certify(
    case: opt.CaseFile = None,
    example: opt.Example = None,
    eps: Annotated[str, Option(metavar="NUMBER", help="Of the depth L*(eps).")] = "1/1000",
    as_json: opt.Json = False,
    report: opt.ReportFile = None,
) -> None:
    """A rigorous verdict on a case, as a file that `check` has accepted.

    The certificate itself is what --json prints and --report writes. UNDECIDED is an answer.
    """
    from oversmoothing.theory.certificate import make_certificate
    from oversmoothing.theory.claims.golden import chosen_case
    from oversmoothing.theory.numbers.exact import to_fraction
    from oversmoothing.theory.support.files import to_json, write_atomically

    layer, start = chosen_case(case, example)
    tolerance = to_fraction(eps, "--eps")
    if tolerance <= 0:
        raise InputError(f"--eps is {eps}: it must be positive")
    found = make_certificate(layer, start, tolerance)
    if report is not None:
        write_atomically(report, to_json(found.body))
    if as_json:
        print(to_json(found.body), end="")
        return
    claim = found.body["claim"]
    print(f"{claim['verdict']} ({found.reason}; {found.method})")
    if "genericity" in claim:
        low, _ = claim["genericity"]["coefficient"]
        print(f"X_0 contains the dominant mode: a coefficient >= {float.fromhex(low):.6g}")
    if "verdict_x0" in claim:
        print(f"for this X_0: {claim['verdict_x0']}")
    if "depth" in claim:
        print(f"HFC/LFC <= {claim['eps']} at every depth from {claim['depth']} on")
    print(f"checked: {found.checked}")
    for missing in found.left_out:
        print(f"not in the certificate: {missing}")
    for missing in found.unconfirmed:
        print(f"not in the certificate, for the checker cannot confirm it: {missing}")
    if report is not None:
        print(f"wrote {report}")
