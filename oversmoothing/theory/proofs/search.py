"""Searched evidence: drawn instances on which a claim's hypotheses and then its law are run."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import (
    HealthCheck,
    Phase,
    Verbosity,
    assume,
    given,
    seed as with_seed,
    settings,
    strategies as st,
)
from hypothesis.errors import Unsatisfiable, UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from oversmoothing.theory.proofs.claim import Effort, Hypothesis, Instance, Kind, Outcome
from oversmoothing.theory.proofs.evidence import executed, file_of, raised_in, read, show, stated_at
from oversmoothing.theory.proofs.strategies import cases

# The instance that a drawn value stands for: (A, H) or (A, H, X0).
At = Callable[..., tuple[Any, ...]]

_CHOICE = st.integers(0, 99)


@dataclass
class _Box:
    """What was searched: the largest of all instances that counted."""

    n: int = 0
    d: int = 0
    size: float = -1.0
    denominator: int = 1
    exact: bool = True
    zeros: bool = False
    # By name, h or a, and size: matrices with these eigenvalues.
    spectra: dict[tuple[str, int], list[Any]] = field(default_factory=dict)

    def take(self, drawn: tuple[Any, ...], instance: tuple[Any, ...] | None) -> None:
        """One more instance, (A, H) or (A, H, X0), or where that is None what was drawn."""
        if instance is not None:
            self.n, self.d = max(self.n, len(instance[0])), max(self.d, len(instance[1]))
            self.zeros = self.zeros or any(x == 0 for row in instance[0] for x in row)
            last = instance[0][-1]
            rest = [[x - y for x, y in zip(row, last, strict=True)][:-1] for row in instance[0]]
            for name, M in (("h", instance[1]), ("a", rest[:-1])):
                self.spectra.setdefault((name, len(M)), []).append(np.array(M, float))
        self._entries(drawn if instance is None else instance)

    def _entries(self, value: Any) -> None:
        if type(value) is Fraction:
            # Quicker than to ask what kind of number it is.
            self.size = max(self.size, abs(float(value)))
            self.denominator = max(self.denominator, value.denominator)
        elif isinstance(value, list | tuple):
            for each in value:
                self._entries(each)
        elif isinstance(value, np.ndarray):
            self._entries(value.ravel().tolist())
        elif isinstance(value, numbers.Complex) and not isinstance(value, bool):
            self.size = max(self.size, float(abs(value)))
            self.exact = self.exact and isinstance(value, numbers.Rational)
            self.denominator = max(self.denominator, getattr(value, "denominator", 1))

    def _drawn(self, name: str) -> Iterator[str]:
        """ "h from -1.049 to -0.001 (312 values)", not of those that never differ."""
        stacks = [np.stack(same) for (of, n), same in self.spectra.items() if of == name and n]
        if not stacks or not all(np.isfinite(stack).all() for stack in stacks):
            return
        values = np.concatenate([np.linalg.eigvals(stack).ravel() for stack in stacks])
        # What a float makes of a repeated eigenvalue differs by the root of a rounding.
        digits = 5 - math.ceil(math.log10(np.abs(values).max() or 1.0))
        values = np.unique(values.real.round(digits) + 1j * np.abs(values.imag.round(digits)))
        if len(values) > 1:
            low, high = f"{values.real.min():.4g}", f"{values.real.max():.4g}"
            real = "Re " * bool(values.imag.any())
            yield f"{real}{name} from {low} to {high} ({len(values)} values)"

    def words(self) -> str:
        """ "n <= 4, d <= 3, h from -3 to 2 (80 values), no zero in A, entries of size at most 3",
        and their denominators."""
        said = [f"{name} <= {most}" for name, most in (("n", self.n), ("d", self.d)) if most]
        said += [*self._drawn("h"), *self._drawn("a")]
        if self.n > 1 and not self.zeros:
            said.append("no zero in A")
        if self.size >= 0:
            below = f" and with denominators up to {self.denominator}" if self.exact else ""
            said.append(f"entries of size at most {self.size:.4g}{below}")
        return ", ".join(said)


class _Enough(KeyboardInterrupt):
    """As many instances were tried as were asked for: Hypothesis looks no more at the example."""


class _Unusable(Exception):
    """What was drawn, or what the law answered, is nothing that a search can use."""


@dataclass(frozen=True)
class Searched:
    """hypothesis draws (spectra first, matrices from them), hunts a violation and shrinks it.

    law takes what is drawn, the entries of a tuple one by one, and says whether the statement holds
    on it: it returns True or False, or asserts; with a tolerance it returns by how much the
    statement fails. Another error than a failed assertion is one of the law, no violation. It may
    call hypothesis.assume. at: the instance that is drawn, on which the hypotheses of the claim are
    run: what does not satisfy them is not counted. None: the law needs none of them. against: the
    clauses that a violation refutes; none: all. box: in words what is searched: n, d,
    entries and the number of instances.
    """

    title: str
    draws: SearchStrategy[Any]
    law: Callable[..., object]
    at: At | None = None
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.SEARCHED
    against: tuple[int, ...] = ()
    tolerance: float | Fraction | None = None

    def __post_init__(self) -> None:
        if not callable(self.law):
            raise ValueError(f"'{self.title}' needs a law, a function, not {self.law!r:.80}")
        if not isinstance(self.draws, SearchStrategy):
            raise ValueError(
                f"'{self.title}' draws from a strategy, like draw.cases() with its brackets, not "
                f"from {self.draws!r:.80}"
            )

    def __call__(self, *drawn: Any) -> object:
        """The law at one instance."""
        return self.law(*drawn)

    def run(self, effort: Effort) -> Outcome:
        return self.search(effort.examples, effort.seed)

    def search(
        self, examples: int, seed: int, hypotheses: Sequence[Hypothesis] = (), strict: bool = False
    ) -> Outcome:
        """Try that many examples from that seed, on the hypotheses. Deterministic.

        A tie that refutes what is said of the verdict is a border case: where one does, what is no
        tie is looked for too; strict: nothing else.
        """
        tried = filtered = asserted = answered = silent = 0
        # What was drawn last where the law failed, and where it could not be asked: the shrunk.
        worst: list[tuple[Any, ...]] = []
        box = _Box()
        unusable: list[tuple[tuple[Any, ...], Exception]] = []

        rounds = settings(
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )

        def attempt(value: Any) -> None:
            nonlocal tried, filtered, asserted, answered, silent
            drawn = value if isinstance(value, tuple) else (value,)
            try:
                assume(self._admitted(drawn, hypotheses))
                if asserted or answered:
                    told = self.law(*self._copied(drawn))
                else:
                    told, asserted = executed(self.law, *self._copied(drawn))
                if told is None and self.tolerance is None:
                    silent += 1
                else:
                    answered += 1
                    assert self._holds(told)
            except UnsatisfiedAssumption:
                filtered += not worst
                raise
            except AssertionError:
                assume(not strict or _verdict_at(drawn)[:3] != "TIE")
                worst[:] = [drawn]
                raise
            except Exception as error:
                unusable[:] = [(drawn, error)]
                raise
            if not worst:
                tried += 1
                box.take(drawn, None if self.at is None else self.at(*drawn))

        @st.composite
        def several(pick: st.DrawFn) -> None:
            # Tried while they are drawn, which is cheaper than to draw each by itself. At the
            # simplest choice, 0, one instance alone.
            wanted = each if pick(_CHOICE) else 1
            before = tried
            for _ in range(10 * wanted):
                if tried == examples:
                    raise _Enough
                with suppress(UnsatisfiedAssumption):
                    attempt(pick(self.draws))
                if tried == before + wanted:
                    return
            assume(tried > before)

        # Hypothesis changes a part of each example five times before it draws one afresh, but of
        # the first ten: two thirds are drawn in nine of these, several instances in each.
        alone = -(-examples // 3)
        for begin in (0, *range(alone, examples, 10)):
            before, missed, each = tried, filtered, -(-(examples - tried) // 8)
            try:
                asked = given(several())(lambda _: None) if begin else given(self.draws)(attempt)
                run = settings(rounds, max_examples=9 if begin else alone)(asked)
                with_seed(seed + (begin << 32))(run)()
            except (Unsatisfiable, _Enough):
                pass
            except Exception:
                if not worst and not unusable:
                    raise
            few = tried - before < (1 if begin else alone) and filtered == missed
            if worst or unusable or few or tried in (0, examples):
                break
        data: dict[str, Any] = {"examples": tried, "filtered": filtered, "box": box.words()}
        beside = f" ({filtered} more miss a hypothesis)" if filtered else ""
        if worst:
            agreed = f"after {tried} example{'s' * (tried != 1)} that agreed"
            when = agreed if tried else "by the first example"
            outcome = self._violated(worst[0], hypotheses, f"{when}{beside}", data)
            if "(here a TIE" in (outcome.counterexample or ""):
                other = self.search(examples, seed, hypotheses, strict=True)
                if other.holds is False:
                    more = f"{other.detail}; a tie violates it too: {outcome.counterexample}"
                    outcome = replace(other, detail=more)
            also = f"; elsewhere {self._unusable(*unusable[0])}" if unusable else ""
            return replace(outcome, detail=f"{outcome.detail}{also}")
        if unusable:
            return Outcome(None, self._unusable(*unusable[0]), None, {**data, "unusable": True})
        if tried == 0:
            words = "no drawn example meets the hypotheses: nothing was searched; draw what does"
            return Outcome(None, words, None, data)
        if not asserted and not answered:
            words = (
                "the law asserted nothing and returned None on every example: return whether it "
            )
            return Outcome(None, f"{stated_at(self.law)}{words}holds", None, data)
        if silent and answered:
            words = f"the law returned None on {silent} of {tried} examples: return whether it "
            return Outcome(None, f"{stated_at(self.law)}{words}holds on every path", None, data)
        if not self.at and hypotheses:
            beside = ", whatever the hypotheses"
        within = f": {box.words()}" if box.words() else ""
        return Outcome(True, f"{tried} examples{beside}, none violates it{within}", None, data)

    def _admitted(self, drawn: tuple[Any, ...], hypotheses: Sequence[Hypothesis]) -> bool:
        """Whether the instance satisfies the hypotheses."""
        if self.at is None:
            return True
        instance = Instance(*self.at(*drawn))
        try:
            return all(hypothesis.holds(instance) for hypothesis in hypotheses)
        except AssertionError as error:
            raise _Unusable(f"a hypothesis cannot be asked ({error})") from error

    def _copied(self, drawn: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same, which a law may change without changing what is printed."""
        if isinstance(self.at, _Whole):
            return tuple([list(row) for row in part] for part in drawn)
        return drawn

    def _holds(self, told: object) -> bool:
        """What the law's answer says. Raises `_Unusable` where it says nothing."""
        if self.tolerance is None:
            if isinstance(told, bool | np.bool_):
                return bool(told)
            raise _Unusable(f"it returned {_kind(told)}: return True or False, as all(...) does")
        if isinstance(told, numbers.Real) and not isinstance(told, bool) and not math.isnan(told):
            return bool(told <= self.tolerance)
        raise _Unusable(
            f"it returned {_kind(told)}: with a tolerance return by how much the statement fails"
        )

    def _unusable(self, drawn: tuple[Any, ...], error: Exception) -> str:
        """What went wrong in asking the law, and where, in a sentence."""
        try:
            inspect.signature(self.law).bind(*drawn)
        except TypeError as mismatch:
            many = f"the {len(drawn)} drawn" if len(drawn) > 1 else "what is drawn"
            return f"{stated_at(self.law)}the law cannot take {many}: {mismatch}"
        except ValueError:  # it has no signature
            pass
        if isinstance(error, _Unusable):
            return f"{stated_at(self.law)}the law cannot be used: {error}, at {self._shown(drawn)}"
        what = f"{type(error).__name__}: {error}".strip().rstrip(":")
        place = raised_in(error, file_of(self.law))
        return f"the law cannot be asked: {place}{what}, at {self._shown(drawn)}"

    def _violated(
        self,
        drawn: tuple[Any, ...],
        hypotheses: Sequence[Hypothesis],
        after: str,
        data: dict[str, Any],
    ) -> Outcome:
        """What was found, after another look: of a whole instance, at the numbers as printed."""
        shown = self._shown(drawn)
        again = drawn
        if self._is_whole(drawn):
            again = tuple(read(show(part)) for part in drawn)
            names = ("A", "H", "X0")
            data["instance"] = {
                name: [[str(x) for x in row] for row in part]
                for name, part in zip(names, again, strict=False)
            }
        if not self._admitted(again, hypotheses):
            return Outcome(None, f"violated at {shown}, where the hypotheses fail", None, data)
        try:
            told = self.law(*self._copied(again))
            if (told is None and self.tolerance is None) or self._holds(told):
                words = "the law fails once and holds the next time: it must depend on its instance"
                return Outcome(None, f"{words} alone ({shown})", None, data)
            said = f"the law returns {show(told)}"
            if self.tolerance is not None:
                said += f", more than {show(self.tolerance)}"
        except AssertionError as error:
            said = str(error).splitlines()[0] if str(error) else "violated"
        words = f"violated {after}: {shown}: {said}; checked again"
        if self._is_whole(drawn):
            words = (
                f"violated {after}, shrunk; checked again at the numbers as printed: every "
                f"hypothesis holds, {said}"
            )
            if len(again[0]) == 1:
                words += (
                    ". This is one token, which differs from none; to ask of two or more, draw A "
                    "from draw.attention(2): draw.cases(A=draw.attention(2))"
                )
            if _asks_for_a_verdict(self.law):
                said = _verdict_at(again)
                shown += f" (here {'a ' * said.startswith('TIE')}{said})"
            return Outcome(False, words, shown, data)
        return Outcome(False, words, f"{shown}: {said}", data)

    def _is_whole(self, drawn: tuple[Any, ...]) -> bool:
        """Whether matrices of fractions are drawn, A, H and perhaps X_0, and nothing else."""
        return isinstance(self.at, _Whole) and all(
            isinstance(x, Fraction) for part in drawn for row in part for x in row
        )

    def _shown(self, drawn: tuple[Any, ...]) -> str:
        if self._is_whole(drawn):
            named = zip(("A", "H", "X_0"), drawn, strict=False)
            return ", ".join(f"{name} = {show(part)}" for name, part in named)
        return show(drawn[0] if len(drawn) == 1 else drawn)


