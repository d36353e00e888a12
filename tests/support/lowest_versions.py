"""The lowest version of everything that pyproject.toml allows, as pip's constraints:

python -m tests.support.lowest_versions > constraints-lowest.txt
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = """\
# The lowest version of each package that pyproject.toml allows: `make test-lowest` runs with them.
# Written by `python -m tests.support.lowest_versions`, held against pyproject.toml by a test.
"""
_LOWEST = re.compile(r"([A-Za-z0-9._-]+)>=([0-9][0-9.]*)(,.*)?")


def lowest() -> dict[str, str]:
    """Package -> its lower bound, of the dependencies and of every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        asked += [each for each in extra if not each.startswith(f"{project['name']}[")]
    found: dict[str, str] = {}
    for each in asked:
        match = _LOWEST.fullmatch(each)
        if match is None:
            raise ValueError(f"{each}: a lower bound first, as in name>=1.2")
        if found.setdefault(match[1], match[2]) != match[2]:
            raise ValueError(f"{match[1]} has two lower bounds")
    return dict(sorted(found.items()))


def constraints() -> str:
    """What constraints-lowest.txt holds."""
    return HEAD + "".join(f"{name}=={version}\n" for name, version in lowest().items())


if __name__ == "__main__":
    print(constraints(), end="")
