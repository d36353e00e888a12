"""The contract of every command: its help, its example, its JSON, and how bad input is answered."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from string import ascii_lowercase

import pytest

import oversmoothing
from oversmoothing.commands import COMMANDS, OLD, ROWS, Row, forms
from oversmoothing.commands.main import chosen, load, repeat_flags
from tests.corpora import networks
from tests.corpora.commands import TRAINED

SHOWN = [row for row in ROWS if row.group]
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
    assert max(map(len, lines)) <= 80 and len(lines) <= 45
    place = 0
    for row in COMMANDS.values():
        if row.group:
            place = lines.index(f"    {row.usage:17s} {row.summary}", place)
            assert row.group in [line.strip() for line in lines[:place]]
    for word, row in forms("probe").items():
        assert f"{word:10s} {row.summary}" in out
    assert not {line.split()[0] for line in lines if line.startswith("    ") and line[4] != " "} & {
        *OLD, "bench", "atlas"
    }  # fmt: skip


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row.name)
def test_the_help_of_a_command_can_be_read_and_its_example_typed(row, capsys):
    status, out, err = asked(*row.asked.split(), "--help", capsys=capsys)
    assert (status, err) == (0, "") and out.isascii()
    assert out.startswith(f"Usage: oversmoothing {row.usage} [OPTIONS]\n")
    assert out.rstrip().endswith(f"Example: oversmoothing {row.example}")
    assert not re.search(r"<=|<\w+>|\d{12}|e\+\d", out), out
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


@pytest.mark.parametrize("row", [row for row in SHOWN if row.name != "probe"], ids=lambda r: r.name)
def test_an_option_of_no_command_is_refused_in_two_lines(row, capsys):
    wrong, todo = refused(*row.asked.split(), "--nonsense", capsys=capsys)
    assert wrong.startswith("no option --nonsense.")
    assert todo == f"'oversmoothing {row.asked} --help' says what it takes."


@pytest.mark.parametrize(
    ("words", "wrong", "todo"),
    [
        ("inspekt gpt2", "no command 'inspekt'. Did you mean 'inspect'?", "--help' shows all "),
        ("bench", "'bench' has left the installed program.", "make bench"),
        ("verdict --depht 3", "no option --depht. Did you mean --depth?", "verdict --help'"),
        ("probe gpt2 lop", "no kind 'lop'. Did you mean 'loop'?", "probe --help' shows all "),
        ("probe gpt2", "which kind? Type oversmoothing probe MODEL KIND.", "probe --help'"),
        ("check", "FILE is missing.", "check --help'"),
        ("explorer x y", "'x y' is too much.", "explorer --help'"),
        ("verdict --depth 3 --agree 1 --agree 2", "--agree is given 2 times", "verdict --help'"),
        ("simulate --n", "Option '--n' requires an argument.", "simulate --help'"),
        ("figures lamda_plane", "no figure 'lamda_plane'. Did you mean 'lambda_plane'?", "--list'"),
        ("remedies attnscal", "no remedy 'attnscal'. Did you mean 'attnscale'?", "--list'"),
        ("prove T99", "no claim 'T99'. Chapter T9 has T9a, T9b, T9c and T9d.", "--list' shows all"),
        ("prove T2 --kind formall", "no kind 'formall'. Did you mean 'formal'?", "prove --help'"),
        ("train --variant smt", "no variant 'smt'.", "Choose vit, vit+, vit- or vit-FORM."),
        ("study cor", "no study 'cor'. Did you mean 'core'?", "study --help'"),
        ("verdict --example GT44", "no example 'GT44'. Did you mean 'GT4'?", "GT1, GT2"),
        ("simulate --attention causl", "no attention 'causl'. Did you mean 'causal'?", "--help'"),
        ("probe vit readings --readings E9", "no reading 'E9'.", "readings --help'"),
        ("simulate --temperature 0", "--temperature must be above 0.", "simulate --help'"),
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
        (
            "probe gpt2 loop --text nosuch",
            "no file 'nosuch' was found here",
            "Give a file to --text",
        ),
        ("probe gpt2 loop --group 3-1", "--group 3-1 names no layers: write 3, or 1-12", "--help'"),
        ("prove --list --out x", "--list names what there is and writes nothing", "prove --help'"),
        ("prove --thorough --out x.html", "--thorough writes thorough.json and no page", "--help'"),
    ],
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
    row, *_ = OLD[old]
    command, _ = chosen([old])
    assert command.row.name == row
    said = command.row.usage if command.row.group else f"make bench BENCH='--only {old}'"
    assert capsys.readouterr().err == f"`{old}` is now `{said}`\n"


@pytest.mark.parametrize(
    ("words", "name", "rest"),
    [
        ("streams case.json --json", "verdict", "case.json --json"),
        ("streams --streams 3", "simulate --streams", "--streams 3"),
        ("exponents --model vit --scale 1", "probe exponents", "vit --scale 1"),
        ("exponents --model=vit", "probe exponents", "vit"),
    ],
)
def test_two_uses_of_an_old_name_are_told_apart(words, name, rest):
    command, left = chosen(words.split())
    assert command.row.name == name and left == rest.split()


@pytest.mark.parametrize("row", [row for row in ROWS if row.old], ids=lambda row: row.name)
def test_an_old_option_is_read_as_the_new_one(row, capsys):
    for flag, new in row.old.items():
        for words in ([flag, "x"], [f"{flag}=x"]):
            assert chosen([*row.asked.split(), *words])[1][-1] in ("x", f"{new}=x", f"{flag}=x")
            assert capsys.readouterr().err.endswith(f"`{flag}` is now `{new or row.usage}`\n")


# ------------------------------------------------------------------------------------- the parser


@pytest.mark.parametrize(
    ("words", "name", "rest"),
    [
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
    ],
)
def test_the_words_choose_the_form_of_a_command(words, name, rest):
    command, left = chosen(words.split())
    assert command.row.name == name and left == rest.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--depth 1 5 --json", "--depth 1 --depth 5 --json"),
        ("--depth -1 -5 x.json", "--depth -1 --depth -5 --depth x.json"),
        ("x.json --json y", "x.json --json y"),
        ("--depth 1 --depth 2 3", "--depth 1 --depth 2 --depth 3"),
        ("--depth=1 x.json", "--depth=1 x.json"),
    ],
)
def test_an_option_that_repeats_takes_several_words(words, expected):
    assert repeat_flags(words.split(), {"--depth"}) == expected.split()


# -------------------------------------------------------------------------------------------- JSON

SMALL = "--n 3 --d 2 --depth 9 --points 3"
SEEN = "shallow --images pictures"
# Each command at cheap settings; `reproduce` runs the others.
CHEAP = {
    "inspect": f"{SEEN} --count 2 --spectra 0",
    "verdict": "--example GT4",
    "explorer": "",
    "certify": "--example GT4",
    "check": "certificate.json",
    "prove": "T2d --kind written",
    "simulate": SMALL,
    "sweep": "grid.toml --csv",
    "graphs": "--draws 3",
    "enclose": f"{SEEN} --count 1",
    "train": "config.json",
    "study": "core --dry-run",
    "atlas": "shallow",
    "intervene": f"{SEEN} --count 2 --shift 0.1",
    "regions": "parameters.json --vary h=-3:1 --vary a=-1:1",
    "figures": "lambda_plane --list",
    "remedies": "attnscale --draws 1",
    "simulate --heads": SMALL,
    "simulate --streams": SMALL,
    "simulate --exponents": "--ensemble iid --n 3 --d 2 --depth 200",
    "probe intervene": f"{SEEN} --count 2 --shift 0.1",
    "probe stability": f"{SEEN} --count 1",
    "probe loop": f"{SEEN} --count 4 --loops 20",
    "probe flips": f"{SEEN} --count 4",
    "probe tilt": f"{SEEN} --count 2",
    "probe readings": f"{SEEN} --count 2",
    "probe ladder": f"{SEEN} --calibration 10 --standard 2 --held-out 3",
    "probe exponents": f"{SEEN} --depth 200",
    "probe certified": f"{SEEN} --count 1",
    "rates": "",
    "steer": "--draws 1",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a model, pictures, a certificate, a grid and a configuration."""
    folder = tmp_path_factory.mktemp("place")
    networks.model_folder(folder)
    for k in range(7):  # of which the ladder needs 13
        shutil.copy(folder / "pictures" / "0.png", folder / "pictures" / f"again-{k}.png")
    grid = 'measures = []\n[fixed]\nn = 3\nd = 2\nvalue = "interval"\n[axes]\nseed = [0, 1]\n'
    (folder / "grid.toml").write_text(grid)
    A = [["(1+a)/2", "(1-a)/2"], ["(1-a)/2", "(1+a)/2"]]
    (folder / "parameters.json").write_text(json.dumps({"A": A, "H": [["h"]]}))
    (folder / "config.json").write_text(json.dumps(TRAINED))
    out = str(folder / "certificate.json")
    assert oversmoothing.main(["certify", "--example", "GT4", "--out", out]) == 0
    return folder


def test_every_command_has_its_json_tested():
    assert {row.name for row in ROWS} == {*CHEAP, "probe", "reproduce"}
    for row in ROWS:
        flags = {flag for param in load(row).params for flag in param.opts}
        assert row.name == "probe" or "--json" in flags, row.name


@pytest.mark.parametrize("name", CHEAP)
def test_json_is_one_value_and_nothing_else(name, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    words = [*name.split()[:1], *CHEAP[name].split(), *name.split()[1:], "--json"]
    status, out, _ = asked(*words, capsys=capsys)
    assert status in (0, 1) and json.loads(out) is not None


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
