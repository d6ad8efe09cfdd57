"""What a whole run of a transformer leaves for runs that differ from it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from bindscope.interventions.parts import Parts


@dataclass(frozen=True, eq=False)
class KeptRun:
    """What a run leaves for others, layer by layer, from some first position to ``at`` (bidirectional: to the end).

    Of the last layer only position ``at`` is computed, except for keys and values. Queries and keys are rotated, queries
    divided by √d_head.
    """

    parts: Parts
    at: int
    stream: Tensor  # [layer, pair, position, d_model]: entering each layer
    heads: Tensor  # [layer, q·k·v, pair, head, position, d_head]; of a rest, no positions
    middle: Tensor | None  # [layer, pair, position, d_model]: with attention added and no MLP yet, if asked for
    results: Tensor | None  # [layer, pair, position, head, d_model]: what each head adds, if asked for
    end: Tensor  # [pair, d_model]: leaving the last layer at ``at``
    logits: Tensor  # [pair, output]
    tolerance: float = 0.0  # the fraction of a stream's norm below which runs that go on from here take it as unchanged
    attended: Tensor | None = None  # [layer, pair, position, head·d_head]: what heads read, where there is a tolerance

    @property
    def n_positions(self) -> int:
        return self.stream.shape[2]
