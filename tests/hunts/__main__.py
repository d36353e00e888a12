"""`python -m tests.hunts KIND N --seed S`: N sequences against a certificate."""

from __future__ import annotations

import argparse
import sys

from .sequences import HUNTS, hunt


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hunts", description=__doc__)
    parser.add_argument("kind", choices=HUNTS)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first sequence")
    options = parser.parse_args(arguments)
    found = hunt(options.kind, options.count, options.seed, options.first)
    for name, share in found.violations[:20]:
        print(f"{name}: {share:.12g} of the bound")
    print(
        f"{options.kind}: {found.sequences} sequences, {len(found.violations)} violations, the "
        f"tightest reaches {found.tightest:.9f} of its bound"
    )
    return int(bool(found.violations))


if __name__ == "__main__":
    sys.exit(main())
