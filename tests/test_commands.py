"""The contract of every command: its help, its example, its JSON, and how bad input is answered."""

import json
import random
import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import pytest

import oversmoothing
from oversmoothing.commands import COMMANDS, OLD, ROWS, Row, forms
from oversmoothing.commands.main import WORDS, chosen, load, repeat_flags, typed_as
from tests.corpora import networks
from tests.corpora.asking import inside
from tests.corpora.cases import case
from tests.corpora.commands import TRAINED
from tests.support.cases import cases

EVERYWHERE = ("--out", "--json", "--plot", "--seed", "--device", "--dry-run", "--images", "--text",
              "--count", "--data-dir")  # fmt: skip


def asked(*words: str, capsys) -> tuple[int, str, str]:
    status = oversmoothing.main(list(words))
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def refused(*words: str, capsys) -> list[str]:
    """The two lines that bad input is answered with."""
    status, out, err = asked(*words, capsys=capsys)
    lines = err.splitlines()
    assert status == 2 and out == "" and len(lines) == 2, (words, err)
    assert lines[0].startswith("oversmoothing: ") and lines[1].startswith(" " * 15), err
    return [lines[0].removeprefix("oversmoothing: "), lines[1].strip()]


# ------------------------------------------------------------------------------ the list of all


@pytest.mark.parametrize("words", [[], ["help"], ["--help"]], ids=" ".join)
def test_the_list_of_all_has_every_command_in_its_group(words, capsys):
    status, out, err = asked(*words, capsys=capsys)
    assert (status, err) == (0, "") and out.isascii()
    assert out.startswith("oversmoothing: do a Transformer's tokens become alike")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 36
    # Three examples come first, and can be typed.
    examples = [line.split("   ")[0].split() for line in lines[2:5]]
    assert [words[1] for words in examples] == ["inspect", "verdict", "reproduce"]
    for _, *words in examples:
        command, rest = chosen(words)
        command.make_context(words[0], rest)
    place = 5
    for row in COMMANDS.values():
        place = lines.index(f"  {row.usage:17s} {row.summary}", place)
        assert row.group in lines[:place]
    assert ", ".join(forms("probe")) in " ".join(out.split())
    named = {line.split()[0] for line in lines[6:] if line.startswith("  ") and line[2] != " "}
    assert not named & {*OLD, "bench"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_help_of_a_command_can_be_read_and_its_example_typed(row, capsys):
    status, out, err = asked(*row.asked.split(), "--help", capsys=capsys)
    assert (status, err) == (0, "") and out.isascii()
    operands = [p for p in load(row).params if p.param_type_name == "argument"]
    usage, words = out.splitlines()[0], ["Usage:", "oversmoothing", *row.usage.split(), "[OPTIONS]"]
    assert [word for word in usage.split() if word in words] == words
    rest = max(0, len(operands) - len(row.operands.split()))
    assert len(usage.split()) - len(words) == rest
    assert out.rstrip().endswith(f"Example: oversmoothing {row.example}")
    assert not re.search(r"<=|<\w+>|\d{12}|e\+\d", out), out
    for term, meaning in WORDS.items():
        assert term not in out or f"{term} {meaning}"[:60] in " ".join(out.split())
    command, words = chosen(shlex.split(row.example))
    assert command.row == row or (row.name, command.row.group) == ("probe", "probe")
    command.make_context(row.name, words)


def test_one_option_means_one_thing_and_says_it_with_a_noun_or_a_verb_first():
    said: dict[str, set[str]] = {}
    for row in ROWS:
        for param in load(row).params:
            if not param.hidden:
                assert param.help and param.help[0] in ascii_lowercase + '"', (row.name, param.help)
                assert not param.help.startswith("of ") and not param.help.endswith("."), param.help
                meaning = re.sub(r" \(default.*", "", param.help)
                said.setdefault(param.opts[0], set()).add(meaning)
    for flag in EVERYWHERE:
        meanings = said.get(flag, set())
        # --out may also name a file, where a command writes one.
        assert len(meanings) <= 1 + (flag == "--out"), meanings


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("row", [row for row in ROWS if row.name != "probe"], ids=lambda r: r.name)
def test_an_option_of_no_command_is_refused_in_two_lines(row, capsys):
    wrong, todo = refused(*row.asked.split(), "--nonsense", capsys=capsys)
    assert wrong.startswith("no option --nonsense.")
    assert todo == f"'oversmoothing {row.asked} --help' says what it takes."


@cases(
    "words, wrong, todo",
    ("inspekt gpt2", "no command 'inspekt'. Did you mean 'inspect'?", "--help' shows all "),
    ("bench", "'bench' has left the installed program.", "make bench"),
    ("verdict --depht 3", "no option --depht. Did you mean --depth?", "verdict --help'"),
    ("probe gpt2 lop", "no kind 'lop'. Did you mean 'loop'?", "probe --help' shows all "),
    ("probe gpt2", "which kind? Type oversmoothing probe MODEL KIND.", "probe --help'"),
    ("check", "FILE is missing.", "check --help'"),
    ("explorer x y", "'x y' is too much.", "explorer --help'"),
    ("simulate x.json", "'x.json' is too much: simulate draws", "verdict CASE.json --depth 1"),
    ("simulate --eigenvalues -1 -2", "no option -2.", "--eigenvalues=-0.9,-0.5"),
    ("verdict --depth 3 --agree 1 --agree 2", "--agree is given 2 times", "verdict --help'"),
    ("prove --seed=1 --seed=1", "--seed is given 2 times and has one value", "prove --help'"),
    ("simulate --n", "--n needs a value.", "simulate --help'"),
    ("simulate --seed 9223372036854775808", "--seed must be at most 2^63 - 1.", "--help'"),
    ("prove T2 --jobs 99999999999999", "--jobs must be at most 64.", "prove --help'"),
    ("figures lamda_plane", "no figure 'lamda_plane'. Did you mean 'lambda_plane'?", "--list'"),
    ("figures", "name a figure to draw, or all.", "--list' shows all"),
    ("remedies attnscal", "no remedy 'attnscal'. Did you mean 'attnscale'?", "--list'"),
    ("prove T99", "no claim 'T99'. Chapter T9 has T9a, T9b, T9c and T9d.", "--list' shows all"),
    ("prove T2 --kind formall", "no kind 'formall'. Did you mean 'formal'?", "prove --help'"),
    ("train --variant smt", "no variant 'smt'.", "Choose vit, vit+, vit- or vit-FORM."),
    ("study cor", "no study 'cor'. Did you mean 'core'?", "study --help'"),
    ("verdict --example GT44", "no example 'GT44'. Did you mean 'GT4'?", "GT1, GT2"),
    ("simulate --attention causl", "no attention 'causl'. Did you mean 'causal'?", "--help'"),
    ("probe vit readings --readings E9", "no reading 'E9'.", "readings --help'"),
    ("simulate --temperature 0", "--temperature must be above 0.", "simulate --help'"),
    ("simulate --device abacus", "the device 'abacus' is not available here.", "Use auto or cpu."),
    *(
        (
            f"{words} --out /proc/nowhere",
            "cannot write to the output folder '/proc/nowhere' (",
            "--help'",
        )
        for words in ("figures all", "simulate", "train", "reproduce")
    ),
    ("simulate --n 0", "--n must be at least 1.", "simulate --help'"),
    ("simulate --points 1", "--points must be at least 2.", "simulate --help'"),
    ("simulate --seed -1", "--seed must be at least 0.", "simulate --help'"),
    ("simulate --heads 0", "--heads must be at least 1.", "simulate --heads --help'"),
    ("simulate --heads --scale -1", "--scale must be at least 0.", "--heads --help'"),
    ("simulate --depth -1", "--depth must be a whole number of layers from 0", "--help'"),
    ("simulate --n many", "--n must be a whole number.", "simulate --help'"),
    ("simulate --depth 1.5", "--depth must be a whole number of layers from 0 to", "--help'"),
    ("simulate --streams 17", "--streams must be at most 16.", "simulate --streams --help'"),
    ("verdict", "which case? Give a CASE.json or --example NAME, and not both.", "takes GT1,"),
    ("verdict a.json --example GT4", "which case? Give a CASE.json or --example", "takes GT1"),
    ("inspect gpt2 --images nosuch", "no images 'nosuch' were found here", "inspect --help'"),
    ("probe gpt2 loop --text nosuch", "no file 'nosuch' was found here", "Give a file to --text"),
    ("probe gpt2 loop --group 3-1", "--group 3-1 names no layers: write 3, or 1-12", "--help'"),
    ("prove --list --out x", "--list names what there is and writes nothing", "prove --help'"),
    ("prove --thorough --out x.html", "--thorough writes thorough.json and no page", "--help'"),
)
def test_what_is_mistyped_is_answered_before_a_model_is_loaded(
    words, wrong, todo, capsys, monkeypatch
):
    monkeypatch.setattr("oversmoothing.experiments.models.sources.named_model", None)
    lines = refused(*words.split(), capsys=capsys)
    assert lines[0].startswith(wrong) and todo in lines[1]


# --------------------------------------------------------------------------- the release before


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_answers_and_says_its_new_one(old, capsys):
    command, _ = chosen([old])
    assert command.row.name == OLD[old][0]
    assert capsys.readouterr().err == f"`{old}` is now `{command.row.usage}`\n"


@pytest.mark.parametrize("row", [row for row in ROWS if row.old], ids=lambda row: row.name)
def test_an_old_option_is_read_as_the_new_one(row, capsys):
    for flag, new in row.old.items():
        for words in ([flag, "x"], [f"{flag}=x"]):
            assert chosen([*row.asked.split(), *words])[1][-1] in ("x", f"{new}=x", f"{flag}=x")
            assert capsys.readouterr().err.endswith(f"`{flag}` is now `{new or row.usage}`\n")


# ------------------------------------------------------------------------------------- the parser


@cases(
    "words, name, rest",
    ("simulate --n 3", "simulate", "--n 3"),
    ("simulate --heads 2 --n 3", "simulate --heads", "--heads 2 --n 3"),
    ("simulate --heads --n 3", "simulate --heads", "--n 3"),
    ("simulate --streams=2", "simulate --streams", "--streams=2"),
    ("simulate --n 3 --exponents", "simulate --exponents", "--n 3"),
    ("simulate --exponents --heads 2", "simulate --exponents", "--heads 2"),
    ("probe vit loop --count 3", "probe loop", "vit --count 3"),
    ("probe --images loop vit loop", "probe loop", "--images loop vit"),
    ("probe loop loop", "probe loop", "loop"),
    ("probe vit --json loop", "probe loop", "vit --json"),
    # Two uses of an old name are told apart.
    ("streams case.json --json", "verdict", "case.json --json"),
    ("streams --streams 3", "simulate --streams", "--streams 3"),
    ("exponents --model vit --scale 1", "probe exponents", "vit --scale 1"),
    ("exponents --model=vit", "probe exponents", "vit"),
)
def test_the_words_choose_the_form_of_a_command(words, name, rest):
    command, left = chosen(words.split())
    assert command.row.name == name and left == rest.split()


@cases(
    "words, expected",
    ("--depth 1 5 --json", "--depth 1 --depth 5 --json"),
    ("--depth -1 -5 x.json", "--depth -1 --depth -5 --depth x.json"),
    ("x.json --json y", "x.json --json y"),
    ("--depth 1 --depth 2 3", "--depth 1 --depth 2 --depth 3"),
    ("--depth=1 x.json", "--depth=1 x.json"),
)
def test_an_option_that_repeats_takes_several_words(words, expected):
    assert repeat_flags(words.split(), {"--depth"}) == expected.split()


# -------------------------------------------------------------------------------- JSON, and options


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a model, pictures, a certificate, a grid and a configuration."""
    folder = tmp_path_factory.mktemp("place")
    networks.model_folder(folder)
    for k in range(7):  # of which the ladder needs 13
        shutil.copy(folder / "pictures" / "0.png", folder / "pictures" / f"again-{k}.png")
    shutil.copytree(folder / "pictures", folder / "others")
    (folder / "others" / "0.png").unlink()
    (folder / "one").mkdir()
    shutil.copy(folder / "pictures" / "0.png", folder / "one")
    shutil.copytree(folder / "shallow", folder / "elsewhere" / "inner")
    (folder / "words.txt").write_text("one two\n")
    A = [["(1+a)/2", "(1-a)/2"], ["(1-a)/2", "(1+a)/2"]]
    tie = {"A": [[0.75, 0.25], [0.25, 0.75]], "H": [[-4 / 3]]}
    r, six = random.Random(6), range(6)  # an X0 of which not all is said at once
    rows = [[r.randint(1, 10**12) for _ in six] for _ in six]
    long = {
        "A": [[f"{weight}/{sum(row)}" for weight in row] for row in rows],
        "H": [[f"{r.randint(-9, 9) - 30 * (i == j)}/30" for j in six] for i in six],
        "X0": [[r.randint(-3, 3) for _ in six] for _ in six],
    }
    grid = 'measures = []\n[fixed]\nn = 3\nd = 2\nvalue = "interval"\n[axes]\nseed = [0, 1]\n'
    (folder / "grid.toml").write_text(grid.replace("n = 3", "n = 4"))
    with inside(folder):
        for words in (
            "sweep grid.toml --out held", "certify --example GT4 --out certificate.json",
            "prove --init own.py", "atlas model --out listed",
            "enclose shallow --images pictures --out proved",
        ):  # fmt: skip
            assert oversmoothing.main(words.split()) == 0
    (folder / "grid.toml").write_text(grid)
    (folder / "two.toml").write_text(grid.replace("[0, 1]", "[0, 1, 2]"))
    shutil.copy(folder / "listed" / "atlas" / "rows.csv", folder)
    shutil.copy(folder / "proved/enclose/shallow/enclosure-1.json", folder / "enclosure.json")
    forged = json.loads((folder / "certificate.json").read_text())
    forged["claim"]["depth"] = 2
    for name, value in {
        "parameters": {"A": A, "H": [["h"]]}, "doubled": {"A": A, "H": [["2*h"]]}, "tie": tie,
        "streams": tie | {"R": [[0.5, 0.5], [0.25, 0.75]]}, "case": case(7), "other": case(9),
        "long": long, "forged": forged, "config": TRAINED, "twice": TRAINED | {"epochs": 2},
        "spun": SPUN,
    }.items():  # fmt: skip
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


@pytest.fixture
def anew(place, tmp_path, monkeypatch):
    """Go to a folder that links to the place's contents, another for each run: what one run writes
    is in its own alone."""

    def folder_of_its_own() -> Path:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for each in place.iterdir():
            (folder / each.name).symlink_to(each)
        # What a run would write into.
        (folder / "held").unlink()
        shutil.copytree(place / "held", folder / "held")
        monkeypatch.chdir(folder)
        return folder

    yield folder_of_its_own
    assert not (place / "results").exists(), "a run has written into what all runs share"


def test_every_command_has_its_json_tested():
    assert {row.name for row in ROWS} == {*OPTIONS, *BY_HAND}
    for row in ROWS:
        flags = {flag for param in load(row).params for flag in param.opts}
        assert row.name == "probe" or "--json" in flags, row.name


def test_an_experiment_without_options_of_its_own_is_one_row(tmp_path, capsys):
    """The row names a function of a model and its inputs; the options are those of all kinds."""
    function = "experiments.repeated.flips:sign_flips"
    row = Row("probe signs", function, "probe", "MODEL", "which sign?", "")
    words = ["vit-random", "--count", "4", "--json", "--out", str(tmp_path)]
    load(row).main(words, standalone_mode=False)
    shown = json.loads(capsys.readouterr().out)
    assert shown["form"]["name"] == "flips"
    (folder,) = (tmp_path / "signs").iterdir()
    assert json.loads((folder / "flips.json").read_text())["words"] == shown["words"]


# -------------------------------------------------------------- no option is dropped without a word

PICTURED, MODEL = "shallow --images pictures", "model --images pictures"
RANDOM, MANY = (f"vit-random --count {count}" for count in (1, 90))
AT_ONCE = "T2b --jobs 1 --thorough --minutes 0"
RUN, RANGES = "--n 3 --d 2 --depth 9 --points 3", "--vary h=-3:1 --vary a=-1:1"
# Its boundaries in all three are left out for their cost.
SPUN = {"A": [[".5", ".5", "0"], ["0", ".5", ".5"], [".5", "0", ".5"]],
        "H": [["0", "0", "h*k*m"], ["1", "0", "0"], ["0", "1", "0"]]}  # fmt: skip
SPANS = "--vary h=-3:1 --vary k=0:1 --vary m=0:1"
# What an option is given, by name and by command: added to a command that runs it must change what
# that does, behind "!" be refused; or the command without it and the command with it.
Asked = str | tuple[str, str]
SIMULATED: dict[str, Asked] = {
    "--n": "--n 4", "--d": "--d 3", "--depth": "--depth 8", "--temperature": "--temperature 2",
    "--points": "--points 4", "--scale": "--scale 0.25", "--dtype": "--dtype float32",
    "--heads": "--heads 3", "--causal": "--causal",
}  # fmt: skip
ANYWHERE: dict[str, Asked] = {
    "--json": "--json", "--plot": "--plot", "--seed": "--seed 7", "--device": "! --device nosuch",
    "--out": "--out new", "--report": "--report new.file", "--images": "--images others",
    "--count": "--count 3", "--part": "! --part nosuch", "--tokens": "! --tokens 4",
    "--text": "! --text words.txt", "--list": "--list", "--draws": "--draws 2",
}  # fmt: skip
MOVED: tuple[str, dict[str, Asked]] = (f"{PICTURED} --count 2 --shift 0.1", {
    "--shift": "--shift 0.2", "--into-disc": "--into-disc 0.5", "--head": "--head 1.1",
    "--without": "--without all", "--every": "--every 2", "--train": f"! {PICTURED} --train",
})  # fmt: skip
OPTIONS: dict[str, tuple[str, dict[str, Asked]]] = {
    "inspect": (f"{PICTURED} --count 6", {
        "OTHER": "model", "--wide": "--wide",
        "--budget": (MANY, f"{MANY} --budget 12"),
        "--images": (f"{PICTURED} --count 6", "shallow --images others --count 6"),
        "--batch-size": "--batch-size 1", "--dry-run": "--dry-run",
        "--seed": (RANDOM, f"{RANDOM} --seed 1"),
    }),
    "verdict": ("case.json", {
        "CASE.json": ("case.json", "other.json"), "--example": ("case.json", "--example GT4"),
        "--depth": "--depth 3", "--exact-binary": ("tie.json", "tie.json --exact-binary"),
        "--certified": ("streams.json", "streams.json --certified"),
        "--agree": ("streams.json", "streams.json --agree 0.5"),
        "--thorough": ("long.json", "long.json --thorough"),
    }),
    "explorer": ("", {}),
    "certify": ("--example GT4", {
        "CASE.json": ("case.json", "other.json"), "--example": ("case.json", "--example GT4"),
        "--eps": "--eps 1/10",
    }),
    "check": ("certificate.json", {"FILE": ("certificate.json", "forged.json")}),
    "prove": ("T2b --kind searched --examples 5", {
        "NAME": "T2d", "--kind": ("T11.1", "T11.1 --kind written"), "--examples": "--examples 6",
        "--seed": ("own.py --examples 9", "own.py --examples 9 --seed 1"),
        "--init": ("T2d --kind written", "--init mine.py"), "--jobs": "! --jobs 0",
        "--limit": ("T7d --kind 'for all reals'", "T7d --kind 'for all reals' --limit 1e-9"),
        "--thorough": ("T2b --kind written", AT_ONCE),
        "--list": ("T2b --kind written", "T2b --list"),
        "--minutes": (AT_ONCE, AT_ONCE + ".01"),
    }),
    "simulate": (RUN, SIMULATED | {
        "--attention": "--attention causal", "--value": "--value goe", "--dim": "--dim 1",
        "--help-options": "--help-options",
        "--reach": "--attention local --reach 1",
        "--stride": "--attention strided --stride 3",
        "--asymmetry": "--attention asymmetric --asymmetry 0.1",
        "--coupling": "--attention nearly_reducible --coupling 0.1",
        "--blocks": "--attention nearly_reducible --blocks 1",
        "--basis": "--value interval --basis general", "--low": "--value interval --low -3",
        "--eigenvalues": "--value spectrum --eigenvalues 1,2",
        "--high": "--value interval --high 3", "--centre": "--value disc --centre 3",
        "--radius": "--value disc --radius 3", "--positive": "--value plus_minus --positive 1",
        "--rank": "--value low_rank --rank 1", "--eigenvalue": "--value defective --eigenvalue 3",
        "--size": "! --value defective --size 9",
    }),
    "simulate --heads": (RUN, SIMULATED | {
        "--rank": "--rank 1 --heads 1", "--attention": "--attention state",
        "--weights": "--weights drawn", "--no-residual": "--no-residual",
    }),
    "simulate --streams": (RUN, SIMULATED | {
        "--streams": "--streams 3", "--agree": "--agree 0.9", "--mixing": "--mixing orthogonal",
        "--changing": "--changing", "--mixing-temperature": "--mixing-temperature 3",
        "--any-p": "--any-p", "--any-q": "--any-q",
    }),
    "simulate --exponents": ("--ensemble iid --n 3 --d 2 --depth 200", SIMULATED | {
        "--ensemble": "--ensemble causal", "--depth": "--depth 400",
    }),
    "sweep": ("grid.toml", {
        "FILE.toml": ("grid.toml", "two.toml"), "--csv": "--csv", "--dry-run": "--dry-run",
        "--example": ("grid.toml --dry-run", "--example heads --dry-run"),
        "--workers": "! --workers 0", "--cluster": "! --cluster nosuch", "--chunk": "! --chunk 0",
        "--scheduler": "! --scheduler nosuch", "--figure": "--figure seed n",
        "--restart": ("grid.toml --out held", "grid.toml --out held --restart"),
    }),
    "graphs": ("--draws 3", {
        "--attention": "--attention gat", "--classifier": "--classifier --steps 1",
        "--steps": ("--draws 3 --classifier --steps 1", "--draws 3 --classifier --steps 2"),
    }),
    "enclose": (f"{PICTURED} --count 1", {
        "--box": "--box --eps 0.0001", "--check": (PICTURED, "shallow --check enclosure.json"),
        "--eps": (f"{PICTURED} --box --eps 1e-4", f"{PICTURED} --box --eps 2e-4"),
        "--layer": (f"{MODEL} --box --eps 1e-4", f"{MODEL} --box --eps 1e-4 --layer 1"),
    }),
    "train": ("config.json", {
        "CONFIG.toml": ("config.json", "twice.json"), "--variant": "--variant vit-",
        "--recipe": "! --recipe cifar100-small", "--hub": "! --hub",
        "--data-dir": "! --data-dir elsewhere",
    }),
    "study": ("core --dry-run", {
        "NAME": ("core --dry-run", "trainability --dry-run"), "--workers": "--workers 2",
        "--protocol": "! --protocol nosuch.toml", "--blocks": "! --blocks 1",
        "--task": "--task bible", "--device": "! --device cuda:99",
        "--dry-run": ("answers", "core --dry-run"), "--data-dir": "! --data-dir elsewhere",
        "--so-far": ("answers", "answers --so-far"), "--plot": ("answers", "answers --plot"),
        "--out": ("answers", "answers --out new"),
    }),
    "intervene": MOVED,
    "regions": (f"parameters.json {RANGES}", {
        "CASE.json": (f"parameters.json {RANGES}", f"doubled.json {RANGES}"),
        "--vary": "--vary h=-2:1 --vary a=-1:1",
        "--thorough": (f"spun.json {SPANS}", f"spun.json {SPANS} --thorough"),
    }),
    "probe intervene": MOVED,
    "atlas": (PICTURED, {
        "MODEL...": "model", "--join": (PICTURED, f"{PICTURED} --join rows.csv"),
        "--images": ("shallow", PICTURED),
        "--seed": ("vit-random", "vit-random --seed 1"),
    }),
    "figures": ("lambda_plane", {
        "NAME": ("rotation", "lambda_plane"), "--format": "--format svg",
        "--width": "--width one-column", "--seed": ("lambda_plane", "lambda_plane --seed 1"),
    }),
    "remedies": ("attnscale --draws 1", {
        "NAME": "contranorm", "--list": ("attnscale --draws 1", "--list"),
        # A line of the table has seconds in it, an entry of the JSON has not.
        "--seed": ("attnscale --draws 1 --json", "attnscale --draws 1 --json --seed 7"),
    }),
    "probe stability": (f"{PICTURED} --count 1", {"--size": "--size 0.1"}),
    "probe loop": (f"{PICTURED} --count 4 --loops 20", {
        "--count": "--count 5", "--every": "--every 2", "--loops": "--loops 21",
        "--recall": "--recall 0.5", "--group": "--group 1 1-1",
    }),
    "probe flips": (f"{PICTURED} --count 4", {"--count": "--count 5"}),
    "probe tilt": (f"{PICTURED} --count 2", {
        "--steer": "--steer", "--dry-run": (f"{PICTURED} --steer", f"{PICTURED} --steer --dry-run"),
    }),
    "probe readings": (f"{PICTURED} --count 2", {
        "--images": "--images one",
        "--readings": "--readings E1", "--folded": "--folded",
        "--costly": "--readings E3 --costly 1",
        "--seed": ("vit-random --count 1", "vit-random --count 1 --seed 1"),
    }),
    "probe ladder": (f"{PICTURED} --calibration 10 --standard 2 --held-out 3", {
        "--calibration": "--calibration 11 --held-out 2",
        "--images": "--images others --held-out 2", "--standard": "--standard 3",
        "--held-out": "--held-out 2", "--held-out-from": "--held-out 2 --held-out-from 1",
        "--copies": "--copies 1", "--first-layers": "--first-layers 1",
    }),
    "probe exponents": (f"{PICTURED} --depth 200", {
        "--scale": "--scale 0.1", "--depth": "--depth 400",
        "--seed": ("vit-random --depth 200", "vit-random --depth 200 --seed 1"),
    }),
    "probe certified": (f"{PICTURED} --count 2", {"--images": "--images one"}),
}  # fmt: skip
# `probe` alone is no command; what `reproduce` hands on is seen below.
BY_HAND = ("probe", "reproduce")


def flags_of(row: Row) -> list[str]:
    return [typed_as(param) for param in load(row).params]


def without_and_with(name: str, flag: str) -> tuple[str, str, bool]:
    """The words of a command, those with the option, and whether these are refused."""
    usual, own = OPTIONS[name]
    asked = own.get(flag) or ANYWHERE.get(flag)
    if asked is None and flag == "MODEL":
        asked = usual, usual.replace("shallow", "model")
    if asked is None and flag == "--data-dir":
        far = usual.replace("shallow", "inner")
        asked = far, f"{far} --data-dir elsewhere"
    assert asked is not None, f"{name}: what does {flag} change?"
    if isinstance(asked, tuple):
        return asked[0], asked[1].removeprefix("! "), asked[1].startswith("!")
    words = asked.removeprefix("!").split()
    kept, again = [], False
    for word in usual.split():
        again = word in words if word.startswith("--") else again
        kept += [] if again else [word]
    return usual, " ".join([*kept, *words]), asked.startswith("!")


def entries_of(value: object, at: str) -> Iterator[tuple[str, object]]:
    """The entries of JSON, or the lines of a text, by their places."""
    if isinstance(value, str) and at[-1:] != "/":
        try:
            value = json.loads(value)
        except ValueError:
            value = value.splitlines()
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from entries_of(each, f"{at}{key}/")
    else:
        yield at, value


def done(name: str, words: str, capsys, folder: Path) -> dict[str, object]:
    """All that a command says and writes, entry by entry."""
    head, *form = name.split()
    status, out, err = asked(head, *shlex.split(words), *form, capsys=capsys)
    found = dict(entries_of({"status": status, "err": err.splitlines()}, ""))
    if "--json" in words.split():  # one value and nothing else
        assert status in (0, 1) and json.loads(out) is not None
    found |= entries_of(out, "out")
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            place = str(path.relative_to(folder))
            found[place] = True
            if path.suffix in (".json", ".csv", ".txt"):
                found |= entries_of(path.read_text(), place)
            else:
                found[place] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def runs_before() -> dict[tuple[str, str], list[dict[str, object]]]:
    """Two runs of each command without the option, by its name and words."""
    return {}


@pytest.mark.parametrize(
    ("name", "flag"),
    [(row.name, flag) for row in ROWS if row.name not in BY_HAND for flag in flags_of(row)],
)
def test_every_option_changes_what_a_command_does_or_is_refused(
    name, flag, anew, runs_before, capsys
):
    """What differs from run to run, such as seconds, does not count."""
    usual, words, is_refused = without_and_with(name, flag)
    if (name, usual) not in runs_before:
        runs_before[name, usual] = [done(name, usual, capsys, anew()) for _ in range(2)]
    runs = runs_before[name, usual]
    stable = {key for key in runs[0] if runs[0][key] == runs[1].get(key)}
    found = done(name, words, capsys, anew())
    differ = {key for key in stable if runs[0][key] != found.get(key)}
    more = found.keys() - runs[0].keys() - runs[1].keys()
    assert differ or more, f"{flag} changes nothing: {words}"
    assert (found["status/"] == 2) is is_refused, (words, found)
    # What is refused is so for this option alone.
    assert runs[0]["status/"] != 2 or not is_refused, usual


@cases(
    "words, said",
    ("verdict --example GT4 --agree 0.5", '--agree does nothing without a case with "R"'),
    ("verdict streams.json --depth 3", '--depth does nothing without a case without "R"'),
    ("prove T2b --minutes 2", "--minutes does nothing without --thorough"),
    ("prove T2b --thorough --seed 1 --limit 2", "--limit and --seed do nothing beside --tho"),
    ("prove T2b --kind sharp --limit 2", "--limit does nothing without --kind 'for all reals'"),
    ("prove T2b --thorough --kind searched", "--kind does nothing beside --thorough"),
    ("prove own.py --jobs 2", "--jobs does nothing without claims of the ledger"),
    ("prove --list --seed 1", "--seed does nothing beside --list"),
    ("prove T2d --init mine.py", "NAME does nothing beside --init"),
    ("graphs --steps 5", "--steps does nothing without --classifier"),
    ("probe shallow readings --costly 3", "--costly does nothing without --readings E3"),
    ("study core --dry-run --so-far", "--so-far does nothing beside --dry-run"),
    ("study spreads --so-far", "--so-far does nothing beside spreads"),
    ("study answers --workers 2", "--workers does nothing beside answers"),
    ("atlas shallow --tokens 3", "--tokens does nothing without --text"),
    ("enclose shallow --layer 1", "--layer does nothing without --box"),
    ("enclose shallow --check a.json --box", "--box does nothing beside --check"),
    ("figures --list --seed 1", "--seed does nothing beside --list"),
    ("remedies --list --draws 3", "--draws does nothing beside --list"),
    ("train --hub", '--hub does nothing without data = "cifar10"'),
    ("inspect shallow --wide --json", "--wide does nothing beside --json"),
    ("simulate --size 3", "size"),
    ("probe shallow ladder --images pictures --tokens 9", "--tokens does nothing without a m"),
    ("simulate --depth 2147483648", "2,147,483,648 layers one by one would take about"),
)  # fmt: skip
def test_an_option_that_would_not_be_read_is_refused(words, said, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    assert said in refused(*words.split(), capsys=capsys)[0]


@cases(
    "words, changed",
    ("--full", {"full": True}), ("--workers 3", {"workers": 3}), ("--seed 5", {"seed": 5}),
    ("--out new", {"out": "new"}), ("--device cpu", {"device": "cpu"}),
    ("--fresh", {"fresh": True}),
)  # fmt: skip
def test_reproduce_hands_on_what_it_is_given(words, changed, capsys, monkeypatch, tmp_path):
    from oversmoothing.paper_figures import reproduce

    seen: list[dict[str, object]] = []

    def run(context, full: bool, workers: int, fresh: bool) -> int:
        seen.append({"out": context.results.name, "seed": context.seed, "device": context.device,
                     "full": full, "workers": workers, "fresh": fresh})  # fmt: skip
        return 0

    monkeypatch.setattr(reproduce, "reproduce", run)
    monkeypatch.chdir(tmp_path)
    asked("reproduce", capsys=capsys)
    asked("reproduce", *words.split(), capsys=capsys)
    assert seen[1] == seen[0] | changed != seen[0]
