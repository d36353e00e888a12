"""T5d, T6b, T14: certificates made and checked: what they claim, and what is left out and why."""

import ast
import json
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

import oversmoothing
from oversmoothing.theory import certificate, checker
from oversmoothing.theory.certificate import certify, interval_texts, make_certificate
from oversmoothing.theory.checker import spectra
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import Check
from oversmoothing.theory.claims.golden import golden_cases
from oversmoothing.theory.depth.ratios import ball_ratios
from oversmoothing.theory.layer.layer import EXACT_SIZE, Layer, read_layer
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.verdict.verdict import verdict
from tests.forgeries.bases import chained
from tests.forgeries.forging import claiming
from tests.support.cases import cases
from tests.support.tables import floats, matrix

AA, I2 = matrix("AA"), "1 0; 0 1"
S, N, T = "SMOOTHING", "NON_SMOOTHING", "TIE"


def bounds(texts):
    return [float(x) if "x" not in x else float.fromhex(x) for x in texts]


def row(why, A, H=None, X0=None, eps=Fraction(1, 1000), **claimed):
    return pytest.param(A, H, X0, eps, claimed, id=why)


# a = -1/2 and h = -4 tie at 3, beside seven features that the bits must not grow with.
BESIDE = matrix("diag -4 " + " ".join(f"-1/{9 * (5 + i)}" for i in range(7)))
for i in range(7):
    BESIDE[i][i + 1] = Fraction(i + 2, 3)
NINE, FLAT9 = np.diag(np.linspace(0.1, 0.9, 9)), np.array([np.arange(1.0, 10.0), [0.5] * 9])


RNG = np.random.default_rng(0)
LOGITS = RNG.standard_normal((7, 7))
CAUSAL = np.where(np.triu(np.ones((7, 7)), 1) > 0, -np.inf, LOGITS)
NEGATIVE = -0.5 * np.eye(5) + 0.05 * RNG.standard_normal((5, 5))
POSITIVE = 0.4 * np.eye(5) + 0.05 * RNG.standard_normal((5, 5))
START = RNG.standard_normal((7, 5))
WEIGHTS = np.random.default_rng(3).integers(1, 50, size=(EXACT_SIZE + 1,) * 2).tolist()


def hexadecimal(M):
    return [["-inf" if np.isneginf(x) else float(x).hex() for x in row] for row in M.tolist()]


