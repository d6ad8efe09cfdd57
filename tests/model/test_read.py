"""Other people's models are read as they were written, and what cannot be is refused with a sentence."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert import export_hugging_face, read_model
from bindscope.model.convert.directory import hash_directory
from bindscope.model.convert.naming import our_shapes
from bindscope.model.described import describe_directory
from bindscope.model.transformer import Transformer
from model.test_convert import make_perturbed_model
from model.test_transformer import random_tokens

SHAPES = {
    "untied": {"positions": "learned"},
    "tied, tanh gelu": {"positions": "learned", "tied": True, "activation": "gelu_tanh"},
    "relu without biases": {"positions": "learned", "bias": False, "activation": "relu"},
    "another epsilon": {"positions": "learned", "norm_epsilon": 0.03},
    "rope": {},
    "partial rope of another base": {"rope_fraction": 0.5, "rope_base": 300.0},
    "parallel": {"parallel": True, "activation": "silu", "norm_epsilon": 0.03},
    "tied rope without biases": {"tied": True, "bias": False},
    "llama": {"norm": "rms", "gated": True, "activation": "silu", "bias": False, "d_head": 6},
    "llama, grouped, with biases": {"norm": "rms", "gated": True, "n_heads": 4, "n_kv_heads": 2, "rope_base": 300.0},
}


def make_directory(directory: Path, **changes) -> Transformer:
    model = make_perturbed_model(**{"n_heads": 3, **SHAPES["tied, tanh gelu"], **changes})
    export_hugging_face(model, directory)
    return model


def change_config(directory: Path, **changes) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def change_weights(directory: Path, change) -> None:
    path = directory / "model.safetensors"
    weights = change(safetensors.torch.load_file(path))
    safetensors.torch.save_file({name: value.contiguous() for name, value in weights.items()}, path)


@pytest.fixture
def directory(tmp_path) -> Path:
    make_directory(tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
@torch.no_grad()
def test_what_was_written_is_read(changes, tmp_path):
    model = make_perturbed_model(**{"n_heads": 3, **changes})
    export_hugging_face(model, tmp_path / "out")
    tokens, read = random_tokens(3, model.config.n_positions), read_model(tmp_path / "out")
    assert torch.equal(read(tokens), model(tokens))
    theirs, ours = read.state_dict(), model.state_dict()
    assert all(torch.equal(theirs[name], ours[name]) for name in ours)
    assert not any(theirs[name].any() for name in theirs.keys() - ours.keys())  # biases that ours does not have


@pytest.mark.parametrize("name", ["no prefix", "masks and a copy of the head", "half precision", "pickled", "shards"])
@torch.no_grad()
def test_all_ways_of_writing_a_gpt2_are_read(name, tmp_path):
    directory = tmp_path / "out"
    model, tokens = make_directory(directory), random_tokens()
    rewrite(name, directory)
    tolerance = 0.2 if name == "half precision" else 0
    torch.testing.assert_close(read_model(directory)(tokens), model(tokens), atol=tolerance, rtol=0)


def rewrite(name: str, directory: Path) -> None:
    whole = directory / "model.safetensors"
    weights = safetensors.torch.load_file(whole)
    if name == "no prefix":
        change_weights(directory, lambda old: {key.removeprefix("transformer."): value for key, value in old.items()})
    elif name == "half precision":
        change_weights(directory, lambda old: {key: value.to(torch.bfloat16) for key, value in old.items()})
    elif name == "masks and a copy of the head":
        masks = {f"transformer.h.{layer}.attn.{kind}": torch.ones(1, 1, 9, 9, dtype=torch.uint8)
                 for layer in range(3) for kind in ("bias", "masked_bias")}  # fmt: skip
        head = {"lm_head.weight": weights["transformer.wte.weight"].clone()}
        change_weights(directory, lambda old: {**old, **masks, **head})
    elif name == "pickled":
        torch.save(weights, directory / "pytorch_model.bin")
        whole.unlink()
    else:
        files = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        positions = {key: files[index % 2] for index, key in enumerate(weights)}
        for file in files:
            part = {key: weights[key] for key in weights if positions[key] == file}
            safetensors.torch.save_file(part, directory / file)
        (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": positions}))
        whole.unlink()


def test_sizes_that_are_left_out_are_those_of_gpt2(directory):
    said = {"model_type": "gpt2", "n_inner": None}
    (directory / "config.json").write_text(json.dumps(said))
    shape = describe_directory(directory).config
    sizes = (shape.n_layers, shape.n_heads, shape.d_model, shape.d_head, shape.d_mlp, shape.d_vocab, shape.n_positions)
    assert sizes == (12, 12, 768, 64, 3072, 50257, 1024)
    assert shape.tied
    assert shape.causal
    assert shape.activation == "gelu_tanh"
    assert shape.dropout == 0.1
    assert shape.n_parameters == 124_439_808  # as published


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model_type": "gemma"}, r"type 'gemma' are not read, only gpt2, gpt_neox, llama, mistral, qwen2"),
        ({"model_type": None}, "models of type None are not read"),
        ({"model_type": "gpt_neox"}, "n_embd = 12 is not supported: it is not known here"),
        ({"scale_attn_by_inverse_layer_idx": True}, r"scale_attn_by_inverse_layer_idx = true is not supported"),
        ({"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn = true is not supported"),
        ({"scale_attn_weights": False}, "scale_attn_weights = false is not supported"),
        ({"add_cross_attention": True}, "add_cross_attention = true is not supported"),
        ({"layer_norm_epsilon": 0}, "layer_norm_epsilon = 0 must be a number above 0"),
        ({"quantization_config": {"bits": 4}}, "quantization_config = .* is not supported: weights must be stored"),
        ({"auto_map": {"AutoModel": "mine.Model"}}, "auto_map = .* brings code of its own, which is never run"),
        ({"logit_softcap": 30.0}, "logit_softcap = 30.0 is not supported: it is not known here .* take it out"),
        ({"tie_word_embeddings": "yes"}, 'tie_word_embeddings = "yes" must be true or false'),
        ({"activation_function": "gelu_newest"}, "activation_function = 'gelu_newest' .* Did you mean 'gelu_new'"),
        ({"n_head": 5}, "a width of 12 cannot be shared by 5 heads"),
        ({"n_layer": "three"}, 'n_layer = "three" is no size'),
        ({"n_layer": True}, "n_layer = true is no size"),
        ({"n_layer": 10**9}, "model.n_layers: must be at most 10,000, got 1000000000"),
        ({"n_embd": 24}, "has shape .* where its settings ask for"),
        ({"tie_word_embeddings": False}, "no weight 'lm_head.weight'"),
        ({"resid_pdrop": 1.5}, "no dropout rate"),
    ],
)
def test_what_our_transformer_cannot_express_is_refused(changes, said, directory):
    change_config(directory, **changes)
    with pytest.raises(BindscopeError, match=said):
        read_model(directory)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda old: old | {"score.weight": torch.zeros(1, 12)}, "a model of this shape has no weight 'score.weight'"),
        (lambda old: {key: old[key] for key in old if "ln_f.bias" not in key}, "has no weight 'ln_f.bias', which"),
        (lambda old: {key: value.to(torch.int8) for key, value in old.items()}, "holds torch.int8"),
        (lambda old: old | {"wte.weight": torch.zeros(11, 12)}, "both with and without 'transformer.'"),
        (lambda old: old | {"lm_head.weight": torch.ones(11, 12)}, "its unembedding is not its embedding"),
        (lambda old: {key: value.to(torch.float8_e4m3fn) for key, value in old.items()}, "holds torch.float8"),
        (lambda old: {key: value * float("nan") for key, value in old.items()}, "not finite"),
    ],
)
def test_weights_that_are_not_a_gpt2s_are_refused(change, said, directory):
    change_weights(directory, change)
    with pytest.raises(BindscopeError, match=said):
        read_model(directory)


def test_an_empty_directory_is_told_with_what_to_do(directory, tmp_path):
    with pytest.raises(BindscopeError, match="none: cannot be read: No such file or directory"):
        read_model(tmp_path / "none")
    (directory / "model.safetensors").unlink()
    with pytest.raises(BindscopeError, match=r"has a config.json but no weights; copy model.safetensors"):
        read_model(directory)
    (directory / "config.json").write_text("[1")
    with pytest.raises(BindscopeError, match="not JSON"):
        read_model(directory)
    (directory / "config.json").unlink()
    with pytest.raises(BindscopeError, match=r"no Hugging Face model: it has no config.json"):
        read_model(directory)


def test_one_type_of_model_can_be_asked_for(tmp_path):
    export_hugging_face(make_perturbed_model(n_heads=3), tmp_path / "out")
    assert read_model(tmp_path / "out", only="gpt_neox").config.positions == "rope"
    with pytest.raises(BindscopeError, match="type 'gpt_neox' where 'gpt2' is needed"):
        read_model(tmp_path / "out", only="gpt2")
    with pytest.raises(BindscopeError, match="no such directory; copy a GPT-2 there"):
        read_model(tmp_path / "none", only="gpt2")


LLAMA = {
    "model_type": "llama", "vocab_size": 11, "max_position_embeddings": 20, "hidden_size": 12, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 20,
}  # fmt: skip
MISTRAL, QWEN2 = ({**LLAMA, "model_type": kind, "num_key_value_heads": 3} for kind in ("mistral", "qwen2"))
SCALED = {"rope_type": "llama3", "factor": 8.0}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({**LLAMA, "rope_scaling": SCALED}, "rope_scaling = .*llama3.* is not supported: it stretches the rotation"),
        ({**LLAMA, "rope_scaling": {"type": "linear", "factor": 2}}, "rope_scaling = .*linear.* is not supported"),
        ({**LLAMA, "rope_parameters": {**SCALED, "rope_theta": 5e5}}, "rope_parameters = .* is not supported"),
        (
            {**LLAMA, "rope_parameters": {"full_attention": {"rope_theta": 1e4}}},
            "rope_parameters = .* is not supported",
        ),
        ({**LLAMA, "rope_theta": -1}, "rope_theta = -1 must be a number above 0"),
        ({**LLAMA, "partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5 is not supported"),
        ({**LLAMA, "hidden_act": "quick_gelu"}, "hidden_act = 'quick_gelu' is not supported, only"),
        ({**LLAMA, "num_key_value_heads": 2}, "num_key_value_heads = 2 does not divide 3 heads"),
        (
            {**LLAMA, "head_dim": 3},
            r"config.json: model.rope_fraction: 3 rotating dimensions of 3; need an even number",
        ),
        ({**LLAMA, "sliding_window": 4}, "sliding_window = 4 is not supported: attention here sees every position"),
        ({**LLAMA, "attention_bias": "some"}, 'attention_bias = "some" must be true or false'),
        ({**MISTRAL, "sliding_window": 4}, "sliding_window = 4 is not supported"),
        ({**MISTRAL, "max_position_embeddings": 9999}, "sliding_window = 4096 is not supported"),
        ({**MISTRAL, "num_key_value_heads": None}, "num_key_value_heads = null is no size"),
        ({**MISTRAL, "attention_bias": True}, "attention_bias = true is not supported"),
        ({**QWEN2, "use_sliding_window": True, "sliding_window": 4}, "sliding_window = 4 is not supported"),
        ({**QWEN2, "layer_types": ["sliding_attention"] * 2}, "layer_types = .* is not supported"),
        ({**LLAMA, "vocab_size": None}, "vocab_size = null is no size"),
    ],
)
def test_what_would_change_the_numbers_is_refused_by_its_name(settings, said, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(BindscopeError, match=said) as caught:
        read_model(tmp_path)
    assert str(caught.value).count(str(tmp_path)) == 1
    assert "\n" not in str(caught.value)


def test_a_pythias_config_as_it_was_published_is_read(tmp_path):
    """Of 2023: the names of transformers 4, and keys that play no part."""
    settings = {
        "architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu",
        "hidden_size": 128, "initializer_range": 0.02, "intermediate_size": 512, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 4, "num_hidden_layers": 6,
        "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
        "transformers_version": "4.24.0", "use_cache": True, "use_parallel_residual": True, "vocab_size": 50304,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(settings))
    config = describe_directory(tmp_path).config
    assert config.parallel
    assert (config.d_head, config.rope_dims, config.d_mlp) == (32, 8, 512)
    assert config.n_parameters == 14_067_712  # Pythia-14M


SHAPES_OF_STATES = [
    {},
    {"tied": True, "positions": "learned", "bias": False},
    {"norm": "rms", "gated": True, "n_kv_heads": 1, "parallel": True, "d_out": 5},
]


@pytest.mark.parametrize("changes", SHAPES_OF_STATES)
def test_shapes_are_known_before_there_is_a_model(changes):
    config = ModelConfig(d_vocab=11, n_positions=20, n_layers=2, n_heads=2, d_model=12, d_head=4, d_mlp=20, **changes)
    assert our_shapes(config) == {name: tuple(value.shape) for name, value in Transformer(config).state_dict().items()}


NANOGPT = {"n_layer": 2, "n_head": 3, "n_embd": 12, "block_size": 9, "vocab_size": 11, "dropout": 0.1}


def make_nanogpt(bias: bool) -> dict:
    """A checkpoint as nanoGPT's train.py saves it, of random weights."""
    generator = torch.Generator().manual_seed(3)
    sizes = {"wte": (11, 12), "wpe": (9, 12), "ln_f": (12,)}
    inside = {"ln_1": (12,), "ln_2": (12,), "attn.c_attn": (36, 12), "attn.c_proj": (12, 12)}
    inside |= {"mlp.c_fc": (48, 12), "mlp.c_proj": (12, 48)}
    sizes |= {f"h.{layer}.{name}": size for layer in range(2) for name, size in inside.items()}
    state = {}
    for name, size in sizes.items():
        state[f"transformer.{name}.weight"] = 0.4 * torch.randn(size, generator=generator)
        if bias and name not in ("wte", "wpe"):
            state[f"transformer.{name}.bias"] = torch.randn(size[:1], generator=generator)
    state["lm_head.weight"] = state["transformer.wte.weight"]
    return {"model": state, "model_args": {**NANOGPT, "bias": bias}, "iter_num": 7, "config": {"dataset": "x"}}


