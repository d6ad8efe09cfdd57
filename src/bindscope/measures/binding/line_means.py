"""Mean activations by the number of their line: what of a name or a value says which line it stands on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bindscope.interventions.rewriting import read_streams
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import columns_of, programs_of
from bindscope.tasks.binding.exchanges import PART_COLUMNS
from bindscope.tasks.binding.positions import LINE_WIDTH
from bindscope.tasks.task import Batch


class LineMeans:
    """Activations at the constant lines of many programs, summed up by line."""

    def __init__(self, model: Transformer, others: Batch) -> None:
        at = int(others.target_positions[0])
        self.streams = read_streams(model, torch.from_numpy(others.tokens), at)  # [layer, program, position, d_model]
        programs, _ = programs_of(others)
        self.program, self.line = (torch.from_numpy(index) for index in np.nonzero(programs.is_constant))  # [item]
        self.columns, self.n_lines = columns_of(others), programs.n_lines

    def at(self, part: str) -> Tensor:
        """Means [layer, line, k, d_model]."""
        return _means(self._items(part), self.line, self.n_lines)

    def shuffled(self, part: str, generator: torch.Generator) -> Tensor:
        """The same with every line's number exchanged at random among all of them."""
        order = torch.randperm(len(self.line), generator=generator)
        return _means(self._items(part), self.line[order], self.n_lines)

    def explained(self, part: str) -> np.ndarray:
        """The fraction of variance [layer] that the line's number explains, less what random groups would (ω²)."""
        items, means = self._items(part), self.at(part)
        within = ((items - means[:, self.line]) ** 2).sum((1, 2, 3))
        total = ((items - items.mean(1, keepdim=True)) ** 2).sum((1, 2, 3))
        n_groups = len(self.line.unique())
        spread = within / max(len(self.line) - n_groups, 1)
        found: np.ndarray = ((total - within - (n_groups - 1) * spread) / (total + spread)).cpu().numpy()
        return found

    def in_two(self, part: str) -> np.ndarray:
        """How much of the variance of the means over lines [layer] lies in their first two directions."""
        means = self.at(part).flatten(2)  # [layer, line, feature]
        strength = torch.linalg.svdvals(means - means.mean(1, keepdim=True)) ** 2  # [layer, direction]
        found: np.ndarray = (strength[:, :2].sum(1) / strength.sum(1).clamp_min(1e-12)).cpu().numpy()
        return found

    def _items(self, part: str) -> Tensor:
        """[layer, item, k, d_model]"""
        columns = torch.from_numpy(self.columns[LINE_WIDTH * self.line.numpy()[:, None] + PART_COLUMNS[part]])
        return self.streams[:, self.program[:, None], columns]


def order_bases(means: Tensor) -> Tensor:
    """Orthonormal directions of means over lines [layer, line, k, d_model], strongest first: [layer, k, direction, d_model]."""
    centred = (means - means.mean(1, keepdim=True)).permute(0, 2, 1, 3)  # [layer, k, line, d_model]
    rank = min(centred.shape[2] - 1, centred.shape[3])
    return torch.linalg.svd(centred, full_matrices=False)[2][:, :, :rank]


def _means(items: Tensor, line: Tensor, n_lines: int) -> Tensor:
    sums = items.new_zeros(len(items), n_lines, *items.shape[2:]).index_add_(1, line.to(items.device), items)
    counts = torch.bincount(line, minlength=n_lines).clamp_min(1).to(items.device)
    return sums / counts[:, None, None]
