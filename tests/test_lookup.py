"""Models and inputs are looked up by one rule: here, in the data folder, on the hub; - reads."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import oversmoothing
from oversmoothing.experiments.ladder.climb import split_inputs
from oversmoothing.experiments.models import library, pictures, sources
from oversmoothing.experiments.models.sources import open_model
from oversmoothing.theory.support.errors import InputError
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny

CASE = {"A": [["3/4", "1/4"], ["1/4", "3/4"]], "H": [["-3/2"]]}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of real inputs with a model, thirteen pictures and a text file; it is not here."""
    folder = tmp_path / "data"
    tiny("vit").save_pretrained(folder / "some-vit")
    (folder / "some-pictures").mkdir()
    random = np.random.default_rng(0)
    for k in range(13):
        pixels = random.integers(0, 256, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(folder / "some-pictures" / f"{k}.png")
    (folder / "some-texts").write_text("w3 w4\nw5 w6 w7\n")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("OVERSMOOTHING_DATA", str(folder))
    return folder


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(text.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)


# --- the data folder ---


@pytest.mark.parametrize("command", ["inspect", "certify-model", "enclose", "readings", "ladder"])
def test_every_command_looks_models_up_in_one_place(command, monkeypatch, tmp_path):
    asked = Mock(side_effect=InputError("nowhere"))
    monkeypatch.setattr(sources, "named_model", asked)
    words = [command, "some-model", "--data-dir", str(tmp_path), "--out", str(tmp_path)]
    assert oversmoothing.main(words) == 2
    (asking,) = asked.call_args_list
    assert (asking.args[0], asking.kwargs["data_dir"]) == ("some-model", tmp_path)


@cases(
    "words",
    ["inspect", "some-vit", "--count", "3"],
    ["probe", "some-vit", "readings", "--count", "3", "--readings", "E2"],
    ["probe", "some-vit", "certified", "--count", "3"],
    ["probe", "some-vit", "ladder", "--calibration", "10", "--standard", "2", "--held-out", "3"],
    ids=lambda words: " ".join(words[:3]),
)
def test_a_folder_of_pictures_is_found_by_its_name_in_the_data_folder(words, data, capsys):
    assert oversmoothing.main([*words, "--images", "some-pictures", "--out", "out"]) == 0, words
    here = ["--data-dir", ".", "--images", "some-pictures", "--out", "out"]
    assert oversmoothing.main([*words, *here]) == 2  # nothing of that name in this one
    said = capsys.readouterr().err
    assert "no images 'some-pictures' were found" in said and "in the data folder '.'" in said


def test_pictures_that_are_nowhere_are_said_with_the_folders_looked_in(data, told, monkeypatch):
    words = ["inspect", "some-vit", "--images", "photos-of-nobody", "--out", "out"]
    said = told(2, *words)
    assert f"no images 'photos-of-nobody' were found here or in the data folder '{data}'" in said
    monkeypatch.delenv("OVERSMOOTHING_DATA")
    said = r"here \(no data folder is named: --data-dir, or"
    refuses(said, pictures.named_pictures, "photos-of-nobody", None, None)


def test_what_lies_here_comes_before_the_data_folder(data):
    Path("some-pictures").mkdir()
    Image.new("RGB", (32, 32)).save("some-pictures/only.png")
    assert len(pictures.named_pictures("some-pictures", None, None)) == 1
    assert len(pictures.named_pictures(str(data / "some-pictures"), None, None)) == 13


def test_texts_are_found_by_their_name_in_the_data_folder(data):
    assert sources.named_texts(Path("some-texts"), None) == ["w3 w4", "w5 w6 w7"]
    Path("some-texts").write_text("w8")
    assert sources.named_texts(Path("some-texts"), None) == ["w8"]


def test_the_ladder_takes_cifar100_by_its_name_as_it_does_unnamed(data):
    for images in ("cifar100", None):
        said = r"CIFAR-100 is needed and '.*' holds no cifar100"
        refuses(said, split_inputs, open_model(tiny("vit")), images=images)


def test_a_model_named_by_a_dot_has_the_name_of_its_folder(data, monkeypatch):
    monkeypatch.chdir(data / "some-vit")
    assert sources.named_model(".", Path("out")).name == "some-vit"


# --- a sample of what is named ---


def test_named_inputs_are_sampled_unless_a_count_is_given(data, monkeypatch, capsys):
    monkeypatch.setattr(sources, "SAMPLE", 3)
    model = open_model(tiny("vit"))
    assert len(sources.named_inputs(model, images="some-pictures")) == 3
    assert "the first 3 of 13; --count N takes more or fewer" in capsys.readouterr().err
    for count in (2, 13):
        assert len(sources.named_inputs(model, images="some-pictures", count=count)) == count
    assert capsys.readouterr().err == ""


def test_a_sample_is_drawn_by_a_seed_where_it_is_asked_for(data, capsys):
    """The first pictures of a folder may be of one class."""
    model = open_model(tiny("vit"))
    how = {"images": "some-pictures", "count": 5}
    one, again, other, whole = (
        sources.named_inputs(model, **{**how, **more}).items
        for more in ({"drawn": 0}, {"drawn": 0}, {"drawn": 1}, {"drawn": 1, "count": None})
    )
    first = sources.named_inputs(model, **how).items
    assert one == again != first and len(set(one)) == 5 and one != other
    assert other == whole[:5] and len(set(whole)) == 13


def test_cifar100_by_name_is_a_sample_of_two_hundred(tmp_path, monkeypatch, capsys):
    """All 10,000 took a quarter of an hour."""
    stream = io.BytesIO()
    Image.new("RGB", (32, 32)).save(stream, "PNG")
    column = [{"bytes": stream.getvalue(), "path": "a.png"}] * pictures.SPLITS["test"]
    (tmp_path / "cifar100").mkdir()
    pd.DataFrame({"img": column}).to_parquet(tmp_path / "cifar100" / "test-0.parquet")
    asked = Mock(side_effect=InputError("enough"))
    monkeypatch.setattr("oversmoothing.experiments.inspection.inspect.inspect", asked)
    tiny("vit").save_pretrained(tmp_path / "some-vit")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    words = ["inspect", "some-vit", "--images", "cifar100", "--data-dir", str(tmp_path)]
    assert oversmoothing.main([*words, "--out", "out"]) == 2
    inputs = asked.call_args.args[1]
    assert (len(inputs), inputs[199].size) == (200, (32, 32))
    assert "200 of 10,000, drawn by --seed; --count N takes" in capsys.readouterr().err


# --- standard input ---


def test_a_dash_reads_a_case(monkeypatch, told):
    typed(monkeypatch, json.dumps(CASE))
    assert json.loads(told(0, "verdict", "-", "--json"))["verdict"] == "SMOOTHING"


def test_a_certificate_goes_through_pipes(monkeypatch, told):
    typed(monkeypatch, json.dumps(CASE))
    certificate = told(0, "certify", "-", "--json")
    typed(monkeypatch, certificate)
    assert told(0, "check", "-").startswith("accepted: ")
    typed(monkeypatch, certificate.replace('"SMOOTHING"', '"NON_SMOOTHING"'))
    assert told(1, "check", "-").startswith("REFUSED: ")
    typed(monkeypatch, "no certificate")
    assert oversmoothing.main(["check", "-"]) == 2


def test_texts_are_read_from_standard_input(tmp_path, monkeypatch, told):
    tiny("gpt2").save_pretrained(tmp_path / "gpt2")
    words = {f"w{k}": k for k in range(2, 40)}
    plain = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, **words}, "[UNK]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(tmp_path / "gpt2")
    monkeypatch.chdir(tmp_path)
    asked = ["inspect", "gpt2", "--text", "-", "--json", "--out", "out"]
    typed(monkeypatch, "w3 w4 w9\n\n  w5 w6\n")
    found = json.loads(told(0, *asked))
    assert (found["modality"], found["images"]) == ("text", 2)
    typed(monkeypatch, "w3 w4\nw5\n")
    assert "text 2 has a single token" in told(2, *asked)
    typed(monkeypatch, "")
    assert "'-' holds no text" in told(2, *asked)