@cases(
    "A, H, X0, eps, claimed",
    # Of logits, which the file carries as they are, and of one X_0 whose mode may be missing.
    *[row(f"logits, {name}, {word}", {"logits": logits, "H": H, "X0": START}, verdict=word,
          verdict_x0=word, depth=None, method="float64", given={"logits": hexadecimal(logits)},
          left_out="depth: of a softmax none is certified" if word == S else "")
      for name, logits in (("dense", LOGITS), ("causal", CAUSAL))
      for H, word in ((NEGATIVE, N), (POSITIVE, S))],
    *[row(f"logits and a start {why}", {"logits": LOGITS, "H": H, "X0": X0}, verdict_x0=word,
          mode=mode, left_out=reason)
      for why, H, X0, word, mode, reason in (
          ("without part in a quotient mode", NEGATIVE, np.ones((7, 5)), None, None, "is 0"),
          ("at consensus", POSITIVE, np.ones((7, 5)), "TRIVIAL", "consensus", ""),
          ("of zeros", POSITIVE, np.zeros((7, 5)), "UNDEFINED", None, ""))],
    row("logits in fractions",
        {"logits": [["1/3", "-inf"], [0, "2/7"]], "H": [["1/2"]], "X0": [[1], [2]]}, verdict=S,
        given={"logits": [["1/3", "-inf"], ["0", "2/7"]]}),
    row("one float makes all of a case binary64", floats("AA"), [["-4/3"]], verdict=N,
        given={"H": [[(-4 / 3).hex()]]}),
    # h = -1/2 and h = 0: the zero ties with itself at 1.
    row("a head in fractions",
        {"A": AA, "factors": ([["1/2"], [1]], [["-1/2", "-1/4"]]), "X0": [[1, 2], [3, 5]]},
        verdict=T, method="exact", mode=None),
    row("fractions beyond the exact size",
        [[Fraction(x, sum(weights)) for x in weights] for weights in WEIGHTS], "-1/3",
        verdict=N, method="float64", given={"numbers": "fractions"}),
    row("and below it", "1/2 1/2; 1/4 3/4", "-1/3", method="exact"),
    *[row(f"T4e: a mode that is not alone: {reason}", "AA", H, "1 2; 3 5", verdict=word,
          mode=None, left_out=reason)
      for H, word, reason in (
          ("-1/2 0; 0 -1/2", N, "repeated"),
          # |1 + 2| = |1 - 4|: two modes of consensus, both isolated.
          ("2 0; 0 -4", S, "several modes"),
          ("-4/3 0; 0 -4/3", T, "TIE"))],
    row("T6b: the largest blocks of both sides", "7/12 1/12 1/3; 1/12 7/12 1/3; 1/3 1/3 1/3",
        "-2 0 0; 0 0 1; 0 0 0", verdict=T, jordan_consensus=2, jordan_quotient=2),
    row("T6b: simple ones", "AA", "-4/3", verdict=T, jordan_consensus=1, jordan_quotient=1),
    row("T6b: no tie, no blocks", "AA", "1/2", verdict=S, jordan_quotient=None),
    row("T5d: a depth where smoothing is", "AA", "1/2", "1; 2", verdict_x0=S, eps_text="1/1000",
        depth=32),
    row("T5d: at another eps", "AA", "1/2", "1; 2", Fraction(1, 4), depth=2),
    # HFC/LFC tends to (5/6)^L / 3.
    row("T5d: at one whose square is lost in 256 bits beside 1", "AA", "1/2 0; 0 1/4", "1 5; 2 9",
        Fraction(1, 10**100), depth=1257),
    row("T5d: and nowhere else", "AA", "-1/2", "1; 2", depth=None),
    row("T5d: nor without consensus", "AA", "1/2", "1; -1", verdict_x0=N, depth=None),
    row("T5d: nor at it", "AA", "1/2", "2; 2", verdict_x0="TRIVIAL", depth=None),
    row("T11: a state that dies", "AA", "-2", "1; -1", verdict_x0="UNDEFINED"),
    row("T11: a state of zeros", "AA", "1/2", "0; 0", verdict_x0="UNDEFINED"),
    row("T11: one token has no mode to be generic about", "1", "1/2", "3", verdict="TRIVIAL",
        verdict_x0="TRIVIAL", genericity=None),
    *[row(f"T4e: beyond eight features a generic X_0 has the verdict of the case: {word}",
          floats("AA"), H, FLAT9, verdict=word, verdict_x0=word, mode=mode)
      for H, word, mode in ((NINE, S, "consensus"), (-NINE, N, "quotient"))],
    row("T4e: of a flat start consensus is the dominant mode", floats("AA"), NINE,
        np.ones((2, 9)), verdict_x0="TRIVIAL", mode="consensus"),
    row("T4e: or none is", floats("AA"), -NINE, np.ones((2, 9)), verdict_x0="TRIVIAL",
        genericity=None),
    # Each of these was refused once.
    *[row(f"T14: several classes: {X0}", I2, "1/2", X0, verdict=T, verdict_x0=T)
      for X0 in ("0; 1", "1; -1")],
    row("a start at which a token is absorbed", "1/3 2/3; 0 1", "4", "-8/5; -9/2", verdict_x0=S,
        mode="consensus"),
    *[row(f"T5d: a slow rate, h = {h}", "AA", h, "1; 2", depth=depth)
      for h, depth in (("1e-3", 11627), ("1e-4", 116192), ("1e-10", 116182859815))],
    row("T5d: h = 1e-30", "AA", "1e-30", "1; 2", least_depth=10**31),
    # h = 7/3 e-9 outgrows 2e-9, of which X_0 has far more: either may bound the depth.
    row("T5d: consensus is largest in a later mode", "AA", "7/3000000000 0; 0 1/500000000",
        "1/1000 5; 1/1000 7", least_depth=10**9),
    row("a Jordan block in an H of 21", [[Fraction(1, 21)] * 21] * 21, chained(21, 2, 4),
        verdict=S, rho_consensus=3.0),
    row("T6b: a tie of larger matrices", "TURNED", BESIDE,
        [[Fraction(i + j * j + 1) for j in range(8)] for i in range(2)], verdict=T,
        jordan_consensus=1),
    # |1 + h| with h = sqrt 12 is matched by the second 1 of A, whatever its own conjugates.
    row("T6b: of irrational ones", I2, "0 12; 1 0", "1 2; 3 5", verdict=T, verdict_x0=T),
    row("a diagonal that is zero but for 1e-21",
        f"1 0 0; 1 0 0; 1/2 {Fraction(1, 2) - Fraction(1, 10**21)} 1e-21", "2", "1; 2; 3",
        verdict_x0=S, least_depth=1),
    *[row(f"a radius of 1e-{power}", "AA", [[Fraction(1, 10**power) - 1]], "1; 2",
          rho_consensus=float(Fraction(1, 10**power))) for power in (38, 39, 400)],
    *[row(f"a radius beyond binary64: {name}", "AA", H, "1 2; 3 5", verdict=S, beyond=1e308)
      for name, H in (("fractions", "1e308 1e308; 1e308 1e308"),
                      ("floats", [[1.7e308, 1.7e308], [1.7e308, 1.7e308]]),
                      ("negative", [[-1.7e308, 0.0], [0.0, 3.0]]))],
)  # fmt: skip
def test_what_is_claimed_is_true_and_accepted_whole_within_seconds(A, H, X0, eps, claimed):
    began = time.perf_counter()
    case = A if isinstance(A, dict) else {"A": A, "H": H, "X0": X0}
    read = {name: matrix(M) if isinstance(M, str) else M for name, M in case.items()}
    found = make_certificate(*read_layer(**read), eps)
    assert found.unconfirmed == () and check_certificate(json.dumps(found.body)).accepted
    assert time.perf_counter() - began < 20
    claim, left_out = found.body["claim"], " ".join(found.left_out)
    said = claim | {"mode": claim.get("genericity", {}).get("mode"), "eps_text": claim.get("eps")}
    for name, value in claimed.items():
        if name == "given":
            assert value.items() <= found.body["input"].items()
        elif name == "method":
            assert found.method.startswith(value)
        elif name == "left_out":
            assert value in left_out and bool(left_out) == bool(value)
        elif name == "least_depth":
            assert claim["depth"] > value
        elif name == "beyond":
            assert bounds(claim["rho_consensus"])[0] > value
        elif name == "rho_consensus":
            low, high = bounds(claim[name])
            assert 0 <= low <= value <= high <= (1 + 1e-7) * value + 1e-300
            assert value != 3 or high - low < 2e-15
        else:
            assert said.get(name) == value


