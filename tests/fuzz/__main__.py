"""`python -m tests.fuzz 20000 --seed S`: exit status 1 where a run went wrong; each is printed."""

import argparse
import faulthandler
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.fuzz.runs import SECONDS, SHARES, draw, perform

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="The number of the first run.")
    parser.add_argument("--only", choices=list(SHARES), help="Runs of this command alone.")
    given = parser.parse_args()
    ended: Counter[str] = Counter()
    slowest, wrong = (0.0, -1), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.first, given.first + given.runs):
            run = draw(given.seed, number, given.only)
            # What no signal stops ends here, with the place where it hangs.
            print(f"\r{number} ", end="", file=sys.stderr, flush=True)
            faulthandler.dump_traceback_later(SECONDS + 30, exit=True)
            found = perform(run, Path(folder) / "run")
            faulthandler.cancel_dump_traceback_later()
            ended[f"{run.words[0]} {found.status}"] += 1
            slowest = max(slowest, (found.seconds, number))
            if found.wrong:
                wrong += 1
                words = [word if len(word) < 80 else word[:80] + "..." for word in run.words]
                print(f"\nrun {number}: {found.wrong}\n  {words}")
                for name, content in run.files.items():
                    print(f"  {name}: {content[:400]!r}")
                print(f"  stderr: {found.err[-700:]}", flush=True)
    print(f"\n{given.runs} runs, {wrong} wrong, slowest {slowest[0]:.1f} s (run {slowest[1]})")
    print(", ".join(f"{name}: {count}" for name, count in sorted(ended.items())))
    sys.exit(1 if wrong else 0)
