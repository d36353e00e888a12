"""Runs of the commands that measure, at sizes of a second: models, streams, graphs, studies."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz import values
from tests.fuzz.rooms import ODD_TOML, Files, Words, model

_MIXINGS = ("doubly-stochastic", "row-stochastic", "orthogonal", "identity", "uniform", "gaussian")
_ENSEMBLES = ("iid", "switching", "causal", "following")
_REMEDIES = ("attnscale", "centred-attention", "neutreno", "lambda-skip")
_STUDIES = ("core", "trainability", "exploratory", "all")
_GROUPS = ("1", "2", "1-2", "2-1", "0", "1-9", "-", "1-", "x", "1-2-3", "\u0663", "\u00b2", "",
           "1-999999999999", "9" * 5000)  # fmt: skip


def _sometimes(rng: random.Random, words: Words, share: float = 0.3) -> Words:
    return words if rng.random() < share else []


def _size(rng: random.Random, flag: str, cheap: str) -> Words:
    """The size that is computed in no time, or what no size is; it stands there always."""
    # Long numbers are beyond what any size may be.
    odd = [word for word in values.INTEGERS if len(word) > 9 or word not in ("3", "7")]
    return [flag, cheap if rng.random() < 0.85 else rng.choice(odd)]


def streams(rng: random.Random) -> tuple[Words, Files]:
    """A case with R, p and q, with slips; or a run of a few layers."""
    if rng.random() < 0.35:
        sizes = (("--n", "4"), ("--d", "3"), ("--streams", "2"), ("--depth", "20"))
        words = [word for flag, cheap in sizes for word in _size(rng, flag, cheap)]
        mixing = rng.choice([*_MIXINGS, "nothing", ""])
        return [*words, "--points", "4", *_sometimes(rng, ["--mixing", mixing], 0.6)], {}
    case = values.case(rng)
    s, n = rng.randint(1, 3), len(case["A"] if "A" in case else case["logits"])
    d = len(case["H"] if "H" in case else case["W_V"])
    kind = rng.choice(["fractions", "binary64"])
    case["R"] = rng.choice([values.attention(rng, s, kind), values.matrix(rng, s, s, kind)])
    for name in ("p", "q"):
        if rng.random() < 0.4:
            case[name] = values.matrix(rng, 1, s, kind)[0]
    if rng.random() < 0.3:
        case["mixing"] = rng.choice([*_MIXINGS, "nothing", 3])
    if rng.random() < 0.3:
        case["start"] = rng.choice(["generic", "equal", "other", None])
    if "X0" in case and rng.random() < 0.5:
        case["X0"] = [values.matrix(rng, n, d, kind) for _ in range(s)]
    text = values.mutated(case, rng)
    return ["input.json"], {"input.json": text.encode("utf-8", "surrogatepass")}


def exponents(rng: random.Random) -> tuple[Words, Files]:
    """Two hundred layers of an ensemble, or of a tiny model."""
    words = ["--depth", rng.choice(["200", "200", "200", "400", "300", "201", "0", "x"])]
    if rng.random() < 0.4:
        found, files = model(rng)
        return [*found, *words], files
    for flag, cheap in (("--n", "3"), ("--d", "2"), ("--heads", "2")):
        words += _size(rng, flag, cheap)
    name = rng.choice([*_ENSEMBLES, *values.WORDS])
    return [*words, *_sometimes(rng, ["--ensemble", name], 0.7)], {}


def remedies(rng: random.Random) -> tuple[Words, Files]:
    """The list; or one layer drawn for one of them, since all of them take seconds."""
    if rng.random() < 0.15:
        return ["--list"], {}
    return [rng.choice([*_REMEDIES, *values.WORDS]), *_size(rng, "--draws", "1")], {}


def graphs(rng: random.Random) -> tuple[Words, Files]:
    """A few small graphs; the classifier for a step or two."""
    words = [*_size(rng, "--draws", "3"), *_sometimes(rng, ["--attention", "gat"])]
    if rng.random() < 0.15:
        return [*words, "--classifier", "--steps", "1"], {}
    return words, {}


def several(rng: random.Random) -> tuple[Words, Files]:
    """A model with as many inputs as are split in halves."""
    words, files = model(rng)
    copies = {
        f"pictures/{k}{name[9:]}": content
        for name, content in files.items()
        if name.startswith("pictures/")
        for k in range(4)
    }
    if "texts" in files and rng.random() < 0.8:
        files["texts"] = files["texts"] + b"\nw1 w2\nw3 w4 w5\nw2 w2 w9\nw8 w7"
    return [*words, *_sometimes(rng, ["--count", rng.choice(["4", "6"])], 0.5)], files | copies


def loop(rng: random.Random) -> tuple[Words, Files]:
    """Twenty loops."""
    words, files = several(rng)
    group = rng.choice(
        ["1", "2", "1-2", "2-1", "0", "1-9", "-", "1-", "x", "1-2-3", "٣", "1-٣", ""]
    )
    words += [*_size(rng, "--loops", "20"), *_sometimes(rng, ["--group", group], 0.5)]
    return [*words, *_sometimes(rng, ["--recall", rng.choice(values.REALS)])], files


@cache
def _enclosed() -> dict[str, Any]:
    """What is written of an enclosure: the names of its parts, to be bent."""
    return {"schema_version": 1, "kind": "metrics", "model": "model", "layers": [{"hfc_lfc": []}]}


def enclose(rng: random.Random) -> tuple[Words, Files]:
    """A tiny model and one input; a box of it; or a file that claims something of it."""
    words, files = model(rng)
    chance = rng.random()
    if chance < 0.3:
        claimed = values.mutated(_enclosed(), rng).encode("utf-8", "surrogatepass")
        return [words[0], "--check", "claimed.json"], files | {"claimed.json": claimed}
    if chance < 0.5:
        eps = rng.choice([*values.REALS, "0.001"])
        return [*words, "--box", "--eps", eps, *_sometimes(rng, ["--layer", "1"], 0.7)], files
    return words, files


def study(rng: random.Random) -> tuple[Words, Files]:
    """What would be run, of the project's protocol with slips; none of these trains."""
    from oversmoothing.experiments.study.protocol import PREREGISTERED

    name = rng.choice([*_STUDIES, *_STUDIES, "", "nothing", "Core"])
    if rng.random() < 0.2:
        return [name, "--dry-run"], {}
    lines = Path(PREREGISTERED).read_text("utf-8").splitlines()
    # The first cells and questions alone: what follows is like them.
    heads = [k for k, line in enumerate(lines) if line.startswith("[[")]
    asked = [k for k in heads if lines[k].startswith("[[question")]
    lines = [*lines[: heads[5]], *lines[asked[0] : asked[3]]]
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        place = rng.choice([k for k, line in enumerate(lines) if line and line[0] != "#"])
        line, odd = lines[place], rng.choice(ODD_TOML)
        slip = rng.randrange(4)
        if slip == 0:
            lines[place] = ""
        elif slip == 1:
            lines[place] += f"\n{rng.choice(['margin', 'depth', 'x', 'seeds', 'second'])} = {odd}"
        elif "=" in line:
            lines[place] = f"{line.partition('=')[0]}= {odd}"
        else:
            lines[place] = rng.choice(["[[cells]]\ndepth = 2", "[[question]]", "[base]", "["])
    text = "\n".join(lines)
    if rng.random() < 0.05:
        text = text[: rng.randrange(len(text))]
    written = {"input.toml": text.encode("utf-8", "surrogatepass")}
    return [name, "--dry-run", "--protocol", "input.toml"], written


# As in `rooms.ROOMS`.
MEASURED = {
    "streams": streams, "exponents": exponents, "remedies": remedies,
    "graphs": graphs, "stability": several, "flips": several, "loop": loop, "tilt": model,
    "enclose": enclose, "study": study,
}  # fmt: skip
