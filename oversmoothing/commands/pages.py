"""Commands that write pages and pictures: figures, the explorer, the main job, remedies."""

import contextlib
import re
import sys
from typing import Annotated, Any

from typer import Argument, Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support.errors import InputError, unknown
from oversmoothing.theory.support.files import output_folder, read_text, to_json, write_atomically

# Of `simulations.drawing.picture`, which imports matplotlib.
KINDS = ("pdf", "png", "svg")
PAGES = ("one-column", "two-column")


def figures(
    only: Annotated[list[str] | None, Argument(metavar="NAME",
        help="figures to draw, or 'all'; metrics_by_layer and table_1 first train small models, "
             "about 2 minutes of CPU time, unless the folder of results holds them")] = None,
    format: Annotated[list[str] | None, opt.one_of("format", KINDS,
        "formats of the pictures (default pdf png)")] = None,
    width: Annotated[str, opt.one_of("page", PAGES, "page they must fit")] = "two-column",
    names: opt.Listed = False,
    as_json: opt.Json = False,
    out: opt.Out = opt.RESULTS,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
) -> None:  # fmt: skip
    """Draw the figures and tables, each with its data; say what a paper reports beside ours."""
    from oversmoothing.paper_figures import FIGURES, RENAMED, TRAIN, figure, title

    wanted: list[str] = []
    todo = f"'oversmoothing figures --list' shows all {len(FIGURES)}"
    if not only and not names:
        raise InputError(f"name a figure to draw, or all.\n{todo}.")
    for name in FIGURES if not only or only == ["all"] else only:
        new = name
        if name in RENAMED:
            new, where = RENAMED[name]
            now = f"is now '{new}'" if new else "is gone"
            print(f"figure '{name}' {now}: {where}", file=sys.stderr)
        elif name not in FIGURES:
            raise unknown("figure", name, FIGURES, f"{todo}.")
        if new and new not in wanted:
            wanted.append(new)
    if names:
        opt.alone("--list", "NAME", "--json")
        trains = " (trains small models first, about 2 minutes of CPU time)"
        opt.listed({name: title(name) + trains * (name in TRAIN) for name in wanted}, as_json)
        return
    from oversmoothing.paper_figures.figure_base import Context

    context = Context.checked(out, seed, device)
    told: dict[str, dict[str, Any]] = {"figures": {}, "counts": {}, "compared": {}}
    for k, name in enumerate(wanted, 1):
        print(f"drawing {name} ({k} of {len(wanted)})", file=sys.stderr, flush=True)
        paths = figure(name).make(context, out / "figures", format or KINDS[:2], width)
        caption = next(path for path in paths if path.suffix == ".txt").read_text("utf-8")
        # Behind a caption of one line or more.
        _, *rest = re.split(r"\n(?=\d+ comparisons? with the paper: )", caption)
        said, written = "".join(rest).splitlines(), [str(path) for path in paths]
        told["figures"][name], told["counts"][name] = written, "".join(said[:1])
        told["compared"][name] = said[1:]
        if not as_json:
            print("\n".join([*said, *written]))
    if as_json:
        print(to_json(told), end="")


def explorer(as_json: opt.Json = False, out: opt.Out = opt.RESULTS) -> None:
    """Write a page on which you drag eigenvalues of H and see what smooths.

    You can change attention, mask, heads and depth too, and see the verdict, the discs, the tokens
    and three metrics. The page is one file that needs no network and computes in the browser.
    """
    from oversmoothing.paper_figures.explorer.explorer_page import write_explorer

    path = str(write_explorer(output_folder(out)))
    opt.shown(as_json, {"written": path}, f"wrote {path}")


def reproduce(
    out: opt.Out = opt.RESULTS,
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    full: Annotated[bool, Option("--full",
        help="train every model of the study first (hours, resumable)")] = False,
    workers: opt.Workers = 2,
    fresh: Annotated[bool, Option("--fresh",
        help="compute and draw everything again, nothing from the cache")] = False,
    as_json: opt.Json = False,
) -> int:  # fmt: skip
    """Train, simulate, check and draw everything, and write the page of results.

    Without --full it runs a reduced preset, and the page says so. Results whose code and data are
    those of the run before are taken over and marked "from cache" (never in CI). --json prints
    checks.json. Exit status 1: a check failed.
    """
    from oversmoothing.paper_figures import reproduce as main_job
    from oversmoothing.paper_figures.figure_base import Context

    context = Context.checked(out, seed, device)
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        status = main_job.reproduce(context, full=full, workers=workers, fresh=fresh)
    if as_json:
        print(read_text(out / "checks.json"), end="")
    return status


def remedies(
    only: Annotated[list[str] | None, Argument(metavar="NAME",
        help="remedies to compare (default: all)")] = None,
    names: opt.Listed = False,
    draws: opt.Draws = 100,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    out: opt.OutFile = None,
    report: opt.Report = None,
) -> int:  # fmt: skip
    """Say what each remedy against oversmoothing does to the spectrum, and what it costs.

    --draws counts random layers. --out writes all columns as CSV. Exit status 1: a predicted radius
    differs from the measured one.
    """
    from oversmoothing.experiments.remedies.shift import MOST, REMEDIES, remedy_shifts

    todo = f"'oversmoothing remedies --list' shows all {len(REMEDIES)}."
    opt.checked("remedy", REMEDIES, todo)(only or [])
    if names:
        opt.alone("--list", "NAME", "--json", "--out", "--report")
        known: dict[str, Any] = REMEDIES
        rows = {name: "; our reading: ".join(filter(None, (each.paper, each.reading)))
                for name, each in known.items()}  # fmt: skip
        opt.listed(rows, as_json, out or report, width=22)
        return 0
    path = opt.file_in(out, report, "remedies.csv")
    opt.show_progress()
    result = remedy_shifts(only, draws=draws, seed=seed)
    if path is not None:
        write_atomically(path, result.table.to_csv(index=False))
    if as_json:
        print(to_json(result.tables["remedies"].to_json_object()), end="")
    else:
        print(opt.wrapped(result.text(opt.table_text)))
        if path is not None:
            print(f"wrote {path}")
    return int(not (result.table["error"] < MOST).all())
