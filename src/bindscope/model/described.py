"""What other people's files say of a model's shape, as one of ours. No torch here: a shape is known before its weights.

A key that changes the numbers is read, or refused by its name. So is a key that is not known here, unless it is off: it
may change the numbers as well.

>>> describe_directory("gpt2").config.d_model
768
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.model.config import Activation, InitConfig, ModelConfig

CONFIG = "config.json"
EVERYWHERE = frozenset({"norm", "qkv", "out", "mlp"})

_ACTIVATIONS: Mapping[str, Activation] = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_NEUTRAL = re.compile(  # what plays no part in the logits of a plain run
    r"_.*|.*_token_id|.*dropout|.*_pdrop|summary_.*|output_.*|architectures|model_type|name_or_path|transformers_version"
    r"|torch_dtype|dtype|use_cache|use_return_dict|return_dict|initializer_range|task_specific_params|id2label|label2id"
    r"|num_labels|problem_type|pretraining_tp|n_ctx|gradient_checkpointing|tokenizer_class|max_window_layers"
    r"|is_decoder|is_llama_config|chunk_size_feed_forward"
)
_REASONS = {
    "rope_scaling": "it stretches the rotation, and positions here rotate at fixed frequencies",
    "rope_parameters": "positions here rotate at fixed frequencies, rope_type 'default'",
    "partial_rotary_factor": "all dimensions of a Llama's heads rotate",
    "sliding_window": "attention here sees every position before; a model without a window is needed",
    "layer_types": "every layer here attends to all positions before, 'full_attention'",
    "quantization_config": "weights must be stored unquantised, in float32, float16 or bfloat16",
    "auto_map": "the model brings code of its own, which is never run here",
    "scale_attn_by_inverse_layer_idx": "scores here are divided by √d_head alone",
    "scale_attn_weights": "scores here are always divided by √d_head",
    "reorder_and_upcast_attn": "scores here are computed in the precision of the weights",
    "add_cross_attention": "there is no second sequence to attend to",
}


@dataclass(frozen=True)
class Described:
    """A shape, the architecture whose names its weights have, and which parts have biases there; ours are zero elsewhere."""

    architecture: str
    config: ModelConfig
    biased: frozenset[str]  # of norm, qkv, out and mlp


def describe_directory(directory: str | Path, only: str | None = None) -> Described:
    """The model in a local Hugging Face directory, from its ``config.json`` alone; ``only`` one type where that is needed."""
    directory, wanted = Path(directory), "GPT-2" if only == "gpt2" else "model"
    what_to_do = f"copy a {wanted} there, a directory with {CONFIG} and model.safetensors"
    if not directory.is_dir():
        raise BindscopeError(f"{directory}: there is no such directory; {what_to_do}.")
    path = directory / CONFIG
    if not path.is_file():
        raise BindscopeError(f"{directory}: no Hugging Face model: it has no {CONFIG}; {what_to_do}.")
    said = _Said(read_json_object(path), str(path))
    kind = said.values.get("model_type")
    if only is not None and kind != only:
        raise BindscopeError(f"{path}: describes a model of type {kind!r} where '{only}' is needed.")
    if not isinstance(kind, str) or kind not in _READERS:
        raise BindscopeError(f"{path}: models of type {kind!r} are not read, only {', '.join(_READERS)}.")
    try:
        described = _READERS[kind](said)
    except BindscopeError as problem:  # of our shape, which does not know whose it is
        raise BindscopeError(f"{path}: {str(problem).removeprefix(f'{path}: ')}") from None
    said.refuse_the_rest()
    return described


def describe_nanogpt(arguments: Mapping[str, Any], where: str) -> Described:
    """The model whose ``model_args`` a checkpoint of nanoGPT holds."""
    said = _Said(arguments, f"{where}: model_args")
    d_model, n_heads = said.size("n_embd"), said.size("n_head")
    bias = said.flag("bias", True)
    config = ModelConfig(
        d_vocab=said.size("vocab_size"),
        n_positions=said.size("block_size"),
        n_layers=said.size("n_layer"),
        n_heads=n_heads,
        d_model=d_model,
        d_head=said.head_size(None, d_model, n_heads),
        d_mlp=4 * d_model,
        positions="learned",
        bias=bias,
        dropout=said.rate("dropout", 0.0),
        tied=True,
        init=InitConfig("gpt2", scale_residual=True),
    )
    said.refuse_the_rest()
    return Described("nanogpt", config, EVERYWHERE if bias else frozenset())


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


def _describe_gpt2(said: _Said) -> Described:
    for option, needed in (
        ("scale_attn_by_inverse_layer_idx", False),
        ("reorder_and_upcast_attn", False),
        ("scale_attn_weights", True),
        ("add_cross_attention", False),
    ):
        said.need(option, needed)
    d_model, n_heads = said.size("n_embd", 768), said.size("n_head", 12)
    config = ModelConfig(
        d_vocab=said.size("vocab_size", 50257),
        n_positions=said.size("n_positions", 1024),
        n_layers=said.size("n_layer", 12),
        n_heads=n_heads,
        d_model=d_model,
        d_head=said.head_size(None, d_model, n_heads),
        d_mlp=said.size("n_inner", 4 * d_model),
        positions="learned",
        norm_epsilon=said.number("layer_norm_epsilon", 1e-5),
        activation=said.activation("activation_function", "gelu_new"),
        dropout=said.rate("resid_pdrop", 0.1),
        tied=said.flag("tie_word_embeddings", True),
        init=InitConfig("gpt2", scale_residual=True),
    )
    return Described("gpt2", config, EVERYWHERE)


def _describe_neox(said: _Said) -> Described:
    d_model, n_heads = said.size("hidden_size", 6144), said.size("num_attention_heads", 64)
    base, fraction = said.rotation("rotary_emb_base", "rotary_pct", 0.25)
    config = ModelConfig(
        d_vocab=said.size("vocab_size", 50432),
        n_positions=said.size("max_position_embeddings", 2048),
        n_layers=said.size("num_hidden_layers", 44),
        n_heads=n_heads,
        d_model=d_model,
        d_head=said.head_size(None, d_model, n_heads),
        d_mlp=said.size("intermediate_size", 24576),
        rope_base=base,
        rope_fraction=fraction,
        norm_epsilon=said.number("layer_norm_eps", 1e-5),
        parallel=said.flag("use_parallel_residual", True),
        activation=said.activation("hidden_act", "gelu"),
        dropout=said.rate("hidden_dropout", 0.0),
        tied=said.flag("tie_word_embeddings", False),
    )
    attention = {"qkv", "out"} if said.flag("attention_bias", True) else set()
    return Described("gpt_neox", config, frozenset({"norm", "mlp", *attention}))


def _describe_llama(said: _Said, biased: frozenset[str] | None = None) -> Described:
    """Llama, and Mistral and Qwen2, whose ``biased`` parts are fixed and whose groups of heads must be told."""
    d_model, n_heads = said.size("hidden_size", 4096), said.size("num_attention_heads", 32)
    n_kv_heads = said.kv_heads("num_key_value_heads", n_heads, n_heads if biased is None else None)
    if biased is None:
        attention = ("qkv", "out") if said.flag("attention_bias", False) else ()
        biased = frozenset({*attention, *(("mlp",) if said.flag("mlp_bias", False) else ())})
    base, fraction = said.rotation("rope_theta")
    if fraction != 1:
        said.refuse("partial_rotary_factor", fraction)
    config = ModelConfig(
        d_vocab=said.size("vocab_size"),
        n_positions=said.size("max_position_embeddings"),
        n_layers=said.size("num_hidden_layers"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        d_model=d_model,
        d_head=said.head_size("head_dim", d_model, n_heads),
        d_mlp=said.size("intermediate_size"),
        rope_base=base,
        norm="rms",
        norm_epsilon=said.number("rms_norm_eps", 1e-6),
        bias=bool(biased),
        activation=said.activation("hidden_act", "silu"),
        gated=True,
        tied=said.flag("tie_word_embeddings", False),
    )
    return Described("llama", config, biased)


def _describe_mistral(said: _Said) -> Described:
    described = _describe_llama(said, frozenset())
    window = said.get("sliding_window", 4096 if "sliding_window" not in said.values else None)
    if window is not None and not (isinstance(window, int) and window >= described.config.n_positions):
        said.refuse("sliding_window", window)
    return described


def _describe_qwen2(said: _Said) -> Described:
    if said.flag("use_sliding_window", False):
        said.refuse("sliding_window", said.values.get("sliding_window"))
    said.get("sliding_window")  # unused without the flag
    if set(said.get("layer_types", [])) - {"full_attention"}:
        said.refuse("layer_types", said.values["layer_types"])
    return _describe_llama(said, frozenset({"qkv"}))


_READERS: Mapping[str, Callable[[_Said], Described]] = {
    "gpt2": _describe_gpt2,
    "gpt_neox": _describe_neox,
    "llama": _describe_llama,
    "mistral": _describe_mistral,
    "qwen2": _describe_qwen2,
}


class _Said:
    """A file's settings; it remembers which of them were read, and refuses what they cannot be with the file's name."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where, self.seen = values, where, set[str]()

    def get(self, key: str, default: Any = None) -> Any:
        """A value; one that is null or left out is the default."""
        self.seen.add(key)
        value = self.values.get(key)
        return default if value is None else value

    def refuse(self, key: str, value: Any) -> None:
        reason = _REASONS.get(key, "it is not known here and may change the numbers; take it out if it does not")
        raise BindscopeError(f"{self.where}: {key} = {json.dumps(value)} is not supported: {reason}.")

    def refuse_the_rest(self) -> None:
        """Refuse what is set and was neither read nor is known to change nothing."""
        for key, value in self.values.items():
            if value not in (None, False, [], {}) and key not in self.seen and not _NEUTRAL.fullmatch(key):
                self.refuse(key, value)

    def need(self, key: str, needed: Any) -> None:
        if self.get(key, needed) != needed:
            self.refuse(key, self.values[key])

    def size(self, key: str, default: int | None = None) -> int:
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise BindscopeError(f"{self.where}: {key} = {json.dumps(value)} is no size; copy the file again.")
        return value

    def number(self, key: str, default: float) -> float:
        return self.positive(key, self.get(key, default))

    def positive(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise BindscopeError(f"{self.where}: {key} = {json.dumps(value)} must be a number above 0.")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise BindscopeError(f"{self.where}: {key} = {json.dumps(value)} must be true or false.")
        return value

    def rate(self, key: str, default: float) -> float:
        """A dropout rate; it plays no part but in training, where the run's own setting counts."""
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise BindscopeError(f"{self.where}: {key} = {json.dumps(value)} is no dropout rate.")
        return float(value)

    def activation(self, key: str, default: str) -> Activation:
        name = str(self.get(key, default))
        if name not in _ACTIVATIONS:
            raise BindscopeError(
                f"{self.where}: {key} = {name!r} is not supported, only {', '.join(_ACTIVATIONS)}."
                f"{suggest_nearest(name, _ACTIVATIONS)}"
            )
        return _ACTIVATIONS[name]

    def head_size(self, key: str | None, d_model: int, n_heads: int) -> int:
        """The size of a head: as the key says, or an equal part of the model's width."""
        if key is not None and self.get(key) is not None:
            return self.size(key)
        if d_model % n_heads:
            raise BindscopeError(f"{self.where}: a width of {d_model} cannot be shared by {n_heads} heads.")
        return d_model // n_heads

    def kv_heads(self, key: str, n_heads: int, default: int | None) -> int | None:
        """How many heads of keys and values there are; None where every head has its own."""
        n_kv_heads = self.size(key, default)
        if n_heads % n_kv_heads:
            raise BindscopeError(
                f"{self.where}: {key} = {n_kv_heads} does not divide {n_heads} heads into equal groups."
            )
        return None if n_kv_heads == n_heads else n_kv_heads

    def rotation(self, base: str, fraction: str = "partial_rotary_factor", whole: float = 1.0) -> tuple[float, float]:
        """RoPE's base and the fraction of dimensions that rotate, by the names of transformers 4, or in version 5's table."""
        known: dict[str, Any] = {
            "rope_theta": self.get(base, 10000.0),
            "partial_rotary_factor": self.get(fraction, whole),
        }
        for key in ("rope_scaling", "rope_parameters"):
            table = self.get(key, {})
            if not isinstance(table, dict) or set(table) - {"rope_type", "type", *known}:
                self.refuse(key, table)
            if {table.get("rope_type"), table.get("type")} - {None, "default"}:
                self.refuse(key, table)
            known |= {name: value for name, value in table.items() if name in known and value is not None}
        return self.positive(base, known["rope_theta"]), self.positive(fraction, known["partial_rotary_factor"])
