"""What each command answers at cheap settings, beside those that have a corpus of their own.

Not here: `bench` measures time, `reproduce` runs the others; figures' tables and pictures have
records of their own (tests/figures).
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.steering import steer
from oversmoothing.theory.support.files import to_json
from tests.corpora.asking import answer_of, inside, printed, printed_json, written_csv, written_json
from tests.corpora.cases import case
from tests.corpora.networks import on_a_folder

Entries = Iterator[tuple[str, Any]]
MIXINGS = ("doubly-stochastic", "row-stochastic", "orthogonal", "identity", "uniform", "gaussian")
SMALL = ("--n", "4", "--d", "3", "--depth", "40", "--points", "5")
TRAINED = {"variant": "vit", "depth": 1, "width": 8, "heads": 2, "epochs": 1, "batch_size": 512,
           "log_every": 1, "probe_images": 2}  # fmt: skip


def commands() -> Entries:
    """Each command with its JSON, or with the tables that it writes."""
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        yield from _on_a_case()
        yield from _runs()
        yield from _others()
    yield from on_a_folder()


def _on_a_case() -> Entries:
    for name in ("GT1", "GT4", "GT8", "GT10", "GT17", "GT18"):
        yield f"verdict {name}", printed_json("verdict", "--example", name)
    yield "verdict at depths", printed_json("verdict", "--example", "GT4", "--depth", "1", "1000")
    Path("case.json").write_text(json.dumps(case(7)))
    yield "certify", printed_json("certify", "case.json", "--out", "written.json")
    printed("check", "written.json")
    body = json.loads(Path("written.json").read_text())
    body["claim"]["verdict"] = "TIE" if body["claim"]["verdict"] != "TIE" else "SMOOTHING"
    Path("forged.json").write_text(json.dumps(body))
    printed("check", "forged.json", codes=(1,))
    yield "check", {"written": "accepted", "forged": "refused"}


def _runs() -> Entries:
    for value in ("ginibre", "goe", "defective"):
        more = ("--size", "3", "--eigenvalue", "-1.5") if value == "defective" else ()
        yield f"simulate {value}", _run("simulate", *SMALL, "--value", value, *more)
    for attention in ("fixed", "drawn", "state"):
        yield f"heads {attention}", _run("heads", "--heads", *SMALL, "--attention", attention)
    for mixing in MIXINGS:
        more = ("--changing", "--any-p") if mixing == "gaussian" else ()
        yield f"streams {mixing}", _run("streams", "--streams", *SMALL, "--mixing", mixing, *more)
    exponents = "simulate --exponents --ensemble iid following --depth 200 --n 3 --d 2"
    printed(*exponents.split(), codes=(0, 1))
    yield "exponents", written_csv(Path("results/exponents.csv"))


def _run(name: str, *words: str) -> dict[str, Any]:
    printed("simulate", *words)
    stem = Path("results") / name
    return {"record": written_json(stem.with_suffix(".json")),
            "rows": written_csv(stem.with_suffix(".csv"))}  # fmt: skip


def _others() -> Entries:
    for remedy in ("attnscale", "lambda-skip"):
        yield f"remedy {remedy}", printed_json("remedies", "--draws", "1", remedy)
    yield "steer", answer_of(json.loads(to_json(steer(2).tables["cases"].to_json_object())))
    yield "graphs", {"graphs": printed_json("graphs", "--draws", "3")["graphs"]}
    yield "prove, written", printed_json("prove", "T2d", "--kind", "written")
    yield ("prove, searched", printed_json("prove", "T2b", "--kind", "searched", "--examples", "5"))
    listed = json.loads(printed("prove", "--list", "--json")).items()
    words = [(name, *said.split("  ", 1)) for name, said in listed]
    listed = [f"{name:28s} {on:31s} {said.strip()}".split("  ") for name, on, said in words]
    yield "prove --list", {name: next(filter(None, rest)).strip() for name, *rest in listed}
    for study in ("core", "trainability", "exploratory"):
        # How many runs; the minutes beside them are of a machine.
        yield f"study {study}", printed("study", study, "--dry-run").split(":")[0]
    yield "figures --list", [line.split()[0] for line in printed("figures", "--list").splitlines()]
    Path("config.json").write_text(json.dumps(TRAINED))
    printed("train", "config.json", "--out", "trained")
    (metrics,), (log,) = (list(Path("trained").rglob(name)) for name in ("metrics.json", "log.csv"))
    yield "train", {"metrics": written_json(metrics), "log": written_csv(log)}
