"""What the checker reads of a file, and where it stops: each bound on both sides of itself."""

import hashlib
import json
from fractions import Fraction

import pytest

from oversmoothing.theory.checker.reading import (
    KIND,
    SCHEMA_VERSION,
    Bounds,
    NotACertificate,
    binary,
    digest,
    parse,
    ratio,
    read_claim,
    read_input,
)
from tests.support.cases import cases
from tests.support.refusals import refuses

WHOLE = {"schema_version": SCHEMA_VERSION, "kind": KIND, "input": {}, "claim": {}, "digest": ""}


DEEP = "it is nested more than 8 levels deep"
LONG = "an integer of more than 4000 digits"
BARE = "writes such numbers as texts"
LACKING = json.dumps({k: v for k, v in WHOLE.items() if k != "digest"})


@cases(
    "text, words",
    (json.dumps(WHOLE | {"schema_version": 3}), "schema_version 3 is not known here"),
    (json.dumps(WHOLE | {"schema_version": "2"}), "'2'"),
    (LACKING, "the file lacks digest"),
    ("x" * (2**26 + 1), "it has more than 67108864 characters"),
    # Nine levels are too deep whatever was closed before, and eight are read.
    *[(text, DEEP) for text in ("[" * 9, "[[[[[],[[[[[", "[],[],[],[],[[[[[[[[[", '["]",' * 9)],
    *[(text, "not JSON") for text in
      ("[" * 8, "[[[[[],[[[[", "[],[],[],[],[[[[[[[[", '["]",' * 8)],
    *[(text, "kind") for text in
      ("[" * 8 + "]" * 8, "[" + "[]," * 20 + "[]]", '["' + "[" * 20 + '"]')],
    ("9" * 4000, "the file has no"),
    ("9" * 4001, LONG),
    *[(f'{{"kind": {number}}}', BARE) for number in ("NaN", "Infinity", "-Infinity", "1.5")],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_what_is_no_file_of_a_certificate_is_said(text, words):
    refuses(words, parse, text, error=NotACertificate)
    assert parse(json.dumps(WHOLE)) == WHOLE


def test_a_fraction_has_20000_characters_at_most():
    longest = "1/" + "9" * 19_998
    assert ratio(longest).denominator == 10**19_998 - 1
    refuses("of at most 20000 digits", ratio, "1" + longest, error=NotACertificate)


def test_the_digest_is_of_ascii_whatever_the_file_holds():
    body = WHOLE | {"claim": {"é": 1}}
    canonical = '{"claim":{"\\u00e9":1},"input":{},"kind":"' + KIND + '","schema_version":2}'
    assert digest(body) == hashlib.sha256(canonical.encode()).hexdigest()


def attention(numbers, row):
    zero = {"fractions": "0", "binary64": (0.0).hex()}[numbers]
    return read_input({"numbers": numbers, "A": [row, row], "H": [[zero]]})


def test_rows_in_fractions_sum_to_1_and_binary_ones_up_to_n_roundings():
    assert attention("fractions", ["1/2", "1/2"]).A
    with pytest.raises(NotACertificate, match="not row-stochastic"):
        attention("fractions", ["1/2", f"{2**59 + 1}/{2**60}"])
    near, far = ([(0.5).hex(), (0.5 + 2.0**-k).hex()] for k in (50, 49))
    assert attention("binary64", near).A
    refuses("not row-stochastic", attention, "binary64", far, error=NotACertificate)


def test_sums_of_a_row_have_a_denominator_of_2_to_the_20_bits_at_most():
    """Sixteen of 66,000 bits each, which hardly share a factor."""
    row = [f"1/1{2 * k + 1:019990d}" for k in range(16)]
    rest = ["1"] + ["0"] * 15
    with pytest.raises(NotACertificate, match="no common denominator in reach"):
        read_input({"numbers": "fractions", "A": [row] + [rest] * 15, "H": [["0"]]})
    with pytest.raises(NotACertificate, match="not row-stochastic"):
        read_input({"numbers": "fractions", "A": [row[:15]] + [rest[:15]] * 14, "H": [["0"]]})


def test_a_binary_number_is_written_as_python_writes_it():
    assert binary("-0x1.8000000000000p+0") == -1.5
    for text in ("0x1.8p+0", "1.5", "inf", "nan", "0x1p5000", None):
        refuses("hexadecimal", binary, text, error=NotACertificate)


@cases("d, r, dense", (40, 1, True), (41, 1, False), (41, 41, True), (42, 41, False))
def test_the_H_of_a_head_is_written_out_up_to_40_features_or_where_it_is_no_larger(d, r, dense):
    head = {"W_V": [["1"] * r] * d, "W_proj": [["1"] * d] * r}
    found = read_input({"numbers": "fractions", "A": [["1"]]} | head)
    assert found.d == d and found.rational == dense


def test_T4e_a_coefficient_that_is_not_0_lies_above_0_and_up_to_1():
    def claimed(low, high, **more):
        part = {"mode": "consensus", "coefficient": [low.hex(), high.hex()]} | more
        return read_claim({"verdict": "SMOOTHING", "genericity": part}).coefficient

    assert claimed(0.25, 1.0) == Bounds(Fraction(1, 4), Fraction(1))
    for low, high, words in ((0.25, 1.5, "up to 1"), (0.0, 1.0, "above 0"), (-0.5, 1.0, "above 0")):
        refuses(words, claimed, low, high, error=NotACertificate)
    refuses("genericity holds 'e'", claimed, 0.25, 1.0, e=2, error=NotACertificate)
