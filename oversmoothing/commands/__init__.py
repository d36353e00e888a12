"""The commands of `oversmoothing`: a row of `ROWS` and a function each.

A command is added by one function, whose signature is its options (what options of one name mean
is said once, in `options`), and one row of the table. The function's module is imported when the
command is chosen. An experiment with no options of its own needs the row alone:
"experiments.FILE:FUNCTION", a function of a model and its inputs that returns a `Result`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

START, THEORY = "Start here", "Theory: one layer, and statements about all layers"
SIMULATION, MODELS = "Simulation: random layers, any depth", "Trained models"
PAPER = "The paper and the tool"


@dataclass(frozen=True)
class Row:
    """A command, or one form of a command.

    name: as it is typed, "inspect"; of a form with the command before it, "probe loop" or
    "simulate --heads"; function: "module:function" of this package; group: the heading in the list
    of all, of a form the command; operands: what follows the name in that list; summary: begins
    with a verb; example: can be copied; old: options of the release before, with the new ones
    ("": the value alone).
    """

    name: str
    function: str
    group: str
    operands: str
    summary: str
    example: str
    old: Mapping[str, str] = field(default_factory=dict)

    @property
    def usage(self) -> str:
        """The command as a reader types it: "probe MODEL loop"."""
        return self.asked if self.group == "probe" else f"{self.name} {self.operands}".strip()

    @property
    def asked(self) -> str:
        """What stands before --help: "verdict", "probe MODEL loop"."""
        return self.name.replace(" ", " MODEL ") if self.group == "probe" else self.name


_REPORT = {"--report": "--out"}
ROWS = (
    Row("inspect", "models:inspect", START, "MODEL",
        "say whether a trained model smooths, why, and what to try",
        "inspect FOLDER --images PICTURES --count 100"),
    Row("verdict", "cases:verdict", START, "CASE",
        "say whether one layer, repeated, smooths",
        "verdict --example GT4 --depth 1 10 1e6"),
    Row("reproduce", "pages:reproduce", START, "",
        "run all checks, draw all figures, write results/index.html",
        "reproduce --out results"),
    Row("explorer", "pages:explorer", START, "",
        "write a page on which you drag eigenvalues",
        "explorer --out results"),
    Row("certify", "cases:certify", THEORY, "CASE",
        "prove a verdict and write the certificate",
        "certify --example GT4 --out cert.json", _REPORT),
    Row("check", "cases:check", THEORY, "FILE",
        "check a certificate, independently",
        "check cert.json"),
    Row("regions", "cases:regions", THEORY, "CASE",
        "say for which parameters a layer smooths, and draw it",
        "regions case.json --vary h=-3:1 --vary a=-1:1"),
    Row("prove", "proofs:prove", THEORY, "NAME",
        "check claims of the project, or claims of your own",
        "prove T2b", _REPORT | {"--claim": ""}),
    Row("simulate", "runs:simulate", SIMULATION, "",
        "run one layer, many heads or several streams to great depth",
        "simulate --attention softmax --depth 1e6 --out runs"),
    Row("sweep", "runs:sweep", SIMULATION, "FILE",
        "run a grid of cases, resumable",
        "sweep --example heads --out runs"),
    Row("graphs", "runs:graphs", SIMULATION, "",
        "do the same on graphs",
        "graphs --draws 500 --out runs", {"--count": "--draws"}),
    Row("probe", "probe:probe", MODELS, "MODEL KIND",
        "run one experiment on a model; KIND is one of:",
        "probe FOLDER loop --images PICTURES"),
    Row("intervene", "probe:intervene", MODELS, "MODEL",
        "move the eigenvalues of H in a model, nothing retrained",
        "intervene FOLDER --images PICTURES --shift 0.1"),
    Row("atlas", "models:atlas", MODELS, "MODEL...",
        "list where the eigenvalues of H lie, every layer and head",
        "atlas FOLDER --out results"),
    Row("enclose", "models:enclose", MODELS, "MODEL",
        "prove a model's metrics for one input",
        "enclose FOLDER --images PICTURES --count 1"),
    Row("train", "models:train", MODELS, "",
        "train a small ViT with H free or in a region",
        "train --variant vit- --out runs"),
    Row("study", "models:study", MODELS, "NAME",
        "answer questions by training, written before the runs",
        "study core --dry-run", {"--estimate": "--dry-run"}),
    Row("figures", "pages:figures", PAPER, "NAME",
        "draw figures, each with its data",
        "figures lambda_plane --out results", {"--only": ""}),
    Row("remedies", "pages:remedies", PAPER, "NAME",
        "compare remedies by their effect on the spectrum",
        "remedies attnscale contranorm", _REPORT | {"--only": ""}),
    # The forms of `simulate` and of `probe`.
    Row("simulate --heads", "runs:heads", "simulate", "H",
        "run many heads, the same in every layer or new in each",
        "simulate --heads 8 --attention state --depth 200 --out runs"),
    Row("simulate --streams", "runs:streams", "simulate", "S",
        "run several residual streams that are mixed in every layer",
        "simulate --streams 4 --mixing orthogonal --depth 1e4 --out runs"),
    Row("simulate --exponents", "runs:exponents", "simulate", "",
        "compare the rates of changing layers with Lyapunov exponents",
        "simulate --exponents --ensemble iid following --out runs", {"--layers": "--depth"}),
    Row("probe stability", "probe:stability", "probe", "MODEL",
        "do small differences grow, layer by layer?",
        "probe FOLDER stability --images PICTURES --count 8"),
    Row("probe loop", "probe:loop", "probe", "MODEL",
        "do tokens collapse if a block is repeated?",
        "probe FOLDER loop --images PICTURES --loops 200"),
    Row("probe flips", "probe:flips", "probe", "MODEL",
        "what does the sign of a norm's gain do?",
        "probe FOLDER flips --images PICTURES --count 40"),
    Row("probe intervene", "probe:intervene", "probe", "MODEL",
        "what does moving the eigenvalues of H do?",
        "probe FOLDER intervene --images PICTURES --count 50"),
    Row("probe tilt", "probe:tilt", "probe", "MODEL",
        "do tokens turn as in the power method?",
        "probe FOLDER tilt --images PICTURES --count 50"),
    Row("probe readings", "probe:readings", "probe", "MODEL",
        "which eigenvalue dominates (Table 1)?",
        "probe FOLDER readings --images PICTURES --readings E3"),
    Row("probe ladder", "probe:ladder", "probe", "MODEL",
        "which cheap theory predicts the model?",
        "probe FOLDER ladder --images PICTURES --out runs"),
    Row("probe exponents", "probe:exponents", "probe", "MODEL",
        "which rate would its layers have, repeated?",
        "probe FOLDER exponents --images PICTURES", {"--layers": "--depth"}),
    Row("probe certified", "probe:certified", "probe", "MODEL",
        "what do proofs say of its attention?",
        "probe FOLDER certified --images PICTURES"),
)  # fmt: skip
COMMANDS = {row.name: row for row in ROWS if " " not in row.name}

# Commands of the release before: the row that answers now; perhaps a word that tells another use of
# the name, and the row of that ("CASE": a file of JSON).
OLD: dict[str, tuple[str, ...]] = {
    "heads": ("simulate --heads",),
    "streams": ("simulate --streams", "CASE", "verdict"),
    "exponents": ("simulate --exponents", "--model", "probe exponents"),
    "certify-model": ("probe certified",),
    **{kind: (f"probe {kind}",)
       for kind in ("stability", "loop", "flips", "tilt", "readings", "ladder")},
}  # fmt: skip
GONE = {
    "bench": "run 'make bench' in a clone (python -m benchmarks)",
    "rates": "run make bench BENCH='--only rates' in a clone",
    "steer": "run make bench BENCH='--only steer' in a clone, or 'oversmoothing probe MODEL tilt "
    "--steer' for a model",
}


def forms(command: str) -> dict[str, Row]:
    """The forms of a command by the word that chooses each: a flag, or the second operand."""
    return {row.name.split()[1]: row for row in ROWS if row.group == command and " " in row.name}
