"""Statements of your own as tests of your own: strategies, hypotheses, and `check`.

    from oversmoothing.testing import Claim, by, check, draw, exact, given

In a file that pytest collects a `Claim` at the top is a test by itself, of this package's plugin:
it fails with the shrunk counterexample as matrices that can be typed, and no traceback. Elsewhere
`check(claim)` raises `Refuted`, an AssertionError, with the same words. A check that passes has
found no counterexample, or a proof: `check` returns which, as the claim's status.
"""

from collections.abc import Mapping
from typing import Any

from oversmoothing.theory.proofs.claim import Effort, Status
from oversmoothing.theory.proofs.kit import Claim, by, draw, exact, given
from oversmoothing.theory.proofs.ledger import run_claim

__all__ = ["Claim", "Refuted", "by", "check", "draw", "exact", "given"]


class Refuted(AssertionError):
    """A claim fails: the message has the counterexample as matrices that can be typed.

    instance: {"A": ..., "H": ..., "X0": ...} in fractions as text, as `oversmoothing.verdict` takes
    them; empty where the law is about something else.
    """

    def __init__(self, words: str, instance: Mapping[str, Any]) -> None:
        super().__init__(words)
        self.instance = dict(instance)


def check(claim: Claim, *, examples: int = 200, seed: int = 0) -> Status:
    """Run the evidence of a claim, its searches with so many examples from that seed.

    Returns the status: that of a search that found nothing is "undecided", for a search is no
    proof. Raises `Refuted` where a piece of evidence fails, and where one could not be asked (no
    drawn instance meets the hypotheses, a law that raises): such a test would say nothing.

    >>> from oversmoothing.testing import Claim, by, check, draw, exact, given
    >>> def grows(A, H, X0):
    ...     return exact.squared_norms(exact.layer(A, H, X0))[0] >= exact.squared_norms(X0)[0]
    >>> claim = Claim(
    ...     name="grows",
    ...     clauses=("No layer makes HFC smaller.",),
    ...     hypotheses=(given.POSITIVE,),
    ...     evidence=(by.law(grows, draw.cases()),),
    ... )
    >>> try:
    ...     check(claim)
    ... except AssertionError as error:
    ...     print(str(error).splitlines()[0])
    grows is refuted: No layer makes HFC smaller.
    """
    entry = run_claim(claim, Effort(examples=examples, seed=seed))
    for finding in entry.findings:
        if finding.outcome.holds is True or finding.outcome.absent:
            continue
        instance = finding.outcome.data.get("instance", {})
        verb = "is refuted" if finding.outcome.holds is False else "could not be asked"
        lines = [f"{claim.name} {verb}: {' '.join(claim.clauses)}", finding.outcome.detail]
        lines += [f"{name} = {value!r}" for name, value in instance.items()]
        if finding.outcome.counterexample and not instance:
            lines.append(finding.outcome.counterexample)
        raise Refuted("\n".join(lines), instance)
    return entry.status
