"""The file that is written before the runs: which networks are trained, and what is asked of them.

`preregistered.toml` says the rule. A cell is one kind of network on one task, its name says in what
it differs from the usual; a run is a cell and a seed.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from oversmoothing.experiments.digits.training_config import Design
from oversmoothing.experiments.study.study_tasks import RECIPES, TASKS
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.support.files import read_toml

PREREGISTERED = Path(__file__).with_name("preregistered.toml")
PAPER_SCALE = PREREGISTERED.with_name("paper_scale.toml")
TIERS = ("core", "trainability", "exploratory")
PREDICTIONS = ("less", "greater", "within")
# Raised whenever code changes what a cell trains to, so that earlier rows count no more.
RECIPE = 1
# Processor seconds of a step: of each layer, and of each token in each layer (one core of 2024).
LAYER, TOKEN = 1.45e-3, 5.3e-6
USUAL_DESIGN = Design()
# What a recorded row says of a design, in this order; of the choices that came later only what is
# not as usual.
NAMED = ("form", "width", "depth", "heads", "ratio", "std", "start", "placement", "removal",
         "laplacian", "signed", "mask")  # fmt: skip
# Of a task the steps that a name does not say, and the tokens of an input.
USUAL = {
    "cifar100": (4212, 17), "cifar100-32": (10547, 65), "cifar20": (4212, 17),
    "digits": (990, 17), "bible": (1500, 64), "bible-masked": (1500, 64),
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A network, its task, the share of the training data, and how many steps it is trained."""

    task: str
    steps: int
    design: Design = USUAL_DESIGN
    fraction: float = 1.0
    tier: str = "core"

    def __post_init__(self) -> None:
        if self.task not in TASKS or self.tier not in TIERS:
            raise InputError(
                f"task '{self.task}', tier '{self.tier}': choose of {', '.join(TASKS)}, and of "
                f"{', '.join(TIERS)}"
            )
        if self.steps < 1 or not 0 < self.fraction <= 1:
            raise InputError(
                f"{self.steps} steps of the share {self.fraction}: at least 1, and at most 1"
            )

    @property
    def name(self) -> str:
        """'digits-minus-fraction0.1': the task, the form, and what is not as usual."""
        said = self.said_of_design
        words = [self.task, said.pop("form")]
        for name, value in said.items():
            if value != getattr(USUAL_DESIGN, name):
                words.append(f"{name}{value}")
        words += [f"fraction{self.fraction:g}"] * (self.fraction < 1)
        words += [f"steps{self.steps}"] * (self.steps != USUAL[self.task][0])
        return "-".join(words).replace(" ", "_")

    @property
    def said_of_design(self) -> dict[str, Any]:
        """The design as rows are recorded: they call shared values 'old'."""
        held = dict(self.design)
        later = {k: v for k, v in held.items() if k not in NAMED and v != getattr(USUAL_DESIGN, k)}
        form = self.design.form.replace("shared", "old")
        return {name: held[name] for name in NAMED} | {"form": form} | later

    @property
    def group(self) -> str:
        """Cells of one comparison over designs: 'trainability, 200 steps'."""
        return f"{self.tier}, {self.steps} steps"

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything but the seed that decides what it trains to."""
        recipe = vars(RECIPES[self.task])
        return {
            "task": self.task, "fraction": self.fraction, "steps": self.steps,
            "design": self.said_of_design, "training": dict(recipe), "recipe": RECIPE,
        }  # fmt: skip

    @property
    def digest(self) -> str:
        """Of the configuration: 12 hexadecimal digits."""
        text = json.dumps(self.configuration, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def seconds(self) -> float:
        """Of processor time that a run takes, about."""
        tokens = RECIPES[self.task].batch * USUAL[self.task][1]
        return self.steps * self.design.depth * (LAYER + TOKEN * tokens)


@dataclass(frozen=True)
class Question:
    """`measure` of the cell `first`, less that of `second` where there is one, or a measure over
    the cells of `group`, is `predicts` the margin. negligible: what counts as no effect; sd: of the
    values as expected before the runs. primary: Holm's correction is over these."""

    name: str
    says: str
    measure: str
    predicts: Literal["less", "greater", "within"]
    first: str = ""
    second: str = ""
    group: str = ""
    margin: float = 0.0
    negligible: float = 0.0
    primary: bool = False
    sd: float = float("nan")


