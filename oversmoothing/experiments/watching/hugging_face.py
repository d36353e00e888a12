"""The callback for the Trainer of the Hugging Face library: its loggers get a watched step."""

from typing import Any

from oversmoothing.theory.support.errors import required


def callback(watcher: Any, trainer: Any) -> Any:
    """A `TrainerCallback` of a `Watcher`. trainer: whose it is, since callbacks are not told."""

    class Watching(required("transformers").TrainerCallback):  # type: ignore[misc]
        """Arms the watcher at each step, and logs in front of the optimizer's."""

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watcher.arm(state.global_step)

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            found = watcher.take()
            if found is not None:
                trainer.log(found[1])

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            watcher.close()

    return Watching()
