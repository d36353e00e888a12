"""A model folder is data: nothing in it runs, nothing outside it is read, nothing is guessed."""

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from oversmoothing import InputError, open_model
from oversmoothing.experiments.inspection.extract import extract
from oversmoothing.experiments.models import library
from oversmoothing.experiments.models.checkpoints import read_weights
from tests.support.architectures import drawn, small_config
from tests.support.cases import cases
from tests.support.families_of_today import SIZES, TWO
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tiny, tokens

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    tiny("vit").save_pretrained(place)
    return place


def changed(folder: Path, file: str = "config.json", **fields: Any) -> Path:
    path = folder / file
    held = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(held | fields))
    return folder


def rewritten(folder: Path, **tensors: torch.Tensor) -> Path:
    held = load_file(folder / WEIGHTS)
    save_file(held | {name.replace("__", "."): x for name, x in tensors.items()}, folder / WEIGHTS)
    return folder


def refused(folder: Path, message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(InputError, match=message) as error:
        open_model(folder)
    assert len(str(error.value)) < 600
    assert time.perf_counter() - began < 20


COMPOSITE = {
    "model_type": "vision-encoder-decoder",
    "encoder": {"model_type": "vit"},
    "decoder": {"model_type": "gpt2"},
    "auto_map": {"AutoModel": "evil.Evil"},
    "architectures": ["Evil"],
}
FOREIGN = {
    "composite": COMPOSITE,
    "config": {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil"}},
    "inner": {
        **{name: value for name, value in COMPOSITE.items() if name != "auto_map"},
        "encoder": {"model_type": "vit", "auto_map": {"AutoModel": "evil.Evil"}},
    },
    "listed": {"model_type": "vit", "parts": [{"auto_map": {"AutoModel": "evil.Evil"}}]},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_code_of_a_model_folder_runs_whatever_is_typed(tmp_path, name):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(FOREIGN[name]))
    save_file({"x": torch.zeros(1)}, folder / WEIGHTS)
    ran = tmp_path / "ran"
    (folder / "evil.py").write_text(
        f"open({str(ran)!r}, 'w')\nfrom transformers import *\n"
        "class Evil(PreTrainedModel):\n    config_class = PretrainedConfig\n"
    )
    command = [sys.executable, "-X", "importtime", "-m", "oversmoothing", "inspect", str(folder)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")],
        input="y\nyes\n1\n" * 20,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and not ran.exists()
    assert "code of a model folder is never run" in done.stderr
    assert "| transformers" not in done.stderr  # refused before the library is imported


def test_the_library_is_never_answered(folder, monkeypatch):
    """Should a question slip through, the input that it reads is empty."""
    import transformers

    def asking(*_, **given):
        assert given["trust_remote_code"] is False
        input("Do you wish to run the custom code? [y/N] ")

    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    for name in ("AutoConfig", "AutoTokenizer"):
        monkeypatch.setattr(getattr(transformers, name), "from_pretrained", asking)
    refused(folder, "EOFError")
    refuses("EOFError", library.tokenizer_of, transformers, folder)


@pytest.mark.parametrize("stated", ["1e-5000", -2.0, 0, 2.5, [8]])
def test_a_tokenizer_whose_longest_text_is_no_number_is_refused(tmp_path, stated):
    import transformers
    from tokenizers import Tokenizer, models

    plain = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "b": 2}, "[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, unk_token="[UNK]")
    tokenizer.save_pretrained(tmp_path)
    assert library.tokenizer_of(transformers, tmp_path)("a")["input_ids"] == [1]
    changed(tmp_path, "tokenizer_config.json", model_max_length=stated)
    refuses("model_max_length is no number", library.tokenizer_of, transformers, tmp_path)


@pytest.mark.parametrize("own", ["eager", "sdpa", "flex_attention", {"": "eager"}, None])
def test_the_librarys_own_attention_may_be_named(folder, own):
    assert open_model(changed(folder, _attn_implementation=own)).depth == 2


def test_a_sentence_transformer_is_read_as_it_is_published(tmp_path):
    """As MiniLM: data_config.json is a list (of what it was trained on), which may name code."""
    tiny("bert").save_pretrained(tmp_path)
    listed = tmp_path / "data_config.json"
    listed.write_text(json.dumps([{"name": "pairs.jsonl", "weight": 1}]))
    assert open_model(tmp_path).depth == 2
    listed.write_text(json.dumps([{"auto_map": {"AutoModel": "evil.Evil"}}]))
    refused(tmp_path, "names code of its own")


def test_a_vocabulary_alone_is_read_where_the_library_reads_it(tmp_path):
    import transformers

    tiny("bert").save_pretrained(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    assert open_model(tmp_path).prepare(["the cats"])["input_ids"].tolist() == [[2, 5, 6, 7, 3]]
    # Of another kind of model the library takes no vocab.txt, and knows five words of its own.
    changed(tmp_path, model_type="albert", architectures=["AlbertModel"])
    said = r"no tokenizer .* knows no words but its special tokens"
    refuses(said, library.tokenizer_of, transformers, tmp_path)


@pytest.mark.parametrize("name", ["../{}", "{folder}/../{}", "sub/../../{}", "..\\{}", "", 5, None])
def test_an_index_that_leads_out_of_the_folder_is_refused(folder, name):
    (folder / WEIGHTS).rename(folder.parent / WEIGHTS)
    named = name.format(WEIGHTS, folder=folder) if isinstance(name, str) else name
    changed(folder, f"{WEIGHTS}.index.json", weight_map={"x": named})
    refused(folder, "no file of its folder")


def test_an_index_of_links_out_of_the_folder_is_refused_and_of_the_cache_is_read(folder, tmp_path):
    held = load_file(folder / WEIGHTS)
    names = sorted(held)
    (folder / WEIGHTS).unlink()
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: held[name] for name in part}, folder / file)
    of = {name: file for file, part in halves.items() for name in part}
    changed(folder, f"{WEIGHTS}.index.json", weight_map=of)
    assert open_model(folder).depth == 2
    blobs = tmp_path / "cache" / "blobs"
    snapshot = tmp_path / "cache" / "snapshots" / "0"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for path in folder.iterdir():
        (blobs / path.name).write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert open_model(snapshot).depth == 2
    (folder / "b.safetensors").rename(tmp_path / "b.safetensors")
    (folder / "b.safetensors").symlink_to("../b.safetensors")
    refused(folder, "a link out of its folder")
    (folder / "b.safetensors").unlink()
    save_file({name: held[name] for name in names}, folder / "b.safetensors")
    refused(folder, "which an earlier file has")


def test_a_name_of_the_hub_is_read_as_the_folder_it_is(folder, monkeypatch):
    import huggingface_hub

    asked = []

    def download(name, **given):
        asked.append((name, given["allow_patterns"]))
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(folder)
    model = open_model("owner/model")
    assert model.name == "owner/model" and model.depth == 2
    assert asked[-1] == ("owner/model", [WEIGHTS])
    asked.clear()
    changed(folder, auto_map={"AutoModel": "evil.Evil"})
    refuses("never run", open_model, "owner/model")
    assert len(asked) == 1  # the weights are not even asked for


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.bool, torch.complex64])
def test_weights_that_are_no_floats_are_refused_by_name(folder, dtype):
    name = "vit.embeddings.cls_token"
    rewritten(folder, **{name: torch.zeros(1, 1, 24).to(dtype)})
    refused(folder, rf"1 weights that are no floats, among them {name} \({str(dtype)[6:]}\)")


