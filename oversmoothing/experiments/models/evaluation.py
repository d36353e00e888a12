"""A module in evaluation mode for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn
from torch.backends import mha


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode within; every submodule is as it was on leaving.

    PyTorch's fused encoder layer, which calls none of its parts, is left out meanwhile.
    """
    training = [(each, each.training) for each in module.modules()]
    fused = mha.get_fastpath_enabled()
    module.eval()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(fused)
        for each, state in training:
            each.training = state
