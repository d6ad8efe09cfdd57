"""A trained transformer made wider without changing what it computes: trained weights at a size that nobody trained here.

    >>> model = widen(Run.open(find_run("binding-deep")).checkpoint(), 4)  # d_model 128 → 512, 4 heads of 32 → 8 of 64

Every coordinate of the residual stream, and every neuron, stands there ``times`` times; LayerNorm of a repeated vector is
the repeated LayerNorm, and what reads copies is divided by their number. Heads become twice as wide, with zeros behind queries and
keys and each value twice, and there are ``times``/2 copies of each.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from bindscope.model.transformer import Transformer


def widen(model: Transformer, times: int) -> Transformer:
    """The same function, ``times`` (even) as wide; for causal models with LayerNorm, biases, and no gates or shared heads."""
    old, copies = model.config, times // 2
    config = replace(
        old,
        d_model=old.d_model * times,
        d_mlp=old.d_mlp * times,
        n_heads=old.n_heads * copies,
        d_head=old.d_head * 2,
        rope_fraction=old.rope_dims / (old.d_head * 2),
    )
    wide = Transformer(config).eval()
    for name, parameter in wide.named_parameters():
        module, kind = name.rsplit(".", 1)
        weight = model.get_parameter(name).detach()
        if module.endswith("attention.qkv"):
            weight = _widen_heads(weight, old.n_heads, copies, old.d_head)
        elif module.endswith("attention.out") and kind == "weight":
            weight = _widen_values(weight, old.n_heads, copies, old.d_head)
        if kind == "weight" and weight.dim() == 2 and module != "embed" and not module.endswith("attention.out"):
            weight = weight.repeat(1, times) / times  # reads copies
        if module == "embed":
            weight = weight.repeat(1, times)
        elif not module.endswith(("attention.qkv", "unembed")):
            weight = weight.repeat(times, *[1] * (weight.dim() - 1))  # writes copies
        parameter.data.copy_(weight)
    return wide


def _widen_heads(rows: Tensor, n_heads: int, copies: int, d_head: int) -> Tensor:
    """Rows (q·k·v, head, d_head, …) of the joint projection for heads twice as wide."""
    q, k, v = rows.unflatten(0, (3, n_heads, d_head))
    nothing = torch.zeros_like(q)
    wide = [torch.cat([q * 2**0.5, nothing], 1), torch.cat([k, nothing], 1), torch.cat([v, v], 1)]
    return torch.stack([part.repeat(copies, *[1] * (part.dim() - 1)) for part in wide]).flatten(0, 2)


def _widen_values(columns: Tensor, n_heads: int, copies: int, d_head: int) -> Tensor:
    """Columns (head, d_head) of the output projection, which reads every value 2·copies times."""
    by_head = columns.unflatten(1, (n_heads, d_head)).repeat(1, copies, 2)
    return by_head.flatten(1) / (2 * copies)
