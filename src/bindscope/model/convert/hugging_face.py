"""Our models as Hugging Face directories: ``config.json``, ``model.safetensors`` and, where it can be had, a tokenizer.

A model with rotary positions becomes a GPT-NeoX, one with learned positions a GPT-2. Both
always have biases, which are zero where ours has none. Nothing of Hugging Face is needed to write the directory:

>>> export_hugging_face(model, "exported", vocabulary=task.vocabulary)
>>> transformers.AutoModelForCausalLM.from_pretrained("exported")
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.convert.tokenizer import tokenizer_files, why_no_tokenizer
from bindscope.model.transformer import Block, Transformer
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
    model that neither GPT-NeoX nor GPT-2 can express is refused. ``card`` is written beside it as README.md.
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
    rotary = model.config.positions == "rope"
    description = _neox_config(model.config, context) if rotary else _gpt2_config(model.config, context)
    weights = _neox_weights(model) if rotary else _gpt2_weights(model, context)
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
    """The first reason why neither format can hold a model of this shape, or None."""
    inner, n_mlp = config.n_heads * config.d_head, len(config.layers_with_mlp)
    reasons = {
        "its attention is bidirectional, and both formats are causal": not config.causal,
        "it uses identity scaling, which neither format has": config.identity_qk or config.identity_vo,
        "it has no LayerNorm, and both formats need it": config.norm != "layer",
        "its MLPs are gated, and both formats have plain ones": config.gated,
        "its heads share keys and values, and those of both formats do not": config.kv_heads != config.n_heads,
        "its layers are parallel and its positions learned, and GPT-2's layers are not parallel": (
            config.parallel and config.positions != "rope"
        ),
        "it has layers without an MLP, and both formats have one in each": n_mlp < config.n_layers,
        f"its activation is {config.activation}, which neither format has": config.activation not in _ACTIVATIONS,
        f"its heads span {inner} dimensions (n_heads · d_head) and not d_model = {config.d_model}": (
            inner != config.d_model
        ),
        f"it has {config.outputs} outputs for {config.d_vocab} tokens, and both formats have one each": (
            config.outputs != config.d_vocab
        ),
        "its positions are fixed, and GPT-2's are learned": config.positions == "normal",
        "it has no positions, and both formats have some": config.positions == "none",
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


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


def _shared_config(config: ModelConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.d_vocab,
        "tie_word_embeddings": config.tied,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }


def _neox_weights(model: Transformer) -> dict[str, Tensor]:
    weights = {"gpt_neox.embed_in.weight": model.W_E} | _norm(model.norm, "gpt_neox.final_layer_norm")
    for layer, block in enumerate(model.layers):
        prefix = f"gpt_neox.layers.{layer}"
        assert block.mlp is not None
        weights |= _norm(block.norm1, f"{prefix}.input_layernorm")
        weights |= _neox_qkv(block, f"{prefix}.attention.query_key_value")
        weights |= _linear(block.attention.out, f"{prefix}.attention.dense")
        weights |= _norm(block.norm2, f"{prefix}.post_attention_layernorm")
        weights |= _linear(block.mlp.up, f"{prefix}.mlp.dense_h_to_4h")
        weights |= _linear(block.mlp.down, f"{prefix}.mlp.dense_4h_to_h")
    if model.unembed is not None:
        weights["embed_out.weight"] = model.unembed.weight
    return weights


def _neox_qkv(block: Block, name: str) -> dict[str, Tensor]:
    """Rows are ordered (head, q·k·v, d_head) there and (q·k·v, head, d_head) here."""
    config = block.attention.config
    weight, bias = _linear(block.attention.qkv, name).values()
    shape = (3, config.n_heads, config.d_head)
    return {
        f"{name}.weight": weight.unflatten(0, shape).transpose(0, 1).flatten(0, 2),
        f"{name}.bias": bias.unflatten(0, shape).transpose(0, 1).flatten(),
    }


def _gpt2_weights(model: Transformer, context: int) -> dict[str, Tensor]:
    """Its linear maps multiply from the right, so each weight is transposed."""
    weights = {"transformer.wte.weight": model.W_E, "transformer.wpe.weight": model.pos_embed[:context]}
    weights |= _norm(model.norm, "transformer.ln_f")
    for layer, block in enumerate(model.layers):
        prefix = f"transformer.h.{layer}"
        assert block.mlp is not None
        weights |= _norm(block.norm1, f"{prefix}.ln_1") | _norm(block.norm2, f"{prefix}.ln_2")
        linears = {
            "attn.c_attn": block.attention.qkv,
            "attn.c_proj": block.attention.out,
            "mlp.c_fc": block.mlp.up,
            "mlp.c_proj": block.mlp.down,
        }
        for name, linear in linears.items():
            weight, bias = _linear(linear, name).values()
            weights |= {f"{prefix}.{name}.weight": weight.T, f"{prefix}.{name}.bias": bias}
    if model.unembed is not None:
        weights["lm_head.weight"] = model.unembed.weight
    return weights


def _linear(linear: nn.Linear, name: str) -> dict[str, Tensor]:
    bias = torch.zeros(linear.out_features) if linear.bias is None else linear.bias
    return {f"{name}.weight": linear.weight, f"{name}.bias": bias}


def _norm(norm: nn.Module | None, name: str) -> dict[str, Tensor]:
    assert isinstance(norm, nn.LayerNorm)
    return {f"{name}.weight": norm.weight, f"{name}.bias": norm.bias}


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
