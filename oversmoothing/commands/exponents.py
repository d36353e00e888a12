"""`oversmoothing exponents`: gamma_Q - gamma_C of changing layers against measured slopes (T7a)."""

from typing import Annotated

from typer import Option

from oversmoothing.commands import options as opt
from oversmoothing.theory.support import sizes

_ENSEMBLES = ("iid", "switching", "causal", "following")


def exponents(
    ensemble: Annotated[
        list[str] | None, opt.one_of(_ENSEMBLES, "Which layers (several; default all)")
    ] = None,
    model: Annotated[
        str | None,
        Option(
            metavar="MODEL",
            help="Instead: the layers of this trained model, as operators on one input, repeated.",
        ),
    ] = None,
    images: opt.Images = None,
    text: opt.Text = None,
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
    data_dir: opt.DataDir = None,
    seed: opt.Seed = 0,
    out: opt.Out = opt.RESULTS,
) -> int:
    """Rates of changing layers: Lyapunov exponents against measured slopes.

    Writes exponents.csv. Exit status 1: a slope is 1e-3 or more from what is predicted.
    """
    from dataclasses import asdict

    import numpy as np
    import pandas as pd

    from oversmoothing.commands.tables import table_text
    from oversmoothing.simulations.against_theory import exponent_runs as runs
    from oversmoothing.theory.support.files import output_folder, write_atomically

    folder = output_folder(out)
    found = []
    if model is not None:
        from oversmoothing.experiments.models.named import named_inputs, named_model
        from oversmoothing.experiments.repeated.blocks import cycled_layers

        chosen = named_model(model, out, seed=seed, device="cpu", data_dir=data_dir)
        inputs = named_inputs(
            chosen, images=images, text=text, count=1, data_dir=data_dir, quiet=True
        )
        attention, weights, X0 = cycled_layers(chosen, inputs, scale)
        found.append(runs.exponent_run(f"{chosen.name}, repeated", attention, weights, X0, layers))
    else:
        X0 = np.random.default_rng([seed, 5]).standard_normal((n, d))
        for name in ensemble or _ENSEMBLES:
            rules = runs.ensemble(name, n, d, heads, scale, seed)
            found.append(runs.exponent_run(name, *rules, X0, layers))
    table = pd.DataFrame([asdict(run) | {"off": run.off} for run in found])
    shown = table[
        ["name", "n", "d", "heads", "gamma_consensus", "gamma_quotient", "gap_error", "predicted",
         "measured", "hfc", "off", "seconds"]
    ]  # fmt: skip
    print(table_text(shown, "{:.5f}".format))
    print(runs.words(found))
    path = write_atomically(folder / "exponents.csv", table.to_csv(index=False))
    print(f"wrote {path}")
    return 0 if all(run.off < runs.AGREES for run in found) else 1
