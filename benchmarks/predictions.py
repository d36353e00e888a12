"""What the theory predicts against what is measured: rates, depths, thresholds of steering."""

from benchmarks.benchmark import Row, measurement
from oversmoothing.experiments.power_method.steering import steer as thresholds
from oversmoothing.theory.depth.rates import SLOPE_TOLERANCE, rate_rows

# Of the thresholds, that must be right.
REQUIRED = 0.95


@measurement("rates", "rates and depths, measured over predicted (T4c, T5)")
def rates() -> list[Row]:
    rows = []
    for each in rate_rows():
        name = f"rates/{each.case}: {each.quantity}"
        note = f"predicted {each.predicted:.6g}, measured {each.measured:.6g}"
        if each.kind == "bound":
            rows.append(Row(name, each.measured / each.predicted, note=note, at_most=1 + 1e-12))
        else:
            ratio, most = 1 + each.relative_error, 1 + SLOPE_TOLERANCE
            rows.append(Row(name, ratio, note=f"{note}: 1 + relative error", at_most=most))
    return rows


@measurement("steer", "share of drawn layers whose threshold of steering is predicted rightly")
def steer() -> list[Row]:
    result = thresholds()
    said = result.words().splitlines()
    share = float(result.table["right"].mean())
    first = Row("steer/share right", share, note=said[0], at_least=REQUIRED)
    return [first, *(Row("steer/wrong", float("nan"), note=each) for each in said[1:])]
