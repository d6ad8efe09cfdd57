"""Changed runs that leave out what the answer would hardly feel: the sweep of ``engine``, approximate, within a tolerance.

A patched run differs from the cached one at nearly every position that it can reach, at most by little, and the answer hears
little of most. How much it hears is known beforehand to first order: the slope of the logits at each position of the
residual stream, from one backward pass of the base run and one of the source run. Where a change times this slope is below the
tolerance, in logits, a position counts as unchanged: its queries, keys and values are the cached ones, and so is what leaves
the layer. Projections and MLPs, nearly all the work in a wide model, are computed for the other positions alone; attention
is computed as ever, since it tells what changes.

    >>> tolerance = Tolerance(1e-3, logit_slopes(model, base, source, at))
    >>> logits = run_within(tolerance, kept, first=p, starts={2: streams})   # kept has z; [row, pair, output]

What several positions leave out adds up, and a slope is no bound, so how far a grid is off is measured: ``checked``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.linalg import vector_norm

from bindscope.errors import BindscopeError
from bindscope.interventions.attend import Rows, attend, sum_scaled
from bindscope.interventions.engine import ALL, KeptRun, Sweep
from bindscope.interventions.parts import Layer
from bindscope.model.run import run
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

LEAST = 1e-3  # of the layer's largest slope: a position that no head looks at has none, until a change makes one look


@dataclass(frozen=True, eq=False)
class Tolerance:
    """How much of the logits may be left out at a position, and how strongly they hear each position."""

    amount: float
    slopes: Tensor  # [layer, pair, position]: entering each layer, and leaving the last


def check_tolerance(amount: float) -> None:
    """Refuse what is no number of logits."""
    if not 0 <= amount < float("inf"):
        raise BindscopeError(f"tolerance: a number of logits, 0 for an exact grid, is needed, got {amount}.")


@torch.no_grad()
def run_within(
    tolerance: Tolerance, kept: KeptRun, first: int, starts: Mapping[int, Tensor], rows: slice | Tensor = ALL
) -> Tensor:
    """As ``run_changed``, except that positions the answer would hardly hear are left as they were."""
    *_, last = TolerantSweep(tolerance, kept, first, rows).pass_layers(kept, starts)
    return kept.parts.model.to_logits(last[:, :, 0])


def logit_slopes(model: Transformer, base: Tensor, source: Tensor, at: int) -> Tensor:
    """The size of the logits' slope at each position of the residual stream, [layer, pair, position]: the larger of two runs'.

    The logits are added up with random signs: the square of that slope is, on average over signs, the sum of the squares of all logits'.
    """
    n_columns = at + 1 if model.config.causal else base.shape[1]
    slopes = torch.maximum(*(_slopes_of_run(model, tokens[:, :n_columns], at) for tokens in (base, source)))
    return slopes.maximum(LEAST * slopes.amax(2, keepdim=True))


def _slopes_of_run(model: Transformer, tokens: Tensor, at: int) -> Tensor:
    n_layers, streams = model.config.n_layers, list[Tensor]()

    def watch(stream: Tensor) -> Tensor:
        streams.append(stream if stream.requires_grad else stream.detach().requires_grad_())
        return streams[-1]

    sites = [*(Site("resid_pre", layer) for layer in range(n_layers)), Site("resid_post", n_layers - 1)]
    signs = 2.0 * torch.randint(2, (model.config.outputs,), generator=torch.Generator().manual_seed(0)) - 1
    with torch.enable_grad():
        logits = run(model, tokens, (), dict.fromkeys(sites, watch), at=torch.tensor([at])).logits  # [pair, 1, output]
        found = torch.autograd.grad((logits @ signs.to(logits)).sum(), streams)
    return torch.stack([vector_norm(slope, dim=-1) for slope in found])


class TolerantSweep(Sweep):
    """Rows on their way up the layers, computed where the answer would feel their change."""

    def __init__(self, tolerance: Tolerance, kept: KeptRun, first: int, rows: slice | Tensor) -> None:
        super().__init__(kept.parts, kept.at, first, rows)
        self.amount, self.slopes = tolerance.amount, tolerance.slopes[:, rows, first:]  # [layer, pair, position]

    def pass_layer(self, layer: Layer, kept: KeptRun, x: Tensor, start: Tensor | None, n_below: int) -> Tensor:
        columns, change = self.columns(layer), vector_norm(x - self.kept_stream(kept, layer.index), dim=-1)
        rows = self.replace_heads(layer, kept, x, change * self.slopes[layer.index] > self.amount)
        before = self.before(layer, kept)
        z, pattern = attend(layer, rows, before, self.seen(layer), self.parts.workspace)
        mixed = z.permute(2, 0, 3, 1, 4).flatten(3)  # [row, pair, query, head·d_head]
        scaled = sum_scaled(layer, pattern, rows, before)  # [row, pair, query, d_model]
        change = change[:, :, columns] + self.attention_change(layer, kept, mixed, scaled)
        felt = change * self.slopes[layer.index + 1][:, columns] > self.amount  # [row, pair, query]
        entering = x[:, :, columns][felt]  # [token, d_model]
        some = torch.addmm(entering, mixed[felt], layer.out)
        for term in (layer.out_bias, None if scaled is None else scaled[felt]):
            if term is not None:
                some += term
        last = layer.index == self.parts.last
        leaving = x.new_empty(*x.shape[:2], 1, x.shape[3]) if last else x
        leaving.copy_(
            (kept.end[self.rows][:, None] if last else self.kept_stream(kept, layer.index + 1)).expand_as(leaving)
        )
        leaving[felt] = layer.add_mlp(some, entering)
        return leaving

    def kept_stream(self, kept: KeptRun, layer: int) -> Tensor:
        """What enters this layer in the cached run, [pair, position, d_model]."""
        return kept.stream[layer][self.rows, self.first :]

    def replace_heads(self, layer: Layer, kept: KeptRun, x: Tensor, felt: Tensor) -> Rows:
        """The cached queries, keys and values, with those of the marked positions [row, pair, position] computed."""
        heads = self.take_heads(x)
        heads.copy_(kept.heads[layer.index][:, self.rows, :, self.first :][:, :, :, None].expand_as(heads))
        if layer.index < self.parts.last:
            self.project_some(layer, x, felt, heads, slice(0, 3))
        else:
            asked = torch.zeros_like(felt)
            asked[:, :, self.at] = felt[:, :, self.at]
            self.project_some(layer, x, asked, heads, slice(0, 1))
            self.project_some(layer, x, felt, heads, slice(1, 3))
        return self.as_rows(layer, x, heads[0][..., self.columns(layer), :], heads)

    def project_some(self, layer: Layer, x: Tensor, some: Tensor, heads: Tensor, only: slice) -> None:
        """Write queries, keys and values, or ``only`` some of them, of the marked positions to ``heads``."""
        n_parts, n_heads, d_head = only.stop - only.start, *layer.shape[1:]
        used = slice(only.start * n_heads * d_head, only.stop * n_heads * d_head)
        bias = None if layer.qkv_bias is None else layer.qkv_bias[used]
        rows, pairs, positions = some.nonzero(as_tuple=True)
        raw = F.linear(layer.norm1(x[some]), layer.qkv[used], bias).view(-1, n_parts, n_heads, d_head)
        heads[only][:, pairs, :, rows, positions] = self.parts.turn(raw, positions + self.first, only)

    def attention_change(self, layer: Layer, kept: KeptRun, mixed: Tensor, scaled: Tensor | None) -> Tensor:
        """By how much the heads change the residual stream, [row, pair, query], as a change in no special direction does."""
        assert kept.z is not None
        columns, gain = self.columns(layer), vector_norm(layer.out) / len(layer.out) ** 0.5
        cached = kept.z[layer.index][self.rows, self.first :][:, columns]
        change = gain * vector_norm(mixed - cached.flatten(2), dim=-1)
        if scaled is None:
            return change
        assert kept.scaled is not None
        cached = kept.scaled[layer.index][self.rows, self.first :][:, columns]
        return change + vector_norm(scaled - cached.sum(2), dim=-1)
