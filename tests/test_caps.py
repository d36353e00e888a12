"""What no machine computes is refused in one sentence, before anything of its size is made."""

import time

import pytest

from tests.support.cases import cases

GIANTS = [
    *(f"simulate {flag} {10**30}" for flag in ("--n", "--d", "--depth", "--points", "--dim")),
    *(f"simulate {flag} {2**63}" for flag in ("--depth", "--seed", "--rank", "--blocks")),
    *(f"simulate --heads {flag} {2**63}" for flag in ("--n", "--d", "--rank", "--depth", "--seed")),
    f"simulate --heads {2**63}",
    "simulate --heads --scale 1e300",
    "simulate --scale 1e300",
    "simulate --attention causal --temperature 1e-300",
    "simulate --device meta",
    "simulate --device privateuseone",
    "simulate --seed -1",
    "simulate --n " + "9" * 5000,
    f"prove --thorough --minutes 0 T2b --examples {10**30}",
    "sweep --example heads --workers many",
    "inspect absent --batch-size 0",
    f"inspect absent --batch-size {2**63}",
    f"verdict --example GT4 --depth {10**30}",
    "certify --example GT4 --eps 1e9999999999",
    "certify --example GT4 --eps 1e-5000",
    "certify --example GT4 --eps " + "9" * 5000,
    "verdict " + "x" * 300,
    "check " + "d/" * 3000,
    "sweep " + "x" * 300,
    "train " + "x" * 300,
    "verdict --example GT4 --out",
]


@pytest.mark.parametrize("words", GIANTS, ids=lambda words: words[:50])
def test_a_giant_is_refused_in_a_sentence(words, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    began = time.perf_counter()
    said = told(2, *words.split())
    assert said.count("\n") == 2 and "Traceback" not in said
    assert time.perf_counter() - began < 60


@cases(
    "text",
    "[fixed]\nn = " + "9" * 5000,
    "[fixed]\nn = " + "[" * 10**4,
    "[fixed]\nn = 1000000\n",
    "[fixed]\ndepth = 99999999999999999999\n",
    "[axes]\nseed = [9223372036854775808]\n",
    "[fixed]\nscale = 1e300\n",
    '[fixed]\nvalue = "interval"\nhigh = inf\n',
    "[fixed]\ndim = 9223372036854775807\n",
    ids=lambda text: text[:24],
)
def test_a_sweep_of_giants_is_refused_in_a_sentence(text, told, tmp_path):
    (tmp_path / "s.toml").write_text(text)
    assert told(2, "sweep", f"{tmp_path}/s.toml", "--out", f"{tmp_path}/out").count("\n") == 2
    assert not (tmp_path / "out").exists()


@cases(
    "fields",
    '"depth": 1000000000', '"epochs": 1e400', '"seed": NaN', '"width": ' + "9" * 5000,
     '"ratio": 99999999999999999999', '"patch": ' + "[" * 10**4,
    ids=lambda text: text[:20],
)  # fmt: skip
def test_a_training_of_giants_is_refused_in_a_sentence(fields, told, tmp_path):
    (tmp_path / "t.json").write_text("{" + fields + "}")
    said = told(2, "train", f"{tmp_path}/t.json", "--out", f"{tmp_path}/out")
    assert said.count("\n") == 2 and len(said) < 6000
