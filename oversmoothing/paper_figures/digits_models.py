"""The four digits models behind the figures of trained models, trained once and cached."""

from oversmoothing.experiments.digits.config import VARIANTS, default_config
from oversmoothing.experiments.digits.training import TrainedModel, require_accuracy, trained
from oversmoothing.experiments.digits.training_loop import Keeping
from oversmoothing.experiments.inspection.watcher import Watcher
from oversmoothing.paper_figures.figure_base import PALETTE, Context
from oversmoothing.simulations.engine.problem import choose_device

LABEL = {"vit-random": "random", "vit": "shared-value ViT", "vit+": "ViT+", "vit-": "ViT\u2212"}
COLOUR = {
    "vit-random": PALETTE["green"],
    "vit": PALETTE["black"],
    "vit+": PALETTE["blue"],
    "vit-": PALETTE["vermillion"],
}
# Of every model that is trained here, where one is first named.
SHARED_VALUE = (
    "Shared-value ViT: every head mixes the same values, heads.mean(1) @ (y @ H^T), and none has "
    "values of its own, unlike the paper's ViT; ViT+ and ViT\u2212 of ours share them too."
)
assert set(LABEL) == set(VARIANTS)


def digits_models(context: Context) -> dict[str, TrainedModel]:
    """Every model at the context's seed, from `context.results` or trained into it.

    Raises `RequirementError` where a trained one misses the required test accuracy, and
    `InputError` for a damaged cached run.
    """
    found = {}
    for name in LABEL:
        found[name] = digits_model(name, context)
        require_accuracy(found[name])
    return found


def digits_model(name: str, context: Context) -> TrainedModel:
    """One of them, however accurate."""
    config, device = default_config(name, context.seed), choose_device(context.device)
    # Watching leaves every bit of the training as it is.
    keeping = Keeping(watch=lambda model, every: Watcher(model, every=every, budget=None))
    return trained(
        config, context.results, device=device, progress=context.progress, keeping=keeping
    )
