"""Weights from files: what is read computes what the file's own rules say, and what cannot be read is refused."""

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert import (
    load_checkpoint,
    state_to_transformer_lens,
    transformer_lens_to_config,
    transformer_lens_to_state,
)
from bindscope.model.transformer import Transformer
from bindscope.schema import to_mapping
from model.test_transformer import VARIANTS, make_model, random_tokens

UNWRITABLE = {"identity scaling", "rms norm", "gated", "grouped heads", "all at once", "grouped identity scaling"}
SHAPES = {name: changes for name, changes in VARIANTS.items() if name not in UNWRITABLE}
SHAPES["another rope base"] = {"rope_base": 500.0}
SHAPES["attention only"] = {"mlp_layers": (), "bias": False}
SHAPES["no positions"] = {"positions": "none"}


def make_perturbed_model(**changes) -> Transformer:
    """A model none of whose parameters keeps its initial value, biases and LayerNorm included."""
    model, generator = make_model(**changes), torch.Generator().manual_seed(11)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


def write_checkpoint(model: Transformer, path: Path, /, **metadata: str) -> Path:
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    safetensors.torch.save_file(state, path, metadata)
    return path


def assert_same_weights(one: Transformer, other: Transformer) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_safetensors_checkpoint_gives_the_same_model_back(changes, tmp_path):
    model, tokens = make_perturbed_model(**changes), random_tokens()
    described = write_checkpoint(model, tmp_path / "a.safetensors", model=json.dumps(to_mapping(model.config)))
    bare = write_checkpoint(model, tmp_path / "b.safetensors")
    assert load_checkpoint(described).config == model.config
    for loaded in (load_checkpoint(described), load_checkpoint(bare, model.config)):
        assert_same_weights(loaded, model)
        torch.testing.assert_close(loaded(tokens), model(tokens))


