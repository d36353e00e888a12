"""`oversmoothing heads`: one run of many heads and changing layers beside the theory."""

from dataclasses import asdict
from typing import Annotated, Literal

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes


def heads(
    heads: Annotated[int, Option(metavar="N", min=1, max=sizes.SIZE, help="Number of heads.")] = 4,
    n: opt.Tokens = 16,
    d: opt.Features = 16,
    rank: Annotated[
        int | None,
        Option(
            metavar="R",
            min=1,
            max=sizes.SIZE,
            help="Of a head's W_V W_O (default d / heads, at least 1).",
        ),
    ] = None,
    attention: Annotated[
        Literal["fixed", "drawn", "state"],
        Option(help="The same A in every layer, drawn for each, or computed from X."),
    ] = "fixed",
    weights: Annotated[
        Literal["fixed", "drawn"],
        Option(help="The same W_V, W_O in every layer, or drawn for each."),
    ] = "fixed",
    scale: Annotated[
        float, Option(metavar="NUMBER", min=0, max=sizes.REAL, help="Size of sum_h W_h.")
    ] = 1.0,
    temperature: opt.Temperature = 1.0,
    causal: opt.Causal = False,
    no_residual: Annotated[bool, Option("--no-residual", help="X' = sum_h A_h X W_h.")] = False,
    depth: opt.Depth = 1000,
    points: opt.Points = 60,
    plot: opt.Plot = False,
    dtype: opt.Precision = "float64",
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:
    """Run many heads and changing layers beside what the theory says.

    Writes heads.csv and heads.json; with --plot the picture beside them.
    """
    from oversmoothing.commands.tables import write_run
    from oversmoothing.simulations.against_theory.simulate import (
        HeadsConfiguration,
        predicted_rate,
        simulate_heads,
    )
    from oversmoothing.simulations.engine.problem import choose_device
    from oversmoothing.theory.support.files import output_folder

    configuration = HeadsConfiguration(
        heads, n, d, rank, attention, weights, scale, temperature, causal, no_residual, depth,
        points, dtype, seed,
    )  # fmt: skip
    folder = output_folder(out)
    chosen = str(choose_device(device))
    table, words, theory = simulate_heads(configuration, device=device, progress=True)
    write_run(
        folder / "heads",
        asdict(configuration),
        chosen,
        table,
        {"theory": theory},
        words,
        plot=plot,
        log_rate=predicted_rate(theory),
    )