@pytest.mark.parametrize("name", list(golden_cases()))
def test_golden_cases_certify_and_check(name):
    case = golden_cases()[name]
    body = certify(*read_layer(case.A, case.H, case.X0))
    assert body["claim"]["verdict"] == case.verdict
    found = check_certificate(json.dumps(body))
    assert found.accepted, found.words


def test_the_checker_imports_nothing_that_makes_certificates():
    for path in Path(checker.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names]
                for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
                    own = str(name).startswith("oversmoothing.theory.checker")
                    assert own or not str(name).startswith("oversmoothing"), path


def test_certify_and_check_from_the_command_line(tmp_path, told):
    path = tmp_path / "cert.json"
    assert oversmoothing.main(["certify", "--example", "GT12", "--out", str(path)]) == 0
    assert "accepted: TIE" in told(0, "check", path)
    path.write_text(claiming(certify(Layer.of(AA, [["1/2"]])), verdict="NON_SMOOTHING"))
    assert "REFUSED" in told(1, "check", path)
    path.write_text("{")
    assert oversmoothing.main(["check", str(path)]) == 2


@given(own.exact_cases(max_n=3, max_d=2))
@settings(max_examples=40)
def test_claims_about_X0_are_confirmed_by_krylov_vectors_and_powers(case):
    A, H, X0 = case
    assume(len(A) > 1)
    body = certify(*read_layer(A, H, X0), Fraction(1, 10))
    found = check_certificate(json.dumps(body))
    if not found.accepted:
        # What the checker cannot reach it refuses; it never refuses by contradicting the truth.
        assert "could not" in found.words or "bits" in found.words or "no power" in found.words
    if "depth" in body["claim"]:
        ratios = verdict(A=A, H=H, X0=X0, depth=range(body["claim"]["depth"], 40)).hfc_lfc
        assert all(r.value is None or r.value <= 0.1 for r in ratios.values())


