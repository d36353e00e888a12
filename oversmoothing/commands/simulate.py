"""`oversmoothing simulate`: one run on a drawn case, its metrics beside the prediction."""

import inspect
from typing import Annotated, Any

from pydantic.fields import FieldInfo
from typer import BadParameter, Option

from oversmoothing.commands import options as opt
from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.options import requirement, scalar_type
from oversmoothing.simulations.generators.value_projection import VALUE_PROJECTION
from oversmoothing.theory.support import sizes

_OF_EVERY_A = ("kind", "temperature")


def simulate(
    attention: Annotated[str, opt.one_of(ATTENTION, "How A is drawn")] = "softmax",
    value: Annotated[str, opt.one_of(VALUE_PROJECTION, "How H is drawn")] = "ginibre",
    n: opt.Tokens = 32,
    d: Annotated[
        int | None,
        Option(
            metavar="D",
            min=1,
            max=sizes.SIZE,
            help="Features (default 16, or the number of eigenvalues).",
        ),
    ] = None,
    depth: opt.Depth = 1000,
    temperature: opt.Temperature = 1.0,
    dtype: opt.Precision = "float64",
    seed: opt.Seed = 0,
    device: opt.Device = "auto",
    points: opt.Points = 60,
    plot: opt.Plot = False,
    out: opt.Out = opt.RESULTS,
    **options: Any,
) -> None:
    """Run one drawn case to any depth and hold it against the closed form.

    Writes simulate.csv and simulate.json; with --plot the picture beside them.
    """
    from oversmoothing.commands.tables import write_run
    from oversmoothing.simulations.against_theory import simulate as runs
    from oversmoothing.simulations.engine.problem import choose_device
    from oversmoothing.theory.support.files import output_folder

    folder = output_folder(out)
    chosen = str(choose_device(device))
    given = {name: value for name, value in options.items() if value is not None}
    of_A = {name: given.pop(name) for name in list(given) if name in _declared(ATTENTION)}
    configuration = runs.Configuration(
        attention=attention,
        value=value,
        n=n,
        d=len(given.get("eigenvalues", range(16))) if d is None else d,
        depth=depth,
        temperature=temperature,
        dtype=dtype,
        seed=seed,
        points=points,
        attention_options=of_A,
        value_options=given,
    )
    table, words, theory = runs.simulate(configuration, device=device, progress=True)
    write_run(
        folder / "simulate",
        configuration.to_json_object(),
        chosen,
        table,
        theory,
        words,
        plot=plot,
        log_rate=table["log_rate"].iloc[0],
    )


# ----------------------------------------------------------------- what the generators declare


def _declared(kinds: dict[str, Any]) -> dict[str, tuple[FieldInfo, list[str]]]:
    """The options of the generators by name, with the kinds that have them."""
    found: dict[str, tuple[FieldInfo, list[str]]] = {}
    for kind, model in kinds.items():
        for name, field in model.model_fields.items():
            if name not in _OF_EVERY_A:
                found.setdefault(name, (field, []))[1].append(kind)
    return found


def _option(name: str, field: FieldInfo, kinds: list[str]) -> inspect.Parameter:
    words = f"Of {', '.join(kinds)}: {field.description}, {requirement(field)}."
    kind: Any = scalar_type(field)
    parser = None
    if kind not in (int, float, str):
        kind, parser = Any, _numbers
    wanted = Annotated[kind | None, Option(help=words, metavar="VALUE", parser=parser)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=None, annotation=wanted)


def _numbers(text: str) -> list[complex]:
    try:
        return [complex(part.replace(" ", "").replace("i", "j")) for part in text.split(",")]
    except ValueError as error:
        raise BadParameter(
            f"'{text}' must be comma-separated numbers like -0.5,0.1+1j,0.1-1j"
        ) from error


_own = inspect.signature(simulate, eval_str=True)
_every = {**_declared(ATTENTION), **_declared(VALUE_PROJECTION)}
simulate.__signature__ = _own.replace(  # type: ignore[attr-defined]
    parameters=[
        *(one for name, one in _own.parameters.items() if name != "options"),
        *(_option(name, *declared) for name, declared in _every.items()),
    ]
)