def test_surplus_weights_are_refused_by_name_and_old_counters_are_not(folder):
    rewritten(folder, vit__embeddings__position_ids=torch.arange(5))
    rewritten(folder, pooler__dense__weight=torch.zeros(24, 24))
    assert open_model(folder).depth == 2
    rewritten(folder, vit__layer_scale=torch.ones(24))
    refused(folder, r"hold 1 that the model .* has no place for, among them vit.layer_scale")


ENTRY = '"dtype":"F32","shape":[2],"data_offsets":[0,8]}'


@cases(
    "header, said",
    # Two weights of one name over the same bytes, which the library's reader lets pass.
    (f'{{"x":{{{ENTRY},"x":{{{ENTRY}}}', "'x' occurs more than once"),
    (f'{{"x":{{"dtype":"F32",{ENTRY}}}', "no intact safetensors file"),
)
def test_a_header_with_repeated_keys_is_refused_by_name(tmp_path, header, said):
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(8))
    refuses(said, read_weights, path)


CODE = {"auto_map": {"AutoTokenizer": ["evil.E", None]}}
KERNEL, APART = "asks for a kernel that would be fetched", "do not belong together"
CONFIGS: list[tuple[str, dict[str, Any], str]] = [
    ("tokenizer_config.json", CODE, "never run"),
    ("preprocessor_config.json", CODE, "never run"),
    ("config.json", {"backbone": "/elsewhere"}, "to be fetched"),
    ("config.json", {"encoder": {"backbone_checkpoint": "owner/model"}}, "to be fetched"),
    # The library looks for flash attention, by any name, among the kernels of the hub.
    ("config.json", {"_attn_implementation": "owner/kernel"}, KERNEL),
    ("config.json", {"_attn_implementation": "flash_attention_2"}, KERNEL),
    ("config.json", {"attn_implementation": {"": "evil/kernel"}}, KERNEL),
    ("config.json", {"_attn_implementation_internal": {"a": "paged|flash_attention_3"}}, KERNEL),
    ("config.json", {"attn_implementation": ["eager"]}, KERNEL),
    ("config.json", {"experts_implementation": "sonicmoe"}, KERNEL),
    ("config.json", {"attn_implementation": "eager",
                     "parts": [{"attn_implementation": "a/b"}]}, r"\(parts.0.* is "),
    ("config.json", {"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000"),
    ("config.json", {"text_config": {"n_layer": 10**9}}, "text_config.n_layer is"),
    ("config.json", {"depths": [2, 10**7]}, "depths is"),
    ("config.json", {"hidden_size": 3 * 10**6}, APART),
    ("config.json", {"intermediate_size": 10**9}, APART),
    ("config.json", {"image_size": 8 * 10**6}, APART),
    ("config.json", {"num_labels": 10**9}, "num_labels is"),
    ("config.json", {"num_hidden_layers": 200}, "would stay random"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "fields", "message"), CONFIGS)
def test_a_config_that_asks_for_code_or_more_than_the_weights_is_refused_at_once(
    folder, file, fields, message
):
    refused(changed(folder, file, **fields), message)


def pickled(folder: Path, held: object, **options: Any) -> Path:
    (folder / WEIGHTS).unlink()
    torch.save(held, folder / "pytorch_model.bin", **options)
    return folder / "pytorch_model.bin"


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_of_the_weights_gives_what_the_safetensors_give(folder, zipped):
    expected = open_model(folder).module.state_dict()
    held = load_file(folder / WEIGHTS)
    pickled(folder, held, _use_new_zipfile_serialization=zipped)
    found = open_model(folder).module.state_dict()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_an_archive_that_unpacks_to_more_than_it_is_is_refused(folder):
    path = pickled(folder, load_file(folder / WEIGHTS) | {"zeros": torch.zeros(2**22)})
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    assert path.stat().st_size < 2**20
    refused(folder, "unpacks to")


class Many:
    """Pickled in thirty bytes, and some memory when it is read."""

    def __reduce__(self) -> tuple[type[bytearray], tuple[int]]:
        return bytearray, (2**33,)


WIDE = (10**6, 10**6)
SPARSE = torch.sparse_coo_tensor(torch.zeros(2, 1), torch.ones(1), WIDE, check_invariants=False)


@pytest.mark.parametrize("zipped", [True, False])
@cases(
    "name, held, said",
    ("vit.embeddings.cls_token", torch.zeros(1).expand(WIDE), "declares"),
    ("vit.embeddings.cls_token", torch.empty(WIDE, device="meta"), "is no plain|declares"),
    ("vit.embeddings.cls_token", SPARSE, "is no plain"),
    ("more", Many(), "more than tensors"),
)
def test_a_pickle_that_declares_more_than_it_holds_is_refused(folder, zipped, name, held, said):
    held = load_file(folder / WEIGHTS) | {name: held}
    pickled(folder, held, _use_new_zipfile_serialization=zipped)
    refused(folder, said)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_holds_itself_is_read(folder, zipped):
    held: dict[str, Any] = dict(load_file(folder / WEIGHTS))
    held["model"] = held
    pickled(folder, held, _use_new_zipfile_serialization=zipped)
    assert open_model(folder).depth == 2


@cases(
    "file",
    "config.json",
    WEIGHTS,
    f"{WEIGHTS}.index.json",
    "preprocessor_config.json",
    "tokenizer.json",
)
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_refused_before_they_are_opened(folder, file, kind):
    path = folder / file
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    refused(folder, "no regular file")
    if file == WEIGHTS:
        refuses("no regular file", open_model, path)


def test_blocks_numbered_beyond_those_there_are_refused(tmp_path):
    marks = {"patch_embed.proj.weight": (64, 3, 4, 4), "pos_embed": (1, 5, 64)}
    marks |= {f"blocks.{k}.attn.qkv.weight": (192, 64) for k in (0, 99999999)}
    save_file({name: torch.zeros(shape) for name, shape in marks.items()}, tmp_path / WEIGHTS)
    refuses("holds 2 blocks, numbered to 99999999", lambda: open_model(tmp_path / WEIGHTS))


class Trap:
    def __reduce__(self) -> Any:
        return (os.mkdir, ("trap",))


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin", "model.bin"])
def test_what_a_training_loop_leaves_in_the_folder_is_not_opened(folder, weights, monkeypatch):
    monkeypatch.chdir(folder)
    held = load_file(folder / WEIGHTS)
    if weights != WEIGHTS:
        torch.save(held, folder / weights)
        (folder / WEIGHTS).unlink()
    for name in ("training_args.bin", "optimizer.bin", "scheduler.bin", "rng_state_0.pth"):
        (folder / name).write_bytes(pickle.dumps(Trap()))
    assert open_model(folder).depth == 2
    assert not (folder / "trap").exists()


def test_a_bare_checkpoint_is_found_beside_training_arguments(tmp_path):
    save_file({"first.weight": torch.zeros(3)}, tmp_path / "a.safetensors")
    (tmp_path / "training_args.bin").write_bytes(pickle.dumps(Trap()))
    refused(tmp_path, "first.weight")


# --- one GGUF file ---


LLAMA_CPP = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "model.layers": "blk",
}  # fmt: skip


