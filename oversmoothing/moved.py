"""Modules that were documented under another name: they load for one release, with a warning."""

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_D = "oversmoothing.experiments.digits."
_E = "oversmoothing.experiments."
_I = "oversmoothing.experiments.inspection."
_S = "oversmoothing.simulations."
_T = "oversmoothing.theory."
# The new homes of what a module held.
MOVED: dict[str, tuple[str, ...]] = {
    _D + "augmentation": (_D + "training_loop",),
    _D + "cifar": (_D + "data",),
    _D + "images": (_D + "data",),
    _D + "reads": (_D + "data",),
    _D + "config": (_D + "training_config",),
    _E + "enclosures.ball_metrics": (_E + "enclosures.balls",),
    _E + "enclosures.boxing": (_E + "enclosures.enclosing",),
    _E + "enclosures.statement_check": (_E + "enclosures.statement",),
    _E + "ladder.result": (_E + "ladder.scores",),
    _E + "loops.predictors": (_E + "repeated.predictors",),
    _E + "parameterisations.choose": (_E + "forms.regions",),
    _E + "parameterisations.lasting_bound": (_E + "forms.lasting_bound",),
    _E + "reparameterised.split_heads": (_E + "forms.reparameterise",),
    _E + "sign_flips.flips": (_E + "repeated.flips",),
    _E + "study.adjudicate": (_E + "study.answers",),
    _E + "study.study_models": (_D + "vit", _D + "training_config"),
    _E + "study.run_measures": (_E + "study.study_runs",),
    _E + "threads": (_S + "state", _E + "intervals"),
    _E + "stability.growth": (_E + "repeated.growth",),
    _E + "stability.stability": (_E + "repeated.stability",),
    _I + "account": (_I + "observe",),
    _I + "head_table": (_I + "heads_and_why",),
    _I + "sinks": (_I + "states",),
    _I + "why": (_I + "heads_and_why",),
    _S + "drawing.result_files": (_S + "drawing.result",),
    _S + "heads.lyapunov": (_S + "against_theory.exponents",),
    _S + "progress": (_S + "running",),
    _S + "provenance": (_S + "running",),
    _S + "metrics.cosine": (_S + "state_metrics",),
    _S + "metrics.singular_values": (_S + "singular_values",),
    _S + "states.split_state": (_S + "state",),
    _S + "sweep.parameters": (_S + "sweep.config",),
    _T + "certificates.certificate": (_T + "certificate",),
    _T + "certificates.enclosure": (_T + "spectra.discs", _T + "spectra.layer_discs"),
    _T + "layer.golden": (_T + "claims.golden",),
    _T + "consensus.loops": (_T + "at_consensus",),
    _T + "depth.accurate": (_T + "numbers.rounding",),
    _T + "depth.rates": (_T + "depth.bounds",),
    _T + "layer.case": (_T + "layer.layer",),
    _T + "layer.cell": (_T + "layer.attention", _T + "verdict.by_cells"),
    _T + "layer.perron": (_T + "layer.attention",),
    _T + "layer.quotient": (_T + "layer.attention",),
    _T + "proofs.query": (_T + "proofs.reals",),
    _T + "spectra.multipliers": (_T + "spectra.layer_discs",),
    _T + "spectra.radii": (_T + "spectra.layer_discs",),
    _T + "spectra.spectrum": (_T + "spectra.layer_discs",),
    _T + "verdict.dominance": (_T + "verdict.formulas",),
    _T + "verdict.onset": (_T + "depth.onset",),
    _T + "verdict.outcome": (_T + "verdict.formulas",),
}
_FOLDERS = {home.rpartition(".")[0] for homes in MOVED.values() for home in homes}
# A package that is gone has no home.
MOVED |= {folder: () for folder in {name.rpartition(".")[0] for name in MOVED} - _FOLDERS}


class MovedModule(ModuleType):
    """The names of the new homes under the old one."""

    def __getattr__(self, name: str) -> Any:
        for home in MOVED[self.__name__] if not name.startswith("__") else ():
            module = import_module(home)
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Finder:
    """Asked where nothing else knows a module."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in MOVED:
            return None
        if MOVED[name]:
            now = " and ".join(MOVED[name])
            warnings.warn(f"{name} is now {now}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, Finder, is_package=not MOVED[name])  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        return MovedModule(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing: names are looked up where they live."""


# Behind all other finders.
sys.meta_path.append(Finder)
