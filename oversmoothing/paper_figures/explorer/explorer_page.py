"""Writes the explorer: its scripts, its style and its examples as one file of HTML.

An example (`presets.toml`) is a state of the page. The verdict that stands beside one is decided in
fractions when the page is written, by the same code as `oversmoothing verdict`; what the page
computes itself is float64.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from oversmoothing.simulations.drawing.web_page import as_data, web_page
from oversmoothing.theory.claims.golden import golden_case
from oversmoothing.theory.numbers.exact import Matrix
from oversmoothing.theory.spectra.algebraic import factors
from oversmoothing.theory.support.files import write_atomically
from oversmoothing.theory.verdict.verdict import verdict

# In the order in which they build on one another; the last one draws the page.
SCRIPTS = ("numbers", "layer", "dominance", "evolution", "state", "plane", "charts", "main")
# The order in which the page writes a link.
_ORDER = ("n", "h", "attention", "temperature", "share", "causal", "chain", "heads", "skew", "turn",
          "depth", "seed", "A", "X")  # fmt: skip
_AVERAGING = {"n": 2, "attention": "averaging", "heads": 1, "skew": 0, "turn": 0, "depth": 40,
              "seed": 1}  # fmt: skip


@dataclass(frozen=True)
class Preset:
    """One example. golden: the golden case it shows, whose X_0 it starts from; state: what differs
    from a state of averaging attention, in the words of the link."""

    key: str
    title: str
    says: str
    h: Sequence[str]
    state: dict[str, Any] = field(default_factory=dict)
    golden: str | None = None

    @property
    def link(self) -> str:
        words = {"h": ",".join(self.h), **_AVERAGING, **self.state}
        if self.golden:
            case = golden_case(self.golden)
            words |= {"n": len(case.A), "X": _rows(case.X0)}
            if words["attention"] == "given":
                words["A"] = _rows(case.A)
        return _link(words)

    def exact(self) -> dict[str, str] | None:
        if self.golden is None:
            return None
        case = golden_case(self.golden)
        answer = verdict(A=case.A, H=case.H, X0=case.X0)
        return {"verdict": str(answer.verdict), "reason": str(answer.reason)}


def link_to(A: Matrix, H: Matrix) -> str:
    """The explorer at A and the eigenvalues of H, as its link has them; from there on it draws X_0.

    A link beyond the limits of the page is refused there, in a sentence.
    """
    h = []
    for factor in factors(H):
        for root in map(complex, factor.roots(64)):
            if root.imag >= 0:
                pair = f"+{root.imag!r}i" if root.imag else ""
                h += [_number(root.real) + pair] * factor.multiplicity
    words = {"n": len(A), "h": ",".join(h), "attention": "given", "A": _rows(A)}
    return _link(_AVERAGING | words)


def _link(words: dict[str, Any]) -> str:
    return "#" + "&".join(f"{name}={words[name]}" for name in _ORDER if name in words)


def _rows(matrix: Matrix) -> str:
    return ";".join(",".join(_number(x) for x in row) for row in matrix)


def _number(x: Fraction | float) -> str:
    """As JavaScript writes the nearest float."""
    value = float(x)
    return str(int(value)) if value.is_integer() else repr(value)


_TEXT = (resources.files(__package__) / "presets.toml").read_text("utf-8")
PRESETS = tuple(Preset(**each) for each in tomllib.loads(_TEXT)["preset"])


def write_explorer(folder: Path) -> Path:
    """Write folder/explorer.html, which needs no other file and no network. Returns its path."""
    presets = [
        {"key": each.key, "title": each.title, "says": each.says, "link": each.link,
         "exact": each.exact()}
        for each in PRESETS
    ]  # fmt: skip
    page = web_page(
        "oversmoothing.paper_figures.explorer",
        "explorer.html",
        style="explorer.css",
        scripts=[f"{name}.js" for name in SCRIPTS],
        presets=presets,
        presets_json=as_data(presets),
    )
    return write_atomically(folder / "explorer.html", page)
