"""Rewrite the residual stream by a function, at every layer in turn, and read the answers.

    >>> def negate(layer, rows, stream): ...                 # [row, position, d_model] → the same shape
    >>> rewritten_answers(model, tokens, at, {"negated": negate}, first)   # [rewrite, layer, row]

Every cell equals running the model again with that one layer's stream rewritten; the run below is shared by all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from bindscope.interventions.chunks import pairs_at_once, tokens_at_once
from bindscope.interventions.engine import KeptRun, Sweep, run_changed, run_whole
from bindscope.model.transformer import Transformer

Rewrite = Callable[[int, Tensor, Tensor], Tensor]  # (layer, rows, stream entering it) → the stream to go on with


@torch.no_grad()
def rewritten_answers(
    model: Transformer,
    tokens: Tensor,
    at: int,
    rewrites: Mapping[str, Rewrite],
    first: Tensor,
    frozen: Tensor | None = None,
) -> np.ndarray:
    """The top output at column ``at`` [rewrite, layer, row]. No rewrite may change what stands before ``first`` [row].

    ``frozen`` marks positions [row, position] that have the unchanged run's stream in every layer after the rewritten one.
    """
    n_layers = model.config.n_layers
    answers = np.zeros((len(rewrites), n_layers, len(tokens)), int)
    n = at + 1 if model.config.causal else tokens.shape[1]
    few = max(1, min(pairs_at_once(model, n, ()), 2 * tokens_at_once(model) // (n_layers * n)))
    for rows in first.argsort(stable=True).split(few):
        kept = run_whole(model, tokens[rows], at)
        begin = int(first[rows].min()) if model.config.causal else 0
        for index, rewrite in enumerate(rewrites.values()):
            starts = {
                layer: rewrite(layer, rows, kept.stream[layer].clone())[None, :, begin:] for layer in range(n_layers)
            }
            if frozen is None:
                logits = run_changed(kept, begin, starts)
            else:
                logits = run_frozen(kept, begin, starts, frozen[rows, begin : kept.n_positions])
            answers[index][:, rows.numpy()] = logits.argmax(-1).cpu().numpy()
    return answers


@torch.no_grad()
def run_frozen(kept: KeptRun, first: int, starts: Mapping[int, Tensor], frozen: Tensor) -> Tensor:
    """As ``run_changed``, with the kept streams put back at ``frozen`` [pair, position from first on] after every layer."""
    parts, marks = kept.parts, frozen[:, :, None].to(kept.stream.device)
    for layer, x in enumerate(Sweep(parts, kept.at, first).pass_layers(kept, starts), start=min(starts)):
        if layer < parts.last:
            x.copy_(torch.where(marks, kept.stream[layer + 1][:, first:], x))
    return parts.model.to_logits(x[:, :, 0])


@torch.no_grad()
def read_streams(model: Transformer, tokens: Tensor, at: int) -> Tensor:
    """The residual streams that enter each layer [layer, row, position, d_model], of positions up to ``at``."""
    n = at + 1 if model.config.causal else tokens.shape[1]
    some = torch.arange(len(tokens)).split(pairs_at_once(model, n, ()))
    return torch.cat([run_whole(model, tokens[rows], at).stream for rows in some], 1)
