"""What stands in the files of a run that computes more than a case: sweeps, models, records."""

from __future__ import annotations

import io
import json
import random
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import oversmoothing
from tests.fuzz import values

Words, Files = list[str], dict[str, bytes]
# What a parameter of a sweep may be, and the kinds of H that have it ("" all).
_AXES = {
    "seed": ("[0, 1]", ""),
    "temperature": ("[0.1, 5.0]", ""),
    "n": ("[2, 3]", ""),
    "heads": ("[1, 2]", ""),
    "dim": ("[1, 2]", ""),
    "high": ("[0.1, 0.5]", "interval"),
    "low": ("[-2.0, -0.5]", "interval"),
    "radius": ("[0.1, 0.5]", "disc"),
    "centre": ("[-1.0, 0.5]", "disc"),
    "scale": ("[0.1, 2.0]", "ginibre low_rank goe"),
    "rank": ("[1]", "low_rank"),
    "size": ("[2]", "defective"),
    "eigenvalue": ("[-1.5, -0.5]", "defective"),
}
_KINDS = ("interval", "disc", "ginibre", "low_rank", "defective", "goe")
ODD_TOML = [
    "1", "2", "0", "-1", "3.0", "1e400", "inf", "nan", "-inf", "9" * 5000, "1" + "0" * 30, "true",
    '"x"', "[]", "[[1]]", "[" * 99 + "]" * 99, "[" * 10**5, "1979-05-27", "{}", "{ from = 1 }",
    "{ from = 0, to = 1e308, steps = 3 }", "{ from = 1, to = 2, steps = 99999999999 }", "1e-300",
    "{ from = -1e308, to = 1e308, steps = 3 }", "1.7e308", '"' + "x" * 300 + '"', '"\\ud800"',
]  # fmt: skip
_TEXTS = [
    "w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w1 w2 w3", "unknown words", "w1 " * 40, "\u2028", "\x0b", "",
    " ", "\ufeffw1 w2", "\u0000", "e\u0301\u202e", "w1\r", "x" * 10**5, "[PAD] [UNK]", "{}",
]  # fmt: skip


def sweep(rng: random.Random) -> tuple[Words, Files]:
    """A configuration of a few points: half are computed, the others have slips."""
    slips = rng.choice([0, 0, 1, 1, 2])
    kind = rng.choice(_KINDS)
    axis = rng.choice([name for name, (_, kinds) in _AXES.items() if kind in (kinds or kind)])
    lines = {
        "measures": 'measures = ["ratio", "cosine", "limits"]',
        "fixed": "[fixed]",
        "n": "n = 3",
        "d": "d = 2",
        "value": f'value = "{kind}"',
        "depth": "depth = 20",
        "axes": "[axes]",
        axis + " ": f"{axis} = {_AXES[axis][0]}",
    }
    if axis == "n":
        del lines["n"]
    for _ in range(slips):
        name = rng.choice(list(lines))
        slip = rng.randrange(4)
        if slip == 0 and len(lines) > 1:
            del lines[name]
        elif slip == 1:
            other = rng.choice([*_AXES, "depth", "blocks", "a.b", "x" * 300, '"\\u00e9"'])
            lines[name] += f"\n{other} = {rng.choice([*ODD_TOML, '1'])}"
        elif "=" in lines[name]:
            lines[name] = f"{lines[name].partition('=')[0]}= {rng.choice(ODD_TOML)}"
        else:
            lines[name] += rng.choice(
                ["\0", "\ufeff", "[axes]", "[" * 10**4, "a." * 10**4, "\udcff"]
            )
    text = "\n".join(lines.values()) + "\n"
    if rng.random() < 0.05:
        text = text[: rng.randrange(len(text))]
    return ["input.toml"], {"input.toml": text.encode("utf-8", "surrogatepass")}


