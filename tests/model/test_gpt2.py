"""A GPT-2 is read from a Hugging Face directory as it was written there, and what is none is refused with a sentence."""

import json
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch

from bindscope.errors import BindscopeError
from bindscope.model.convert import export_hugging_face, load_into, read_gpt2
from bindscope.model.convert.gpt2 import hash_gpt2
from bindscope.model.gpt2_shape import gpt2_shape
from bindscope.model.transformer import Transformer
from model.test_convert import make_perturbed_model
from model.test_transformer import random_tokens

SHAPES = {
    "untied": {"positions": "learned"},
    "tied, tanh gelu": {"positions": "learned", "tied": True, "activation": "gelu_tanh"},
    "relu without biases": {"positions": "learned", "bias": False, "activation": "relu"},
}


def make_directory(directory: Path, **changes) -> Transformer:
    model = make_perturbed_model(**{"n_heads": 3, **SHAPES["tied, tanh gelu"], **changes})
    export_hugging_face(model, directory)
    return model


def read_model(directory: Path) -> Transformer:
    config, state = read_gpt2(directory)
    model = Transformer(config)
    load_into(model, state, "here")
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
    model = make_perturbed_model(n_heads=3, **changes)
    export_hugging_face(model, tmp_path / "out")
    tokens = random_tokens(3, model.config.n_positions)
    assert torch.equal(read_model(tmp_path / "out")(tokens), model(tokens))


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
    shape = gpt2_shape(directory)
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
        ({"model_type": "gpt_neox"}, r"type 'gpt_neox' where 'gpt2' is needed"),
        ({"scale_attn_by_inverse_layer_idx": True}, r"scale_attn_by_inverse_layer_idx = true is not supported"),
        ({"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn = true is not supported"),
        ({"scale_attn_weights": False}, "scale_attn_weights = false is not supported"),
        ({"add_cross_attention": True}, "add_cross_attention = true is not supported"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon = 1e-06 is not supported"),
        ({"activation_function": "gelu_newest"}, "activation_function = 'gelu_newest' .* mean 'gelu_new'"),
        ({"n_head": 5}, "cannot be shared by n_head = 5"),
        ({"n_layer": "three"}, 'n_layer = "three" is no size'),
        ({"n_layer": True}, "n_layer = true is no size"),
        ({"n_layer": 10**9}, "weights of 3 layers where config.json says 1000000000"),
        ({"n_embd": 24}, "has shape .* where config.json asks for"),
        ({"tie_word_embeddings": False}, "no 'lm_head.weight'"),
        ({"resid_pdrop": 1.5}, "no dropout rate"),
    ],
)
def test_what_our_transformer_cannot_express_is_refused(changes, said, directory):
    change_config(directory, **changes)
    with pytest.raises(BindscopeError, match=said):
        read_gpt2(directory)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda old: old | {"score.weight": torch.zeros(1, 12)}, "no weight 'score.weight'"),
        (lambda old: {key: old[key] for key in old if "ln_f.bias" not in key}, "no 'ln_f.bias'"),
        (lambda old: {key: value.to(torch.int8) for key, value in old.items()}, "holds torch.int8"),
        (lambda old: old | {"wte.weight": torch.zeros(11, 12)}, "both with and without 'transformer.'"),
        (lambda old: {key: value * float("nan") for key, value in old.items()}, "not finite"),
    ],
)
def test_weights_that_are_not_a_gpt2s_are_refused(change, said, directory):
    change_weights(directory, change)
    with pytest.raises(BindscopeError, match=said):
        read_gpt2(directory)


def test_an_empty_directory_is_told_with_what_to_do(directory, tmp_path):
    with pytest.raises(BindscopeError, match=r"no such directory; copy a GPT-2 there, a directory with config.json"):
        read_gpt2(tmp_path / "none")
    (directory / "model.safetensors").unlink()
    with pytest.raises(BindscopeError, match=r"has a config.json but no weights; copy model.safetensors"):
        read_gpt2(directory)
    (directory / "config.json").write_text("[1")
    with pytest.raises(BindscopeError, match="not JSON"):
        read_gpt2(directory)
    (directory / "config.json").unlink()
    with pytest.raises(BindscopeError, match=r"no Hugging Face model: it has no config.json"):
        read_gpt2(directory)


def test_shards_lie_in_the_directory_and_nowhere_else(directory, tmp_path):
    shutil.move(directory / "model.safetensors", tmp_path / "elsewhere.safetensors")
    index = directory / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"wte.weight": "../elsewhere.safetensors"}}))
    with pytest.raises(BindscopeError, match="is no file of this directory"):
        read_gpt2(directory)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "gone.safetensors"}}))
    with pytest.raises(BindscopeError, match=r"lacks 'gone.safetensors'"):
        read_gpt2(directory)
    index.write_text(json.dumps({"weight_map": {}}))
    with pytest.raises(BindscopeError, match="names no file"):
        read_gpt2(directory)


def test_a_pickle_with_code_in_it_is_not_run(directory, tmp_path):
    class Harm:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harmed",))

    torch.save({"wte.weight": Harm()}, directory / "pytorch_model.bin")
    (directory / "model.safetensors").unlink()
    with pytest.raises(BindscopeError, match="not a plain PyTorch state dict"):
        read_gpt2(directory)
    assert not (tmp_path / "harmed").exists()


def test_the_hash_follows_every_byte_that_is_read(directory):
    before = hash_gpt2(directory)
    (directory / "README.md").write_text("not read")
    assert hash_gpt2(directory) == before
    change_config(directory, resid_pdrop=0.2)
    changed = hash_gpt2(directory)
    change_weights(directory, lambda old: {key: value + 1 for key, value in old.items()})
    assert len({before, changed, hash_gpt2(directory)}) == 3
