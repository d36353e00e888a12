"""A module in evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode within; every submodule is as it was on leaving."""
    training = [(each, each.training) for each in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for each, state in training:
            each.training = state
