"""The plugin of pytest: a `Claim` at the top of a test file is a test, see `oversmoothing.testing`.

It imports nothing of the package before it meets a claim. `--claim-examples N` and `--claim-seed N`
say how much is searched.
"""

from collections.abc import Iterator
from typing import Any

import pytest

_HOME = "oversmoothing.theory.proofs.claim"


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many examples a search of a claim tries, and from which seed."""
    group = parser.getgroup("oversmoothing")
    group.addoption("--claim-examples", type=int, default=200, metavar="N",
                    help="examples that a search of a claim tries")  # fmt: skip
    group.addoption("--claim-seed", type=int, default=0, metavar="N",
                    help="seed of the searches of claims")  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: Any, name: str, obj: Any) -> Any:
    """A claim that the file itself makes, by whatever name."""
    if type(obj).__module__ == _HOME and type(obj).__name__ == "Claim":
        return ClaimItem.from_parent(collector, name=name, claim=obj)
    return None


class ClaimItem(pytest.Item):
    """One claim."""

    def __init__(self, *, claim: Any, **given: Any) -> None:
        super().__init__(**given)
        self.claim = claim

    def runtest(self) -> None:
        """Its evidence, searches as often as the options say."""
        from oversmoothing.testing import check

        options = self.config.option
        check(self.claim, examples=options.claim_examples, seed=options.claim_seed)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """The words of a refutation; of anything else the traceback."""
        from oversmoothing.testing import Refuted

        if isinstance(excinfo.value, Refuted):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """The name in the report: that of the claim."""
        return self.path, None, f"claim {self.claim.name}"


def pytest_report_header(config: pytest.Config) -> Iterator[str]:
    """Nothing, unless the options were given."""
    if config.option.claim_examples != 200 or config.option.claim_seed:
        yield f"claims: {config.option.claim_examples} examples, seed {config.option.claim_seed}"
