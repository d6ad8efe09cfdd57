"""Our models as Hugging Face directories: ``config.json``, ``model.safetensors`` and, where it can be had, a tokenizer.

A model with RMSNorm and gated MLPs becomes a Llama, another one with rotary positions a GPT-NeoX, one with learned
positions a GPT-2. The last two always have biases, which are zero where ours has none. Nothing of Hugging Face is needed
to write the directory:

>>> export_hugging_face(model, "exported", vocabulary=task.vocabulary)
>>> transformers.AutoModelForCausalLM.from_pretrained("exported")
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert.naming import rename_for
from bindscope.model.convert.tokenizer import tokenizer_files, why_no_tokenizer
from bindscope.model.transformer import Transformer
from bindscope.tasks.vocabulary import Vocabulary

_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu", "silu": "silu"}


@dataclass(frozen=True)
class HuggingFaceExport:
    """What was written, and what a reader should know of it."""

    directory: Path
    architecture: str
    notes: tuple[str, ...]


def export_hugging_face(
    model: Transformer,
    directory: str | Path,
    vocabulary: Vocabulary | None = None,
    context: int | None = None,
    card: str = "",
) -> HuggingFaceExport:
    """Write ``model`` to a new or empty directory that ``transformers`` can load; all of it or nothing.

    ``context`` is the longest sequence that the directory promises to take (default: what the model was made for). A
    model that no format can express is refused. ``card`` is written beside it as README.md.
    """
    directory = Path(directory)
    reason = why_not_hugging_face(model.config)
    if reason:
        raise BindscopeError(f"this model cannot be written for Hugging Face: {reason}.")
    context = _checked_context(model.config, context)
    if vocabulary is not None and len(vocabulary) != model.config.d_vocab:
        raise BindscopeError(
            f"a vocabulary of {len(vocabulary)} tokens does not fit {model.config.d_vocab} embeddings."
        )
    architecture = _choose_architecture(model.config)
    description = _DESCRIBED[architecture](model.config, context)
    state = model.state_dict()
    if "pos_embed" in state:
        state["pos_embed"] = state["pos_embed"][:context]
    weights = rename_for(architecture, state, model.config)
    files = {"config.json": _to_json(description), "model.safetensors": _to_safetensors(weights)}
    note = why_no_tokenizer(vocabulary)
    if vocabulary is not None and note is None:
        files |= {name: _to_json(content) for name, content in tokenizer_files(vocabulary, context).items()}
    if card:
        files["README.md"] = card.encode()
    _write_directory(directory, files)
    return HuggingFaceExport(directory, description["architectures"][0], () if note is None else (note,))


def refuse_to_overwrite(directory: Path) -> None:
    """Refuse to write to a directory that holds anything."""
    if directory.is_file() or (directory.is_dir() and any(directory.iterdir())):
        raise BindscopeError(f"{directory}: exists already; name a directory that does not, or is empty.")


def why_not_hugging_face(config: ModelConfig) -> str | None:
    """The first reason why no format can hold a model of this shape, or None."""
    n_mlp = len(config.layers_with_mlp)
    reasons = {
        "its attention is bidirectional, and the formats are causal": not config.causal,
        "it uses identity scaling, which no format has": config.identity_qk or config.identity_vo,
        "it has no norm, and the formats need one": config.norm == "none",
        "it has layers without an MLP, and the formats have one in each": n_mlp < config.n_layers,
        f"its activation is {config.activation}, which no format has": config.activation not in _ACTIVATIONS,
        f"it has {config.outputs} outputs for {config.d_vocab} tokens, and the formats have one each": (
            config.outputs != config.d_vocab
        ),
        "its positions are fixed, and GPT-2's are learned": config.positions == "normal",
        "it has no positions, and the formats have some": config.positions == "none",
    }
    reasons |= _not_llama(config) if _choose_architecture(config) == "llama" else _not_plain(config)
    return next((reason for reason, applies in reasons.items() if applies), None)


def _choose_architecture(config: ModelConfig) -> str:
    """The format that a shape is nearest to: whatever only a Llama has makes it one."""
    if config.norm == "rms" or config.gated or config.kv_heads != config.n_heads:
        return "llama"
    return "gpt_neox" if config.positions == "rope" else "gpt2"


def _not_llama(config: ModelConfig) -> dict[str, bool]:
    has = "it has RMSNorm, gated MLPs or heads that share keys and values, as a Llama, but"
    return {
        f"{has} LayerNorm": config.norm != "rms",
        f"{has} plain MLPs": not config.gated,
        f"{has} parallel layers": config.parallel,
        f"{has} learned positions": config.positions != "rope",
        f"{has} only a part of each head's dimensions rotates": config.rope_fraction != 1,
    }


def _not_plain(config: ModelConfig) -> dict[str, bool]:
    inner = config.n_heads * config.d_head
    return {
        "its layers are parallel and its positions learned, and GPT-2's layers are not parallel": (
            config.parallel and config.positions != "rope"
        ),
        f"its heads span {inner} dimensions (n_heads · d_head) and not d_model = {config.d_model}": (
            inner != config.d_model
        ),
    }


def _checked_context(config: ModelConfig, context: int | None) -> int:
    context = config.n_positions if context is None else context
    if context < 1:
        raise BindscopeError(f"context: must be at least 1, got {context}.")
    if config.positions == "learned" and context > config.n_positions:
        raise BindscopeError(
            f"context: {context} is more than the {config.n_positions} positions the model has learned."
        )
    return context


def _neox_config(config: ModelConfig, context: int) -> dict[str, Any]:
    """Rotation is told twice: by the names of transformers 4, and by the table that version 5 prefers."""
    rotation = {"rope_type": "default", "rope_theta": config.rope_base, "partial_rotary_factor": config.rope_fraction}
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "model_type": "gpt_neox",
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_mlp,
        "max_position_embeddings": context,
        "use_parallel_residual": config.parallel,
        "rotary_pct": config.rope_fraction,
        "rotary_emb_base": config.rope_base,
        "rope_parameters": rotation,
        "hidden_act": _ACTIVATIONS[config.activation],
        "layer_norm_eps": config.norm_epsilon,
        "attention_bias": True,
        "attention_dropout": config.dropout,
        "hidden_dropout": config.dropout,
        **_shared_config(config),
    }


def _gpt2_config(config: ModelConfig, context: int) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": config.n_heads,
        "n_inner": config.d_mlp,
        "n_positions": context,
        "n_ctx": context,
        "activation_function": _ACTIVATIONS[config.activation],
        "layer_norm_epsilon": config.norm_epsilon,
        "attn_pdrop": config.dropout,
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        **_shared_config(config),
    }


def _llama_config(config: ModelConfig, context: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.d_head,
        "intermediate_size": config.d_mlp,
        "max_position_embeddings": context,
        "rope_theta": config.rope_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rope_base},
        "hidden_act": _ACTIVATIONS[config.activation],
        "rms_norm_eps": config.norm_epsilon,
        "attention_bias": config.bias,
        "mlp_bias": config.bias,
        "attention_dropout": config.dropout,
        **_shared_config(config),
    }


def _shared_config(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.d_vocab,
        "tie_word_embeddings": config.tied,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }


_DESCRIBED: dict[str, Callable[[ModelConfig, int], dict[str, Any]]] = {
    "gpt2": _gpt2_config,
    "gpt_neox": _neox_config,
    "llama": _llama_config,
}


def _to_json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def _to_safetensors(weights: dict[str, Tensor]) -> bytes:
    whole = {name: value.detach().float().cpu().contiguous() for name, value in weights.items()}
    return safetensors.torch.save(whole, {"format": "pt"})


def _write_directory(directory: Path, files: dict[str, bytes]) -> None:
    """Fill a hidden directory beside the wanted one, then give it its name."""
    refuse_to_overwrite(directory)
    partial = None
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
        for name, content in files.items():
            (partial / name).write_bytes(content)
        partial.chmod(0o777 & ~_umask())
        partial.rename(directory)
    except OSError as problem:
        raise BindscopeError(f"{directory}: cannot be written: {problem.strerror}; nothing was left there.") from None
    finally:
        if partial is not None and partial.exists():
            shutil.rmtree(partial, ignore_errors=True)


def _umask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
