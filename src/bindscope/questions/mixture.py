"""What a checkpoint looks a question up by: line, name, value, or the early lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.errors import BindscopeError
from bindscope.questions.fields import a_seed, one_step
from bindscope.questions.opened import Opened, Step
from bindscope.questions.question import RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Mixture(RunQuestion):
    """Is a question handed on as a line, as a name, as a value, or not at all?"""

    command_name, method, runs_on = "mixture", "mixture", "programs"

    step: Step = one_step()
    layer: int | None = ask(None, help="Only this layer: what enters it; the last is what leaves the model.", ge=0)
    depth: int = ask(1, help="How deep the source's question is; 1 asks for a constant directly.", ge=1, le=13)
    n: int = ask(300, help="How many pairs to draw.", ge=40)
    seed: int = a_seed()

    def answer(self, opened: Opened) -> xr.Dataset:
        """``weight`` over (layer, position, account) with its interval, and how well the mixture fits."""
        import numpy as np

        from bindscope.measures.binding.mixture.measure import measure_mixture
        from bindscope.tasks.binding.accounts import sample_account_pairs

        task, step = opened.task_of(self.runs_on), opened.find_step(self.step)
        n_layers = opened.run.config.model.n_layers
        if self.layer is not None and self.layer > n_layers:
            raise BindscopeError(
                f"layer {self.layer}: the model has layers 0 to {n_layers - 1}, and {n_layers} is its end."
            )
        drawn = sample_account_pairs(task, np.random.default_rng(self.seed), self.n, self.depth)
        dataset = measure_mixture(opened.load(step), drawn, self.seed)
        if self.layer is not None:
            dataset = dataset.sel(layer=[self.layer])
        return dataset.assign_attrs(run=opened.name, step=step, depth=self.depth)
