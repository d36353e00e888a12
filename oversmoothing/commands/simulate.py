"""`oversmoothing simulate`: one run on a drawn case, its metrics beside the prediction."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import BadParameter, Option

from oversmoothing.commands.options import (
    Depth,
    Device,
    Out,
    Points,
    Precision,
    Seed,
    Temperature,
    Tokens,
    one_of,
)
from oversmoothing.simulations.generators.attention import ATTENTION
from oversmoothing.simulations.generators.value_projection import BASES, VALUE_PROJECTION

SCHEMA_VERSION = 1


def _eigenvalues(text: str) -> list[complex]:
    try:
        return [complex(part.replace(" ", "").replace("i", "j")) for part in text.split(",")]
    except ValueError as error:
        raise BadParameter(
            f"'{text}' must be comma-separated numbers like -0.5,0.1+1j,0.1-1j"
        ) from error


def simulate(
    attention: Annotated[str, one_of(ATTENTION, "How A is drawn")] = "softmax",
    value: Annotated[str, one_of(VALUE_PROJECTION, "How H is drawn")] = "ginibre",
    n: Tokens = 32,
    d: Annotated[
        int | None, Option(metavar="D", help="Features (default 16, or the number of eigenvalues).")
    ] = None,
    depth: Depth = 1000,
    temperature: Temperature = 1.0,
    dtype: Precision = "float64",
    seed: Seed = 0,
    device: Device = "auto",
    points: Points = 60,
    out: Out = Path("results"),
    dim: Annotated[
        int | None, Option(metavar="K", help="Width of queries and keys (default 16).")
    ] = None,
    coupling: Annotated[
        float | None, Option(metavar="NUMBER", help="Of nearly_reducible: in (0, 1].")
    ] = None,
    blocks: Annotated[
        int | None, Option(metavar="N", help="Of nearly_reducible: number of blocks.")
    ] = None,
    eigenvalues: Annotated[
        Any,
        Option(
            parser=_eigenvalues,
            metavar="LIST",
            help="Of spectrum, with conjugates: --eigenvalues=-0.5,0.1+1j,0.1-1j",
        ),
    ] = None,
    scale: Annotated[
        float | None, Option(metavar="NUMBER", help="Of goe, ginibre, low_rank: size of H.")
    ] = None,
    rank: Annotated[int | None, Option(metavar="R", help="Of low_rank: rank of the head.")] = None,
    eigenvalue: Annotated[
        float | None, Option(metavar="NUMBER", help="Of defective: the one eigenvalue.")
    ] = None,
    size: Annotated[
        int | None, Option(metavar="N", help="Of defective: size of the Jordan block.")
    ] = None,
    basis: Annotated[
        str | None, one_of(BASES, "Of spectrum and defective: basis of eigenvectors")
    ] = None,
) -> None:
    """Run one drawn case to any depth and hold it against the closed form.

    Writes simulate.csv and simulate.json.
    """
    from oversmoothing.commands.tables import table_text
    from oversmoothing.simulations.against_theory import simulate as runs
    from oversmoothing.simulations.against_theory.summary import short_table, words
    from oversmoothing.simulations.engine.inputs import choose_device
    from oversmoothing.theory.support.files import (
        json_number,
        output_folder,
        to_json,
        write_atomically,
    )
    from oversmoothing.theory.support.provenance import provenance

    folder = output_folder(out)
    chosen = str(choose_device(device))
    of_value = {
        "eigenvalues": eigenvalues, "scale": scale, "rank": rank, "eigenvalue": eigenvalue,
        "size": size, "basis": basis,
    }  # fmt: skip
    configuration = runs.Configuration(
        attention=attention,
        value=value,
        n=n,
        d=d if d is not None else 16 if eigenvalues is None else len(eigenvalues),
        depth=depth,
        temperature=temperature,
        dtype=dtype,
        seed=seed,
        points=points,
        attention_options=_given(dim=dim, coupling=coupling, blocks=blocks),
        value_options=_given(**of_value),
    )
    result = runs.simulate(configuration, device=device, progress=True)
    csv = write_atomically(folder / "simulate.csv", result.table.to_csv(index=False))
    record = {
        "schema_version": SCHEMA_VERSION,
        "configuration": configuration.to_json_object(),
        "device": chosen,
        "verdict": result.verdict.to_json_object(),
        "largest_error_of_log_hfc_lfc": json_number(result.largest_error),
        "closed_form_note": result.closed_form_note,
        **provenance(),
    }
    json = write_atomically(folder / "simulate.json", to_json(record))
    print(f"{table_text(short_table(result.table), '{:.6g}'.format)}\n\n{words(result)}")
    print(f"wrote {csv} and {json}")


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
