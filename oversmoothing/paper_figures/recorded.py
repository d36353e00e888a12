"""Recorded runs of the experiments: results of a command that takes minutes to hours, as stored.

A figure that draws one says so and names the command. Nothing in them is typed in: they are the
files that the command wrote, with their provenance.
"""

from importlib import resources
from typing import Any

from oversmoothing.theory.support.files import parse_json


def recorded_run(experiment: str, name: str) -> dict[str, Any]:
    """The JSON of `experiments/EXPERIMENT/results/NAME`."""
    file = resources.files(f"oversmoothing.experiments.{experiment}") / "results" / name
    found: dict[str, Any] = parse_json(file.read_text("utf-8"), name)
    return found
