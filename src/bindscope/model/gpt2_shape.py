"""What ``config.json`` of a GPT-2 says, as one of our shapes. No torch here: a run's shape is known before its weights.

>>> gpt2_shape("gpt2").d_model
768
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.model.config import InitConfig, ModelConfig

CONFIG = "config.json"
LAYER_NORM_EPSILON = 1e-5
WHAT_TO_DO = "copy a GPT-2 there, a directory with config.json and model.safetensors"
_ACTIVATIONS: Mapping[str, Literal["gelu", "gelu_tanh", "relu"]] = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}
_UNSUPPORTED = {  # the option → the only value that our transformer can express
    "scale_attn_by_inverse_layer_idx": False,
    "reorder_and_upcast_attn": False,
    "scale_attn_weights": True,
    "add_cross_attention": False,
}


def gpt2_shape(directory: str | Path) -> ModelConfig:
    """The shape of the GPT-2 in a local directory, from its ``config.json`` alone; what is no GPT-2 is refused."""
    directory = Path(directory)
    if not directory.is_dir():
        raise BindscopeError(f"{directory}: there is no such directory; {WHAT_TO_DO}.")
    path = directory / CONFIG
    if not path.is_file():
        raise BindscopeError(f"{directory}: no Hugging Face model: it has no {CONFIG}; {WHAT_TO_DO}.")
    said = read_json_object(path)
    if said.get("model_type") != "gpt2":
        raise BindscopeError(f"{path}: describes a model of type {said.get('model_type')!r} where 'gpt2' is needed.")
    _check_options(said, path)
    d_model, n_heads = _size(said, "n_embd", 768, path), _size(said, "n_head", 12, path)
    if d_model % n_heads:
        raise BindscopeError(f"{path}: n_embd = {d_model} cannot be shared by n_head = {n_heads} heads.")
    return ModelConfig(
        d_vocab=_size(said, "vocab_size", 50257, path),
        n_positions=_size(said, "n_positions", 1024, path),
        n_layers=_size(said, "n_layer", 12, path),
        n_heads=n_heads,
        d_model=d_model,
        d_head=d_model // n_heads,
        d_mlp=_size(said, "n_inner", 4 * d_model, path),
        positions="learned",
        activation=_activation(said, path),
        dropout=_dropout(said, path),
        tied=bool(said.get("tie_word_embeddings", True)),
        init=InitConfig("gpt2", scale_residual=True),
    )


def read_json_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object; what is none is said to be none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BindscopeError(f"{path}: cannot be read: {problem.strerror}.") from None
    except (ValueError, RecursionError) as problem:
        raise BindscopeError(f"{path}: not JSON ({problem}); copy the directory again.") from None
    if not isinstance(content, dict):
        raise BindscopeError(f"{path}: holds no JSON object; copy the directory again.")
    return content


def _check_options(said: Mapping[str, Any], path: Path) -> None:
    for option, needed in _UNSUPPORTED.items():
        given = said.get(option, needed)
        if given != needed:
            raise BindscopeError(f"{path}: {option} = {json.dumps(given)} is not supported, only {json.dumps(needed)}.")
    epsilon = said.get("layer_norm_epsilon", LAYER_NORM_EPSILON)
    if epsilon != LAYER_NORM_EPSILON:
        raise BindscopeError(f"{path}: layer_norm_epsilon = {epsilon} is not supported, only {LAYER_NORM_EPSILON}.")


def _size(said: Mapping[str, Any], name: str, default: int, path: Path) -> int:
    value = said.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BindscopeError(f"{path}: {name} = {json.dumps(value)} is no size; copy the directory again.")
    return value


def _activation(said: Mapping[str, Any], path: Path) -> Literal["gelu", "gelu_tanh", "relu"]:
    name = str(said.get("activation_function", "gelu_new"))
    if name not in _ACTIVATIONS:
        raise BindscopeError(
            f"{path}: activation_function = {name!r} is not supported.{suggest_nearest(name, _ACTIVATIONS)}"
        )
    return _ACTIVATIONS[name]


def _dropout(said: Mapping[str, Any], path: Path) -> float:
    """That of the residual stream; it plays no part but in training, where the run's own setting counts."""
    value = said.get("resid_pdrop", 0.1)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise BindscopeError(f"{path}: resid_pdrop = {json.dumps(value)} is no dropout rate.")
    return float(value)
