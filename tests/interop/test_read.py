"""We read what ``transformers`` writes and compute the same."""

from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bindscope.errors import BindscopeError  # noqa: E402
from bindscope.model.convert import read_model  # noqa: E402

GPT2 = {"model_type": "gpt2", "vocab_size": 50, "n_positions": 16, "n_embd": 32, "n_layer": 3, "n_head": 4}
SIZES = {
    "vocab_size": 50, "max_position_embeddings": 16, "hidden_size": 32, "num_hidden_layers": 3,
    "num_attention_heads": 4, "intermediate_size": 40,
}  # fmt: skip
NEOX = {"model_type": "gpt_neox", **SIZES}
LLAMA = {"model_type": "llama", **SIZES}
ROPE = {"rope_type": "default", "rope_theta": 500.0}
CASES = {
    "gpt2": GPT2,
    "gpt2 with an inner width": {**GPT2, "n_inner": 40, "layer_norm_epsilon": 0.01},
    "gpt2, untied, relu": {**GPT2, "tie_word_embeddings": False, "activation_function": "relu"},
    "neox": {**NEOX, "rope_parameters": {**ROPE, "partial_rotary_factor": 0.75}},
    "neox, not parallel": {**NEOX, "use_parallel_residual": False, "layer_norm_eps": 0.01},
    "neox by older names": {**NEOX, "rotary_pct": 0.5, "rotary_emb_base": 300, "hidden_act": "gelu_fast"},
    "neox, tied, attention without biases": {**NEOX, "tie_word_embeddings": True, "attention_bias": False},
    "llama": {**LLAMA, "rope_parameters": ROPE},
    "llama, grouped and tied": {**LLAMA, "num_key_value_heads": 2, "tie_word_embeddings": True, "rms_norm_eps": 0.01},
    "llama, one group, wide heads": {**LLAMA, "num_key_value_heads": 1, "head_dim": 10, "rope_theta": 300.0},
    "llama with biases": {**LLAMA, "attention_bias": True, "mlp_bias": True},
    "llama with biases in attention": {**LLAMA, "attention_bias": True, "hidden_act": "gelu"},
    "mistral": {**LLAMA, "model_type": "mistral", "num_key_value_heads": 2, "sliding_window": None},
    "mistral, a window as wide as the context": {
        **LLAMA,
        "model_type": "mistral",
        "num_key_value_heads": 4,
        "sliding_window": 16,
    },
    "qwen2": {**LLAMA, "model_type": "qwen2", "num_key_value_heads": 2},
    "qwen2, tied": {
        **LLAMA,
        "model_type": "qwen2",
        "num_key_value_heads": 4,
        "tie_word_embeddings": True,
        "sliding_window": 4,
    },
}
TOKENS = torch.randint(50, (4, 16), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def make_theirs(said: dict):
    """A model of theirs whose every parameter was moved, biases and norms included."""
    torch.manual_seed(0)
    said = dict(said)
    theirs = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(said.pop("model_type"), **said)
    )
    for parameter in theirs.parameters():
        parameter += 0.2 * torch.randn_like(parameter)
    return theirs.eval()


@pytest.mark.parametrize("said", CASES.values(), ids=CASES.keys())
@torch.no_grad()
def test_logits_are_those_of_transformers(said, tmp_path):
    theirs = make_theirs(said)
    theirs.save_pretrained(tmp_path / "out")
    ours = read_model(tmp_path / "out")
    torch.testing.assert_close(ours(TOKENS), theirs(TOKENS).logits, atol=1e-4, rtol=0)
    tolerance = 1e-5 if ours.config.norm == "rms" else 1e-10  # their RMSNorm stays in single precision
    torch.testing.assert_close(ours.double()(TOKENS), theirs.double()(TOKENS).logits, atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", ["gpt2", "neox", "llama, grouped and tied", "qwen2"])
@torch.no_grad()
def test_every_tensor_of_theirs_matters_here(name, tmp_path):
    """So that agreement of the logits means agreement of every weight."""
    theirs = make_theirs(CASES[name])
    for position, parameter in enumerate(theirs.parameters()):
        kept = parameter.clone()
        parameter += torch.randn_like(parameter)
        theirs.save_pretrained(tmp_path / f"{position}")
        torch.testing.assert_close(
            read_model(tmp_path / f"{position}")(TOKENS), theirs(TOKENS).logits, atol=2e-4, rtol=0
        )
        parameter.copy_(kept)


@pytest.mark.parametrize("name", ["gpt2", "neox", "llama", "qwen2"])
@pytest.mark.parametrize("way", ["sharded", "body alone", "bfloat16", "pickled"])
@torch.no_grad()
def test_all_ways_of_saving_are_read(name, way, tmp_path):
    theirs, out = make_theirs(CASES[name]), tmp_path / "out"
    if way == "bfloat16":
        theirs = theirs.bfloat16()
    if way == "body alone":
        theirs.base_model.save_pretrained(out)
        if name != "gpt2":  # whose head is its embedding
            with pytest.raises(BindscopeError, match=r"has no weight '(embed_out|lm_head)\.weight'"):
                read_model(out)
            return
    else:
        theirs.save_pretrained(out, **({"max_shard_size": "20KB"} if way == "sharded" else {}))
    assert (out / "model.safetensors.index.json").exists() == (way == "sharded")
    if way == "pickled":
        torch.save(theirs.state_dict(), out / "pytorch_model.bin")
        (out / "model.safetensors").unlink()
    found = read_model(out)
    assert all(value.dtype == torch.float32 for value in found.state_dict().values())
    if way == "bfloat16":  # loaded again, as the frequencies of the rotation were rounded too
        theirs = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32)
    torch.testing.assert_close(found(TOKENS), theirs(TOKENS).logits, atol=1e-4, rtol=0)


@torch.no_grad()
def test_a_window_shorter_than_the_context_is_refused_and_would_have_changed_the_numbers(tmp_path):
    said = {**LLAMA, "model_type": "mistral", "num_key_value_heads": 4}
    narrow, wide = (make_theirs({**said, "sliding_window": window}) for window in (4, 16))
    assert (narrow(TOKENS).logits - wide(TOKENS).logits).abs().max() > 1e-2
    narrow.save_pretrained(tmp_path / "out")
    with pytest.raises(BindscopeError, match="sliding_window = 4 is not supported"):
        read_model(tmp_path / "out")


@torch.no_grad()
def test_a_long_context_rotates_alike(tmp_path):
    theirs = make_theirs({**LLAMA, "max_position_embeddings": 1024})
    theirs.save_pretrained(tmp_path / "out")
    tokens = torch.randint(50, (1, 1024), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(read_model(Path(tmp_path / "out"))(tokens), theirs(tokens).logits, atol=1e-4, rtol=0)
