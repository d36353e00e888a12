"""`oversmoothing exponents`: gamma_Q - gamma_C of changing layers against measured slopes (T7a)."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes

if TYPE_CHECKING:
    from oversmoothing.simulations.against_theory.exponents import ExponentRun

_ENSEMBLES = ("iid", "switching", "causal", "following")


def exponents(
    ensemble: Annotated[
        list[str] | None, opt.one_of(_ENSEMBLES, "Which layers (several; default all)")
    ] = None,
    model: Annotated[str | None, Option(metavar="MODEL", hidden=True)] = None,
    images: Annotated[str | None, Option(hidden=True)] = None,
    text: Annotated[Path | None, Option(hidden=True)] = None,
    heads: Annotated[int, Option(metavar="N", min=1, max=sizes.SIZE, help="Heads.")] = 2,
    n: opt.Tokens = 6,
    d: opt.Features = 4,
    scale: Annotated[
        float,
        Option(metavar="NUMBER", min=0, max=sizes.REAL, help="Size of sum_h W_h, or its factor."),
    ] = 0.5,
    layers: Annotated[
        int, Option(metavar="L", min=200, max=10**7, help="Layers, a multiple of 200.")
    ] = 20_000,
    data_dir: Annotated[Path | None, Option(hidden=True)] = None,
    seed: opt.Seed = 0,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Rates of changing layers: Lyapunov exponents against measured slopes.

    Writes exponents.csv. Exit status 1: a slope is 1e-3 or more from what is predicted.
    """
    import numpy as np

    from oversmoothing.simulations.against_theory import exponents as runs
    from oversmoothing.theory.support.files import output_folder

    if model is not None:  # as the release before had it
        return exponents_of(model, images, text, scale, layers, data_dir, seed, out)
    output_folder(out)
    X0 = np.random.default_rng([seed, 5]).standard_normal((n, d))
    made = []
    for name in ensemble or _ENSEMBLES:
        rules = runs.ensemble(name, n, d, heads, scale, seed)
        made.append(runs.exponent_run(name, *rules, X0, layers))
    return _written(made, out)


def exponents_of(
    model: opt.Model,
    images: opt.Images = None,
    text: opt.Text = None,
    scale: Annotated[
        float, Option(metavar="NUMBER", min=0, max=sizes.REAL, help="Factor of sum_h W_h.")
    ] = 0.5,
    layers: Annotated[
        int, Option(metavar="L", min=200, max=10**7, help="Layers, a multiple of 200.")
    ] = 20_000,
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Rates of a trained model's layers, repeated: Lyapunov exponents against measured slopes.

    The layers are operators on one input. Writes exponents.csv. Exit status 1: a slope is 1e-3 or
    more from what is predicted.
    """
    from oversmoothing.experiments.cycled.cycled_layers import cycled_layers
    from oversmoothing.experiments.models.named import named_inputs, named_model
    from oversmoothing.simulations.against_theory.exponents import exponent_run
    from oversmoothing.theory.support.files import output_folder

    output_folder(out)
    chosen = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
    inputs = named_inputs(chosen, images=images, text=text, count=1, data_dir=data_dir, quiet=True)
    attention, weights, X0 = cycled_layers(chosen, inputs, scale)
    run = exponent_run(f"{chosen.name}, repeated", attention, weights, X0, layers)
    return _written([run], out)


def _written(made: "list[ExponentRun]", out: Path) -> int:
    from dataclasses import asdict

    import pandas as pd

    from oversmoothing.commands.tables import table_text
    from oversmoothing.simulations.against_theory.exponents import AGREES, words
    from oversmoothing.theory.support.files import write_atomically

    table = pd.DataFrame([asdict(run) | {"off": run.off} for run in made])
    shown = table[
        ["name", "n", "d", "heads", "gamma_consensus", "gamma_quotient", "gap_error", "predicted",
         "measured", "hfc", "off", "seconds"]
    ]  # fmt: skip
    print(table_text(shown, "{:.5f}".format))
    print(words(made))
    path = write_atomically(out / "exponents.csv", table.to_csv(index=False))
    print(f"wrote {path}")
    return 0 if all(run.off < AGREES for run in made) else 1
