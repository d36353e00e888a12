"""A model in one GGUF file is the model that was written into it."""

import gguf
import torch
from torch import nn

from oversmoothing import open_model
from oversmoothing.experiments.inspection.extract import extract
from tests.support.architectures import drawn, small_config
from tests.support.families_of_today import SIZES, TWO
from tests.support.refusals import refuses
from tests.support.tiny_transformers import tokens

NAMES = {
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
        for theirs, short in NAMES.items():
            name = name.replace(theirs, short)
        writer.add_tensor(name, value.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tiny() -> nn.Module:
    return drawn("Qwen2ForCausalLM", small_config("Qwen2", SIZES, TWO), moved=0.4)


def test_a_gguf_file_is_the_model_that_was_written(tmp_path, capsys):
    module = tiny()
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
    module = tiny()
    (tmp_path / "none.gguf").write_bytes(b"GGUF" + bytes(40))
    refuses("cannot be read as GGUF", lambda: open_model(tmp_path / "none.gguf"))
    written(tmp_path / "cut.gguf", module)
    whole = (tmp_path / "cut.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    refuses("cannot be read as GGUF", lambda: open_model(tmp_path / "cut.gguf"))
    written(tmp_path / "deep.gguf", module, blocks=10**9)
    refuses("do not belong together", lambda: open_model(tmp_path / "deep.gguf"))
    written(tmp_path / "more.gguf", module, blocks=3)
    refuses("stay random", lambda: open_model(tmp_path / "more.gguf"))