def test_half_precision_is_loaded_into_full(tmp_path):
    model = make_perturbed_model()
    state = {name: value.half() for name, value in model.state_dict().items()}
    safetensors.torch.save_file(state, tmp_path / "half.safetensors")
    loaded = load_checkpoint(tmp_path / "half.safetensors", model.config)
    assert all(value.dtype == torch.float32 for value in loaded.state_dict().values())
    torch.testing.assert_close(loaded(random_tokens()), model(random_tokens()), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_a_transformer_lens_state_dict_computes_the_same_by_its_own_rules(changes):
    model, tokens = make_perturbed_model(**changes), random_tokens()
    theirs = state_to_transformer_lens(model)
    expected = compute_as_transformer_lens(theirs, model.config, tokens)
    torch.testing.assert_close(model(tokens).double(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("container", ["pth", "safetensors"])
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES.keys())
def test_a_transformer_lens_state_dict_gives_the_same_model_back(changes, container, tmp_path):
    model, tokens = make_perturbed_model(**changes), random_tokens()
    theirs, config, path = state_to_transformer_lens(model), model.config, tmp_path / f"model.{container}"
    torch.save(theirs, path) if container == "pth" else safetensors.torch.save_file(theirs, path)
    told = {"activation": config.activation, "norm": config.norm, "parallel": config.parallel}
    inferred = transformer_lens_to_config(theirs, **told, causal=config.causal)
    positions = "learned" if config.positions == "normal" else config.positions
    d_mlp = config.d_mlp if config.layers_with_mlp else inferred.d_mlp
    epsilon = inferred.norm_epsilon  # which a state dict does not tell either
    assert inferred == replace(config, positions=positions, d_mlp=d_mlp, norm_epsilon=epsilon, init=inferred.init)
    inferred = replace(inferred, norm_epsilon=config.norm_epsilon)
    for loaded in (load_checkpoint(path, config), load_checkpoint(path, inferred)):
        assert_same_weights(loaded, model)
        torch.testing.assert_close(loaded(tokens), model(tokens))


def test_folded_layer_norms_come_back_as_ones_and_zeros():
    model = make_model()
    theirs = {name: value for name, value in state_to_transformer_lens(model).items() if "ln" not in name}
    config = transformer_lens_to_config(theirs, activation="gelu", norm="layer", parallel=False)
    loaded = Transformer(config)
    loaded.load_state_dict(transformer_lens_to_state(theirs, config))
    torch.testing.assert_close(loaded(random_tokens()), model(random_tokens()))


def compute_as_transformer_lens(state, config: ModelConfig, tokens: torch.Tensor) -> torch.Tensor:
    """Logits from a state dict by TransformerLens's equations, in float64, from its names and shapes alone."""
    weights = {name: value.double() for name, value in state.items()}
    x = weights["embed.W_E"][tokens]
    n_positions = tokens.shape[1]
    if "pos_embed.W_pos" in weights:
        x = x + weights["pos_embed.W_pos"][:n_positions]
    functional = torch.nn.functional
    act = {"gelu": functional.gelu, "relu": torch.relu, "cos": torch.cos, "silu": functional.silu}[config.activation]
    for layer in range(config.n_layers):
        part = {name.split(".", 2)[2]: v for name, v in weights.items() if name.startswith(f"blocks.{layer}.")}
        entering, y = x, normalise(x, part, "ln1", config)
        q, k, v = (torch.einsum("bpm,hmd->bphd", y, part[f"attn.W_{c}"]) + part[f"attn.b_{c}"] for c in "QKV")
        if "attn.rotary_sin" in part:
            sin, cos = part["attn.rotary_sin"][:n_positions, None], part["attn.rotary_cos"][:n_positions, None]
            q, k = turn_pairs(q, sin, cos), turn_pairs(k, sin, cos)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        if config.causal:
            scores = scores.masked_fill(part["attn.mask"][:n_positions, :n_positions] == 0, part["attn.IGNORE"].item())
        z = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
        x = x + torch.einsum("bqhd,hdm->bqm", z, part["attn.W_O"]) + part["attn.b_O"]
        if "mlp.W_in" in part and layer in config.layers_with_mlp:
            read = normalise(entering if config.parallel else x, part, "ln2", config)
            hidden = act(read @ part["mlp.W_in"] + part["mlp.b_in"])
            x = x + hidden @ part["mlp.W_out"] + part["mlp.b_out"]
    return normalise(x, weights, "ln_final", config) @ weights["unembed.W_U"] + weights["unembed.b_U"]


def normalise(x, weights, name, config):
    if f"{name}.w" not in weights:
        return x
    centred = x - x.mean(-1, keepdim=True)
    scale = (centred.pow(2).mean(-1, keepdim=True) + config.norm_epsilon).sqrt()
    return centred / scale * weights[f"{name}.w"] + weights[f"{name}.b"]


def turn_pairs(x, sin, cos):
    """TransformerLens's rotation: the table covers both halves of the dimensions that turn."""
    dims = sin.shape[-1]
    turning, rest = x[..., :dims], x[..., dims:]
    swapped = torch.cat([-turning[..., dims // 2 :], turning[..., : dims // 2]], -1)
    return torch.cat([turning * cos + swapped * sin, rest], -1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s.pop("blocks.1.attn.W_K"), r"without 'blocks.1.attn.W_K'"),
        (lambda s: s.update({"blocks.0.mlp.W_gate": s["blocks.0.mlp.W_in"]}), "W_gate.*is not read"),
        (lambda s: s.update({"unembed.b_U": s["unembed.b_U"] + 1}), "b_U' is not zero"),
        (lambda s: s.update({"embed.W_E": s["embed.W_E"][0]}), "'embed.W_E' needs 2 axes"),
        (lambda s: s.update({"blocks.2.attn.W_V": s["blocks.2.attn.W_V"][:, :5]}), "'blocks.2.attn.W_V' has shape"),
        (lambda s: s.update({"blocks.1.attn.mask": s["blocks.1.attn.mask"].triu(-2)}), "not the causal mask"),
        (lambda s: [s.pop(name) for name in list(s) if name.endswith(("ln1.b", "ln2.b", "final.b"))], "RMSNorm"),
        (lambda s: [s.pop(name) for name in list(s) if name.startswith("blocks.1.")], r"numbered \[0, 2\]"),
        (
            lambda s: s.update({f"blocks.0.attn.{n}": torch.rand(20, 4) for n in ("rotary_sin", "rotary_cos")}),
            "rotates",
        ),
        (lambda s: s.update({"embed.W_E": s["embed.W_E"].int()}), "floating point"),
    ],
)
def test_a_transformer_lens_model_of_another_kind_is_refused(change, said, tmp_path):
    theirs = state_to_transformer_lens(make_perturbed_model())
    change(theirs)
    torch.save(theirs, tmp_path / "model.pth")
    with pytest.raises(BindscopeError, match=said):
        load_checkpoint(tmp_path / "model.pth", activation="gelu", parallel=False)


@pytest.mark.parametrize(
    ("changes", "told", "said"),
    [
        ({}, {"parallel": False}, "does not tell its activation; give it, as in model.activation=relu"),
        ({}, {"activation": "relu"}, "whether attention and MLP work in parallel"),
        ({"norm": "none"}, {"activation": "relu", "parallel": False}, "no LayerNorm or one whose weights were folded"),
    ],
)
def test_what_a_transformer_lens_state_dict_does_not_tell_is_never_assumed(changes, told, said, tmp_path):
    torch.save(state_to_transformer_lens(make_perturbed_model(**changes)), tmp_path / "model.pth")
    with pytest.raises(BindscopeError, match=said):
        load_checkpoint(tmp_path / "model.pth", **told)


def test_what_does_not_change_the_numbers_need_not_be_told(tmp_path):
    model, tokens = make_perturbed_model(mlp_layers=()), random_tokens()
    torch.save(state_to_transformer_lens(model), tmp_path / "model.pth")
    torch.testing.assert_close(load_checkpoint(tmp_path / "model.pth")(tokens), model(tokens))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(number, tmp_path):
    theirs = state_to_transformer_lens(make_perturbed_model())
    theirs["embed.W_E"][3, 1] = number
    torch.save(theirs, tmp_path / "model.pth")
    with pytest.raises(BindscopeError, match=r"'embed\.weight' holds numbers that are not finite"):
        load_checkpoint(tmp_path / "model.pth", activation="relu", parallel=False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bias": False}, "is not zero, and this model has none"),
        ({"mlp_layers": (0, 1)}, "'blocks.2.mlp.* is not zero"),
        ({"norm": "none"}, "no LayerNorm"),
        ({"n_layers": 2}, "has 3 layers, this model 2"),
        ({"n_heads": 1}, r"W_Q' has shape \[2, 12, 4\], this model's \[1, 12, 4\]"),
        ({"d_mlp": 7}, r"'blocks.0.mlp.up.weight' has shape \[20, 12\], this model's \[7, 12\]"),
        ({"positions": "learned"}, "rotates"),
        ({"tied": True}, "ties them"),
    ],
)
def test_nothing_of_a_transformer_lens_model_is_dropped_in_silence(changes, said, tmp_path):
    model = make_perturbed_model()
    torch.save(state_to_transformer_lens(model), tmp_path / "model.pth")
    with pytest.raises(BindscopeError, match=said):
        load_checkpoint(tmp_path / "model.pth", replace(model.config, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_layers": 4}, "it has no 'blocks.3"),
        ({"n_layers": 2}, "this model has no 'blocks.2"),
        ({"d_vocab": 12}, r"'embed.weight' has shape \[11, 12\], this model's \[12, 12\]"),
    ],
)
def test_a_checkpoint_of_another_shape_is_refused(changes, said, tmp_path):
    model = make_model()
    path = write_checkpoint(model, tmp_path / "model.safetensors")
    with pytest.raises(BindscopeError, match=said):
        load_checkpoint(path, replace(model.config, **changes))


class Bomb:
    """What a hostile pickle holds: a call made while it is unpacked."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_a_pickle_is_never_executed(tmp_path):
    target = tmp_path / "executed"
    torch.save({"embed.W_E": Bomb(target)}, tmp_path / "zip.pth")
    (tmp_path / "bare.pth").write_bytes(pickle.dumps({"embed.W_E": Bomb(target)}, protocol=2))
    for name in ("zip.pth", "bare.pth"):
        with pytest.raises(BindscopeError, match="not a plain PyTorch state dict"):
            load_checkpoint(tmp_path / name)
    assert not target.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (torch.zeros(3), "type Tensor where a state dict"),
        ({}, "an empty dict"),
        ({"state": {"embed.W_E": torch.zeros(2, 2)}, "step": 3}, "entry 'state' holds a value of type dict"),
        ({"embed.W_E": torch.zeros(2, 2).to_sparse()}, "where a state dict has a plain tensor"),
        ({"embed.W_E": torch.zeros(1, 1).expand(10**6, 10**6)}, "where a state dict has a plain tensor"),
    ],
)
def test_a_pickle_that_is_not_a_state_dict_is_refused(content, said, tmp_path):
    torch.save(content, tmp_path / "model.pth")
    with pytest.raises(BindscopeError, match=said):
        load_checkpoint(tmp_path / "model.pth")


@pytest.mark.parametrize("container", ["pth", "safetensors"])
@pytest.mark.parametrize("kept", [0, 3, 9, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_named(container, kept, tmp_path):
    theirs, path = state_to_transformer_lens(make_model()), tmp_path / f"model.{container}"
    torch.save(theirs, path) if container == "pth" else safetensors.torch.save_file(theirs, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    with pytest.raises(BindscopeError, match=path.name) as caught:
        load_checkpoint(path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_missing_configurations_are_told(tmp_path):
    with pytest.raises(BindscopeError, match="No such file"):
        load_checkpoint(tmp_path / "nothing.pth")
    with pytest.raises(BindscopeError, match="Is a directory"):
        load_checkpoint(tmp_path)
    path = write_checkpoint(make_model(), tmp_path / "model.safetensors")
    with pytest.raises(BindscopeError, match="give its configuration"):
        load_checkpoint(path)
    path = write_checkpoint(make_model(), tmp_path / "model.safetensors", model='{"d_vocab": 3, "n_position": 2}')
    with pytest.raises(BindscopeError, match="Did you mean 'n_positions'"):
        load_checkpoint(path)


def test_identity_scaling_has_no_transformer_lens_form():
    with pytest.raises(BindscopeError, match="identity scaling"):
        state_to_transformer_lens(make_model(**VARIANTS["identity scaling"]))
    for name in ("rms norm", "gated", "grouped heads"):
        with pytest.raises(BindscopeError, match="only models with plain MLPs"):
            state_to_transformer_lens(make_model(**VARIANTS[name]))
