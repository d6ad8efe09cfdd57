"""Continue runs of a transformer from changed residual streams, computing only what the change can reach.

A change in the residual stream that enters layer l at position p of a causal model reaches the layers from l on and the
positions from p on, and only one column of logits is asked for. So one run is cached, and every changed run starts in the
middle of it:

    >>> kept = run_whole(model, tokens, at)
    >>> logits = run_changed(kept, first=p, starts={2: streams, 3: others})  # [pair, row, output]

``starts`` maps a layer to the changed streams [pair, row, position, d_model] that enter it, of the positions from
``first`` on; or to those of position ``first`` alone ([pair, row, 1, d_model]), which saves the projections of all
others. The layers are swept once: rows that start in a layer join those on their way. What stands before ``first`` is
shared by all rows of a pair. In a bidirectional model a change reaches every position, so ``first`` must be 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.attend import add_attended, attend, split_results
from bindscope.interventions.kept_run import KeptRun
from bindscope.interventions.parts import Parts
from bindscope.interventions.sweep import ALL, Sweep
from bindscope.interventions.tolerant import TolerantSweep
from bindscope.model.run import check_evaluating
from bindscope.model.transformer import Transformer


@torch.no_grad()
def run_whole(model: Transformer, tokens: Tensor, at: int, also: Iterable[str] = (), tolerance: float = 0.0) -> KeptRun:
    """Run ``model`` on rows [pair, position] and keep what continuing needs, and ``also`` middle or results.

    With a ``tolerance`` whatever continues it is approximate (``tolerant``).
    """
    check_evaluating(model)
    if not 0 <= at < tokens.shape[1]:
        raise BindscopeError(f"column {at} was asked for; the rows have columns 0 to {tokens.shape[1] - 1}.")
    if model.config.causal:
        tokens = tokens[:, : at + 1]
    also = (*also, "attended") if tolerance else also
    return _keep_run(Sweep(Parts(model, tokens.shape[1]), at, 0), tokens, None, also, tolerance)


@torch.no_grad()
def run_rest(
    kept: KeptRun, tokens: Tensor, first: int, also: Iterable[str] = (), rows: slice | Tensor = ALL
) -> KeptRun:
    """Run rows whose tokens equal those of the kept ``rows`` before position ``first``; keep the positions from there on.

    >>> source = run_rest(kept, contrast.source, first=10)
    """
    return _keep_run(Sweep(kept.parts, kept.at, first, rows), tokens[:, first : kept.n_positions], kept, also)


@torch.no_grad()
def run_changed(kept: KeptRun, first: int, starts: Mapping[int, Tensor], rows: slice | Tensor = ALL) -> Tensor:
    """Logits [pair, row, output] at column ``at`` of runs with changed streams; rows in the order of their layers.

    The pairs are all of the cached run, or those named by ``rows``, each as often as it is named. A start at layer
    ``n_layers`` gives the streams that leave the last layer, at ``at`` alone.
    """
    parts = kept.parts
    if first and not parts.config.causal:
        raise BindscopeError("run_changed: in a bidirectional model every position changes, so first must be 0.")
    sweep = (TolerantSweep if kept.tolerance else Sweep)(parts, kept.at, first, rows)
    x: Tensor | None = None  # [pair, row, position, d_model]
    for layer in parts.layers[min(starts) :]:
        x = sweep.pass_layer(layer, kept, x, starts.get(layer.index))
    ends = [part for part in (x, starts.get(parts.config.n_layers)) if part is not None]
    return parts.model.to_logits(torch.cat(ends, 1)[:, :, 0])


def _keep_run(
    sweep: Sweep, tokens: Tensor, kept: KeptRun | None, also: Iterable[str], tolerance: float = 0.0
) -> KeptRun:
    parts, (n_pairs, n) = sweep.parts, tokens.shape
    config = parts.config
    x = parts.embed(tokens, sweep.first)[:, None]  # [pair, 1, position, d_model]
    stream = x.new_empty(config.n_layers, n_pairs, n, config.d_model)
    n_kept = n if kept is None else 0
    heads = x.new_empty(config.n_layers, 3, n_pairs, config.n_heads, n_kept, config.d_head)
    middle = torch.empty_like(stream) if "middle" in also else None
    results = x.new_empty(*stream.shape[:3], config.n_heads, config.d_model) if "results" in also else None
    inner = config.n_heads * config.d_head
    attended = x.new_empty(config.n_layers, n_pairs, n, inner) if "attended" in also else None
    for layer in parts.layers:
        at, columns = layer.index, sweep.columns(layer)
        stream[at] = x[:, 0]
        rows, before = sweep.project_rows(layer, x), sweep.before(layer, kept)
        if kept is None:
            heads[at, 0][:, :, columns] = rows.queries[:, :, 0]
            heads[at, 1], heads[at, 2] = rows.keys[:, :, 0], rows.values[:, :, 0]
        z, pattern = attend(layer, rows, before, sweep.seen(layer))
        if attended is not None:
            attended[at][:, columns] = z[:, :, 0].transpose(1, 2).flatten(2)
        entering = x[:, :, columns]
        x = add_attended(layer, entering, z, pattern, rows, before)
        if middle is not None:
            middle[at][:, columns] = x[:, 0]
        if results is not None:
            results[at][:, columns] = split_results(layer, z, pattern, rows, before)[:, 0]
        x = layer.add_mlp(x, entering)
    end = x[:, 0, 0]
    logits = parts.model.to_logits(end)
    return KeptRun(parts, sweep.first + sweep.at, stream, heads, middle, results, end, logits, tolerance, attended)
