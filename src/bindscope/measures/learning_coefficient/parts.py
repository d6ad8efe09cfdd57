"""Which weights belong to a part of a model, by name: ``L2``, ``L2.H1``, ``L2.attention``, ``mlp``, ``embedding`` …"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.model.config import ModelConfig
from bindscope.model.transformer import Transformer

WHOLE = "all"
KINDS: Mapping[str, str] = {  # of parameters, in all layers → what their names contain
    "attention": r"\.attention\.",
    "mlp": r"\.mlp\.",
    "norm": r"norm",
    "embedding": r"^(embed|pos_embed)",
    "unembedding": r"^unembed",
}


def name_parts(config: ModelConfig) -> list[str]:
    """Every part that weights can be restricted to: kinds of parameters, layers, their attention and MLP, and heads."""
    layers = range(config.n_layers)
    inside = [f"L{layer}.{kind}" for layer in layers for kind in ("attention", "mlp")]
    heads = [f"L{layer}.H{head}" for layer in layers for head in range(config.n_heads)]
    return [WHOLE, *KINDS, *(f"L{layer}" for layer in layers), *inside, *heads]


def mark_part(model: nn.Module, part: str) -> Tensor:
    """Which entries of all parameters, flattened and joined in order, belong to a part: [parameter] bool.

    >>> int(mark_part(model, "L2.H1").sum())   # its queries, keys, values and outputs
    8320
    """
    if part == WHOLE:
        marks = {name: torch.ones(p.shape, dtype=torch.bool) for name, p in model.named_parameters()}
    elif not isinstance(model, Transformer):
        raise BindscopeError(f"part '{part}': this model has no layers with heads; use '{WHOLE}'.")
    else:
        marks = _mark(model, part)
    joined = torch.cat([marks[name].flatten() for name, _ in model.named_parameters()])
    if not joined.any():
        raise BindscopeError(f"part '{part}': this model has no such weights.")
    return joined


def _mark(model: Transformer, part: str) -> dict[str, Tensor]:
    if part not in (known := name_parts(model.config)):
        raise BindscopeError(f"part '{part}': this model has none of that name.{suggest_nearest(part, known)}")
    if head := re.fullmatch(r"L(\d+)\.H(\d+)", part):
        return {name: marks for name, marks in _mark_head(model, int(head[1]), int(head[2]))}
    layer, _, kind = part.rpartition(".")
    if re.fullmatch(r"L\d+", kind):
        layer, kind = kind, ""
    prefix = rf"^blocks\.{layer[1:]}\." if layer else ""
    return {
        name: torch.full(
            parameter.shape, bool(re.search(prefix, name)) and (not kind or bool(re.search(KINDS[kind], name)))
        )
        for name, parameter in model.named_parameters()
    }


def _mark_head(model: Transformer, layer: int, head: int) -> Iterator[tuple[str, Tensor]]:
    """A head's rows of the joint projection (those of its group, where keys and values are shared), its columns of the
    output map, and its own two identity scalings."""
    config, prefix = model.config, f"blocks.{layer}.attention."
    rows, first = [], 0
    for n_rows in config.qkv_rows:
        own = head * (n_rows // config.d_head) // config.n_heads
        rows.append(slice(first + own * config.d_head, first + (own + 1) * config.d_head))
        first += n_rows
    for name, parameter in model.named_parameters():
        marks = torch.zeros(parameter.shape, dtype=torch.bool)
        if name in (f"{prefix}qkv.weight", f"{prefix}qkv.bias"):
            for each in rows:
                marks[each] = True
        elif name == f"{prefix}out.weight":
            marks[:, head * config.d_head : (head + 1) * config.d_head] = True
        elif name in (f"{prefix}identity_a", f"{prefix}identity_b"):
            marks[head] = True
        yield name, marks
