"""The local learning coefficient of checkpoints, whole or refined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bindscope.questions.fields import a_seed, some_steps
from bindscope.questions.opened import Opened, Steps
from bindscope.questions.program import Progress
from bindscope.questions.question import BadValue, RunQuestion, ask

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Coefficient(RunQuestion):
    """How many directions around a checkpoint can its loss tell apart?"""

    command_name, method = "coefficient", "coefficient"

    steps: Steps = some_steps()
    part: str = ask(
        "all", help="Move only these weights: all, L2, L2.H1, L2.attention, attention, mlp or embedding, say."
    )
    data: str = ask("all", help="Ask only these: all, misleading, or a label such as depth=3 or n_variables=2.")
    n: int = ask(1024, help="How many examples make the loss.", ge=64)
    chains: int = ask(4, help="How many chains; the interval is over them.", ge=2, le=64)
    draws: int = ask(40, help="How many draws a chain has, burn-in included.", ge=8, le=100_000)
    burn_in: int = ask(16, help="How many of them are not counted.", ge=0)
    step_size: float = ask(2e-4, help="The step size ε of the chains.")
    elasticity: float = ask(1000.0, help="γ: how strongly chains are drawn back to the checkpoint.", ge=0)
    seed: int = a_seed(help="The seed that draws examples and noise.")

    def check(self) -> None:
        if self.step_size <= 0:
            raise BadValue("step_size", f"must be above 0, got {self.step_size}.")
        if self.burn_in > self.draws - 4:
            raise BadValue("burn_in", f"must leave at least 4 of {self.draws} draws to count, got {self.burn_in}.")

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """``coefficient`` with its interval and diagnostics over (step), and ``trace`` over (step, chain, draw)."""
        import numpy as np
        import xarray as xr

        from bindscope.measures.learning_coefficient.examples import WHOLE, draw_examples
        from bindscope.measures.learning_coefficient.measure import describe_sampling, measure_coefficient
        from bindscope.measures.learning_coefficient.sampling import Sampling

        steps = opened.find_steps(self.steps)
        loss = opened.run.config.training.loss if self.data == WHOLE else "answer"
        examples = draw_examples(opened.task, np.random.default_rng(self.seed), self.n, self.data, loss)
        sampling = Sampling(self.chains, self.draws, self.burn_in, self.step_size, self.elasticity)
        parts = []
        for done, step in enumerate(steps, start=1):
            parts.append(measure_coefficient(opened.load(step), examples, sampling, self.part, self.seed))
            if on_progress is not None:
                on_progress(done, len(steps))
        dataset = xr.concat(parts, xr.IndexVariable("step", steps), combine_attrs="drop_conflicts")
        about = {"run": opened.name, "part": self.part, "data": self.data, "seed": self.seed}
        return dataset.assign_attrs(describe_sampling(sampling, examples.n_examples), **about)
