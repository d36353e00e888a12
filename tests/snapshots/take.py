"""Snapshots: what the project answered when they were taken, so that a change of form shows.

    python -m tests.snapshots.take verdicts certificates sweep

writes those anew, which is right only where an answer was meant to change; the difference then
belongs into the commit. Wording (reasons) is not part of a snapshot.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import oversmoothing
from tests.snapshots.cases import case

HERE = Path(__file__).parent
VERDICTS, CERTIFICATES = 2000, 160
EXAMPLES = ["GT1", "GT3", "GT5", "GT10", "GT12", "GT17"]
# Every fifth verdict is certified too. Exact ratios are long: of those a digest is kept.
LONG = 40


def verdicts() -> list[Any]:
    """`verdict(...).to_json_object()` of drawn cases, without the reason."""
    found = []
    for seed in range(VERDICTS):
        given = case(seed)
        answer = oversmoothing.verdict(
            A=given["A"],
            H=given["H"],
            X0=given.get("X0"),
            depth=[1, 2, 7, 50] if "X0" in given else [],
            certified=seed % 5 == 0,
        )
        found.append(without_words(answer.to_json_object()))
    return found


def without_words(answer: dict[str, Any]) -> dict[str, Any]:
    """The values of a verdict; an exact ratio of many characters as its digest.

    From floats `shows_from` is left out: it looks at modes that may be there or not, and what is
    0 up to rounding another processor rounds otherwise.
    """
    left_out = {"reason"} if answer["status"] == "exact" else {"reason", "shows_from"}
    kept = {key: value for key, value in answer.items() if key not in left_out}
    for depth, text in kept.get("hfc_lfc_squared", {}).items():
        if len(text) > LONG:
            kept["hfc_lfc_squared"][depth] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return kept


def certificates() -> list[Any]:
    """What `certify` claims of drawn cases and of golden ones."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder) / "case.json", Path(folder) / "certificate.json"
        for seed in [*range(CERTIFICATES), *EXAMPLES]:
            if isinstance(seed, str):
                words = ["--example", seed]
            else:
                path.write_text(json.dumps(case(seed)))
                words = [str(path)]
            code = oversmoothing.main(["certify", *words, "--report", str(written)])
            found.append(claimed(code, json.loads(written.read_text())))
    return found


def claimed(code: int, certificate: dict[str, Any]) -> dict[str, Any]:
    """Exit status and claim of a certificate."""
    return {"code": code, "claim": certificate["claim"]}


def sweep() -> list[Any]:
    """The table of the example sweep over heads, row by row."""
    with tempfile.TemporaryDirectory() as folder:
        status = oversmoothing.main(["sweep", "--example", "heads", "--out", folder])
        assert status == 0
        return rows(pd.read_parquet(next(Path(folder).rglob("sweep.parquet"))))


def rows(table: pd.DataFrame) -> list[Any]:
    """Rows without the empty columns: JSON's own numbers."""
    return list(json.loads(table.to_json(orient="records", double_precision=15)))


SNAPSHOTS: dict[str, Callable[[], list[Any]]] = {
    "verdicts": verdicts,
    "certificates": certificates,
    "sweep": sweep,
}


def path_of(name: str) -> Path:
    return HERE / f"{name}.jsonl.xz"


def kept(name: str) -> list[Any]:
    """The snapshot as it was taken."""
    return [json.loads(line) for line in lzma.decompress(path_of(name).read_bytes()).splitlines()]


def write(name: str, entries: list[Any]) -> None:
    text = "".join(json.dumps(x, sort_keys=True, separators=(",", ":")) + "\n" for x in entries)
    path_of(name).write_bytes(lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        write(wanted, SNAPSHOTS[wanted]())