def compute_as_nanogpt(state: dict, tokens: torch.Tensor) -> torch.Tensor:
    """Logits by nanoGPT's equations, in float64, from its names alone."""
    weights = {name.removeprefix("transformer."): value.double() for name, value in state.items()}

    def linear(x, name):
        return torch.nn.functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))

    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (12,), weights[f"{name}.weight"], weights.get(f"{name}.bias"), 1e-5)

    n_positions = tokens.shape[1]
    x = weights["wte.weight"][tokens] + weights["wpe.weight"][:n_positions]
    for layer in range(2):
        q, k, v = linear(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn").split(12, dim=2)
        q, k, v = (part.view(len(tokens), n_positions, 3, 4).transpose(1, 2) for part in (q, k, v))
        hidden = torch.ones(n_positions, n_positions).tril() == 0
        pattern = (q @ k.transpose(2, 3) / 2).masked_fill(hidden, float("-inf")).softmax(-1)
        x = x + linear((pattern @ v).transpose(1, 2).flatten(2), f"h.{layer}.attn.c_proj")
        inner = torch.nn.functional.gelu(linear(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc"))
        x = x + linear(inner, f"h.{layer}.mlp.c_proj")
    return norm(x, "ln_f") @ weights["wte.weight"].T


@pytest.mark.parametrize("way", ["file", "directory", "compiled", "with masks"])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_a_nanogpt_checkpoint_computes_the_same_by_its_own_rules(bias, way, tmp_path):
    checkpoint, tokens = make_nanogpt(bias), random_tokens(3, 9)
    expected = compute_as_nanogpt(checkpoint["model"], tokens)
    if way == "compiled":
        checkpoint["model"] = {f"_orig_mod.{name}": value for name, value in checkpoint["model"].items()}
    if way == "with masks":
        checkpoint["model"] |= {f"transformer.h.{i}.attn.bias": torch.ones(1, 1, 9, 9).tril() for i in range(2)}
    torch.save(checkpoint, tmp_path / "ckpt.pt")
    model = read_model(tmp_path if way == "directory" else tmp_path / "ckpt.pt")
    assert model.config.dropout == 0.1
    torch.testing.assert_close(model.double()(tokens), expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["model_args"].pop("n_head"), "model_args: n_head = null is no size"),
        (lambda c: c["model_args"].update(n_head=5), "a width of 12 cannot be shared by 5 heads"),
        (lambda c: c["model_args"].update(n_layer=3), "weights of 2 layers where its settings say 3"),
        (lambda c: c["model_args"].update(flash=True), "model_args: flash = true is not supported"),
        (lambda c: c["model_args"].update(bias=True), r"has no weight 'h\.0\.ln_1\.bias'"),
        (lambda c: c["model"].update({"lm_head.weight": torch.ones(11, 12)}), "its unembedding is not its embedding"),
        (lambda c: c["model"]["transformer.wpe.weight"].fill_(float("inf")), "not finite"),
        (lambda c: c["model"].update({"transformer.extra": torch.ones(1)}), "has no weight 'extra'"),
        (lambda c: c.pop("model_args"), "entry 'model' holds a value of type dict"),
    ],
)
def test_a_nanogpt_checkpoint_that_does_not_fit_its_settings_is_refused(change, said, tmp_path):
    checkpoint = make_nanogpt(bias=False)
    change(checkpoint)
    torch.save(checkpoint, tmp_path / "ckpt.pt")
    with pytest.raises(BindscopeError, match=said):
        read_model(tmp_path)


def test_shards_lie_in_the_directory_and_nowhere_else(directory, tmp_path):
    shutil.move(directory / "model.safetensors", tmp_path / "elsewhere.safetensors")
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"wte.weight": "../elsewhere.safetensors"}}))
    with pytest.raises(BindscopeError, match="is no file of this directory"):
        read_model(directory)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "gone.safetensors"}}))
    with pytest.raises(BindscopeError, match=r"lacks 'gone.safetensors'"):
        read_model(directory)
    index.write_text(json.dumps({"weight_map": {}}))
    with pytest.raises(BindscopeError, match="names no file"):
        read_model(directory)


def test_a_pickle_with_code_in_it_is_not_run(directory, tmp_path):
    class Harm:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harmed",))

    torch.save({"wte.weight": Harm()}, directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    with pytest.raises(BindscopeError, match="not a plain PyTorch state dict"):
        read_model(directory)
    assert not (tmp_path / "harmed").exists()


def test_the_hash_follows_every_byte_that_is_read(directory):
    before = hash_directory(directory)
    (directory / "README.md").write_text("not read")
    assert hash_directory(directory) == before
    change_config(directory, resid_pdrop=0.2)
    changed = hash_directory(directory)
    change_weights(directory, lambda old: {key: value + 1 for key, value in old.items()})
    assert len({before, changed, hash_directory(directory)}) == 3