@dataclass(frozen=True)
class Protocol:
    """cells by name with how many seeds each has, in order; the questions."""

    title: str
    confidence: float
    power: float
    cells: dict[str, tuple[Cell, int]]
    questions: tuple[Question, ...]
    source: str = field(default="")

    def blocks(self, tiers: tuple[str, ...] = TIERS) -> Iterator[list[tuple[Cell, int]]]:
        """The runs, (cell, seed): a block is one seed of all cells of a tier that have it."""
        for tier in TIERS:
            if tier not in tiers:
                continue
            own = [(cell, seeds) for cell, seeds in self.cells.values() if cell.tier == tier]
            for seed in range(max((seeds for _, seeds in own), default=0)):
                yield [(cell, seed) for cell, seeds in own if seed < seeds]

    def of_task(self, task: str) -> "Protocol":
        """Its cells of one task, without questions."""
        own = {name: each for name, each in self.cells.items() if each[0].task == task}
        return replace(self, cells=own, questions=())

    def runs(
        self, rows: Mapping[tuple[str, int], Any]
    ) -> Iterator[tuple[str, Cell, list[Any], list[Any]]]:
        """Of each cell (name, itself, its rows so far by seed, those that did not diverge)."""
        for name, (cell, planned) in self.cells.items():
            own = [rows[name, seed] for seed in range(planned) if (name, seed) in rows]
            yield name, cell, own, [row for row in own if row["diverged"] is None]

    def seeds(self, question: Question) -> int:
        """How many seeds are planned for it."""
        return min(self.cells[name][1] for name in self.cells_of(question))

    def cells_of(self, question: Question) -> list[str]:
        """The names of its group's cells, or of the one or two that it is of."""
        if question.group:
            return [x for x, (cell, _) in self.cells.items() if cell.group == question.group]
        return [name for name in (question.first, question.second) if name]


def protocol(path: str | Path | None = None) -> Protocol:
    """The protocol of a TOML file (None: the project's). Raises `InputError`."""
    source = Path(path or PREREGISTERED)
    table = read_toml(source)
    try:
        cells: dict[str, tuple[Cell, int]] = {}
        for each in table.pop("cells"):
            seeds = int(each.pop("seeds"))
            for cell in _expanded(each):
                if cell.name in cells and cells[cell.name][0] != cell:
                    raise InputError(f"two cells are called '{cell.name}'")
                cells[cell.name] = (cell, seeds)
        questions = tuple(Question(**each) for each in table.pop("question", []))
        made = Protocol(
            table.pop("title", source.stem), float(table.pop("confidence", 0.95)),
            float(table.pop("power", 0.8)), cells, questions, source.name,
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"'{source}' is no protocol: {what}\n{PREREGISTERED} is one.") from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"'{source}' is no protocol: {error}") from error
    if table:
        raise InputError(f"'{source}': unknown key {', '.join(table)}")
    _check(made)
    return made


def _expanded(given: dict[str, Any]) -> Iterator[Cell]:
    """Every list varies its field."""
    lists = {name: value if isinstance(value, list) else [value] for name, value in given.items()}
    own = {each.name for each in fields(Cell) if each.name != "design"}
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        design = {name: value for name, value in chosen.items() if name not in own}
        yield Cell(design=Design(**design), **{n: v for n, v in chosen.items() if n in own})


def _check(made: Protocol) -> None:
    names = [each.name for each in made.questions]
    for each in made.questions:
        where = f"'{made.source}', question {each.name}"
        wanted = made.cells_of(each)
        if odd := [x for x in wanted if x not in made.cells]:
            raise InputError(f"{where}: there is no cell '{odd[0]}'")
        if bool(each.first) == bool(each.group) or not wanted:
            raise InputError(f"{where}: give either a cell or a group that there is")
        if each.predicts not in PREDICTIONS or names.count(each.name) > 1:
            raise InputError(
                f"{where}: predicts is one of {', '.join(PREDICTIONS)}, and each name stands once"
            )
        if each.predicts == "within" and not each.margin > 0:
            raise InputError(f"{where}: 'within' needs a margin above 0")
