"""Nodes inside attention: the queries, keys and values of every head, attributed and patched exactly.

A node takes what it is in the source run. For queries and keys the gradient at the base run may be misled by softmax, and the
methods of ``slopes`` correct that: with the QK fix the effect is exact wherever everything behind the head is linear.

    >>> guess = attribute_inputs(model, contrast, method="qk")
    >>> compare_with_exact(guess.sel(side="q"), patch_inputs(model, contrast).sel(side="q"))
"""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import SMALLEST_RANGE, label_outcomes, measure_outcomes
from bindscope.interventions.patching import PAIRS_AT_ONCE
from bindscope.interventions.paths import HEAD_INPUTS, head_results
from bindscope.interventions.replacement import replace_heads
from bindscope.interventions.slopes import (
    EMBED,
    Method,
    check_method,
    drop_gradients,
    drops_gradients,
    fixes_softmax,
    margin,
    measure_slopes,
    recompute_heads,
)
from bindscope.model.run import Trace, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

DIMS = ("side", "layer", "head")


def attribute_inputs(model: Transformer, contrast: Contrast, method: Method = "gradient") -> xr.Dataset:
    """``logit_difference`` over (side, layer, head, pair), approximately: each head's whole q, k or v from the source."""
    check_method(method)
    parts = [
        _attribute_part(model, contrast.take(slice(start, start + PAIRS_AT_ONCE)), method)
        for start in range(0, len(contrast), PAIRS_AT_ONCE)
    ]
    found = {"logit_difference": np.concatenate(parts, axis=3)}
    return label_outcomes(found, DIMS, _coords(model), {"method": method, "n_pairs": len(contrast)})


@torch.no_grad()
def patch_inputs(model: Transformer, contrast: Contrast) -> xr.Dataset:
    """The same exactly, with every metric; a head's identity-scaling term counts as part of what each side reads."""
    base_logits, source_logits = (run(model, rows).logits[:, contrast.at] for rows in (contrast.base, contrast.source))
    streams = [_read_entering(model, tokens) for tokens in (contrast.base, contrast.source)]
    n_kept = contrast.at + 1 if model.config.causal else contrast.base.shape[1]
    outcomes: dict[str, list[np.ndarray]] = {}
    for side in HEAD_INPUTS:

        def replacement(layer: int, rows: Tensor, side: str = side) -> Tensor:
            block = model.layers[layer]
            base, source = (block.norm1(trace[Site("resid_pre", layer)][rows, :n_kept]) for trace in streams)
            sides = [(source if name == side else base)[:, :, None] for name in HEAD_INPUTS]
            return head_results(block.attention, *sides)

        patched = replace_heads(model, contrast.base, contrast.at, replacement)  # [layer, head, pair, output]
        cells = [[measure_outcomes(each, base_logits, source_logits, contrast) for each in layer] for layer in patched]
        for name in cells[0][0]:
            outcomes.setdefault(name, []).append(np.array([[cell[name] for cell in layer] for layer in cells]))
    stacked = {name: np.stack(values) for name, values in outcomes.items()}
    return label_outcomes(stacked, DIMS, _coords(model), {"n_pairs": len(contrast)})


def _attribute_part(model: Transformer, contrast: Contrast, method: Method) -> np.ndarray:
    """[side, layer, head, pair]."""
    with torch.no_grad():
        base, source = (
            run(model, tokens, _entering(model, also=[EMBED])) for tokens in (contrast.base, contrast.source)
        )
    ends = [margin(trace.logits[:, contrast.at], contrast) for trace in (base, source)]
    span = ends[1] - ends[0]  # [pair]
    scale = torch.where(span.abs() < SMALLEST_RANGE, torch.nan, 1 / span)

    def attribute(dropped: int | None) -> Tensor:
        at = measure_slopes(model, contrast, source[EMBED], 0.0, dropped)
        layers = []
        for layer in range(model.config.n_layers):
            entering, norm = Site("resid_pre", layer), model.layers[layer].norm1
            here, there = (norm(trace[entering]).detach() for trace in (base, source))
            layers.append(_attribute_layer(model, layer, here, there, at.outputs[Site("attn_out", layer)], method))
        return torch.stack(layers)  # [layer, side, head, pair]

    effects = attribute(None)
    if drops_gradients(method):
        effects = drop_gradients(effects, attribute, range(model.config.n_layers))
    return (effects * scale).transpose(0, 1).numpy()


def _attribute_layer(
    model: Transformer, layer: int, base: Tensor, source: Tensor, above: Tensor, method: Method
) -> Tensor:
    """[side, head, pair] of one layer, whose sides read ``base`` or ``source`` [pair, position, d_model], normalised."""
    attention, shape = model.layers[layer].attention, (1, 1, model.config.n_heads, 1)
    with torch.enable_grad():
        sides = [base[:, :, None].repeat(shape).requires_grad_() for _ in HEAD_INPUTS]
        results = head_results(attention, *sides)
        slopes = torch.autograd.grad(results, sides, above[:, :, None].expand_as(results))
    effects = {
        name: torch.einsum("bphd,bpd->hb", slope, source - base)
        for name, slope in zip(HEAD_INPUTS, slopes, strict=True)
    }
    if fixes_softmax(method):
        effects |= {side: recompute_heads(model, layer, side, base, source, above) for side in ("q", "k")}
    return torch.stack([to_host(effects[name]) for name in HEAD_INPUTS])


def _read_entering(model: Transformer, tokens: Tensor) -> Trace:
    return run(model, tokens, _entering(model))


def _entering(model: Transformer, also: list[Site] | None = None) -> list[Site]:
    return [*(also or []), *(Site("resid_pre", layer) for layer in range(model.config.n_layers))]


def _coords(model: Transformer) -> dict[str, object]:
    config = model.config
    return {"side": list(HEAD_INPUTS), "layer": list(range(config.n_layers)), "head": np.arange(config.n_heads)}
