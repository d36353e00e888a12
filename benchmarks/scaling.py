"""How time and memory grow with the sizes: the figure `scaling` as rows."""

from benchmarks.benchmark import Row, measurement
from oversmoothing.paper_figures.costs.growth import measure


@measurement("scaling", "exponents of time and memory in n, d, L and points", pinned=False)
def exponents() -> list[Row]:
    """The exponents as rows that only compare: ratio is the exponent, not a quotient of times."""
    found = []
    for (series, variable, quantity), part in measure().groupby(
        ["series", "variable", "quantity"], sort=False
    ):
        first, pairs = part.iloc[0], list(zip(part["size"], part["value"], strict=True))
        note = f"+- {first['exponent_error']:.2f}, in theory {first['expected']:g} for large "
        note += str(variable)
        seconds = {}
        if quantity == "seconds":
            seconds = {f"{variable} = {size}": float(value) for size, value in pairs}
        else:
            note += "; " + ", ".join(f"{value:.1f} MiB at {size}" for size, value in pairs)
        name = f"exponent of {quantity} in {variable}: {series}"
        found.append(Row(name, float(first["exponent"]), seconds, note))
    return found
