"""Edge attribution: what every part tells every later one directly, all edges from a few gradients, approximately.

An edge goes from a *sender* (``embed``, a head's output ``L1.H0.result``, an MLP's ``L2.mlp_out``) to a *receiver* (one
input of a head, ``L3.H1.q``, ``.k`` or ``.v``; an MLP, ``L3.mlp_out``; the logits, ``final``). Its exact effect is what
path patching measures (``paths.patch_path``): the receiver alone hears the sender's value of the source run. Along a
straight line the effect is

    (source output − base output of the sender) · ∂ metric / ∂ what the receiver reads

(edge attribution patching, Syed et al. 2023). At the base run alone the slope may be zero where softmax is saturated, so
it is averaged over ``n_points`` runs whose embeddings lie between base and source (integrated gradients, Hanna et al.
2024); one point at the base run is the plain method. How near that comes is told by ``check_edges`` on edges that are
patched exactly.

    >>> guess = attribute_edges(model, contrast, n_points=8)
    >>> check_edges(model, contrast, guess, n_strongest=20, n_random=20, rng=rng)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.answers import Edits
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import SMALLEST_RANGE
from bindscope.interventions.patching import PAIRS_AT_ONCE
from bindscope.interventions.paths import HEAD_INPUTS, head_results, moment, patch_path
from bindscope.model.run import Trace, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

EMBED, FINAL = Site("embed"), Site("final")
ANYWHERE = "anywhere"


@dataclass(frozen=True)
class Graph:
    """The parts of a model that speak and hear, in the order in which they are computed."""

    senders: tuple[Site, ...]
    receivers: tuple[Site, ...]
    moments: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, model: Transformer) -> Graph:
        senders, receivers = [EMBED], []
        for layer in range(model.config.n_layers):
            heads = range(model.config.n_heads)
            receivers += [Site(side, layer, head) for side in HEAD_INPUTS for head in heads]
            senders += [Site("result", layer, head) for head in heads]
            if layer in model.config.layers_with_mlp:
                receivers.append(Site("mlp_out", layer))
                senders.append(Site("mlp_out", layer))
        receivers.append(FINAL)
        when = tuple(tuple(moment(site, model) for site in sites) for sites in (senders, receivers))
        return cls(tuple(senders), tuple(receivers), when)  # type: ignore[arg-type]

    @cached_property
    def edges(self) -> np.ndarray:
        """Marks [sender, receiver] of the edges there are: the receiver is computed after the sender."""
        sent, received = (np.array(moments) for moments in self.moments)
        return np.asarray(sent[:, None] < received)

    def find_senders(self, layer: int, name: str) -> list[int]:
        """Which senders are this layer's heads (``result``) or its MLP (``mlp_out``)."""
        return [i for i, site in enumerate(self.senders) if (site.layer, site.name) == (layer, name)]

    def find_receivers(self, layer: int | None, name: str) -> list[int]:
        """Which receivers are one side of this layer's heads, its MLP, or the logits."""
        return [i for i, site in enumerate(self.receivers) if (site.layer, site.name) == (layer, name)]


def attribute_edges(
    model: Transformer,
    contrast: Contrast,
    *,
    n_points: int = 8,
    positions: Mapping[str, np.ndarray] | None = None,
) -> xr.Dataset:
    """``effect`` over (sender, receiver, pair): how far the answer would move from the base's to the source's, as
    ``logit_difference`` of the exact patch; NaN where there is no such edge. ``effect_at``, over (sender, receiver,
    position): its mean at each of the named ``positions`` and anywhere.
    """
    if n_points < 1:
        raise BindscopeError(f"n_points: at least one run is needed, got {n_points}.")
    graph, named = Graph.of(model), positions or {}
    parts = []
    for start in range(0, len(contrast), PAIRS_AT_ONCE):
        rows = slice(start, start + PAIRS_AT_ONCE)
        columns = [column[rows] for column in named.values()]
        parts.append(_attribute_part(model, graph, contrast.take(rows), n_points, columns))
    effects = np.concatenate(parts, axis=3)  # [position, sender, receiver, pair], anywhere first
    effects[:, ~graph.edges] = np.nan
    known = np.isfinite(effects)
    means = np.where(known, effects, 0).sum(3) / np.where(known.any(3), known.sum(3), np.nan)
    coords = {
        "sender": [str(site) for site in graph.senders],
        "receiver": [str(site) for site in graph.receivers],
        "position": [ANYWHERE, *named],
    }
    dataset = xr.Dataset(
        {
            "effect": (("sender", "receiver", "pair"), effects[0]),
            "effect_at": (("sender", "receiver", "position"), np.moveaxis(means, 0, 2)),
        },
        coords,
    )
    return dataset.assign_attrs(n_points=n_points, n_pairs=len(contrast))


