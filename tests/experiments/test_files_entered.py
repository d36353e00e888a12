"""Which files of the package an answer enters: what a reader of it has to know at most."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import transformers
from PIL import Image

# The files behind the report of a folder; fewer is better, more needs a reason.
MOST = 59
ASKED = """
import sys
from pathlib import Path
import oversmoothing
assert oversmoothing.main(["inspect", sys.argv[1], "--images", sys.argv[2], "--out", "out"]) == 0
root = Path(oversmoothing.__file__).resolve().parent
files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
for path in sorted(Path(file).resolve() for file in files if file):
    if path.is_relative_to(root):
        print("entered", path.relative_to(root).as_posix())
"""


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Of `inspect` at the command line, on a folder of transformers' weights so large that spectra
    are not in the budget: what takes those is the theory of the verdict."""
    place = tmp_path_factory.mktemp("entered")
    wide = transformers.ViTConfig(
        hidden_size=192, num_hidden_layers=2, num_attention_heads=3, intermediate_size=768,
        image_size=224, patch_size=16,
    )  # fmt: skip
    transformers.ViTForImageClassification(wide).save_pretrained(place / "model")
    (place / "images").mkdir()
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3))):
        Image.fromarray(pixels.astype(np.uint8)).save(place / "images" / f"{number}.png")
    words = [sys.executable, "-c", ASKED, "model", "images"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=place).stdout
    return [line.split()[1] for line in said.splitlines() if line.startswith("entered ")]


def test_inspect_of_a_model_folder_enters_no_file_of_digits(entered: list[str]) -> None:
    assert "experiments/models/sources.py" in entered
    assert not [name for name in entered if "digits" in name]


def test_inspect_of_a_model_folder_enters_so_many_files_at_most(entered: list[str]) -> None:
    assert len(entered) <= MOST, "\n".join(entered)
