"""Keep runs of a model, and continue them from changed residual streams: only what the change can reach is computed.

In a causal model a change at layer l, column p leaves the layers below l and the columns before p as they were, and of the
last layer only the asked column matters. The layers are the model's own, given the keys and values of what stands before,
so gradients flow from the logits to the changed streams:

    >>> kept = keep_runs(model, tokens, at=66, lowest=3)
    >>> changed = kept.read(3, rows, columns) + nudge       # [row, column, d_model]
    >>> kept.run_changed(3, rows, columns, changed)         # logits [row, output] at column 66

Patch grids, where thousands of rows share one run and need no gradient, have an engine of their own
(``interventions/engine.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.model.config import ModelConfig
from bindscope.model.run import check_evaluating
from bindscope.model.transformer import SILENT, Past, Tap, Transformer, View

TOKENS_AT_ONCE = 1 << 14  # of the runs that are kept; bounds memory, never changes a number
CALLS_WORTH = 5 * 10**6  # multiplications that take as long as calling a layer's operations once more
FREE_TOKENS = 24  # so many more take no longer, since the weights must be fetched anyway


@dataclass(frozen=True, eq=False)
class KeptRuns:
    """What runs leave for others from layer ``lowest`` on: columns up to ``at`` (bidirectional: all).

    Rows name kept runs, each as often as it is wanted. Columns are [row, column], −1 for none; those that cannot reach the
    answer are passed over. Layer ``n_layers`` means the stream that leaves the last layer, which is kept at ``at`` alone.
    """

    model: Transformer
    view: View
    at: int
    lowest: int
    streams: Sequence[Tensor]  # of each layer from ``lowest`` on: [run, position, d_model], entering it
    pasts: Sequence[Past]  # of each layer from ``lowest`` on
    end: Tensor  # [run, d_model]: leaving the last layer
    logits: Tensor  # [run, output]

    def read(self, layer: int, rows: Tensor, columns: Tensor) -> Tensor:
        """The stream that enters the layer, [row, column, d_model]; 0 where there is no column, or it was not kept."""
        known, places = self._find(layer, columns)
        values = self._stream(layer)[rows[:, None], places]
        return values * known[:, :, None].to(values)

    def run_changed(self, layer: int, rows: Tensor, columns: Tensor, changed: Tensor) -> Tensor:
        """Logits [row, output] with ``changed`` [row, column, d_model] in place of what enters the layer at ``columns``."""
        known, places = self._find(layer, columns)
        logits = self.logits[rows]
        n_positions = self._stream(layer).shape[1]
        first = places.masked_fill(~known, n_positions).amin(1)  # [row]
        if not self.model.config.causal:
            first = first.masked_fill(first < n_positions, 0)
        for start, group in group_rows(first, n_positions, calls_worth(self.model.config)):
            row, index = known[group].nonzero(as_tuple=True)
            stream = self._stream(layer)[rows[group], start:]
            where = row, places[group][row, index] - start
            stream = stream.index_put(where, changed[group[row], index].to(stream))
            found = self._continue(layer, rows[group], start, stream)
            logits = logits.index_put((group,), found)
        return logits

    def run_tapped(self, layer: int, rows: Tensor, first: int, tap: Tap) -> Tensor:
        """Logits [row, output] with what ``tap`` changes in the layers from this one on, at columns from ``first`` on.

        It sees those columns alone, of the last layer the asked one. In a bidirectional model ``first`` must be 0.
        """
        return self._continue(layer, rows, first, self._stream(layer)[rows, first:], tap)

    def _find(self, layer: int, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Which columns are kept, [row, column], and where; 0 for those that are not."""
        if not self.lowest <= layer <= self.model.config.n_layers:
            raise BindscopeError(f"layer {layer}: the runs were kept from layer {self.lowest} on.")
        if layer == self.model.config.n_layers:
            return columns == self.at, torch.zeros_like(columns)
        known = (columns >= 0) & (columns < self._stream(layer).shape[1])
        return known, columns.masked_fill(~known, 0)

    def _stream(self, layer: int) -> Tensor:
        return self.end[:, None] if layer == self.model.config.n_layers else self.streams[layer - self.lowest]

    def _continue(self, layer: int, rows: Tensor, first: int, x: Tensor, tap: Tap = SILENT) -> Tensor:
        """Logits [row, output] of streams x [row, position from ``first`` on, d_model] that enter the layer."""
        view, asked = self.view.rest(first), torch.tensor([self.at - first]).to(x.device)
        last = self.model.config.n_layers - 1
        for block in self.model.layers[layer:]:
            past = None if first == 0 else self.pasts[block.layer - self.lowest].before(first, rows)
            x = block(x, view, asked if block.layer == last else None, tap, past)
        return self.model.to_logits(x[:, 0])


