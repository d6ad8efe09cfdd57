"""A GPT-2 from a local Hugging Face directory: the inverse of what ``hugging_face`` writes for learned positions.

A directory holds ``config.json`` and the weights: ``model.safetensors``, the same in shards with an index, or
``pytorch_model.bin``, of which only tensors are read. Nothing of Hugging Face is needed, and nothing is downloaded.

>>> config, state = read_gpt2("gpt2")
>>> model = Transformer(config)
>>> load_into(model, state, "gpt2")
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert.checkpoint import read_state
from bindscope.model.gpt2_shape import CONFIG, gpt2_shape, read_json_object

SAFETENSORS, SHARDS, PICKLED = "model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"
_PREFIX = "transformer."
_HEAD = "lm_head.weight"
_BUFFER = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # the causal mask, which older files carry along
_LAYER = re.compile(r"h\.(\d+)\.")
_NORMS = {"ln_1": "norm1", "ln_2": "norm2"}
_LINEARS = {  # theirs, which multiply from the right → ours
    "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.out",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}


def read_gpt2(directory: str | Path) -> tuple[ModelConfig, dict[str, Tensor]]:
    """The shape of the GPT-2 in a directory, and its weights under our names, in single precision.

    >>> read_gpt2("gpt2")[0].n_layers
    12
    """
    directory = Path(directory)
    config = gpt2_shape(directory)
    where = f"{directory}"
    state = _named_plainly(_read_weights(directory), config, where)
    wanted = _our_names(config)
    missing = [name for name in wanted if name not in state]
    if missing:
        raise BindscopeError(f"{where}: its weights are those of another model than {CONFIG} says: no '{missing[0]}'.")
    extra = sorted(state.keys() - wanted.keys())
    if extra:
        raise BindscopeError(f"{where}: no plain GPT-2: a GPT-2 of this shape has no weight '{extra[0]}'.")
    return config, {ours: _convert(state[name], name, shape, where) for name, (ours, shape) in wanted.items()}


def hash_gpt2(directory: str | Path) -> str:
    """The hash of the files that ``read_gpt2`` reads: what a run that starts from them is recognised by."""
    directory, digest = Path(directory), hashlib.sha256()
    for name in (CONFIG, *_weight_files(directory)):
        try:
            with (directory / name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as problem:
            raise BindscopeError(f"{directory / name}: cannot be read: {problem.strerror}.") from None
        digest.update(f"{name} {content}\n".encode())
    return digest.hexdigest()


def _weight_files(directory: Path) -> tuple[str, ...]:
    """The files that hold the weights, the index of shards among them."""
    if (directory / SAFETENSORS).is_file():
        return (SAFETENSORS,)
    if (directory / SHARDS).is_file():
        return (SHARDS, *_shards(directory))
    if (directory / PICKLED).is_file():
        return (PICKLED,)
    raise BindscopeError(
        f"{directory}: has a {CONFIG} but no weights; copy {SAFETENSORS} (or {PICKLED}) of the same model into it."
    )


def _shards(directory: Path) -> list[str]:
    path = directory / SHARDS
    names = read_json_object(path).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise BindscopeError(f"{path}: names no file for any weight; copy the directory again.")
    files = sorted(set(map(str, names.values())))
    for file in files:
        if Path(file).name != file:
            raise BindscopeError(f"{path}: '{file}' is no file of this directory.")
        if not (directory / file).is_file():
            raise BindscopeError(f"{directory}: lacks '{file}', which {SHARDS} names; copy it there.")
    return files


def _read_weights(directory: Path) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for file in _weight_files(directory):
        if file != SHARDS:
            weights |= read_state(directory / file)[0]
    return weights


def _named_plainly(weights: Mapping[str, Tensor], config: ModelConfig, where: str) -> dict[str, Tensor]:
    """Without the prefix that files of whole language models have, and without masks and a tied head's copy."""
    plain = {name.removeprefix(_PREFIX): tensor for name, tensor in weights.items()}
    if len(plain) < len(weights):
        raise BindscopeError(f"{where}: has weights both with and without '{_PREFIX}' before their names; keep one.")
    layers = {int(found[1]) for name in plain if (found := _LAYER.match(name))}
    if len(layers) != config.n_layers:
        raise BindscopeError(f"{where}: has weights of {len(layers)} layers where {CONFIG} says {config.n_layers}.")
    ignored = {_HEAD} if config.tied else set()
    return {name: tensor for name, tensor in plain.items() if name not in ignored and not _BUFFER.fullmatch(name)}


def _our_names(config: ModelConfig) -> dict[str, tuple[str, tuple[int, ...]]]:
    """GPT-2's name for each weight → our name, and its shape in the file."""
    d_model, d_mlp = config.d_model, config.d_mlp
    names: dict[str, tuple[str, tuple[int, ...]]] = {
        "wte.weight": ("embed.weight", (config.d_vocab, d_model)),
        "wpe.weight": ("pos_embed", (config.n_positions, d_model)),
    }
    ends = {"ln_f": "norm"}
    sizes = dict(zip(_LINEARS, ((d_model, 3 * d_model), (d_model, d_model), (d_model, d_mlp), (d_mlp, d_model))))
    for layer in range(config.n_layers):
        ends |= {f"h.{layer}.{theirs}": f"blocks.{layer}.{ours}" for theirs, ours in _NORMS.items()}
        for theirs, ours in _LINEARS.items():
            names[f"h.{layer}.{theirs}.weight"] = (f"blocks.{layer}.{ours}.weight", sizes[theirs])
            names[f"h.{layer}.{theirs}.bias"] = (f"blocks.{layer}.{ours}.bias", sizes[theirs][1:])
    for theirs, ours in ends.items():
        names |= {f"{theirs}.{kind}": (f"{ours}.{kind}", (d_model,)) for kind in ("weight", "bias")}
    if not config.tied:
        names[_HEAD] = ("unembed.weight", (config.d_vocab, d_model))
    return names


def _convert(tensor: Tensor, name: str, shape: tuple[int, ...], where: str) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise BindscopeError(f"{where}: '{name}' has shape {list(tensor.shape)} where {CONFIG} asks for {list(shape)}.")
    if not tensor.is_floating_point():
        raise BindscopeError(f"{where}: '{name}' holds {tensor.dtype}; weights in whole or half precision are needed.")
    is_linear = any(name.endswith(f"{linear}.weight") for linear in _LINEARS)
    value = (tensor.T if is_linear else tensor).to(torch.float32).contiguous()
    if not value.isfinite().all():
        raise BindscopeError(f"{where}: '{name}' holds numbers that are not finite; copy the directory again.")
    return value
