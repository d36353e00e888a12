"""The ladder of predictors of a trained model's smoothing, from no theory to operators."""

from experiments.bridge.predict.ladder import LadderResult, Rung, ladder

__all__ = ["LadderResult", "Rung", "ladder"]
