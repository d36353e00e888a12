"""Every public name has a docstring with an example that runs as it stands."""

import doctest
import inspect

import pytest

import oversmoothing


def succeeds(example: doctest.DocTest) -> None:
    said: list[str] = []
    assert not doctest.DocTestRunner().run(example, out=said.append).failed, "".join(said)


@pytest.mark.parametrize("name", oversmoothing.__all__)
def test_the_docstring_of_a_public_name_has_an_example_that_runs(name: str) -> None:
    value = getattr(oversmoothing, name)
    assert ">>>" in (value.__doc__ or ""), f"{name} has no example"
    finder = doctest.DocTestFinder(recurse=inspect.isclass(value))
    for example in finder.find(value, name, globs={}):  # of a class, its public methods too
        succeeds(example)


def test_the_examples_of_what_public_names_return_run() -> None:
    from oversmoothing.theory import operator
    from oversmoothing.theory.verdict.symbolic import region, symbolic_verdict as symbolic, symbols

    returned = (operator.KroneckerOperator, operator.Eigenpairs, region.Region,
                symbolic.SymbolicVerdict, symbols.symbolic)  # fmt: skip
    for value in returned:
        for example in doctest.DocTestFinder(recurse=False).find(value, globs={}):
            succeeds(example)
