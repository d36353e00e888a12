"""The ladder of predictors of a trained model's smoothing, from no theory to operators."""

from experiments.bridge.predict.ladder import ladder
from experiments.bridge.predict.result import LadderResult, Rung

__all__ = ["LadderResult", "Rung", "ladder"]