# --- the hub ---

errors = pytest.importorskip("huggingface_hub.errors")
ANSWER = SimpleNamespace(headers={}, request=None, status_code=404)
FAILURES = {
    "no network": (
        ConnectionError("Name or service not known"),
        "the hub could not be reached (ConnectionError: Name or service not known); what was "
        "downloaded from it before does not hold it: check the connection, or download",
    ),
    "switched off": (
        errors.OfflineModeIsEnabled("off"),
        "the hub was not asked, for HF_HUB_OFFLINE is set; what was downloaded from it before does "
        "not hold it: unset it, or download",
    ),
    "no such model": (
        errors.RepositoryNotFoundError("401 Client Error", response=ANSWER),
        "the hub has no model of that name that it shows to everyone: check the spelling",
    ),
    "terms": (
        errors.GatedRepoError("403 Client Error", response=ANSWER),
        "the hub gives it only to those who accepted its terms: accept them and log in",
    ),
    "a fault of the hub": (
        errors.HfHubHTTPError("500 Server Error", response=ANSWER),
        "the hub did not give it (HfHubHTTPError: 500 Server Error): check the name",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_why_a_model_could_not_be_had_is_said_as_it_is(failure, data, monkeypatch, tmp_path, told):
    error, words = FAILURES[failure]
    asked = Mock(side_effect=error)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", asked)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("TRANSFORMERS_OFFLINE", raising=False)
    said = told(2, "inspect", "gpt2-of-nobody", "--out", "out")
    asked.assert_called_once_with("gpt2-of-nobody", timeout=library.PATIENCE)
    assert library.PATIENCE <= 5
    cause, _, todo = words.rpartition(": ")
    where = f"here or in the data folder '{data}'"
    assert said.startswith(f"oversmoothing: no model 'gpt2-of-nobody' {where}, and {cause}.\n")
    assert said.splitlines()[1].strip().startswith(todo[0].upper() + todo[1:])
    assert len(said.splitlines()) == 2 and "outgoing traffic" not in said


def test_the_library_switched_off_is_told_from_a_network_that_fails(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    said = "not asked, for the offline mode of its library"
    refuses(said, open_model, "owner/no-such-model", error=library.NotOnHubError)


def test_what_was_downloaded_before_opens_without_the_hub(monkeypatch, tmp_path):
    snapshot = tmp_path / "models--owner--model" / "snapshots" / "abc"
    tiny("vit").save_pretrained(snapshot)
    (tmp_path / "models--owner--model" / "refs").mkdir()
    (tmp_path / "models--owner--model" / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    away = Mock(side_effect=ConnectionError("no network here"))
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", away)
    assert open_model("owner/model").depth == 2


@pytest.mark.parametrize("name", ["a/b/c", "-", "owner/", "x y"])
def test_what_could_be_no_name_of_the_hub_is_not_asked_of_it(name, data, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", None)
    refuses("it is no name that the hub could have", lambda: sources.named_model(name, Path("out")))
