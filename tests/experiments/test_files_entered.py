"""Which files of the package an answer enters: what a reader of it has to know at most."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from tests.support.tiny_transformers import DEIT_TI, tiny

# The files behind the report of a folder: those that are loaded, and those of which a function runs
# (`__init__.py` and `moved.py` apart, as in tests/test_budgets.py); fewer is better, more needs a
# reason.
LOADED, RUN = 57, 40
ASKED = """
import sys
from pathlib import Path
run = set()
def seen(frame, event, _):
    if event == "call" and frame.f_code.co_flags & 1 and frame.f_code.co_name[0] != "<":
        run.add(frame.f_code.co_filename)
sys.setprofile(seen)
import oversmoothing
assert oversmoothing.main(["inspect", sys.argv[1], "--images", sys.argv[2], "--out", "out"]) == 0
sys.setprofile(None)
root = Path(oversmoothing.__file__).resolve().parent
loaded = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
for kind, files in (("loaded", loaded), ("run", run)):
    for path in sorted(Path(file).resolve() for file in files if file):
        if path.is_relative_to(root):
            print(kind, path.relative_to(root).as_posix())
"""


@pytest.fixture(scope="module")
def entered(tmp_path_factory):
    """Of `inspect` at the command line, on a folder of transformers' weights so large that spectra
    are not in the budget: what takes those is the theory of the verdict."""
    place = tmp_path_factory.mktemp("entered")
    tiny("vit", **DEIT_TI).save_pretrained(place / "model")
    (place / "images").mkdir()
    for number, pixels in enumerate(np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3))):
        Image.fromarray(pixels.astype(np.uint8)).save(place / "images" / f"{number}.png")
    words = [sys.executable, "-c", ASKED, "model", "images"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=place).stdout
    lines = [line.partition(" ") for line in said.splitlines()]
    return {kind: [name for one, _, name in lines if one == kind] for kind in ("loaded", "run")}


def test_inspect_of_a_model_folder_enters_no_file_of_digits(entered):
    assert "experiments/models/sources.py" in entered["run"]
    assert not [name for name in entered["loaded"] if "digits" in name]


def test_inspect_of_a_model_folder_enters_so_many_files_at_most(entered):
    run = [name for name in entered["run"] if not name.endswith(("__init__.py", "moved.py"))]
    assert len(run) <= RUN, "\n".join(run)
    assert len(entered["loaded"]) <= LOADED, "\n".join(entered["loaded"])