@dataclass(frozen=True)
class Checked:
    """Attributed edges beside the same edges patched exactly, means over pairs."""

    edges: tuple[tuple[str, str], ...]
    attributed: tuple[float, ...]
    exact: tuple[float, ...]
    correlation: float  # NaN where one of the two is constant
    mean_absolute_error: float
    largest_error: float
    sign_agreement: float  # over edges whose exact effect is above a hundredth; NaN where none is


def check_edges(
    model: Transformer,
    contrast: Contrast,
    attributed: xr.Dataset,
    *,
    n_strongest: int,
    n_random: int,
    rng: np.random.Generator,
) -> Checked:
    """Patch the strongest edges and some others exactly, and say how far the attribution is off."""
    means = attributed.effect.mean("pair").values  # [sender, receiver]
    chosen = choose_edges(means, n_strongest, n_random, rng)
    exact = []
    for sender, receiver in chosen:
        ends = (str(attributed[name].values[index]) for name, index in (("sender", sender), ("receiver", receiver)))
        exact.append(float(patch_path(model, contrast, *ends).logit_difference.mean()))
    guess, true = np.array([means[edge] for edge in chosen]), np.array(exact)
    clear = np.abs(true) > 0.01
    varied = len(true) > 1 and np.ptp(guess) > 0 and np.ptp(true) > 0
    names = tuple((str(attributed.sender.values[s]), str(attributed.receiver.values[r])) for s, r in chosen)
    return Checked(
        names,
        tuple(guess.tolist()),
        tuple(true.tolist()),
        float(np.corrcoef(guess, true)[0, 1]) if varied else float("nan"),
        float(np.abs(guess - true).mean()),
        float(np.abs(guess - true).max()),
        float((np.sign(guess) == np.sign(true))[clear].mean()) if clear.any() else float("nan"),
    )


