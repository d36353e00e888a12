"""The table of a sweep in a few lines."""

import pandas as pd

from oversmoothing.theory.verdict.formulas import Outcome


def summary(table: pd.DataFrame) -> str:
    """How many points have which verdict, whether the runs bear it out, and what failed."""
    good = table[table["status"] != "error"]
    counts = good["verdict"].value_counts()
    lines = [", ".join(f"{number:,} {verdict}" for verdict, number in counts.items())]
    if "slope" in table:
        smoothing = good[(good["verdict"] == Outcome.SMOOTHING) & good["slope"].notna()]
        if len(smoothing):
            gap = (smoothing["slope"] - smoothing["predicted_log_rate"]).abs().median()
            lines.append(
                f"SMOOTHING points: measured slope of log HFC/LFC per layer against the predicted "
                f"log(rho_Q/rho_C), median difference {gap:.1e}"
            )
    failed = table[table["status"] == "error"]
    if len(failed):
        reasons = failed["note"].value_counts()
        lines.append(f"{len(failed):,} points failed, most often: {reasons.index[0]}")
    return "\n".join(line for line in lines if line)
