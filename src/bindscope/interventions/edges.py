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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import SMALLEST_RANGE
from bindscope.interventions.patching import PAIRS_AT_ONCE
from bindscope.interventions.paths import HEAD_INPUTS, moment, patch_path
from bindscope.interventions.slopes import (
    EMBED,
    FINAL,
    Method,
    check_method,
    drop_gradients,
    drops_gradients,
    fixes_softmax,
    margin,
    measure_slopes,
    recompute_heads,
    slope_of_mlp,
    slopes_of_heads,
)
from bindscope.model.run import Trace, run, to_host
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

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
    method: Method = "gradient",
) -> xr.Dataset:
    """``effect`` over (sender, receiver, pair): how far the answer would move from the base's to the source's, as
    ``logit_difference`` of the exact patch; NaN where there is no such edge. ``effect_at``, over (sender, receiver,
    position): its mean at each of the named ``positions`` and anywhere. ``method`` is one of those of ``slopes``.
    """
    check_method(method)
    if n_points < 1:
        raise BindscopeError(f"n_points: at least one run is needed, got {n_points}.")
    graph, named = Graph.of(model), positions or {}
    parts = []
    for start in range(0, len(contrast), PAIRS_AT_ONCE):
        rows = slice(start, start + PAIRS_AT_ONCE)
        columns = [column[rows] for column in named.values()]
        parts.append(_attribute_part(model, graph, contrast.take(rows), n_points, columns, method))
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
    return dataset.assign_attrs(n_points=n_points, n_pairs=len(contrast), method=method)


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
    return compare_edges(attributed, chosen, list(patch_edges(model, contrast, attributed, chosen)))


def patch_edges(
    model: Transformer, contrast: Contrast, attributed: xr.Dataset, chosen: Sequence[tuple[int, int]]
) -> Iterator[float]:
    """The exact effect of each of the chosen edges, one after the other."""
    for sender, receiver in name_edges(attributed, chosen):
        yield float(patch_path(model, contrast, sender, receiver).logit_difference.mean())


def name_edges(attributed: xr.Dataset, chosen: Sequence[tuple[int, int]]) -> tuple[tuple[str, str], ...]:
    """The ends of edges that are given by their indices."""
    return tuple((str(attributed.sender.values[s]), str(attributed.receiver.values[r])) for s, r in chosen)


def compare_edges(attributed: xr.Dataset, chosen: Sequence[tuple[int, int]], exact: Sequence[float]) -> Checked:
    """How far the attribution of the chosen edges is from their exact effects; one that is missing is left out."""
    means = attributed.effect.mean("pair").values
    guess, true = np.array([means[edge] for edge in chosen]), np.array(exact)
    known = np.isfinite(true)
    return Checked(
        name_edges(attributed, chosen), tuple(guess.tolist()), tuple(true.tolist()), *_agree(guess[known], true[known])
    )


def _agree(guess: np.ndarray, true: np.ndarray) -> tuple[float, float, float, float]:
    """Correlation, mean and largest error, and the fraction with the right sign."""
    if len(true) == 0:
        return (float("nan"),) * 4
    clear, errors = np.abs(true) > 0.01, np.abs(guess - true)
    varied = len(true) > 1 and np.ptp(guess) > 0 and np.ptp(true) > 0
    return (
        float(np.corrcoef(guess, true)[0, 1]) if varied else float("nan"),
        float(errors.mean()),
        float(errors.max()),
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
    model: Transformer,
    graph: Graph,
    contrast: Contrast,
    n_points: int,
    columns: Sequence[np.ndarray],
    method: Method,
) -> np.ndarray:
    """[position, sender, receiver, pair]: anywhere, then at each of the named columns (−1: the pair has none).

    The method corrects what comes from anywhere; named positions are those of the gradient.
    """
    with torch.no_grad():
        base, source = (run(model, tokens, graph.senders) for tokens in (contrast.base, contrast.source))
    differences = read_senders(source, graph) - read_senders(base, graph)
    ends = [margin(trace.logits[:, contrast.at], contrast) for trace in (base, source)]
    span = ends[1] - ends[0]  # [pair]
    scale = torch.where(span.abs() < SMALLEST_RANGE, torch.nan, 1 / span)

    def attribute(dropped: int | None) -> tuple[Tensor, Tensor]:
        slopes, above = _mean_slopes(model, graph, contrast, source[EMBED], n_points, dropped)
        at_columns = torch.einsum("sbpd,rbpd->srbp", differences, slopes) * scale[:, None]
        anywhere = at_columns.sum(-1)  # [sender, receiver, pair]
        if fixes_softmax(method):
            _fix_softmax(model, graph, contrast, differences, above, anywhere, scale)
        return anywhere, at_columns

    anywhere, at_columns = attribute(None)
    if drops_gradients(method):
        layers = [site.layer for site in graph.receivers]
        swapped = drop_gradients(anywhere.transpose(0, 1), lambda layer: attribute(layer)[0].transpose(0, 1), layers)
        anywhere = swapped.transpose(0, 1)
    parts = [anywhere]
    pairs = torch.arange(len(contrast))
    for column in columns:
        there = at_columns[:, :, pairs, torch.from_numpy(np.maximum(column, 0))]
        parts.append(torch.where(torch.from_numpy(column >= 0), there, torch.nan))
    return torch.stack(parts).numpy()


def _mean_slopes(
    model: Transformer, graph: Graph, contrast: Contrast, source_embed: Tensor, n_points: int, dropped: int | None
) -> tuple[Tensor, dict[int, Tensor]]:
    """∂ metric / ∂ what each receiver reads, [receiver, pair, position, d_model], and ∂ what each layer's heads add: means
    over runs between base and source."""
    points = [0.0] if n_points == 1 else [(index + 0.5) / n_points for index in range(n_points)]
    slopes, above = torch.zeros(()), dict.fromkeys(range(model.config.n_layers), torch.zeros(()))
    for point in points:
        at = measure_slopes(model, contrast, source_embed, point, dropped)
        found = {FINAL: at.outputs[FINAL]}
        for layer in range(model.config.n_layers):
            found |= slopes_of_heads(model, layer, at)
            above[layer] = above[layer] + to_host(at.outputs[Site("attn_out", layer)]) / len(points)
            if layer in model.config.layers_with_mlp:
                found[Site("mlp_out", layer)] = slope_of_mlp(model, layer, at)
        slopes = slopes + torch.stack([to_host(found[site]) for site in graph.receivers]) / len(points)
    return slopes, above


def _fix_softmax(
    model: Transformer,
    graph: Graph,
    contrast: Contrast,
    differences: Tensor,
    above: Mapping[int, Tensor],
    effects: Tensor,
    scale: Tensor,
) -> None:
    """Write the QK-fixed effects of all edges into queries and keys into ``effects`` [sender, receiver, pair]."""
    entering = [Site("resid_pre", layer) for layer in above]
    with torch.no_grad():
        streams = run(model, contrast.base, entering)
    for layer, slope in above.items():
        x, norm = streams[entering[layer]], model.layers[layer].norm1
        for side in ("q", "k"):
            receivers = graph.find_receivers(layer, side)
            for sender in np.flatnonzero(graph.edges[:, receivers[0]]):
                changed = norm(x + differences[sender].to(x))
                found = to_host(recompute_heads(model, layer, side, norm(x), changed, slope.to(x)))  # [head, pair]
                effects[sender, receivers] = (found * scale).to(effects)
