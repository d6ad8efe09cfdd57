"""A circuit of edges: the base run in which only some edges carry the base, all others the source.

Every receiver reads a stream of its own: the source run's, with each sender that it hears through a kept edge put back to
what that sender says now. With all edges this is the base run, with none the source run, and without one edge it is path
patching of that edge (tests hold all three).

    >>> logits = run_edges(model, contrast, kept)
    >>> sizes = measure_faithfulness(model, contrast, effects, sizes=(10, 30, 100), n_random=8, rng=rng)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.edges import EMBED, FINAL, Graph, read_senders
from bindscope.interventions.outcome import measure_outcomes
from bindscope.interventions.patching import PAIRS_AT_ONCE
from bindscope.interventions.paths import HEAD_INPUTS, head_results
from bindscope.model.run import Trace, run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

CHOSEN, RANDOM = "attributed", "random"


def run_edges(model: Transformer, contrast: Contrast, kept: np.ndarray) -> Tensor:
    """The answers' logits [pair, output] with the edges marked in ``kept`` [sender, receiver] alone carrying the base."""
    graph = Graph.of(model)
    if kept.shape != graph.edges.shape:
        raise BindscopeError(f"kept: {graph.edges.shape} senders and receivers are there, got {kept.shape}.")
    parts = [
        _run_part(model, graph, contrast.take(slice(start, start + PAIRS_AT_ONCE)), kept & graph.edges)
        for start in range(0, len(contrast), PAIRS_AT_ONCE)
    ]
    return torch.cat(parts)


@torch.no_grad()
def measure_faithfulness(
    model: Transformer,
    contrast: Contrast,
    effects: np.ndarray,
    *,
    sizes: Sequence[int],
    n_random: int,
    rng: np.random.Generator,
) -> xr.Dataset:
    """How much of the base run circuits of the edges with the largest ``effects`` [sender, receiver] keep, by size.

    ``faithfulness`` over (size, circuit, pair) is 1 where the margin between the answers is that of the base run and 0 where
    it is that of the source run; ``kept`` says whether the base's answer is still the top one. The control gives every
    receiver as many edges as the circuit does, from senders drawn at random, ``n_random`` times.
    """
    base, source = (run(model, tokens).logits[:, contrast.at] for tokens in (contrast.base, contrast.source))
    circuits = [CHOSEN, *(f"{RANDOM} {index + 1}" for index in range(n_random))]
    values = {name: np.empty((len(sizes), len(circuits), len(contrast))) for name in ("faithfulness", "kept")}
    connected = np.zeros(len(sizes), int)
    for row, size in enumerate(sizes):
        chosen = strongest_edges(effects, size)
        connected[row] = int(prune_edges(chosen, Graph.of(model)).sum())
        for column in range(len(circuits)):
            marks = chosen if column == 0 else shuffle_senders(chosen, np.isfinite(effects), rng)
            outcome = measure_outcomes(run_edges(model, contrast, marks), base, source, contrast)
            values["faithfulness"][row, column] = 1 - outcome["logit_difference"]
            values["kept"][row, column] = outcome["kept"]
    dims = ("size", "circuit", "pair")
    dataset = xr.Dataset(
        {name: (dims, value) for name, value in values.items()}, {"size": list(sizes), "circuit": circuits}
    )
    return dataset.assign(n_connected=("size", connected))


def strongest_edges(effects: np.ndarray, size: int) -> np.ndarray:
    """Marks [sender, receiver] of the ``size`` edges with the largest effects."""
    known = np.where(np.isfinite(effects), np.abs(effects), -1.0).ravel()
    order = np.argsort(-known, kind="stable")[: min(size, int((known >= 0).sum()))]
    marks = np.zeros(effects.size, bool)
    marks[order] = True
    return marks.reshape(effects.shape)


def shuffle_senders(marks: np.ndarray, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As many edges into every receiver, from other senders that it may hear."""
    shuffled = np.zeros_like(marks)
    for receiver in np.flatnonzero(marks.any(0)):
        senders = rng.permutation(np.flatnonzero(allowed[:, receiver]))
        shuffled[senders[: marks[:, receiver].sum()], receiver] = True
    return shuffled


def prune_edges(marks: np.ndarray, graph: Graph) -> np.ndarray:
    """Without edges that no way from the embedding reaches, or from which none leads to the logits."""
    part_of = _parts(graph)
    while True:
        heard = {part_of[1][receiver] for receiver in np.flatnonzero(marks.any(0))} | {EMBED}
        useful = {part_of[0][sender] for sender in np.flatnonzero(marks.any(1))} | {FINAL}
        alive = np.array([part in heard for part in part_of[0]])[:, None] & np.array(
            [part in useful for part in part_of[1]]
        )
        if not (marks & ~alive).any():
            return marks
        marks = marks & alive


def _parts(graph: Graph) -> tuple[list[Site], list[Site]]:
    """The head or MLP behind each sender and each receiver."""
    inputs = [Site("result", site.layer, site.head) if site.name in HEAD_INPUTS else site for site in graph.receivers]
    return list(graph.senders), inputs


@torch.no_grad()
def _run_part(model: Transformer, graph: Graph, contrast: Contrast, kept: np.ndarray) -> Tensor:
    layers = range(model.config.n_layers)
    streams = [Site(name, layer) for layer in layers for name in ("resid_pre", "resid_post")]
    if not model.config.parallel:
        streams += [Site("resid_mid", layer) for layer in model.config.layers_with_mlp]
    source = run(model, contrast.source, [*graph.senders, *streams])
    embedded = run(model, contrast.base, [EMBED])[EMBED]
    told = read_senders(source, graph).to(embedded.device)
    changes = torch.zeros_like(told)  # [sender, pair, position, d_model]: what each says beside the source run
    changes[0] = embedded - told[0]
    weights = torch.from_numpy(kept).to(changes)

    def hear(stream: Site, receivers: Sequence[int]) -> Tensor:
        """What each of these receivers reads, [pair, position, receiver, d_model]."""
        return source[stream][:, :, None] + torch.einsum("sbpd,sr->bprd", changes, weights[:, receivers])

    for layer in layers:
        _say_layer(model, graph, layer, source, hear, changes)
    ends = hear(Site("resid_post", layers[-1]), graph.find_receivers(None, FINAL.name))[:, :, 0]
    return model.to_logits(ends)[:, contrast.at]


def _say_layer(model: Transformer, graph: Graph, layer: int, source: Trace, hear: object, changes: Tensor) -> None:
    """What the heads and the MLP of a layer say now, beside what they say in the source run, written into ``changes``."""
    assert callable(hear)
    block = model.layers[layer]
    entering = Site("resid_pre", layer)
    sides = (block.norm1(hear(entering, graph.find_receivers(layer, side))) for side in HEAD_INPUTS)
    results = head_results(block.attention, *sides)  # [pair, position, head, d_model]
    for head, sender in enumerate(graph.find_senders(layer, "result")):
        changes[sender] = results[:, :, head] - source[Site("result", layer, head)]
    if block.mlp is None or block.norm2 is None:
        return
    (sender,), (receiver,) = graph.find_senders(layer, "mlp_out"), graph.find_receivers(layer, "mlp_out")
    read = hear(entering if model.config.parallel else Site("resid_mid", layer), [receiver])[:, :, 0]
    changes[sender] = block.mlp(block.norm2(read)) - source[Site("mlp_out", layer)]
