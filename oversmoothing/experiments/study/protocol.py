"""The file that is written before the runs: which runs, and what is expected of them.

`preregistered.toml` is the one of the project and `cifar100.toml` one of CIFAR-100; a file of one's
own has the same keys, and the design of the studies that it is of. A hypothesis names two kinds of
runs by what differs from the base, a measure (`study_runs.MEASURES`), the sign of the difference
that it expects, and a margin.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oversmoothing.experiments.digits.training_config import TrainConfig, read_toml
from oversmoothing.experiments.remedies.by_name import REMEDIES
from oversmoothing.theory.support.errors import InputError

PREREGISTERED = Path(__file__).parent / "preregistered.toml"
# Name on the command line -> a protocol that comes with the package.
SHIPPED = {"digits": PREREGISTERED, "cifar100": PREREGISTERED.with_name("cifar100.toml")}
STUDIES = ("data-efficiency", "corruption", "depth", "layernorm", "spectrum", "remedies")
PREDICTIONS = ("less", "greater", "within")
# Logged epochs of a run, whatever its number of epochs: the best of them is kept.
LOGGED = 6
_KEYS = {"title", "seeds", "confidence", "corrupted_images", "base", "design", "hypothesis"}
# What a study needs of the design.
_NEEDED = {
    "data-efficiency": {"variants", "tied", "fractions"},
    "corruption": {"variants", "tied"},
    "depth": {"variants", "depths"},
    "layernorm": {"variants", "placements", "gains"},
    "spectrum": {"variants", "tied", "fractions", "depths", "placements", "gains", "spectrum"},
    "remedies": {"remedies"},
}
_DESIGN = set().union(*_NEEDED.values())

Choice = Mapping[str, Any]  # what differs from the base


@dataclass(frozen=True)
class Hypothesis:
    """`says` in words; first - second of `measure` (less that of less_first and less_second, where
    they are given), or first against `value`, is `predicts` beside `margin`. withdrawn: why and
    since when it is no statement of the study any more; corrected: what was wrong in its words."""

    name: str
    study: str
    says: str
    measure: str
    first: Choice
    predicts: str
    second: Choice | None = None
    less_first: Choice | None = None
    less_second: Choice | None = None
    value: float | None = None
    margin: float = 0.0
    withdrawn: str = ""
    corrected: str = ""

    @property
    def note(self) -> str:
        """What became of it after it was written: '' for nothing."""
        notes = {"Withdrawn": self.withdrawn, "Corrected": self.corrected}
        return " ".join(f"{word} {why.rstrip('.')}." for word, why in notes.items() if why)

    @property
    def choices(self) -> list[Choice]:
        """The kinds of runs that it speaks of."""
        given = (self.first, self.second, self.less_first, self.less_second)
        return [each for each in given if each is not None]


@dataclass(frozen=True)
class Run:
    """One training: what differs from the base, and its seed."""

    choice: Choice
    seed: int
    config: TrainConfig
    remedy: str | None

    @property
    def name(self) -> str:
        """Of its folder."""
        own = self.config.folder_name()
        return own if self.remedy is None else f"{own}-{self.remedy}"


@dataclass(frozen=True)
class Protocol:
    """Seeds, the design of its studies and the hypotheses.

    corrupted_images: how many test images, the first ones, are scored under corruption (None: all).
    """

    title: str
    seeds: tuple[int, ...]
    confidence: float
    base: dict[str, Any]
    design: dict[str, Any]
    hypotheses: tuple[Hypothesis, ...]
    source: str = field(default="")
    corrupted_images: int | None = None

    @property
    def studies(self) -> list[str]:
        """Those that the design is of, in the order of STUDIES."""
        return [name for name in STUDIES if set(self.design) >= _NEEDED[name]]

    @property
    def data(self) -> str:
        """The data set of its base."""
        return str(self.base.get("data", TrainConfig().data))

    def choices(self, study: str) -> list[dict[str, Any]]:
        """What the runs of a study are, without their seeds; each once.

        Raises `InputError` where the design is not of that study.
        """
        if study not in self.studies:
            raise InputError(
                f"'{self.source}' has no design for the study {study}, but for "
                f"{', '.join(self.studies) or 'none'}: choose one of these"
            )
        asked = list(self._designed(study))
        for each in self.hypotheses:
            if each.study == study:
                asked += [dict(choice) for choice in each.choices]
        whole = {tuple(sorted(each.items())): each for each in map(self._without_base, asked)}
        return list(whole.values())

    def _designed(self, study: str) -> Iterator[dict[str, Any]]:
        design = self.design
        if study == "data-efficiency":
            for variant, tied, fraction in itertools.product(
                design["variants"], design["tied"], design["fractions"]
            ):
                yield {"variant": variant, "tied": tied, "fraction": fraction}
        elif study == "corruption":
            for variant, tied in itertools.product(design["variants"], design["tied"]):
                yield {"variant": variant, "tied": tied}
        elif study == "depth":
            for variant, depth in itertools.product(design["variants"], design["depths"]):
                yield {"variant": variant, "depth": depth}
        elif study == "layernorm":
            for variant, placement, gains in itertools.product(
                design["variants"], design["placements"], design["gains"]
            ):
                yield {"variant": variant, "placement": placement, "gains": gains}
        elif study == "spectrum":
            # Those of the other studies whose H is free, and what is varied for this one.
            for other in ("data-efficiency", "depth", "layernorm"):
                for each in self._designed(other):
                    if each["variant"] == "vit":
                        yield each
            for name, values in design["spectrum"].items():
                for value in values:
                    yield {name: value}
        else:
            yield {}
            for name in design["remedies"]["names"]:
                yield {"remedy": name}

    def _without_base(self, choice: Choice) -> dict[str, Any]:
        """Only what differs from the base."""
        plain = {**TrainConfig().model_dump(), "remedy": None, **self.base}
        return {name: value for name, value in choice.items() if plain[name] != value}

    def run(self, choice: Choice, seed: int) -> Run:
        """The training of a choice. Raises `InputError` where it is none."""
        own = self._without_base(choice)
        remedy = own.get("remedy")
        fields = {**self.base, **{k: v for k, v in own.items() if k != "remedy"}, "seed": seed}
        whole = TrainConfig.from_json_object({**fields, "fraction": 1.0}, self.source)
        config = TrainConfig.from_json_object(fields, self.source)
        # As many steps with less data, and as many looks at the validation images.
        epochs = max(1, round(whole.epochs * whole.per_epoch / config.per_epoch))
        scaled = {"epochs": epochs, "log_every": max(1, epochs // LOGGED)}
        config = TrainConfig.from_json_object({**config.model_dump(), **scaled}, self.source)
        return Run(own, seed, config, remedy)

    def runs(self, studies: list[str]) -> list[Run]:
        """Every training of these studies, each once, seed by seed: the first seed is complete
        before the second begins."""
        every = [
            self.run(choice, seed)
            for seed in self.seeds
            for study in studies
            for choice in self.choices(study)
        ]
        return list({each.name: each for each in every}.values())


def protocol(path: str | Path | None = None) -> Protocol:
    """The protocol of a TOML file or a name in SHIPPED (None: digits). Raises `InputError`."""
    shipped = SHIPPED.get(str(path or "digits"))
    source = str(path) if shipped is None else shipped.name
    table = read_toml(source if shipped is None else shipped)
    try:
        chosen = _protocol(table, source)
        for study in chosen.studies:
            for choice in chosen.choices(study):
                chosen.run(choice, chosen.seeds[0])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"'{source}': {type(error).__name__}, {error}: see {PREREGISTERED.name}") \
            from error  # fmt: skip
    return chosen


def _protocol(table: dict[str, Any], source: str) -> Protocol:
    for given, known in ((table, _KEYS), (table["design"], _DESIGN)):
        if odd := sorted(set(given) - known):
            raise InputError(f"'{source}': unknown key {', '.join(odd)}")
    hypotheses = tuple(Hypothesis(**each) for each in table.get("hypothesis", []))
    names = [each.name for each in hypotheses]
    for each in hypotheses:
        where = f"'{source}', hypothesis {each.name}"
        if each.study not in STUDIES or each.predicts not in PREDICTIONS:
            raise InputError(
                f"{where}: study is one of {', '.join(STUDIES)}, predicts one of "
                f"{', '.join(PREDICTIONS)}"
            )
        if (each.second is None) == (each.value is None) or names.count(each.name) > 1:
            raise InputError(f"{where}: give either second or value, and each name once")
        if (each.less_first is None) != (each.less_second is None):
            raise InputError(f"{where}: give both less_first and less_second, or neither")
        for remedy in (choice.get("remedy") for choice in each.choices):
            if remedy is not None and remedy not in REMEDIES:
                raise InputError(f"{where}: no remedy '{remedy}'")
    seeds, confidence = table["seeds"], table["confidence"]
    if len(set(seeds)) != len(seeds) or len(seeds) < 2 or not 0.5 <= confidence < 1:
        raise InputError(f"'{source}': two different seeds at least, and confidence in [.5, 1)")
    count = table.get("corrupted_images")
    if count is not None and (type(count) is not int or count < 1):
        raise InputError(f"'{source}': corrupted_images {count!r} is no whole number from 1")
    made = Protocol(
        table.get("title", ""), tuple(seeds), confidence, table.get("base", {}), table["design"],
        hypotheses, source, count,
    )  # fmt: skip
    if missing := {each.study for each in hypotheses} - set(made.studies):
        raise InputError(f"'{source}': no design for {', '.join(sorted(missing))}, of a hypothesis")
    if not made.studies:
        raise InputError(f"'{source}': the design is of none of {', '.join(STUDIES)}")
    return made


# What arXiv 2401.04301 (first version) reports of CIFAR-100, per cent correct, mean and sd: ViT-Ti,
# ViT-Ti+ and ViT-Ti- over runs whose number it does not state; as printed on its poster. Other data
# at another size than the digits: a comparison, never a reproduction.
# Table 2: by the share of the training images.
DATA_EFFICIENCY = {
    "vit": {1.0: (66.78, 0.1), 0.5: (56.38, 0.5), 0.1: (32.47, 0.9)},
    "vit+": {1.0: (64.34, 0.3), 0.5: (55.21, 0.5), 0.1: (28.67, 0.5)},
    "vit-": {1.0: (66.62, 0.3), 0.5: (56.58, 0.3), 0.1: (33.99, 0.4)},
}
# Table 3: by the intensity of the corruption, 0 to 5.
CORRUPTION = {
    "vit": (66.78, 61.59, 57.75, 53.12, 49.32, 39.17),
    "vit+": (64.34, 58.36, 53.83, 49.03, 45.15, 35.86),
    "vit-": (66.62, 61.62, 58.00, 53.56, 49.70, 40.07),
}