def _asks_for_a_verdict(law: Any) -> bool:
    """Whether `verdict` is named in a law, or in a function of its file that it names."""
    law = inspect.unwrap(law)
    known: dict[str, Any] = getattr(law, "__globals__", {})
    codes = [getattr(law, "__code__", None)]
    for code in codes:
        if code is None:
            continue
        if "verdict" in code.co_names:
            return True
        named: list[Any] = [known.get(name) for name in code.co_names]
        own = (f.__code__ for f in named if getattr(f, "__globals__", None) is known)
        inside = (part for part in code.co_consts if inspect.iscode(part))
        codes += dict.fromkeys(c for c in (*own, *inside) if c not in codes)
    return False


def _verdict_at(drawn: tuple[Any, ...]) -> str:
    """ "TIE, rho_C = 1, rho_Q = 1" of (A, H)."""
    from oversmoothing.theory.verdict.verdict import verdict

    answer = verdict(A=drawn[0], H=drawn[1])
    radii = (("rho_C", answer.rho_consensus), ("rho_Q", answer.rho_quotient))
    named = (f"{name} = {radius:.6g}" for name, radius in radii if radius is not None)
    return ", ".join([answer.verdict, *named])


class _Whole:
    """The instance of a law about (A, H) or (A, H, X0): itself."""

    def __call__(self, *drawn: Any) -> tuple[Any, ...]:
        if len(drawn) not in (2, 3) or not all(isinstance(part, list) for part in drawn):
            raise _Unusable(
                "by.law draws (A, H) or (A, H, X0), as draw.cases() does; by.searched draws else"
            )
        return drawn


