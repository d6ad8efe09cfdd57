"""Slopes of the answer at a run between base and source, and the two corrections of AtP* (Kramár et al. 2024, arXiv 2403.00745).

Gradients mislead in two ways. Where softmax is saturated, a query or a key looks as if it did nothing: the *QK fix* computes
the head again with it changed and follows a straight line only behind the head. And where a direct effect and one through
a later layer cancel at the base run, both look like nothing: *GradDrop* lets no gradient through one layer after another
and takes the mean of the absolute effects, over the layers that are not the receiver's own.

    >>> at_base = measure_slopes(model, contrast, source_embed, point=0.0)
    >>> at_base.outputs[Site("attn_out", 2)]     # ∂ metric / ∂ what the heads of layer 2 add, [pair, position, d_model]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.answers import Edits
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.paths import HEAD_INPUTS, head_results
from bindscope.model.run import run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

EMBED, FINAL = Site("embed"), Site("final")
Method = Literal["gradient", "qk", "graddrop", "atp-star"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True, eq=False)
class Slopes:
    """∂ metric / ∂ each layer's attention and MLP and the last stream, and the streams that they read; detached."""

    outputs: dict[Site, Tensor]
    streams: dict[Site, Tensor]


def fixes_softmax(method: Method) -> bool:
    return method in ("qk", "atp-star")


def drops_gradients(method: Method) -> bool:
    return method in ("graddrop", "atp-star")


def check_method(method: str) -> None:
    if method not in METHODS:
        raise BindscopeError(f"method '{method}': use one of {', '.join(METHODS)}.")


def measure_slopes(
    model: Transformer, contrast: Contrast, source_embed: Tensor, point: float, dropped: int | None = None
) -> Slopes:
    """At the run whose embedding is ``point`` of the way from base to source, with no gradient through layer ``dropped``."""
    layers = range(model.config.n_layers)
    outputs = [Site("attn_out", layer) for layer in layers]
    outputs += [Site("mlp_out", layer) for layer in model.config.layers_with_mlp]
    outputs.append(Site("resid_post", layers[-1]))
    nudges: dict[Site, Tensor] = {}

    def nudge(site: Site, old: Tensor) -> Tensor:
        nudges[site] = torch.zeros_like(old, requires_grad=True)
        still = site.layer == dropped and site.name != "resid_post"
        return (old.detach() if still else old) + nudges[site]

    write: Edits = {EMBED: lambda old: old + point * (source_embed - old)}
    write |= {site: partial(nudge, site) for site in outputs}
    read = {Site("resid_pre", layer) for layer in layers}
    read |= {read_by_mlp(model, layer) for layer in model.config.layers_with_mlp}
    with torch.enable_grad():
        trace = run(model, contrast.base, sorted(read, key=str), write)
        metric = margin(trace.logits[:, contrast.at], contrast).sum()
        found = torch.autograd.grad(metric, [nudges[site] for site in outputs])
    slopes = dict(zip([*outputs[:-1], FINAL], found, strict=True))
    return Slopes(slopes, {site: trace[site].detach() for site in read})


def slopes_of_heads(model: Transformer, layer: int, at: Slopes) -> dict[Site, Tensor]:
    """Of what each side of each head reads, [pair, position, d_model]."""
    block, above = model.layers[layer], at.outputs[Site("attn_out", layer)]
    x = at.streams[Site("resid_pre", layer)]
    with torch.enable_grad():
        sides = [x[:, :, None].repeat(1, 1, model.config.n_heads, 1).requires_grad_() for _ in HEAD_INPUTS]
        results = head_results(block.attention, *(block.norm1(side) for side in sides))
        slopes = torch.autograd.grad(results, sides, above[:, :, None].expand_as(results))
    return {
        Site(name, layer, head): slope[:, :, head]
        for name, slope in zip(HEAD_INPUTS, slopes, strict=True)
        for head in range(model.config.n_heads)
    }


def slope_of_mlp(model: Transformer, layer: int, at: Slopes) -> Tensor:
    """Of what the MLP reads, [pair, position, d_model]."""
    block = model.layers[layer]
    assert block.mlp is not None
    assert block.norm2 is not None
    with torch.enable_grad():
        x = at.streams[read_by_mlp(model, layer)].clone().requires_grad_()
        (slope,) = torch.autograd.grad(block.mlp(block.norm2(x)), x, at.outputs[Site("mlp_out", layer)])
    return slope


@torch.no_grad()
def recompute_heads(model: Transformer, layer: int, side: str, base: Tensor, changed: Tensor, above: Tensor) -> Tensor:
    """The QK fix: what the heads of a layer add to the metric, [head, pair], when one side reads ``changed`` instead of
    ``base`` [pair, position, d_model], both normalised: softmax exactly, the way behind the head along a straight line."""
    attention = model.layers[layer].attention
    sides = [(changed if name == side else base)[:, :, None] for name in HEAD_INPUTS]
    before = head_results(attention, *[base[:, :, None]] * len(HEAD_INPUTS))
    return torch.einsum("bphd,bpd->hb", head_results(attention, *sides) - before, above)


def drop_gradients(plain: Tensor, without: Callable[[int], Tensor], own_layers: Sequence[int | None]) -> Tensor:
    """GradDrop: mean absolute effects [node, …] over dropped layers that are not a node's own, with the sign of ``plain``.

    A model of one layer leaves its own nodes nothing to drop; they stay ``plain``. ``own_layers`` has an entry a node.
    """
    layers = sorted({layer for layer in own_layers if layer is not None})
    total, count = torch.zeros_like(plain), torch.zeros(len(plain))
    for dropped in layers:
        other = torch.tensor([layer != dropped for layer in own_layers])
        total[other] += without(dropped)[other].abs()
        count += other
    shape = (-1, *[1] * (plain.ndim - 1))
    mean = total / count.clamp(min=1).view(shape)
    return torch.where(count.view(shape) > 0, torch.where(plain < 0, -mean, mean), plain)


def read_by_mlp(model: Transformer, layer: int) -> Site:
    return Site("resid_pre" if model.config.parallel else "resid_mid", layer)


def margin(logits: Tensor, contrast: Contrast) -> Tensor:
    """The source's answer over the base's, [pair]."""
    logits, pairs = to_host(logits), torch.arange(len(contrast))
    return logits[pairs, contrast.source_answers] - logits[pairs, contrast.base_answers]
