"""The ladder of predictors of a trained model's smoothing, from no theory to operators."""
