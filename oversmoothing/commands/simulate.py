"""`simulate`: one run on a drawn case, its metrics beside the prediction, and the verdict."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

import pandas as pd

from oversmoothing.simulations.against_theory.simulate import (
    DTYPES,
    Configuration,
    Simulation,
    simulate,
)
from oversmoothing.simulations.engine.inputs import choose_device
from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.value_projection import BASES, VALUE_PROJECTION
from oversmoothing.theory.support.files import json_number, output_folder, to_json, write_atomically
from oversmoothing.theory.support.provenance import provenance

SCHEMA_VERSION = 1

_ATTENTION_OPTIONS = ("dim", "coupling", "blocks")
_VALUE_OPTIONS = ("eigenvalues", "scale", "rank", "eigenvalue", "size", "basis")
_PRINTED_ROWS = 9


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `simulate`."""
    add = parser.add_argument
    add("--attention", choices=list(ATTENTION), default="softmax", help="how A is drawn")
    add("--value", choices=list(VALUE_PROJECTION), default="ginibre", help="how H is drawn")
    add("--n", type=int, default=32, help="tokens (default %(default)s)")
    add("--d", type=int, help="features (default 16, or the number of eigenvalues)")
    add("--depth", type=int, default=1000, help="layers (default %(default)s)")
    add("--temperature", type=float, default=1.0, help="of the softmax; low is sharp")
    add("--dtype", choices=list(DTYPES), default="float64", help="precision of the iteration")
    add("--seed", type=int, default=0)
    add("--device", default="auto", help="auto, cpu or cuda (default %(default)s)")
    add("--points", type=int, default=60, help="log-spaced layers measured")
    add("--out", default="results", metavar="DIR", help="folder for simulate.csv and .json")
    attention = parser.add_argument_group("options of some attentions")
    attention.add_argument("--dim", type=int, help="width of queries and keys (default 16)")
    attention.add_argument("--coupling", type=float, help="nearly_reducible: in (0, 1]")
    attention.add_argument("--blocks", type=int, help="nearly_reducible: number of blocks")
    value = parser.add_argument_group("options of some values")
    value.add_argument(
        "--eigenvalues",
        type=_eigenvalues,
        metavar="LIST",
        help="spectrum: comma-separated, with conjugates: --eigenvalues=-0.5,0.1+1j,0.1-1j",
    )
    value.add_argument("--scale", type=float, help="goe, ginibre, low_rank: size of H")
    value.add_argument("--rank", type=int, help="low_rank: rank of the head")
    value.add_argument("--eigenvalue", type=float, help="defective: the one eigenvalue")
    value.add_argument("--size", type=int, help="defective: size of the Jordan block")
    value.add_argument("--basis", choices=BASES, help="spectrum, defective: basis of eigenvectors")


def run(arguments: Namespace) -> int:
    """Run `simulate`. Raises `InputError` for options that do not fit."""
    folder = output_folder(arguments.out)
    choose_device(arguments.device)
    d = arguments.d
    if d is None:
        d = 16 if arguments.eigenvalues is None else len(arguments.eigenvalues)
    configuration = Configuration(
        attention=arguments.attention,
        value=arguments.value,
        n=arguments.n,
        d=d,
        depth=arguments.depth,
        temperature=arguments.temperature,
        dtype=arguments.dtype,
        seed=arguments.seed,
        points=arguments.points,
        attention_options=_given(arguments, _ATTENTION_OPTIONS),
        value_options=_given(arguments, _VALUE_OPTIONS),
    )
    result = simulate(configuration, device=arguments.device, progress=True)
    csv = write_atomically(folder / "simulate.csv", result.table.to_csv(index=False))
    record = {
        "schema_version": SCHEMA_VERSION,
        "configuration": configuration.to_json_object(),
        "device": str(choose_device(arguments.device)),
        "verdict": result.verdict.to_json_object(),
        "largest_error_of_log_hfc_lfc": json_number(result.largest_error),
        "closed_form_note": result.closed_form_note,
        **provenance(),
    }
    json = write_atomically(folder / "simulate.json", to_json(record))
    print(summary(result))
    print(f"wrote {csv} and {json}")
    return 0


def summary(result: Simulation) -> str:
    """The run in a few lines: a short table, prediction against measurement, the verdict."""
    table = result.table
    step = max(1, math.ceil((len(table) - 1) / (_PRINTED_ROWS - 1)))
    rows = sorted({*range(0, len(table), step), len(table) - 1})
    short = pd.DataFrame(
        {
            "layer": table["depth"],
            "log10 HFC/LFC": table["log_hfc_lfc"] / math.log(10.0),
            "predicted": table["predicted_log_hfc_lfc"] / math.log(10.0),
            "cos mean": table["cos_mean"],
            "cos min": table["cos_min"],
            "eff. rank": table["effective_rank"],
        }
    ).iloc[rows]
    lines = [short.to_string(index=False, float_format=lambda x: f"{x:.6g}", na_rep="-"), ""]
    if result.closed_form_note is not None:
        lines.append(f"no closed form: {result.closed_form_note}")
    elif result.largest_error is not None:
        lines.append(
            f"largest |log HFC/LFC measured - predicted|: {result.largest_error:.2e} (natural log)"
        )
    lines.append(f"{result.verdict.verdict} ({result.verdict.status}): {result.verdict.reason}")
    return "\n".join(lines)


def _given(arguments: Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(arguments, name)) is not None}


def _eigenvalues(text: str) -> list[complex]:
    try:
        return [complex(part.replace(" ", "").replace("i", "j")) for part in text.split(",")]
    except ValueError as error:
        raise ArgumentTypeError(
            f"'{text}' must be comma-separated numbers like -0.5,0.1+1j,0.1-1j"
        ) from error
