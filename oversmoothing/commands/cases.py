"""Commands on one case: a verdict, its certificate, the check of a certificate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import files
from oversmoothing.theory.support.errors import InputError

if TYPE_CHECKING:
    from oversmoothing.theory.layer.layer import Entries, Layer


def _read(case: str | None, example: str | None, data: Any = None) -> tuple[Layer, Entries | None]:
    """The case of a file, or one that comes with the package. Raises `InputError` for neither."""
    if case is not None and example is None:
        from oversmoothing.theory.layer.layer import load_layer

        return load_layer(case, data)
    from oversmoothing.theory.claims.golden import golden_case, golden_cases

    if (case is None) == (example is None):
        raise InputError(
            "which case? Give a CASE.json or --example NAME, and not both.\na CASE.json holds "
            '{"A": [["3/4", "1/4"], ["1/4", "3/4"]], "H": [["-3/2"]]}, say; --example takes '
            f"{', '.join(golden_cases())}: small cases whose answers are known"
        )
    golden = golden_case(str(example))
    return golden.layer, golden.start


def verdict(
    case: opt.CaseFile = None,
    example: opt.Example = None,
    depth: Annotated[list[int] | None, Option(metavar="L", parser=opt.layers,
        help="print HFC/LFC after L layers too (several; the case needs X0)")] = None,
    exact_binary: Annotated[bool, Option("--exact-binary",
        help="decide these very floats, not all that round to them")] = False,
    certified: Annotated[bool, Option("--certified",
        help='enclose both radii rigorously, for a case with "R"')] = False,
    thorough: Annotated[bool, Option("--thorough",
        help="also answer what was left out for its cost (X0 in fractions)")] = False,
    agree: opt.Agree = 1e-6,
    as_json: opt.Json = False,
) -> None:  # fmt: skip
    """Say whether X' = X + A X H^T smooths, and why.

    A case with "R" (s x s) beside "A" and "H" has several residual streams: the answer then says
    too whether the streams become one. Such a case may also hold "p" and "q" (s numbers each, 1 and
    1/s if left out), "mixing" (the kind of R, which is checked) and "start" ("generic" or "equal").

    From which layer on is HFC/LFC surely below a bound? certify CASE --eps 1e-6 proves one.
    """
    from oversmoothing.theory.verdict.answer import announced
    from oversmoothing.theory.verdict.verdict import answer, check_depths

    depths = check_depths(depth or [])
    data = None if case is None or example is not None else files.read_json(case)
    result: Any
    if isinstance(data, dict) and "R" in data:
        from oversmoothing.theory.streams.stream_verdict import stream_verdict
        from oversmoothing.theory.streams.streams import load_streams

        opt.needs(False, 'a case without "R"', "--depth", "--exact-binary", "--thorough")
        result = stream_verdict(load_streams(str(case), data), certified, agree)
    else:
        opt.needs(False, 'a case with "R"', "--agree")
        layer, start = _read(case, example, data)
        if depths and start is None:
            raise InputError('--depth needs a start: add "X0" to the case')
        if certified:
            print("`--certified` is now `--exact-binary`", file=sys.stderr)
        if words := announced(layer.n, layer.d, start is not None):
            print(words, file=sys.stderr)
        result = answer(layer, start, depths, exact_binary or certified, thorough)
    opt.shown(as_json, result.to_json_object(), str(result), unpiped=False)


def certify(
    case: opt.CaseFile = None,
    example: opt.Example = None,
    eps: Annotated[str, Option(metavar="E",
        help="report the depth from which HFC/LFC stays below E")] = "1/1000",
    as_json: opt.Json = False,
    out: opt.OutFile = None,
    report: opt.Report = None,
) -> None:  # fmt: skip
    """Prove a verdict, and write it as a certificate that `check` has accepted.

    --json prints the certificate, --out writes it (certificate.json in a folder). The verdict may
    be UNDECIDED.
    """
    from oversmoothing.theory.certificate import make_certificate
    from oversmoothing.theory.numbers.exact import to_fraction
    from oversmoothing.theory.verdict.answer import in_lines, vanishing
    from oversmoothing.theory.verdict.formulas import Outcome

    layer, start = _read(case, example)
    tolerance = to_fraction(eps, "--eps")
    if tolerance <= 0:
        raise InputError(f"--eps is {eps}: it must be positive")
    made = make_certificate(layer, start, tolerance)
    path = opt.file_in(out, report, "certificate.json")
    if path is not None:
        files.write_atomically(path, files.to_json(made.body))
    if as_json:
        print(files.to_json(made.body), end="")
        return
    claim = made.body["claim"]
    numbers, more = [], [f"Recomputed by another route: {made.checked}."]
    if "verdict_x0" in claim:
        numbers.append(f"for this X_0: {claim['verdict_x0']}")
    if "depth" in claim:
        numbers.append(f"HFC/LFC <= {claim['eps']} at every depth from {claim['depth']} on")
    more += [f"Not in the certificate: {each}." for each in made.left_out]
    more += [f"The checker cannot confirm, and so not in it: {x}." for x in made.unconfirmed]
    how = f"How: {made.reason}; {made.method}."
    said = in_lines(Outcome(claim["verdict"]), "certified", numbers, how, more)
    print(opt.wrapped(said if made.vanishes is False else vanishing(said, bool(made.vanishes))))
    print("no certificate written: give --out FILE" if path is None else f"wrote {path}")


def check(
    certificate: Annotated[
        str, Argument(metavar="FILE", help="certificate as `certify` writes it (- for input)")
    ],
    as_json: opt.Json = False,
) -> int:
    """Recompute a certificate by other means, and accept or refuse it (exit status 0 or 1)."""
    from oversmoothing.theory.checker.check import check_certificate
    from oversmoothing.theory.checker.reading import NotACertificate

    try:
        checked = check_certificate(files.read_text(certificate))
    except NotACertificate as error:
        raise InputError(
            f"'{certificate}' is no certificate: {error}\n(the file of an enclosure is checked by "
            "'oversmoothing enclose MODEL --check FILE')"
        ) from error
    body = {"accepted": checked.accepted, "words": checked.words}
    opt.shown(as_json, body, f"{'accepted' if checked.accepted else 'REFUSED'}: {checked.words}")
    return 0 if checked.accepted else 1


def regions(
    case: Annotated[
        str, Argument(metavar="CASE.json", help='case with names in text: "(1 + a)/2"')
    ],
    vary: Annotated[list[str], Option(metavar="NAME=FROM:TO",
        help="range of a parameter (two are drawn, a third in slices)")],
    thorough: Annotated[bool, Option("--thorough",
        help="also the boundaries that are left out for their cost")] = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Say for which parameters a layer smooths, in conditions and a picture.

    A case is JSON such as {"A": [["1/2 + a", "1/2 - a"], ["1/2 - a", "1/2 + a"]], "H": [["h"]]};
    one with "X0" is about that start. Boundaries are the zeros of polynomials, and each cell
    between them has one exact verdict. Writes regions.png, .pdf and .csv, and regions.svg: a click
    in one of its 24 by 24 squares opens explorer.html at the A and the eigenvalues of H there.
    """
    from oversmoothing.paper_figures.explorer.explorer_page import link_to, write_explorer
    from oversmoothing.theory.verdict.symbolic.region import Region
    from oversmoothing.theory.verdict.symbolic.symbols import symbolic

    data = files.read_json(case)
    if not isinstance(data, dict) or not {"A", "H"} <= data.keys():
        raise InputError(f'\'{case}\' must hold an object with "A" and "H", nested lists of text')
    ranges: dict[str, Any] = {}
    for each in vary:
        name, equals, ends = each.partition("=")
        low, colon, high = ends.partition(":")
        if not (name and equals and low and colon and high):
            raise InputError(f"--vary {each} is no range: write --vary h=-3:1")
        ranges[name.strip()] = (low, high)
    symbols = symbolic(data["A"], data["H"], data.get("X0"))
    answer = symbols.verdict(thorough=thorough)
    region = Region(answer, ranges)
    folder = files.output_folder(out)
    page = write_explorer(folder)

    def link(point: dict[Any, Any]) -> str | None:
        try:
            return page.name + link_to(*symbols.at(point))
        except InputError:  # no attention there
            return None

    paths = [*region.save(folder / "regions", link), str(page)]
    if as_json:
        cells = [
            {"verdict": cell.outcome, "at": {str(s): str(x) for s, x in cell.point.items()}}
            for each in region.slices
            for cell in each.cells
        ]
        conditions = {name: getattr(answer, name) for name in ("smooths", "ties", "does_not")}
        body = {
            "form": answer.form,
            **{name: each if each is None else str(each) for name, each in conditions.items()},
            "in_ranges": {each: str(x) for each, x in (region.conditions or {}).items()},
            "assumed": [str(x) for x in answer.assumed],
            "boundaries": None if answer.left_out else [str(p) for p in answer.boundaries],
            **({"left_out": answer.left_out} if answer.left_out else {}),
            "cells": cells,
            "written": paths,
        }
        print(files.to_json(body), end="")
        return
    print(region.words())
    print("\n".join(f"wrote {path}" for path in paths))
