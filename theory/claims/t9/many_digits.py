"""Softmax attention in thousands of digits: HFC that is cubed at every layer needs them (T9d)."""

from typing import Any

import mpmath as mp


def high_and_mean(X: mp.matrix) -> tuple[mp.matrix, list[Any]]:
    """(HFC, mean over the tokens)."""
    mean = [mp.fsum(X[i, j] for i in range(X.rows)) / X.rows for j in range(X.cols)]
    high = mp.matrix([[X[i, j] - mean[j] for j in range(X.cols)] for i in range(X.rows)])
    return high, mean


def norm(X: Any) -> Any:
    return mp.sqrt(mp.fsum(x * x for x in X))


def attention(X: mp.matrix, M: mp.matrix, k: int) -> mp.matrix:
    """softmax(X M X^T/sqrt k) by rows."""
    logits = X * M * X.T / mp.sqrt(k)
    rows = []
    for i in range(X.rows):
        weights = [mp.exp(logits[i, j]) for j in range(X.rows)]
        rows.append([w / mp.fsum(weights) for w in weights])
    return mp.matrix(rows)


def covariance(E: mp.matrix, c: list[Any], M: mp.matrix) -> mp.matrix:
    """Sigma_a: covariance of the rows of E under a = softmax(c M E^T/sqrt k)."""
    logits = mp.matrix([c]) * M * E.T / mp.sqrt(2)
    weights = [mp.exp(x) for x in logits]
    a = [w / mp.fsum(weights) for w in weights]
    mean = [mp.fsum(a[i] * E[i, j] for i in range(E.rows)) for j in range(E.cols)]
    return mp.matrix(
        [
            [
                mp.fsum(a[i] * (E[i, j] - mean[j]) * (E[i, k] - mean[k]) for i in range(E.rows))
                for k in range(E.cols)
            ]
            for j in range(E.cols)
        ]
    )
