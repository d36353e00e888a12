"""Files of enclosures: what is true is accepted, every forgery refused; the command for both."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any

import flint
import pytest

import oversmoothing
from oversmoothing import InputError
from oversmoothing.experiments.digits.training import trained
from oversmoothing.experiments.enclosures import enclosing, statement
from oversmoothing.experiments.enclosures.enclosing import both_routes, enclosed
from tests.support.cases import cases
from tests.support.drawn_networks import drawn_input, drawn_network
from tests.support.refusals import refuses
from tests.support.tiny_models import tiny_config

Body = dict[str, Any]
NETWORK = drawn_network(5, depth=1)
GIVEN = drawn_input(NETWORK, 5)
STREAM = drawn_network(6, depth=1, patches=False, placement="post", activation="silu", gated=True)
X0 = drawn_input(STREAM, 6)
EPS = 2.0**-12


@pytest.fixture(scope="module")
def files() -> dict[str, tuple[Any, Body]]:
    point = statement.input_statement(NETWORK, GIVEN, enclosed(NETWORK, GIVEN))
    stream = statement.input_statement(STREAM, X0, enclosed(STREAM, X0))
    ends = both_routes(NETWORK, GIVEN, EPS, 1)[0]
    box = statement.box_statement(NETWORK, GIVEN, EPS, {1: ends})
    return {"pixels": (NETWORK, point), "stream": (STREAM, stream), "box": (NETWORK, box)}


def accepted(network: Any, body: Body, *, seal: bool = True) -> bool:
    """Whether the checker accepts the file, its digest made to fit."""
    text = json.dumps({**body, "digest": statement.digest(body)} if seal else body)
    try:
        return statement.check_statement(network, statement.read_statement(text, "a file")).accepted
    except InputError:
        return False


every_kind = pytest.mark.parametrize("kind", ["pixels", "stream", "box"])


@every_kind
def test_what_is_honest_is_accepted(kind, files):
    network, body = files[kind]
    assert accepted(network, body, seal=False)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of every part of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from places(inner, (*path, key))


def at(body: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        body = body[key]
    return body


WRONG = (None, True, 0, 1.5, "", "x", [], {}, [[]], "nan", "1e0", "inf", -1)


def put(wrong: Any) -> Callable[[Any, Any], None]:
    return lambda place, key: place.__setitem__(key, wrong)


@every_kind
def test_no_part_of_another_type_missing_renamed_or_added_is_accepted(kind, files):
    network, body = files[kind]
    passed = []
    for path in places(body):
        if not path or path == ("digest",) or (path[0] == "claims" and len(path) == 4):
            continue  # ends have a test of their own
        changes = CHANGES if isinstance(path[-1], str) else {}
        for name, change in {**dict(enumerate(map(put, WRONG))), **changes}.items():
            other = deepcopy(body)
            change(at(other, path[:-1]), path[-1])
            same, kept = (json.dumps(each, sort_keys=True) for each in (other, body))
            passed += [(path, name)] if same != kept and accepted(network, other) else []
    assert not passed, passed[:5]


CHANGES: dict[str, Callable[[Body, str], Any]] = {
    "dropped": lambda place, key: place.pop(key),
    "renamed": lambda place, key: place.update({f"{key}_": place.pop(key)}),
    "in capitals": lambda place, key: place.update({key.swapcase(): place.pop(key)}),
    "added": lambda place, key: place.update(comment="it is so"),
}


MOVES: dict[str, Callable[[Fraction, Fraction], tuple[Fraction, Fraction]]] = {
    "above": lambda low, high: (high + (high - low), high + 2 * (high - low)),
    "below": lambda low, high: (low - 2 * (high - low), low - (high - low)),
    "far above": lambda low, high: (high + 1, high + 2),
    "its upper tenth": lambda low, high: (high - (high - low) / 10, high),
    "its lower tenth": lambda low, high: (low, low + (high - low) / 10),
    "its low end alone": lambda low, high: (low, low),
    "with ends exchanged": lambda low, high: (high, low),
    "negated": lambda low, high: (-high, -low),
}


@pytest.mark.parametrize("move", MOVES)
@every_kind
def test_no_interval_beside_the_truth_is_accepted(kind, move, files):
    network, body = files[kind]
    # One of each metric in some layer: the checker stops at the first that is false.
    layers = list(body["claims"])
    for k, name in enumerate(body["claims"][layers[-1]]):
        other = deepcopy(body)
        layer = other["claims"][layers[k % len(layers)]]
        low, high = MOVES[move](*map(Fraction, layer[name]))
        ends = (low, "ROUND_FLOOR"), (high, "ROUND_CEILING")
        layer[name] = [statement.decimal(*end) for end in ends]
        assert not accepted(network, other), name


SPELLED = {
    "a decimal": lambda x: str(float(x)),
    "in capitals": lambda x: x.upper(),
    "a number": float,
    "with a space": lambda x: f" {x}",
    "with a plus": lambda x: f"+{x}",
    "hexadecimal": lambda x: float(x).hex(),
    "with a digit more": lambda x: x.replace("e", "0e"),
    "without an exponent": lambda x: x.split("e")[0],
    "an endless exponent": lambda x: x.split("e")[0] + "e" + "9" * 50,
    "infinite": lambda x: "inf",
    "no number": lambda x: "nan",
}


@pytest.mark.parametrize("spelling", SPELLED)
def test_ends_are_read_in_one_spelling(spelling, files):
    for network, body in files.values():
        other = deepcopy(body)
        layer = next(iter(other["claims"].values()))
        name = next(iter(layer))
        layer[name] = [SPELLED[spelling](layer[name][0]), layer[name][1]]
        assert not accepted(network, other)


def test_another_input_network_box_or_digest_is_refused(files):
    network, body = files["pixels"]
    assert not accepted(network, body | {"input": files["box"][1]["input"] | {"eps": (1.0).hex()}})
    moved = GIVEN.copy()
    moved[0, 0, 0] += 2.0**-10
    other = statement.input_statement(NETWORK, moved, enclosed(NETWORK, GIVEN))
    assert not accepted(NETWORK, other)
    assert not accepted(drawn_network(7, depth=1), body)
    assert not accepted(network, body | {"digest": "0" * 64}, seal=False)
    # A box within the proved one is accepted.
    box, wrong = deepcopy(files["box"][1]), ("-0x1.0p-3", "0x0.0p+0", "inf", "nan", 0.001, "0.001")
    for eps in ((2 * EPS).hex(), (EPS / 2).hex(), *wrong):
        box["input"]["eps"] = eps
        assert accepted(network, box) == (eps == (EPS / 2).hex())


def test_a_repeated_key_is_refused(files):
    text = json.dumps(files["pixels"][1])
    twice = text.replace('"kind": ', '"kind": "x", "kind": ', 1)
    refuses("more than once", statement.read_statement, twice, "a file")


def test_decimals_are_outward():
    for value in (Fraction(1, 3), Fraction(-2, 3), Fraction(10**40 + 1, 7), Fraction(0)):
        low, high = (statement.decimal(value, f"ROUND_{way}") for way in ("FLOOR", "CEILING"))
        assert Fraction(low) <= value <= Fraction(high)
        assert Fraction(high) - Fraction(low) <= abs(value) / 10**23


def test_a_wrong_formula_of_one_route_is_not_confirmed_by_the_other(monkeypatch, files):
    tanh = enclosing.ACTIVATIONS["gelu_tanh"]
    monkeypatch.setitem(enclosing.ACTIVATIONS, "gelu", tanh)
    body = statement.input_statement(NETWORK, GIVEN, enclosed(NETWORK, GIVEN))
    assert not accepted(NETWORK, body)


def test_a_claim_too_narrow_for_the_checker_is_not_confirmed(monkeypatch, files):
    network, body = files["pixels"]
    monkeypatch.setattr(statement, "MORE", -140)
    monkeypatch.setattr(statement, "DOUBLED", 0)
    found = statement.check_statement(network, statement.read_statement(json.dumps(body), "a file"))
    assert not found.accepted and "narrower than 8 bits can confirm" in found.words


def test_a_claim_is_confirmed_by_a_ball_within_it_alone():
    claim = (Fraction(1), Fraction(2))
    for middle, radius, found in (
        (1.5, 0.25, True), (1.5, 0.499, True), (1.5, 0.501, None), (2.0, 0.25, None),
        (1.0, 0.0, True), (2.5, 0.25, False), (0.5, 0.25, False), (2.5, 0.5, None),
        (0.0, float("inf"), None),
    ):  # fmt: skip
        assert statement.compared(flint.arb(middle, radius), claim) is found


@pytest.fixture
def run_folder(tmp_path):
    """A digits model, as a run leaves it."""
    return trained(tiny_config("vit", epochs=1), tmp_path, progress=False).run.folder


def test_the_command_encloses_checks_and_refuses(run_folder, tmp_path, told):
    words = ["enclose", str(run_folder), "--count", "2", "--out", str(tmp_path / "out")]
    said = told(0, *words)
    assert "float64 are off by" in said and "Checked in" in said and "BEYOND" not in said
    folder = tmp_path / "out" / "enclose" / run_folder.name
    paths = sorted(folder.iterdir())
    assert [path.name for path in paths] == ["enclosure-1.json", "enclosure-2.json"]
    checks = ["enclose", str(run_folder), "--check", *map(str, paths)]
    assert told(0, *checks).count(": accepted: ") == 2
    body = json.loads(paths[0].read_text())
    body["claims"]["1"]["hfc_lfc"] = body["claims"]["0"]["hfc_lfc"]
    paths[0].write_text(json.dumps(body | {"digest": statement.digest(body)}))
    assert "REFUSED: false: hfc_lfc of layer 1" in told(1, *checks)
    assert "enclose MODEL --check" in told(2, "check", str(paths[1]))


def test_the_command_proves_the_sign_on_a_box(run_folder, tmp_path, capsys, told, monkeypatch):
    monkeypatch.setattr(enclosing, "NEAR", 5.0)
    words = ["enclose", str(run_folder), "--box", "--out", str(tmp_path / "out")]
    said = told(0, *words, "--layer", "2", "--layer", "1")
    assert said.count("for every input within") == 2
    folder = tmp_path / "out" / "enclose" / run_folder.name
    found = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
    assert [list(body["claims"]) for body in found] == [["2"], ["1"]]
    for body in found:
        low, high = map(float, next(iter(body["claims"].values()))[statement.CHANGE])
        assert low * high > 0
    assert "within 1e-06 in every pixel" in told(0, *words, "--eps", "1e-6")
    assert oversmoothing.main([*words, "--eps", "10"]) == 1
    assert "give a smaller one" in capsys.readouterr().err


@cases(
    "words, said",
    (["--box", "--eps", "-1"], "--eps must be above 0"),
    (["--box", "--eps", "nan"], "--eps must be a number"),
    (["--box", "--layer", "9"], "layers 1 to 2, not 9"),
    (["--text", __file__], "reads images, not text"),
)
def test_what_cannot_be_asked_is_said(words, said, run_folder, tmp_path, told):
    command = ["enclose", str(run_folder), "--out", str(tmp_path / "out")]
    assert said in told(2, *command, *words)


def test_what_is_no_enclosure_is_said(run_folder, tmp_path, capsys):
    path = tmp_path / "x.json"
    for text in ("{}", "[]", "1", '{"kind": "oversmoothing enclosure"}', "nonsense"):
        path.write_text(text)
        assert oversmoothing.main(["enclose", str(run_folder), "--check", str(path)]) == 2
    assert "x.json" in capsys.readouterr().err
