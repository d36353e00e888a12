"""The ladder for a reader: a row a rung, what the columns mean, and the best rung in a sentence."""

import pandas as pd

from oversmoothing.experiments.ladder.result import LadderResult


def score_table(result: LadderResult) -> pd.DataFrame:
    """The columns of the scores that a reader needs."""
    frame = result.to_frame()
    shown = frame[["rung", "r2", "r2_low", "r2_high", "r2_within", "sign", "spearman"]].copy()
    shown["cost %"] = 100 * frame["cost_share"]
    shown["fitted on"] = frame["calibration"]
    return shown


def words(result: LadderResult) -> str:
    """What the table says."""
    skipped = "".join(f"{name} is left out: {why}.\n" for name, why in result.skipped.items())
    return (
        f"The change of log HFC/LFC over {result.measured.shape[1]} layers and "
        f"{len(result.measured)} held-out inputs of {result.tokens} tokens.\nR^2 pooled with its "
        "95 % interval over inputs; within: against each layer's calibration mean (P0').\ncost: "
        f"multiply-adds for one input, of the model's {result.model_cost:.3g}; -: the model's own "
        f"run is needed.\n{skipped}{verdict(result)}"
    )


def verdict(result: LadderResult) -> str:
    """In a sentence: the best rung without a full run of the model, and whether it beats P0'."""
    free = [rung for rung in result.rungs if rung.cost is not None]
    if not free:
        return "No rung could be scored."
    best = max(free, key=lambda rung: rung.score.r2)
    gain = best.score.r2_within_low
    if best.name == "P0'" or not gain > 0:
        return f"No cheap rung is better than the layers' means (best: {best.name})."
    assert best.cost is not None
    share = 100 * best.cost / result.model_cost
    return (
        f"The best rung without a full run of the model is {best.name}: R^2 {best.score.r2:.3f}, "
        f"{100 * best.score.r2_within:.0f} % of what the layers' means leave, at {share:.1f} % of "
        "the model's multiply-adds."
    )