def _kind(told: object) -> str:
    """The answer of a law in words."""
    if told is None:
        return "None"
    if isinstance(told, np.ndarray | list | tuple):
        return f"{'an array' if isinstance(told, np.ndarray) else f'a {type(told).__name__}'}"
    return f"{told!r:.40}, of type {type(told).__name__}"


def law(
    holds: Callable[..., object],
    draws: SearchStrategy[Any] | None = None,
    *,
    against: tuple[int, ...] = (),
    title: str = "",
    tolerance: float | Fraction | None = None,
) -> Searched:
    """A search for an instance that satisfies the claim's hypotheses and violates the law.

    holds: the law, a function of (A, H) or (A, H, X0), nested fractions [n, n], [d, d] and [n, d],
    that returns whether the statement holds there. draws: a strategy of (A, H, X0), or (A, H) for a
    law of two, which sees no X0; draw.cases() where none is given. against: the clauses that a
    violation refutes, all where none is named. tolerance: for a law in floats, which returns by how
    much the statement fails: a violation is what fails by more.
    """
    name = title or str(getattr(holds, "__doc__", None) or getattr(holds, "__name__", "law"))
    draws = cases() if draws is None else draws
    try:
        if len(inspect.signature(holds).parameters) == 2 and isinstance(draws, SearchStrategy):
            draws = draws.map(lambda drawn: drawn[:2] if isinstance(drawn, tuple) else drawn)
    except (TypeError, ValueError):  # no function, which Searched refuses, or without a signature
        pass
    return Searched(
        name.strip().splitlines()[0].rstrip("."),
        draws,
        holds,
        _Whole(),
        against=against,
        tolerance=tolerance,
    )


def searched(
    title: str, law: Callable[..., object], *draws: SearchStrategy[Any], at: At | None = None
) -> Searched:
    """A search in which the law takes what each strategy draws; of a single one that draws tuples,
    their entries."""
    return Searched(title, draws[0] if len(draws) == 1 else st.tuples(*draws), law, at)
