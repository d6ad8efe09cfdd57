"""The floating-point operations that a patch grid cannot do without, counted from shapes; for ``patching.py``.

Counted are the matrix products of a causal model whose last layer is read at one column: the base run, the source run from the
first difference on, and of every cell what its change can reach. A product of [m, k] with [k, n] counts 2·m·k·n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from bindscope.interventions.contrast import Contrast
from bindscope.model.config import ModelConfig


def count_done(work: Callable[[], object]) -> int:
    """The operations of the matrix products that ``work`` does."""

    def addmm(_: Sequence[int], a: Sequence[int], b: Sequence[int], *__: object, **___: object) -> int:
        return 2 * a[0] * a[1] * b[1]

    def baddbmm(_: Sequence[int], a: Sequence[int], b: Sequence[int], *__: object, **___: object) -> int:
        return 2 * a[0] * a[1] * a[2] * b[2]

    in_place = {torch.ops.aten.addmm_: addmm, torch.ops.aten.baddbmm_: baddbmm}  # which the counter does not know
    with FlopCounterMode(display=False, custom_mapping=in_place) as counter:
        work()
    return counter.get_total_flops()


class Count:
    """Operations of parts of a model on rows that end with the asked column."""

    def __init__(self, config: ModelConfig, contrast: Contrast) -> None:
        self.config, self.contrast = config, contrast
        self.n, self.last = contrast.at + 1, config.n_layers - 1
        inner = config.n_heads * config.d_head
        self.side = 2 * config.d_model * inner  # of a token's queries, keys, values or their output
        self.mlp = (6 if config.gated else 4) * config.d_model * config.d_mlp
        self.inner = inner

    def whole_runs(self) -> int:
        """All layers of one row as others compute it: every position of the last layer too."""
        return self.config.n_layers * self.layer(0, self.n) + self.unembed()

    def grid(self, grid: str, columns: Sequence[Tensor] = ()) -> int:
        """Base runs, source runs and all cells; ``columns`` [pair] are the named positions of a chain grid."""
        first = self.contrast.first_difference.tolist()
        total = sum(self.run(0) + self.run(position) for position in first)
        if grid == "head":
            return total + sum(self.head_cells(position) for position in first)
        for pair, position in enumerate(first):
            wanted = range(self.n) if grid == "residual" else {int(column[pair]) for column in columns}
            total += sum(self.column(pair, p) for p in wanted if p >= position)
        return total

    def run(self, first: int) -> int:
        """A run of the positions from ``first`` on."""
        return sum(self.layer_to(layer, first) for layer in range(self.config.n_layers)) + self.unembed()

    def column(self, pair: int, position: int) -> int:
        """Every layer's cell at one position; entering the first layer nothing changes, or it is the source run."""
        several = int((self.contrast.base != self.contrast.source)[pair, : self.n].sum()) > 1
        differs = bool(self.contrast.base[pair, position] != self.contrast.source[pair, position])
        layers = range(0 if several and differs else 1, self.config.n_layers)
        return sum(self.cell(layer, position) for layer in layers)

    def cell(self, layer: int, position: int) -> int:
        """Changing one position of the residual stream that enters ``layer``."""
        n_known = self.n - position - 1
        saved = n_known * (2 if layer == self.last else 3) * self.side  # projections of what has not changed
        return sum(self.layer_to(at, position) for at in range(layer, self.config.n_layers)) - saved + self.unembed()

    def head_cells(self, first: int) -> int:
        """Each head replaced, from a position on."""
        total = 0
        for layer in range(self.config.n_layers):
            n = 1 if layer == self.last else self.n - first
            above = sum(self.layer_to(at, first) for at in range(layer + 1, self.config.n_layers))
            total += n * self.side + self.config.n_heads * (n * self.mlp + above + self.unembed())
        return total

    def layer_to(self, layer: int, first: int) -> int:
        """A layer at the positions from ``first`` on; of the last, keys and values, and the asked column."""
        if layer < self.last:
            return self.layer(first, self.n)
        return (self.n - first) * 2 * self.side + 2 * self.side + 4 * self.n * self.inner + self.mlp

    def layer(self, first: int, stop: int) -> int:
        """A layer at some positions, each attending to those up to itself."""
        seen = sum(range(first + 1, stop + 1))
        return (stop - first) * (4 * self.side + self.mlp) + 4 * seen * self.inner

    def unembed(self) -> int:
        return 2 * self.config.d_model * self.config.outputs
