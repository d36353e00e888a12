"""The smoothing metrics: one meaning (it stands at `metrics.metrics`), four implementations.

metrics         right at any spread and scale, a batch at a time: the reference.
stream_metrics  of the residual streams of models: plain sums, `metrics` where these lose digits.
in_loop         HFC/LFC and the mean cosine in the dtype of the state, a few passes a layer.
numpy_metrics   of one state in numpy, for the workers of a sweep.
Tests hold the last three to the first.
"""
