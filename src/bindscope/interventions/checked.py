"""How far a grid within a tolerance is off: some of its columns, drawn at random, are computed again exactly.

>>> check = Check(contrast, candidates)
>>> for columns in residual_columns(model, contrast, tolerance=1e-3):
...     check.note(columns)
>>> check.errors(lambda pairs, wanted: residual_columns(model, pairs, wanted=wanted))
{'n_checked': 96, 'error_of_logits': 0.0011, 'error_of_success': 0.0, …}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from bindscope.interventions.columns import Columns
from bindscope.interventions.contrast import Contrast
from bindscope.interventions.outcome import measure_outcomes, name_metrics
from bindscope.interventions.own_metric import OwnMetric
from bindscope.model.run import to_host

FRACTION = 1 / 20  # of the columns are computed again
FEWEST_COLUMNS, MOST_COLUMNS = 8, 24
MOST_PAIRS = 4  # whose base and source runs are needed again

Exact = Callable[[Contrast, Tensor], Iterable[Columns]]  # (pairs, their wanted columns [pair, position])


class Check:
    """Remembers the logits of some columns, to compare them with exact ones."""

    def __init__(self, contrast: Contrast, candidates: Tensor) -> None:
        """``candidates`` [pair, position] are the columns that may be drawn: those where something can change."""
        rng = np.random.default_rng(0)
        having = candidates.any(1).nonzero()[:, 0].numpy()
        self.contrast = contrast
        self.pairs = torch.from_numpy(np.sort(rng.permutation(having)[:MOST_PAIRS]))
        columns = candidates[self.pairs].nonzero().numpy()  # [column, (which of the pairs, position)]
        n_columns = round(np.clip(FRACTION * int(candidates.sum()), FEWEST_COLUMNS, MOST_COLUMNS))
        pair, position = rng.permutation(columns)[:n_columns].T
        self.chosen = torch.zeros_like(candidates)
        self.chosen[self.pairs[pair], position] = True
        self.noted: dict[tuple[int, int], Tensor] = {}  # (pair, position) → logits [layer, output]

    def note(self, columns: Columns) -> None:
        """Remember what was found of the columns that were drawn."""
        for index in self.chosen[columns.pairs, columns.positions].nonzero()[:, 0].tolist():
            key = int(columns.pairs[index]), int(columns.positions[index])
            self.noted[key] = to_host(columns.logits[:, index])

    def errors(self, exact: Exact, metric: OwnMetric | None = None) -> dict[str, float]:
        """How many cells were computed again, and the largest difference of any logit and of every metric."""
        worst = dict.fromkeys(("logits", *name_metrics(metric)), 0.0)
        n_cells = 0
        for columns in exact(self.contrast.take(self.pairs), self.chosen[self.pairs]):
            pairs = self.pairs[columns.pairs]
            keys = zip(pairs.tolist(), columns.positions.tolist())
            near, logits = torch.stack([self.noted[key] for key in keys], 1), to_host(columns.logits)
            n_cells += near.shape[0] * near.shape[1]
            worst["logits"] = max(worst["logits"], float((near - logits).abs().max()))
            taken, unchanged = self.contrast.take(pairs), (columns.base_logits, columns.source_logits)
            mine, theirs = (measure_outcomes(cells, *unchanged, taken, metric) for cells in (near, logits))
            for name, values in mine.items():
                worst[name] = max(worst[name], float(np.nanmax(np.abs(values - theirs[name]), initial=0.0)))
        return {"n_checked": n_cells, **{f"error_of_{name}": error for name, error in worst.items()}}