@torch.no_grad()
def keep_runs(model: Transformer, tokens: Tensor, at: int, lowest: int = 0) -> KeptRuns:
    """Run the model on rows of tokens and keep what changes in the layers from ``lowest`` on need."""
    check_evaluating(model)
    if not 0 <= at < tokens.shape[1]:
        raise BindscopeError(f"column {at} was asked for; the rows have columns 0 to {tokens.shape[1] - 1}.")
    tokens = (tokens[:, : at + 1] if model.config.causal else tokens).to(model.W_E.device)
    tap = _Keep(model.config, at, lowest)
    for rows in tokens.split(max(1, TOKENS_AT_ONCE // tokens.shape[1])):
        model(rows, at=torch.tensor([at]), tap=tap)
    end, identity = torch.cat(tap.end), model.config.identity_qk or model.config.identity_vo
    streams, pasts = [], []
    for block in model.layers[lowest:]:
        stream, keys, values = (torch.cat(parts.pop(block.layer)) for parts in (tap.streams, tap.keys, tap.values))
        streams.append(stream)
        pasts.append(Past(keys, values, block.norm1(stream) if identity else None))
    view = model.view(model.position_ids(tokens, None), None)
    return KeptRuns(model, view, at, lowest, streams, pasts, end, model.to_logits(end))


def kept_bytes(model: Transformer, n_positions: int, lowest: int = 0) -> int:
    """How much memory one kept run takes."""
    config = model.config
    normed = config.d_model if config.identity_qk or config.identity_vo else 0
    width = config.d_model + normed + 2 * config.n_heads * config.d_head
    return (config.n_layers - lowest) * n_positions * width * model.W_E.element_size()


def group_rows(first: Tensor, n_positions: int, worth: int) -> list[tuple[int, Tensor]]:
    """(start, rows) so that rows whose first changed columns are near start together; rows without one are left out.

    A group starts from its first column in all its rows. The groups are those that compute the fewest tokens, where
    another group costs as much as ``worth`` tokens.

    >>> group_rows(torch.tensor([60, 3, 3, 58, 64]), n_positions=64, worth=10)
    [(3, tensor([1, 2])), (58, tensor([0, 3]))]
    """
    values, counts = first[first < n_positions].unique(return_counts=True)
    starts, ends = values.tolist(), counts.cumsum(0).tolist()
    best: list[tuple[int, int]] = [(0, 0)]  # of the first k values: tokens, and where the last group begins
    for k in range(1, len(starts) + 1):
        before = [0, *ends]
        costs = [best[i][0] + (ends[k - 1] - before[i]) * (n_positions - starts[i]) + worth for i in range(k)]
        best.append(min(zip(costs, range(k))))
    groups, k = [], len(starts)
    while k > 0:
        i = best[k][1]
        inside = (first >= starts[i]) & (first <= starts[k - 1])
        groups.append((starts[i], inside.nonzero()[:, 0]))
        k = i
    return groups[::-1]


def calls_worth(config: ModelConfig) -> int:
    """How many tokens more take no longer than another round of calls."""
    per_token = config.d_model * (4 * config.n_heads * config.d_head + 2 * config.d_mlp)
    return FREE_TOKENS + CALLS_WORTH // per_token


class _Keep:
    """The tap that keeps streams, keys and values of the layers from ``lowest`` on, run after run."""

    def __init__(self, config: ModelConfig, at: int, lowest: int) -> None:
        self.last, self.at, self.lowest = config.n_layers - 1, at, lowest
        self.key = "rot_k" if config.positions == "rope" else "k"
        self.streams, self.keys, self.values = (defaultdict[int, list[Tensor]](list) for _ in range(3))
        self.end: list[Tensor] = []

    def wants(self, layer: int, *names: str) -> bool:
        return False

    def __call__(self, name: str, layer: int | None, value: Tensor) -> Tensor:
        if name == "resid_post" and layer == self.last:
            self.end.append(value[:, self.at].clone())
        kept = {"resid_pre": self.streams, self.key: self.keys, "v": self.values}.get(name)
        if kept is not None and layer is not None and layer >= self.lowest:
            kept[layer].append(value.contiguous())
        return value
