"""Attention of a vision transformer, certified head by head."""

import pytest
import torch

from oversmoothing import InputError, open_model
from oversmoothing.experiments.inspection.spectra import certified_attention
from oversmoothing.experiments.models.pictures import photographs
from tests.support.tiny_transformers import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("vit")
    tiny("vit").save_pretrained(path)
    return path


def test_every_case_is_certified_or_says_why(folder):
    result = certified_attention(open_model(folder, dtype=torch.float64), photographs(2))
    table, layers = result.tables["cases"].rows, result.table.set_index("layer")
    assert len(table) == 2 * 3 * 2 and list(layers.index) == [1, 2]
    # A terminal shows how often each verdict comes, a row a layer, behind the answer.
    for (layer, verdict), own in table.groupby(["layer", "verdict"]):
        assert layers.loc[layer, verdict] == len(own)
    assert layers.drop(columns="largest radius").to_numpy().sum() == len(table)
    assert result.words().startswith("100.0 % of 12 cases are certified: ")
    assert len(result.text().split("\n\n")[1].splitlines()) == 1 + 2 + 1
    assert set(table["verdict"]) <= {"SMOOTHING", "NON_SMOOTHING", "TIE", "UNDECIDED"}
    decided = table[table["verdict"] == "SMOOTHING"]
    assert (decided["margin_low"] > 0).all()
    assert "certified" in result.words()
    assert f"; {table['seconds'].median():.2g} s a spectrum" in " ".join(result.words().split())


def test_the_command_prints_the_share(folder, tmp_path, told):
    words = ["probe", str(folder), "certified", "--count=1", f"--out={tmp_path}"]
    assert "6 cases" in told(0, *words)
    assert (tmp_path / "certified_attention.csv").exists()


def test_models_of_text_are_refused(tmp_path):
    tiny("llama").save_pretrained(tmp_path)
    with pytest.raises(InputError, match="reads text"):
        certified_attention(open_model(tmp_path, dtype=torch.float64), [torch.arange(4)])