def test_numbers_too_long_for_a_file_are_said(tmp_path, told):
    for h in ("1e400", "1e999999999"):
        path = tmp_path / "case.json"
        path.write_text(json.dumps({"A": [["1"]], "H": [[h]]}))
        assert "range of binary64" in (said := told(2, "certify", path)) or "digits" in said
    long = Fraction(1, 10**25_000)
    with pytest.raises(InputError, match="no certificate of this case can be written"):
        make_certificate(Layer.of(AA, [[long]]))


def test_a_claim_that_the_checker_finds_false_is_an_error_and_nothing_is_written(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(
        certificate, "claims_of_start", lambda *arguments: ([{"verdict_x0": "TIE"}], "")
    )
    with pytest.raises(RequirementError, match="the checker contradicts"):
        make_certificate(*read_layer(AA, [["1/2"]], [[1], [2]]))
    path = tmp_path / "certificate.json"
    assert oversmoothing.main(["certify", "--example", "GT1", "--out", str(path)]) == 1
    assert not path.exists() and "contradicts" in capsys.readouterr().err


def test_a_certificate_of_schema_version_1_is_refused_with_the_reason(tmp_path, told):
    body = make_certificate(Layer.of(AA, [["1/2"]])).body | {"schema_version": 1}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(body))
    assert "certify the case again" in told(2, "check", path)


def test_a_head_wider_than_its_features_has_no_zeros_of_its_core():
    """W_V W_proj = -I / 2 for d = 41, r = 42: rho_C is 1/2, and not the 1 of a zero."""
    W_V = np.eye(41, 42)
    body = make_certificate(Layer.of([[0.75, 0.25], [0.25, 0.75]], factors=(W_V, -0.5 * W_V.T)))
    low, high = bounds(body.body["claim"]["rho_consensus"])
    assert body.body["claim"]["verdict"] == "NON_SMOOTHING" and low <= 0.5 <= high < 0.51
    assert body.unconfirmed == ()


def test_spectra_too_large_for_the_checker_are_left_out(monkeypatch):
    monkeypatch.setattr(spectra, "DISC_SIZE", 24)
    A = np.random.default_rng(0).dirichlet(np.ones(60), size=60)
    found = make_certificate(Layer.of(A / A.sum(axis=1, keepdims=True), [[0.5]]))
    assert found.body["claim"] == {"verdict": "UNDECIDED"} and len(found.unconfirmed) == 1
    assert "could not be enclosed by the checker" in found.unconfirmed[0]


# --- what its checker cannot confirm ---


def certified(monkeypatch, beyond: str, H, X0=(("1",), ("2",))):
    """The certificate where the checker cannot confirm any file that claims `beyond`."""

    def check(text: str) -> Check:
        claimed = beyond in json.loads(text)["claim"]
        return Check(not claimed, "out of reach" if claimed else "confirmed", beyond=claimed)

    monkeypatch.setattr(certificate, "check_certificate", check)
    return make_certificate(*read_layer(AA, H, X0))


# Beyond the checker, H, what is claimed all the same, what is not, and why the rest is left out.
OUT, STANDS = "out of reach", "it stands on what is not confirmed"


