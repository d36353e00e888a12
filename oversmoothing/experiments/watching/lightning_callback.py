"""The callback for Lightning's Trainer: its loggers get a watched step."""

import sys
from typing import Any

from oversmoothing.theory.support.errors import required

# Two packages with one content: a callback belongs to that whose Trainer it is given to.
PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def callback(watcher: Any) -> Any:
    """A `Callback` of a `Watcher`, of the package that the script has imported."""
    package = next((name for name in PACKAGES if name in sys.modules), PACKAGES[0])

    class Watching(required(package).Callback):  # type: ignore[misc]
        """Arms the watcher at each batch; the loggers get what was seen after it."""

        def on_train_batch_start(self, trainer: Any, *_: Any, **__: Any) -> None:
            watcher.arm(trainer.global_step)

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            found = watcher.take()
            if found is not None:
                for logger in trainer.loggers:
                    logger.log_metrics(found[1], step=found[0])

        def on_fit_end(self, *_: Any, **__: Any) -> None:
            watcher.close()

        def on_exception(self, *_: Any, **__: Any) -> None:
            watcher.close()

    return Watching()
