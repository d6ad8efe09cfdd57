"""Sets of heads whose outputs are replaced together, one set after another: the rows are run once, and each set goes on in
the middle of that run.

    >>> patch = patch_head_sets(model, contrast, marks)
    >>> patch([(2, 1), (3, 0)]).argmax(-1) == contrast.source_answers

Every set equals one ``patch_sites`` (or ``ablate_together``) of its heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from bindscope.errors import BindscopeError
from bindscope.interventions.contrast import Contrast
from bindscope.model.continuation import calls_worth, group_rows, keep_runs, kept_bytes
from bindscope.model.run import run, writing_tap
from bindscope.model.sites import Site
from bindscope.model.transformer import Transformer

Head = tuple[int, int]  # layer, head
Replace = Callable[[Sequence[Head]], Tensor]
Stand = Mapping[Site, Tensor]  # what the heads of a layer give instead, broadcasting to [row, position, head, …]
ROWS_AT_ONCE = 128  # bounds memory, never changes a number
KEPT_BYTES = 1 << 30  # of runs that are kept from one set to the next


def patch_head_sets(model: Transformer, contrast: Contrast, marks: np.ndarray) -> Replace:
    """What gives the logits [pair, output] with some heads taken from the source at the positions ``marks`` [pair, position]."""
    if marks.dtype != bool or marks.shape != tuple(contrast.base.shape):
        raise BindscopeError("sets of heads: the marks must be true or false for each token of each pair.")

    def open_part(rows: Tensor) -> HeadSets:
        pairs = contrast.take(rows)
        with torch.no_grad():
            source = run(model, pairs.source, read=head_sites(model)).values
        return HeadSets(model, pairs.base, pairs.at, source, torch.from_numpy(marks)[rows])

    return _in_parts(model, contrast.base, open_part)


def replace_head_sets(model: Transformer, tokens: Tensor, at: int, stand: Stand) -> Replace:
    """What gives the logits [row, output] with some heads giving ``stand`` at all positions, the same in every row."""
    return _in_parts(model, tokens, lambda rows: HeadSets(model, tokens[rows], at, stand))


def _in_parts(model: Transformer, tokens: Tensor, open_part: Callable[[Tensor], HeadSets]) -> Replace:
    """Rows a part at a time, whose runs are kept from one set to the next if there is memory for all."""
    parts = torch.arange(len(tokens)).split(ROWS_AT_ONCE)
    fits = 2 * len(tokens) * kept_bytes(model, tokens.shape[1]) <= KEPT_BYTES
    kept = [open_part(rows) for rows in parts] if fits else None

    def replace(heads: Sequence[Head]) -> Tensor:
        opened = kept if kept is not None else map(open_part, parts)
        return torch.cat([part.replace(heads) for part in opened])

    return replace


def head_site(model: Transformer, layer: int) -> Site:
    """Where all that a layer's heads give can be read and written at least cost: z, which the output map takes on, or
    ``result`` where there is an identity-scaling term besides."""
    return Site("result" if model.config.identity_vo else "z", layer)


def head_sites(model: Transformer) -> list[Site]:
    """The same of every layer."""
    return [head_site(model, layer) for layer in range(model.config.n_layers)]


class HeadSets:
    """Rows whose heads can be replaced by ``stand``, at the positions ``marks`` [row, position] or everywhere."""

    def __init__(self, model: Transformer, tokens: Tensor, at: int, stand: Stand, marks: Tensor | None = None) -> None:
        self.model, self.at, self.stand = model, at, stand
        self.kept = keep_runs(model, tokens, at)
        self.n = at + 1 if model.config.causal else tokens.shape[1]
        self.marks = torch.ones(len(tokens), self.n, dtype=torch.bool) if marks is None else marks[:, : self.n]

    @torch.no_grad()
    def replace(self, heads: Sequence[Head]) -> Tensor:
        """Logits [row, output] with these heads replaced together; without any, those of the rows as they are."""
        logits = self.kept.logits.clone()
        by_layer = {layer: [head for _, head in some] for layer, some in groupby(sorted(heads), lambda each: each[0])}
        if not by_layer:
            return logits
        first = torch.where(self.marks.any(1), self.marks.int().argmax(1), self.n)
        if not self.model.config.causal:
            first = first.masked_fill(first < self.n, 0)
        for start, rows in group_rows(first, self.n, calls_worth(self.model.config)):
            edits = {
                head_site(self.model, layer): self._edit(layer, some, rows, start) for layer, some in by_layer.items()
            }
            logits[rows] = self.kept.run_tapped(min(by_layer), rows, start, writing_tap(edits))
        return logits

    def _edit(self, layer: int, heads: list[int], rows: Tensor, start: int) -> Callable[[Tensor], Tensor]:
        """What puts the stand-in of some heads of a layer where rows are marked, in the columns from ``start`` on."""
        last, stand = layer == self.model.config.n_layers - 1, self.stand[head_site(self.model, layer)]
        columns = slice(self.at, self.at + 1) if last else slice(start, self.n)
        if stand.ndim:
            stand = stand[rows] if len(stand) > 1 else stand
            stand = stand[:, columns] if stand.shape[1] > 1 else stand
        chosen = torch.zeros(self.model.config.n_heads, dtype=torch.bool)
        chosen[heads] = True
        where = (self.marks[rows, columns, None] & chosen)[..., None].to(stand.device)  # [row, position, head, 1]
        return lambda old: torch.where(where, stand, old)
