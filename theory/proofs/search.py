"""Searched evidence: drawn instances on which a claim's hypotheses and then its law are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
from oversmoothing.theory.proofs.evidence import show
from oversmoothing.theory.proofs.executed import executed

# The instance that a drawn value stands for: (A, H) or (A, H, X0).
At = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Searched:
    """hypothesis draws (spectra first, matrices from them), hunts a violation and shrinks it.

    law takes what is drawn, the entries of a tuple one by one, and raises AssertionError where the
    statement fails on it; it may call hypothesis.assume. at: the instance that is drawn, on which
    the hypotheses of the claim are run: what does not satisfy them is not counted. None: the law
    needs none of them.
    """

    title: str
    draws: SearchStrategy[Any]
    law: Callable[..., object]
    at: At | None = None
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.SEARCHED

    def run(self, effort: Effort) -> Outcome:
        return self.search(effort.examples, effort.seed)

    def search(self, examples: int, seed: int, hypotheses: Sequence[Hypothesis] = ()) -> Outcome:
        """Try that many examples from that seed, on the hypotheses. Deterministic."""
        tried = asserted = 0
        worst: list[object] = []

        @with_seed(seed)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(self.draws)
        def attempt(value: Any) -> None:
            nonlocal tried, asserted
            drawn = value if isinstance(value, tuple) else (value,)
            if self.at is not None:
                instance = Instance(*self.at(*drawn))
                assume(all(hypothesis.holds(instance) for hypothesis in hypotheses))
            try:
                if asserted:
                    self.law(*drawn)
                else:
                    _, asserted = executed(self.law, *drawn)
            except UnsatisfiedAssumption:
                raise
            except Exception:
                worst[:] = [value]
                raise
            tried += 1

        try:
            attempt()
        except Unsatisfiable:
            tried = 0
        except Exception as error:  # whatever the law raises is the violation
            if not worst:
                raise
            shown = f"{show(worst[0])}: {str(error).splitlines()[0] if str(error) else 'violated'}"
            return Outcome(False, f"violated after {tried} examples: {shown}", shown)
        if tried == 0:
            return Outcome(None, "every drawn example was filtered out: nothing was searched")
        if not asserted:
            return Outcome(None, "the law asserted nothing on any example")
        beside = "" if self.at or not hypotheses else ", whatever the hypotheses"
        return Outcome(
            True, f"{tried} examples{beside}, none violates it", None, {"examples": tried}
        )


def searched(
    title: str, law: Callable[..., object], *draws: SearchStrategy[Any], at: At | None = None
) -> Searched:
    """A search in which the law takes what each strategy draws; of a single one that draws tuples,
    their entries."""
    return Searched(title, draws[0] if len(draws) == 1 else st.tuples(*draws), law, at)
