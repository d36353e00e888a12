"""Options that several commands share: one name, one meaning, one sentence of help."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from oversmoothing.theory.support import sizes
from oversmoothing.theory.support.errors import InputError

RESULTS = Path("results")
Out = Annotated[Path, Option(metavar="DIR", help="The folder that results go to.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object or list instead of the text.")]
ReportFile = Annotated[
    Path | None, Option("--report", metavar="FILE", help="Write the result to this file too.")
]
Seed = Annotated[int, Option(metavar="N", min=0, max=sizes.SEED, help="Of all that is drawn.")]
Device = Annotated[str, Option(metavar="NAME", help="auto, cpu or cuda.")]
DataDir = Annotated[
    Path | None, Option(metavar="DIR", help="External models and data (or $OVERSMOOTHING_DATA).")
]

Tokens = Annotated[int, Option(metavar="N", min=1, max=sizes.SIZE, help="Tokens.")]
Features = Annotated[int, Option(metavar="D", min=1, max=sizes.SIZE, help="Features.")]


def layers(given: str | int) -> int:
    """A number of layers, also written as 1e6; a default comes as the number that it is."""
    text = str(given)
    try:
        number = int(text) if text.lstrip("+-").isdigit() else float(text)
        if number == int(number) and 0 <= number <= sizes.DEPTH:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise BadParameter(
        f"depth {text[:40]} is no whole number of layers from 0 to {sizes.DEPTH:,} (1e6 will do)"
    )


Depth = Annotated[int, Option(metavar="L", parser=layers, help="Layers.")]
Points = Annotated[
    int,
    Option(metavar="N", min=2, max=sizes.POINTS, help="How many log-spaced layers are measured."),
]
Plot = Annotated[
    bool, Option("--plot", help="Draw HFC/LFC and the cosines too (PNG, PDF), with a caption.")
]
Temperature = Annotated[
    float,
    Option(
        metavar="NUMBER", min=1 / sizes.REAL, max=sizes.REAL, help="Of the softmax; low is sharp."
    ),
]
Causal = Annotated[bool, Option("--causal", help="Token i sees the tokens up to i.")]
Precision = Annotated[Literal["float32", "float64"], Option(help="Precision of the iteration.")]

CaseFile = Annotated[
    str | None,
    Argument(
        metavar="CASE.json",
        help='"A" (or its "logits"), "H" (or the factors "W_V", "W_proj" of a head) and optionally '
        '"X0" as nested lists, for X\' = X + A X H^T; strings ("3/4") are exact; - reads them from '
        "standard input.",
    ),
]
Example = Annotated[
    str | None, Option(metavar="NAME", help="One that comes with the package instead, e.g. GT4.")
]

Model = Annotated[
    str,
    Argument(
        metavar="MODEL",
        help="vit, vit+, vit-, vit-random, the folder of a run; a Hugging Face folder or hub name; "
        "a timm-named checkpoint or a GGUF file; or a folder within --data-dir.",
    ),
]
Images = Annotated[
    str | None,
    Option(
        metavar="DIR",
        help="A folder of image files, here or within --data-dir; cifar100: its test images there.",
    ),
]
Text = Annotated[
    Path | None, Option(metavar="FILE", help="One text a line, for models that read text.")
]
Count = Annotated[
    int | None,
    Option(
        metavar="N", min=1, max=sizes.SEED, help="The first N inputs (default: 200 of those named)."
    ),
]
FewInputs = Annotated[int, Option(metavar="N", min=1, max=sizes.SEED, help="The first N inputs.")]
CutTexts = Annotated[
    int | None,
    Option(
        metavar="N",
        min=2,
        max=sizes.SEED,
        help="Cut texts to N tokens (default: to what the model reads).",
    ),
]
Part = Annotated[
    str | None,
    Option(metavar="NAME", help="Of a model with several stacks, the one: vision_model."),
]


def one_of(names: Iterable[str], help: str) -> Any:
    """An option whose value, or each of whose values, is one of these names."""
    known = list(names)

    def check(value: Any) -> Any:
        for each in value if isinstance(value, list) else [value]:
            if each is not None and each not in known:
                raise BadParameter(f"'{each}' is none of {', '.join(known)}")
        return value

    return Option(
        metavar="NAME",
        help=f"{help}: {', '.join(known)}.",
        callback=check,
        autocompletion=lambda: known,
    )


def beside(folder: Path) -> Path:
    """The folder where nothing is in it yet, else the first free one of FOLDER-2, FOLDER-3, ..."""
    number, found = 1, folder
    while found.is_dir() and any(found.iterdir()):
        number += 1
        found = folder.with_name(f"{folder.name}-{number}")
    return found


def only_named(report: Path | None, as_json: bool) -> None:
    """Raises `InputError` where --list, which runs nothing, is asked for a result."""
    for flag, given in (("--report", report is not None), ("--json", as_json)):
        if given:
            raise InputError(f"--list names what there is and runs nothing: leave {flag} out")