@cache
def _models() -> tuple[Files, ...]:
    """The files of a model that reads pictures, and of one that reads text."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    from tests.support.tiny_transformers import tiny

    found: list[Files] = []
    for family in ("vit", "gpt2"):
        with tempfile.TemporaryDirectory() as folder:
            tiny(family).save_pretrained(folder)
            if family == "vit":
                side = {"height": 32, "width": 32}
                settings = {"size": side, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
                (Path(folder) / "preprocessor_config.json").write_text(json.dumps(settings))
            else:
                words = ["[UNK]", "[PAD]", *(f"w{k}" for k in range(1, 10))]
                plain = Tokenizer(WordLevel({w: k for k, w in enumerate(words)}, "[UNK]"))
                plain.pre_tokenizer = Whitespace()
                PreTrainedTokenizerFast(
                    tokenizer_object=plain, unk_token="[UNK]", pad_token="[PAD]"
                ).save_pretrained(folder)
            found.append({path.name: path.read_bytes() for path in Path(folder).iterdir()})
    return tuple(found)


def _picture(rng: random.Random) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    mode = rng.choice(["RGB", "RGBA", "L", "P", "1", "I;16", "LA", "CMYK", "F"])
    kind = {"I;16": "PNG", "CMYK": "JPEG", "F": "TIFF"}.get(mode, "PNG")
    size = rng.choice([(8, 8), (1, 1), (16, 9), (8, 1)])
    Image.new(mode, size, 1).save(buffer, kind)
    return _bent(buffer.getvalue(), rng, 0.3)


def _bent(data: bytes, rng: random.Random, share: float) -> bytes:
    """The bytes with one of them changed, cut off, or repeated, in that share of the cases."""
    if rng.random() >= share or not data:
        return data
    place = rng.randrange(min(len(data), rng.choice([20, 2000, len(data)])))
    kept = bytes([data[place] ^ (1 << rng.randrange(8))])
    return data[:place] + rng.choice([kept + data[place + 1 :], b"", data[place:] * 2])


def model(rng: random.Random) -> tuple[Words, Files]:
    """A folder of a tiny model with its inputs; or a path that is none."""
    if rng.random() < 0.5:
        return [rng.choice(values.PATHS)], {}
    text = rng.random() < 0.5
    whole = _models()[text]
    files = {}
    broken = rng.choice([None, None, *whole])
    for name, content in whole.items():
        if name == broken and name.endswith(".json") and len(content) < 10**4:
            content = values.mutated(json.loads(content), rng).encode("utf-8", "surrogatepass")
        elif name == broken:
            content = _bent(content, rng, 1.0)
        files[f"model/{name}"] = content
    if text:
        lines = [rng.choice(_TEXTS[:3] if rng.random() < 0.7 else _TEXTS) for _ in range(3)]
        files["texts"] = "\n".join(lines).encode()
        return ["model", "--text", "texts"], files
    for k in range(rng.choice([1, 2, 3])):
        files[f"pictures/{k}.png"] = _picture(rng)
    return ["model", "--images", "pictures"], files


def train(rng: random.Random) -> tuple[Words, Files]:
    """Configurations; few of them train, and those one epoch of the smallest model."""
    fields: dict[str, Any] = {"variant": "vit", "epochs": 1, "depth": 1, "width": 4, "heads": 2}
    if rng.random() < 0.1:
        return ["input.json"], {"input.json": json.dumps(fields).encode()}
    for name in ("seed", "batch_size", "learning_rate", "zoom", "patch", "ratio"):
        if rng.random() < 0.3:
            fields[name] = values.odd(rng)
    fields["nothing"] = 1  # none of these trains
    return ["input.json"], {
        "input.json": values.mutated(fields, rng).encode("utf-8", "surrogatepass")
    }


_ODD_CODE = [
    "None", "0", "()", "[]", "''", "'x'", "1.5", "True", "lambda: 0", "1 / 0", "A", "given",
    "exact", "given.GENERIC", "given.REAL", "draw.cases", "draw.states(2, 2)", "by.law", "(2,)",
    "[[1]]", ")", "Claim", "assert", "return", "raise ValueError", "x" * 300, "é", "\0", "\ufeff",
    "(" * 300,
]  # fmt: skip


def _own_claims(rng: random.Random) -> tuple[Words, Files]:
    """The example of a user's claims, with slips: words exchanged, lines left out, an end."""
    path = Path(oversmoothing.__file__).with_name("commands") / "claim_template.py"
    lines = path.read_text("utf-8").splitlines()
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        place = rng.randrange(8, len(lines))
        words = list(re.finditer(r"[\w.]+", lines[place]))
        if words and rng.random() < 0.8:
            begin, end = rng.choice(words).span()
            lines[place] = lines[place][:begin] + rng.choice(_ODD_CODE) + lines[place][end:]
        else:
            lines[place] = ""
    text = "\n".join(lines)
    if rng.random() < 0.05:
        text = text[: rng.randrange(len(text))]
    words = ["--examples", "4", "--limit", "20", "input.py"]
    return words, {"input.py": text.encode("utf-8", "surrogatepass")}


def prove(rng: random.Random) -> tuple[Words, Files]:
    """The list of claims; a user's own; a long search over before it begins, with a record to go on
    from."""
    chance = rng.random()
    if chance < 0.2:
        return ["--list"], {}
    if chance < 0.7:
        return _own_claims(rng)
    from oversmoothing.theory.proofs.run import fingerprint

    chunk = {"examples": 1, "seconds": 0.5, "violation": None, "detail": ""}
    record = {"schema_version": 2, "code": fingerprint(), "chunks": {"T2b|x|0|2000": chunk}}
    text = values.mutated(record, rng)
    files = {"results/thorough.json": text.encode("utf-8", "surrogatepass")}
    return [rng.choice(["T2b", "T2", "T99", ""]), "--thorough", "--minutes", "0"], files


def figures(rng: random.Random) -> tuple[Words, Files]:
    """The list, names that are none, and once in a while a figure."""
    chance = rng.random()
    if chance < 0.4:
        return ["--list"], {}
    return ["lambda_plane" if chance < 0.5 else rng.choice(values.WORDS)], {}


# Command -> its words after the name, and its files.
ROOMS: dict[str, Callable[[random.Random], tuple[Words, Files]]] = {
    "sweep": sweep, "train": train, "prove": prove, "figures": figures,
    "inspect": model, "readings": model, "ladder": model, "certified": model,
}  # fmt: skip