def written(path, module: nn.Module, blocks: int = 2) -> None:
    """The module's weights in float32 under llama.cpp's names."""
    config = module.config
    writer = gguf.GGUFWriter(str(path), "qwen2")
    said = {
        "name": "tiny", "block_count": blocks, "context_length": 24, "rope_freq_base": 1e4,
        "embedding_length": config.hidden_size, "feed_forward_length": config.intermediate_size,
        "head_count": config.num_attention_heads, "head_count_kv": config.num_key_value_heads,
        "layer_norm_rms_eps": config.rms_norm_eps, "vocab_size": config.vocab_size,
    }  # fmt: skip
    for name, value in said.items():
        getattr(writer, f"add_{name}")(value)
    for name, value in module.state_dict().items():
        for theirs, short in LLAMA_CPP.items():
            name = name.replace(theirs, short)
        writer.add_tensor(name, value.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def qwen() -> nn.Module:
    return drawn("Qwen2ForCausalLM", small_config("Qwen2", SIZES, TWO), moved=0.4)


def test_a_gguf_file_is_the_model_that_was_written(tmp_path, capsys):
    module = qwen()
    written(tmp_path / "tiny.gguf", module)
    for source in (tmp_path / "tiny.gguf", tmp_path):
        model = open_model(source)
        assert "de-quantised to float32" in model.run_notes[0]
        found, expected = extract(model, tokens()), extract(open_model(module), tokens())
        for own, given in zip(found.traces, expected.traces, strict=True):
            torch.testing.assert_close(own.attention, given.attention, atol=1e-6, rtol=0)
            torch.testing.assert_close(own.after_ffn, given.after_ffn, atol=1e-5, rtol=1e-5)
    assert capsys.readouterr().err == ""


def test_a_gguf_file_that_is_none_or_counts_too_far_is_refused(tmp_path):
    module, path = qwen(), tmp_path / "a.gguf"
    for blocks, said in ((10**9, "do not belong together"), (3, "stay random")):
        written(path, module, blocks)
        refuses(said, open_model, path)
    whole = path.read_bytes()
    for held in (b"GGUF" + bytes(40), whole[: len(whole) // 2]):
        path.write_bytes(held)
        refuses("cannot be read as GGUF", open_model, path)
