"""Every public name has a docstring with an example that runs as it stands."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator

import pytest

import oversmoothing


def examples(name: str) -> Iterator[doctest.DocTest]:
    """Of the name itself, and of the public methods of a class."""
    value = getattr(oversmoothing, name)
    finder = doctest.DocTestFinder(recurse=inspect.isclass(value))
    yield from (found for found in finder.find(value, name, globs={}) if found.examples)


@pytest.mark.parametrize("name", oversmoothing.__all__)
def test_the_docstring_of_a_public_name_has_an_example_that_runs(name: str) -> None:
    value = getattr(oversmoothing, name)
    assert ">>>" in (value.__doc__ or ""), f"{name} has no example"
    for example in examples(name):
        said: list[str] = []
        ran = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
        assert not ran.failed, "".join(said)


def test_the_examples_of_what_public_names_return_run() -> None:
    from oversmoothing.theory import operator
    from oversmoothing.theory.verdict.symbolic import region, symbolic_verdict as symbolic, symbols

    returned = (operator.KroneckerOperator, operator.Eigenpairs, region.Region,
                symbolic.SymbolicVerdict, symbols.symbolic)  # fmt: skip
    for value in returned:
        for example in doctest.DocTestFinder(recurse=False).find(value, globs={}):
            said: list[str] = []
            assert not doctest.DocTestRunner().run(example, out=said.append).failed, "".join(said)
