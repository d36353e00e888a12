"""Commands that draw layers and run them: `simulate` in its four forms, `sweep`, `graphs`."""

import math
from inspect import Parameter, signature
from typing import Annotated, Any

from pydantic.fields import FieldInfo
from typer import Argument, BadParameter, Exit, Option

from oversmoothing.commands import options as opt
from oversmoothing.simulations.generators.attention import ATTENTION, MIXINGS
from oversmoothing.simulations.generators.options import requirement, scalar_type
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION
from oversmoothing.simulations.sweep.config import examples
from oversmoothing.simulations.sweep.runner import CHUNK
from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import output_folder, write_atomically

_ENSEMBLES = ("iid", "switching", "causal", "following")


def _options_of_a_kind(asked: bool) -> None:
    if asked:
        for which in dict.fromkeys(tuple(kinds) for _, kinds in _EVERY.values()):
            print(f"{', '.join(which)}:")
            for name, (field, kinds) in _EVERY.items():
                if tuple(kinds) == which:
                    said = f"{field.description}, {requirement(field)}"
                    print(f"  --{name.replace('_', '-'):12s} {said}")
        raise Exit


def simulate(
    attention: Annotated[str, opt.one_of("attention", ATTENTION, "kind of A")] = "softmax",
    value: Annotated[str, opt.one_of("value", VALUE_PROJECTION, "kind of H")] = "ginibre",
    help_options: Annotated[bool, Option("--help-options", callback=_options_of_a_kind,
        is_eager=True, help="list the options that belong to a kind of A or H, and stop")] = False,
    n: opt.Tokens = 32,
    d: Annotated[int | None, opt.whole(
        "number of features (default 16, or the number of eigenvalues)", most=sizes.SIZE,
        metavar="D")] = None,
    depth: opt.Depth = 1000,
    temperature: opt.Temperature = 1.0,
    dtype: opt.Precision = "float64",
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    points: opt.Points = 60,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
    **options: Any,
) -> None:  # fmt: skip
    """Run one random layer to great depth and compare it with the closed form.

    Writes simulate.json, tables and a page; with --plot the picture beside them.
    """
    from oversmoothing.simulations.against_theory import simulate as runs

    folder = output_folder(out)
    given = {name: value for name, value in options.items() if value is not None}
    of_A = {name: given.pop(name) for name in list(given) if name in _declared(ATTENTION)}
    usual = len(given.get("eigenvalues", range(16)))
    configuration = runs.Configuration(
        attention, value, n, usual if d is None else d, depth, temperature, dtype, seed, points,
        attention_options=of_A, value_options=given,
    )  # fmt: skip
    result = runs.simulate(configuration, device=device, progress=not as_json)
    opt.finish(result, folder, as_json, plot)


