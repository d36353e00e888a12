"""The verdict on a layer with parameters: for which of them it smooths, ties, does not (T2, T3).

rho_C > rho_Q is written down as it is: some mode of consensus exceeds every other. Where every
eigenvalue has a factor of degree 1 or 2 that is a closed form; solved for a parameter where its
boundaries are known in order. With one parameter the line is cut at the roots of the boundary
polynomials. Anything else is cut into cells by these polynomials, with one exact verdict a cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import sympy as sp

from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.by_fractions import exact_dominance
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome, outcome_of_sign
from oversmoothing.theory.verdict.symbolic.boundaries import (
    ONE,
    Boundaries,
    Candidates,
    agree,
    between,
    by_table,
    critical,
    in_ranges,
    intervals,
    real_roots,
    said_where,
    three,
)
from oversmoothing.theory.verdict.symbolic.symbolic_layer import OfLayer, SymbolicLayer, said, truth

WORDS = {
    Outcome.SMOOTHING: "smooths",
    Outcome.TIE: "ties",
    Outcome.NON_SMOOTHING: "does not smooth",
    Outcome.TRIVIAL: "is at consensus",
    Outcome.UNDEFINED: "becomes 0",
}
_COUNTED = {3: "three", 4: "four", 5: "five"}


@dataclass(frozen=True)
class Cell:
    """A connected set of parameters on which one verdict holds, by a point in it."""

    point: dict[Any, Any]
    outcome: Outcome


def condition(outcome: Outcome, words: str) -> Any:
    """The property that is the condition of an outcome."""
    return property(lambda self: self._condition(outcome), doc=words)


class SymbolicVerdict(OfLayer):
    """For which parameters X' = X + A X W smooths, for generic X_0.

    form: "closed form" (three exact conditions) or "cells" (boundary polynomials, and one exact
    verdict a cell, see `cells`). smooths, ties, does_not: sympy conditions, of which exactly one
    holds; None in the form "cells". where: under what they are written so, beside `assumed`; at an
    edge of it, where an entry of A is 0, `subs` answers too. assumed: what A must satisfy to be
    attention, as far as it is not settled. boundaries: irreducible polynomials, on whose zeros
    alone the verdict changes within that; thorough: also where that takes long. names: symbols that
    are no parameters, of extreme eigenvalues. undecided: single points of a line where two radii
    are too close to tell.

    >>> import sympy, oversmoothing
    >>> a, h = sympy.symbols("a h", real=True)
    >>> A = [[(1 + a) / 2, (1 - a) / 2], [(1 - a) / 2, (1 + a) / 2]]
    >>> found = oversmoothing.verdict(A=A, H=[[h]])
    >>> found.smooths
    (h > 0) | (h < -2/(a + 1))
    >>> str(found.subs(h="-3/2", a="1/2")), str(found.subs(h="-4/3", a="1/2"))
    ('SMOOTHING', 'TIE')
    """

    def __init__(self, layer: SymbolicLayer, thorough: bool = False) -> None:
        if layer.n == 1:
            raise InputError("one token only (n = 1): there is nothing to smooth")
        super().__init__(layer)
        self._thorough = thorough
        self.where = sp.true
        self.names: dict[Any, str] = {}
        self.undecided = sp.false
        self._candidates = self._modes()
        self._conditions = self._found()

    def _modes(self) -> Candidates | None:
        degrees = [each.degree for each in (*self.layer.value, *self.layer.attention)]
        return Candidates(self.layer) if max(degrees) <= 2 else None

    def _found(self) -> dict[Outcome, Any] | None:
        layer = self.layer
        if len(layer.parameters) == 1:
            return self._on_a_line()
        if self._candidates is not None:
            return self._solved() or self._written()
        if all(
            M.is_symmetric() or all(each.degree == 1 for each in classes)
            for M, classes in ((layer.H, layer.value), (layer.A, layer.attention))
        ):
            return self._by_extremes()
        return None

    @property
    def form(self) -> str:
        """Which of the two it is: "closed form" or "cells"."""
        return "cells" if self._conditions is None else "closed form"

    def _condition(self, outcome: Outcome) -> Any:
        if self._conditions is None:
            return None
        return self.layer.as_given(self._conditions[outcome])

    smooths = condition(Outcome.SMOOTHING, "When consensus dominates.")
    ties = condition(Outcome.TIE, "When the largest moduli are equal.")
    does_not = condition(Outcome.NON_SMOOTHING, "When another mode dominates.")

    @cached_property
    def boundaries(self) -> tuple[Any, ...]:
        """Polynomials on whose zeros alone the verdict changes, or `InputError` (`left_out`)."""
        if self.left_out:
            raise InputError(self.left_out)
        return tuple(map(self.layer.as_given, self._known_boundaries.polynomials()))

    @property
    def left_out(self) -> str:
        """Why no boundaries are computed: too many parameters in factors of such degrees."""
        layer = self.layer
        degrees = (max(x.degree for x in side) for side in (layer.value, layer.attention))
        known = self._thorough or self._conditions is not None or len(layer.parameters) <= 2
        if known or prod(degrees) < 6:
            return ""
        names = ", ".join(s.name for s in layer.parameters)
        how = "give numbers to all but two parameters by subs; of all, it is the exact verdict"
        costly = f"no closed form, and the boundaries in {names} can take minutes to hours"
        return f"{costly}\nthorough=True (--thorough) computes them; or {how}"

    @cached_property
    def _known_boundaries(self) -> Boundaries:
        return Boundaries(self.layer, self._candidates)

    # ------------------------------------------------------------------------------ conditions

    def _written(self) -> dict[Outcome, Any]:
        """Some mode of consensus exceeds every other; some other mode exceeds all of consensus."""
        known = self._candidates
        assert known is not None
        self._say_where()
        sides = known.consensus, known.quotient
        return three(
            *(
                sp.Or(*(sp.And(known.guard(one.signs), self._above(one, rest)) for one in side))
                for side, rest in (sides, sides[::-1])
            )
        )

    def _above(self, one: Any, others: Sequence[Any], has: Mapping[Any, Any] | None = None) -> Any:
        """That it exceeds the others, of which those count whose condition in `has` holds."""
        known, relations = self._candidates, []
        assert known is not None
        for other in others:
            if agree(other.signs, one.signs):
                more = {D: s for D, s in other.signs.items() if D not in one.signs}
                counts = sp.And(known.guard(more), has[other] if has else sp.true)
                relations.append(sp.Or(sp.Not(counts), known.greater(one, other)))
        return sp.And(*relations)

    def _say_where(self, never: Sequence[Any] = ()) -> None:
        """What is reduced by factors that are positive, or never 0, holds where they are."""
        positive = (sp.Gt(x, 0) for x in self.layer.positive)
        self.where = self.layer.as_given(sp.And(*positive, *(sp.Ne(x, 0) for x in never)))

    def _by_extremes(self) -> dict[Outcome, Any]:
        """Of real spectra the least and the largest eigenvalues decide, which get names (T2d).

        |1 + h a| is convex in h and in a.
        """
        ends = {}
        for letter, classes in (("h", self.layer.value), ("a", self.layer.attention)):
            if len(classes) == 1 and classes[0].degree == 1:
                ends[letter] = [classes[0].trace]
                continue
            matrix = "H" if letter == "h" else "A, without one eigenvalue 1"
            ends[letter] = [sp.Symbol(f"{letter}_{end}", real=True) for end in ("min", "max")]
            for symbol, end in zip(ends[letter], ("least", "largest"), strict=True):
                self.names[symbol] = f"the {end} eigenvalue of {matrix}"
        consensus = [1 + h for h in ends["h"]]
        quotient = [1 + h * a for h in ends["h"] for a in ends["a"]]
        return three(
            sp.Or(*(sp.And(*(sp.Gt(c**2, q**2) for q in quotient)) for c in consensus)),
            sp.Or(*(sp.And(*(sp.Gt(q**2, c**2) for c in consensus)) for q in quotient)),
        )

    @property
    def matrices(self) -> dict[str, Any]:
        """A, H, and X0 where there is one, in the user's symbols."""
        layer = self.layer
        each = zip(["A", "H", "X0"], (layer.A, layer.H, layer.X0), strict=True)
        return {name: layer.as_given(M) for name, M in each if M is not None}

    def _solved(self) -> dict[Outcome, Any] | None:
        """Solved for one parameter in which every boundary is linear.

        None where there is none, or where the order of the boundaries is not known wherever A is
        positive.
        """
        known, layer = self._candidates, self.layer
        assert known is not None
        if known.quadratics:
            return None
        table = [
            [layer.reduced(c.terms[ONE] - q.terms[ONE]) for q in known.quotient]
            for c in known.consensus
        ]
        moving = list({factor for row in table for _, rest in row for factor, _ in rest})
        inside = [s for s in layer.parameters if not layer.A.has(s)]
        for t in inside + [s for s in layer.parameters if s not in inside]:
            roots = self._ordered_roots(moving, t)
            if roots is not None:
                break
        else:
            return None
        self._say_where()

        def outcome(place: int) -> Outcome:
            """2k: below root k; 2k + 1: on it."""
            at = {
                factor: lead * ((place > 2 * k + 1) - (place < 2 * k + 1))
                for factor, (_, k, lead) in roots.items()
            }
            return outcome_of_sign(
                by_table(
                    [
                        [sign * prod(at[f] ** abs(k) for f, k in rest) for sign, rest in row]
                        for row in table
                    ]
                )
            )

        ends = {k: root for root, k, _ in roots.values()}
        return intervals(t, [sp.factor(ends[k]) for k in sorted(ends)], outcome)

    def _ordered_roots(self, moving: list[Any], t: Any) -> dict[Any, tuple[Any, int, int]] | None:
        """{factor: (its root, the place of that, sign of its leading coefficient)}."""
        roots, signs = {}, {}
        for factor in moving:
            if sp.degree(factor, t) != 1:
                return None
            lead, rest = sp.Poly(factor, t).all_coeffs()
            roots[factor], sign = -rest / lead, self.layer.sign(lead)
            if not sign:
                return None
            signs[factor] = sign
        places = {}
        for factor, root in roots.items():
            above = {other: self.layer.sign(root - other) for other in roots.values()}
            if None in above.values():
                return None
            places[factor] = root, list(above.values()).count(1), signs[factor]
        return places

    def _on_a_line(self) -> dict[Outcome, Any]:
        """One parameter: an exact verdict on each piece, cut at the roots of all boundaries."""
        (t,) = self.layer.parameters
        known = self._known_boundaries
        cuts, edges = known.polynomials(), known.edges()
        roots = real_roots([*cuts, *edges], t)
        pieces = [self.exactly({t: x}) for x in between(roots)]

        def at(place: int) -> Outcome | None:
            k, on = divmod(place, 2)
            return self.on_boundary({t: roots[k]}, *pieces[k : k + 2]) if on else pieces[k]

        conditions = intervals(t, roots, at)
        self.undecided = conditions.pop(Outcome.UNDECIDED, sp.false)
        return conditions

    def on_boundary(self, values: Mapping[Any, Any], *sides: Outcome | None) -> Outcome | None:
        """The verdict at a point of algebraic numbers, between cells of these verdicts.

        At a rational point that of fractions. Else, of generic X_0 as |rho_C - rho_Q| is
        continuous: a tie between different verdicts, the verdict of a side where floats part the
        radii by far, or UNDECIDED. None where A is no attention.
        """
        if all(x.is_Rational for x in values.values()):
            return self.exactly(values)
        if self.layer.X0 is not None:
            return Outcome.UNDECIDED
        if len(set(sides)) == 2 and set(sides) <= set(COMPARED):
            return Outcome.TIE
        known = next((side for side in sides if side is not None), None)
        if known is None or known is Outcome.TIE:
            return known
        own = {self.layer.own.get(s, s): x for s, x in values.items()}
        h, a = (
            np.linalg.eigvals(np.array(M.subs(own).evalf(30), dtype=np.float64))
            for M in (self.layer.H, self.layer.quotient)
        )
        apart = abs(1 + h).max() - abs(1 + np.outer(h, a)).max()
        # Far above what rounding does to small matrices, defective ones too.
        return known if abs(apart) > 1e-3 else Outcome.UNDECIDED

    def exactly(self, values: Mapping[Any, Any]) -> Outcome | None:
        """The verdict of fractions at a point, which asks no condition.

        None where A is no attention.
        """
        try:
            return self._exact(self.layer.read_values(values, {}))
        except InputError:
            return None

    def _exact(self, values: Mapping[Any, Any]) -> Outcome:
        return outcome_of_sign(exact_dominance(*self.layer.at(values)).comparison)

    # ------------------------------------------------------------------------------ at a point

    def subs(self, values: Mapping[Any, Any] | None = None, **more: Any) -> Any:
        """The `Outcome` at rational values of all parameters: that whose condition holds there.

        Where the conditions do not decide (outside `where`, with `names`, in the form "cells") it
        is the exact verdict of fractions, UNDECIDED where the point is too large for that. With
        values of some parameters it is the `SymbolicVerdict` on the others. values: {symbol or
        name: number}, or by keyword. Raises `InputError` for values that are not rational, and
        where A is no attention.
        """
        layer, known = self.layer, self.layer.read_values(values or {}, more)
        if len(known) < len(layer.parameters):
            parts = (M.xreplace(known) for M in (layer.A, layer.H, layer.X0) if M is not None)
            return type(self)(SymbolicLayer(*map(layer.as_given, parts)), self._thorough)
        layer.at(known)  # refused where A is no attention
        at = {layer.as_given(s): x for s, x in known.items()}
        holding = (o for o in self._conditions or () if truth(self._condition(o), at))
        decided = next(holding, None) if truth(self.where, at) else None
        return self._exact(known) if decided is None else decided

    @property
    def edges(self) -> tuple[Any, ...]:
        """Polynomials that are 0 where an entry of A is, or a denominator."""
        return tuple(map(self.layer.as_given, self._known_boundaries.edges()))

    @property
    def entries(self) -> tuple[Any, ...]:
        """The entries of A that hold parameters: all are >= 0 where A is attention."""
        return tuple(self.layer.as_given(x) for x in self.layer.A if not x.is_number)

    # ------------------------------------------------------------------------------------ cells

    def cells(self) -> list[Cell]:
        """One exact verdict for each cell of a cylindrical decomposition, without its walls.

        Of one or two parameters: the second is cut at the roots of all boundaries and edges, the
        first where their number or order can change. Raises `InputError` for more parameters: fix
        some by `subs`.
        """
        layer = self.layer
        if len(layer.parameters) > 2:
            names = ", ".join(s.name for s in layer.parameters)
            raise InputError(f"cells are of one or two parameters, not {names}: fix some by subs")
        known = self._known_boundaries
        polynomials = [*known.polynomials(), *known.edges()]
        *first, t = layer.parameters
        roots = (real_roots(critical(polynomials, s, t), s) for s in first)
        floor = [{s: x} for s, ends in zip(first, roots, strict=True) for x in between(ends)]
        cells = []
        for start in floor or [{}]:
            cut = [p.xreplace(start) for p in polynomials]
            for sample in between(real_roots(cut, t)):
                point = {**start, t: sample}
                outcome = self.exactly(point)
                if outcome is not None:
                    given = {layer.as_given(s): value for s, value in point.items()}
                    cells.append(Cell(given, outcome))
        return cells

    # ------------------------------------------------------------------------------------ words

    _open = "no closed form: the verdict changes only where one of these holds"

    def _shown(self) -> list[Outcome]:
        """The three, and what else can be."""
        more = (self._conditions or {}).items()
        return [*COMPARED, *(o for o, when in more if o not in COMPARED and when is not sp.false)]

    def latex(self) -> str:
        """The three conditions in LaTeX; in the form "cells" the boundary polynomials."""
        if self._conditions is None:
            zeros = (rf"{sp.latex(p)} = 0" for p in self.boundaries)
            return r"\begin{gathered}" + r" \\ ".join(zeros) + r"\end{gathered}"
        rows = (
            rf"\text{{{WORDS[each]}}} &\iff {sp.latex(self._condition(each))}"
            for each in self._shown()
        )
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    @property
    def stated(self) -> str:
        """What is assumed, in words."""
        undeclared = ", ".join(s.name for s in self.parameters if s.is_real is None)
        words = [f"real {undeclared}"] * bool(undeclared)
        return "; ".join(words + [said(in_ranges(x)) for x in [self.assumed] if x])

    def __str__(self) -> str:
        given = [f"  assumed: {self.stated}"] * bool(self.stated)
        if self.left_out:
            return "\n".join([self.left_out.replace("\n", "\n  "), *given])
        if self._conditions is None:
            return "\n".join([self._open, *(f"  {p} = 0" for p in self.boundaries), *given])
        shown = self._shown()
        lines = [f"{_COUNTED[len(shown)]} conditions, in closed form"]
        lines += [f"  {when(each, self._condition(each))}" for each in shown]
        if self.undecided is not sp.false:
            lines.append(f"  UNDECIDED where {said(self.layer.as_given(self.undecided))}")
        lines += [f"  {symbol}: {words}" for symbol, words in self.names.items()]
        if self.where is not sp.true:
            lines.append(f"  for {said_where(self.where)}")
        return "\n".join(lines + given)

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in self.layer.parameters)
        if self._conditions is None:
            return f"<{type(self).__name__} in {names}: cells>"
        return f"<{type(self).__name__} in {names}: {when(Outcome.SMOOTHING, self.smooths)}>"


def when(outcome: Outcome, condition: Any) -> str:
    """The condition of an outcome as a sentence."""
    word = WORDS[outcome]
    if condition in (sp.true, sp.false):
        return f"{word}: {said(condition)}"
    if outcome is Outcome.TIE and condition.has(sp.Not):
        return f"{word} iff neither of the others holds"
    # What all cases share stands once, in front of them.
    cases = [set(sp.And.make_args(case)) for case in sp.Or.make_args(condition)]
    shared = set.intersection(*cases)
    if shared and len(cases) > 1 and all(case > shared for case in cases):
        condition = sp.And(*shared, sp.Or(*(sp.And(*case - shared) for case in cases)))
    return f"{word} iff {said(condition)}"
