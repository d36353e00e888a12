"""Statements for all reals as evidence: a query that is unsat, with false neighbours that are sat.

    for_all("h > 0 wins at consensus", given="-1 < a; a < 1; h > 0",
            then="(1+h*a)**2 < (1+h)**2", at="h=1, a=1/2").unless(
        "h >= 0", without="h > 0", given="h >= 0", at="h=0, a=1/2")

is proved by the first query and guarded by the second: a prover that says yes to everything fails.
Beside a statement that Coq proves, false neighbours are evaluated at points, without a solver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from oversmoothing.theory.proofs.claim import Effort, Kind, Outcome
from oversmoothing.theory.proofs.query import Query
from oversmoothing.theory.proofs.solver import Answer, solve

# Conditions in infix, separated by semicolons; or several such texts.
Conditions = str | tuple[str, ...]

# a = min spec(A) of a positive row-stochastic A, n >= 2.
EIGENVALUE = "-1 < a; a < 1"

# |x| > |y| as squares. q1, p1: consensus (a = 1) at q = min h_j, p = max h_j; qa, pa: the same two
# at a = min spec(A). By T2c these four decide.
CORNERS = {
    "q1": "(1+q)**2",
    "p1": "(1+p)**2",
    "qa": "(1+q*a)**2",
    "pa": "(1+p*a)**2",
    "SMOOTHING": "(q1 > qa and q1 > pa) or (p1 > qa and p1 > pa)",
    "NON_SMOOTHING": "(qa > q1 and qa > p1) or (pa > q1 and pa > p1)",
    "TIE": "not (SMOOTHING) and not (NON_SMOOTHING)",
}


def _conditions(texts: Conditions) -> tuple[str, ...]:
    joined = ";".join([texts] if isinstance(texts, str) else texts)
    return tuple(part.strip() for part in joined.split(";") if part.strip())


def _values(text: str) -> dict[str, str]:
    """ "h=1, a=1/2" by name. Raises ValueError where a part is not a name with a fraction."""
    found = {}
    for part in filter(str.strip, text.split(",")):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = str(Fraction(value.strip()))
        except (ValueError, ZeroDivisionError):
            wanted = 'write them as "h=1, a=1/2"'
            raise ValueError(f"'{text}' gives no values: {wanted}") from None
    return found


def for_all(
    title: str,
    *,
    given: Conditions = (),
    then: str,
    at: str,
    covers: tuple[int, ...] = (),
    where: Mapping[str, str] | None = None,
) -> ForAllReals:
    """For all reals `given` implies `then` (infix, see `Query`).

    at: every variable with a value ("h=1, a=1/2"), at which the hypotheses hold; where:
    abbreviations; covers: the clauses that it proves. False neighbours: `unless`.
    """
    example = _values(at)
    query = Query(title, tuple(example), _conditions(given), then, tuple((where or {}).items()))
    return ForAllReals(query, (), example, covers)


@dataclass(frozen=True)
class Mutation:
    """A false neighbour of a query, to show that the prover is not vacuous.

    change: what was altered, in words. witness: values at which it fails, shown if the solver's own
    model is irrational.
    """

    change: str
    query: Query
    witness: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ForAllReals:
    """A query that must be unsat, with mutated ones that must be sat, each evaluated exactly.

    The hypotheses must be satisfiable too (by `example`), or unsat would mean nothing; without a
    mutated query it is open: a prover that says yes to everything would pass.
    """

    query: Query
    mutations: tuple[Mutation, ...]
    example: dict[str, str]
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.REALS

    @property
    def title(self) -> str:
        return self.query.name

    def covering(self, *clauses: int) -> ForAllReals:
        """The same query, in the proof of these clauses."""
        return replace(self, covers=clauses)

    def unless(
        self,
        change: str,
        *,
        without: Conditions = (),
        given: Conditions = (),
        then: str | None = None,
        at: str = "",
    ) -> ForAllReals:
        """The same with one more false neighbour, `change` in words.

        without: hypotheses left out; given: those that stand in their place (at the end where none
        is left out); then: another conclusion. at: a witness, every variable with a value. Raises
        ValueError where `without` names no hypothesis or `at` not the variables of the query.
        """
        dropped, added = _conditions(without), _conditions(given)
        hypotheses = self.query.hypotheses
        if unknown := set(dropped) - set(hypotheses):
            raise ValueError(f"{self.title} has no hypothesis {sorted(unknown)} to leave out")
        witness = _values(at)
        if witness and set(witness) != set(self.query.variables):
            wanted = ", ".join(f"{name}=..." for name in self.query.variables)
            raise ValueError(f"'{at}' is no witness ({change}): write it as \"{wanted}\"")
        rest = [condition for condition in hypotheses if condition not in dropped]
        place = min((hypotheses.index(condition) for condition in dropped), default=len(rest))
        mutated = replace(
            self.query,
            name=f"mutated: {change}",
            hypotheses=(*rest[:place], *added, *rest[place:]),
            conclusion=self.query.conclusion if then is None else then,
        )
        return replace(self, mutations=(*self.mutations, Mutation(change, mutated, witness)))

    def run(self, effort: Effort) -> Outcome:
        at = {name: Fraction(value) for name, value in self.example.items()}
        if not self.query.hypotheses_hold(at):
            return Outcome(False, f"the example {self.example} does not satisfy the hypotheses")
        data: dict[str, object] = {"query": self.query.describe(), "smtlib": self.query.to_smtlib()}
        answer = solve(self.query.to_smtlib(), "z3", effort.solver_limit)
        data["z3"] = _record(answer)
        if answer.result == "sat":
            shown = _model(self.query, answer)
            return Outcome(False, f"z3 finds a counterexample: {shown}", shown, data)
        second = None
        if effort.second_opinion:
            second = solve(self.query.to_smtlib(), "cvc5", effort.solver_limit)
            data["cvc5"] = _record(second)
            if second.result == "sat":
                return Outcome(False, "cvc5 finds a counterexample where z3 does not", None, data)
        if "unsat" not in (answer.result, second.result if second else None):
            return Outcome(None, f"z3: {answer.result} after {answer.seconds:.2f} s", None, data)
        words = [f"z3 {answer.result} in {answer.seconds:.3f} s"]
        if second is not None:
            words.append(f"cvc5 {second.result} in {second.seconds:.3f} s")
        if not self.mutations:
            said = f"{words[0]}, but there is no false neighbour: add .unless(...)"
            return Outcome(None, said, None, data)
        mutated = []
        for mutation in self.mutations:
            shown, failure = _mutated(mutation, effort)
            if failure is not None:
                return Outcome(False, failure, None, data)
            mutated.append({"change": mutation.change, "counterexample": shown})
            words.append(f"mutated ({mutation.change}): sat at {shown}")
        data["mutations"] = mutated
        return Outcome(True, "; ".join(words), None, data)


def _record(answer: Answer) -> dict[str, object]:
    return {"result": answer.result, "seconds": round(answer.seconds, 4)}


def _rational(model: dict[str, str]) -> dict[str, Fraction] | None:
    try:
        return {name: Fraction(value) for name, value in model.items()}
    except ValueError:
        return None


def _model(query: Query, answer: Answer) -> str:
    values = _rational(answer.model)
    shown = ", ".join(f"{name} = {value}" for name, value in sorted(answer.model.items()))
    if values is None:
        return shown
    values |= {name: Fraction(0) for name in query.variables if name not in values}
    if not query.hypotheses_hold(values) or query.conclusion_holds(values):
        raise ArithmeticError(f"the model {shown} of {query.name} is not a counterexample")
    return shown


def _mutated(mutation: Mutation, effort: Effort) -> tuple[str, str | None]:
    """The counterexample to a mutated query, exactly checked; or what went wrong."""
    answer = solve(mutation.query.to_smtlib(), "z3", effort.solver_limit)
    if answer.result != "sat":
        return "", f"the mutated query ({mutation.change}) is {answer.result}, it must be sat"
    if mutation.witness:
        values = {name: Fraction(value) for name, value in mutation.witness.items()}
        if not mutation.query.hypotheses_hold(values) or mutation.query.conclusion_holds(values):
            return "", f"the witness {mutation.witness} is no counterexample ({mutation.change})"
        return ", ".join(f"{k} = {v}" for k, v in mutation.witness.items()), None
    if _rational(answer.model) is None:
        return (
            "",
            f"the model of the mutated query ({mutation.change}) is irrational: add a witness",
        )
    return _model(mutation.query, answer), None


@dataclass(frozen=True)
class Sharp:
    """A query whose false neighbours are evaluated, each at its witness; it covers no clause.

    At a witness every hypothesis of the neighbour holds, its conclusion fails, and the statement
    itself is not violated; at the example the statement holds, hypotheses and conclusion.
    """

    stated: ForAllReals
    covers: tuple[int, ...] = ()
    kind: Kind = Kind.SHARP

    def __post_init__(self) -> None:
        """Raises ValueError where there is no neighbour, or a neighbour without a witness."""
        if not self.stated.mutations:
            raise ValueError(f"'{self.title}' has no false neighbour")
        for mutation in self.stated.mutations:
            if not mutation.witness:
                raise ValueError(f"the neighbour '{mutation.change}' has no point: add at `...`")

    @property
    def title(self) -> str:
        return f"sharp: {self.stated.title}"

    def run(self, effort: Effort) -> Outcome:
        query = self.stated.query
        data: dict[str, object] = {"query": query.describe()}
        example = _point(self.stated.example)
        if not (query.hypotheses_hold(example) and query.conclusion_holds(example)):
            return Outcome(False, f"it does not hold at its example {self.stated.example}")
        shown = []
        for mutation in self.stated.mutations:
            at, words = _point(mutation.witness), _said(mutation.witness)
            if query.hypotheses_hold(at) and not query.conclusion_holds(at):
                return Outcome(False, f"it is violated at {words}", words, data)
            if not mutation.query.hypotheses_hold(at) or mutation.query.conclusion_holds(at):
                return Outcome(False, f"{words} does not violate: {mutation.change}", None, data)
            shown.append(f"false with {mutation.change}: at {words}")
        return Outcome(True, "; ".join(shown), None, data)


def _point(values: dict[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(value) for name, value in values.items()}


def _said(values: dict[str, str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
