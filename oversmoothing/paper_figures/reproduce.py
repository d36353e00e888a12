"""The main job, end to end: train, simulate, check, draw, and `index.html` with the verdicts.

Trained models are cached by their configuration. Checks and figures whose code, data, seed and
libraries are as the run before left them are taken over, and marked so (`kept`); `fresh` computes
all anew.

What a run leaves for the next: DIR/kept.json, for each check and figure its digest, the date it was
made, and the digests of its files. The digest is that of the code when the run began, of the
libraries' versions, of the seed and the device, and of the data when it ended, trained models among
them: what lies in DIR but for what a run writes itself, and the sizes and times of the files of
$OVERSMOOTHING_DATA. All the code counts but other figures' and the page's: a change of any line
that a number may rest on draws anew.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversmoothing.experiments.digits.training import REQUIRED_TEST_ACCURACY, TrainedModel
from oversmoothing.experiments.models.pictures import real_inputs
from oversmoothing.experiments.study.protocol import TIERS, protocol
from oversmoothing.experiments.study.study_runs import run_blocks, trained
from oversmoothing.paper_figures import FIGURES, figure
from oversmoothing.paper_figures.figure_base import Context
from oversmoothing.paper_figures.models_shown import digits_model
from oversmoothing.paper_figures.page import Check, Drawn, draw_figure, write_page
from oversmoothing.simulations.against_theory.simulate import Configuration, simulate
from oversmoothing.simulations.drawing.picture import FigureFiles
from oversmoothing.simulations.drawing.result import write
from oversmoothing.simulations.engine.evolve import evolve
from oversmoothing.simulations.running import provenance
from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.proofs.workers import in_order
from oversmoothing.theory.support.errors import RequirementError
from oversmoothing.theory.support.files import output_folder, to_json, write_atomically
from oversmoothing.theory.verdict.verdict import verdict

RECORD = "kept.json"
_PACKAGE = Path(__file__).resolve().parents[1]
# What a run writes into its folder, and reads from nowhere.
_WRITTEN = {
    RECORD, "checks.json", "verdicts.csv", "index.html", "explorer.html", "figures", "simulation"
}  # fmt: skip
# What the page is made of: its words are written anew in any case.
_PAGE = ("paper_figures/page.", "paper_figures/explorer/")
_CHECKS = "checks"


class Kept:
    """The record in a context's folder, as the run before left it; none where that is damaged.

    fresh: nothing of it is used; in CI never is.
    """

    def __init__(self, context: Context, fresh: bool = False) -> None:
        self.context, self.path = context, context.results / RECORD
        self._known: dict[str, Any] = {}
        if self.path.exists() and not (fresh or os.environ.get("CI")):
            with contextlib.suppress(ValueError, TypeError):
                self._known = dict(json.loads(self.path.read_text("utf-8")))
        self._code = _of_code(context)
        self._before = self._digests() if self._known else {}

    def _digests(self) -> dict[str, str]:
        """Of the checks and each figure: the code as it was at the start, the data as now."""
        data = hashlib.sha256("\n".join(_data(self.context.results)).encode()).hexdigest()
        return {name: f"{code} {data}" for name, code in self._code.items()}

    def _entry(self, name: str) -> dict[str, Any] | None:
        entry = self._known.get(name)
        same = isinstance(entry, dict) and entry.get("digest") == self._before[name]
        return entry if same else None

    def checks(self) -> list[Check]:
        """Those of the run before, if all held and nothing changed."""
        entry = self._entry(_CHECKS) or {"rows": []}
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
            date_of = drawn.kept or today
            entries[name] = {"date": date_of, "seconds": drawn.seconds, "files": files}
        record = {name: {"digest": now[name], **entry} for name, entry in entries.items()}
        write_atomically(self.path, to_json(record))


def _of_code(context: Context) -> dict[str, str]:
    """By name the digests of what it does alone and of what all rest on."""
    figures = {f"paper_figures/figures/{name}.py": name for name in FIGURES}
    known = {key: value for key, value in provenance().items() if key != "commit"}
    words = json.dumps([context.seed, context.device, known], sort_keys=True)
    common = hashlib.sha256(words.encode())
    each = {name: hashlib.sha256() for name in (_CHECKS, *FIGURES)}
    for path in sorted(_PACKAGE.rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        if path.is_file() and "__pycache__" not in name and not name.startswith(_PAGE):
            hashed = each[figures[name]] if name in figures else common
            hashed.update(f"{name} {_of_file(path)}\n".encode())
    return {name: f"{own.hexdigest()} {common.hexdigest()}" for name, own in each.items()}


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


# Of the page, by whether the studies are run.
PRESETS = {
    False: (
        "The reduced preset: digits models of one seed, 30 epochs and 8 layers; recorded runs of "
        "the study, and of DeiT-Ti where one takes longer than minutes."
    ),
    True: (
        "All of it: the figures' models of one seed, and every model of the study; recorded runs "
        "of DeiT-Ti where one takes longer than minutes."
    ),
}


def reproduce(
    context: Context, *, full: bool = False, workers: int = 1, fresh: bool = False
) -> int:
    """Run all into context.results. Returns 0, or 1 where a check fails (the page says which).

    full: every model of the study is trained first, which takes hours and resumes. workers: how
    many processes train and draw at the same time. fresh: nothing is taken over from the run
    before.
    """
    folder = context.results
    if full:
        run_blocks(
            protocol(), folder / "study", tiers=TIERS, workers=workers, data=real_inputs(),
            progress=context.progress,
        )  # fmt: skip
    kept, checks = Kept(context, fresh), []
    for check in kept.checks() or _checks(context, workers):
        how = f" (from cache, {check.kept})" if check.kept else ""
        print(f"{'holds' if check.holds else 'FAILS'}: {check.statement}: {check.measured}{how}")
        checks.append(check)
    held = checks.copy()
    figures = {name: kept.figure(name) for name in FIGURES}
    missing = [name for name, drawn in figures.items() if drawn is None]
    calls = [(_drawn, name, context) for name in missing]
    shown: dict[str, Drawn] = {}
    with contextlib.closing(in_order(calls, max(1, min(workers, len(missing))))) as made:
        for name, taken in figures.items():
            drawn = taken or next(made)
            if isinstance(drawn, Drawn):
                shown[name] = drawn
                if drawn.kept:
                    print(f"{name}: from cache, drawn on {drawn.kept}")
                continue
            checks.append(Check(f"figure {name}", f"figure {name} can be drawn", drawn, False))
            print(f"FAILS: {drawn}", file=sys.stderr)
        next(made, None)  # the processes end
    checked = {
        "schema_version": 1, "checks": [vars(check) for check in checks], "seed": context.seed,
        "full": full, **provenance(),
    }  # fmt: skip
    write_atomically(folder / "checks.json", to_json(checked))
    write_atomically(folder / "verdicts.csv", record(shown).to_csv(index=False))
    kept.write(held, shown)
    page = write_page(folder, shown, checks, context.seed, PRESETS[full])
    print(f"wrote {page} with {len(shown)} figures")
    return 0 if all(check.holds for check in checks) else 1


def record(drawn: Mapping[str, Drawn]) -> pd.DataFrame:
    """A row a comparison with the paper, and one for a figure that has none."""
    rows = []
    for name, each in drawn.items():
        own = {"figure": name, "title": figure(name).title, "seconds": round(each.seconds)}
        for compared in each.comparisons:
            words = {key: value for key, value in vars(compared).items() if key != "interval"}
            rows.append(own | words)
        if not each.comparisons:
            rows.append(own | {"verdict": "ours"})
    return pd.DataFrame(rows)


def _drawn(name: str, context: Context) -> Drawn | str:
    """The figure, or why it cannot be drawn."""
    try:
        return draw_figure(name, context)
    except RequirementError as error:
        return str(error)


def _checks(context: Context, workers: int) -> Iterator[Check]:
    models = [(_model, variant, context) for variant in ("vit", "vit+", "vit-")]
    calls: list[tuple[Any, ...]] = [(_golden,), (_a_million_layers, context)]
    calls += [(_simulation, context), *models, (_pair,)]
    for made in in_order(calls, workers):
        yield from made if isinstance(made, list) else [made]


def _model(variant: str, context: Context) -> list[Check]:
    """What is checked of a model, which is trained where it is not there."""
    model = digits_model(variant, context)
    metrics = model.run.metrics
    accurate = Check(
        f"accuracy of {variant}",
        f"{variant} reads handwritten digits: at least {100 * REQUIRED_TEST_ACCURACY:.0f} % of "
        "the test images, scored once",
        f"{metrics['test_correct']} of {metrics['test_count']} = "
        f"{100 * metrics['test_accuracy']:.2f} %",
        bool(metrics["test_accuracy"] >= REQUIRED_TEST_ACCURACY),
    )
    return [accurate, *([_dominance(variant, model)] if variant != "vit" else ())]


def _pair() -> Check:
    """A pair of the study's networks, trained for a tenth of its steps."""
    chosen, said, held = protocol(), [], True
    for form in ("plus", "minus"):
        cell, _ = chosen.cells[f"digits-{form}"]
        watched = trained(replace(cell, steps=cell.steps // 10, tier="trainability"), 0)[1]
        seen = np.array(watched["trajectory"]["head_negative"])
        moved = float(np.max(watched["trajectory"]["cos_free"][-1]))
        held &= bool((seen == (form == "minus")).all()) and moved < 0.9
        said.append(f"{form}: {100 * seen.mean():.0f} % negative, cosine to the start {moved:.2f}")
    return Check(
        "a pair of the study",
        "plus and minus, every head with values of its own: all h keep their sign at each watched "
        "step while H leaves its start",
        "; ".join(said),
        held,
    )


def _golden() -> Check:
    right = 0
    cases = golden_cases()
    for case in cases.values():
        answer = verdict(A=case.A, H=case.H, X0=case.X0, depth=[1, 2, 5])
        squares = case.expected["hfc_lfc_squared"]
        right += (
            answer.verdict == case.verdict
            and answer.tends_to == case.expected["tends_to"]
            and all(answer.hfc_lfc[int(k)].squared == case.squared_ratio(int(k)) for k in squares)
        )
    return Check(
        "golden",
        "every golden case has its verdict and its exact (HFC/LFC)² after 1, 2 and 5 layers",
        f"{right} of {len(cases)} cases",
        right == len(cases),
    )


def _a_million_layers(context: Context) -> Check:
    trajectory = evolve(
        X0=[[1.0], [2.0]], A=[[0.75, 0.25], [0.25, 0.75]], H=[[1.0]], depth=10**6, method="plain",
        device="cpu", progress=context.progress,
    )  # fmt: skip
    measured = float(np.asarray(trajectory.metrics()["log_hfc_lfc"])[-1])
    exact = -np.log(3) + 10**6 * np.log1p(-0.25)
    return Check(
        "a million layers",
        "h = 1, a = 1/2: after a million iterated layers log HFC/LFC is -log 3 + 10⁶ log(3/4)",
        f"{measured:.8f} against {exact:.8f}",
        bool(abs(measured - exact) <= 1e-9 * abs(exact)),
    )


def _simulation(context: Context) -> Check:
    result = simulate(Configuration(seed=context.seed, depth=10_000), progress=context.progress)
    write(result, output_folder(context.results / "simulation"))
    error = result.details["largest_error_of_log_hfc_lfc"]
    return Check(
        "simulation",
        "softmax attention, Ginibre H (n = 32, d = 16): the iteration follows the closed form to "
        "10 000 layers",
        f"largest difference of log HFC/LFC {error:.1e}; {result.details['verdict']['verdict']}",
        error is not None and bool(error < 1e-6),
    )


def _dominance(variant: str, model: TrainedModel) -> Check:
    """T2d for ViT+ and T3d for ViT-, at every logged step of the training."""
    log = model.run.log
    steps = log["epoch"].nunique()
    if variant == "vit+":
        return Check(
            "dominance in vit+",
            "vit+ (every h > 0): consensus dominates every (image, layer), at each logged step "
            "(T2d)",
            f"{100 * log['consensus_share'].min():.2f} % at the least, over {steps} steps",
            bool((log["consensus_share"] == 1).all()),
        )
    within = log[log["h_real_min"] >= -1]
    worst = 100 * within["consensus_share"].max()
    return Check(
        "dominance in vit-",
        "vit-: consensus dominates no (image, layer) wherever every ψ² ≤ 1, at each logged step "
        "(T3d)",
        f"{worst:.2f} % at the most, over {len(within)} of {len(log)} (step, layer) pairs; "
        f"-ψ² leaves the safe interval in {(log['outside_share'] > 0).sum()} of them",
        bool((within["consensus_share"] == 0).all()),
    )
