"""The ladder of predictors of a trained model's smoothing, from no theory to operators."""

from oversmoothing.experiments.ladder.climb import ladder
from oversmoothing.experiments.ladder.scores import LadderResult, Rung

__all__ = ["LadderResult", "Rung", "ladder"]
