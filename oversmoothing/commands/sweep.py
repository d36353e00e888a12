"""`oversmoothing sweep`: a grid of parameters, its outcomes as one Parquet table."""

from typing import Annotated, Literal

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.simulations.sweep.config import examples
from oversmoothing.simulations.sweep.runner import CHUNK
from oversmoothing.theory.support.errors import InputError


def sweep(
    config: Annotated[
        str | None,
        Argument(metavar="CONFIG.toml", help="Tables fixed and axes of values, and measures."),
    ] = None,
    example: Annotated[
        str | None, opt.one_of(examples(), "One that comes with the package instead")
    ] = None,
    out: opt.Out = opt.RESULTS,
    workers: Annotated[
        int | None, Option(metavar="N", help="Worker processes (default 1: this process).")
    ] = None,
    cluster: Annotated[
        Literal["local"] | None, Option(help="Let a Dask cluster on this machine run the workers.")
    ] = None,
    scheduler: Annotated[
        str | None, Option(metavar="ADDRESS", help="A running Dask cluster, e.g. tcp://host:8786.")
    ] = None,
    chunk: Annotated[
        int, Option(metavar="N", help="Points a file; a kill loses the ones in work.")
    ] = CHUNK,
    restart: Annotated[
        bool, Option("--restart", help="Give up what the folder holds and start again.")
    ] = False,
    csv: Annotated[bool, Option("--csv", help="Write sweep.csv too.")] = False,
    figure: Annotated[
        list[str] | None,
        Option(metavar="AXIS", help="Draw a phase diagram over two axes; a third for panels."),
    ] = None,
) -> int:
    """The outcome of every point of a grid of parameters, as a table.

    Writes sweep.parquet into sweeps/NAME of the folder of results. Exit status 1: every point
    failed.
    """
    from oversmoothing.simulations.sweep.config import named_config
    from oversmoothing.simulations.sweep.points import Points
    from oversmoothing.simulations.sweep.runner import Dask, chosen_backend, run_sweep
    from oversmoothing.simulations.sweep.store import read_table, summary
    from oversmoothing.theory.support.files import write_atomically

    name, chosen = named_config(config, example)
    if figure and len(figure) not in (2, 3):
        raise InputError("--figure takes two axes, X Y, and perhaps a third for the panels")
    folder = out / "sweeps" / name
    backend = chosen_backend(workers, cluster is not None, scheduler)
    axes = " x ".join(f"{len(values)} {axis}" for axis, values in chosen.axes.items())
    print(f"{len(Points(chosen)):,} points: {axes or 'one case'}", flush=True)
    try:
        path = run_sweep(
            chosen, folder, backend=backend, chunk=chunk, restart=restart, progress=True
        )
    finally:
        if isinstance(backend, Dask):
            backend.close()
    table = read_table(path).to_pandas()
    print(f"{summary(table)}\nwrote {path}")
    if csv:
        print(f"wrote {write_atomically(path.with_suffix('.csv'), table.to_csv(index=False))}")
    if figure:
        from oversmoothing.simulations.sweep import phase_diagram as diagram

        found = diagram.cells(table, *figure)
        for file in diagram.write(found, folder, "phase_diagram", chosen.title or "Phase diagram"):
            print(f"wrote {file}")
        print(diagram.caption(found))
    return 1 if (table["status"] == "error").all() else 0