def choose_edges(means: np.ndarray, n_strongest: int, n_random: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """The edges with the largest effects, then others at random; each (sender, receiver)."""
    known = np.argwhere(np.isfinite(means))
    order = np.argsort(-np.abs(means[tuple(known.T)]), kind="stable")
    others = order[n_strongest:]
    drawn = rng.choice(others, size=min(n_random, len(others)), replace=False)
    return [tuple(known[index].tolist()) for index in (*order[:n_strongest], *drawn)]


def read_senders(trace: Trace, graph: Graph) -> Tensor:
    """What every sender put into the residual stream, [sender, pair, position, d_model]."""
    return torch.stack([to_host(trace[site]) for site in graph.senders])


def _attribute_part(
    model: Transformer, graph: Graph, contrast: Contrast, n_points: int, columns: Sequence[np.ndarray]
) -> np.ndarray:
    """[position, sender, receiver, pair]: anywhere, then at each of the named columns (−1: the pair has none)."""
    with torch.no_grad():
        base, source = (run(model, tokens, graph.senders) for tokens in (contrast.base, contrast.source))
    differences = read_senders(source, graph) - read_senders(base, graph)
    ends = [_margin(trace.logits[:, contrast.at], contrast) for trace in (base, source)]
    span = ends[1] - ends[0]  # [pair]
    scale = torch.where(span.abs() < SMALLEST_RANGE, torch.nan, 1 / span)
    points = [0.0] if n_points == 1 else [(index + 0.5) / n_points for index in range(n_points)]
    slopes: Tensor | None = None
    for point in points:
        found = _slopes(model, graph, contrast, source[EMBED], point) / len(points)
        slopes = found if slopes is None else slopes + found
    assert slopes is not None
    at_columns = (
        torch.einsum("sbpd,rbpd->srbp", differences, slopes) * scale[:, None]
    )  # [sender, receiver, pair, position]
    parts = [at_columns.sum(-1)]
    pairs = torch.arange(len(contrast))
    for column in columns:
        there = at_columns[:, :, pairs, torch.from_numpy(np.maximum(column, 0))]
        parts.append(torch.where(torch.from_numpy(column >= 0), there, torch.nan))
    return torch.stack(parts).numpy()


def _slopes(model: Transformer, graph: Graph, contrast: Contrast, source_embed: Tensor, point: float) -> Tensor:
    """∂ metric / ∂ what each receiver reads, [receiver, pair, position, d_model], at a run between base and source."""
    layers = range(model.config.n_layers)
    outputs = [Site("attn_out", layer) for layer in layers]
    outputs += [Site("mlp_out", layer) for layer in model.config.layers_with_mlp]
    outputs.append(Site("resid_post", layers[-1]))
    nudges: dict[Site, Tensor] = {}

    def nudge(site: Site, old: Tensor) -> Tensor:
        nudges[site] = torch.zeros_like(old, requires_grad=True)
        return old + nudges[site]

    write: Edits = {EMBED: lambda old: old + point * (source_embed - old)}
    write |= {site: partial(nudge, site) for site in outputs}
    entering = [Site("resid_pre", layer) for layer in layers]
    between = {layer: _read_by_mlp(model, layer) for layer in model.config.layers_with_mlp}
    with torch.enable_grad():
        trace = run(model, contrast.base, [*entering, *set(between.values()) - set(entering)], write)
        margin = _margin(trace.logits[:, contrast.at], contrast).sum()
        found = dict(zip(outputs, torch.autograd.grad(margin, [nudges[site] for site in outputs]), strict=True))
    slopes: dict[Site, Tensor] = {FINAL: found[outputs[-1]]}
    for layer in layers:
        slopes |= _slopes_of_heads(model, layer, trace[entering[layer]].detach(), found[Site("attn_out", layer)])
        if layer in between:
            site = Site("mlp_out", layer)
            slopes[site] = _slope_of_mlp(model, layer, trace[between[layer]].detach(), found[site])
    return torch.stack([to_host(slopes[site]) for site in graph.receivers])


def _slopes_of_heads(model: Transformer, layer: int, x: Tensor, above: Tensor) -> dict[Site, Tensor]:
    """Of each side of each head, from the slope ``above`` [pair, position, d_model] of what the layer's heads add."""
    block = model.layers[layer]
    with torch.enable_grad():
        sides = [x[:, :, None].repeat(1, 1, model.config.n_heads, 1).requires_grad_() for _ in HEAD_INPUTS]
        results = head_results(block.attention, *(block.norm1(side) for side in sides))
        slopes = torch.autograd.grad(results, sides, above[:, :, None].expand_as(results))
    return {
        Site(name, layer, head): slope[:, :, head]
        for name, slope in zip(HEAD_INPUTS, slopes, strict=True)
        for head in range(model.config.n_heads)
    }


def _slope_of_mlp(model: Transformer, layer: int, x: Tensor, above: Tensor) -> Tensor:
    block = model.layers[layer]
    assert block.mlp is not None
    assert block.norm2 is not None
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(block.mlp(block.norm2(x)), x, above)
    return slope


def _read_by_mlp(model: Transformer, layer: int) -> Site:
    return Site("resid_pre" if model.config.parallel else "resid_mid", layer)


def _margin(logits: Tensor, contrast: Contrast) -> Tensor:
    """The source's answer over the base's, [pair]."""
    logits, pairs = to_host(logits), torch.arange(len(contrast))
    return logits[pairs, contrast.source_answers] - logits[pairs, contrast.base_answers]
