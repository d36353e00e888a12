"""From any source to one `Model`: hub names, folders, files, modules in memory.

`open_model` recognises what the adapters know; `describe` is for a module that they do not.
"""

from experiments.bridge.adapters.describe import describe
from experiments.bridge.adapters.sources import open_model

__all__ = ["describe", "open_model"]
