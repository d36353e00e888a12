"""What each test costs, and which are left to `make test-all`.

`OVERSMOOTHING_COSTS=FOLDER pytest` writes a line a test: its processor seconds, those of the
processes that it starts and of its fixtures included. `python -m tests.costs FOLDER` makes
`slow.txt` of them: the tests above LINE seconds, which `make test` leaves out (`-m "not slow"`).
Of a test function with several parameters the cheapest stays where it costs less than KEPT seconds,
so that most laws are asked in either run; one without, where it costs less than ALONE. What was not
measured stays on its side of the line.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

SLOW = Path(__file__).with_name("slow.txt")
# Processor seconds.
LINE, ALONE, KEPT = 0.4, 1.5, 8.0


def function(name: str) -> str:
    """The test function of a parameter: 'file::test[a]' is one of 'file::test'."""
    return name.partition("[")[0]


def listed() -> frozenset[str]:
    lines = SLOW.read_text("utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def slow(costs: Mapping[str, float]) -> list[str]:
    """What `make test` leaves out."""
    by_function: dict[str, list[str]] = defaultdict(list)
    for name in costs:
        by_function[function(name)].append(name)
    out: list[str] = []
    for names in by_function.values():
        beyond = [name for name in names if costs[name] > LINE]
        cheapest = min(names, key=lambda name: costs[name])
        if cheapest in beyond and costs[cheapest] < (KEPT if len(names) > 1 else ALONE):
            beyond.remove(cheapest)
        out += beyond
    return sorted(out)


def read(folder: Path) -> dict[str, float]:
    """Seconds by test; of one that ran several times the least."""
    costs: dict[str, float] = {}
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text("utf-8").splitlines():
            seconds, _, name = line.partition("\t")
            costs[name] = min(float(seconds), costs.get(name, float("inf")))
    return costs


def _spent() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    folder = os.environ.get("OVERSMOOTHING_COSTS")
    before = _spent()
    result = yield
    if folder:
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        Path(folder).mkdir(parents=True, exist_ok=True)
        with (Path(folder) / f"{worker}-{os.getpid()}.tsv").open("a", encoding="utf-8") as file:
            file.write(f"{_spent() - before:.3f}\t{item.nodeid}\n")
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Mark what is listed. Of files that are collected whole, a name that is no test's is an error:
    a test that was renamed would come back into `make test`."""
    names = listed()
    if not any("::" in word for word in config.args):
        collected = {item.nodeid for item in items}
        files = {name.partition("::")[0] for name in collected}
        gone = {n for n in names - collected if n.partition("::")[0] in files}
        if gone:
            raise pytest.UsageError(f"tests/slow.txt names no test: {', '.join(sorted(gone))}")
    for item in items:
        if item.nodeid in names:
            item.add_marker(pytest.mark.slow)


def main(folder: str) -> None:
    costs = read(Path(folder))
    names = sorted({*slow(costs), *(listed() - costs.keys())})
    head = "# Left to `make test-all`; written by `python -m tests.costs FOLDER`.\n"
    SLOW.write_text(head + "".join(f"{name}\n" for name in names), "utf-8")
    rest = sum(costs[name] for name in costs.keys() - set(names))
    print(f"{len(costs)} tests, {sum(costs.values()):.0f} s of processor time")
    left = len(costs.keys() - set(names))
    print(f"slow: {len(names)} tests; left of those measured: {left} tests, {rest:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1])
