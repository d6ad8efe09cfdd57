"""The pairs of a contrast, some at a time: base runs that are cached, and source runs to take from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.engine import WORTH_SAVING, KeptRun, run_rest, run_whole, take_apart
from bindscope.interventions.parts import Parts
from bindscope.model.transformer import Transformer

KEPT_BYTES = 16 * 2**20  # of cached runs at a time: few enough to stay near the processor
KEPT_PART, SWEPT_PART = 0.3, 0.2  # of the memory that is free on a GPU, for cached runs and for what is swept
MOST_TOKENS = 2**20  # that are swept together there: more fill no GPU better
FEWEST_PAIRS = 4  # whatever they take: with fewer, the weights are fetched for too little work
FREE_TOKENS = 24  # so many more take no longer, since the weights must be fetched anyway


@dataclass(frozen=True, eq=False)
class Source:
    """What can be taken from the source runs, named and shaped as in ``KeptRun``."""

    parts: Parts
    stream: Tensor
    middle: Tensor | None
    z: Tensor | None
    scaled: Tensor | None
    end: Tensor
    logits: Tensor

    def mlp_out(self, layer: int) -> Tensor:
        """What the layer's MLP adds [pair, position, d_model]; in the last layer the same at every position: at ``at``."""
        assert self.middle is not None
        after = self.stream[layer + 1] if layer + 1 < len(self.stream) else self.end[:, None]
        return after - self.middle[layer]


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some pairs in the order of their first difference, with both runs at the positions that can matter."""

    pairs: Tensor  # [pair]: which of the contrast's
    first: Tensor  # [pair]: the first position at which the two runs can differ
    single: Tensor  # [pair]: only one token that matters differs, so that changing it gives the source run
    base: KeptRun
    source: Source


def run_chunks(
    model: Transformer, contrast: Contrast, source_model: Transformer | None = None, also: Iterable[str] = ()
) -> Iterator[Chunk]:
    """Run the pairs, few enough at a time to bound memory; who lets go of a chunk before the next never holds two."""
    check_models(model, source_model)
    also = tuple(also)
    shared = model.config.causal and source_model is None
    first = contrast.first_difference if shared else torch.zeros(len(contrast), dtype=torch.long)
    parts = take_apart(model, contrast.base.shape[1], contrast.at)
    for pairs in first.argsort(stable=True).split(pairs_at_once(model, parts.n_positions, also)):
        yield _run_chunk(parts, contrast, pairs, first[pairs], source_model, also)


def _run_chunk(
    parts: Parts,
    contrast: Contrast,
    pairs: Tensor,
    first: Tensor,
    source_model: Transformer | None,
    also: tuple[str, ...],
) -> Chunk:
    base_tokens, source_tokens = contrast.base[pairs], contrast.source[pairs]
    base = run_whole(parts, base_tokens, contrast.at, also)
    if parts.config.causal and source_model is None:
        source = _run_sources(base, source_tokens, first, also)
    else:
        run = run_whole(source_model or parts.model, source_tokens, contrast.at, also)
        source = Source(run.parts, run.stream, run.middle, run.z, run.scaled, run.end, run.logits)
    single = (base_tokens != source_tokens)[:, : parts.n_positions].sum(1) == 1
    return Chunk(pairs, first, single & (source_model is None), base, source)


def pairs_at_once(model: Transformer, n_positions: int, also: Iterable[str]) -> int:
    """How many pairs' two runs are cached at a time; at least ``FEWEST_PAIRS``."""
    config, free = model.config, free_memory(model.W_E.device)
    inner = config.n_heads * config.d_head
    width = 2 * config.d_model + 3 * inner + 2 * config.d_model * ("middle" in also)
    if "z" in also:
        width += 2 * (inner + config.n_heads * config.d_model * config.identity_vo)
    room = KEPT_BYTES if free is None else int(KEPT_PART * free)
    return max(FEWEST_PAIRS, room // (config.n_layers * n_positions * width * model.W_E.element_size()))


def tokens_at_once(model: Transformer) -> int:
    """How many positions of rows are swept together: enough for large products, few enough to stay near the processor.

    On a GPU as many as its free memory holds.
    """
    config, free = model.config, free_memory(model.W_E.device)
    if free is None:
        return max(2048, 2**19 // config.d_model)
    width = 2 * config.d_model + 4 * config.n_heads * config.d_head + config.n_heads * config.n_positions
    a_token = (width + 2 * config.d_mlp) * model.W_E.element_size()
    return int(min(MOST_TOKENS, max(2048, SWEPT_PART * free / a_token)))


def free_memory(device: torch.device) -> int | None:
    """The bytes that are free on a GPU; None for a processor, whose caches and not whose memory set the pace."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return None


def check_models(model: Transformer, source_model: Transformer | None) -> None:
    """Refuse a source model whose activations do not fit."""
    if source_model is None:
        return
    for name in ("n_layers", "n_heads", "d_model", "layers_with_mlp", "parallel", "outputs", "causal"):
        mine, theirs = getattr(model.config, name), getattr(source_model.config, name)
        if mine != theirs:
            raise BindscopeError(
                f"source_model: its {name} is {theirs} and the model's {mine}; take from a model of the same shape."
            )


def near_groups(positions: Tensor, parts: Parts, n_rows: int) -> Iterator[tuple[int, slice | Tensor]]:
    """Groups of indices whose positions are near each other, with the first position of each.

    A group starts from its first position in all its members, ``n_rows`` rows each; that may recompute a little, where
    another round of calls would cost more.
    """
    config = parts.config
    per_token = config.d_model * (4 * config.n_heads * config.d_head + 2 * config.d_mlp)
    values, counts = positions.unique(return_counts=True)
    begin = 0
    for index in range(1, len(values) + 1):
        if index < len(values):
            recomputed = int(counts[index]) * (n_rows + 1) // 2 * int(values[index] - values[begin])
            if recomputed < FREE_TOKENS + WORTH_SAVING // per_token:
                continue
        inside = (positions >= values[begin]) & (positions <= values[index - 1])
        yield int(values[begin]), as_slice(inside.nonzero()[:, 0])
        begin = index


def as_slice(indices: Tensor) -> slice | Tensor:
    """Ascending indices as a slice where they leave nothing out."""
    if len(indices) and bool((indices.diff() == 1).all()):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


def _run_sources(base: KeptRun, tokens: Tensor, first: Tensor, also: Iterable[str]) -> Source:
    """The runs of the source rows, which differ from the base runs only from ``first`` on."""
    stream, end, logits = base.stream.clone(), base.end.clone(), base.logits.clone()
    middle, z, scaled = (None if part is None else part.clone() for part in (base.middle, base.z, base.scaled))
    for position, rows in near_groups(first, base.parts, 1):
        rest = run_rest(base, tokens[rows], position, also, rows)
        end[rows], logits[rows] = rest.end, rest.logits
        wholes, parts = (stream, middle, z, scaled), (rest.stream, rest.middle, rest.z, rest.scaled)
        for whole, part in zip(wholes, parts):
            if whole is not None and part is not None:
                whole[:, rows, position:] = part
    return Source(base.parts, stream, middle, z, scaled, end, logits)