def heads(
    heads: opt.Heads = 4,
    n: opt.Tokens = 16,
    d: opt.Features = 16,
    rank: Annotated[int | None, opt.whole(
        "rank of a head's W_V W_O (default d / heads, at least 1)", most=sizes.SIZE,
        metavar="R")] = None,
    attention: Annotated[str, opt.one_of("attention", ("fixed", "drawn", "state"),
        "attention of a layer: the same in all, random in each, or computed from X")] = "fixed",
    weights: Annotated[str, opt.one_of("kind of weights", ("fixed", "drawn"),
        "weights of a layer: the same in all, or random in each")] = "fixed",
    scale: opt.Scale = 1.0,
    temperature: opt.Temperature = 1.0,
    causal: opt.Causal = False,
    no_residual: Annotated[bool, Option("--no-residual",
        help="leave X out: X' = sum_h A_h X W_h")] = False,
    depth: opt.Depth = 1000,
    points: opt.Points = 60,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    dtype: opt.Precision = "float64",
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Run many heads and changing layers, and compare them with the theory.

    Writes heads.json, tables and a page; with --plot the picture beside them.
    """
    from oversmoothing.simulations.against_theory import simulate as runs

    configuration = runs.HeadsConfiguration(
        heads, n, d, rank, attention, weights, scale, temperature, causal, no_residual, depth,
        points, dtype, seed,
    )  # fmt: skip
    folder = output_folder(out)
    result = runs.simulate_heads(configuration, device=device, progress=not as_json)
    opt.finish(result, folder, as_json, plot)


def streams(
    agree: opt.Agree = 1e-6,
    mixing: Annotated[str, opt.one_of("mixing", MIXINGS, "kind of R")] = "doubly-stochastic",
    streams: Annotated[int, opt.whole("number of residual streams", most=16, metavar="S")] = 4,
    changing: Annotated[bool, Option("--changing",
        help="draw a new R in every layer")] = False,
    n: opt.Tokens = 16,
    d: opt.Features = 8,
    scale: opt.Scale = 1.0,
    temperature: opt.Temperature = 1.0,
    mixing_temperature: Annotated[float, opt.positive("temperature of the softmax that R is",
        "T")] = 1.0,
    causal: opt.Causal = False,
    any_p: Annotated[bool, Option("--any-p",
        help="draw p, what each stream takes of the branch; else 1")] = False,
    any_q: Annotated[bool, Option("--any-q",
        help="draw q, what the branch takes of each stream; else 1/s")] = False,
    depth: opt.Depth = 1000,
    points: opt.Points = 60,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    out: opt.Out = opt.RESULTS,
) -> None:  # fmt: skip
    """Run several mixed residual streams: do tokens smooth, and do the streams become one?

    A case of your own is decided by `oversmoothing verdict CASE`, with "R" in it. Writes
    streams.json, tables and a page; with --plot the picture beside them.
    """
    from oversmoothing.simulations.against_theory import simulate as runs

    configuration = runs.StreamsConfiguration(
        mixing, streams, changing, n, d, scale, temperature, mixing_temperature, causal, any_p,
        any_q, depth, points, agree, seed,
    )  # fmt: skip
    folder = output_folder(out)
    result = runs.simulate_streams(configuration, device=device, progress=not as_json)
    opt.finish(result, folder, as_json, plot)


def exponents(
    ensemble: Annotated[list[str] | None, opt.one_of("ensemble", _ENSEMBLES,
        "kinds of layers (default all)")] = None,
    heads: opt.Heads = 2,
    n: opt.Tokens = 6,
    d: opt.Features = 4,
    scale: opt.Scale = 0.5,
    depth: opt.Depth = 2_000,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> int:  # fmt: skip
    """Rates of changing layers: Lyapunov exponents against measured slopes.

    --depth is a multiple of 200. Writes exponents.csv and exponents.json. Exit status 1: a slope is
    off by more than its error.
    """
    import numpy as np

    from oversmoothing.simulations.against_theory import exponents as runs

    folder = output_folder(out)
    X0 = np.random.default_rng([seed, 5]).standard_normal((n, d))
    made = []
    for name in ensemble or _ENSEMBLES:
        rules = runs.ensemble(name, n, d, heads, scale, seed)
        made.append(runs.exponent_run(name, *rules, X0, depth))
    asked = {"ensembles": list(ensemble or _ENSEMBLES), "n": n, "d": d, "heads": heads}
    asked |= {"depth": depth, "scale": scale, "seed": seed}
    opt.finish(runs.exponents(made, asked), folder, as_json)
    return 0 if all(run.agrees for run in made) else 1


# ----------------------------------------------------------------- what the generators declare


def _declared(kinds: dict[str, Any]) -> dict[str, tuple[FieldInfo, list[str]]]:
    """The options of the generators by name, with the kinds that have them."""
    declared: dict[str, tuple[FieldInfo, list[str]]] = {}
    for kind, model in kinds.items():
        for name, field in model.model_fields.items():
            if name != "temperature":
                declared.setdefault(name, (field, []))[1].append(kind)
    return declared


_EVERY = {**_declared(ATTENTION), **_declared(VALUE_PROJECTION)}


def _option(name: str, field: FieldInfo) -> Parameter:
    """Its range is said where the generator is made."""
    kind: Any = scalar_type(field)
    help, most = str(field.description), 10**40
    option = {
        int: opt.whole(help, -most, most), float: opt.real(help, "X", -math.inf, math.inf),
        str: Option(help=help),
    }.get(kind) or Option(help=help, parser=_numbers)  # fmt: skip
    option.hidden = True
    known: Any = kind if kind in (int, float, str) else Any
    wanted = Annotated[known | None, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=wanted)


def _numbers(text: str) -> list[complex]:
    try:
        return [complex(part.replace(" ", "").replace("i", "j")) for part in text.split(",")]
    except ValueError as error:
        raise BadParameter("must be comma-separated numbers like -0.5,0.1+1j,0.1-1j") from error


_own = signature(simulate, eval_str=True)
simulate.__signature__ = _own.replace(  # type: ignore[attr-defined]
    parameters=[
        *(one for name, one in _own.parameters.items() if name != "options"),
        *(_option(name, field) for name, (field, _) in _EVERY.items()),
    ]
)


# ------------------------------------------------------------------------------- sweeps and graphs


def sweep(
    config: Annotated[str | None, Argument(metavar="FILE.toml",
        help="tables `fixed` and `axes` of values, and `measures`; a name that is none of theirs "
        "is answered with the list of all")] = None,
    example: Annotated[str | None, opt.one_of("example", examples(),
        "sweep that comes with the package instead")] = None,
    out: opt.Out = opt.RESULTS,
    workers: Annotated[int | None, opt.whole("number of processes at the same time (default 1)",
        most=10 ** 6)] = None,
    cluster: Annotated[str | None, opt.one_of("cluster", ("local",),
        "kind of Dask cluster that runs the workers on this machine")] = None,
    scheduler: Annotated[str | None, Option(metavar="ADDRESS",
        help="running Dask cluster, e.g. tcp://host:8786")] = None,
    chunk: Annotated[int, opt.whole("points per file; after a kill, unfinished files start again",
        most=10 ** 9)] = CHUNK,
    restart: Annotated[bool, Option("--restart",
        help="give up what the folder holds and start again")] = False,
    csv: Annotated[bool, Option("--csv", help="write sweep.csv too")] = False,
    figure: Annotated[list[str] | None, Option(metavar="X Y",
        help="draw a phase diagram over two axes; a third for panels")] = None,
    dry_run: opt.DryRun = False,
    as_json: opt.Json = False,
) -> int:  # fmt: skip
    """Compute the outcome of every point of a grid of parameters, as a table.

    Writes sweep.parquet into sweeps/NAME of the folder of results. Exit status 1: every point
    failed.
    """
    from oversmoothing.simulations.sweep.config import PARAMETERS, named_config
    from oversmoothing.simulations.sweep.points import Points
    from oversmoothing.simulations.sweep.runner import Dask, chosen_backend, run_sweep
    from oversmoothing.simulations.sweep.store import read_table, summary

    name, chosen = named_config(config, example)
    wanted = figure or []
    if len({*wanted} & PARAMETERS.keys()) != len(wanted) or len(wanted) not in (0, 2, 3):
        known = ", ".join(chosen.axes or PARAMETERS)
        raise InputError(f"--figure takes two axes or three, X Y PANEL, different ones, of {known}")
    folder, points = out / "sweeps" / name, len(Points(chosen))
    axes = " x ".join(f"{len(values)} {axis}" for axis, values in chosen.axes.items())
    counted = f"{points:,} points: {axes}" if axes else "1 point: no axes, one case"
    if dry_run:
        opt.shown(as_json, {"points": points, "folder": str(folder)}, counted)
        return 0
    output_folder(folder)
    backend = chosen_backend(workers, cluster is not None, scheduler)
    if not as_json:
        print(counted, flush=True)
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
    record = {"points": points, "words": words, "written": [str(path) for path in written]}
    said = [words[0], *(f"wrote {path}" for path in written), *words[1:]]
    opt.shown(as_json, record, "\n".join(said))
    return 1 if (table["status"] == "error").all() else 0


def graphs(
    draws: Annotated[int, opt.whole("number of graphs to draw", most=sizes.POINTS)] = 2000,
    attention: Annotated[str, opt.one_of("attention", ("walk", "gat"),
        "random walk of the graph or GAT on its features")] = "walk",
    classifier: Annotated[bool, Option("--classifier",
        help="train the node classifier with either sign of H (minutes)")] = False,
    steps: Annotated[int, opt.whole("number of steps of its training", most=sizes.POINTS)] = 600,
    seed: opt.Seed = 0,
    plot: opt.Plot = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
) -> int:  # fmt: skip
    """Say whether nodes of random graphs become alike, by homophily and h.

    Homophily is the share of edges between nodes of one class. Writes graphs.csv (for GAT
    graphs_gat.csv); with --plot the phase picture. Exit status 1: a run differs from what the
    spectrum predicts though it is no near tie, or a classifier is no better than the majority.
    """
    from oversmoothing.experiments.graphs.classifier import FORM, fitted, score
    from oversmoothing.experiments.graphs.phase import phase

    opt.show_progress()
    opt.needs(classifier, "--classifier", "--steps")
    folder = output_folder(out)
    scores = [score(fitted(each, steps=steps, seed=seed), seed=seed) for each in FORM if classifier]
    result = phase(draws, seed, attention, [each.sentence() for each in scores])
    clear = result.table[result.table["clear"]]
    held = bool((clear["predicted"] == clear["observed"]).all())
    opt.finish(result, folder, as_json, plot)
    return int(not (held and all(each.gain()[1] > 0 for each in scores)))
