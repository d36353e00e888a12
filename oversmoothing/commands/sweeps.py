"""Commands that run many cases at once: a sweep over a grid, and drawn graphs."""

from typing import Annotated

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.simulations.sweep.config import examples
from oversmoothing.simulations.sweep.runner import CHUNK
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError


def sweep(
    config: Annotated[
        str | None,
        Argument(metavar="FILE.toml", help="tables `fixed` and `axes` of values, and `measures`"),
    ] = None,
    example: Annotated[
        str | None, opt.one_of("example", examples(), "sweep that comes with the package instead")
    ] = None,
    out: opt.Out = opt.RESULTS,
    workers: Annotated[
        int | None, opt.whole("number of processes at the same time (default 1)", most=10**6)
    ] = None,
    cluster: Annotated[
        str | None,
        opt.one_of(
            "cluster", ("local",), "kind of Dask cluster that runs the workers on this machine"
        ),
    ] = None,
    scheduler: Annotated[
        str | None, Option(metavar="ADDRESS", help="running Dask cluster, e.g. tcp://host:8786")
    ] = None,
    chunk: Annotated[
        int, opt.whole("number of points a file; a kill loses those in work", most=10**9)
    ] = CHUNK,
    restart: Annotated[
        bool, Option("--restart", help="give up what the folder holds and start again")
    ] = False,
    csv: Annotated[bool, Option("--csv", help="write sweep.csv too")] = False,
    figure: Annotated[
        list[str] | None,
        Option(metavar="AXIS", help="draw a phase diagram over two axes; a third for panels"),
    ] = None,
    dry_run: opt.DryRun = False,
    as_json: opt.Json = False,
) -> int:
    """The outcome of every point of a grid of parameters, as a table.

    Writes sweep.parquet into sweeps/NAME of the folder of results. Exit status 1: every point
    failed.
    """
    from oversmoothing.simulations.sweep.config import named_config
    from oversmoothing.simulations.sweep.points import Points
    from oversmoothing.simulations.sweep.runner import Dask, chosen_backend, run_sweep
    from oversmoothing.simulations.sweep.store import read_table, summary
    from oversmoothing.theory.support.files import to_json, write_atomically

    name, chosen = named_config(config, example)
    if figure and len(figure) not in (2, 3):
        raise InputError("--figure takes two axes, X Y, and perhaps a third for the panels")
    folder, points = out / "sweeps" / name, len(Points(chosen))
    axes = " x ".join(f"{len(values)} {axis}" for axis, values in chosen.axes.items())
    if not as_json:
        print(f"{points:,} points: {axes or 'one case'}", flush=True)
    if dry_run:
        if as_json:
            print(to_json({"points": points, "folder": str(folder)}), end="")
        return 0
    backend = chosen_backend(workers, cluster is not None, scheduler)
    try:
        path = run_sweep(
            chosen, folder, backend=backend, chunk=chunk, restart=restart, progress=not as_json
        )
    finally:
        if isinstance(backend, Dask):
            backend.close()
    table = read_table(path).to_pandas()
    words, written = [summary(table)], [path]
    if csv:
        written.append(write_atomically(path.with_suffix(".csv"), table.to_csv(index=False)))
    if figure:
        from oversmoothing.simulations.sweep import phase_diagram as diagram

        cells = diagram.cells(table, *figure)
        written += diagram.write(cells, folder, "phase_diagram", chosen.title or "Phase diagram")
        words.append(diagram.caption(cells))
    if as_json:
        record = {"points": points, "words": words, "written": [str(path) for path in written]}
        print(to_json(record), end="")
    else:
        print("\n".join([words[0], *(f"wrote {path}" for path in written), *words[1:]]))
    return 1 if (table["status"] == "error").all() else 0


def graphs(
    draws: Annotated[int, opt.whole("number of graphs to draw", most=sizes.POINTS)] = 2000,
    attention: Annotated[
        str,
        opt.one_of("attention", ("walk", "gat"), "random walk of the graph or GAT on its features"),
    ] = "walk",
    classifier: Annotated[
        bool,
        Option("--classifier", help="train the node classifier with either sign of H (minutes)"),
    ] = False,
    steps: Annotated[int, opt.whole("number of steps of its training", most=sizes.POINTS)] = 600,
    seed: opt.Seed = 0,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Smoothing on graphs by homophily and h, and a node classifier either way.

    Writes graphs.csv, of GAT graphs_gat.csv; with --plot the phase picture. Exit status 1: a run
    that is no near tie is not as the spectrum predicts, or a classifier not above the majority.
    """
    from oversmoothing.experiments.graphs.classifier import FORM, fitted, score
    from oversmoothing.experiments.graphs.phase import phase
    from oversmoothing.theory.support.files import output_folder

    folder = output_folder(out)
    scores = [score(fitted(each, steps=steps, seed=seed), seed=seed) for each in FORM if classifier]
    result = phase(draws, seed, attention, [each.sentence() for each in scores])
    clear = result.table[result.table["clear"]]
    held = bool((clear["predicted"] == clear["observed"]).all())
    opt.finish(result, folder, as_json, plot)
    return int(not (held and all(each.gain()[1] > 0 for each in scores)))
