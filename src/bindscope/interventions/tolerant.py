"""Changed runs that leave out what hardly changed: the same sweep, approximate, with its error measured.

A patched run differs from the cached one at few positions by much and at many by next to nothing. With a ``tolerance`` a
position whose residual stream lies within that fraction of its norm of the cached one counts as unchanged: its queries, keys
and values are the cached ones, and so is what leaves the layer there unless attention brings something new. Projections
and MLPs, nearly all of the work in a wide model, are computed for the other positions alone, all of them in one matrix
product; attention is computed as ever.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bindscope.interventions.attend import Rows, add_identity, attend
from bindscope.interventions.kept_run import KeptRun
from bindscope.interventions.parts import Layer
from bindscope.interventions.sweep import Sweep


class TolerantSweep(Sweep):
    """Rows on their way up the layers, computed where they moved."""

    def pass_layer(self, layer: Layer, kept: KeptRun, x: Tensor | None, start: Tensor | None) -> Tensor:
        x = self.join_stream(layer, kept, x, start)
        moved = _differs(x, kept.stream[layer.index][self.rows, self.first :][:, None], kept.tolerance)
        rows, before, columns = (
            self._replace_heads(layer, kept, x, moved),
            self.before(layer, kept),
            self.columns(layer),
        )
        z, pattern = attend(layer, rows, before, self.seen(layer))
        mixed = z.permute(0, 2, 3, 1, 4).flatten(3)  # [pair, row, position, head·d_head]
        assert kept.attended is not None
        cached = kept.attended[layer.index][self.rows, self.first :][:, None, columns]
        changed = moved[:, :, columns] | _differs(mixed, cached, kept.tolerance)
        entering = x[:, :, columns]
        some = torch.addmm(entering[changed], mixed[changed], layer.out)  # [token, d_model]
        if layer.out_bias is not None:
            some += layer.out_bias
        if layer.b is not None:
            some += add_identity(layer, pattern, rows, before)[changed]
        leaving = self._cached_end(layer, kept).expand(-1, x.shape[1], -1, -1).clone()
        leaving[changed] = layer.add_mlp(some, entering[changed])
        return leaving

    def _replace_heads(self, layer: Layer, kept: KeptRun, x: Tensor, moved: Tensor) -> Rows:
        """The cached queries, keys and values, with those of moved positions computed."""
        cached = kept.heads[layer.index][:, self.rows, :, self.first :]  # [q·k·v, pair, head, position, d_head]
        heads = cached.permute(0, 1, 3, 2, 4)[:, :, None].expand(-1, -1, x.shape[1], -1, -1, -1).clone()
        heads[:, moved] = self._project(layer, x[moved], moved.nonzero()[:, 2])
        queries, keys, values = heads.permute(0, 1, 4, 2, 3, 5)  # [pair, head, row, position, d_head]
        columns, normed = self.columns(layer), layer.norm1(x) if self.parts.identity else None
        asked = None if normed is None else normed[:, :, columns]
        return Rows(queries[..., columns, :], keys, values, normed, asked)

    def _project(self, layer: Layer, x: Tensor, positions: Tensor) -> Tensor:
        """Queries, keys and values [q·k·v, token, head, d_head] of tokens at these positions from ``first`` on."""
        parts, at = self.parts, positions + self.first
        raw = F.linear(layer.norm1(x), layer.qkv, layer.qkv_bias).view(len(x), *layer.shape).transpose(0, 1)
        out = raw * parts.cos[:, 0, 0, 0][:, at, None]
        if parts.sin is not None:
            half = parts.sin[0].shape[-1]
            first, second = (sin[:, 0, 0, 0][:, at, None] for sin in parts.sin)  # [q·k, token, 1, half]
            out[:2, ..., :half] += raw[:2, ..., half : 2 * half] * first
            out[:2, ..., half : 2 * half] += raw[:2, ..., :half] * second
        return out

    def _cached_end(self, layer: Layer, kept: KeptRun) -> Tensor:
        """What leaves the layer in the cached run, [pair, 1, position, d_model]."""
        if layer.index == self.parts.last:
            return kept.end[self.rows][:, None, None]
        return kept.stream[layer.index + 1][self.rows, self.first :][:, None]


def _differs(x: Tensor, cached: Tensor, tolerance: float) -> Tensor:
    """[pair, row, position]: whether vectors differ by more than this fraction of the cached one's norm."""
    return (x - cached).norm(dim=-1) > tolerance * cached.norm(dim=-1)
