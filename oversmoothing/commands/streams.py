"""`oversmoothing streams`: several mixed residual streams, a case decided or a drawn run (T13)."""

from dataclasses import asdict
from typing import Annotated

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError

_MIXINGS = ("doubly-stochastic", "row-stochastic", "orthogonal", "identity", "uniform", "gaussian")


def streams(
    case: Annotated[
        str | None,
        Argument(
            metavar="[CASE.json]",
            help='A case as for `verdict` with "R" (s x s) beside "A" and "H"; optionally "p", "q" '
            '(s numbers; 1 and 1/s), "mixing" (what R is said to be; checked), "start" ("generic" '
            'or "equal"). Without one a run is drawn.',
        ),
    ] = None,
    certified: Annotated[
        bool, Option("--certified", help="Of a case: enclose both radii rigorously.")
    ] = False,
    as_json: opt.Json = False,
    agree: Annotated[
        float,
        Option(
            metavar="SHARE", min=0, max=1, help="Of their first difference that streams shall have."
        ),
    ] = 1e-6,
    mixing: Annotated[str, opt.one_of(_MIXINGS, "How R is drawn")] = "doubly-stochastic",
    streams: Annotated[int, Option(metavar="S", min=1, max=16, help="Residual streams.")] = 4,
    changing: Annotated[
        bool, Option("--changing", help="Another R in every layer, drawn like the first.")
    ] = False,
    n: opt.Tokens = 16,
    d: opt.Features = 8,
    scale: Annotated[
        float, Option(metavar="NUMBER", min=0, max=sizes.REAL, help="Size of W.")
    ] = 1.0,
    temperature: opt.Temperature = 1.0,
    mixing_temperature: Annotated[
        float,
        Option(
            metavar="NUMBER", min=1 / sizes.REAL, max=sizes.REAL, help="Of the softmax that R is."
        ),
    ] = 1.0,
    causal: opt.Causal = False,
    any_p: Annotated[bool, Option("--any-p", help="p drawn, not 1 in every stream.")] = False,
    any_q: Annotated[bool, Option("--any-q", help="q drawn, not 1/s in every stream.")] = False,
    depth: opt.Depth = 1000,
    points: opt.Points = 60,
    plot: opt.Plot = False,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Several mixed residual streams: do tokens smooth, do the streams become one.

    Of a CASE the verdict; without one a drawn run, which writes streams.csv and streams.json, with
    --plot the picture beside them.
    """
    from oversmoothing.theory.support.files import output_folder, to_json

    if case is not None:
        from oversmoothing.theory.streams.stream_verdict import stream_verdict
        from oversmoothing.theory.streams.streams import load_streams

        found = stream_verdict(load_streams(case), certified, agree)
        print(to_json(found.to_json_object()) if as_json else f"{found}\n", end="")
        return
    if certified or as_json:
        raise InputError(
            "--certified and --json are of a CASE.json: a drawn run writes streams.json"
        )
    from oversmoothing.commands.tables import write_run
    from oversmoothing.simulations.against_theory.simulate import (
        StreamsConfiguration,
        predicted_rate,
        simulate_streams,
    )
    from oversmoothing.simulations.engine.problem import choose_device

    configuration = StreamsConfiguration(
        mixing, streams, changing, n, d, scale, temperature, mixing_temperature, causal, any_p,
        any_q, depth, points, agree, seed,
    )  # fmt: skip
    folder = output_folder(out)
    chosen = str(choose_device(device))
    table, words, theory = simulate_streams(configuration, device=device, progress=True)
    write_run(
        folder / "streams",
        asdict(configuration),
        chosen,
        table,
        {"theory": theory},
        words,
        plot=plot,
        log_rate=predicted_rate(theory),
    )