@cases(
    "beyond, h, claimed, absent, reasons",
    ("nothing", "1/2", {"verdict": S, "verdict_x0": S},
     {"nothing"}, []),
    ("rho_consensus", "1/2", {"verdict": "UNDECIDED", "verdict_x0": S, "depth": 32},
     {"rho_consensus", "genericity"}, [OUT, STANDS]),
    ("verdict_x0", "1/2", {"verdict": S}, {"verdict_x0", "depth", "eps"}, [OUT, STANDS]),
    # T6b: blocks stand with the tie that they decide.
    ("margin", "0", {"verdict": "UNDECIDED"}, {"jordan_consensus"}, None),
    ("nothing", "0", {"verdict": T, "jordan_consensus": 1}, {"nothing"}, None),
)  # fmt: skip
def test_what_rests_on_what_is_not_confirmed_is_left_out_too(
    monkeypatch, beyond, h, claimed, absent, reasons
):
    found = certified(monkeypatch, beyond, [[h]])
    claim = found.body["claim"]
    assert claimed.items() <= claim.items() and not absent & claim.keys()
    assert reasons is None or [x.rpartition(": ")[2] for x in found.unconfirmed] == reasons
    if beyond == "nothing" and h != "0":
        assert found.checked == "confirmed"
        assert {"rho_consensus", "genericity", "eps", "depth"} <= claim.keys()
    assert beyond != "verdict_x0" or "genericity" in claim


@cases(
    "ends, texts",
    ((-float("inf"), float("inf")), ["-inf", "inf"]),
    ((0.0, 1.5), ["0x0.0p+0", "0x1.8000000000000p+0"]),
)
def test_ends_beyond_binary64_are_infinities(ends, texts):
    assert interval_texts(ends) == texts


@pytest.mark.parametrize("seed", range(4))
def test_T5d_a_certified_depth_is_the_first_one_also_where_mixing_is_slow(seed):
    rng = np.random.default_rng(300 + seed)
    A = 0.98 * np.eye(3) + 0.02 * rng.dirichlet(np.ones(3), size=3)
    H, X0 = 0.2 * rng.standard_normal((2, 2)) + 0.3 * np.eye(2), rng.standard_normal((3, 2))
    case, start = read_layer(A / A.sum(axis=1, keepdims=True), H, X0)
    found = make_certificate(case, start)
    depth = found.body["claim"]["depth"]
    state = case.rational_A, case.rational_H, start.fractions
    ratios = ball_ratios(*state, case.rational_pi, range(depth - 1, depth + 50))
    assert depth > 900 and found.unconfirmed == ()
    assert ratios[depth - 1].value > 1e-3 >= max(ratios[L].value for L in range(depth, depth + 50))


@pytest.mark.parametrize(("n", "d", "reason"), [(12, 8, ""), (14, 8, "up to (n - 1) d = 96 only")])
def test_T5d_a_depth_is_certified_or_it_is_said_why_not(n, d, reason):
    rng = np.random.default_rng(1)
    A, X0 = rng.dirichlet(np.ones(n), size=n), rng.standard_normal((n, d))
    A /= A.sum(axis=1, keepdims=True)
    H = 0.2 * rng.standard_normal((d, d)) + 0.8 * np.eye(d)
    found = make_certificate(*read_layer(A, H, X0))
    assert found.body["claim"]["verdict_x0"] == "SMOOTHING"
    assert ("depth" in found.body["claim"]) == (not reason)
    assert reason in " ".join(found.left_out) and bool(found.left_out) == bool(reason)


def test_a_depth_that_the_checker_cannot_confirm_names_the_limit_that_is_met():
    # Uniform causal attention of 50 tokens: eigenvalues 1 / i, none repeated.
    n = 50
    A = [[Fraction(int(j <= i), i + 1) for j in range(n)] for i in range(n)]
    case, start = read_layer(A=A, H=[["1/2"]], X0=[[i % 5 + 1] for i in range(n)])
    found = make_certificate(case, start)
    assert "depth" not in found.body["claim"] and found.body["claim"]["verdict_x0"] == "SMOOTHING"
    assert all("a depth is confirmed up to n, d = 48 only" in line for line in found.unconfirmed)
    assert found.unconfirmed
