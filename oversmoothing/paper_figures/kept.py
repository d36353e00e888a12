"""What a run of everything leaves for the next: checks and figures that nothing has changed since.

    DIR/kept.json   for each its digest, the date it was made, and the digests of its files
The digest is that of the code when the run began, of the libraries' versions, of the seed and the
device, and of the data when it ended, trained models among them: what lies in DIR but for what a
run writes itself, and the sizes and times of the files of $OVERSMOOTHING_DATA. All the code counts
but other figures' and the page's: a change of any line that a number may rest on draws anew.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from oversmoothing.experiments.models.pictures import real_inputs
from oversmoothing.paper_figures import FIGURES, figure
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.page import Check, Drawn
from oversmoothing.simulations.drawing.picture import FigureFiles
from oversmoothing.simulations.provenance import provenance
from oversmoothing.theory.support.files import to_json, write_atomically

RECORD = "kept.json"
_PACKAGE = Path(__file__).resolve().parents[1]
# What a run writes into its folder, and reads from nowhere.
_WRITTEN = {
    RECORD, "checks.json", "verdicts.csv", "index.html", "explorer.html", "figures", "simulation"
}  # fmt: skip
# What the page is made of: its words are written anew in any case.
_PAGE = ("paper_figures/page.", "paper_figures/explorer/", "paper_figures/kept.py")
_CHECKS = "checks"


class Kept:
    """The record in a context's folder, as the run before left it; none where that is damaged.

    fresh: nothing of it is used; in CI never is.
    """

    def __init__(self, context: Context, fresh: bool = False) -> None:
        self.context, self.path = context, context.results / RECORD
        self._known: dict[str, Any] = {}
        if self.path.exists() and not (fresh or os.environ.get("CI")):
            try:
                self._known = dict(json.loads(self.path.read_text("utf-8")))
            except (ValueError, TypeError):
                self._known = {}
        self._common, self._each = _of_code(context)
        self._before = self._digests() if self._known else {}

    def _digests(self) -> dict[str, str]:
        """Of the checks and each figure: the code as it was at the start, the data as now."""
        common = self._common.copy()
        for line in _data(self.context.results):
            common.update(f"{line}\n".encode())
        digests = {}
        for name, each in self._each.items():
            whole = each.copy()
            whole.update(common.hexdigest().encode())
            digests[name] = whole.hexdigest()
        return digests

    def _entry(self, name: str) -> dict[str, Any] | None:
        entry = self._known.get(name)
        same = isinstance(entry, dict) and entry.get("digest") == self._before[name]
        return entry if same else None

    def checks(self) -> list[Check] | None:
        """Those of the run before, if all held and nothing changed."""
        entry = self._entry(_CHECKS)
        if entry is None:
            return None
        return [Check(**row, kept=entry["date"]) for row in entry["rows"]]

    def figure(self, name: str) -> Drawn | None:
        """The figure as the run before drew it, if its files are those and nothing changed."""
        entry = self._entry(name)
        if entry is None:
            return None
        stem = self.context.results / "figures" / name
        files = FigureFiles(*(stem.with_suffix(f".{kind}") for kind in FigureFiles._fields))
        if [_of_file(path) for path in files] != entry["files"]:
            return None
        compared = tuple(figure(name).compared(pd.read_csv(files.csv)))
        return Drawn(files, entry["seconds"], compared, entry["date"])

    def write(self, checks: Iterable[Check], figures: dict[str, Drawn]) -> None:
        """Keep what this run made, and what it took over with its date."""
        now, today, made = self._digests(), f"{date.today():%Y-%m-%d}", list(checks)
        entries: dict[str, Any] = {}
        if made and all(check.holds for check in made):
            rows = [{k: v for k, v in vars(check).items() if k != "kept"} for check in made]
            entries[_CHECKS] = {"date": made[0].kept or today, "rows": rows}
        for name, drawn in figures.items():
            files = [_of_file(path) for path in drawn.files]
            own = {"date": drawn.kept or today, "seconds": drawn.seconds, "files": files}
            entries[name] = own
        record = {name: {"digest": now[name], **entry} for name, entry in entries.items()}
        write_atomically(self.path, to_json(record))


def _of_code(context: Context) -> tuple[Any, dict[str, Any]]:
    """The hash of what all rest on, and of what each does alone: a figure on a file of its own."""
    own = {f"paper_figures/figures/{name}.py": name for name in FIGURES}
    known = {key: value for key, value in provenance().items() if key != "commit"}
    words = json.dumps([context.seed, context.device, known], sort_keys=True)
    common = hashlib.sha256(words.encode())
    each = {name: hashlib.sha256() for name in (_CHECKS, *FIGURES)}
    for path in sorted(_PACKAGE.rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        if path.is_file() and "__pycache__" not in name and not name.startswith(_PAGE):
            hashed = each[own[name]] if name in own else common
            hashed.update(f"{name} {_of_file(path)}\n".encode())
    return common, each


def _data(folder: Path) -> Iterator[str]:
    """A line for each file of the folder that no run writes, and of the folder of real inputs."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and name.parts[0] not in _WRITTEN:
            yield f"{name.as_posix()} {_of_file(path)}"
    real = real_inputs()
    for path in sorted(real.rglob("*")) if real is not None else ():
        if path.is_file():
            told = os.stat(path)
            yield f"{path} {told.st_size} {told.st_mtime_ns}"


def _of_file(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None
