"""Plateau diagnostics of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import a_seed, some_steps
from bindscope.questions.opened import Opened, Steps
from bindscope.questions.program import Progress
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Diagnostics(RunQuestion):
    """How alike are positions, how repetitive the answers, how noisy the gradients, how steep the loss?"""

    command_name, method = "diagnostics", "diagnostics"

    steps: Steps = some_steps()
    n: int = ask(64, help="How many examples to draw, in 8 minibatches; intervals are over these.", ge=16)
    seed: int = a_seed()

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Every diagnostic with its interval over (step), (step, layer), (step, layer, head) or (step, group)."""
        import numpy as np
        import xarray as xr

        from bindscope.measures.diagnostics.measure import measure_diagnostics
        from bindscope.measures.learning_coefficient.examples import draw_examples

        steps, loss = opened.find_steps(self.steps), opened.run.config.training.loss
        examples = draw_examples(opened.task, np.random.default_rng(self.seed), self.n, loss=loss, n_batches=8)
        parts = []
        for done, step in enumerate(steps, start=1):
            parts.append(measure_diagnostics(opened.load(step), examples, self.seed))
            if on_progress is not None:
                on_progress(done, len(steps))
        dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop_conflicts")
        return dataset.assign_attrs(run=opened.name, n_examples=examples.n_examples, n_batches=8, seed=self.seed)
